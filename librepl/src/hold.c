/* SPDX-License-Identifier: BSD-3-Clause */
#include "hold.h"

#include <time.h>

#include "clock.h"
#include "pending.h"
#include "repl_lanes.h"

#define HOLD_PAUSE_NS 200000L

static uint64_t
op_timeout_ns(const struct repl *r)
{
	return (uint64_t)r->cfg->op_timeout_ms * NS_PER_MS;
}

/* Between two looks at what is waited for: whether to go on, and a sign of life for the target. */
static int
hold_breathe(const struct hold_wait *w, struct err *e)
{
	int status = atomic_load(w->flag);

	if (status)
		return err_set(e, status, "given up waiting for calls to end");
	return breath_take(&w->breath, e);
}

/* 0 when the lock is taken. Not by clocklock: see remote_lock_by(). */
static int
hold_lock(struct repl *r, const struct hold_wait *w, struct err *e)
{
	const struct timespec pause = {.tv_nsec = HOLD_PAUSE_NS};
	uint64_t breath_ns = 0, now_ns;
	int rc = 0;

	while (!rc && pthread_mutex_trylock(&r->grow_lock)) {
		now_ns = clock_now_ns();
		if (now_ns >= w->deadline_ns)
			return err_set(e, REPL_E_TIMEOUT, "%s has not come to an end",
				       atomic_load(&r->holder) ? "the return of another replica"
							       : "repl_grow()");
		(void)nanosleep(&pause, NULL);
		if (now_ns < breath_ns)
			continue;
		breath_ns = now_ns + BREATH_NS;
		rc = hold_breathe(w, e);
	}
	return rc;
}

static int
hold_lane(struct repl *r, unsigned lane, const struct hold_wait *w, struct err *e)
{
	int rc = 0;

	while (!rc) {
		uint64_t look_ns = clock_now_ns() + BREATH_NS;

		if (lane_borrow(r, lane, look_ns < w->deadline_ns ? look_ns : w->deadline_ns))
			return 0;
		rc = hold_breathe(w, e);
		if (!rc && clock_now_ns() >= w->deadline_ns)
			rc = err_set(e, REPL_E_TIMEOUT, "a call on lane %u took too long", lane);
	}
	return rc;
}

int
hold_take(struct repl *r, unsigned replica, const struct hold_wait *wait, struct err *e)
{
	uint64_t most_ns = clock_now_ns() + op_timeout_ns(r) / 4 * 3;
	struct hold_wait w = *wait;
	unsigned lane = 0;
	int rc;

	if (w.deadline_ns > most_ns)
		w.deadline_ns = most_ns;
	rc = hold_lock(r, &w, e);
	if (rc)
		return rc;
	/* Whoever breathes may wait for his target. */
	atomic_store(&r->hurry_ns, w.deadline_ns);
	atomic_store(&r->holder, w.flag);
	/* All at once: else the waits for calls on one lane after the other would add up. */
	for (unsigned i = 0; i < r->lane_count; i++)
		lane_want(r, i, true);
	while (!rc && lane < r->lane_count) {
		rc = hold_lane(r, lane, &w, e);
		lane += rc == 0;
	}
	for (unsigned i = 0; i < r->lane_count; i++)
		lane_want(r, i, false);
	if (rc) {
		atomic_store(&r->holder, NULL);
		while (lane > 0)
			lane_leave(r, --lane);
		pthread_mutex_unlock(&r->grow_lock);
		return rc;
	}
	atomic_store(&r->hurry_ns, clock_now_ns() + op_timeout_ns(r) / 4);
	for (unsigned i = 0; i < r->lane_count; i++)
		pending_mark(r, i, replica);
	return 0;
}

void
hold_release(struct repl *r)
{
	atomic_store(&r->holder, NULL);
	for (unsigned i = r->lane_count; i > 0; i--)
		lane_leave(r, i - 1);
	pthread_mutex_unlock(&r->grow_lock);
}

void
hold_waited(struct repl *r, uint64_t waited_ns)
{
	_Atomic int *flag = atomic_load(&r->holder);
	uint64_t all_ns = op_timeout_ns(r);
	int calm = 0;

	if (!flag || waited_ns < all_ns / 2)
		return;
	if (waited_ns >= all_ns / 8 * 7 || clock_now_ns() >= atomic_load(&r->hurry_ns))
		(void)atomic_compare_exchange_strong(flag, &calm, REPL_E_TIMEOUT);
}
