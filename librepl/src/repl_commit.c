/* SPDX-License-Identifier: BSD-3-Clause */
/* repl_commit: a drain of every lane of the handle. */
#include <string.h>

#include "clock.h"
#include "entry.h"
#include "pending.h"
#include "repl_impl.h"
#include "repl_lanes.h"

#define MOVE_NS NS_PER_MS

static uint64_t
commit_ns(const struct repl *r)
{
	return (uint64_t)r->cfg->op_timeout_ms * NS_PER_MS;
}

/*
 * Post what was flushed on a lane that was borrowed. Room is waited for up to an eighth before the
 * end that all lanes have in common.
 */
static void
commit_begin(struct repl *r, unsigned lane, uint64_t *begin_ns, uint64_t *end_ns)
{
	static const struct range none = {0};
	uint64_t held_ns = lanes_begin(r, lane, LANE_DRAIN, &none);
	uint64_t room_ns = *end_ns + held_ns - commit_ns(r) / 8;

	*begin_ns += held_ns;
	lanes_due(r, lane, LANE_DRAIN, &r->slots[lane].pending, &none);
	/* What fails here fails again at the end. */
	if (r->cfg->ack != ACK_ALL)
		(void)lanes_ship(r, lane, *begin_ns, room_ns, NULL);
	*end_ns = lanes_end(r, room_ns) + commit_ns(r) / 8;
}

/*
 * When those that were begun are to be through: one moment for all of them, and time to answer for
 * who has been sent the last of it just now, whatever it had waited for.
 */
static uint64_t
commit_latest(const struct repl *r, uint64_t end_ns)
{
	uint64_t least_ns = clock_deadline(r->cfg->op_timeout_ms / REPL_TELL_SHARE);

	return end_ns > least_ns ? end_ns : least_ns;
}

/* Step the lanes that were begun; one that waits, or NULL. *any: something was done. */
static struct lane *
commit_step(struct repl *r, const bool *begun, bool *any)
{
	struct lane *waits = NULL;

	*any = false;
	for (unsigned i = 0; i < r->lane_count; i++) {
		for (unsigned p = 0; begun[i] && p < r->replica_count; p++) {
			struct lane *l = lane_of(r, p, i);

			if (!l || lane_done(l))
				continue;
			*any |= lane_step(l);
			if (!lane_done(l))
				waits = l;
		}
	}
	return waits;
}

/*
 * All together, up to the moment at which a replica that hangs is given up on the first lane: the
 * others have little time of their own after it, in which one that is well could catch up. Returns
 * what of the time was this machine's.
 */
static uint64_t
commit_move(struct repl *r, const bool *begun, uint64_t begin_ns)
{
	uint64_t all_ns = commit_ns(r), end_ns = begin_ns + all_ns - all_ns / 4;
	uint64_t since_ns = clock_now_ns(), held_ns = 0, now_ns;
	struct lane *waits;
	bool any;

	for (;;) {
		waits = commit_step(r, begun, &any);
		now_ns = clock_now_ns();
		held_ns += lane_held_ns(since_ns, now_ns);
		since_ns = now_ns;
		if (!waits || now_ns >= end_ns + held_ns)
			return held_ns;
		if (!any)
			(void)lane_run_for_now(waits, lane_done, now_ns + MOVE_NS);
	}
}

static int
commit_end(struct repl *r, unsigned lane, uint64_t begin_ns, uint64_t *latest_ns, struct err *e)
{
	struct err why;
	int rc;

	err_clear(&why);
	rc = lanes_finish_by(r, lane, lane_done, begin_ns, *latest_ns, &why);
	*latest_ns = lanes_end(r, *latest_ns);
	lanes_unclaim(r, lane);
	pending_settle(r, lane, NULL, 0);
	lane_leave(r, lane);
	if (rc && !e->code)
		*e = why;
	return rc;
}

static bool
commit_is_late(struct repl *r, unsigned lane, const struct calltime *call, struct err *e)
{
	if (clock_now_ns() < call_end(r, call))
		return false;
	(void)err_set(e, REPL_E_TIMEOUT,
		      "lane %u is not drained yet, others took all of the time: call again", lane);
	return true;
}

/*
 * One that others had, or whose bytes others have on their way. None is begun when its time is
 * over: each would have all of its own anew.
 */
static void
commit_late(struct repl *r, unsigned lane, const struct calltime *call, struct err *e)
{
	uint64_t begin_ns, end_ns;

	if (!lane_borrow_call(r, lane, call)) {
		(void)err_set(e, REPL_E_TIMEOUT, "lane %u is in use by another thread", lane);
		return;
	}
	/* The wait for the lane says nothing of the target. */
	begin_ns = clock_now_ns();
	if (commit_is_late(r, lane, call, e) || lanes_claim(r, lane, NULL, 0, &begin_ns, e)) {
		lane_leave(r, lane);
		return;
	}
	if (pending_active(r, lane, NULL, 0, &begin_ns, e) || commit_is_late(r, lane, call, e)) {
		/* Nothing of it was sent now. */
		pending_append_end(r, lane, NULL, 0);
		lanes_yield(r, lane);
		lane_leave(r, lane);
		return;
	}
	end_ns = begin_ns + commit_ns(r);
	commit_begin(r, lane, &begin_ns, &end_ns);
	end_ns = commit_latest(r, end_ns);
	(void)commit_end(r, lane, begin_ns, &end_ns, e);
}

/*
 * Those that are free now, and have nothing in common, are drained side by side, the others one
 * after the other when their own calls are through: no lane is held while another is waited for.
 */
int
repl_commit(struct repl *r, unsigned lane)
{
	ENTRY_WHOLE();
	const uint64_t call_ns = clock_now_ns();
	uint64_t begin_ns = call_ns, end_ns, held_ns;
	bool done[REPL_LANES_MAX] = {false};
	struct calltime call;
	struct err e;

	err_clear(&e);
	if (handle_check(r, &e))
		return config_report(&e);
	if (lane >= r->lane_count) {
		(void)err_set(&e, REPL_E_INVAL, "lane %u of %u", lane, r->lane_count);
		return config_report(&e);
	}
	call = call_begin(r, call_ns);
	for (unsigned i = 0; i < r->lane_count; i++) {
		if (!lane_borrow(r, i, 0))
			continue;
		done[i] = lanes_claim_now(r, i, NULL, 0);
		if (done[i] && pending_active(r, i, NULL, 0, &begin_ns, &e)) {
			lanes_yield(r, i);
			done[i] = false;
		}
		if (!done[i])
			lane_leave(r, i);
	}
	end_ns = begin_ns + commit_ns(r);
	for (unsigned i = 0; i < r->lane_count; i++) {
		if (done[i])
			commit_begin(r, i, &begin_ns, &end_ns);
	}
	held_ns = commit_move(r, done, begin_ns);
	begin_ns += held_ns;
	end_ns = commit_latest(r, end_ns + held_ns);
	for (unsigned i = 0; i < r->lane_count; i++) {
		if (done[i])
			(void)commit_end(r, i, begin_ns, &end_ns, &e);
	}
	for (unsigned i = 0; i < r->lane_count && !e.code; i++) {
		if (!done[i])
			commit_late(r, i, &call, &e);
	}
	lanes_count_drain(r, lane, call_ns);
	return lanes_answer(r, e.code, &e);
}
