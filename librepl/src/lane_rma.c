/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RMA: the writes of a range and what each method puts behind them.
 *
 *   general-purpose  writes, a FLUSH entry in a COMMIT; its ACK
 *   appliance        writes, one read behind the last of them; its completion
 *   completion       writes; their completions
 *   native-flush     the same, of writes that complete when the fabric has flushed them
 *   write-imm        writes, the last with an immediate that names all; its ACK
 *   write-imm-read   the same without an answer, one read; its completion
 */
#include "lane_impl.h"

#include "err.h"

/* Writes may begin before it is known what will stand behind them. */
#define EARLY                                                                                      \
	(PLAN_BIT(PLAN_GENERAL) | PLAN_BIT(PLAN_APPLIANCE) | PLAN_BIT(PLAN_COMPLETION) |           \
	 PLAN_COMMITTED)

static void
lane_write_counted(struct lane *l, uint64_t len)
{
	l->rma_outstanding++;
	lane_count(&l->counters.writes, 1);
	lane_count(&l->counters.bytes, len);
}

/* What a write's completion has to say. */
static int
lane_write_as(struct lane *l, const struct range *c, enum plan_method m, struct err *e)
{
	if (m == PLAN_COMPLETION)
		return fab_lane_write(l->fab, l->mem + c->off, c->len, c->off, e);
	if (m == PLAN_NATIVE_FLUSH)
		return fab_lane_write_committed(l->fab, l->mem + c->off, c->len, c->off, e);
	return fab_lane_write_covered(l->fab, l->mem + c->off, c->len, c->off, e);
}

/* Post one chunk of a range; false if there is no room or the lane is lost. */
static bool
lane_write_chunk(struct lane *l, const struct range *c, enum plan_method m)
{
	struct err e;

	if (!lane_region_ready(l, c->off) || fab_lane_rma_room(l->fab) == 0)
		return false;
	err_clear(&e);
	if (lane_write_as(l, c, m, &e)) {
		lane_fail(l, e.code, e.text);
		return false;
	}
	lane_write_counted(l, c->len);
	return true;
}

/* There is a number for an update that is to be answered, and the lane may have one more. */
static bool
lane_number_free(struct lane *l)
{
	/* The COMMIT that is being built is to have the number before. */
	lane_commit_send(l);
	return !l->status && l->seq_sent - l->seq_acked < l->depth && fab_lane_turn(l->fab);
}

/* The same with an immediate, which names the piece that the chunk ends. */
static bool
lane_write_imm(struct lane *l, const struct range *c, const struct wire_imm *piece)
{
	struct fab_imm imm = {.answered = piece->answer};
	struct err e;

	if (!lane_region_ready(l, c->off) || fab_lane_rma_room(l->fab) == 0)
		return false;
	if (imm.answered && !lane_number_free(l))
		return false;
	err_clear(&e);
	imm.bits = wire_imm_encode(l->imm_unit, piece);
	if (fab_lane_write_imm(l->fab, l->mem + c->off, c->len, c->off, &imm, &e)) {
		lane_fail(l, e.code, e.text);
		return false;
	}
	lane_write_counted(l, c->len);
	lane_count(&l->counters.immediates, 1);
	l->seq_sent += imm.answered;
	return true;
}

static bool
by_immediate(enum plan_method m)
{
	return (PLAN_BIT(m) & PLAN_IMMEDIATE) != 0;
}

/* Write what is not yet written up to end, where the piece ends that began at asked_at. */
static bool
lane_write_piece(struct lane *l, const struct range *r, uint64_t end, enum plan_method m)
{
	while (l->byte_at < end) {
		uint64_t at = r->off + l->byte_at;
		struct range c = {.off = at, .len = lane_rma_len(l, at, end - l->byte_at)};
		struct wire_imm piece = {.off = r->off + l->asked_at,
					 .len = end - l->asked_at,
					 .answer = m == PLAN_WRITE_IMM};
		bool last = l->byte_at + c.len == end;

		if (!(last && by_immediate(m) ? lane_write_imm(l, &c, &piece)
					      : lane_write_chunk(l, &c, m)))
			return false;
		l->byte_at += c.len;
	}
	return true;
}

/* The longest piece from off on whose durability can be asked for at once. */
static uint64_t
piece_max(const struct lane *l, uint64_t off, enum plan_method m)
{
	return by_immediate(m) ? wire_imm_reach(l->imm_unit, off) : LANE_FLUSH_CHUNK;
}

/* Ask for what neither the write itself nor its immediate has asked for. */
static bool
lane_ask(struct lane *l, uint64_t off, uint64_t len, enum plan_method m)
{
	if (m == PLAN_GENERAL)
		return lane_entry(l, WIRE_OP_FLUSH, off, (uint32_t)len, NULL);
	if (m == PLAN_APPLIANCE || m == PLAN_WRITE_IMM_READ) {
		l->read_due = true;
		l->read_off = off;
	}
	return true;
}

bool
lane_post_rma(struct lane *l, const struct range *r, enum plan_method m)
{
	while (l->asked_at < r->len) {
		uint64_t off = r->off + l->asked_at;
		uint64_t len = chunk_len(r->len - l->asked_at, piece_max(l, off, m));

		if (!lane_write_piece(l, r, l->asked_at + len, m) || !lane_ask(l, off, len, m))
			return false;
		l->asked_at += len;
	}
	return true;
}

bool
lane_post_read(struct lane *l)
{
	struct err e;

	if (!l->read_due)
		return true;
	if (!lane_region_ready(l, l->read_off) || fab_lane_rma_room(l->fab) == 0)
		return false;
	err_clear(&e);
	if (fab_lane_read(l->fab, l->scratch, 1, l->read_off, &e)) {
		lane_fail(l, e.code, e.text);
		return false;
	}
	l->rma_outstanding++;
	l->read_due = false;
	lane_count(&l->counters.reads, 1);
	return true;
}

/* Behind the last message: its bytes come back when the ring has that. */
bool
lane_post_deposit_read(struct lane *l)
{
	if (!l->deposit_due)
		return true;
	l->read_due = true;
	l->read_off = 0;
	if (!lane_post_read(l))
		return false;
	l->deposit_due = false;
	return true;
}

/* ---- before the drain ---- */

/* Of those by which ranges were written early the one that is enough for all of them. */
enum plan_method
lane_written_method(const struct lane *l)
{
	if (l->written_by & PLAN_BIT(PLAN_GENERAL))
		return PLAN_GENERAL;
	if (l->written_by & PLAN_BIT(PLAN_APPLIANCE))
		return PLAN_APPLIANCE;
	return l->written_by == PLAN_COMMITTED ? PLAN_NATIVE_FLUSH : PLAN_COMPLETION;
}

/* Whether others may be flushed that it goes in one message with. */
static bool
lane_may_join(const struct lane *l, uint64_t len)
{
	return !l->limits.force && len <= LANE_SEVERAL_MAX;
}

/* All of a range can be written now. */
static bool
lane_room_for(const struct lane *l, uint64_t off, uint64_t len)
{
	unsigned room = fab_lane_rma_room(l->fab);

	if (!lane_region_known(l, off, len))
		return false;
	for (uint64_t n; len > 0 && room > 0; len -= n, off += n, room--)
		n = lane_rma_len(l, off, len);
	return len == 0;
}

/* Of what is flushed alone, by one of the methods that may begin now; or 0. */
static unsigned
lane_early_by(const struct lane *l, uint64_t off, uint64_t len)
{
	const struct range r = {.off = off, .len = len};
	unsigned by;

	if (l->phase != LANE_IDLE || lane_may_join(l, len) || l->written.count == RANGESET_MAX)
		return 0;
	by = PLAN_BIT(lane_plan(l, PLAN_SINGLETON, &r).method) & EARLY;
	return by && lane_room_for(l, off, len) ? by : 0;
}

/* It goes in one message with what is to follow it. */
static bool
lane_joins_second(const struct lane *l, uint64_t len, uint64_t second)
{
	return second > 0 && !l->limits.force && len <= l->limits.inline_max &&
	       second <= l->limits.inline_max - len;
}

bool
lane_writes_early(const struct lane *l, uint64_t off, uint64_t len, uint64_t second)
{
	return !l->status && !lane_joins_second(l, len, second) && lane_early_by(l, off, len) != 0;
}

int
lane_note(struct lane *l, uint64_t off, uint64_t len)
{
	return l->status ? 0 : rangeset_add(&l->todo, off, len);
}

int
lane_flush(struct lane *l, uint64_t off, uint64_t len)
{
	unsigned by = l->status ? 0 : lane_early_by(l, off, len);

	if (by == 0)
		return lane_note(l, off, len);
	for (uint64_t at = 0; at < len && !l->status;) {
		struct range c = {.off = off + at, .len = lane_rma_len(l, off + at, len - at)};

		(void)lane_write_chunk(l, &c, (enum plan_method)__builtin_ctz(by));
		at += c.len;
	}
	l->written_by |= by;
	return rangeset_add(&l->written, off, len);
}

int
lane_flush_first(struct lane *l, uint64_t off, uint64_t len, uint64_t second)
{
	return lane_joins_second(l, len, second) ? lane_note(l, off, len) : lane_flush(l, off, len);
}
