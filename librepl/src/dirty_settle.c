/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool's file on media. What a replica lacks is told relative to the pool: of what the log
 * holds no more, or nobody writes any more, only maps tell, and a file that a power cut makes older
 * than the replica would be taken for equal to it.
 */
#include "dirty_impl.h"

/*
 * The kernel tells of what a device has not taken once, and leaves the pages clean: a sync that
 * succeeds after that says nothing.
 */
bool
settle_pool(struct dirty *d, uint64_t size)
{
	bool ok;

	pthread_mutex_lock(&d->pool_lock);
	if (!atomic_load(&d->pool_lost) && local_settle_beside(d->local, size, NULL))
		atomic_store(&d->pool_lost, true);
	ok = !atomic_load(&d->pool_lost);
	pthread_mutex_unlock(&d->pool_lock);
	return ok;
}
