/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hist - a histogram of times that stays small however many there are.
 *
 * Pure. Buckets are as wide as 1/128 of their values' power of two, so a
 * quantile is at most 0.8 % above the true one; mean, least and greatest are
 * exact.
 */
#ifndef REPLCTL_HIST_H
#define REPLCTL_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 7U
#define HIST_MAX_BITS 40U /* what is longer than 2^40 ns, 18 minutes, shares a bucket */
#define HIST_BUCKETS  (((HIST_MAX_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS) + 1)

/* All zero is an empty one. */
struct hist {
	uint64_t count, sum, least, greatest;
	uint64_t buckets[HIST_BUCKETS];
};

void hist_add(struct hist *h, uint64_t value);

/* The values of b, too. */
void hist_merge(struct hist *h, const struct hist *b);

/* 0 of none. */
double hist_mean(const struct hist *h);

/* The end of the bucket that has the value of that rank, 0 to 1000; 0 of none. */
uint64_t hist_quantile(const struct hist *h, unsigned permille);

#endif
