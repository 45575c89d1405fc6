/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repl_append: one replica chooses the place, the others and the local range get
 * the bytes, then the tail word.
 *
 * Appends of a handle take turns, so the tail words of all copies are equal
 * whenever one begins. The place that a target chooses is therefore the one
 * that the local tail word names, whoever chooses it: when the chooser is lost
 * without an answer the next one's is the same, and when it is lost after its
 * answer that place is where the others get the bytes. A target that says
 * another place has another tail word than the rest: it is given up.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "entry.h"
#include "onloss.h"
#include "pending.h"
#include "repl_impl.h"
#include "repl_lanes.h"
#include "ship.h"

struct append {
	size_t tail_off;
	uint64_t limit;
	const void *data;
	uint32_t len;
	uint64_t place;
	uint64_t begin_ns;
	unsigned chooser; /* replica_count: nobody; the local tail word does it */
};

/* ---- the local tail word ---- */

static uint64_t
tail_load(const struct repl *r, const struct append *a)
{
	uint64_t v;

	v = __atomic_load_n((const uint64_t *)(const void *)(r->mem + a->tail_off),
			    __ATOMIC_ACQUIRE);
	return le64toh(v);
}

struct append_tail {
	uint64_t *word;
	uint64_t tail;
};

static void
tail_store(void *arg)
{
	const struct append_tail *t = arg;

	__atomic_store_n(t->word, htole64(t->tail), __ATOMIC_RELEASE);
}

static int
append_check(const struct repl *r, const struct append *a, const size_t *off, struct err *e)
{
	int rc = range_check(r, a->tail_off, 8, e);

	if (rc)
		return rc;
	if (!a->data || !off || a->len == 0)
		return err_set(e, REPL_E_INVAL, "nothing to append, or no place for its offset");
	if (a->tail_off % 8)
		return err_set(e, REPL_E_INVAL, "tail word at %zu, not a multiple of 8",
			       a->tail_off);
	if (a->limit > atomic_load(&r->size))
		return err_set(e, REPL_E_INVAL,
			       "limit %llu lies beyond the pool of %zu bytes: repl_grow() it first",
			       (unsigned long long)a->limit, atomic_load(&r->size));
	return 0;
}

/* What the target checks, too: so most of what it would refuse needs no way there and back. */
static int
append_check_tail(const struct repl *r, const struct append *a, struct err *e)
{
	if (a->place > atomic_load(&r->size))
		return err_set(e, REPL_E_CORRUPT,
			       "the tail word at %zu holds %llu, the pool has %zu bytes",
			       a->tail_off, (unsigned long long)a->place, atomic_load(&r->size));
	if (a->place > a->limit || a->len > a->limit - a->place)
		return err_set(e, REPL_E_NOSPC, "%u bytes at %llu go beyond the limit of %llu",
			       a->len, (unsigned long long)a->place, (unsigned long long)a->limit);
	if (a->place < a->tail_off + 8 && a->tail_off < a->place + a->len)
		return err_set(e, REPL_E_INVAL,
			       "%u bytes at %llu would lie over their tail word at %zu", a->len,
			       (unsigned long long)a->place, a->tail_off);
	return 0;
}

static int
append_check_len(struct repl *r, unsigned lane, const struct append *a, struct err *e)
{
	for (unsigned i = 0; i < r->replica_count; i++) {
		struct lane *l = lane_of(r, i, lane);

		if (l && lane_can_append(l) && a->len > lane_append_max(l))
			return err_set(e, REPL_E_INVAL,
				       "%u bytes are too many for one append, %zu are not", a->len,
				       lane_append_max(l));
	}
	return 0;
}

/* ---- choosing ---- */

/* This one and those behind it that may be asked, or else drained, one after the other. */
static unsigned
append_left(struct repl *r, unsigned lane, unsigned replica, bool asked)
{
	unsigned count = 1;

	for (unsigned i = replica + 1; i < r->replica_count; i++) {
		const struct lane *l = lane_of(r, i, lane);

		count += l && (!asked || lane_can_append(l));
	}
	return count;
}

/*
 * Each that is left gets its share of the time, and the record of a loss one; whatever went before
 * it, it has some to answer in: an eighth, where many are left their share of what is left and
 * that.
 */
static uint64_t
append_deadline(const struct repl *r, const struct append *a, unsigned left)
{
	uint64_t all_ns = (uint64_t)r->cfg->op_timeout_ms * NS_PER_MS;
	uint64_t end = a->begin_ns + all_ns, eighth = all_ns / REPL_TELL_SHARE;
	uint64_t now = clock_now_ns(), rest = now < end ? end - now : 0;
	uint64_t share = rest * 3 / 4 / left, least = (rest + eighth) / left;

	least = least < eighth ? least : eighth;
	return now + (share > least ? share : least);
}

/* By the local tail word it would have fitted, see append_check_tail(). */
static void
append_refused(struct lane *l, const struct append *a)
{
	char text[200];

	if (l->append.status == REPL_E_NOSPC) {
		(void)snprintf(text, sizeof(text),
			       "no space is left on the target for %u bytes at %llu; or its tail "
			       "word at %zu is beyond that",
			       a->len, (unsigned long long)a->place, a->tail_off);
		lane_fail(l, REPL_E_NOSPC, text);
		return;
	}
	(void)snprintf(text, sizeof(text),
		       "its tail word at %zu is not the local one, %llu (%s): make a tail word "
		       "durable before appending by it",
		       a->tail_off, (unsigned long long)a->place,
		       l->append.status ? repl_strstatus(l->append.status) : "another place");
	lane_fail(l, REPL_E_DIFFER, text);
}

static void
append_ask(struct repl *r, struct lane *l, const struct append *a, unsigned left)
{
	lane_append(l, a->tail_off, a->limit, a->data, a->len);
	lanes_run(&l, 1, lane_done, append_deadline(r, a, left));
	if (!l->status && (l->append.status || l->append.place != a->place))
		append_refused(l, a);
}

/*
 * Another one that hangs, and has to be told, takes no more than it leaves to those behind; and
 * what this machine's disk takes to record the loss is not their time.
 */
static void
append_lose(struct repl *r, const struct lane *l, struct append *a, unsigned replica)
{
	uint64_t end_ns = a->begin_ns + (uint64_t)r->cfg->op_timeout_ms * NS_PER_MS;
	uint64_t now_ns = clock_now_ns(), loss_ns = repl_loss_deadline(r);
	uint64_t half_ns = now_ns < end_ns ? now_ns + (end_ns - now_ns) / 2 : now_ns;
	uint64_t by_ns = half_ns < loss_ns ? half_ns : loss_ns;

	repl_lose(r, replica, l->status, l->why, by_ns);
	now_ns = clock_now_ns();
	if (now_ns > by_ns)
		a->begin_ns += now_ns - by_ns;
}

/* It is lost with the bytes where its own tail word had them. */
static void
append_astray(struct repl *r, const struct lane *l, const struct append *a)
{
	const struct range there = {.off = l->append.place, .len = a->len};
	size_t size = atomic_load(&r->size);

	if (!l->append.status && there.off <= size && there.len <= size - there.off)
		pending_settle_only(r, &there, 1);
}

/*
 * Until one has answered; those that did not are lost. On lanes of a receive ring
 * nobody chooses: the local tail word does.
 */
static int
append_choose(struct repl *r, unsigned lane, struct append *a, struct err *e)
{
	a->chooser = r->replica_count;
	for (unsigned i = 0; i < r->replica_count && a->chooser == r->replica_count; i++) {
		struct lane *l = lane_of(r, i, lane);

		if (!l || !lane_can_append(l))
			continue;
		append_ask(r, l, a, append_left(r, lane, i, true));
		if (!l->status) {
			a->chooser = i;
			continue;
		}
		append_lose(r, l, a, i);
		append_astray(r, l, a);
		if (r->cfg->on_loss == REPL_ON_LOSS_FAIL)
			return err_set(e, REPL_E_LOST, "replica %u is lost: %s", i, l->why);
	}
	return 0;
}

/* ---- the others ---- */

/*
 * With the local tail word. In the place of queued replicas nobody chooses; bytes: what they are
 * still to get of them.
 */
static int
append_spread(struct repl *r, unsigned lane, const struct append *a, const struct rangeset *bytes,
	      struct err *e)
{
	struct append_tail tail = {.word = (uint64_t *)(void *)(r->mem + a->tail_off),
				   .tail = a->place + a->len};
	const struct repl_behind behind = {
		.b = {.off = a->tail_off, .len = 8}, .store = tail_store, .arg = &tail};

	if (lanes_store_queued(r)) {
		lanes_due_behind(r, lane, bytes, &behind);
		return lanes_finish_from(r, lane, lane_done, a->begin_ns, e);
	}
	repl_behind_store(r, &behind);
	for (unsigned i = 0; i < r->replica_count; i++) {
		struct lane *l = i == a->chooser ? NULL : lane_of(r, i, lane);

		while (l && !l->status && lane_flush(l, a->place, a->len) < 0) {
			lane_begin(l, LANE_DRAIN, 0, 0);
			lanes_run(&l, 1, lane_done,
				  append_deadline(r, a, append_left(r, lane, i, false)));
		}
		if (l)
			lane_begin(l, LANE_ATOMIC8, a->tail_off, 8);
	}
	lanes_due(r, lane, LANE_ATOMIC8, bytes, &behind.b);
	return lanes_finish_from(r, lane, lane_done, a->begin_ns, e);
}

static int
append_store(struct repl *r, unsigned lane, struct append *a, const struct range *stored,
	     bool *sent, struct err *e)
{
	const struct rangeset *due;
	struct rangeset bytes;
	/* Where a loss is to fail the call nothing may be stored after one. */
	int rc = onloss_check(r, e);

	if (!rc)
		rc = append_check_len(r, lane, a, e);
	if (rc)
		return rc;
	rangeset_clear(&bytes);
	(void)rangeset_add(&bytes, a->place, a->len);
	rc = pending_active(r, lane, stored, 2, &a->begin_ns, e);
	if (rc)
		return rc;
	rc = append_choose(r, lane, a, e);
	if (!rc && r->abandoned)
		rc = handle_abandoned(e);
	/* Of a chooser that was lost nothing counts; others may have what the lane wrote while
	 * lent. */
	*sent = rc == 0;
	if (!rc) {
		memcpy(r->mem + a->place, a->data, a->len);
		due = lanes_ship_first(r, lane, &bytes, a->begin_ns);
		rc = append_spread(r, lane, a, due, e);
	}
	/* Also one that was lost as it chose, with nothing stored here, may have the bytes. */
	pending_append_end(r, lane, stored, 2);
	return rc;
}

/* To go before the tail word, whatever of it was flushed. */
static int
append_drain(struct repl *r, unsigned lane, struct append *a, const struct range *tail,
	     struct err *e)
{
	int rc = lanes_drain_met(r, lane, tail, e);

	a->begin_ns = clock_now_ns();
	return rc;
}

/* Where it will be, which is claimed. */
static int
append_place(struct repl *r, unsigned lane, struct append *a, struct range *stored, struct err *e)
{
	bool moved = true;
	int rc = 0;

	while (!rc && moved) {
		a->place = tail_load(r, a);
		rc = onloss_check(r, e);
		if (!rc)
			rc = append_check_tail(r, a, e);
		stored[0] = (struct range){.off = a->place, .len = a->len};
		stored[1] = (struct range){.off = a->tail_off, .len = 8};
		if (!rc)
			rc = lanes_claim(r, lane, stored, 2, &a->begin_ns, e);
		/* By others, who had the turn meanwhile, and the lane. */
		moved = !rc && (tail_load(r, a) != a->place ||
				rangeset_meets(&r->slots[lane].pending, &stored[1]));
		if (moved) {
			lanes_yield(r, lane);
			rc = append_drain(r, lane, a, &stored[1], e);
		}
	}
	return rc;
}

static int
append_run(struct repl *r, unsigned lane, struct append *a, struct err *e)
{
	struct range stored[2];
	bool sent = false;
	int rc = append_place(r, lane, a, stored, e);

	if (rc)
		return rc;
	rc = append_store(r, lane, a, stored, &sent, e);
	if (sent)
		lanes_unclaim(r, lane);
	else
		lanes_yield(r, lane);
	return rc;
}

int
lane_take_turn(struct repl *r, unsigned lane, struct err *e)
{
	struct calltime t = call_begin(r, clock_now_ns());

	while (!turns_enter(&r->appends, call_end(r, &t))) {
		if (r->abandoned)
			return handle_abandoned(e);
		if (clock_now_ns() >= call_end(r, &t))
			return err_set(e, REPL_E_TIMEOUT, "other appends have not come to an end");
	}
	r->slots[lane].has_turn = true;
	return 0;
}

void
lane_leave_turn(struct repl *r, unsigned lane)
{
	if (r->slots[lane].has_turn)
		turns_leave(&r->appends);
	r->slots[lane].has_turn = false;
}

int
repl_append(struct repl *r, unsigned lane, size_t tail_off, size_t limit, const void *data,
	    size_t len, size_t *off)
{
	ENTRY_WHOLE();
	struct append a = {
		.tail_off = tail_off, .limit = limit, .data = data, .len = (uint32_t)len};
	const struct range tail = {.off = tail_off, .len = 8};
	uint64_t turn_ns;
	struct err e;
	int rc;

	err_clear(&e);
	rc = append_check(r, &a, off, &e);
	/* Where no replica is left nobody else would mind. */
	if (!rc && len > UINT32_MAX)
		rc = err_set(&e, REPL_E_INVAL, "%zu bytes are too many for one append", len);
	if (!rc)
		rc = lane_enter(r, lane, &e);
	if (rc)
		return config_report(&e);
	rc = lanes_drain_met(r, lane, &tail, &e);
	lanes_end_early(r, lane);
	if (!rc)
		rc = lane_take_turn(r, lane, &e);
	if (!rc) {
		/* The wait for others says nothing of the target. */
		turn_ns = a.begin_ns = clock_now_ns();
		rc = append_run(r, lane, &a, &e);
		lanes_count_drain(r, lane, turn_ns);
		lane_leave_turn(r, lane);
	}
	rc = lane_answer(r, lane, rc, &e);
	if (!rc)
		*off = a.place;
	return rc;
}
