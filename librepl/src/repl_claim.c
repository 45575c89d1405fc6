/* SPDX-License-Identifier: BSD-3-Clause */
/* What a lane has on its way, and how it waits for what others have: claims.h. */
#include "claims.h"

#include "clock.h"
#include "hold.h"
#include "repl_lanes.h"

#define END_LOOK_NS     200000U
#define END_LOOK_NS_MAX (10 * NS_PER_MS)

/* By whoever is in the lane: it is durable then, and noted as pending as before. */
void
lanes_end_early(struct repl *r, unsigned lane)
{
	struct err e;

	if (!r->claims_made || !claims_has_early(&r->claims, lane))
		return;
	for (unsigned i = 0; i < r->replica_count; i++) {
		struct lane *l = lane_of(r, i, lane);

		if (l)
			lane_begin(l, LANE_WRITTEN, 0, 0);
	}
	err_clear(&e);
	/* Of what is lost by that the lane's next drain tells. */
	(void)lanes_finish(r, lane, lane_done, &e);
	claims_drop(&r->claims, lane);
}

/* Who is in that lane may make an end of it himself, and then wait for something else. */
static void
await_early(struct repl *r, unsigned lane, uint64_t deadline_ns)
{
	uint64_t begin_ns = clock_now_ns(), now_ns, look_ns = END_LOOK_NS;
	bool got = false;

	while (!got && claims_has_early(&r->claims, lane) &&
	       (now_ns = clock_now_ns()) < deadline_ns) {
		hold_waited(r, now_ns - begin_ns);
		got = lane_borrow(r, lane,
				  look_ns < deadline_ns - now_ns ? now_ns + look_ns : deadline_ns);
		if (look_ns < END_LOOK_NS_MAX)
			look_ns *= 2;
	}
	if (got) {
		lanes_end_early(r, lane);
		lane_leave(r, lane);
	}
}

/*
 * Not from within a lane, which those who have the other may wait for, nor in a turn: a hold that
 * has got our lane waits for those who are in theirs, and wait for that.
 */
static int
other_end_early(struct repl *r, unsigned lane, unsigned other, uint64_t deadline_ns, struct err *e)
{
	bool had_turn = r->slots[lane].has_turn;
	int lent;

	lane_leave_turn(r, lane);
	lent = lane_lend(r, lane);
	await_early(r, other, deadline_ns);
	lane_again(r, lane, lent);
	return had_turn ? lane_take_turn(r, lane, e) : 0;
}

bool
lanes_claim_now(struct repl *r, unsigned lane, const struct range *more, unsigned count)
{
	unsigned other;

	return !r->claims_made || claims_take(&r->claims, lane, &r->slots[lane].pending, more,
					      count, 0, &other) == CLAIMS_TAKEN;
}

/* Once, by the deadline; *taken, or *other: what is in the way. */
static int
claim_once(struct repl *r, unsigned lane, const struct range *more, unsigned count,
	   uint64_t deadline_ns, bool *taken, unsigned *other, struct err *e)
{
	enum claims_got got = claims_take(&r->claims, lane, &r->slots[lane].pending, more, count,
					  deadline_ns, other);
	int rc = 0;

	*taken = got == CLAIMS_TAKEN;
	if (got == CLAIMS_END_OWN)
		lanes_end_early(r, lane);
	else if (got == CLAIMS_END_OTHER)
		rc = other_end_early(r, lane, *other, deadline_ns, e);
	/* What hangs may have been given up behind the deadline: that is looked at once more. */
	if (!rc && !*taken)
		*taken = lanes_claim_now(r, lane, more, count);
	return rc;
}

int
lanes_claim(struct repl *r, unsigned lane, const struct range *more, unsigned count,
	    uint64_t *begin_ns, struct err *e)
{
	struct calltime t;
	bool taken = false;
	unsigned other;
	int rc = 0;

	if (lanes_claim_now(r, lane, more, count))
		return 0;
	t = call_begin(r, *begin_ns);
	while (!rc && !taken) {
		rc = claim_once(r, lane, more, count, call_end(r, &t), &taken, &other, e);
		if (!rc && !taken && clock_now_ns() >= call_end(r, &t))
			rc = err_set(e, REPL_E_BUSY,
				     "lane %u has some of the same bytes on their way, which have "
				     "not come to an end",
				     other);
	}
	if (!rc)
		*begin_ns = clock_now_ns();
	return rc;
}

void
lanes_yield(struct repl *r, unsigned lane)
{
	if (r->claims_made)
		claims_yield(&r->claims, lane);
}

void
lanes_unclaim(struct repl *r, unsigned lane)
{
	if (r->claims_made)
		claims_drop(&r->claims, lane);
}

bool
lanes_claim_early(struct repl *r, unsigned lane, size_t off, size_t len)
{
	return !r->claims_made || claims_early(&r->claims, lane, off, len);
}
