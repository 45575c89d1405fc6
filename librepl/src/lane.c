/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_impl.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "err.h"
#include "spin.h"
#include "stall.h"

/*
 * Up to this size one message is cheaper than a write and a message: measured
 * with "replctl bench" over tcp, see docs/PERFORMANCE.md.
 */
#define LANE_MESSAGE_MAX 16384U
#define LANE_SINGLE_MAX  128U         /* the same against a write and no message */
#define LANE_STREAM_MIN  (256U << 10) /* from here on the message costs nothing any more */

#define LANE_COMMIT_MAX 65536U /* larger messages are for whole pools: fill.h */

#define LANE_SENT_MAX 8192U /* that the system surely takes at once */

struct plan_limits
lane_limits(bool rma, bool immediates, size_t msg_size)
{
	struct plan_limits lim = {.rma = rma, .can = PLAN_CAN_ALWAYS};
	size_t size = msg_size < LANE_COMMIT_MAX ? msg_size : LANE_COMMIT_MAX;

	if (immediates)
		lim.can |= PLAN_IMMEDIATE;
	lim.inline_max = size - WIRE_HEADER_SIZE - WIRE_ENTRY_SIZE;
	lim.message_max = lim.inline_max < LANE_MESSAGE_MAX ? lim.inline_max : LANE_MESSAGE_MAX;
	lim.single_max = lim.inline_max < LANE_SINGLE_MAX ? lim.inline_max : LANE_SINGLE_MAX;
	lim.stream_min = LANE_STREAM_MIN;
	return lim;
}

/* A DEPOSIT has an entry more, and nothing goes otherwise. */
static void
lane_init_ring(struct lane *l, const struct lane_setup *s)
{
	l->ring = l->limits.ring = true;
	l->stamp = s->stamp;
	l->limits.can = PLAN_DEPOSITS;
	l->limits.inline_max -= WIRE_ENTRY_SIZE;
	l->limits.message_max = l->limits.inline_max;
	l->delivered = plan_choose(l->profile, PLAN_SINGLETON, 8, &l->limits).method ==
		       PLAN_DEPOSIT_COMPLETION;
}

void
lane_init(struct lane *l, const struct lane_setup *s)
{
	memset(l, 0, sizeof(*l));
	l->fab = s->fab;
	l->profile = s->profile;
	l->regions = s->regions;
	l->limits = lane_limits(s->rma, s->imm_unit > 0, s->msg_size);
	if (fab_lane_commits(s->fab))
		l->limits.can |= PLAN_COMMITTED;
	l->limits.force = s->force;
	l->imm_unit = s->imm_unit;
	l->bare = s->bare;
	l->keyed = s->keyed;
	l->window = s->keyed && !s->rma;
	l->rma_max = s->rma_max ? s->rma_max : LANE_READ_MAX;
	if (s->stamp)
		lane_init_ring(l, s);
	l->depth = s->depth;
	l->msg_size = s->msg_size;
	l->epoch = s->epoch;
	l->busy_poll_ns = s->busy_poll_ns;
}

void
lane_bind(struct lane *l, const void *mem)
{
	l->mem = mem;
}

void
lane_watch(struct lane *l, const _Atomic int *gone)
{
	l->gone = gone;
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

/* ---- the job ---- */

/* It is done when the target has done it: a replay passes over what is to be trimmed. */
static bool
lane_settles(const struct lane *l)
{
	return l->kind == LANE_SETTLE || l->kind == LANE_WRITTEN ||
	       (l->kind == LANE_TRIM && l->second.len == 0);
}

static bool
lane_quiet(const struct lane *l)
{
	/* A DEPOSIT is complete when it is in the ring; its ACK frees the slot. */
	bool acked = l->ring && !lane_settles(l);

	return (acked || l->seq_sent == l->seq_acked) && l->rma_outstanding == 0;
}

static void
lane_phase_set(struct lane *l, enum lane_phase phase)
{
	l->phase = phase;
	l->range_at = 0;
	l->byte_at = l->asked_at = 0;
}

/* Methods by which the target's CPU makes durable what it was asked for, in its turn. */
#define BY_CPU (PLAN_BIT(PLAN_MESSAGE) | PLAN_BIT(PLAN_GENERAL) | PLAN_BIT(PLAN_WRITE_IMM))

/* What keeps the second behind the first. */
enum lane_order {
	ORDER_NONE,    /* there is no first, or it is durable */
	ORDER_BARRIER, /* the target's CPU, which does both */
	ORDER_LANE,    /* the lane: written in order is durable in order */
	ORDER_WAIT,    /* nothing but waiting for the first's durability */
};

static enum lane_order
lane_order(const struct lane *l)
{
	enum plan_method m = l->kind == LANE_PAIR ? l->second_plan.method : PLAN_MESSAGE;

	/* A replay takes a lane's messages in their order, and none behind a gap. */
	if (l->ring)
		return lane_drains(l) || !l->posted_by ? ORDER_NONE : ORDER_BARRIER;
	if (lane_drains(l) || (!l->building && !l->read_due && lane_quiet(l)))
		return ORDER_NONE;
	/* No barrier holds RMA back, and none knows of what the CPU has no part in. */
	if (m == PLAN_MESSAGE)
		return l->posted_by & ~BY_CPU ? ORDER_WAIT : ORDER_BARRIER;
	return l->posted_by == PLAN_BIT(m) && !l->second_plan.waits ? ORDER_LANE : ORDER_WAIT;
}

static bool
lane_post_first(struct lane *l)
{
	if (l->phase == LANE_POST_WRITTEN) {
		if (!lane_post_first_set(l, &l->written, true))
			return false;
		lane_phase_set(l, LANE_POST_FIRST);
	}
	if (l->kind != LANE_WRITTEN && !lane_post_first_set(l, &l->todo, false))
		return false;
	if (!lane_post_settle(l))
		return false;
	return lane_order(l) == ORDER_LANE || lane_post_read(l);
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
	if (l->kind == LANE_TRIM)
		return lane_post_trim(l);
	return lane_post_second_range(l) && lane_post_read(l);
}

static void
lane_first_posted(struct lane *l)
{
	enum lane_order order = lane_order(l);

	if (l->kind != LANE_WRITTEN)
		rangeset_clear(&l->todo);
	rangeset_clear(&l->written);
	l->written_by = 0;
	if (lane_drains(l)) {
		lane_commit_send(l);
		lane_phase_set(l, LANE_AWAIT);
	} else if (order == ORDER_WAIT) {
		lane_commit_send(l);
		lane_phase_set(l, LANE_AWAIT_FIRST);
	} else {
		l->barrier_due = order == ORDER_BARRIER;
		lane_phase_set(l, LANE_POST_SECOND);
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
	case LANE_REGISTER:
		if (lane_region_ready(l, l->second.off))
			lane_phase_set(l, LANE_IDLE);
		break;
	case LANE_FETCH:
		if (lane_fetch_post(l))
			lane_phase_set(l, LANE_AWAIT);
		break;
	case LANE_APPEND:
		if (lane_append_post(l))
			lane_phase_set(l, LANE_AWAIT);
		break;
	case LANE_AWAIT:
		if (lane_post_deposit_read(l) && lane_quiet(l))
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
	l->deposit_due = false;
	l->settle_due = l->ring && (kind == LANE_SETTLE || kind == LANE_WRITTEN);
	l->posted_by = 0;
	if (kind == LANE_PAIR)
		l->second_plan = lane_plan(l, PLAN_COMPOUND, &l->second);
	lane_phase_set(l, LANE_POST_WRITTEN);
	while (lane_pump(l))
		;
}

static bool
lane_stage_refused(struct lane *l, const struct wire_ack *ack)
{
	if (!l->stages || ack->status != REPL_E_NOSPC)
		return false;
	l->full = true;
	return true;
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
	if (!lane_append_acked(l, &ack) && !lane_stage_refused(l, &ack) && ack.status) {
		(void)err_set(&e, ack.status, "the target refused an update: %s",
			      repl_strstatus(ack.status));
		lane_fail(l, e.code, e.text);
	} else if (ack.seq != l->seq_acked + 1 || ack.seq > l->seq_sent || ack.epoch != l->epoch) {
		lane_fail(l, REPL_E_PROTOCOL, "the target acknowledged what was not sent");
	} else if (ack.has_place != lane_append_done(l, &ack)) {
		lane_fail(l, REPL_E_PROTOCOL,
			  "the target told a place where none was due, or none");
	} else if (ack.has_key != lane_key_due(l, &ack)) {
		lane_fail(l, REPL_E_PROTOCOL, "the target told a key where none was due, or none");
	} else {
		l->seq_acked = ack.seq;
		if (l->seq_acked == l->seq_sent)
			l->unanswered = 0;
		lane_region_acked(l, &ack);
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
	case FAB_SENT:
		if (l->rma_outstanding > 0)
			l->rma_outstanding--;
		break;
	default:
		lane_fail(l, REPL_E_LOST, ev.text);
		return true;
	}
	lane_count(&l->counters.events, 1);
	return true;
}

/*
 * Lost, or given up by somebody else. What others store once that is recorded must not get there:
 * who has looked before is stopped by remote_cut().
 */
static bool
lane_over(struct lane *l)
{
	int gone = l->gone ? atomic_load_explicit(l->gone, memory_order_acquire) : 0;

	if (gone)
		lane_fail(l, gone, "the replica was given up meanwhile");
	return l->status != 0;
}

bool
lane_step(struct lane *l)
{
	bool any = false;

	/* What is at hand, not what may be: looking once more costs a system call. */
	do {
		if (lane_over(l) || !lane_take_event(l))
			break;
		any = true;
	} while (fab_lane_more(l->fab));
	while (!lane_over(l) && lane_pump(l))
		any = true;
	return any;
}

bool
lane_posted(const struct lane *l)
{
	return l->status || l->phase == LANE_IDLE || l->phase == LANE_AWAIT;
}

bool
lane_only_answers(const struct lane *l)
{
	return (l->phase == LANE_AWAIT || l->phase == LANE_IDLE) && !l->building &&
	       !l->deposit_due && l->rma_outstanding == 0 && l->unanswered <= LANE_SENT_MAX;
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

void
lane_register(struct lane *l, uint64_t off)
{
	if (l->status)
		return;
	l->second = (struct range){.off = off};
	lane_phase_set(l, LANE_REGISTER);
	while (lane_pump(l))
		;
}

void
lane_append(struct lane *l, uint64_t word_off, uint64_t limit, const void *data, uint32_t len)
{
	if (l->status)
		return;
	l->append = (struct lane_append){
		.word_off = word_off, .limit = limit, .data = data, .len = len};
	lane_phase_set(l, LANE_APPEND);
	while (lane_pump(l))
		;
}

int
lane_fetch(struct lane *l, void *dst, uint64_t off, uint64_t len)
{
	if (l->status)
		return l->status;
	l->fetch = (struct lane_fetch){.dst = dst, .off = off, .len = (uint32_t)len};
	lane_phase_set(l, LANE_FETCH);
	while (lane_pump(l))
		;
	return l->status;
}

int
lane_read(struct lane *l, void *dst, uint64_t off, uint64_t len)
{
	struct err e;

	if (l->status)
		return l->status;
	if (l->window)
		return lane_fetch(l, dst, off, len);
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

/* Those that somebody has given up meanwhile need no waiting for; true if there was one. */
static bool
lanes_look(struct lane **lanes, unsigned count)
{
	bool any = false;

	for (unsigned i = 0; i < count; i++)
		any |= lane_over(lanes[i]);
	return any;
}

/*
 * Sleep until the deadline or an event that matters. Where all must come to their end and nothing
 * but answers is awaited the last one that was begun is enough to sleep on: the others' are there
 * when it wakes us, and each would have cost a wake-up. Should one of them be lost it is
 * seen by the next look, in a moment.
 */
static void
lanes_sleep(struct lane **waiting, unsigned n, bool any, uint64_t deadline_ns)
{
	struct fab_lane *fabs[REPL_LANES_MAX];
	unsigned first = any ? 0 : n - 1;

	for (unsigned i = 0; i < n; i++) {
		fabs[i] = waiting[i]->fab;
		if (!lane_only_answers(waiting[i]))
			first = 0;
	}
	fab_lanes_wait(fabs + first, n - first, -1, deadline_ns);
}

static uint64_t
earlier(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/*
 * Run until all of them have come so far, or any; *waiting gets those that have not by the
 * deadline; how many. *held_ns: what of the time was this machine's.
 */
static unsigned
lanes_run_by(struct lane **lanes, unsigned count, bool any, bool (*until)(const struct lane *),
	     uint64_t deadline_ns, struct lane **waiting, uint64_t *held_ns)
{
	/* Whether cores are scarce is known from earlier calls. */
	static _Thread_local struct spin spin;
	uint64_t poll_ns = count > 0 ? lanes[0]->busy_poll_ns : 0;
	uint64_t since_ns = clock_now_ns(), now_ns, look_ns;
	unsigned n;

	*held_ns = 0;
	spin_reset(&spin);
	for (;;) {
		bool moved = lanes_turn(lanes, count, until, waiting, &n);

		if (n == 0 || (any && n < count))
			return 0;
		if (!moved && spin_again_for_answer(&spin, poll_ns))
			continue;
		now_ns = clock_now_ns();
		*held_ns += lane_held_ns(since_ns, now_ns);
		since_ns = now_ns;
		if (moved) {
			spin_answered(&spin, poll_ns);
			continue;
		}
		if (lanes_look(waiting, n))
			continue;
		if (now_ns >= deadline_ns)
			return n;
		look_ns = earlier(now_ns + LANE_LOOK_MS * NS_PER_MS, deadline_ns);
		lanes_sleep(waiting, n, any, look_ns);
		since_ns = earlier(clock_now_ns(), look_ns);
	}
}

static void
lanes_give_up(struct lane **waiting, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		lane_fail(waiting[i], REPL_E_TIMEOUT, "the target did not answer in time");
}

void
lanes_run(struct lane **lanes, unsigned count, bool (*until)(const struct lane *),
	  uint64_t deadline_ns)
{
	struct lane *waiting[REPL_LANES_MAX];
	uint64_t held_ns;
	unsigned n;

	do {
		n = lanes_run_by(lanes, count, false, until, deadline_ns, waiting, &held_ns);
		deadline_ns += held_ns;
	} while (n > 0 && held_ns > 0);
	lanes_give_up(waiting, n);
}

bool
lane_run_for_now(struct lane *lane, bool (*until)(const struct lane *), uint64_t deadline_ns)
{
	struct lane *waiting[1];
	uint64_t held_ns;

	return lanes_run_by(&lane, 1, false, until, deadline_ns, waiting, &held_ns) == 0;
}

static uint64_t
lanes_events(struct lane **lanes, unsigned count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += atomic_load(&lanes[i]->counters.events);
	return sum;
}

int
lanes_run_while_moving(struct lane **lanes, unsigned count, bool (*until)(const struct lane *),
		       uint64_t stall_ns, const struct breath *breath, struct err *e)
{
	uint64_t now_ns = clock_now_ns();
	struct stall stall = stall_begin(stall_ns, now_ns);
	struct lane *waiting[REPL_LANES_MAX];
	int rc = 0;

	while (!rc) {
		uint64_t events = lanes_events(lanes, count), held_ns;
		unsigned n = lanes_run_by(lanes, count, true, until, now_ns + BREATH_NS, waiting,
					  &held_ns);

		if (n == 0)
			return 0;
		now_ns = clock_now_ns();
		if (events != lanes_events(lanes, count))
			stall_moved(&stall, now_ns);
		if (stall_over(&stall, lanes[0]->fab, now_ns)) {
			lanes_give_up(waiting, n);
			return 0;
		}
		rc = breath_take(breath, e);
		now_ns = clock_now_ns();
	}
	return rc;
}

int
lane_run_while_moving(struct lane *lane, bool (*until)(const struct lane *), uint64_t stall_ns,
		      const struct breath *breath, struct err *e)
{
	return lanes_run_while_moving(&lane, 1, until, stall_ns, breath, e);
}
