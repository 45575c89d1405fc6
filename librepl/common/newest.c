/* SPDX-License-Identifier: BSD-3-Clause */
#include "newest.h"

static bool
is_same(const struct sidecar *a, const struct sidecar *b)
{
	return gen_id_equal(&a->generation.current, &b->generation.current);
}

static bool
names(const struct sidecar *a, const struct sidecar *b)
{
	return !is_same(a, b) && gen_compare(&a->generation, &b->generation) == GEN_AHEAD;
}

bool
newest_is_amid_resync(const struct sidecar *s, const struct gen_id *before)
{
	return s->state == SIDECAR_OUTDATED && !s->position &&
	       gen_id_equal(&s->generation.history[0], before);
}

/*
 * Only if drains wait for it: of several that they do not the acknowledgements of the others have
 * counted meanwhile, and what it has beside these was none of those.
 */
static bool
is_waited_amid_resync(const struct sidecar *s, const struct gen_id *before)
{
	return s->waited && newest_is_amid_resync(s, before);
}

bool
newest_promoted_part(const struct sidecar *a, const struct sidecar *b)
{
	return a->primary && a->position &&
	       gen_id_equal(&a->generation.history[0], &b->generation.current) &&
	       (b->state != SIDECAR_OUTDATED ||
		is_waited_amid_resync(b, &a->generation.history[1])) &&
	       (!b->position || b->position > a->position);
}

bool
newest_usable(const struct sidecar *s)
{
	return s->state != SIDECAR_INCONSISTENT && !gen_id_is_nil(&s->generation.current);
}

/* All that was acknowledged in its generation is there. */
static bool
is_whole(const struct sidecar *s)
{
	return s->waited && s->state != SIDECAR_OUTDATED;
}

/* A queued one, whose writer has not closed it. */
static bool
may_lack(const struct sidecar *s)
{
	return !s->waited && !s->primary && (s->state == SIDECAR_UNKNOWN || s->writer_open);
}

/* Of b, which is outdated. */
static enum newest_by
over_outdated(const struct sidecar *a, const struct sidecar *b)
{
	if (is_same(a, b) && may_lack(a) && is_waited_amid_resync(b, &a->generation.history[0]))
		return NEWEST_UNTOLD;
	return NEWEST_STATE;
}

enum newest_by
newest_over(const struct sidecar *a, const struct sidecar *b)
{
	bool outdated = a->state == SIDECAR_OUTDATED;

	if (names(a, b))
		return newest_promoted_part(a, b) ? NEWEST_UNTOLD : NEWEST_GENERATION;
	if (names(b, a))
		return NEWEST_UNTOLD;
	if (outdated != (b->state == SIDECAR_OUTDATED))
		return outdated ? NEWEST_UNTOLD : over_outdated(a, b);
	if (!is_same(a, b))
		return NEWEST_UNTOLD;
	if (is_whole(a))
		return NEWEST_WAITED;
	return !is_whole(b) && a->position && b->position && a->position >= b->position
		       ? NEWEST_POSITION
		       : NEWEST_UNTOLD;
}

/*
 * A copy into i was under way when the primary was lost, which best is older than or a part of.
 * What is outdated beside it may be what the program went on with before, so that best was away
 * then.
 */
static bool
is_doubtful(const struct sidecar *i, const struct sidecar *best, const struct sidecar *other)
{
	return i->state == SIDECAR_INCONSISTENT && (names(i, best) || is_same(i, best)) &&
	       newest_usable(other) && other->state == SIDECAR_OUTDATED &&
	       newest_over(best, other) == NEWEST_STATE && !is_same(best, other);
}

static bool
is_best(const struct sidecar *const *r, unsigned count, unsigned n)
{
	if (!newest_usable(r[n]))
		return false;
	for (unsigned i = 0; i < count; i++)
		if (i != n && newest_usable(r[i]) && newest_over(r[n], r[i]) == NEWEST_UNTOLD)
			return false;
	return true;
}

/*
 * Of those that have all one may have grown with a program that was lost before the others had:
 * they can follow it, and it does not shrink.
 */
static bool
is_larger(const struct sidecar *a, const struct sidecar *b)
{
	return a->pool_size > b->pool_size;
}

unsigned
newest_of(const struct sidecar *const *replicas, unsigned count, unsigned *doubt)
{
	unsigned best = count;

	*doubt = count;
	for (unsigned i = 0; i < count; i++)
		if (is_best(replicas, count, i) &&
		    (best == count || is_larger(replicas[i], replicas[best])))
			best = i;
	for (unsigned i = 0; i < count && best < count; i++)
		for (unsigned k = 0; k < count; k++)
			if (is_doubtful(replicas[i], replicas[best], replicas[k])) {
				*doubt = i;
				return count;
			}
	return best;
}
