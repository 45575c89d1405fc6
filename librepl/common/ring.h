/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring - the persistent receive ring of docs/POOL-FORMAT.md, section 1.5.
 *
 * Pure: it works on bytes in memory that the caller has mapped. The region is
 *
 *   header 4096 bytes | marks, a line of 64 bytes a lane, 4096 bytes | slots
 *
 * with the slots of a lane one behind the other. A lane's messages are numbered
 * from 1 and number n lies in slot (n - 1) modulo slots: receive buffers are
 * posted in the order of the slots and used in the order of the posts. A lane's
 * mark is the number of the last message whose updates are durable in the pool.
 *
 * What is replayed is, of each lane, the messages behind the mark up to the
 * first that is not there in whole, and of all lanes together in the order of
 * their stamps. Everything in the region is hostile: see ring_header_decode()
 * and wire_deposit_decode().
 */
#ifndef COMMON_RING_H
#define COMMON_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "wire.h"

#define RING_VERSION     1
#define RING_HEADER_SIZE 4096U
#define RING_LANES_MAX   64U
#define RING_MARK_SIZE   64U /* a line: marks of two lanes never share one */
#define RING_SLOTS_MIN   2U
#define RING_SLOTS_MAX   (WIRE_DEPTH_MAX + 1U)
#define RING_ALIGN       4096U

struct ring_geometry {
	uint32_t epoch; /* of the writer whose messages are in it */
	uint32_t lanes;
	uint32_t slots;     /* of a lane */
	uint32_t slot_size; /* bytes, a multiple of RING_ALIGN */
};

/* The bounds above; REPL_E_INVAL names what is out of them. */
int ring_geometry_check(const struct ring_geometry *g, struct err *e);

/* Of a checked geometry: bytes of the region, and offsets from its beginning. */
uint64_t ring_size(const struct ring_geometry *g);
uint64_t ring_mark_off(uint32_t lane);
uint64_t ring_slot_off(const struct ring_geometry *g, uint32_t lane, uint32_t slot);

/* The slot of a lane's message number seq, which is not 0. */
uint32_t ring_slot_of(const struct ring_geometry *g, uint64_t seq);

void ring_header_encode(const struct ring_geometry *g, uint8_t header[RING_HEADER_SIZE]);

/*
 * REPL_E_VERSION if it is whole and of a newer version, else REPL_E_CORRUPT if
 * anything in it is wrong or it describes more than region_size bytes.
 */
int ring_header_decode(const uint8_t header[RING_HEADER_SIZE], uint64_t region_size,
		       struct ring_geometry *g, struct err *e);

/* The mark of a lane: a value to store by one 8-byte store, and how it is read. */
void ring_mark_encode(uint64_t seq, uint8_t word[8]);
uint64_t ring_mark(const uint8_t *region, uint32_t lane);

/*
 * Whether a slot, of g->slot_size bytes, holds a lane's message number seq in whole; stamp is
 * that of the one before. Only then *v is filled, which points into the slot.
 */
bool ring_slot_holds(const uint8_t *slot, const struct ring_geometry *g, uint64_t pool_size,
		     uint64_t seq, uint64_t stamp, struct wire_commit_view *v);

/* One message to apply. */
struct ring_message {
	uint32_t lane;
	struct wire_commit_view view; /* points into the region */
};

struct ring_replay {
	const uint8_t *region;
	struct ring_geometry geometry;
	uint64_t pool_size;
	struct {
		bool there; /* next is the lane's next message */
		uint64_t seq, stamp;
		struct wire_commit_view next;
	} lanes[RING_LANES_MAX];
};

/*
 * Look for what is not applied. region has ring_size() bytes, which must not
 * change up to the last ring_replay_next().
 */
void ring_replay_begin(struct ring_replay *r, const uint8_t *region, const struct ring_geometry *g,
		       uint64_t pool_size);

/* The next message in the order in which they are to be applied; false at the end. */
bool ring_replay_next(struct ring_replay *r, struct ring_message *out);

#endif
