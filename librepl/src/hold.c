/* SPDX-License-Identifier: BSD-3-Clause */
#include "hold.h"

#include <time.h>

#include "clock.h"
#include "pending.h"
#include "repl_lanes.h"

#define HOLD_LOOK_MS  50U
#define HOLD_PAUSE_NS 200000L

static uint64_t
op_timeout_ns(const struct repl *r)
{
	return (uint64_t)r->cfg->op_timeout_ms * NS_PER_MS;
}

/* 0 when the lock is taken. Not by clocklock: see remote_lock_by(). */
static int
hold_lock(struct repl *r, uint64_t deadline_ns, const _Atomic int *flag, struct err *e)
{
	const struct timespec pause = {.tv_nsec = HOLD_PAUSE_NS};

	while (pthread_mutex_trylock(&r->grow_lock)) {
		if (atomic_load(flag))
			return err_set(e, atomic_load(flag), "given up waiting for repl_grow()");
		if (clock_now_ns() >= deadline_ns)
			return err_set(e, REPL_E_TIMEOUT, "repl_grow() has not come to an end");
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

static int
hold_lane(struct repl *r, unsigned lane, uint64_t deadline_ns, const _Atomic int *flag,
	  struct err *e)
{
	for (;;) {
		uint64_t look_ns = clock_deadline(HOLD_LOOK_MS);

		if (lane_borrow(r, lane, look_ns < deadline_ns ? look_ns : deadline_ns))
			return 0;
		if (atomic_load(flag))
			return err_set(e, atomic_load(flag), "given up waiting for lane %u", lane);
		if (clock_now_ns() >= deadline_ns)
			return err_set(e, REPL_E_TIMEOUT, "a call on lane %u took too long", lane);
	}
}

int
hold_take(struct repl *r, unsigned replica, uint64_t deadline_ns, _Atomic int *flag, struct err *e)
{
	uint64_t begin_ns = clock_now_ns(), most_ns = op_timeout_ns(r) / 4 * 3;
	unsigned lane = 0;
	int rc;

	if (deadline_ns > begin_ns + most_ns)
		deadline_ns = begin_ns + most_ns;
	rc = hold_lock(r, deadline_ns, flag, e);
	if (rc)
		return rc;
	atomic_store(&r->held_ns, 0);
	atomic_store(&r->holder, flag);
	/* All at once: else the waits for calls on one lane after the other would add up. */
	for (unsigned i = 0; i < r->lane_count; i++)
		lane_want(r, i, true);
	while (!rc && lane < r->lane_count) {
		rc = hold_lane(r, lane, deadline_ns, flag, e);
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
	atomic_store(&r->held_ns, clock_now_ns());
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
	uint64_t held_ns = atomic_load(&r->held_ns), all_ns = op_timeout_ns(r);
	int calm = 0;

	if (!flag || waited_ns < all_ns / 2)
		return;
	if (waited_ns >= all_ns / 8 * 7 || (held_ns && clock_now_ns() >= held_ns + all_ns / 4))
		(void)atomic_compare_exchange_strong(flag, &calm, REPL_E_TIMEOUT);
}
