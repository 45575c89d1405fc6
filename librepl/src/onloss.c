/* SPDX-License-Identifier: BSD-3-Clause */
#include "onloss.h"

#include "ship.h"

int
onloss_check(struct repl *r, struct err *e)
{
	if (r->cfg->on_loss != REPL_ON_LOSS_FAIL)
		return 0;
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (!atomic_load(&r->replicas[i].lost) || ship_serves(r->ship, i))
			continue;
		pthread_mutex_lock(&r->reason_lock);
		(void)err_set(e, REPL_E_LOST, "replica %u is lost: %s", i, r->replicas[i].reason);
		pthread_mutex_unlock(&r->reason_lock);
		return REPL_E_LOST;
	}
	return ship_enough(r->ship) ? 0 : ship_few(r->ship, e);
}
