/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane_impl - what the two halves of a lane share: lane.c runs jobs and takes
 * events, lane_post.c puts ranges on the wire by the method planned for each.
 */
#ifndef LIBREPL_LANE_IMPL_H
#define LIBREPL_LANE_IMPL_H

#include "lane.h"

static inline void
lane_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* How one range of len bytes is to go. */
enum plan_method lane_method(const struct lane *l, uint64_t len);

/*
 * Append one entry, sending a full COMMIT first; false if it must wait or the
 * lane is lost. data is for operations that carry bytes, else NULL.
 */
bool lane_entry(struct lane *l, enum wire_op op, uint64_t off, uint32_t len, const void *data);

/*
 * Whether off's region is registered on the target; if not it is asked for, and
 * the caller waits. Nothing is asked for on a lane that is lost.
 */
bool lane_region_ready(struct lane *l, uint64_t off);

/* Whether all regions of the range are ready; asks for none. */
bool lane_region_known(const struct lane *l, uint64_t off, uint64_t len);

/* An ACK has come: the region that it was for is ready. */
void lane_region_acked(struct lane *l);

/* Send what has been built, if anything. */
void lane_commit_send(struct lane *l);

/*
 * Post the ranges of a set from range_at on; written ones need only the
 * asking. False if it must wait or the lane is lost: call again.
 */
bool lane_post_set(struct lane *l, const struct range *r, unsigned count, bool written);

/* The entries of a LANE_TRIM. False if it must wait or the lane is lost: call again. */
bool lane_post_trim(struct lane *l);

/* The appliance's read, if due: it pushes all writes before it into the domain. */
bool lane_post_read(struct lane *l);

#endif
