/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spin - how long a waiter polls before it sleeps.
 *
 * Polling alone starves the other side where cores are few, sleeping alone
 * doubles the latency: so poll for a bounded time after the last event, giving
 * the core away now and then, and sleep after it. An idle waiter costs nothing.
 */
#ifndef COMMON_SPIN_H
#define COMMON_SPIN_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define SPIN_NS         50000U /* a few round trips of a fast network */
#define SPIN_YIELD_MASK 63U    /* give the core away every 64th poll, some 20 us */

struct spin {
	uint64_t until_ns;
	unsigned polls;
};

/* Something happened: poll for another while. */
static inline void
spin_reset(struct spin *s)
{
	s->until_ns = 0;
	s->polls = 0;
}

/* Nothing happened: true to poll again, for up to limit_ns in all, false to sleep. */
static inline bool
spin_again_for(struct spin *s, uint64_t limit_ns)
{
	uint64_t now;

	if ((++s->polls & SPIN_YIELD_MASK) != 0)
		return true;
	now = clock_now_ns();
	if (s->until_ns == 0)
		s->until_ns = now + limit_ns;
	if (now >= s->until_ns)
		return false;
	(void)sched_yield();
	return true;
}

static inline bool
spin_again(struct spin *s)
{
	return spin_again_for(s, SPIN_NS);
}

#endif
