/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The activity log: which parts of the pool were written to lately, on media
 * before anything of that is acknowledged.
 *
 * Taking an extent off races with those who look. They set its bit in used, then
 * look whether it is on; who takes it off clears on, then looks at used: one of
 * the two sees the other. Atomics are in sequential order.
 */
#include "dirty_impl.h"

#include <string.h>

int
activity_init(struct activity *a, struct err *e)
{
	if (pthread_mutex_init(&a->lock, NULL))
		return err_set(e, REPL_E_NOMEM, "out of memory");
	if (pthread_cond_init(&a->synced, NULL)) {
		(void)pthread_mutex_destroy(&a->lock);
		return err_set(e, REPL_E_NOMEM, "out of memory");
	}
	return 0;
}

void
activity_fini(struct activity *a)
{
	(void)pthread_cond_destroy(&a->synced);
	(void)pthread_mutex_destroy(&a->lock);
}

static bool
extent_use(struct activity *a, uint64_t extent)
{
	uint64_t w = extent / 64, bit = 1ULL << (extent % 64);

	/* Mostly it is set: no write to what other threads read. */
	if (!(atomic_load(&a->used[w]) & bit))
		(void)atomic_fetch_or(&a->used[w], bit);
	return atomic_load(&a->on[w]) & bit;
}

/* Use all extents of a range; true if all are on. */
static bool
range_use(struct activity *a, uint64_t off, uint64_t len)
{
	uint32_t shift = atomic_load(&a->shift);
	bool on = true;

	for (uint64_t x = off >> shift; x <= (off + len - 1) >> shift && x < DIRTYPAGE_EXTENTS; x++)
		on &= extent_use(a, x);
	/* If they have another size meanwhile, what was looked at were others. */
	return on && atomic_load(&a->shift) == shift;
}

static void
range_want(struct activity *a, uint64_t off, uint64_t len)
{
	uint32_t shift = atomic_load(&a->shift);

	for (uint64_t x = off >> shift; x <= (off + len - 1) >> shift && x < DIRTYPAGE_EXTENTS; x++)
		a->want[x / 64] |= 1ULL << (x % 64);
}

/* Write what is wanted. Called, and returns, with the lock held, and nobody else writing. */
static void
activity_sync(struct dirty *d)
{
	struct activity *a = &d->activity;
	uint64_t want[DIRTYPAGE_EXTENT_WORDS];
	uint8_t page[DIRTYPAGE_SIZE];
	struct err e;
	int rc;

	err_clear(&e);
	memcpy(want, a->want, sizeof(want));
	a->syncing = true;
	pthread_mutex_unlock(&a->lock);
	dirtypage_activity_encode(want, &d->region.pool, page);
	rc = region_write(d, DIRTYPAGE_ACTIVITY, page, &e);
	if (!rc)
		rc = region_sync(d, &e);
	/* Before anybody goes on: what is acknowledged from now on is not on media. */
	if (rc)
		region_fail(d, &e);
	pthread_mutex_lock(&a->lock);
	for (unsigned i = 0; !rc && i < DIRTYPAGE_EXTENT_WORDS; i++)
		(void)atomic_fetch_or(&a->on[i], want[i]);
	a->syncing = false;
	(void)pthread_cond_broadcast(&a->synced);
}

void
dirty_active(struct dirty *d, uint64_t off, uint64_t len)
{
	struct activity *a = &d->activity;

	if (!d->keep || len == 0 || range_use(a, off, len))
		return;
	pthread_mutex_lock(&a->lock);
	/* Threads that come together share one sync: the first one's, or the next. */
	while (a->armed && !atomic_load(&d->broken)) {
		range_want(a, off, len);
		if (range_use(a, off, len))
			break;
		if (a->syncing)
			(void)pthread_cond_wait(&a->synced, &a->lock);
		else
			activity_sync(d);
	}
	pthread_mutex_unlock(&a->lock);
}

/* ---- taking off ---- */

/* One round older; true if it is to be taken off. With the lock held. */
static bool
extent_age(struct activity *a, unsigned x)
{
	uint64_t bit = 1ULL << (x % 64);
	unsigned w = x / 64;

	if (atomic_load(&a->used[w]) & bit) {
		(void)atomic_fetch_and(&a->used[w], ~bit);
		a->age[x] = 0;
		return false;
	}
	if (a->age[x] < UINT16_MAX)
		a->age[x]++;
	if (a->age[x] < a->idle_rounds)
		return false;
	(void)atomic_fetch_and(&a->on[w], ~bit);
	if (!(atomic_load(&a->used[w]) & bit))
		return true;
	/* Somebody may have found it on, which it still is on media. */
	(void)atomic_fetch_or(&a->on[w], bit);
	return false;
}

bool
activity_retire_begin(struct dirty *d, uint64_t idle[DIRTYPAGE_EXTENT_WORDS])
{
	struct activity *a = &d->activity;
	bool any = false;

	memset(idle, 0, DIRTYPAGE_EXTENT_WORDS * sizeof(*idle));
	pthread_mutex_lock(&a->lock);
	for (unsigned x = 0; x < DIRTYPAGE_EXTENTS; x++) {
		if ((atomic_load(&a->on[x / 64]) >> (x % 64) & 1) && extent_age(a, x)) {
			idle[x / 64] |= 1ULL << (x % 64);
			any = true;
		}
	}
	pthread_mutex_unlock(&a->lock);
	return any;
}

void
activity_retire_end(struct dirty *d, const uint64_t idle[DIRTYPAGE_EXTENT_WORDS])
{
	struct activity *a = &d->activity;
	bool any = false;

	pthread_mutex_lock(&a->lock);
	while (a->syncing)
		(void)pthread_cond_wait(&a->synced, &a->lock);
	for (unsigned w = 0; w < DIRTYPAGE_EXTENT_WORDS; w++) {
		/* Not what somebody has written to since, and had put on again. */
		uint64_t off = idle[w] & ~atomic_load(&a->on[w]);

		a->want[w] &= ~off;
		any |= off != 0;
	}
	if (any && a->armed)
		activity_sync(d);
	pthread_mutex_unlock(&a->lock);
}

/* ---- a new region ---- */

void
activity_suspend(struct dirty *d)
{
	struct activity *a = &d->activity;

	pthread_mutex_lock(&a->lock);
	while (a->syncing)
		(void)pthread_cond_wait(&a->synced, &a->lock);
	a->syncing = true;
	for (unsigned i = 0; i < DIRTYPAGE_EXTENT_WORDS; i++)
		atomic_store(&a->on[i], 0);
	pthread_mutex_unlock(&a->lock);
}

void
activity_resume(struct dirty *d, bool on)
{
	struct activity *a = &d->activity;

	pthread_mutex_lock(&a->lock);
	a->syncing = false;
	a->armed = on;
	(void)pthread_cond_broadcast(&a->synced);
	pthread_mutex_unlock(&a->lock);
}

int
activity_format(struct dirty *d, struct err *e)
{
	struct activity *a = &d->activity;
	uint64_t want[DIRTYPAGE_EXTENT_WORDS];
	uint8_t page[DIRTYPAGE_SIZE];

	pthread_mutex_lock(&a->lock);
	memcpy(want, a->want, sizeof(want));
	pthread_mutex_unlock(&a->lock);
	dirtypage_activity_encode(want, &d->region.pool, page);
	return region_write(d, DIRTYPAGE_ACTIVITY, page, e);
}

void
activity_grow(struct dirty *d, uint64_t pool_size)
{
	struct activity *a = &d->activity;
	uint32_t old = atomic_load(&a->shift), new = dirtypage_extent_shift(pool_size);
	uint64_t want[DIRTYPAGE_EXTENT_WORDS] = {0};

	if (new <= old)
		return;
	pthread_mutex_lock(&a->lock);
	for (uint64_t x = 0; x < DIRTYPAGE_EXTENTS; x++) {
		uint64_t to = x >> (new - old);

		if (a->want[x / 64] >> (x % 64) & 1)
			want[to / 64] |= 1ULL << (to % 64);
	}
	memcpy(a->want, want, sizeof(want));
	memset(a->age, 0, sizeof(a->age));
	atomic_store(&a->shift, new);
	pthread_mutex_unlock(&a->lock);
}
