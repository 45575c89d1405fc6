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

#define BENCH_ROUNDS_MAX 32

#endif
