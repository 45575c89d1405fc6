/* SPDX-License-Identifier: BSD-3-Clause */
#include "lineage.h"

#include <string.h>

bool
lineage_is_untold(const struct sidecar *replica)
{
	return replica->state == SIDECAR_UNKNOWN && !replica->waited && !replica->position &&
	       !replica->primary;
}

/* What was closed in order has all, whatever its last position. */
static uint64_t
position_kept(const struct sidecar *s)
{
	return s->state == SIDECAR_UNKNOWN ? s->position : 0;
}

/* Nobody knows how much it has, or all that is known is that it is not all. */
static bool
is_part(const struct sidecar *s)
{
	return s->state == SIDECAR_OUTDATED || s->state == SIDECAR_INCONSISTENT ||
	       lineage_is_untold(s);
}

void
lineage_copy(struct sidecar *local, const struct sidecar *replica, const struct gen_id *fresh)
{
	local->pool_uuid = replica->pool_uuid;
	local->generation = replica->generation;
	local->position = position_kept(replica);
	/* A primary's position is of the generation before. */
	if (is_part(replica) || (local->primary && local->position)) {
		gen_replace(&local->generation, fresh);
		local->position = 0;
	}
}

bool
lineage_tells_more(const struct sidecar *a, const struct sidecar *b)
{
	bool cut = a->state == SIDECAR_INCONSISTENT;

	if (cut != (b->state == SIDECAR_INCONSISTENT))
		return !cut;
	switch (gen_compare(&a->generation, &b->generation)) {
	case GEN_AHEAD:
		return true;
	case GEN_BEHIND:
		return false;
	default:
		return !is_part(a) && !position_kept(a) && (is_part(b) || position_kept(b));
	}
}

void
lineage_in_place(struct sidecar *local, const struct gen_id *fresh)
{
	struct sidecar left = *local;

	local->settled = false;
	if (local->primary)
		return;
	if (left.writer_open && left.writer[0] && left.state == SIDECAR_UP_TO_DATE)
		left.state = SIDECAR_UNKNOWN;
	if (lineage_is_untold(&left) && !gen_id_is_nil(&left.generation.current))
		gen_replace(&local->generation, fresh);
	/* One that its writer has closed has all, and its last position still. */
	if (left.writer[0] && left.state == SIDECAR_UP_TO_DATE)
		local->position = 0;
	/* From now on it is this program's. */
	memset(local->writer, 0, sizeof(local->writer));
}

void
lineage_forget_part(struct sidecar *local, const struct gen_id *fresh)
{
	struct generation *g = &local->generation;

	if (!local->position)
		return;
	if (local->primary)
		gen_forget_since(g, &g->history[0]);
	else
		gen_replace(g, fresh);
	local->position = 0;
}

/*
 * A file that has a part says how much; its replica gets what has changed by comparison. One of a
 * promoted laggard does not name that generation. Else a file that differs from its replica is
 * ahead of it. One of an outdated replica, or of one of which nobody knows how much it has, is not
 * all of its generation, and must not pass for it with those that are.
 */
void
lineage_restore(struct sidecar *file, const struct sidecar *replica, bool changed,
		const struct gen_id *fresh)
{
	file->generation = replica->generation;
	file->position = 0;
	if (replica->primary && replica->position)
		gen_forget_since(&file->generation, &file->generation.history[0]);
	else if (!replica->primary)
		file->position = position_kept(replica);
	/* As of a replica that lagged, in case that it becomes one. */
	file->state = file->position ? SIDECAR_UNKNOWN : SIDECAR_UP_TO_DATE;
	if (is_part(replica))
		gen_replace(&file->generation, fresh);
	else if (changed && !file->position)
		gen_advance(&file->generation, fresh);
}

uint64_t
lineage_equal(const struct sidecar *local, struct generation *chain)
{
	if (!local->primary)
		return local->position;
	if (local->position)
		gen_forget_since(chain, &chain->history[0]);
	return 0;
}

void
lineage_part(struct sidecar *s, uint64_t position)
{
	s->state = SIDECAR_UNKNOWN;
	s->position = position;
	s->waited = false;
}

void
lineage_sync(struct sidecar *file, bool changed, const struct gen_id *fresh,
	     const struct gen_id *id)
{
	if (!changed && !file->position && !gen_id_is_nil(&file->generation.current))
		return;
	lineage_forget_part(file, fresh);
	gen_advance(&file->generation, id);
}

void
lineage_lost(struct sidecar *file, const struct gen_id *fresh)
{
	gen_replace(&file->generation, fresh);
}

/*
 * Who descends from a generation has all that was acknowledged in it. This one may not: its old
 * writer, who has, must find that the two have diverged.
 */
static void
chain_promote(struct sidecar *s, bool part, const struct gen_id *id)
{
	if (part || is_part(s))
		gen_replace(&s->generation, id);
	else
		gen_advance(&s->generation, id);
	s->waited = false;
	s->settled = false;
}

/* The chain of a laggard would be taken for all: only a primary's position speaks of that. */
void
lineage_promote_begin(struct sidecar *s, const struct gen_id *id)
{
	chain_promote(s, position_kept(s) > 0, id);
	s->position = 0;
}

/*
 * What a primary holds is the pool, under a name that nobody has more of. That some of it is of a
 * copy that has not ended stays told: no program knows that it has mended that.
 */
static void
state_whole(struct sidecar *s)
{
	if (s->state != SIDECAR_INCONSISTENT)
		s->state = SIDECAR_UP_TO_DATE;
}

/* By a laggard's position its program finds who has more of what it says it descends from. */
void
lineage_promote(struct sidecar *s, const struct gen_id *id)
{
	uint64_t position = position_kept(s);

	chain_promote(s, false, id);
	state_whole(s);
	s->position = position;
	s->primary = true;
	s->writer_open = false;
}

void
lineage_demote(struct sidecar *s, bool lost, const struct gen_id *id)
{
	/* Without the position nothing would tell that of this one it has but a part. */
	if (s->position)
		gen_forget_since(&s->generation, &s->generation.history[0]);
	/* Its program may have been killed. */
	state_whole(s);
	s->primary = false;
	s->writer_open = false;
	s->position = 0;
	s->waited = false;
	s->settled = false;
	memset(&s->boot, 0, sizeof(s->boot));
	/*
	 * A program that knows nothing of generations may have written to it since it was last
	 * copied: that copy would be called the same, and its next resync would undo the writes.
	 */
	if (lost)
		lineage_lost(s, id);
	else
		gen_advance(&s->generation, id);
}
