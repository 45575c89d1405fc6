/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw_many - bare TCP round trips to several servers at once, which wait as the data path
 * does: what a drain to as many replicas costs at least on this machine.
 */
#ifndef BENCH_RAW_MANY_H
#define BENCH_RAW_MANY_H

#include <stdint.h>

#define RAW_MANY_MAX 16U

struct raw_many;

/*
 * Servers in processes of their own, on loopback; before the program starts a thread.
 * Both sides poll for busy_poll_us before they sleep.
 */
struct raw_many *raw_many_new(unsigned count, unsigned busy_poll_us);
void raw_many_free(struct raw_many *m);

/* What follows sends so many bytes to each, and waits for 48 from each. At most 64 KiB. */
void raw_many_size(struct raw_many *m, uint32_t size);

/* An operation of side.h: arg is the raw_many. */
int raw_many_trip(void *arg, uint64_t i);

#endif
