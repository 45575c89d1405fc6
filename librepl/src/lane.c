/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "err.h"
#include "spin.h"

/*
 * Up to this size one message is cheaper than a write and a message: measured
 * with "replctl bench" over tcp, see docs/PERFORMANCE.md.
 */
#define LANE_MESSAGE_MAX 16384U

#define LANE_RMA_CHUNK   (1U << 20) /* one RMA operation */
#define LANE_FLUSH_CHUNK (1U << 30) /* one FLUSH entry; its length has 32 bits */

struct plan_limits
lane_limits(bool rma, size_t msg_size)
{
	struct plan_limits lim = {.rma = rma};

	lim.inline_max = msg_size - WIRE_HEADER_SIZE - WIRE_ENTRY_SIZE;
	lim.message_max = lim.inline_max < LANE_MESSAGE_MAX ? lim.inline_max : LANE_MESSAGE_MAX;
	return lim;
}

void
lane_init(struct lane *l, const struct lane_setup *s)
{
	memset(l, 0, sizeof(*l));
	l->fab = s->fab;
	l->profile = s->profile;
	l->limits = lane_limits(s->rma, s->msg_size);
	l->depth = s->depth;
	l->msg_size = s->msg_size;
	l->epoch = s->epoch;
}

void
lane_bind(struct lane *l, const void *mem)
{
	l->mem = mem;
}

void
lane_fail(struct lane *l, int status, const char *why)
{
	if (l->status)
		return;
	l->status = status;
	(void)snprintf(l->why, sizeof(l->why), "%.*s", (int)sizeof(l->why) - 1, why);
	l->building = false;
	l->phase = LANE_IDLE;
}

static void
lane_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- RMA ---- */

static enum plan_method
lane_method(const struct lane *l, uint64_t len)
{
	return plan_choose(l->profile, PLAN_SINGLETON, len, &l->limits).method;
}

/* Post one chunk of a range; false if there is no room or the lane is lost. */
static bool
lane_write_chunk(struct lane *l, uint64_t off, uint64_t len)
{
	struct err e;

	if (fab_lane_rma_room(l->fab) == 0)
		return false;
	err_clear(&e);
	if (fab_lane_write(l->fab, l->mem + off, len, off, &e)) {
		lane_fail(l, e.code, e.text);
		return false;
	}
	l->rma_outstanding++;
	lane_count(&l->counters.writes, 1);
	lane_count(&l->counters.bytes, len);
	return true;
}

static uint64_t
chunk_len(uint64_t left, uint64_t max)
{
	return left < max ? left : max;
}

int
lane_flush(struct lane *l, uint64_t off, uint64_t len)
{
	uint64_t chunks = (len + LANE_RMA_CHUNK - 1) / LANE_RMA_CHUNK;

	if (l->status)
		return 0;
	if (l->phase != LANE_IDLE || lane_method(l, len) == PLAN_MESSAGE ||
	    chunks > fab_lane_rma_room(l->fab) || l->written.count == RANGESET_MAX)
		return rangeset_add(&l->todo, off, len);
	for (uint64_t at = 0; at < len && !l->status; at += LANE_RMA_CHUNK)
		(void)lane_write_chunk(l, off + at, chunk_len(len - at, LANE_RMA_CHUNK));
	return rangeset_add(&l->written, off, len);
}

/* ---- building and sending COMMITs ---- */

/* The entries reserved leave room for the payload of the first, at most inline_max. */
static bool
lane_commit_begin(struct lane *l, size_t payload)
{
	size_t ranges = (size_t)l->todo.count + l->written.count + 2;
	size_t entries = ranges > WIRE_ENTRIES_MAX ? WIRE_ENTRIES_MAX : ranges;
	size_t half = l->msg_size / 2 / WIRE_ENTRY_SIZE;
	size_t room = (l->msg_size - WIRE_HEADER_SIZE - payload) / WIRE_ENTRY_SIZE;
	size_t most = half < room ? half : room;
	uint8_t *buf;

	if (l->building)
		return true;
	if (l->seq_sent - l->seq_acked >= l->depth)
		return false;
	buf = fab_lane_buf(l->fab);
	if (!buf)
		return false;
	wire_commit_begin(&l->commit, buf, l->msg_size,
			  (uint32_t)(entries > most ? most : entries));
	l->building = true;
	return true;
}

static void
lane_commit_send(struct lane *l)
{
	struct err e;
	size_t len;

	if (!l->building)
		return;
	l->building = false;
	len = wire_commit_end(&l->commit, l->seq_sent + 1, l->epoch);
	err_clear(&e);
	if (fab_lane_send(l->fab, len, &e)) {
		lane_fail(l, e.code, e.text);
		return;
	}
	l->seq_sent++;
	lane_count(&l->counters.messages, 1);
}

/* Append one entry, sending a full COMMIT first; false if it must wait. */
static bool
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
			len = chunk_len(r->len - l->byte_at, l->limits.inline_max / 2);
		if (!lane_entry(l, WIRE_OP_COPY, r->off + l->byte_at, (uint32_t)len,
				l->mem + r->off + l->byte_at))
			return false;
		l->byte_at += len;
	}
	return true;
}

/* Write what is not yet written of a range, and see to its durability piece by piece. */
static bool
lane_post_rma(struct lane *l, const struct range *r)
{
	bool appliance = lane_method(l, r->len) == PLAN_APPLIANCE;

	while (l->asked_at < r->len) {
		uint64_t end = l->asked_at + chunk_len(r->len - l->asked_at, LANE_FLUSH_CHUNK);

		while (l->byte_at < end) {
			uint64_t len = chunk_len(end - l->byte_at, LANE_RMA_CHUNK);

			if (!lane_write_chunk(l, r->off + l->byte_at, len))
				return false;
			l->byte_at += len;
		}
		if (appliance) {
			l->read_due = true;
			l->read_off = r->off;
		} else if (!lane_entry(l, WIRE_OP_FLUSH, r->off + l->asked_at,
				       (uint32_t)(end - l->asked_at), NULL)) {
			return false;
		}
		l->asked_at = end;
	}
	return true;
}

/* Post the ranges of a set from range_at on; written ones need only the asking. */
static bool
lane_post_set(struct lane *l, const struct range *r, unsigned count, bool written)
{
	while (l->range_at < count) {
		const struct range *one = &r[l->range_at];

		if (written)
			l->byte_at = one->len;
		if (written || lane_method(l, one->len) != PLAN_MESSAGE) {
			if (!lane_post_rma(l, one))
				return false;
		} else if (!lane_post_message(l, one)) {
			return false;
		}
		l->range_at++;
		l->byte_at = l->asked_at = 0;
	}
	return true;
}

/* The appliance's read: it pushes all writes before it into the domain. */
static bool
lane_post_read(struct lane *l)
{
	struct err e;

	if (!l->read_due)
		return true;
	if (fab_lane_rma_room(l->fab) == 0)
		return false;
	err_clear(&e);
	if (fab_lane_read(l->fab, l->scratch, 1, l->read_off, &e)) {
		lane_fail(l, e.code, e.text);
		return false;
	}
	l->rma_outstanding++;
	l->read_due = false;
	l->read_posted = true;
	lane_count(&l->counters.reads, 1);
	return true;
}

/* ---- the job ---- */

static bool
lane_quiet(const struct lane *l)
{
	return l->seq_sent == l->seq_acked && l->rma_outstanding == 0;
}

static void
lane_phase_set(struct lane *l, enum lane_phase phase)
{
	l->phase = phase;
	l->range_at = 0;
	l->byte_at = l->asked_at = 0;
}

static bool
lane_post_first(struct lane *l)
{
	if (l->phase == LANE_POST_WRITTEN) {
		if (!lane_post_set(l, l->written.r, l->written.count, true))
			return false;
		lane_phase_set(l, LANE_POST_FIRST);
	}
	if (!lane_post_set(l, l->todo.r, l->todo.count, false) || !lane_post_read(l))
		return false;
	return true;
}

/*
 * Whether the second may follow in the same message behind a BARRIER. Not if
 * it goes by RMA, which no barrier holds back, and not if the first rests on
 * the appliance's read, which the target's CPU knows nothing of.
 */
static bool
lane_second_follows(const struct lane *l)
{
	if (l->read_posted)
		return false;
	return l->kind == LANE_ATOMIC8 || lane_method(l, l->second.len) == PLAN_MESSAGE;
}

static bool
lane_post_second(struct lane *l)
{
	if (l->barrier_due) {
		if (!lane_entry(l, WIRE_OP_BARRIER, 0, 0, NULL))
			return false;
		l->barrier_due = false;
	}
	if (l->kind == LANE_ATOMIC8)
		return lane_entry(l, WIRE_OP_ATOMIC8, l->second.off, 8, l->mem + l->second.off);
	return lane_post_set(l, &l->second, 1, false) && lane_post_read(l);
}

static void
lane_first_posted(struct lane *l)
{
	bool any = l->building || !lane_quiet(l);

	rangeset_clear(&l->todo);
	rangeset_clear(&l->written);
	if (l->kind == LANE_DRAIN) {
		lane_commit_send(l);
		lane_phase_set(l, LANE_AWAIT);
	} else if (!any || lane_second_follows(l)) {
		l->barrier_due = any;
		lane_phase_set(l, LANE_POST_SECOND);
	} else {
		lane_commit_send(l);
		lane_phase_set(l, LANE_AWAIT_FIRST);
	}
}

/* Post what can be posted; true if the phase changed. */
static bool
lane_pump(struct lane *l)
{
	enum lane_phase before = l->phase;

	switch (l->phase) {
	case LANE_IDLE:
		break;
	case LANE_POST_WRITTEN:
	case LANE_POST_FIRST:
		if (lane_post_first(l))
			lane_first_posted(l);
		break;
	case LANE_AWAIT_FIRST:
		if (lane_quiet(l))
			lane_phase_set(l, LANE_POST_SECOND);
		break;
	case LANE_POST_SECOND:
		if (lane_post_second(l)) {
			lane_commit_send(l);
			lane_phase_set(l, LANE_AWAIT);
		}
		break;
	case LANE_AWAIT:
		if (lane_quiet(l))
			lane_phase_set(l, LANE_IDLE);
		break;
	}
	/* A COMMIT that waits for room for writes goes out: the target may begin. */
	if (l->building && !l->status && l->phase == before && fab_lane_rma_room(l->fab) == 0)
		lane_commit_send(l);
	return l->phase != before;
}

void
lane_begin(struct lane *l, enum lane_kind kind, uint64_t off, uint64_t len)
{
	if (l->status)
		return;
	l->kind = kind;
	l->second = (struct range){.off = off, .len = len};
	l->barrier_due = false;
	l->read_due = false;
	l->read_posted = false;
	lane_phase_set(l, LANE_POST_WRITTEN);
	while (lane_pump(l))
		;
}

static void
lane_on_ack(struct lane *l, const struct fab_event *ev)
{
	struct wire_ack ack;
	struct err e;

	err_clear(&e);
	if (wire_ack_decode(ev->data, ev->len, &ack, &e)) {
		lane_fail(l, e.code, e.text);
		return;
	}
	fab_lane_repost(l->fab, ev->slot);
	if (ack.status) {
		(void)err_set(&e, ack.status, "the target refused an update: %s",
			      repl_strstatus(ack.status));
		lane_fail(l, e.code, e.text);
	} else if (ack.seq != l->seq_acked + 1 || ack.seq > l->seq_sent || ack.epoch != l->epoch) {
		lane_fail(l, REPL_E_PROTOCOL, "the target acknowledged what was not sent");
	} else {
		l->seq_acked = ack.seq;
	}
}

static bool
lane_take_event(struct lane *l)
{
	struct fab_event ev;

	fab_lane_poll(l->fab, &ev);
	switch (ev.type) {
	case FAB_NONE:
		return false;
	case FAB_RECV:
		lane_on_ack(l, &ev);
		break;
	case FAB_WRITTEN:
	case FAB_READ:
		if (l->rma_outstanding > 0)
			l->rma_outstanding--;
		break;
	default:
		lane_fail(l, REPL_E_LOST, ev.text);
		break;
	}
	return true;
}

bool
lane_step(struct lane *l)
{
	bool any = false;

	/* What is at hand, not what may be: looking once more costs a system call. */
	do {
		if (l->status || !lane_take_event(l))
			break;
		any = true;
	} while (fab_lane_more(l->fab));
	while (!l->status && lane_pump(l))
		any = true;
	return any;
}

bool
lane_posted(const struct lane *l)
{
	return l->status || l->phase == LANE_IDLE || l->phase == LANE_AWAIT;
}

bool
lane_done(const struct lane *l)
{
	return l->status || l->phase == LANE_IDLE;
}

bool
lane_has_room(const struct lane *l)
{
	return l->status || fab_lane_rma_room(l->fab) > 0;
}

int
lane_read(struct lane *l, void *dst, uint64_t off, uint64_t len)
{
	struct err e;

	if (l->status)
		return l->status;
	err_clear(&e);
	if (fab_lane_read(l->fab, dst, len, off, &e)) {
		lane_fail(l, e.code, e.text);
		return l->status;
	}
	l->rma_outstanding++;
	l->phase = LANE_AWAIT;
	lane_count(&l->counters.reads, 1);
	return 0;
}

/* One turn over the lanes that have not come far enough; *waiting gets those. */
static bool
lanes_turn(struct lane **lanes, unsigned count, bool (*until)(const struct lane *),
	   struct lane **waiting, unsigned *waiting_count)
{
	bool any = false;

	*waiting_count = 0;
	for (unsigned i = 0; i < count; i++) {
		if (until(lanes[i]))
			continue;
		any |= lane_step(lanes[i]);
		if (!until(lanes[i]))
			waiting[(*waiting_count)++] = lanes[i];
	}
	return any;
}

/* Run until the deadline; stall_ns, if not 0, moves it on whenever something happens. */
static void
lanes_run_by(struct lane **lanes, unsigned count, bool (*until)(const struct lane *),
	     uint64_t deadline_ns, uint64_t stall_ns)
{
	struct lane *waiting[REPL_TARGETS_MAX];
	struct fab_lane *fabs[REPL_TARGETS_MAX];
	struct spin spin = {0};
	unsigned n;

	for (;;) {
		bool any = lanes_turn(lanes, count, until, waiting, &n);

		if (n == 0)
			return;
		if (any) {
			spin_reset(&spin);
			if (stall_ns)
				deadline_ns = clock_now_ns() + stall_ns;
			continue;
		}
		if (spin_again(&spin))
			continue;
		if (clock_now_ns() >= deadline_ns)
			break;
		for (unsigned i = 0; i < n; i++)
			fabs[i] = waiting[i]->fab;
		fab_lanes_wait(fabs, n, -1, deadline_ns);
	}
	for (unsigned i = 0; i < n; i++)
		lane_fail(waiting[i], REPL_E_TIMEOUT, "the target did not answer in time");
}

void
lanes_run(struct lane **lanes, unsigned count, bool (*until)(const struct lane *),
	  uint64_t deadline_ns)
{
	lanes_run_by(lanes, count, until, deadline_ns, 0);
}

void
lane_run_while_moving(struct lane *lane, bool (*until)(const struct lane *), uint64_t stall_ns)
{
	lanes_run_by(&lane, 1, until, clock_now_ns() + stall_ns, stall_ns);
}
