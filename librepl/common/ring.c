/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring.h"

#include <inttypes.h>
#include <string.h>

#include "checksum.h"
#include "le.h"

/* Offsets in the header: docs/POOL-FORMAT.md. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 8,
	AT_ZERO_10 = 10,
	AT_EPOCH = 12,
	AT_LANES = 16,
	AT_SLOTS = 20,
	AT_SLOT_SIZE = 24,
	AT_ZERO_28 = 28,
	AT_SUM = 32,
	AT_ZERO_40 = 40,
};

#define MAGIC      "REPLRING"
#define MARKS_SIZE (RING_LANES_MAX * RING_MARK_SIZE)
#define SLOTS_AT   (RING_HEADER_SIZE + MARKS_SIZE)

int
ring_geometry_check(const struct ring_geometry *g, struct err *e)
{
	if (g->lanes == 0 || g->lanes > RING_LANES_MAX)
		return err_set(e, REPL_E_INVAL, "receive ring of %" PRIu32 " lanes, not 1 to %u",
			       g->lanes, RING_LANES_MAX);
	if (g->slots < RING_SLOTS_MIN || g->slots > RING_SLOTS_MAX)
		return err_set(e, REPL_E_INVAL,
			       "receive ring of %" PRIu32 " slots a lane, not %u to %u", g->slots,
			       RING_SLOTS_MIN, RING_SLOTS_MAX);
	if (g->slot_size < WIRE_MSG_SIZE_MIN || g->slot_size > WIRE_MSG_SIZE_MAX ||
	    g->slot_size % RING_ALIGN)
		return err_set(e, REPL_E_INVAL,
			       "receive ring with slots of %" PRIu32
			       " bytes, not a multiple of %u up to %u",
			       g->slot_size, RING_ALIGN, WIRE_MSG_SIZE_MAX);
	return 0;
}

uint64_t
ring_size(const struct ring_geometry *g)
{
	return ring_slot_off(g, g->lanes, 0);
}

uint64_t
ring_mark_off(uint32_t lane)
{
	return RING_HEADER_SIZE + (uint64_t)lane * RING_MARK_SIZE;
}

uint64_t
ring_slot_off(const struct ring_geometry *g, uint32_t lane, uint32_t slot)
{
	return SLOTS_AT + ((uint64_t)lane * g->slots + slot) * g->slot_size;
}

uint32_t
ring_slot_of(const struct ring_geometry *g, uint64_t seq)
{
	return (uint32_t)((seq - 1) % g->slots);
}

/* ---- header ---- */

static uint64_t
header_sum(const uint8_t *header)
{
	return sum64_seeded(header, AT_SUM,
			    sum64(header + AT_ZERO_40, RING_HEADER_SIZE - AT_ZERO_40));
}

void
ring_header_encode(const struct ring_geometry *g, uint8_t header[RING_HEADER_SIZE])
{
	memset(header, 0, RING_HEADER_SIZE);
	memcpy(header + AT_MAGIC, MAGIC, 8);
	put_le16(header + AT_VERSION, RING_VERSION);
	put_le32(header + AT_EPOCH, g->epoch);
	put_le32(header + AT_LANES, g->lanes);
	put_le32(header + AT_SLOTS, g->slots);
	put_le32(header + AT_SLOT_SIZE, g->slot_size);
	put_le64(header + AT_SUM, header_sum(header));
}

int
ring_header_decode(const uint8_t header[RING_HEADER_SIZE], uint64_t region_size,
		   struct ring_geometry *g, struct err *e)
{
	struct ring_geometry got;

	if (memcmp(header + AT_MAGIC, MAGIC, 8) != 0)
		return err_set(e, REPL_E_CORRUPT, "receive ring: no magic bytes '%s'", MAGIC);
	if (get_le64(header + AT_SUM) != header_sum(header))
		return err_set(e, REPL_E_CORRUPT, "receive ring: checksum does not match");
	if (get_le16(header + AT_VERSION) > RING_VERSION)
		return err_set(e, REPL_E_VERSION,
			       "receive ring: version %u, this program knows up to %d: a newer "
			       "version made it",
			       get_le16(header + AT_VERSION), RING_VERSION);
	if (get_le16(header + AT_VERSION) != RING_VERSION || !all_zero(header + AT_ZERO_10, 2) ||
	    !all_zero(header + AT_ZERO_28, 4) ||
	    !all_zero(header + AT_ZERO_40, RING_HEADER_SIZE - AT_ZERO_40))
		return err_set(e, REPL_E_CORRUPT, "receive ring: reserved bytes are not zero");
	got.epoch = get_le32(header + AT_EPOCH);
	got.lanes = get_le32(header + AT_LANES);
	got.slots = get_le32(header + AT_SLOTS);
	got.slot_size = get_le32(header + AT_SLOT_SIZE);
	if (ring_geometry_check(&got, NULL))
		return err_set(e, REPL_E_CORRUPT,
			       "receive ring: %" PRIu32 " lanes of %" PRIu32 " slots of %" PRIu32
			       " bytes are out of bounds",
			       got.lanes, got.slots, got.slot_size);
	if (ring_size(&got) > region_size)
		return err_set(e, REPL_E_CORRUPT,
			       "receive ring: takes %" PRIu64 " bytes, its region has %" PRIu64,
			       ring_size(&got), region_size);
	*g = got;
	return 0;
}

/* ---- marks ---- */

void
ring_mark_encode(uint64_t seq, uint8_t word[8])
{
	put_le64(word, seq);
}

uint64_t
ring_mark(const uint8_t *region, uint32_t lane)
{
	return get_le64(region + ring_mark_off(lane));
}

/* ---- replay ---- */

bool
ring_slot_holds(const uint8_t *slot, const struct ring_geometry *g, uint64_t pool_size,
		uint64_t seq, uint64_t stamp, struct wire_commit_view *v)
{
	size_t len = wire_deposit_len(slot, g->slot_size);

	return len > 0 && wire_deposit_decode(slot, len, pool_size, v, NULL) == 0 &&
	       v->seq == seq && v->epoch == g->epoch && v->stamp > stamp;
}

/*
 * Whatever is in the slot, it is the lane's next message or the lane ends here:
 * what lies behind a gap may be later than what was lost in the gap.
 */
static void
replay_look(struct ring_replay *r, uint32_t lane)
{
	const struct ring_geometry *g = &r->geometry;
	uint64_t seq = r->lanes[lane].seq + 1;
	const uint8_t *slot = r->region + ring_slot_off(g, lane, ring_slot_of(g, seq));

	r->lanes[lane].there = ring_slot_holds(slot, g, r->pool_size, seq, r->lanes[lane].stamp,
					       &r->lanes[lane].next);
}

void
ring_replay_begin(struct ring_replay *r, const uint8_t *region, const struct ring_geometry *g,
		  uint64_t pool_size)
{
	memset(r, 0, sizeof(*r));
	r->region = region;
	r->geometry = *g;
	r->pool_size = pool_size;
	for (uint32_t i = 0; i < g->lanes; i++) {
		r->lanes[i].seq = ring_mark(region, i);
		/* No lane ever gets so far; the number behind it would be 0. */
		if (r->lanes[i].seq < UINT64_MAX)
			replay_look(r, i);
	}
}

bool
ring_replay_next(struct ring_replay *r, struct ring_message *out)
{
	uint32_t lane = r->geometry.lanes;

	for (uint32_t i = 0; i < r->geometry.lanes; i++) {
		if (r->lanes[i].there && (lane == r->geometry.lanes ||
					  r->lanes[i].next.stamp < r->lanes[lane].next.stamp))
			lane = i;
	}
	if (lane == r->geometry.lanes)
		return false;
	out->lane = lane;
	out->view = r->lanes[lane].next;
	r->lanes[lane].seq = out->view.seq;
	r->lanes[lane].stamp = out->view.stamp;
	r->lanes[lane].there = false;
	if (out->view.seq < UINT64_MAX)
		replay_look(r, lane);
	return true;
}
