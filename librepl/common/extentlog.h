/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extentlog - which parts of a pool, its extents, were written to lately: the
 * state behind the activity log of dirtypage.h.
 *
 * Pure, in memory. An extent is *wanted* from the first write to it on, and *on*
 * when media say so. Who finds it on need not look farther. One that has been
 * idle is taken off in two steps: from the first one on nobody relies on it, and
 * in between what was marked while one did becomes durable.
 *
 * Any thread may call extentlog_use(); all else is called by one at a time. Taking off races with
 * those who look: they set an extent's bit in used, then look whether it is on; who takes it off
 * clears on, then looks at used: one of the two sees the other. Atomics are in sequential order.
 */
#ifndef COMMON_EXTENTLOG_H
#define COMMON_EXTENTLOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dirtypage.h"

struct extentlog {
	uint64_t want[DIRTYPAGE_EXTENT_WORDS];
	_Atomic uint64_t on[DIRTYPAGE_EXTENT_WORDS];
	_Atomic uint64_t used[DIRTYPAGE_EXTENT_WORDS]; /* since the last round */
	uint16_t age[DIRTYPAGE_EXTENTS];               /* rounds without a use */
	_Atomic uint32_t shift;
	unsigned idle_rounds; /* so many without a use, and it is taken off */
};

/* Nothing is wanted; of a zeroed one. */
void extentlog_init(struct extentlog *l, uint64_t pool_size, unsigned idle_rounds);

/* Use all extents of a range, which is not empty; true if all are on. */
bool extentlog_use(struct extentlog *l, uint64_t off, uint64_t len);

void extentlog_want(struct extentlog *l, uint64_t off, uint64_t len);

/* These are on media now, as extentlog.want was some time ago. */
void extentlog_on(struct extentlog *l, const uint64_t words[DIRTYPAGE_EXTENT_WORDS]);

/* Nothing is on media that counts. */
void extentlog_off(struct extentlog *l);

/* A round is over: idle gets those that nobody relies on from now on; true if there are any. */
bool extentlog_retire_begin(struct extentlog *l, uint64_t idle[DIRTYPAGE_EXTENT_WORDS]);

/*
 * The second step: they are wanted no more, but for those that were put on since.
 * True if media are to be told.
 */
bool extentlog_retire_end(struct extentlog *l, const uint64_t idle[DIRTYPAGE_EXTENT_WORDS]);

/* The pool has grown: extents may be larger. Nothing is on. */
void extentlog_grow(struct extentlog *l, uint64_t pool_size);

#endif
