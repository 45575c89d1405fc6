/* SPDX-License-Identifier: BSD-3-Clause */
/* What is made durable of a pool goes to its replicas: flushes and drains on this thread's lane. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api.h"
#include "filelock.h"
#include "pools_impl.h"

static _Atomic uint64_t threads; /* so far: a number that comes again would be no thread's */

/* A bit for each pool: what this thread has to drain, and to whom else it was posted. */
static __thread uint32_t flushed __attribute__((tls_model("initial-exec")));
static __thread uint32_t posted __attribute__((tls_model("initial-exec")));
/* ... and of what this thread was to flush some could not be read. */
static __thread uint32_t unreadable __attribute__((tls_model("initial-exec")));
static __thread uint64_t thread_number __attribute__((tls_model("initial-exec")));

unsigned
lane_of_thread(const struct pool *p)
{
	if (thread_number == 0)
		thread_number = 1 + atomic_fetch_add(&threads, 1);
	return (unsigned)((thread_number - 1) % p->lanes);
}

/*
 * True: once more. A lane here is one thread's at a time, so the library itself has it, for longer
 * than op-timeout, and it does so by its own deadlines. Given up, the bytes would be nowhere: the
 * replicas count as up to date, and the program has nobody to tell that they are not.
 */
static bool
pool_waits(const struct pool *p, int rc, const char *what)
{
	/* The latter is what a commit says of a lane that is in use. A handler's child has none. */
	if ((rc != REPL_E_BUSY && rc != REPL_E_TIMEOUT) || !p->r)
		return false;
	report("%s: %s: waiting: %s", p->path, what, api.repl_errormsg());
	return true;
}

static uint32_t
bit_of(const struct pool *p)
{
	return 1U << (p - pools);
}

static void
pool_unread(struct pool *p, uint64_t at)
{
	unreadable |= bit_of(p);
	atomic_store(&p->unread, true);
	if (!atomic_exchange(&p->told_unread, true))
		report("%s: byte %llu of it can't be read: its replicas are compared with it",
		       p->path, (unsigned long long)at);
}

/*
 * Another program may have cut the file since the bytes were flushed, or this one by a way that
 * nobody sees: librepl would look at them, which is the program's end.
 */
static bool
lane_is_there(struct pool *p, unsigned lane)
{
	uint64_t end = p->undrained_end[lane];

	if (end == 0 || view_has(p, end - 1, 1) == 1)
		return true;
	atomic_store(&p->gone, true);
	pool_unread(p, end - 1);
	return false;
}

static void
lane_drained(struct pool *p, unsigned lane)
{
	p->undrained[lane] = 0;
	p->undrained_end[lane] = 0;
}

/* Under the lane's lock, as the next one. */
int
lane_drain(struct pool *p, unsigned lane)
{
	int rc;

	if (!lane_is_there(p, lane))
		return 0;
	do
		rc = api.repl_drain(p->r, lane);
	while (pool_waits(p, rc, "drain"));
	lane_drained(p, lane);
	return rc;
}

int
lane_flush(struct pool *p, unsigned lane, uint64_t off, size_t len)
{
	int drained = 0, rc;

	if (p->undrained[lane] + len > LANE_BYTES)
		drained = lane_drain(p, lane);
	do
		rc = api.repl_flush(p->r, lane, off, len);
	while (pool_waits(p, rc, "flush"));
	p->undrained[lane] += len;
	if (off + len > p->undrained_end[lane])
		p->undrained_end[lane] = off + len;
	return drained ? drained : rc;
}

static void
pool_short(struct pool *p)
{
	if (!atomic_exchange(&p->told_short, true))
		report("%s: it was made shorter than %zu bytes; its replicas keep what was behind",
		       p->path, p->size);
}

/* What the file has not can't be read, and the program has not written it. */
static int
lane_flush_looked(struct pool *p, unsigned lane, uint64_t off, size_t len)
{
	size_t has = view_has(p, off, len);
	uint64_t end;

	if (has == len)
		return lane_flush(p, lane, off, len);
	/* Of one that has lost its name nobody can tell that another program made it shorter. */
	if (!view_ends(p, &end))
		end = view_ended(p);
	if (end <= off + has) {
		pool_short(p);
		return has ? lane_flush(p, lane, off, has) : 0;
	}
	if (end < off + len)
		pool_short(p);
	pool_unread(p, off + has);
	return 0;
}

/* fd: see view_holes(). What is behind the file's end has none. */
static int
lane_flush_data(struct pool *p, unsigned lane, int fd, uint64_t off, uint64_t end)
{
	int rc = 0;
	size_t n;

	for (size_t at = view_data(fd, off, end); !rc && at < end;
	     at = view_data(fd, at + n, end)) {
		n = view_data_end(fd, at, end) - at;
		rc = lane_flush_looked(p, lane, at, n);
	}
	return rc;
}

/*
 * On tmpfs a hole takes memory when it is looked at, and all of a sparse file's may be more than
 * there is. It holds nothing that the program has stored.
 */
int
lane_flush_there(struct pool *p, unsigned lane, uint64_t off, size_t len, enum look look)
{
	uint64_t ends = UINT64_MAX;
	int fd, rc;

	if (look == LOOK_NOT)
		return lane_flush(p, lane, off, len);
	fd = look == LOOK_SYNC && !view_is_stored(p, off, len) ? view_holes(p, &ends) : -1;
	if (fd < 0)
		return lane_flush_looked(p, lane, off, len);
	if (ends < off + len)
		pool_short(p);
	rc = lane_flush_data(p, lane, fd, off, off + len);
	filelock_close(fd);
	return rc;
}

void
thread_post(struct pool *p, uint64_t off, size_t len, enum look look)
{
	pool_post(p, off, len, look);
	posted |= bit_of(p);
	flushed |= bit_of(p);
}

/* LANE_BYTES at most. How many of them, the last ones, lie behind what is known of the pool. */
static size_t
pool_flush(struct pool *p, uint64_t off, size_t len, enum look look)
{
	unsigned forks = pools_forks(), lane;
	size_t within = len;
	bool others = false;
	int rc = 0;

	(void)pthread_rwlock_rdlock(&p->lock);
	if (p->state == POOL_OPEN) {
		lane = lane_of_thread(p);
		if (off >= p->size)
			within = 0;
		else if (len > p->size - off)
			within = p->size - off;
		if (within) {
			(void)pthread_mutex_lock(&p->lane_locks[lane]);
			rc = lane_flush_there(p, lane, off, within, look);
			if (pools_forks() != forks) {
				(void)pool_unlock(p, forks);
				return 0;
			}
			(void)pthread_mutex_unlock(&p->lane_locks[lane]);
		}
		flushed |= bit_of(p);
	} else {
		others = kin_is() && !kin_has_other((unsigned)(p - pools), p->dev, p->ino);
	}
	if (!pool_unlock(p, forks))
		return 0;
	/* Without the lock: it may wait, and open the pool. */
	if (others)
		thread_post(p, off, len, look);
	if (rc)
		pool_failed(p, rc, "flush");
	return len - within;
}

static size_t
parts_flush(struct pool *p, uint64_t off, size_t len, enum look look)
{
	size_t left = 0;

	for (size_t n; len > 0 && left == 0; off += n, len -= n) {
		n = len < LANE_BYTES ? len : LANE_BYTES;
		left = pool_flush(p, off, n, look);
	}
	return left + len;
}

/*
 * By this thread or another one. Where another process of the kin was faster to open it, that has
 * compared it when what is posted is served.
 */
static void
unread_anew(struct pool *p, uint64_t off, size_t len, enum look look)
{
	unreadable &= ~bit_of(p);
	pool_anew(p);
	if (p->state == POOL_CLOSED && kin_is())
		thread_post(p, off, len, look);
}

void
piece_flush(struct pool *p, uint64_t off, size_t len, enum look look)
{
	uint64_t end = off + len;
	size_t left;
	bool all;

	missed_flushed(p);
	pool_missed(p);
	if (pool_due(p) && !pool_elsewhere(p))
		(void)pool_ready(p);
	if (atomic_load_explicit(&p->longer, memory_order_relaxed))
		(void)pool_grow(p, UINT64_MAX);
	left = parts_flush(p, off, len, look);
	if (left) {
		all = pool_grow(p, end);
		left = parts_flush(p, end - left, left, look);
		/* Where the file ends nothing was written, but to the rest of its last page. */
		if (left && !(all && (look != LOOK_NOT || end <= pool_pages(p))))
			pool_behind(p, end - left, end);
	}
	if (unreadable & bit_of(p))
		unread_anew(p, off, len, look);
}

static void
pool_drain(struct pool *p)
{
	unsigned forks = pools_forks(), lane;
	int rc = 0;

	(void)pthread_rwlock_rdlock(&p->lock);
	if (p->state == POOL_OPEN) {
		lane = lane_of_thread(p);
		(void)pthread_mutex_lock(&p->lane_locks[lane]);
		rc = lane_drain(p, lane);
		if (pools_forks() != forks) {
			(void)pool_unlock(p, forks);
			return;
		}
		(void)pthread_mutex_unlock(&p->lane_locks[lane]);
		lost_look(p, rc != 0);
	}
	if (pool_unlock(p, forks) && rc)
		pool_failed(p, rc, "drain");
	/* Of whichever byte: it is to be waited for. */
	if (unreadable & bit_of(p))
		unread_anew(p, 0, 1, LOOK_SYNC);
}

int
pool_commit_locked(struct pool *p)
{
	int rc;

	for (unsigned i = 0; i < p->lanes && !p->gone; i++)
		(void)lane_is_there(p, i);
	if (p->gone)
		return 0;
	do
		rc = api.repl_commit(p->r, 0);
	while (pool_waits(p, rc, "commit"));
	for (unsigned i = 0; i < p->lanes; i++)
		lane_drained(p, i);
	return rc;
}

static bool
any_undrained(const struct pool *p)
{
	bool any = false;

	for (unsigned i = 0; i < p->lanes; i++)
		any |= p->undrained[i] > 0;
	return any;
}

void
pool_commit_last(struct pool *p)
{
	if (p->given_up && !any_undrained(p))
		return;
	p->given_up = pool_commit_locked(p) != 0;
	if (p->given_up && pool_has_write())
		report("%s: closing: %s", p->path, api.repl_errormsg());
}

void
pool_commit_hold(struct pool *p, uint64_t to, unsigned forks)
{
	int rc = 0;

	(void)pthread_rwlock_wrlock(&p->lock);
	if (p->state == POOL_OPEN && to < p->size)
		rc = pool_commit_locked(p);
	if (rc && pools_forks() == forks)
		pool_failed(p, rc, "commit");
}

void
pool_commit(struct pool *p, uint64_t to)
{
	unsigned forks = pools_forks();

	pool_commit_hold(p, to, forks);
	(void)pool_unlock(p, forks);
}

bool
thread_flushed(void)
{
	return flushed != 0;
}

void
thread_forget(void)
{
	flushed = 0;
	posted = 0;
	unreadable = 0;
}

void
thread_settle(void)
{
	uint32_t todo = posted;

	posted = 0;
	for (unsigned i = 0; i < pool_count; i++) {
		if (todo & 1U << i)
			pool_settle(&pools[i]);
	}
}

/*
 * What is durable in one pool may rely on another one, of which nothing is made durable yet: a pool
 * set's next part, that was made just now.
 */
static void
others_ready(void)
{
	for (unsigned i = 0; i < pool_count && pool_count > 1; i++) {
		struct pool *p = &pools[i];

		if (p->stored && p->state == POOL_CLOSED && p->view && !pool_elsewhere(p))
			pool_ready_mapped(p);
	}
}

void
thread_drain(void)
{
	uint32_t todo = flushed;

	others_ready();
	thread_settle();
	flushed = 0;
	for (unsigned i = 0; i < pool_count; i++) {
		if (todo & 1U << i)
			pool_drain(&pools[i]);
	}
	if (posted)
		thread_settle();
}
