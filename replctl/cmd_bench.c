/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replctl bench TARGET - what a persist costs there, beside what bare TCP
 * costs over the same way at the same time.
 */
#include <stdio.h>
#include <unistd.h>

#include "bench.h"
#include "clock.h"
#include "commands.h"
#include "conffile.h"
#include "interrupt.h"

#define POOL_DEFAULT    (64U << 20)
#define POOL_MIN        (4U << 20)
#define POOL_MAX        (4ULL << 30)
#define ROUNDS          7
#define ROUNDS_QUICK    3
#define SECONDS_DEFAULT 45
#define SECONDS_QUICK   5
#define SECONDS_MAX     50
#define SMALL           64U

static const unsigned sizes[] = {8, 64, 1024, 4096, 16384, 65536, 262144, 1048576};
static const unsigned sizes_quick[] = {64, 4096, 65536, 1048576};

static void
add(struct bench *b, enum bench_group group, enum bench_kind kind, unsigned size, unsigned count,
    enum plan_method method)
{
	if (b->series_count == BENCH_SERIES_MAX)
		return;
	b->series[b->series_count++] = (struct bench_series){
		.kind = kind, .group = group, .size = size, .count = count, .method = method};
}

/* The bare round trip, then every method that is correct there. */
static void
add_size(struct bench *b, unsigned size)
{
	const char *reason;

	add(b, BENCH_G_SIZES, BENCH_RAW_ECHO, size, 1, BENCH_CHOSEN);
	for (enum plan_method m = 0; m < PLAN_METHOD_COUNT; m++) {
		if (plan_allowed(remote_profile(b->c->remote), m, PLAN_SINGLETON, &reason) &&
		    plan_can(&b->limits, m))
			add(b, BENCH_G_SIZES, BENCH_PERSIST, size, 1, m);
	}
}

static void
add_all(struct bench *b)
{
	unsigned count = b->quick ? sizeof(sizes_quick) / sizeof(sizes_quick[0])
				  : sizeof(sizes) / sizeof(sizes[0]);

	for (unsigned i = 0; i < count; i++)
		add_size(b, b->quick ? sizes_quick[i] : sizes[i]);
	add(b, BENCH_G_SHAPES, BENCH_RAW_ECHO, SMALL, 1, BENCH_CHOSEN);
	add(b, BENCH_G_SHAPES, BENCH_DRAIN, SMALL, 1, BENCH_CHOSEN);
	add(b, BENCH_G_SHAPES, BENCH_DRAIN, SMALL, BENCH_SPREAD, BENCH_CHOSEN);
	add(b, BENCH_G_SHAPES, BENCH_NEAR, SMALL, BENCH_SPREAD, BENCH_CHOSEN);
	add(b, BENCH_G_SHAPES, BENCH_PAIR, SMALL, 1, BENCH_CHOSEN);
	add(b, BENCH_G_SHAPES, BENCH_ATOMIC8, 8, 1, BENCH_CHOSEN);
	for (unsigned n = 1; n <= b->lanes && n <= BENCH_LANES_MAX; n *= 2)
		add(b, BENCH_G_LANES, BENCH_LANES, SMALL, n, BENCH_CHOSEN);
	add(b, BENCH_G_OUT, BENCH_RAW_OUT, 0, 1, BENCH_CHOSEN);
	add(b, BENCH_G_OUT, BENCH_WRITE, 0, 1, BENCH_CHOSEN);
	add(b, BENCH_G_IN, BENCH_RAW_IN, 0, 1, BENCH_CHOSEN);
	add(b, BENCH_G_IN, BENCH_READ, 0, 1, BENCH_CHOSEN);
}

/* Series that are reported against each other: of one group, and there of one size. */
static unsigned
turn_end(const struct bench *b, unsigned first)
{
	const struct bench_series *f = &b->series[first];
	unsigned i = first + 1;

	while (i < b->series_count && b->series[i].group == f->group &&
	       (f->group != BENCH_G_SIZES || b->series[i].size == f->size))
		i++;
	return i;
}

static void
tell_progress(const struct bench *b, unsigned done)
{
	if (isatty(STDERR_FILENO))
		(void)fprintf(stderr, "\r%u of %u measured%s", done, b->series_count,
			      done == b->series_count ? "\r\033[K" : "");
}

/* Round 0 warms up and gives the first estimates. */
static int
run_turn(struct bench *b, unsigned first, unsigned end)
{
	int rc = 0;

	for (unsigned round = 0; !rc && round <= b->rounds; round++) {
		for (unsigned i = first; !rc && i < end; i++)
			rc = bench_measure(b, &b->series[i], round > 0);
	}
	return rc;
}

static int
run_all(struct bench *b)
{
	struct bench_series touch = {.kind = BENCH_WRITE, .method = BENCH_CHOSEN};
	unsigned first = 0;
	int rc;

	b->slice_ns = b->seconds * NS_PER_S / (b->rounds * b->series_count);
	/* Memory that nobody has touched is slow, on both sides. */
	rc = bench_measure(b, &touch, false);
	while (!rc && first < b->series_count) {
		unsigned end = turn_end(b, first);

		rc = run_turn(b, first, end);
		first = end;
		tell_progress(b, first);
	}
	return rc;
}

static int
parse_options(struct bench *b)
{
	const struct ctl_options *o = &b->c->options;
	struct err *e = &b->c->err;

	b->quick = o->quick;
	b->rounds = o->quick ? ROUNDS_QUICK : ROUNDS;
	b->seconds = o->quick ? SECONDS_QUICK : SECONDS_DEFAULT;
	b->pool_size = POOL_DEFAULT;
	if (o->seconds && (parse_uint(o->seconds, SECONDS_MAX, &b->seconds) || b->seconds == 0))
		return err_set(e, REPL_E_INVAL, "--seconds '%s' is not 1 to %d", o->seconds,
			       SECONDS_MAX);
	if (o->size && (parse_size(o->size, &b->pool_size) || b->pool_size % 4096 ||
			b->pool_size < POOL_MIN || b->pool_size > POOL_MAX))
		return err_set(e, REPL_E_INVAL,
			       "--size '%s' is not a multiple of 4096 from 4M to 4G", o->size);
	return 0;
}

int
cmd_bench(struct ctl *c, char **args)
{
	static struct bench bench; /* its series are too large for a stack */
	struct bench *b = &bench;
	int rc;

	b->c = c;
	rc = parse_options(b);
	if (!rc)
		rc = ctl_target(c, args[0], CTL_HOST);
	if (rc)
		return rc;
	interrupt_catch();
	rc = bench_open(b);
	if (!rc) {
		add_all(b);
		rc = run_all(b);
	}
	if (!rc)
		bench_report(b);
	bench_close(b);
	return c->err.code;
}
