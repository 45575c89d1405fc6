/* SPDX-License-Identifier: BSD-3-Clause */
#include "generation.h"

#include <string.h>

#include "hex.h"

bool
gen_id_is_nil(const struct gen_id *id)
{
	static const struct gen_id nil;

	return gen_id_equal(id, &nil);
}

bool
gen_id_equal(const struct gen_id *a, const struct gen_id *b)
{
	return memcmp(a->b, b->b, GEN_ID_SIZE) == 0;
}

static bool
ids_have(const struct gen_id *ids, unsigned count, const struct gen_id *id)
{
	for (unsigned i = 0; i < count; i++)
		if (gen_id_equal(&ids[i], id))
			return true;
	return false;
}

struct wanted {
	bool itself, beside;
};

/* Of an unused place neither. */
static struct wanted
history_wanted(const struct generation *g, unsigned i, const struct gen_id *keep, unsigned count)
{
	const struct gen_id *newer = i > 0 ? &g->history[i - 1] : &g->current;

	if (gen_id_is_nil(&g->history[i]))
		return (struct wanted){0};
	return (struct wanted){
		.itself = ids_have(keep, count, &g->history[i]),
		.beside = ids_have(keep, count, newer) ||
			  (i + 1 < GEN_HISTORY && ids_have(keep, count, &g->history[i + 1])),
	};
}

/*
 * The place that a new entry is made room in: unused, or the oldest that nobody wants, if possible
 * one that stands beside none that is wanted.
 */
static unsigned
history_last(const struct generation *g, const struct gen_id *keep, unsigned count)
{
	unsigned last = GEN_HISTORY;

	for (unsigned i = GEN_HISTORY; i-- > 0;) {
		struct wanted w = history_wanted(g, i, keep, count);

		if (!w.itself && !w.beside)
			return i;
		if (!w.itself && last == GEN_HISTORY)
			last = i;
	}
	return last < GEN_HISTORY ? last : GEN_HISTORY - 1;
}

void
gen_advance_keeping(struct generation *g, const struct gen_id *id, const struct gen_id *keep,
		    unsigned count)
{
	if (!gen_id_is_nil(&g->current)) {
		memmove(&g->history[1], &g->history[0],
			history_last(g, keep, count) * sizeof(g->history[0]));
		g->history[0] = g->current;
	}
	g->current = *id;
}

void
gen_advance(struct generation *g, const struct gen_id *id)
{
	gen_advance_keeping(g, id, NULL, 0);
}

void
gen_replace(struct generation *g, const struct gen_id *id)
{
	g->current = *id;
}

void
gen_forget_since(struct generation *g, const struct gen_id *since)
{
	unsigned n = 0;

	while (n < GEN_HISTORY && !gen_id_equal(&g->history[n], since))
		n++;
	n = n < GEN_HISTORY ? n + 1 : n;
	memmove(&g->history[0], &g->history[n], (GEN_HISTORY - n) * sizeof(g->history[0]));
	memset(&g->history[GEN_HISTORY - n], 0, n * sizeof(g->history[0]));
}

/* The nil identifier is nobody's ancestor. */
static bool
history_has(const struct generation *g, const struct gen_id *id)
{
	if (gen_id_is_nil(id))
		return false;
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		if (gen_id_equal(&g->history[i], id))
			return true;
	return false;
}

static bool
share_ancestor(const struct generation *a, const struct generation *b)
{
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		if (history_has(b, &a->history[i]))
			return true;
	return false;
}

enum gen_relation
gen_compare(const struct generation *ours, const struct generation *theirs)
{
	bool ahead, behind;

	if (gen_id_equal(&ours->current, &theirs->current))
		return GEN_EQUAL;
	if (gen_id_is_nil(&ours->current))
		return GEN_BEHIND;
	if (gen_id_is_nil(&theirs->current))
		return GEN_AHEAD;
	ahead = history_has(ours, &theirs->current);
	behind = history_has(theirs, &ours->current);
	/* Each descending from the other is a lie: take the relation that merges nothing. */
	if (ahead && behind)
		return GEN_DIVERGED;
	if (ahead)
		return GEN_AHEAD;
	if (behind)
		return GEN_BEHIND;
	return share_ancestor(ours, theirs) ? GEN_DIVERGED : GEN_UNRELATED;
}

const char *
gen_relation_name(enum gen_relation r)
{
	static const char *const names[] = {
		[GEN_EQUAL] = "equal",       [GEN_AHEAD] = "ahead",         [GEN_BEHIND] = "behind",
		[GEN_DIVERGED] = "diverged", [GEN_UNRELATED] = "unrelated",
	};

	if ((unsigned)r >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	return names[r];
}

/* A dash stands before these bytes of the text form. */
static bool
dash_before(unsigned byte)
{
	return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void
gen_id_format(const struct gen_id *id, char out[GEN_TEXT_SIZE])
{
	for (unsigned i = 0; i < GEN_ID_SIZE; i++) {
		if (dash_before(i))
			*out++ = '-';
		hex_encode(&id->b[i], 1, out);
		out += 2;
	}
}

bool
gen_id_parse(const char *text, struct gen_id *id)
{
	struct gen_id got;

	for (unsigned i = 0; i < GEN_ID_SIZE; i++) {
		if (dash_before(i) && *text++ != '-')
			return false;
		/* The terminator is no digit, so a short text ends here. */
		if (!hex_decode(text, 2, &got.b[i], 1))
			return false;
		text += 2;
	}
	if (*text != '\0')
		return false;
	*id = got;
	return true;
}
