/* SPDX-License-Identifier: BSD-3-Clause */
#include "onloss.h"

#include "config.h"
#include "repl_lanes.h"
#include "ship.h"

int
onloss_check(struct repl *r, struct err *e)
{
	if (r->cfg->on_loss != REPL_ON_LOSS_FAIL)
		return 0;
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (!atomic_load(&r->replicas[i].lost) || ship_serves(r->ship, i))
			continue;
		if (!repl_reason_lock(r))
			return handle_abandoned(e);
		(void)err_set(e, REPL_E_LOST, "replica %u is lost: %s", i, r->replicas[i].reason);
		pthread_mutex_unlock(&r->reason_lock);
		return REPL_E_LOST;
	}
	return ship_enough(r->ship) ? 0 : ship_few(r->ship, e);
}

/* Whether too few are left without them, so that those who are lost matter. */
static bool
onloss_needs(const struct repl *r, uint32_t replicas)
{
	unsigned left = 0, count = 0;

	for (unsigned i = 0; i < r->replica_count; i++) {
		bool lost = replicas >> i & 1;

		if (r->cfg->async[i])
			continue;
		count += lost;
		/* One that is to be paused counts as gone: that may come about later. */
		left += !lost && !atomic_load(&r->replicas[i].lost) &&
			!atomic_load(&r->replicas[i].paused);
	}
	return count && (r->cfg->ack == ACK_ALL || left < config_needed(r->cfg));
}

int
onloss_spare(const struct repl *r, uint32_t replicas, struct err *e)
{
	if (r->cfg->on_loss == REPL_ON_LOSS_DEGRADE || !onloss_needs(r, replicas))
		return 0;
	if (r->cfg->on_loss == REPL_ON_LOSS_FAIL)
		return err_set(e, REPL_E_REFUSED,
			       "with on-loss = fail calls of the program would fail until it is "
			       "resumed: drains need it");
	return err_set(e, REPL_E_REFUSED,
		       "with on-loss = block calls of the program would wait until it is resumed, "
		       "and fail after block-timeout, %u ms: drains need it",
		       r->cfg->block_timeout_ms);
}
