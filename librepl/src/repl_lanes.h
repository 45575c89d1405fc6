/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repl_lanes - the lanes of one index, on all replicas, as one thing: who is in
 * them, and how a job on them ends by the policy for losses.
 */
#ifndef LIBREPL_REPL_LANES_H
#define LIBREPL_REPL_LANES_H

#include "calltime.h"
#include "clock.h"
#include "repl_impl.h"

/* It is there, and this process's own. */
int handle_check(const struct repl *r, struct err *e);

/* How a call ends that a child returns to: without its replicas, and storing nothing in the pool.
 */
int handle_abandoned(struct err *e);
int range_check(const struct repl *r, size_t off, size_t len, struct err *e);

/* A call's op-timeout where it waits for others: since then, and until when as things are now. */
static inline struct calltime
call_begin(struct repl *r, uint64_t begin_ns)
{
	return r->abandoned ? (struct calltime){.begin_ns = begin_ns}
			    : calltime_begin(&r->local.disk, begin_ns);
}

static inline uint64_t
call_end(struct repl *r, const struct calltime *t)
{
	/* In a child nobody is there who could be waited for. */
	return r->abandoned ? t->begin_ns : calltime_end(&r->local.disk, t, r->cfg->op_timeout_ms);
}

/* The same of closing, which has begun so, for the first eighths of close-timeout. */
static inline uint64_t
closing_end(struct repl *r, unsigned eighths)
{
	uint64_t rest_ns = (uint64_t)r->cfg->close_timeout_ms * NS_PER_MS / 8 * (8 - eighths);

	return r->abandoned ? r->closing.begin_ns
			    : calltime_end(&r->local.disk, &r->closing, r->cfg->close_timeout_ms) -
				      rest_ns;
}

/*
 * Enter a lane: its number is good and no other call is in it (REPL_E_BUSY). One
 * that a call on another lane has borrowed is waited for, at most op-timeout.
 */
int lane_enter(struct repl *r, unsigned lane, struct err *e);
void lane_leave(struct repl *r, unsigned lane);

/*
 * Borrow a lane that a thread of its own may be in, by the deadline: calls in
 * it wait for lane_leave(). With deadline 0 only if it is free now, and nobody else waits for it.
 */
bool lane_borrow(struct repl *r, unsigned lane, uint64_t deadline_ns);

/* The same for a call, by op-timeout; a hold is told how long it has waited. */
bool lane_borrow_call(struct repl *r, unsigned lane, const struct calltime *t);

/* Leave a lane for a while: what lane_again() gets, which waits for as long as it takes. */
int lane_lend(struct repl *r, unsigned lane);
void lane_again(struct repl *r, unsigned lane, int lent);

/* The turn among appends, from within a lane; REPL_E_TIMEOUT: others have it by op-timeout. */
int lane_take_turn(struct repl *r, unsigned lane, struct err *e);
void lane_leave_turn(struct repl *r, unsigned lane);

/* As long as it is wanted calls that would enter it wait; once for each time that it was. */
void lane_want(struct repl *r, unsigned lane, bool wanted);

/* The lane of a replica, or NULL if that is lost or gets its updates by a queue. */
struct lane *lane_of(struct repl *r, unsigned replica, unsigned lane);

/*
 * A job has begun on a lane: the ranges of first, which stay as they are until it is
 * finished, then kind's. lanes_finish() puts it into the queues; lanes_ship() before, where
 * jobs of several lanes are to overlap.
 */
void lanes_due(struct repl *r, unsigned lane, enum lane_kind kind, const struct rangeset *first,
	       const struct range *second);
int lanes_ship(struct repl *r, unsigned lane, uint64_t begin_ns, uint64_t latest_ns, struct err *e);

/*
 * The same of a LANE_ATOMIC8 whose 8 bytes, behind->b, the library stores in the step that queues
 * them: where lanes_store_queued(), since nothing else keeps another lane's range from taking them
 * first. behind stays until the job is finished, and has been stored then.
 */
bool lanes_store_queued(const struct repl *r);
void lanes_due_behind(struct repl *r, unsigned lane, const struct rangeset *first,
		      const struct repl_behind *behind);

/*
 * Before the library stores in the pool what is to stand behind first: where several lanes' drains
 * have nothing but queues to order them, and no claims, first is queued, since any of them may take
 * what is stored. Returns what is still due for lanes_due(). Those that it can't be queued for are
 * lost.
 */
const struct rangeset *lanes_ship_first(struct repl *r, unsigned lane, const struct rangeset *first,
					uint64_t begin_ns);

/*
 * Claim what a drain of a lane is about to send: all that is pending there, and more. What other
 * lanes have on their way of it is waited for, at most op-timeout (REPL_E_BUSY, and nothing has
 * changed); *begin_ns is now after such a wait, which says nothing of the target. The lane may
 * have been borrowed by others meanwhile, and its turn, if it has it, been others': REPL_E_TIMEOUT
 * if it could not be had again. lanes_unclaim() or lanes_yield() before anything new is noted.
 */
int lanes_claim(struct repl *r, unsigned lane, const struct range *more, unsigned count,
		uint64_t *begin_ns, struct err *e);

/* The same if nothing is in the way. */
bool lanes_claim_now(struct repl *r, unsigned lane, const struct range *more, unsigned count);

/* None of it was sent; what was written before is on its way as it was. */
void lanes_yield(struct repl *r, unsigned lane);

/* All of it has come to its end on all replicas. */
void lanes_unclaim(struct repl *r, unsigned lane);

/* Whether a range may be written before its drain. */
bool lanes_claim_early(struct repl *r, unsigned lane, size_t off, size_t len);

/*
 * Make an end of what this lane has written before its drain: before it waits for something that
 * others, who wait for that, may have.
 */
void lanes_end_early(struct repl *r, unsigned lane);

/*
 * Begin a job on the lane of all replicas that no queue serves; also: of kind's. Returns what of
 * the time was this machine's: no target's begins before that.
 */
uint64_t lanes_begin(struct repl *r, unsigned lane, enum lane_kind kind, const struct range *also);

/*
 * Run until() on a lane of all replicas, count those that are lost now, and
 * answer by the policy. The last quarter of the time that op-timeout gives
 * from begin_ns on is for recording a loss.
 */
int lanes_finish_from(struct repl *r, unsigned lane, bool (*until)(const struct lane *),
		      uint64_t begin_ns, struct err *e);

/*
 * The same of one of several lanes whose time is one: whoever is looked at late has some of his own
 * all the same, but not behind latest_ns, which lanes_end() moves.
 */
int lanes_finish_by(struct repl *r, unsigned lane, bool (*until)(const struct lane *),
		    uint64_t begin_ns, uint64_t latest_ns, struct err *e);

/*
 * Until when those are waited for who were to be through at end_ns: nobody is waited for behind
 * that, so that where it is over this machine's disk has taken the time, as to record a loss.
 */
uint64_t lanes_end(const struct repl *r, uint64_t end_ns);

/* The same from now on. */
int lanes_finish(struct repl *r, unsigned lane, bool (*until)(const struct lane *), struct err *e);

/*
 * Note a range on all replicas' lanes; a full lane is posted first. second:
 * bytes that are to follow as a pair, or 0. Where it can't be, for others or the local disk
 * (REPL_E_BUSY, REPL_E_IO), the range is noted nowhere or on some lanes only, and has to be noted
 * again. To widen what is noted instead would send bytes that nobody has flushed, as the second
 * range of another lane's pair before its first.
 */
int lanes_flush(struct repl *r, unsigned lane, size_t off, size_t len, size_t second,
		struct err *e);

/*
 * Make durable what was flushed on a lane, and for other kinds the range off, len
 * behind it; and note both for replicas that are lost.
 */
int lanes_drain(struct repl *r, unsigned lane, enum lane_kind kind, size_t off, size_t len,
		struct err *e);

/* The same for b of a pair whose a is noted; the library stores it meanwhile. */
int lanes_drain_behind(struct repl *r, unsigned lane, const struct repl_behind *behind,
		       struct err *e);

/* One drain of the program's, whatever became of it, and whatever lanes it had. */
void lanes_count_drain(struct repl *r, unsigned lane, uint64_t begin_ns);

/*
 * Before the library stores what is to stand behind something else: what this lane has flushed of
 * it and not drained would be sent with that, from the pool. All of the lane's is drained first.
 */
int lanes_drain_met(struct repl *r, unsigned lane, const struct range *stored, struct err *e);

/*
 * The end of a public call that acknowledges: by the policy wait until those that are lost are
 * back; those that are still away have missed it. rc is the call's; returns it, reported.
 */
int lanes_answer(struct repl *r, int rc, struct err *e);

/* The same, and leave the lane before. */
int lane_answer(struct repl *r, unsigned lane, int rc, struct err *e);

#endif
