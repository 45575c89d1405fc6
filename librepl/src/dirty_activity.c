/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The activity log: which parts of the pool were written to lately, on media
 * before anything of that is acknowledged.
 */
#include "dirty_impl.h"

#include <string.h>

#include "ownwait.h"

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

/* In the child of a fork it is new, and may not be taken. */
static void
activity_unlock(struct dirty *d)
{
	if (!atomic_load(&d->abandoned))
		pthread_mutex_unlock(&d->activity.lock);
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
	memcpy(want, a->log.want, sizeof(want));
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
	if (!rc)
		extentlog_on(&a->log, want);
	a->syncing = false;
	(void)pthread_cond_broadcast(&a->synced);
}

bool
dirty_logged(struct dirty *d, uint64_t off, uint64_t len)
{
	return !d->keep || len == 0 || extentlog_use(&d->activity.log, off, len);
}

bool
dirty_active(struct dirty *d, uint64_t off, uint64_t len)
{
	struct activity *a = &d->activity;

	if (dirty_logged(d, off, len))
		return false;
	if (!ownwait_lock(&a->lock, &d->abandoned))
		return true;
	/* Threads that come together share one sync: the first one's, or the next. */
	while (a->armed && !atomic_load(&d->broken) && !atomic_load(&d->abandoned)) {
		extentlog_want(&a->log, off, len);
		if (extentlog_use(&a->log, off, len))
			break;
		if (a->syncing)
			(void)ownwait_cond(&a->synced, &a->lock, &d->abandoned);
		else
			activity_sync(d);
	}
	activity_unlock(d);
	return true;
}

void
dirty_abandon(struct dirty *d)
{
	if (!d)
		return;
	atomic_store(&d->abandoned, true);
	/* Who has interrupted a sync, or a wait for one, takes it behind that. */
	ownwait_lock_anew(&d->activity.lock);
}

/* Also where the turn moves on in between: it is counted until both have passed. */
unsigned
dirty_store_begin(struct dirty *d)
{
	unsigned turn = atomic_load(&d->store_turn) % 2;

	(void)atomic_fetch_add(&d->stores[turn], 1);
	return turn;
}

void
dirty_store_end(struct dirty *d, unsigned turn)
{
	(void)atomic_fetch_sub(&d->stores[turn], 1);
}

void
dirty_pin(struct dirty *d, uint64_t off, uint64_t len)
{
	struct activity *a = &d->activity;
	uint64_t end = off + len;

	if (len == 0 || !ownwait_lock(&a->lock, &d->abandoned))
		return;
	if (a->pinned.len) {
		uint64_t pinned_end = a->pinned.off + a->pinned.len;

		end = end > pinned_end ? end : pinned_end;
		off = off < a->pinned.off ? off : a->pinned.off;
	}
	a->pinned = (struct range){.off = off, .len = end - off};
	a->pins++;
	activity_unlock(d);
	(void)dirty_active(d, off, end - off);
}

uint64_t
dirty_pins(struct dirty *d)
{
	uint64_t pins;

	if (!ownwait_lock(&d->activity.lock, &d->abandoned))
		return 0;
	pins = d->activity.pins;
	activity_unlock(d);
	return pins;
}

void
dirty_unpin(struct dirty *d, uint64_t pins)
{
	if (!ownwait_lock(&d->activity.lock, &d->abandoned))
		return;
	if (d->activity.pins == pins)
		d->activity.pinned = (struct range){0};
	activity_unlock(d);
}

/* ---- taking off ---- */

bool
activity_retire_begin(struct dirty *d, uint64_t idle[DIRTYPAGE_EXTENT_WORDS])
{
	struct activity *a = &d->activity;
	bool any;

	pthread_mutex_lock(&a->lock);
	if (a->pinned.len)
		(void)extentlog_use(&a->log, a->pinned.off, a->pinned.len);
	any = extentlog_retire_begin(&a->log, idle);
	pthread_mutex_unlock(&a->lock);
	return any;
}

void
activity_retire_end(struct dirty *d, const uint64_t idle[DIRTYPAGE_EXTENT_WORDS])
{
	struct activity *a = &d->activity;

	pthread_mutex_lock(&a->lock);
	while (a->syncing)
		(void)pthread_cond_wait(&a->synced, &a->lock);
	if (extentlog_retire_end(&a->log, idle) && a->armed)
		activity_sync(d);
	pthread_mutex_unlock(&a->lock);
}

/* ---- a new region ---- */

void
activity_suspend(struct dirty *d)
{
	struct activity *a = &d->activity;

	if (!ownwait_lock(&a->lock, &d->abandoned))
		return;
	while (a->syncing && ownwait_cond(&a->synced, &a->lock, &d->abandoned))
		;
	a->syncing = true;
	extentlog_off(&a->log);
	activity_unlock(d);
}

void
activity_resume(struct dirty *d, bool on)
{
	struct activity *a = &d->activity;

	if (!ownwait_lock(&a->lock, &d->abandoned))
		return;
	/* What has come to be wanted since is not there. */
	if (on)
		extentlog_on(&a->log, a->formatted);
	a->syncing = false;
	a->armed = on;
	(void)pthread_cond_broadcast(&a->synced);
	activity_unlock(d);
}

int
activity_format(struct dirty *d, struct err *e)
{
	struct activity *a = &d->activity;
	uint8_t page[DIRTYPAGE_SIZE];

	pthread_mutex_lock(&a->lock);
	memcpy(a->formatted, a->log.want, sizeof(a->formatted));
	pthread_mutex_unlock(&a->lock);
	dirtypage_activity_encode(a->formatted, &d->region.pool, page);
	return region_write(d, DIRTYPAGE_ACTIVITY, page, e);
}

void
activity_grow(struct dirty *d, uint64_t pool_size)
{
	struct activity *a = &d->activity;

	pthread_mutex_lock(&a->lock);
	extentlog_grow(&a->log, pool_size);
	pthread_mutex_unlock(&a->lock);
}
