/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync_throttle - how fast a resync may go beside the application.
 *
 * Pure: time and latencies come in as values. Either a rate is given, or it is
 * found such that the application's drains take at most twice as long as
 * without the resync. What they take without is measured before it begins and,
 * every now and then, in an interval in which the resync rests. An application
 * that does not drain leaves full speed.
 */
#ifndef LIBREPL_RESYNC_THROTTLE_H
#define LIBREPL_RESYNC_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#define THROTTLE_INTERVAL_NS 100000000ULL
#define THROTTLE_RATE_MIN    (1ULL << 20) /* so that it ends */

struct throttle {
	uint64_t fixed;       /* bytes a second; 0: by the latency */
	uint64_t rate;        /* allowed now; 0: any */
	uint64_t alone_ns;    /* a drain without the resync; 0: not known */
	uint64_t alone_at_ns; /* when that was measured */
	uint64_t interval_ns; /* when this interval began */
	uint64_t bytes;       /* moved in it */
	uint64_t next_ns;     /* when the next bytes may go */
	bool resting;         /* in this interval, to measure */
};

/* foreground_ns: the median drain before the resync, 0: none. */
void throttle_init(struct throttle *t, uint64_t fixed, uint64_t foreground_ns, uint64_t now_ns);

/* The interval is over: throttle_interval() is due. */
bool throttle_due(const struct throttle *t, uint64_t now_ns);

/* Its median drain, 0: none. Begins the next one. */
void throttle_interval(struct throttle *t, uint64_t foreground_ns, uint64_t now_ns);

/* How long the next bytes must wait; 0: not at all. */
uint64_t throttle_wait_ns(const struct throttle *t, uint64_t now_ns);

/* So many are going now. */
void throttle_moved(struct throttle *t, uint64_t bytes, uint64_t now_ns);

#endif
