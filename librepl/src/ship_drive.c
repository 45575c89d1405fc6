/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of ship.h that wait. One of them drives: it owns the lanes that it waits for,
 * and polls or sleeps on all of them at once; the others sleep until it tells.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "ship_impl.h"
#include "spin.h"

#define LOOK_AGAIN (100 * NS_PER_MS) /* a lag's age comes without an event */

void
ship_queued(struct ship *s)
{
	const uint64_t one = 1;

	if (!s->driver_sleeps)
		return;
	s->driver_sleeps = false;
	(void)!write(s->driver_fd, &one, sizeof(one));
}

void
ship_changed(struct ship *s)
{
	s->changes++;
	(void)pthread_cond_broadcast(&s->moved);
	ship_queued(s);
}

/* With the lock. */
static void
driver_claim(struct ship *s, uint32_t replicas)
{
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		if (replicas & ~s->driver_lanes & 1U << i && shipper_claim(&s->shipper[i]))
			s->driver_lanes |= 1U << i;
	}
}

/* With the lock. */
static void
driver_release(struct ship *s, uint32_t lanes)
{
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		if (lanes & s->driver_lanes & 1U << i)
			shipper_release(&s->shipper[i]);
	}
	s->driver_lanes &= ~lanes;
}

/*
 * Lanes that are sent nothing before they have answered: there are enough others, which have all
 * and were prompt so far. What gathers meanwhile goes at once; else who is a little late with each
 * drain has as many messages to take as the fast ones. With the lock.
 */
static uint32_t
driver_spares(const struct ship *s, uint64_t now_ns)
{
	uint32_t waiting = 0, current = 0, spared = 0;

	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		const struct shipview *v = &s->q.view[i];
		uint32_t bit = 1U << i;

		if (!(s->policy.sync & bit) || !v->open || atomic_load(&s->r->replicas[i].behind))
			continue;
		if (v->unacked == v->unsent)
			current |= bit;
		else if (shipqueue_lag_ns(&s->q, i, now_ns) < SHIP_TICK_NS)
			waiting |= bit;
		else
			spared |= bit;
	}
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		if (!(waiting & 1U << i))
			continue;
		if ((unsigned)__builtin_popcount(current) < s->policy.needed ||
		    !s->q.view[i].unsent)
			current |= 1U << i;
		else
			spared |= 1U << i;
	}
	return (unsigned)__builtin_popcount(current) < s->policy.needed ? 0 : spared;
}

/* A turn of each lane that is owned; *done: those that have nothing to wait for. */
static bool
driver_turn(struct ship *s, uint32_t spared, uint32_t *done)
{
	bool moved = false, more;

	*done = 0;
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		if (!(s->driver_lanes & 1U << i))
			continue;
		moved |= shipper_turn(&s->shipper[i], spared & 1U << i, &more);
		*done |= more ? 0 : 1U << i;
	}
	return moved;
}

/* With the lock: nothing was queued behind what the lanes have sent. */
static bool
driver_may_sleep(const struct ship *s)
{
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		const struct shipper *p = &s->shipper[i];

		if (s->driver_lanes & 1U << i && p->at_end && shipper_may_send(p))
			return false;
	}
	return true;
}

/*
 * Those to sleep on. Without the rest there are too few answers for who waits, and when one of
 * these has come those are likely to be there: each would have cost a wake-up.
 */
static unsigned
driver_looks_at(const struct ship *s, unsigned wanted, struct fab_lane **fabs)
{
	unsigned spare = wanted ? wanted - 1 : 0, n = 0;

	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		const struct shipper *p = &s->shipper[i];
		const struct lane *l;

		if (!(s->driver_lanes & 1U << i))
			continue;
		l = remote_lane(p->remote, 0);
		if (spare && p->at_end && lane_only_answers(l))
			spare--;
		else
			fabs[n++] = l->fab;
	}
	return n;
}

static void
driver_sleep(struct ship *s, unsigned wanted, uint64_t deadline_ns)
{
	struct fab_lane *fabs[REPL_TARGETS_MAX];
	unsigned n;
	uint64_t kicks;

	if (!ship_lock(s))
		return;
	s->driver_sleeps = driver_may_sleep(s);
	if (!s->driver_sleeps) {
		ship_unlock(s);
		return;
	}
	n = driver_looks_at(s, wanted, fabs);
	ship_unlock(s);
	fab_lanes_wait(fabs, n, s->driver_fd, deadline_ns);
	if (!ship_lock(s))
		return;
	/* Who has kicked has taken the flag down. */
	if (!s->driver_sleeps)
		(void)!read(s->driver_fd, &kicks, sizeof(kicks));
	s->driver_sleeps = false;
	ship_unlock(s);
}

/* Until something has changed or the deadline. With the lock, which is given up meanwhile. */
static void
drive(struct ship *s, const struct ship_want *want, uint64_t deadline_ns)
{
	/* Whether cores are scarce is known from earlier calls. */
	static _Thread_local struct spin spin;
	uint64_t busy_poll_ns = (uint64_t)s->r->cfg->busy_poll_us * 1000;
	uint64_t seen = s->changes;

	spin_reset(&spin);
	for (;;) {
		uint32_t done, spared;
		bool moved;

		driver_claim(s, want->replicas);
		spared = driver_spares(s, clock_now_ns());
		ship_unlock(s);
		moved = driver_turn(s, spared, &done);
		/* One that is done may be lost: nobody polls it any more, as a sleep would. */
		if (moved)
			spin_reset(&spin);
		else if (!done && !spin_again_for(&spin, busy_poll_ns))
			driver_sleep(s, want->count, deadline_ns);
		if (!ship_lock(s))
			return;
		driver_release(s, done);
		if (s->changes != seen || done || (!moved && clock_now_ns() >= deadline_ns))
			return;
	}
}

static uint64_t
look_again(uint64_t deadline_ns)
{
	uint64_t at = clock_now_ns() + LOOK_AGAIN;

	return at < deadline_ns ? at : deadline_ns;
}

void
ship_sleep(struct ship *s, uint64_t deadline_ns)
{
	uint64_t at = look_again(deadline_ns);
	const struct timespec ts = {.tv_sec = (time_t)(at / NS_PER_S),
				    .tv_nsec = (long)(at % NS_PER_S)};

	(void)pthread_cond_timedwait(&s->moved, &s->lock, &ts);
}

void
ship_wait(struct ship *s, bool *drives, const struct ship_want *want, uint64_t deadline_ns)
{
	if (!*drives && s->driven) {
		ship_sleep(s, deadline_ns);
		return;
	}
	*drives = s->driven = true;
	drive(s, want, look_again(deadline_ns));
}

void
ship_wait_end(struct ship *s, bool *drives)
{
	if (!*drives)
		return;
	driver_release(s, s->driver_lanes);
	*drives = s->driven = false;
	/* One of the others goes on. */
	(void)pthread_cond_broadcast(&s->moved);
}
