/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_ship.h"

#include "err.h"
#include "lane_impl.h"

/* Beside a large piece: others of its shipment, POSITION, BARRIER, and the next one's. */
#define ENTRIES_LARGE 8U
#define ENTRIES_SMALL 64U

/* ---- by message ---- */

static uint64_t
piece_max(const struct lane *l, const struct ship_piece *p)
{
	if (p->op == WIRE_OP_TRIM)
		return LANE_FLUSH_CHUNK;
	return l->msg_size - WIRE_HEADER_SIZE - ENTRIES_LARGE * WIRE_ENTRY_SIZE;
}

static bool
ship_message(struct lane *l, const struct shipment *s, struct ship_at *at)
{
	const struct ship_piece *p = &s->pieces[at->piece];

	do {
		uint64_t n = chunk_words(p->off + at->done, p->len - at->done, piece_max(l, p));
		const uint8_t *data = p->op == WIRE_OP_TRIM ? NULL : s->data + p->at + at->done;

		if (!lane_entry(l, (enum wire_op)p->op, p->off + at->done, (uint32_t)n, data))
			return false;
		at->done += n;
	} while (at->done < p->len);
	return true;
}

/* ---- by RMA ---- */

/*
 * No BARRIER holds RMA back, so the bytes may be in the pool before anything that is on its way:
 * only where nothing is. The COMMIT behind them, whose BARRIER is the shipment's, flushes them.
 */
static bool
ship_by_rma(const struct lane *l, const struct shipment *s)
{
	const char *why;

	return s->bytes > l->limits.message_max && plan_can(&l->limits, PLAN_GENERAL) &&
	       plan_allowed(l->profile, PLAN_GENERAL, PLAN_COMPOUND, &why);
}

bool
lane_ship_pays_to_wait(const struct lane *l, const struct shipment *s, const struct ship_at *at)
{
	return !at->begun && !lane_ship_quiet(l) && ship_by_rma(l, s);
}

static bool
ship_write(struct lane *l, const struct shipment *s, struct ship_at *at)
{
	const struct ship_piece *p = &s->pieces[at->piece];
	struct err e;

	err_clear(&e);
	while (at->done < p->len) {
		uint64_t off = p->off + at->done, n;

		if (!lane_region_ready(l, off) || fab_lane_rma_room(l->fab) == 0)
			return false;
		n = lane_rma_len(l, off, p->len - at->done);
		if (fab_lane_write_covered(l->fab, s->data + p->at + at->done, n, off, &e)) {
			lane_fail(l, e.code, e.text);
			return false;
		}
		at->done += n;
		l->rma_outstanding++;
		lane_count(&l->counters.writes, 1);
		lane_count(&l->counters.bytes, n);
	}
	/* A shipment is less than what one FLUSH names. */
	return lane_entry(l, WIRE_OP_FLUSH, p->off, (uint32_t)p->len, NULL);
}

static bool
ship_piece(struct lane *l, const struct shipment *s, struct ship_at *at)
{
	const struct ship_piece *p = &s->pieces[at->piece];

	if (at->writes && p->op == WIRE_OP_COPY && p->len > l->limits.message_max)
		return ship_write(l, s, at);
	return ship_message(l, s, at);
}

/* ---- shipments ---- */

bool
lane_ship(struct lane *l, struct shipment *s, unsigned replica, struct ship_at *at)
{
	if (!at->begun)
		*at = (struct ship_at){.begun = true,
				       .writes = lane_ship_quiet(l) && ship_by_rma(l, s)};
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
	*at = (struct ship_at){.writes = at->writes};
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
	return !l->building && l->seq_sent == l->seq_acked && l->rma_outstanding == 0;
}
