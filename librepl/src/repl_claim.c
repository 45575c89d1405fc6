/* SPDX-License-Identifier: BSD-3-Clause */
/* What a lane has on its way, and how it waits for what others have: claims.h. */
#include "claims.h"

#include "clock.h"
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

/*
 * Not from within a lane, which those who have the other may wait for. Who is in that may make an
 * end of it himself, and then wait for us: for a turn that we have.
 */
static void
other_end_early(struct repl *r, unsigned lane, unsigned other, uint64_t deadline_ns)
{
	int lent = lane_lend(r, lane);
	uint64_t now_ns, look_ns = END_LOOK_NS;
	bool got = false;

	while (!got && claims_has_early(&r->claims, other) &&
	       (now_ns = clock_now_ns()) < deadline_ns) {
		got = lane_borrow(r, other,
				  look_ns < deadline_ns - now_ns ? now_ns + look_ns : deadline_ns);
		if (look_ns < END_LOOK_NS_MAX)
			look_ns *= 2;
	}
	if (got) {
		lanes_end_early(r, other);
		lane_leave(r, other);
	}
	lane_again(r, lane, lent);
}

bool
lanes_claim_now(struct repl *r, unsigned lane, const struct range *more, unsigned count)
{
	unsigned other;

	return !r->claims_made || claims_take(&r->claims, lane, &r->slots[lane].pending, more,
					      count, 0, &other) == CLAIMS_TAKEN;
}

/* Once, by the deadline; true if that is taken. *other: what is in the way, if it is not. */
static bool
claim_once(struct repl *r, unsigned lane, const struct range *more, unsigned count,
	   uint64_t deadline_ns, unsigned *other)
{
	switch (claims_take(&r->claims, lane, &r->slots[lane].pending, more, count, deadline_ns,
			    other)) {
	case CLAIMS_TAKEN:
		return true;
	case CLAIMS_END_OWN:
		lanes_end_early(r, lane);
		break;
	case CLAIMS_END_OTHER:
		other_end_early(r, lane, *other, deadline_ns);
		break;
	case CLAIMS_LATE:
		break;
	}
	return false;
}

int
lanes_claim(struct repl *r, unsigned lane, const struct range *more, unsigned count,
	    uint64_t *begin_ns, struct err *e)
{
	uint64_t deadline_ns = *begin_ns + (uint64_t)r->cfg->op_timeout_ms * NS_PER_MS;
	unsigned other;

	if (lanes_claim_now(r, lane, more, count))
		return 0;
	/* What hangs may have been given up behind the deadline: that is looked at once more. */
	while (!claim_once(r, lane, more, count, deadline_ns, &other) &&
	       !lanes_claim_now(r, lane, more, count)) {
		if (clock_now_ns() >= deadline_ns)
			return err_set(e, REPL_E_BUSY,
				       "lane %u has some of the same bytes on their way, which "
				       "have not come to an end",
				       other);
	}
	*begin_ns = clock_now_ns();
	return 0;
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
