/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rangeset - the disjoint, sorted ranges that a lane has flushed and not drained.
 *
 * Pure, fixed capacity, no allocation. Overlapping and adjacent ranges are
 * merged as they are added.
 */
#ifndef COMMON_RANGESET_H
#define COMMON_RANGESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANGESET_MAX 128

struct range {
	uint64_t off;
	uint64_t len;
};

struct rangeset {
	unsigned count;
	uint64_t bytes;               /* sum of the lengths */
	struct range r[RANGESET_MAX]; /* ascending, with a gap between neighbours */
};

void rangeset_clear(struct rangeset *s);

/*
 * Add [off, off+len), len > 0, not wrapping. Returns the number of present
 * ranges that it was merged with (0: a new one), or -1 if the set is full and
 * nothing was changed.
 */
int rangeset_add(struct rangeset *s, uint64_t off, uint64_t len);

/* Whether they have a byte in common. */
bool rangeset_meets(const struct rangeset *s, const struct range *r);

#endif
