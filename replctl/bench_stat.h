/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_stat - quantiles of times and medians of rounds. Pure. */
#ifndef REPLCTL_BENCH_STAT_H
#define REPLCTL_BENCH_STAT_H

#include <stdint.h>

/* Sorts in place; for bench_quantile(). */
void bench_sort(uint32_t *values, uint32_t count);

/*
 * The smallest of the sorted values that at least permille/1000 of them do not
 * exceed; 0 of none.
 */
uint32_t bench_quantile(const uint32_t *sorted, uint32_t count, unsigned permille);

/* Of an even number the mean of the middle two; 0 of none. values stay as they are. */
double bench_median(const double *values, unsigned count);

#define BENCH_ROUNDS_MAX  32
#define BENCH_SAMPLES_MAX 200000U /* of one series in one round */

/* How many operations go before any is counted: most of them, or as many as do not take long. */
uint32_t bench_warm_count(uint32_t most, uint64_t op_ns);

/* How many that take op_ns each are a slice; never so few that they have no median. */
uint32_t bench_slice_count(uint64_t slice_ns, uint64_t op_ns);

/* The seconds that a connection is to have left for work that has taken, or should take, so long.
 */
unsigned bench_seconds_for(uint64_t work_ns);

#endif
