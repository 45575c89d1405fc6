/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks that become part of the batch one run after the other, while others mark. */
#include "dirty_impl.h"

#include <assert.h>

static int
batch_open(struct dirty *d, struct track *t, struct err *e)
{
	struct dirtymap *empty = NULL;
	int rc;

	if (t->batch)
		return 0;
	rc = dirtymap_new(d->pool_size, d->shift, &empty, e);
	if (rc)
		return rc;
	pthread_rwlock_wrlock(&d->maps_lock);
	t->batch = empty;
	pthread_rwlock_unlock(&d->maps_lock);
	return 0;
}

bool
dirty_take(struct dirty *d, unsigned replica, uint64_t from, uint64_t end, uint64_t max_len,
	   struct range *run, struct err *e)
{
	struct track *t = &d->track[replica];
	bool any = false;

	assert(replica < d->count);
	if (!atomic_load(&t->tracked) || batch_open(d, t, e))
		return false;
	pthread_rwlock_rdlock(&d->maps_lock);
	if (t->current && t->batch)
		any = dirtymap_take(t->current, t->batch, from, end, max_len, run);
	pthread_rwlock_unlock(&d->maps_lock);
	return any;
}

uint64_t
dirty_marked(const struct dirty *d, unsigned replica)
{
	/* The lock is no part of what is looked at. */
	struct dirty *mine = (struct dirty *)(uintptr_t)d;
	const struct track *t = &d->track[replica];
	uint64_t bytes;

	assert(replica < d->count);
	pthread_rwlock_rdlock(&mine->maps_lock);
	bytes = t->current ? dirtymap_bytes(t->current) : 0;
	pthread_rwlock_unlock(&mine->maps_lock);
	return bytes;
}
