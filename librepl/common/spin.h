/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spin - how long a waiter polls before it sleeps: SPIN_NS, or what busy-poll of
 * repl.conf(5) and repld.conf(5) says.
 *
 * Polling alone starves the other side where cores are few, sleeping alone
 * doubles the latency: so poll for a bounded time after the last event, giving
 * the core away now and then, and sleep after it. An idle waiter costs nothing.
 *
 * Where more threads poll than there are cores, one that keeps its core for long
 * keeps it from the one that it waits for. That is seen when giving it away takes long
 * and another thread ran, twice in turn since the kernel's own threads run now and then, and for a
 * while from then on it is given away at each poll. Threads that
 * compute take it for a whole slice of the scheduler's: they are not given it any
 * sooner than without.
 *
 * A device's sync takes longer than SPIN_NS, and to fall asleep and be woken as long once more
 * where an idle core is dear to wake. So who is kept from work by it polls SPIN_MORE times as long,
 * if the answer before came in that time.
 */
#ifndef COMMON_SPIN_H
#define COMMON_SPIN_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "clock.h"

#define SPIN_NS         50000U /* a few round trips of a fast network */
#define SPIN_US_MAX     1000U  /* of busy-poll */
#define SPIN_MORE       4U     /* times as long: see spin_answered() */
#define SPIN_YIELD_MASK 63U    /* give the core away every 64th poll, some 20 us */
#define SPIN_CLOCK_MASK 7U     /* and look at the clock every 8th: polls take up to some us */

#define SPIN_SHARED_NS    1500U   /* giving it away takes longer: another one has polled */
#define SPIN_COMPUTED_NS  200000U /* ... and as long as that: another one has computed */
#define SPIN_SHARED_HITS  2U      /* times in turn */
#define SPIN_SHARED_WAITS 256U

struct spin {
	uint64_t since_ns; /* of this wait's first poll; 0: none so far */
	unsigned polls;
	bool more;       /* the last answer came in SPIN_MORE times the limit */
	unsigned hits;   /* how often in turn another thread has had the core */
	unsigned shared; /* waits for which the core is given away at each poll */
	long switches;   /* of this thread, when last asked */
};

/* Something happened: poll for another while. */
static inline void
spin_reset(struct spin *s)
{
	s->since_ns = 0;
	s->polls = 0;
	s->shared -= s->shared > 0;
}

/*
 * Whether the core was another thread's since the last time that this was asked: an interrupt, or a
 * host that runs something else, takes its time as well, and giving the core away for those
 * would only make the polls longer.
 */
static inline bool
spin_switched(struct spin *s)
{
	struct rusage u;
	long before = s->switches;

	if (getrusage(RUSAGE_THREAD, &u))
		return true;
	s->switches = u.ru_nivcsw;
	return u.ru_nivcsw != before;
}

/* Give the core away, and learn who has it meanwhile. */
static inline void
spin_give_away(struct spin *s)
{
	uint64_t now = clock_now_ns(), away;

	(void)sched_yield();
	away = clock_now_ns() - now;
	s->hits = away >= SPIN_SHARED_NS && spin_switched(s) ? s->hits + 1 : 0;
	if (away >= SPIN_COMPUTED_NS)
		s->hits = s->shared = 0;
	else if (s->hits >= SPIN_SHARED_HITS)
		s->shared = SPIN_SHARED_WAITS;
}

/* Nothing happened: true to poll again, for up to limit_ns in all (0: not once), false to sleep. */
static inline bool
spin_again_for(struct spin *s, uint64_t limit_ns)
{
	uint64_t now;

	if (limit_ns == 0)
		return false;
	s->polls++;
	if (s->shared == 0 && s->since_ns != 0 && (s->polls & SPIN_CLOCK_MASK) != 0)
		return true;
	now = clock_now_ns();
	if (s->since_ns == 0)
		s->since_ns = now;
	if (now - s->since_ns >= limit_ns)
		return false;
	if (s->shared > 0 || (s->polls & SPIN_YIELD_MASK) == 0)
		spin_give_away(s);
	return true;
}

/* The same for who is kept from work until it is answered. */
static inline bool
spin_again_for_answer(struct spin *s, uint64_t limit_ns)
{
	return spin_again_for(s, s->more && s->shared == 0 ? SPIN_MORE * limit_ns : limit_ns);
}

/* The answer has come. */
static inline void
spin_answered(struct spin *s, uint64_t limit_ns)
{
	s->more = s->since_ns == 0 || clock_now_ns() - s->since_ns < SPIN_MORE * limit_ns;
	spin_reset(s);
}

static inline bool
spin_again(struct spin *s)
{
	return spin_again_for(s, SPIN_NS);
}

#endif
