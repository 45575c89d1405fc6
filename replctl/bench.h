/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench - what the parts of replctl bench share: the temporary pool with its
 * lanes and the bare TCP connection beside them (bench_pool.c), the things
 * that are measured (bench_work.c), and their report (bench_report.c).
 *
 * A series is one thing that is measured once a round. Series that are
 * compared with each other are of one group and take turns, so that what
 * disturbs the machines disturbs them alike.
 */
#ifndef REPLCTL_BENCH_H
#define REPLCTL_BENCH_H

#include "bench_raw.h"
#include "bench_stat.h"
#include "ctl.h"
#include "scratch.h"

#define BENCH_LANES_MAX  8
#define BENCH_SERIES_MAX 128
#define BENCH_SPREAD     16U /* ranges of the drain that is compared with a drain of one */

#define BENCH_CHOSEN PLAN_METHOD_COUNT /* the method is the library's choice */

enum bench_kind {
	BENCH_RAW_ECHO, /* bare TCP, size bytes there and back */
	BENCH_PERSIST,  /* one range of size bytes */
	BENCH_DRAIN,    /* count ranges of size bytes, far apart, and one drain */
	BENCH_NEAR,     /* the same, 256 bytes apart */
	BENCH_PAIR,     /* two ranges of size bytes, one durable before the other */
	BENCH_ATOMIC8,
	/* From here on the value is a rate: operations or bytes a second. */
	BENCH_LANES,   /* count lanes, a thread each, persist size bytes in a page of its own */
	BENCH_RAW_OUT, /* bare TCP streams */
	BENCH_RAW_IN,
	BENCH_WRITE, /* the whole pool */
	BENCH_READ,
};

enum bench_group { BENCH_G_SIZES, BENCH_G_SHAPES, BENCH_G_LANES, BENCH_G_OUT, BENCH_G_IN };

enum bench_value { BENCH_P50, BENCH_P99, BENCH_P999, BENCH_VALUES, BENCH_RATE = BENCH_P50 };

struct bench_series {
	enum bench_kind kind;
	enum bench_group group;
	unsigned size;
	unsigned count;
	enum plan_method method; /* or BENCH_CHOSEN */
	uint64_t estimate_ns;    /* of one operation, from the round before */
	unsigned rounds;
	double values[BENCH_VALUES][BENCH_ROUNDS_MAX]; /* nanoseconds, or a rate */
};

struct bench {
	struct ctl *c;
	uint64_t pool_size;
	unsigned rounds;
	unsigned seconds; /* for all */
	bool quick;

	/* bench_pool.c */
	struct scratch scratch;
	uint8_t *mem;  /* pool_size: what is written */
	uint8_t *back; /* what is read */
	struct bench_raw raw;
	struct plan_limits limits; /* the library's own */
	unsigned lanes;

	/* bench_work.c */
	uint64_t slice_ns; /* of one series in one round */
	uint64_t at;       /* where the next range goes */
	uint32_t *samples;

	struct bench_series series[BENCH_SERIES_MAX];
	unsigned series_count;
};

/* Pool, lanes, baseline and buffers; connects first. */
int bench_open(struct bench *b);

/* Takes everything away, the pool on the target too; keeps an error that is there. */
void bench_close(struct bench *b);

/* Measure s once; keep says whether the values count. */
int bench_measure(struct bench *b, struct bench_series *s, bool keep);

/* The median of the rounds. */
double bench_value(const struct bench_series *s, enum bench_value v);

/* The method that a series goes by. */
enum plan_method bench_method(const struct bench *b, const struct bench_series *s);

/* Whether the library would choose s->method for that size. */
bool bench_is_chosen(const struct bench *b, const struct bench_series *s);

/* As text, or as JSON. */
void bench_report(struct bench *b);

#endif
