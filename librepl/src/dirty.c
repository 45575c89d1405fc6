/* SPDX-License-Identifier: BSD-3-Clause */
/* The maps of all replicas, and what they are worth. */
#include "dirty_impl.h"

#include <assert.h>
#include <stdlib.h>

/*
 * The grain keeps all maps of all replicas, two of each, below 1/32768 of the
 * pool: two blocks of 4 KiB a bit with one replica, twice as many with two.
 */
static unsigned
grain_shift(unsigned replicas)
{
	unsigned shift = DIRTYMAP_SHIFT_MIN + 1;

	while ((1U << (shift - DIRTYMAP_SHIFT_MIN - 1)) < replicas && shift < DIRTYMAP_SHIFT_MAX)
		shift++;
	return shift;
}

uint64_t
dirty_memory(uint64_t pool_size, unsigned replicas)
{
	uint64_t blocks = ((pool_size - 1) >> grain_shift(replicas)) + 1;

	return 2 * replicas * ((blocks + 63) / 64 * 8);
}

static int
locks_init(struct dirty *d, struct err *e)
{
	pthread_rwlockattr_t attr;
	int ret;

	if (pthread_rwlockattr_init(&attr))
		return err_set(e, REPL_E_NOMEM, "out of memory");
	/* Who exchanges the maps must not wait for a moment in which nobody marks. */
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	ret = pthread_rwlock_init(&d->maps_lock, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
	return ret ? err_set(e, REPL_E_NOMEM, "out of memory") : 0;
}

int
dirty_open(struct local *l, const struct repl_config *c, uint64_t pool_size, bool crashed,
	   struct dirty **out, struct err *e)
{
	struct dirty *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	d->local = l;
	d->count = c->target_count;
	d->shift = grain_shift(d->count);
	d->pool_size = pool_size;
	for (unsigned i = 0; i < d->count; i++)
		d->track[i].suspect = crashed;
	rc = locks_init(d, e);
	if (rc) {
		free(d);
		return rc;
	}
	*out = d;
	return 0;
}

void
dirty_start(struct dirty *d)
{
	(void)d;
}

static void
track_free(struct track *t)
{
	dirtymap_free(t->current);
	dirtymap_free(t->batch);
	t->current = t->batch = NULL;
}

void
dirty_close(struct dirty *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < d->count; i++)
		track_free(&d->track[i]);
	(void)pthread_rwlock_destroy(&d->maps_lock);
	free(d);
}

/* ---- which replicas ---- */

static int
track_begin(struct dirty *d, struct track *t, struct err *e)
{
	struct dirtymap *m = NULL;
	int rc = dirtymap_new(d->pool_size, d->shift, &m, e);

	if (rc)
		return rc;
	pthread_rwlock_wrlock(&d->maps_lock);
	t->current = m;
	t->untrusted = t->suspect;
	atomic_store(&t->tracked, true);
	pthread_rwlock_unlock(&d->maps_lock);
	return 0;
}

int
dirty_track(struct dirty *d, unsigned replica, const struct gen_id *base)
{
	struct track *t = &d->track[replica];
	int rc;

	assert(replica < d->count);
	if (atomic_load(&t->tracked)) {
		if (!gen_id_equal(&t->base, base)) {
			t->base = *base;
			t->untrusted = true;
		}
		return 0;
	}
	rc = track_begin(d, t, NULL);
	if (!rc)
		t->base = *base;
	return rc;
}

void
dirty_rebase(struct dirty *d, unsigned replica, const struct gen_id *base)
{
	struct track *t = &d->track[replica];

	assert(replica < d->count && atomic_load(&t->tracked));
	t->base = *base;
	t->suspect = t->untrusted = false;
}

void
dirty_untrack(struct dirty *d, unsigned replica)
{
	struct track *t = &d->track[replica];

	assert(replica < d->count);
	pthread_rwlock_wrlock(&d->maps_lock);
	atomic_store(&t->tracked, false);
	track_free(t);
	t->suspect = t->untrusted = false;
	pthread_rwlock_unlock(&d->maps_lock);
}

bool
dirty_tracked(const struct dirty *d, unsigned replica)
{
	assert(replica < d->count);
	return atomic_load(&d->track[replica].tracked);
}

enum dirty_trust
dirty_found(const struct dirty *d, unsigned replica, const struct gen_id *replica_current)
{
	const struct track *t = &d->track[replica];

	assert(replica < d->count);
	if (!atomic_load(&t->tracked))
		return DIRTY_NONE;
	if (t->untrusted || gen_id_is_nil(&t->base) || !gen_id_equal(&t->base, replica_current))
		return DIRTY_UNTRUSTED;
	return DIRTY_TRUSTED;
}

/* ---- marks ---- */

void
dirty_mark(struct dirty *d, unsigned replica, uint64_t off, uint64_t len)
{
	struct track *t = &d->track[replica];

	assert(replica < d->count);
	if (!atomic_load(&t->tracked))
		return;
	pthread_rwlock_rdlock(&d->maps_lock);
	if (t->current)
		(void)dirtymap_set(t->current, off, len);
	pthread_rwlock_unlock(&d->maps_lock);
}

void
dirty_mark_all(struct dirty *d, unsigned replica)
{
	dirty_mark(d, replica, 0, UINT64_MAX);
}

void
dirty_active(struct dirty *d, uint64_t off, uint64_t len)
{
	(void)d;
	(void)off;
	(void)len;
}

struct dirtymap *
dirty_batch_begin(struct dirty *d, unsigned replica)
{
	struct track *t = &d->track[replica];
	struct dirtymap *empty = NULL;

	assert(replica < d->count && !t->batch);
	if (!atomic_load(&t->tracked) || dirtymap_new(d->pool_size, d->shift, &empty, NULL))
		return NULL;
	pthread_rwlock_wrlock(&d->maps_lock);
	t->batch = t->current;
	t->current = empty;
	pthread_rwlock_unlock(&d->maps_lock);
	return t->batch;
}

void
dirty_batch_end(struct dirty *d, unsigned replica, bool done)
{
	struct track *t = &d->track[replica];
	struct dirtymap *batch;

	assert(replica < d->count);
	pthread_rwlock_wrlock(&d->maps_lock);
	batch = t->batch;
	t->batch = NULL;
	if (batch && !done)
		dirtymap_merge(t->current, batch);
	pthread_rwlock_unlock(&d->maps_lock);
	dirtymap_free(batch);
}

uint64_t
dirty_bytes(const struct dirty *d, unsigned replica)
{
	/* The lock is no part of what is looked at. */
	struct dirty *mine = (struct dirty *)(uintptr_t)d;
	const struct track *t = &d->track[replica];
	uint64_t bytes = 0;

	assert(replica < d->count);
	pthread_rwlock_rdlock(&mine->maps_lock);
	if (t->current)
		bytes += dirtymap_bytes(t->current);
	if (t->batch)
		bytes += dirtymap_bytes(t->batch);
	pthread_rwlock_unlock(&mine->maps_lock);
	return bytes;
}

unsigned
dirty_grain(const struct dirty *d)
{
	return 1U << d->shift;
}

int
dirty_grow(struct dirty *d, uint64_t pool_size, struct err *e)
{
	int rc = 0;

	pthread_rwlock_wrlock(&d->maps_lock);
	for (unsigned i = 0; i < d->count && !rc; i++) {
		if (d->track[i].current)
			rc = dirtymap_grow(d->track[i].current, pool_size, e);
	}
	if (!rc)
		d->pool_size = pool_size;
	pthread_rwlock_unlock(&d->maps_lock);
	return rc;
}

bool
dirty_media_ok(const struct dirty *d, const char **why)
{
	(void)d;
	if (why)
		*why = "";
	return true;
}
