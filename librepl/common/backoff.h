/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backoff - how long to wait before the next try.
 *
 * Pure: randomness comes in. Each wait is uniform between the least one and a
 * ceiling that doubles with each try ("full jitter"): initiators that lost one
 * target together do not come back to it together.
 */
#ifndef COMMON_BACKOFF_H
#define COMMON_BACKOFF_H

#include <stdint.h>

struct backoff {
	uint64_t min_ns, max_ns;
	unsigned tries; /* waits since the last success */
};

/* max_ns below min_ns counts as min_ns; a min_ns of 0 as 1. */
void backoff_init(struct backoff *b, uint64_t min_ns, uint64_t max_ns);

/* After a success: the next wait is a short one again. */
void backoff_reset(struct backoff *b);

/* No hope soon: the next waits have the highest ceiling. */
void backoff_exhaust(struct backoff *b);

/* The next wait, min_ns to max_ns; random is any 64 random bits. */
uint64_t backoff_next(struct backoff *b, uint64_t random);

#endif
