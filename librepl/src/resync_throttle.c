/* SPDX-License-Identifier: BSD-3-Clause */
#include "resync_throttle.h"

#include <string.h>

#define SECOND_NS    1000000000ULL
#define BURST_NS     20000000ULL /* what was not used is made up for, so far */
#define REMEASURE_NS (10 * SECOND_NS)
#define RATE_MOST    (1ULL << 40)

/*
 * Of the doubling that is allowed a part is left alone: latencies are medians
 * of what varies. Half of the distance to the goal is gone in one interval, so
 * that a latency that answers late or by more than in proportion does not make
 * the rate swing.
 */
#define GOAL_PERCENT 170U
#define GAIN         0.5
#define STEP_MIN     0.5
#define STEP_MAX     1.25

void
throttle_init(struct throttle *t, uint64_t fixed, uint64_t foreground_ns, uint64_t now_ns)
{
	memset(t, 0, sizeof(*t));
	t->fixed = fixed;
	t->rate = fixed;
	t->alone_ns = foreground_ns;
	t->alone_at_ns = now_ns;
	t->interval_ns = now_ns;
	t->next_ns = now_ns;
}

bool
throttle_due(const struct throttle *t, uint64_t now_ns)
{
	return now_ns - t->interval_ns >= THROTTLE_INTERVAL_NS;
}

/* The rate for the next interval, by the latency that the last one's rate made. */
static uint64_t
rate_next(const struct throttle *t, uint64_t foreground_ns, uint64_t moved_rate)
{
	double goal = (double)t->alone_ns * GOAL_PERCENT / 100.0;
	double step = 1.0 + GAIN * (goal - (double)foreground_ns) / goal;
	double rate;

	step = step < STEP_MIN ? STEP_MIN : step > STEP_MAX ? STEP_MAX : step;
	if (t->rate == 0 && step >= 1.0)
		return 0;
	/* What is allowed and not used says nothing about what it would do. */
	rate = (double)t->rate;
	if (t->rate == 0 || rate > 2.0 * (double)moved_rate)
		rate = step < 1.0 ? (double)moved_rate : 2.0 * (double)moved_rate;
	rate *= step;
	if (rate < (double)THROTTLE_RATE_MIN)
		return THROTTLE_RATE_MIN;
	return rate > (double)RATE_MOST ? 0 : (uint64_t)rate;
}

static void
interval_begin(struct throttle *t, uint64_t now_ns)
{
	t->interval_ns = now_ns;
	t->bytes = 0;
	t->next_ns = now_ns;
}

void
throttle_interval(struct throttle *t, uint64_t foreground_ns, uint64_t now_ns)
{
	uint64_t lasted_ns = now_ns > t->interval_ns ? now_ns - t->interval_ns : 1;
	uint64_t moved_rate = (uint64_t)((double)t->bytes * (double)SECOND_NS / (double)lasted_ns);

	if (t->fixed) {
		t->interval_ns = now_ns;
		t->bytes = 0;
		return;
	}
	interval_begin(t, now_ns);
	if (t->resting && foreground_ns) {
		t->alone_ns = foreground_ns;
		t->alone_at_ns = now_ns;
		t->resting = false;
		return;
	}
	t->resting = false;
	if (foreground_ns == 0) {
		t->rate = 0;
		return;
	}
	if (moved_rate && t->alone_ns)
		t->rate = rate_next(t, foreground_ns, moved_rate);
	t->resting = t->alone_ns == 0 || now_ns - t->alone_at_ns >= REMEASURE_NS;
}

uint64_t
throttle_wait_ns(const struct throttle *t, uint64_t now_ns)
{
	uint64_t until_ns = t->resting ? t->interval_ns + THROTTLE_INTERVAL_NS : t->next_ns;

	if (t->rate == 0 && !t->resting)
		return 0;
	return until_ns > now_ns ? until_ns - now_ns : 0;
}

void
throttle_moved(struct throttle *t, uint64_t bytes, uint64_t now_ns)
{
	t->bytes += bytes;
	if (t->rate == 0)
		return;
	if (t->next_ns + BURST_NS < now_ns)
		t->next_ns = now_ns - BURST_NS;
	t->next_ns += (uint64_t)((double)bytes * (double)SECOND_NS / (double)t->rate);
}
