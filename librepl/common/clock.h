/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock - monotonic time and deadlines.
 *
 * A deadline is an absolute CLOCK_MONOTONIC time in nanoseconds.
 */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS 1000000ULL
#define NS_PER_S  1000000000ULL

static inline uint64_t
clock_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static inline uint64_t
clock_deadline(unsigned timeout_ms)
{
	return clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
}

/* Milliseconds left for poll(2), rounded up, 0 when passed, at most a minute. */
static inline int
clock_left_ms(uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns();
	uint64_t ms;

	if (now >= deadline_ns)
		return 0;
	ms = (deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS;
	return ms > 60000 ? 60000 : (int)ms;
}

#endif
