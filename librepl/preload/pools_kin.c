/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool that one process of the kin has open, and others write to. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "kin.h"
#include "pools_impl.h"

#define PAUSE_NS   10000000L
#define POST_TRIES 4 /* times, until a range is posted with what lies between it and others */

static unsigned
number_of(const struct pool *p)
{
	return (unsigned)(p - pools);
}

bool
pool_elsewhere(const struct pool *p)
{
	return kin_has(number_of(p), p->dev, p->ino);
}

/* ---- who has it open ---- */

static int
range_flush(struct pool *p, unsigned lane, uint64_t off, uint64_t end, bool holes)
{
	enum look look = holes ? LOOK_CHANGED : LOOK_SYNC;
	int rc = 0;

	for (size_t n; !rc && off < end; off += n) {
		n = end - off < LANE_BYTES ? (size_t)(end - off) : LANE_BYTES;
		rc = lane_flush_there(p, lane, off, n, look);
	}
	return rc;
}

/* What of a range lies behind the pool's size. */
enum behind {
	BEHIND_NONE,  /* the file does not go on there: nothing was stored */
	BEHIND_COMES, /* the replicas are to grow first */
	BEHIND_LOST,  /* they can't */
};

/* By a look at the file after the range was taken: it may have grown when that was posted. */
static enum behind
behind_look(const struct pool *p, bool grown)
{
	uint64_t end;

	if (!view_ends(p, &end))
		end = atomic_load(&p->longer) || pool_rest_is_written(p) ? UINT64_MAX
									 : view_ended(p);
	if (end <= p->size)
		return BEHIND_NONE;
	return grown && (end == UINT64_MAX || end == p->refused_size) ? BEHIND_LOST : BEHIND_COMES;
}

/*
 * What is posted is drained, and that told. But for what lies behind the pool's size: that is
 * posted once more, for when it has grown, false then; or, if it can't, it is told. False as well
 * where some of it can't be read: the pool is to be opened anew. With on-loss = fail nobody goes on
 * when a replica is lost: this process ends, and who waits opens the pool.
 */
static bool
posts_drain(struct pool *p, unsigned lane, bool grown, uint64_t asked, int *rc)
{
	struct kin_range ranges[KIN_RANGES];
	unsigned n = kin_take(number_of(p), ranges);
	bool all = true;

	for (unsigned i = 0; i < n; i++) {
		uint64_t off = ranges[i].off, end = kin_range_end(&ranges[i], UINT64_MAX);
		uint64_t behind = off > p->size ? off : p->size;
		enum behind is = end > behind ? behind_look(p, grown) : BEHIND_NONE;

		/* One up to the end, wherever that is, may be others with what lies between. */
		if (is == BEHIND_LOST && end != UINT64_MAX)
			pool_behind(p, behind, end);
		else if (is == BEHIND_COMES)
			(void)kin_post(number_of(p), behind, end - behind,
				       KIN_ANY | (ranges[i].holes ? KIN_HOLES : 0));
		all = all && is != BEHIND_COMES;
		if (!*rc)
			*rc = range_flush(p, lane, off, end < p->size ? end : p->size,
					  ranges[i].holes);
	}
	if (n && !*rc)
		*rc = lane_drain(p, lane);
	all = all && !atomic_load(&p->unread);
	/* Nor does the child of a handler know what its parent has drained. */
	if (all && *rc != REPL_E_LOST && p->r)
		kin_served(number_of(p), asked);
	return all;
}

static bool
serve(struct pool *p, bool grown, uint64_t asked)
{
	unsigned forks = pools_forks(), lane;
	bool all = true;
	int rc = 0;

	(void)pthread_rwlock_rdlock(&p->lock);
	if (p->state == POOL_OPEN) {
		lane = lane_of_thread(p);
		(void)pthread_mutex_lock(&p->lane_locks[lane]);
		/* What is posted is its parent's to take. */
		if (pools_forks() == forks)
			all = posts_drain(p, lane, grown, asked, &rc);
		if (pools_forks() != forks)
			return !pool_unlock(p, forks);
		(void)pthread_mutex_unlock(&p->lane_locks[lane]);
		lost_look(p, rc != 0);
	}
	if (pool_unlock(p, forks) && rc)
		pool_failed(p, rc, "drain");
	return all;
}

void
pool_serve(unsigned number)
{
	struct pool *p = &pools[number];
	struct calm calm = calm_begin();
	unsigned forks = pools_forks();
	bool grown = false, all;
	uint64_t asked;

	(void)pthread_mutex_lock(&p->serving);
	do {
		asked = kin_asked(number);
		if (kin_wants_all(number))
			pool_commit(p, 0);
		if (kin_end(number) > p->size || atomic_load(&p->longer))
			(void)pool_grow(p, UINT64_MAX);
		all = serve(p, grown, asked);
		if (atomic_load(&p->unread))
			pool_anew(p);
		grown = true;
	} while (!all);
	if (pools_forks() == forks)
		(void)pthread_mutex_unlock(&p->serving);
	else
		(void)pool_unlock(p, forks);
	calm_end(calm);
}

/* What is left over is for who opens it next. */
void
pool_serve_last(struct pool *p)
{
	uint64_t asked = kin_asked(number_of(p));
	int rc = 0;

	if (kin_wants_all(number_of(p)))
		rc = pool_commit_locked(p);
	if (pool_has_write())
		(void)posts_drain(p, 0, false, asked, &rc);
	if (!pool_has_write())
		return;
	/* It is opened once more. */
	if (atomic_exchange(&p->unread, false))
		(void)mark_set(p);
	if (rc && p->r)
		pool_failed(p, rc, "drain");
}

/* ---- the others ---- */

void
pool_post(struct pool *p, uint64_t off, size_t len, enum look look)
{
	unsigned how = look == LOOK_CHANGED ? KIN_HOLES : 0;
	int posted = 0;

	while (!kin_post(number_of(p), off, len, how | (posted == POST_TRIES ? KIN_ANY : 0))) {
		pool_settle(p);
		posted++;
	}
	atomic_store(&p->owing, true);
}

/* Somebody has to open it: this process. False: it can't. */
static bool
take_over(struct pool *p)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	if (is_sharing())
		return false;
	if (pool_due(p) && !pool_ready(p)) {
		(void)nanosleep(&pause, NULL);
		return true;
	}
	if (p->state != POOL_OPEN)
		return false;
	pool_serve(number_of(p));
	return true;
}

static void
settled(struct pool *p)
{
	atomic_store(&p->stuck, 0);
	if (p->state == POOL_OFF && atomic_exchange(&p->retry_ns, 0) != 0)
		report("%s: is replicated now", p->path);
}

/* It was waited for before, and is as it was. */
static bool
is_stuck(struct pool *p)
{
	uint64_t stuck = atomic_load(&p->stuck);

	return stuck && kin_may_serve(number_of(p), stuck);
}

void
pool_settle(struct pool *p)
{
	uint64_t since = now_ns();
	uint64_t asked;

	atomic_store(&p->owing, false);
	asked = kin_ask(number_of(p));
	for (bool on = !is_stuck(p); on;) {
		switch (kin_wait(number_of(p), asked, since)) {
		case KIN_SERVED:
			settled(p);
			return;
		case KIN_WAITS:
			break;
		case KIN_NONE:
			on = take_over(p);
			break;
		case KIN_STUCK:
			on = false;
			if (atomic_exchange(&p->stuck, asked) == 0)
				report("%s: the process that has its replicas open is stopped: NOT "
				       "REPLICATED until that goes on",
				       p->path);
			break;
		}
	}
}

void
pool_settle_all(struct pool *p)
{
	kin_all(number_of(p));
	pool_settle(p);
}

void
pool_leave(struct pool *p)
{
	if (atomic_load(&p->owing))
		pool_settle(p);
}

void
pool_give(struct pool *p, uint64_t off, size_t len)
{
	(void)kin_post(number_of(p), off, len, KIN_ANY | KIN_HOLES);
	(void)kin_ask(number_of(p));
}

void
pool_given_all(struct pool *p)
{
	uint64_t since = now_ns(), asked;

	kin_all(number_of(p));
	asked = kin_ask(number_of(p));
	while (kin_wait(number_of(p), asked, since) == KIN_WAITS)
		continue;
}
