/* SPDX-License-Identifier: BSD-3-Clause */
#include "repl_lanes.h"

#include <time.h>

#include "clock.h"
#include "forks.h"
#include "hold.h"
#include "pending.h"
#include "ship.h"
#include "words.h"

#define LANE_PAUSE_NS     50000U
#define LANE_PAUSE_NS_MAX NS_PER_MS

int
handle_check(const struct repl *r, struct err *e)
{
	if (!r)
		return err_set(e, REPL_E_INVAL, "no handle: it is NULL");
	if (r->forks == forks_count())
		return 0;
	return err_set(e, REPL_E_INVAL,
		       "the handle is of the process that has forked this one: all that is of use "
		       "here is repl_abandon()");
}

int
handle_abandoned(struct err *e)
{
	return err_set(e, REPL_E_LOST,
		       "the replicas are lost: their connections are of the process that has "
		       "forked this one");
}

int
range_check(const struct repl *r, size_t off, size_t len, struct err *e)
{
	size_t size;

	if (handle_check(r, e))
		return e->code;
	size = atomic_load_explicit(&r->size, memory_order_acquire);
	if (off > size || len > size - off)
		return err_set(e, REPL_E_INVAL,
			       "range of %zu bytes at %zu is outside the pool of %zu bytes", len,
			       off, size);
	return 0;
}

enum { LANE_FREE, LANE_ENTERED, LANE_BORROWED };

static bool
lane_try(struct lane_slot *slot, int as)
{
	int expected = LANE_FREE;

	return atomic_compare_exchange_strong_explicit(&slot->busy, &expected, as,
						       memory_order_acquire, memory_order_relaxed);
}

/* A call may be in the lane for as long as a target that hangs is waited for. */
static void
lane_pause(uint64_t waited_ns)
{
	uint64_t ns = waited_ns / 16;

	if (ns < LANE_PAUSE_NS)
		ns = LANE_PAUSE_NS;
	if (ns > LANE_PAUSE_NS_MAX)
		ns = LANE_PAUSE_NS_MAX;
	(void)nanosleep(&(const struct timespec){.tv_nsec = (long)ns}, NULL);
}

int
lane_enter(struct repl *r, unsigned lane, struct err *e)
{
	struct calltime t = {0};
	struct lane_slot *slot;
	uint64_t now_ns;

	if (handle_check(r, e))
		return e->code;
	if (lane >= r->lane_count)
		return err_set(e, REPL_E_INVAL, "lane %u of %u", lane, r->lane_count);
	slot = &r->slots[lane];
	for (;;) {
		if (atomic_load_explicit(&slot->wanted, memory_order_relaxed) == 0 &&
		    lane_try(slot, LANE_ENTERED))
			return 0;
		if (atomic_load_explicit(&slot->busy, memory_order_relaxed) == LANE_ENTERED)
			break;
		now_ns = clock_now_ns();
		if (t.begin_ns == 0)
			t = call_begin(r, now_ns);
		if (now_ns >= call_end(r, &t))
			break;
		hold_waited(r, now_ns - t.begin_ns);
		lane_pause(now_ns - t.begin_ns);
	}
	return err_set(e, REPL_E_BUSY, "lane %u is in use by another thread", lane);
}

void
lane_want(struct repl *r, unsigned lane, bool wanted)
{
	if (wanted)
		(void)atomic_fetch_add(&r->slots[lane].wanted, 1);
	else
		(void)atomic_fetch_sub(&r->slots[lane].wanted, 1);
}

bool
lane_borrow(struct repl *r, unsigned lane, uint64_t deadline_ns)
{
	struct lane_slot *slot = &r->slots[lane];
	uint64_t begin_ns, now_ns;
	bool got;

	if (deadline_ns == 0)
		return atomic_load(&slot->wanted) == 0 && lane_try(slot, LANE_BORROWED);
	lane_want(r, lane, true);
	begin_ns = clock_now_ns();
	while (!(got = lane_try(slot, LANE_BORROWED)) && (now_ns = clock_now_ns()) < deadline_ns)
		lane_pause(now_ns - begin_ns);
	lane_want(r, lane, false);
	return got;
}

bool
lane_borrow_call(struct repl *r, unsigned lane, const struct calltime *t)
{
	struct lane_slot *slot = &r->slots[lane];
	uint64_t now_ns;
	bool got;

	lane_want(r, lane, true);
	while (!(got = lane_try(slot, LANE_BORROWED)) &&
	       (now_ns = clock_now_ns()) < call_end(r, t)) {
		hold_waited(r, now_ns - t->begin_ns);
		lane_pause(now_ns - t->begin_ns);
	}
	lane_want(r, lane, false);
	return got;
}

void
lane_leave(struct repl *r, unsigned lane)
{
	atomic_store_explicit(&r->slots[lane].busy, LANE_FREE, memory_order_release);
}

int
lane_lend(struct repl *r, unsigned lane)
{
	int as = atomic_load_explicit(&r->slots[lane].busy, memory_order_relaxed);

	lane_leave(r, lane);
	return as;
}

/* Whoever has it gives it back by a deadline of his own; in a child that comes back nobody has. */
void
lane_again(struct repl *r, unsigned lane, int lent)
{
	struct lane_slot *slot = &r->slots[lane];
	uint64_t begin_ns = clock_now_ns();

	while (!r->abandoned && (atomic_load_explicit(&slot->wanted, memory_order_relaxed) > 0 ||
				 !lane_try(slot, lent))) {
		uint64_t waited_ns = clock_now_ns() - begin_ns;

		hold_waited(r, waited_ns);
		lane_pause(waited_ns);
	}
}

struct lane *
lane_of(struct repl *r, unsigned replica, unsigned lane)
{
	struct replica *p = &r->replicas[replica];

	/* In this order: the remote of a lost one may be taken away. */
	if (atomic_load_explicit(&p->lost, memory_order_acquire) || ship_serves(r->ship, replica))
		return NULL;
	return remote_lane(p->remote, lane);
}

void
lanes_due(struct repl *r, unsigned lane, enum lane_kind kind, const struct rangeset *first,
	  const struct range *second)
{
	struct lane_slot *slot = &r->slots[lane];

	slot->ship_due = r->ship != NULL;
	slot->ship_kind = kind;
	slot->ship_first = first;
	slot->ship_second = *second;
	slot->ship_behind = NULL;
}

void
lanes_due_behind(struct repl *r, unsigned lane, const struct rangeset *first,
		 const struct repl_behind *behind)
{
	lanes_due(r, lane, LANE_ATOMIC8, first, &behind->b);
	r->slots[lane].ship_behind = behind;
}

bool
lanes_store_queued(const struct repl *r)
{
	return r->ship && r->cfg->ack != ACK_ALL;
}

int
lanes_ship(struct repl *r, unsigned lane, uint64_t begin_ns, uint64_t latest_ns, struct err *e)
{
	struct lane_slot *slot = &r->slots[lane];
	int rc = 0;

	if (slot->ship_due)
		rc = ship_post(r->ship, slot->ship_first, slot->ship_kind, &slot->ship_second,
			       slot->ship_behind, begin_ns, latest_ns, &slot->shipped, e);
	slot->ship_due &= rc != 0;
	return rc;
}

/* They can't be given what this call acknowledges: their maps are to have it. */
static void
lanes_lose_queued(struct repl *r, int status, const char *why, uint64_t end_ns)
{
	struct repl_loss losses[REPL_TARGETS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < r->replica_count; i++) {
		if (ship_serves(r->ship, i))
			losses[n++] =
				(struct repl_loss){.replica = i, .status = status, .why = why};
	}
	repl_lose_all(r, losses, n, end_ns);
}

const struct rangeset *
lanes_ship_first(struct repl *r, unsigned lane, const struct rangeset *first, uint64_t begin_ns)
{
	static const struct rangeset nothing;
	static const struct range none;
	struct err e;

	if (!lanes_store_queued(r))
		return first;
	err_clear(&e);
	lanes_due(r, lane, LANE_DRAIN, first, &none);
	if (lanes_ship(r, lane, begin_ns, UINT64_MAX, &e))
		lanes_lose_queued(r, e.code, e.text,
				  begin_ns + (uint64_t)r->cfg->op_timeout_ms * NS_PER_MS);
	return &nothing;
}

/*
 * Last, so that a queued replica's lag takes nothing from the time that the others'
 * answers have. False: too few have it.
 */
static bool
lanes_await_shipped(struct repl *r, unsigned lane, uint64_t begin_ns, uint64_t latest_ns)
{
	struct lane_slot *slot = &r->slots[lane];
	uint64_t end_ns = begin_ns + (uint64_t)r->cfg->op_timeout_ms * NS_PER_MS;
	struct shipment *m;
	struct err e;

	if (!r->ship)
		return true;
	err_clear(&e);
	if (lanes_ship(r, lane, begin_ns, latest_ns, &e)) {
		/* The pool is to have it all the same. */
		if (slot->ship_behind)
			repl_behind_store(r, slot->ship_behind);
		lanes_lose_queued(r, e.code, e.text, end_ns);
	}
	m = slot->shipped;
	slot->shipped = NULL;
	slot->shipped_number = m ? m->number : 0;
	slot->ship_due = false;
	slot->ship_behind = NULL;
	return m ? ship_await(r->ship, m, begin_ns, latest_ns) : ship_enough(r->ship);
}

/* A loss is recorded before the call returns, also of a replica that it did not need. */
static void
lanes_await_recorded(struct repl *r)
{
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (atomic_load(&r->replicas[i].lost)) {
			repl_await_recorded(r);
			return;
		}
	}
}

/* lost: one that is, or replica_count if only too few of the queued ones are left. */
static int
lanes_report_lost(struct repl *r, unsigned lost, struct err *e)
{
	/* The child of a handler, whose parent's threads may have any lock. */
	if (r->abandoned)
		return handle_abandoned(e);
	if (lost == r->replica_count)
		return ship_few(r->ship, e);
	if (!repl_reason_lock(r))
		return handle_abandoned(e);
	(void)err_set(e, REPL_E_LOST, "replica %u is lost: %s", lost, r->replicas[lost].reason);
	pthread_mutex_unlock(&r->reason_lock);
	return e->code;
}

uint64_t
lanes_end(const struct repl *r, uint64_t end_ns)
{
	return clock_now_ns() < end_ns ? end_ns
				       : clock_deadline(r->cfg->op_timeout_ms / REPL_TELL_SHARE);
}

uint64_t
lanes_begin(struct repl *r, unsigned lane, enum lane_kind kind, const struct range *also)
{
	uint64_t since_ns = clock_now_ns();

	for (unsigned i = 0; i < r->replica_count; i++) {
		struct lane *l = lane_of(r, i, lane);

		if (l)
			lane_begin(l, kind, also->off, also->len);
	}
	return lane_held_ns(since_ns, clock_now_ns());
}

int
lanes_finish_by(struct repl *r, unsigned lane, bool (*until)(const struct lane *),
		uint64_t begin_ns, uint64_t latest_ns, struct err *e)
{
	struct lane *lanes[REPL_TARGETS_MAX];
	struct repl_loss losses[REPL_TARGETS_MAX];
	unsigned index[REPL_TARGETS_MAX], n = 0, lost = r->replica_count, lost_count = 0;
	uint64_t all_ns = (uint64_t)r->cfg->op_timeout_ms * NS_PER_MS;
	uint64_t end_ns = begin_ns + all_ns - all_ns / 4;
	uint64_t least_ns = clock_deadline(r->cfg->op_timeout_ms / REPL_TELL_SHARE);
	bool enough;

	least_ns = least_ns < latest_ns ? least_ns : latest_ns;
	for (unsigned i = 0; i < r->replica_count; i++) {
		struct lane *l = lane_of(r, i, lane);

		if (l) {
			lanes[n] = l;
			index[n++] = i;
		} else if (!ship_serves(r->ship, i)) {
			lost = i;
		}
	}
	lanes_run(lanes, n, until, end_ns > least_ns ? end_ns : least_ns);
	for (unsigned i = 0; i < n; i++) {
		if (!lanes[i]->status)
			continue;
		losses[lost_count++] = (struct repl_loss){
			.replica = index[i], .status = lanes[i]->status, .why = lanes[i]->why};
		lost = index[i];
	}
	/* The lock for nothing: what others record might take the time that queued ones have. */
	if (lost_count)
		repl_lose_all(r, losses, lost_count, begin_ns + all_ns);
	latest_ns = lanes_end(r, latest_ns);
	enough = lanes_await_shipped(r, lane, begin_ns, latest_ns);
	lanes_await_recorded(r);
	/* With on-loss = block the call waits when it has left the lane: lane_answer(). */
	if ((lost == r->replica_count && enough) || r->cfg->on_loss != REPL_ON_LOSS_FAIL)
		return 0;
	return lanes_report_lost(r, lost, e);
}

int
lanes_finish_from(struct repl *r, unsigned lane, bool (*until)(const struct lane *),
		  uint64_t begin_ns, struct err *e)
{
	return lanes_finish_by(r, lane, until, begin_ns, UINT64_MAX, e);
}

int
lanes_finish(struct repl *r, unsigned lane, bool (*until)(const struct lane *), struct err *e)
{
	return lanes_finish_from(r, lane, until, clock_now_ns(), e);
}

static unsigned
latency_bucket(uint64_t ns)
{
	unsigned b = ns ? 63U - (unsigned)__builtin_clzll(ns) : 0;

	return b < REPL_HIST_BUCKETS ? b : REPL_HIST_BUCKETS - 1;
}

/* As lanes_claim(). What was noted by others, who had the lane meanwhile, is to go before behind.
 */
static int
lanes_claim_behind(struct repl *r, unsigned lane, const struct range *also,
		   const struct repl_behind *behind, uint64_t *begin_ns, struct err *e)
{
	int rc = lanes_claim(r, lane, also, 1, begin_ns, e);

	if (rc || !behind || !rangeset_meets(&r->slots[lane].pending, &behind->b))
		return rc;
	lanes_yield(r, lane);
	return err_set(e, REPL_E_BUSY, "lane %u was in use by another thread", lane);
}

/*
 * With what is acknowledged by it noted for those that are lost. behind: of what the library
 * stores, or NULL.
 */
static int
lanes_drain_now(struct repl *r, unsigned lane, enum lane_kind kind, const struct range *also,
		const struct repl_behind *behind, uint64_t begin_ns, struct err *e)
{
	struct lane_slot *slot = &r->slots[lane];
	const struct rangeset *first = &slot->pending;
	bool ends_trims = kind == LANE_TRIM && also->len == 0;
	bool queued = behind && kind == LANE_ATOMIC8 && lanes_store_queued(r);
	uint64_t trims;
	int rc = lanes_claim_behind(r, lane, also, behind, &begin_ns, e);

	if (rc)
		return rc;
	rc = pending_active(r, lane, also, 1, &begin_ns, e);
	if (rc) {
		lanes_yield(r, lane);
		return rc;
	}
	trims = ends_trims ? pending_trims_begin(r) : 0;
	if (behind) {
		first = lanes_ship_first(r, lane, first, begin_ns);
		if (!queued)
			repl_behind_store(r, behind);
	}
	begin_ns += lanes_begin(r, lane, kind, also);
	if (queued)
		lanes_due_behind(r, lane, first, behind);
	else
		lanes_due(r, lane, kind, first, also);
	rc = lanes_finish_from(r, lane, lane_done, begin_ns, e);
	lanes_unclaim(r, lane);
	if (kind == LANE_TRIM)
		pending_trim(r, also->off, also->len);
	if (ends_trims && !rc)
		pending_trims_end(r, trims, slot->shipped_number);
	pending_settle(r, lane, also, 1);
	return rc;
}

void
lanes_count_drain(struct repl *r, unsigned lane, uint64_t begin_ns)
{
	struct lane_slot *slot = &r->slots[lane];
	uint64_t ns = clock_now_ns() - begin_ns;

	atomic_fetch_add_explicit(&slot->drain_count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->latency_ns[latency_bucket(ns)], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->latency_sum_ns, ns, memory_order_relaxed);
}

static int
lanes_drain_counted(struct repl *r, unsigned lane, enum lane_kind kind, const struct range *also,
		    const struct repl_behind *behind, struct err *e)
{
	uint64_t begin_ns = clock_now_ns();
	int rc = lanes_drain_now(r, lane, kind, also, behind, begin_ns, e);

	lanes_count_drain(r, lane, begin_ns);
	return rc;
}

int
lanes_drain(struct repl *r, unsigned lane, enum lane_kind kind, size_t off, size_t len,
	    struct err *e)
{
	const struct range also = {.off = off, .len = len};

	return lanes_drain_counted(r, lane, kind, &also, NULL, e);
}

int
lanes_drain_behind(struct repl *r, unsigned lane, const struct repl_behind *behind, struct err *e)
{
	enum lane_kind kind = behind->b.len == WORDS_SIZE ? LANE_ATOMIC8 : LANE_PAIR;

	return lanes_drain_counted(r, lane, kind, &behind->b, behind, e);
}

/* What is noted is drained. */
static int
lanes_empty(struct repl *r, unsigned lane, struct err *e)
{
	static const struct range none = {0};

	return lanes_drain_now(r, lane, LANE_DRAIN, &none, NULL, clock_now_ns(), e);
}

int
lanes_drain_met(struct repl *r, unsigned lane, const struct range *stored, struct err *e)
{
	return rangeset_meets(&r->slots[lane].pending, stored) ? lanes_empty(r, lane, e) : 0;
}

/* False: it could not be emptied, and nothing is noted. */
static bool
lanes_note(struct repl *r, unsigned lane, size_t off, size_t len, int *rc, struct err *e)
{
	struct lane_slot *slot = &r->slots[lane];

	if (pending_note(slot, off, len))
		return true;
	*rc = lanes_empty(r, lane, e);
	return pending_note(slot, off, len);
}

/* Whether it may be written at once, and any replica's lane would. */
static bool
lanes_early(struct repl *r, unsigned lane, size_t off, size_t len, size_t second)
{
	for (unsigned i = 0; i < r->replica_count; i++) {
		struct lane *l = lane_of(r, i, lane);

		if (l && lane_writes_early(l, off, len, second))
			return pending_early(r, lane, off, len) &&
			       lanes_claim_early(r, lane, off, len);
	}
	return false;
}

int
lanes_flush(struct repl *r, unsigned lane, size_t off, size_t len, size_t second, struct err *e)
{
	struct lane_slot *slot = &r->slots[lane];
	int merged = 0, rc = 0;
	bool early;

	if (len == 0)
		return 0;
	if (!lanes_note(r, lane, off, len, &rc, e))
		return rc;
	early = lanes_early(r, lane, off, len, second);
	/* Whatever that says of one that is lost: a drain that succeeds speaks for the others. */
	for (unsigned i = 0; i < r->replica_count; i++) {
		struct lane *l;

		/* Looked up again: nothing moves on the lane of one that was given up meanwhile. */
		while ((l = lane_of(r, i, lane)) != NULL && !l->status &&
		       (merged = early ? lane_flush_first(l, off, len, second)
				       : lane_note(l, off, len)) < 0) {
			int full = lanes_empty(r, lane, e);

			/* It is as full as it was. */
			if (full == REPL_E_BUSY || full == REPL_E_IO)
				return full;
			/* The replicas before have it by that, this one and those behind do not. */
			(void)pending_note(slot, off, len);
			early = false;
			rc = rc ? rc : full;
		}
	}
	atomic_fetch_add_explicit(&slot->flush_count, 1, memory_order_relaxed);
	if (merged > 0)
		atomic_fetch_add_explicit(&slot->merged_count, (unsigned)merged,
					  memory_order_relaxed);
	return rc;
}

int
lanes_answer(struct repl *r, int rc, struct err *e)
{
	if (!rc && r->cfg->on_loss == REPL_ON_LOSS_BLOCK)
		rc = repl_await_back(r, e);
	if (rc)
		return config_report(e);
	/* What is acknowledged now they have missed; what was refused nobody relies on. */
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (atomic_load(&r->replicas[i].lost))
			atomic_fetch_add(&r->replicas[i].degraded_count, 1);
	}
	return 0;
}

int
lane_answer(struct repl *r, unsigned lane, int rc, struct err *e)
{
	lane_leave(r, lane);
	return lanes_answer(r, rc, e);
}
