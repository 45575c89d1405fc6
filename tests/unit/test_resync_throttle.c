/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A resync at most doubles the application's drain latency, uses what it may,
 * settles without swinging, and goes at full speed beside an idle application.
 */
#include "unit.h"

#include <stdlib.h>

#include "../../librepl/src/resync_throttle.c"

#define MIB  (1ULL << 20)
#define LINK (1000 * MIB) /* bytes a second that the link carries */

/* An application beside a resync on one link: what a drain takes at a rate. */
struct world {
	uint64_t alone_ns; /* 0: idle */
	int shape;         /* 0 linear, 1 a queue, 2 a knee */
	double noise;      /* part of the latency */
	uint64_t seed;
	uint64_t now_ns;
	uint64_t chunk;
	uint64_t bytes;
};

static double
noise(struct world *w)
{
	w->seed = w->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return 1.0 + w->noise * ((double)(w->seed >> 33) / (double)(1ULL << 30) - 1.0);
}

static uint64_t
latency(struct world *w, double rate)
{
	double used = rate / (double)LINK, factor;

	if (used > 0.99)
		used = 0.99;
	if (w->shape == 0)
		factor = 1.0 + 5.0 * used;
	else if (w->shape == 1)
		factor = 1.0 / (1.0 - used);
	else
		factor = used < 0.5 ? 1.0 : 1.0 + (used - 0.5) * 20.0;
	return (uint64_t)((double)w->alone_ns * factor * noise(w));
}

/* What could be used, if one knew: where the latency has doubled. */
static double
best_rate(const struct world *w)
{
	const double used[] = {0.2, 0.5, 0.55};

	return used[w->shape] * (double)LINK;
}

/* One interval as resync.c goes through it; its rate. */
static double
interval(struct world *w, struct throttle *t, uint64_t *seen_ns)
{
	uint64_t begin_ns = w->now_ns, bytes = 0;
	double rate;

	while (!throttle_due(t, w->now_ns)) {
		uint64_t wait_ns = throttle_wait_ns(t, w->now_ns);

		if (wait_ns) {
			w->now_ns += wait_ns < 20000000 ? wait_ns : 20000000;
			continue;
		}
		throttle_moved(t, w->chunk, w->now_ns);
		bytes += w->chunk;
		w->now_ns += w->chunk * 1000000000ULL / LINK;
	}
	rate = (double)bytes * 1e9 / (double)(w->now_ns - begin_ns);
	*seen_ns = w->alone_ns ? latency(w, rate) : 0;
	throttle_interval(t, *seen_ns, w->now_ns);
	w->bytes += bytes;
	return rate;
}

static void
settles(struct world *w, bool known)
{
	double sum = 0, square = 0, mean, seen_sum = 0, swing;
	struct throttle t;
	unsigned count = 0;

	throttle_init(&t, 0, known ? w->alone_ns : 0, w->now_ns);
	for (unsigned i = 0; i < 400; i++) {
		bool rested = t.resting;
		uint64_t seen_ns;
		double rate = interval(w, &t, &seen_ns);

		/* Three seconds to find it. */
		if (i < 30 || rested)
			continue;
		sum += rate;
		square += rate * rate;
		seen_sum += (double)seen_ns;
		count++;
	}
	mean = sum / count;
	swing = (square / count - mean * mean) / (mean * mean);
	if (seen_sum / count > 2.0 * (double)w->alone_ns || mean < 0.6 * best_rate(w) ||
	    swing > 0.15 * 0.15)
		fail_msg("shape %d noise %.2f: latency x %.2f, rate %.2f of the best, swing^2 %.4f",
			 w->shape, w->noise, seen_sum / count / (double)w->alone_ns,
			 mean / best_rate(w), swing);
}

static void
at_most_doubles_and_settles(void **state)
{
	(void)state;
	for (int shape = 0; shape < 3; shape++) {
		for (unsigned i = 0; i < 3; i++) {
			struct world w = {.alone_ns = 20000,
					  .shape = shape,
					  .noise = 0.05 * i,
					  .seed = 7 + i,
					  .now_ns = 1,
					  .chunk = 256 << 10};

			settles(&w, true);
			w.alone_ns = 900000;
			settles(&w, false);
		}
	}
}

/* The latency alone rises and falls for reasons of its own: the goal follows. */
static void
follows_the_application(void **state)
{
	struct world w = {.alone_ns = 20000, .shape = 1, .now_ns = 1, .chunk = 256 << 10};
	struct throttle t;
	uint64_t seen_ns;
	double rate = 0;

	(void)state;
	throttle_init(&t, 0, w.alone_ns, w.now_ns);
	for (unsigned i = 0; i < 50; i++)
		(void)interval(&w, &t, &seen_ns);
	/* Three times as long by itself: not taken for the resync's doing for ever. */
	w.alone_ns = 60000;
	for (unsigned i = 0; i < 200; i++)
		rate = interval(&w, &t, &seen_ns);
	assert_true(rate > 0.5 * best_rate(&w));
	w.alone_ns = 10000;
	for (unsigned i = 0; i < 200; i++)
		rate = interval(&w, &t, &seen_ns);
	assert_true(seen_ns <= 2 * w.alone_ns);
	assert_true(rate > 0.5 * best_rate(&w));
}

static void
full_speed_when_idle(void **state)
{
	struct world w = {.now_ns = 1, .chunk = 256 << 10, .shape = 1};
	struct throttle t;
	uint64_t seen_ns;

	(void)state;
	throttle_init(&t, 0, 20000, w.now_ns);
	for (unsigned i = 0; i < 20; i++)
		assert_true(interval(&w, &t, &seen_ns) > 0.95 * (double)LINK);
	/* Busy for a while, and idle again. */
	w.alone_ns = 20000;
	for (unsigned i = 0; i < 40; i++)
		(void)interval(&w, &t, &seen_ns);
	assert_true(seen_ns <= 2 * w.alone_ns);
	w.alone_ns = 0;
	(void)interval(&w, &t, &seen_ns);
	assert_true(interval(&w, &t, &seen_ns) > 0.95 * (double)LINK);
}

static void
keeps_a_given_rate(void **state)
{
	struct world w = {.now_ns = 1, .chunk = 256 << 10, .alone_ns = 20000};
	struct throttle t;
	uint64_t seen_ns;
	double rate;

	(void)state;
	throttle_init(&t, 50 * MIB, 0, w.now_ns);
	for (unsigned i = 0; i < 100; i++)
		(void)interval(&w, &t, &seen_ns);
	rate = (double)w.bytes * 1e9 / (double)w.now_ns;
	assert_true(rate > 47.0 * MIB && rate < 53.0 * MIB);
}

/* However bad it is: it moves, so that it ends. */
static void
never_stops(void **state)
{
	struct world w = {.alone_ns = 20000, .now_ns = 1, .chunk = 256 << 10, .noise = 0};
	struct throttle t;
	uint64_t seen_ns;

	(void)state;
	throttle_init(&t, 0, 10, w.now_ns); /* told that it was so fast */
	for (unsigned i = 0; i < 50; i++)
		(void)interval(&w, &t, &seen_ns);
	assert_true(t.rate >= THROTTLE_RATE_MIN);
	w.bytes = 0;
	for (unsigned i = 0; i < 20; i++)
		(void)interval(&w, &t, &seen_ns);
	assert_true(w.bytes >= THROTTLE_RATE_MIN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_most_doubles_and_settles),
		cmocka_unit_test(follows_the_application),
		cmocka_unit_test(full_speed_when_idle),
		cmocka_unit_test(keeps_a_given_rate),
		cmocka_unit_test(never_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
