/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane_impl - what the parts of a lane share: lane.c runs jobs and takes
 * events, lane_post.c puts ranges on the wire by the method planned for each,
 * lane_rma.c does so for methods that write by RMA.
 */
#ifndef LIBREPL_LANE_IMPL_H
#define LIBREPL_LANE_IMPL_H

#include "lane.h"
#include "words.h"

#define LANE_FLUSH_CHUNK (1U << 30) /* one FLUSH or TRIM entry; its length has 32 bits */

/* Up to here several ranges are cheaper in one message than by a write each. */
#define LANE_SEVERAL_MAX 2048U

static inline bool
lane_drains(const struct lane *l)
{
	return l->kind == LANE_DRAIN || l->kind == LANE_SETTLE || l->kind == LANE_WRITTEN;
}

static inline void
lane_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline uint64_t
chunk_len(uint64_t left, uint64_t max)
{
	return left < max ? left : max;
}

/* The same of bytes that are taken from the pool at off: no word is in two. */
static inline uint64_t
chunk_words(uint64_t off, uint64_t left, uint64_t max)
{
	return left < max ? left : max - (off + max) % WORDS_SIZE;
}

/* How a range is to go; of a pair the second is PLAN_COMPOUND. */
struct plan lane_plan(const struct lane *l, enum plan_shape shape, const struct range *r);

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

/* Whether the ACK is to tell where memory lies. */
bool lane_key_due(const struct lane *l, const struct wire_ack *ack);

/* An ACK has come: the region that it was for is ready, or the window filled. */
void lane_region_acked(struct lane *l, const struct wire_ack *ack);

/* Ask for the fetch, and read the window when it is filled; true when that is posted. */
bool lane_fetch_post(struct lane *l);

/* Have a COMMIT under construction with room for an entry of so many bytes; else false. */
bool lane_commit_begin(struct lane *l, size_t payload);

/* Post the APPEND; false if it must wait or the lane is lost. */
bool lane_append_post(struct lane *l);

/* Whether the ACK is that of the APPEND, and its status, if it has one, does the lane no harm. */
bool lane_append_acked(struct lane *l, const struct wire_ack *ack);

/* Whether it says that the APPEND was done. */
bool lane_append_done(const struct lane *l, const struct wire_ack *ack);

/* Send what has been built, if anything. */
void lane_commit_send(struct lane *l);

/*
 * Post the ranges of a set from range_at on; written ones need only the
 * asking. False if it must wait or the lane is lost: call again.
 */
bool lane_post_first_set(struct lane *l, const struct rangeset *s, bool written);
bool lane_post_second_range(struct lane *l);

/* The entries of a LANE_TRIM. False if it must wait or the lane is lost: call again. */
bool lane_post_trim(struct lane *l);

/*
 * Post a range by a method of RMA from byte_at on and see to its durability
 * from asked_at on. False as above.
 */
bool lane_post_rma(struct lane *l, const struct range *r, enum plan_method m);

/* The read, if due: it pushes all writes before it into the domain. */
bool lane_post_read(struct lane *l);

/* With a receive ring: what completes the job's DEPOSITs is posted, if any is due. False as above.
 */
bool lane_post_deposit_read(struct lane *l);

/* With a receive ring: a DEPOSIT for a LANE_SETTLE is being built. False as above. */
bool lane_post_settle(struct lane *l);

/* How the durability of what was written early is to be asked for. */
enum plan_method lane_written_method(const struct lane *l);

#endif
