/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Putting ranges on the wire: by whom each goes, and those that go in messages.
 * RMA is lane_rma.c.
 */
#include "lane_impl.h"

#include "err.h"

/*
 * From here on a singleton would have gone by RMA, which nobody sums up: the payload of a message
 * needs no more. What is shorter costs next to nothing.
 */
#define LANE_BARE_MIN 241U

/* ---- by which method ---- */

/* Ranges of the drain beside the one in question, which is one of them when it is posted. */
static unsigned
lane_others(const struct lane *l)
{
	unsigned count = l->todo.count + l->written.count;

	return l->phase != LANE_IDLE && count > 0 ? count - 1 : count;
}

/*
 * Whether a range may go with immediates. Where they are not asked for by name
 * only one that goes by a single immediate, of units no longer than it is, and is
 * alone in its drain: several are cheaper as FLUSH entries of one COMMIT, with one
 * flush for all of them and their writes begun early.
 */
static bool
lane_by_immediate(const struct lane *l, enum plan_shape shape, const struct range *r)
{
	/* A pool that has grown may have units that no immediate can name. */
	if (r->off + r->len > l->imm_unit * (WIRE_IMM_FIRST_MAX + 1ULL))
		return false;
	if (l->limits.force)
		return true;
	return r->len >= l->imm_unit && r->len <= wire_imm_reach(l->imm_unit, r->off) &&
	       (shape == PLAN_COMPOUND || lane_others(l) == 0);
}

struct plan
lane_plan(const struct lane *l, enum plan_shape shape, const struct range *r)
{
	struct plan_limits lim = l->limits;
	struct plan plan;

	/* What the others, or what is ordered behind it, go in has room for it. */
	if (lim.single_max < LANE_SEVERAL_MAX &&
	    (lane_others(l) > 0 || (l->phase != LANE_IDLE && !lane_drains(l))))
		lim.single_max =
			lim.inline_max < LANE_SEVERAL_MAX ? lim.inline_max : LANE_SEVERAL_MAX;
	plan = plan_choose(l->profile, shape, r->len, &lim);
	if (!(PLAN_BIT(plan.method) & PLAN_IMMEDIATE) || lane_by_immediate(l, shape, r))
		return plan;
	lim.can &= ~PLAN_IMMEDIATE;
	return plan_choose(l->profile, shape, r->len, &lim);
}

/* ---- building and sending COMMITs ---- */

/* It is taken before the bytes are: what completes from now on may be stamped higher. */
static void
lane_stamp(struct lane *l)
{
	struct wire_entry stamp = {.op = WIRE_OP_STAMP};

	stamp.off = atomic_fetch_add(l->stamp, 1) + 1;
	wire_commit_add(&l->commit, &stamp, NULL);
}

/* The payload is that of all that is to go: one entry will do. */
static bool
lane_goes_alone(const struct lane *l, size_t payload)
{
	return lane_drains(l) && l->todo.count == 1 && l->written.count == 0 &&
	       payload == l->todo.r[0].len;
}

/*
 * The entries reserved leave room for the payload of the first, at most inline_max. Where some are
 * left over the payload is moved in the end.
 */
bool
lane_commit_begin(struct lane *l, size_t payload)
{
	size_t more = lane_goes_alone(l, payload) ? 0 : 2;
	size_t ranges = (size_t)l->todo.count + l->written.count + more + l->ring + l->entries_due;
	size_t entries = ranges > WIRE_ENTRIES_MAX ? WIRE_ENTRIES_MAX : ranges;
	size_t half = l->msg_size / 2 / WIRE_ENTRY_SIZE;
	size_t room = (l->msg_size - WIRE_HEADER_SIZE - payload) / WIRE_ENTRY_SIZE;
	size_t most = half < room ? half : room;
	uint8_t *buf;

	if (l->building)
		return true;
	if (l->seq_sent - l->seq_acked >= l->depth ||
	    (l->delivered && fab_lane_rma_room(l->fab) == 0))
		return false;
	buf = fab_lane_buf(l->fab);
	if (!buf)
		return false;
	wire_commit_begin(&l->commit, buf, l->msg_size,
			  (uint32_t)(entries > most ? most : entries));
	l->building = true;
	if (l->ring)
		lane_stamp(l);
	return true;
}

static size_t
lane_commit_end(struct lane *l)
{
	uint64_t seq = l->seq_sent + 1;

	if (l->ring)
		return wire_deposit_end(&l->commit, seq, l->epoch);
	if (l->bare && l->commit.payload_len >= LANE_BARE_MIN)
		return wire_bare_end(&l->commit, seq, l->epoch);
	return wire_commit_end(&l->commit, seq, l->epoch);
}

void
lane_commit_send(struct lane *l)
{
	struct err e;
	size_t len;

	if (!l->building)
		return;
	l->building = false;
	len = lane_commit_end(l);
	err_clear(&e);
	if (l->delivered ? fab_lane_send_delivered(l->fab, len, &e)
			 : fab_lane_send(l->fab, len, &e)) {
		lane_fail(l, e.code, e.text);
		return;
	}
	l->seq_sent++;
	l->unanswered += len;
	l->rma_outstanding += l->delivered;
	l->deposit_due = l->ring && !l->delivered;
	lane_count(&l->counters.messages, 1);
}

bool
lane_entry(struct lane *l, enum wire_op op, uint64_t off, uint32_t len, const void *data)
{
	struct wire_entry entry = {.off = off, .len = len, .op = (uint8_t)op};
	size_t payload = data ? len : 0;

	if (l->building && !wire_commit_fits(&l->commit, payload))
		lane_commit_send(l);
	if (l->status || !lane_commit_begin(l, payload))
		return false;
	wire_commit_add(&l->commit, &entry, data);
	lane_count(&l->counters.bytes, payload);
	return true;
}

/* ---- posting ranges ---- */

static bool
lane_post_message(struct lane *l, const struct range *r)
{
	uint64_t len;

	while (l->byte_at < r->len) {
		len = r->len;
		if (len > l->limits.message_max)
			len = chunk_words(r->off + l->byte_at, r->len - l->byte_at,
					  l->limits.inline_max / 2);
		if (!lane_entry(l, WIRE_OP_COPY, r->off + l->byte_at, (uint32_t)len,
				l->mem + r->off + l->byte_at))
			return false;
		l->byte_at += len;
	}
	return true;
}

/* A range whose bytes have been written; what asks for its durability may be due. */
static bool
lane_post_written(struct lane *l, const struct range *r)
{
	enum plan_method m = lane_written_method(l);

	l->posted_by |= PLAN_BIT(m);
	l->byte_at = r->len;
	return lane_post_rma(l, r, m);
}

static bool
lane_post_range(struct lane *l, const struct range *r, enum plan_shape shape)
{
	enum plan_method m = lane_plan(l, shape, r).method;

	l->posted_by |= PLAN_BIT(m);
	if (PLAN_BIT(m) & (PLAN_BIT(PLAN_MESSAGE) | PLAN_DEPOSITS))
		return lane_post_message(l, r);
	return lane_post_rma(l, r, m);
}

bool
lane_post_settle(struct lane *l)
{
	if (!l->settle_due)
		return true;
	if (l->status || !lane_commit_begin(l, 0))
		return false;
	l->settle_due = false;
	return true;
}

static void
lane_range_next(struct lane *l)
{
	l->range_at++;
	l->byte_at = l->asked_at = 0;
}

bool
lane_post_first_set(struct lane *l, const struct rangeset *s, bool written)
{
	enum plan_shape shape = l->kind == LANE_PAIR ? PLAN_COMPOUND : PLAN_SINGLETON;

	for (; l->range_at < s->count; lane_range_next(l)) {
		const struct range *r = &s->r[l->range_at];

		if (!(written ? lane_post_written(l, r) : lane_post_range(l, r, shape)))
			return false;
	}
	return true;
}

bool
lane_post_second_range(struct lane *l)
{
	for (; l->range_at < 1; lane_range_next(l)) {
		if (!lane_post_range(l, &l->second, PLAN_COMPOUND))
			return false;
	}
	return true;
}

bool
lane_post_trim(struct lane *l)
{
	do {
		uint64_t len = chunk_len(l->second.len - l->byte_at, LANE_FLUSH_CHUNK);

		if (!lane_entry(l, WIRE_OP_TRIM, l->second.off + l->byte_at, (uint32_t)len, NULL))
			return false;
		l->byte_at += len;
	} while (l->byte_at < l->second.len);
	return true;
}
