/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * roundfmt - the round log of a page pool: docs/POOL-FORMAT.md, section 1.8. Its
 * header, its frames, and which of them a replay applies in which order. Pure; the
 * messages in frames are wire.h's. All bytes of a region are hostile.
 */
#ifndef REPLD_ROUNDFMT_H
#define REPLD_ROUNDFMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "generation.h"
#include "regionpage.h"
#include "wire.h"

#define ROUND_BLOCK      4096U /* frames begin at multiples */
#define ROUND_HEAD_SIZE  48U   /* of a frame, in front of its messages */
#define ROUND_FRAME_MAX  (256U << 10)
#define ROUND_HALF_MIN   (512U << 10)
#define ROUND_HALF_MAX   (8U << 20)
#define ROUND_BLOCKS_MAX (2 * ROUND_HALF_MAX / ROUND_BLOCK)

struct round_header {
	uint32_t epoch; /* of the writer whose messages it takes */
	struct gen_id pool_uuid;
	uint64_t key; /* of the frames' checksums */
	uint64_t half;
};

uint64_t round_half_for(uint64_t pool_size);
uint64_t round_size(uint64_t half); /* of the region */

void round_header_encode(const struct round_header *h, uint8_t page[REGION_PAGE]);

/* REPL_E_CORRUPT, also if it does not fit a region of that size; REPL_E_VERSION: newer. */
int round_header_decode(const uint8_t page[REGION_PAGE], uint64_t region_size,
			struct round_header *h, struct err *e);

struct round_frame {
	uint64_t seq, from;
	uint64_t chain; /* wire_stage_chain() over the messages, from 0 */
	uint32_t bytes; /* of messages */
	uint32_t count; /* of them */
};

void round_head_encode(const struct round_frame *f, uint64_t key, uint8_t head[ROUND_HEAD_SIZE]);

/* Whether a COMMIT of these operations may be in a frame. */
bool round_takes(const struct wire_commit_view *v);

/* The highest that its POSITIONs tell; 0: it has none. */
uint64_t round_position(const struct wire_commit_view *v);

/* Whether a whole frame begins at mem, of which size bytes may be its own. */
bool round_frame_whole(const uint8_t *mem, size_t size, const struct round_header *h,
		       uint64_t pool_size, struct round_frame *f);

struct round_replay {
	const uint8_t *region;
	struct round_header header;
	uint64_t pool_size;
	uint64_t next, last;               /* frames to come; next above last: none */
	uint32_t blocks[ROUND_BLOCKS_MAX]; /* where frame from + i begins; UINT32_MAX: not there */
	uint64_t from;
	struct round_frame frame; /* whose messages come */
	const uint8_t *at;
	uint32_t left;
	bool damaged; /* known at the end: a frame that counts is not there */
};

/* Look for the frames of a region of round_size() bytes, whose header is decoded. */
void round_replay_begin(struct round_replay *r, const uint8_t *region, const struct round_header *h,
			uint64_t pool_size);

/* The next message to apply; false at the end, or where a frame is missing. */
bool round_replay_next(struct round_replay *r, struct wire_commit_view *v);

#endif
