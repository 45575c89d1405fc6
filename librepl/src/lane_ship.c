/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_ship.h"

#include "lane_impl.h"

/* Beside a large piece: others of its shipment, POSITION, BARRIER, and the next one's. */
#define ENTRIES_LARGE 8U
#define ENTRIES_SMALL 64U

static uint64_t
piece_max(const struct lane *l, const struct ship_piece *p)
{
	if (p->op == WIRE_OP_TRIM)
		return LANE_FLUSH_CHUNK;
	return l->msg_size - WIRE_HEADER_SIZE - ENTRIES_LARGE * WIRE_ENTRY_SIZE;
}

static bool
ship_piece(struct lane *l, const struct shipment *s, struct ship_at *at)
{
	const struct ship_piece *p = &s->pieces[at->piece];

	do {
		uint64_t n = chunk_len(p->len - at->done, piece_max(l, p));
		const uint8_t *data = p->op == WIRE_OP_TRIM ? NULL : s->data + p->at + at->done;

		if (!lane_entry(l, (enum wire_op)p->op, p->off + at->done, (uint32_t)n, data))
			return false;
		at->done += n;
	} while (at->done < p->len);
	return true;
}

bool
lane_ship(struct lane *l, struct shipment *s, unsigned replica, struct ship_at *at)
{
	/* What is reserved and not used has to be moved over when the message is complete. */
	l->entries_due = s->bytes > l->msg_size / 4 ? ENTRIES_LARGE : ENTRIES_SMALL;
	for (; at->piece < s->piece_count; at->piece++, at->done = 0) {
		if (!ship_piece(l, s, at))
			return false;
	}
	if (!at->position) {
		if (!lane_entry(l, WIRE_OP_POSITION, s->number, 0, NULL))
			return false;
		at->position = true;
	}
	if (!lane_entry(l, WIRE_OP_BARRIER, 0, 0, NULL))
		return false;
	s->seq[replica] = l->seq_sent + 1;
	*at = (struct ship_at){0};
	return true;
}

void
lane_ship_send(struct lane *l)
{
	if (!l->status)
		lane_commit_send(l);
}

bool
lane_ship_quiet(const struct lane *l)
{
	return !l->building && l->seq_sent == l->seq_acked;
}
