/* SPDX-License-Identifier: BSD-3-Clause */
#include "replica_judge.h"

#include "newest.h"

#define NEXT_CHOOSE "look at both (replctl info, replctl verify), then choose one: replctl resolve"

static const struct reason_text {
	const char *name, *why, *next;
} reason_texts[JUDGE_REASON_COUNT] = {
	[JUDGE_NEVER_WRITTEN] = {"never-written", "the replica has never been written", ""},
	[JUDGE_SAME] = {"same", "same generation", ""},
	[JUDGE_BEHIND] = {"behind", "the replica is behind", ""},
	[JUDGE_INCONSISTENT] = {"inconsistent", "a copy into the replica was not finished", ""},
	[JUDGE_LOCAL_UNKNOWN] = {"local-unknown", "nothing is known of the local file's generation",
				 NEXT_CHOOSE},
	[JUDGE_PROMOTED] = {"promoted", "the replica was promoted and is a primary now",
			    "stop this program if the replica is in use; replctl demote ends that"},
	[JUDGE_NEWER] = {"newer", "the replica is newer than the local file",
			 "replctl restore takes the replica's data"},
	[JUDGE_DIVERGED] = {"diverged", "local file and replica have diverged", NEXT_CHOOSE},
	[JUDGE_NO_COMMON] = {"no-common-generation",
			     "local file and replica have no generation in common", NEXT_CHOOSE},
	[JUDGE_OTHER_POOL] = {"other-pool", "the replica is of another pool",
			      "name the right pool, or another one for this replica"},
};

static bool
chain_has(const struct generation *g, const struct gen_id *id)
{
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		if (gen_id_equal(&g->history[i], id))
			return true;
	return gen_id_equal(&g->current, id);
}

struct generation
judge_present(const struct generation *g, const struct gen_id *base)
{
	struct generation out = *g;

	if (base && !gen_id_is_nil(base) && !gen_id_is_nil(&g->current) && !chain_has(g, base))
		out.history[GEN_HISTORY - 1] = *base;
	return out;
}

/*
 * A copy that knows how much of a generation it has, of its own or of the one that it was promoted
 * in: who has more of that is no copy of it, nor who has all of it, nor who was written until its
 * writer died, or was being brought back then, and does not know how much it got.
 */
static bool
has_more(const struct sidecar *replica, const struct sidecar *local)
{
	const struct generation *g = &local->generation;
	const struct gen_id *before = local->primary ? &g->history[1] : &g->history[0];

	if (!local->position || replica->state == SIDECAR_INCONSISTENT ||
	    !gen_id_equal(local->primary ? &g->history[0] : &g->current,
			  &replica->generation.current))
		return false;
	return replica->position > local->position ||
	       (!replica->position &&
		(replica->state != SIDECAR_OUTDATED || newest_is_amid_resync(replica, before)));
}

/*
 * Who was promoted with a part may have gone on from that, and names the generation all the same:
 * each has what the other has not.
 */
static enum gen_relation
relation_of(const struct generation *chain, const struct sidecar *local,
	    const struct sidecar *replica)
{
	enum gen_relation relation = gen_compare(chain, &replica->generation);

	if (relation == GEN_BEHIND && newest_promoted_part(replica, local))
		return GEN_DIVERGED;
	if ((relation != GEN_EQUAL && relation != GEN_AHEAD) || !has_more(replica, local))
		return relation;
	return local->primary ? GEN_DIVERGED : GEN_BEHIND;
}

enum gen_relation
judge_relation(const struct sidecar *local, const struct sidecar *replica)
{
	return relation_of(&local->generation, local, replica);
}

static enum gen_relation
input_relation(const struct judge_input *in)
{
	struct generation chain;

	if (!in->local)
		return GEN_UNRELATED;
	/* Only of a replica that did not go on itself is the map's base its generation. */
	chain = in->local->generation;
	if (in->base && gen_id_equal(in->base, &in->replica->generation.current))
		chain = judge_present(&chain, in->base);
	return relation_of(&chain, in->local, in->replica);
}

bool
judge_is_one_pool(const struct sidecar *a, const struct sidecar *b)
{
	if (gen_id_equal(&a->pool_uuid, &b->pool_uuid))
		return true;
	return !gen_id_is_nil(&a->generation.current) && !gen_id_is_nil(&b->generation.current) &&
	       gen_compare(&a->generation, &b->generation) != GEN_UNRELATED;
}

static enum judge_reason
judge_why(const struct judge_input *in, enum gen_relation relation)
{
	/* First: a primary has a program of its own, whatever the chains say. */
	if (in->replica->primary)
		return JUDGE_PROMOTED;
	if (gen_id_is_nil(&in->replica->generation.current))
		return JUDGE_NEVER_WRITTEN;
	if (!in->local)
		return JUDGE_LOCAL_UNKNOWN;
	switch (relation) {
	case GEN_EQUAL:
	case GEN_AHEAD:
		if (in->replica->state == SIDECAR_INCONSISTENT)
			return JUDGE_INCONSISTENT;
		return relation == GEN_EQUAL ? JUDGE_SAME : JUDGE_BEHIND;
	case GEN_BEHIND:
		return JUDGE_NEWER;
	case GEN_DIVERGED:
		return JUDGE_DIVERGED;
	default:
		return gen_id_equal(&in->local->pool_uuid, &in->replica->pool_uuid)
			       ? JUDGE_NO_COMMON
			       : JUDGE_OTHER_POOL;
	}
}

static bool
map_speaks_of(const struct judge_input *in)
{
	return in->trusted && in->base && gen_id_equal(in->base, &in->replica->generation.current);
}

static enum judge_verdict
judge_verdict_of(const struct judge_input *in, enum judge_reason reason)
{
	switch (reason) {
	case JUDGE_NEVER_WRITTEN:
		return JUDGE_FULL;
	case JUDGE_SAME:
		if (map_speaks_of(in) && in->dirty_bytes == 0 &&
		    in->replica->state == SIDECAR_UP_TO_DATE)
			return JUDGE_UP_TO_DATE;
		return map_speaks_of(in) ? JUDGE_DELTA : JUDGE_HASHES;
	case JUDGE_BEHIND:
		return map_speaks_of(in) ? JUDGE_DELTA : JUDGE_HASHES;
	case JUDGE_INCONSISTENT:
		/* Who wrote into it, and what, is not in our map. */
		return JUDGE_HASHES;
	default:
		return JUDGE_REFUSE;
	}
}

void
replica_judge(const struct judge_input *in, struct judgement *out)
{
	out->relation = input_relation(in);
	out->reason = judge_why(in, out->relation);
	out->verdict = judge_verdict_of(in, out->reason);
	out->why = reason_texts[out->reason].why;
	out->next = reason_texts[out->reason].next;
}

const char *
judge_reason_name(enum judge_reason reason)
{
	return (unsigned)reason < JUDGE_REASON_COUNT ? reason_texts[reason].name : "unknown";
}
