/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poollist - the list of pools, page by page. A directory is in no order: a walk through it keeps
 * the next so many names, in order, for the pages that follow. With a walk for each page the time
 * of a list would go by the square of its length.
 */
#include "poolstore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define NAMES_MAX 8192U

/* So long a page takes about, and a walk: who has asked waits for an answer. */
#define PAGE_NS (NS_PER_S / 2)

/* The smallest names that are greater than after. */
struct pool_listing {
	char after[TARGET_POOL_MAX + 1];
	char (*names)[TARGET_POOL_MAX + 1]; /* twice NAMES_MAX, for the walk */
	unsigned count;
	bool rest;   /* there are greater ones */
	bool *parts; /* which of them are parts of sets: looked at when there is one to ask for */
	bool parts_known;
};

static void
listing_free(struct pool_listing *l)
{
	if (!l)
		return;
	free(l->names);
	free(l->parts);
	free(l);
}

void
pool_list_forget(struct pool_store *s)
{
	listing_free(s->listing);
	s->listing = NULL;
}

static int
name_compare(const void *key, const void *name)
{
	return strcmp(key, name);
}

static void
listing_cut(struct pool_listing *l)
{
	qsort(l->names, l->count, sizeof(l->names[0]), name_compare);
	if (l->count > NAMES_MAX) {
		l->count = NAMES_MAX;
		l->rest = true;
	}
}

static int
listing_visit(void *ctx, int dir, const char *leaf, const char *name)
{
	struct pool_listing *l = ctx;

	(void)dir;
	(void)leaf;
	/* What is no pool's name is no pool: sidecars, temporary and hidden files. */
	if (pool_name_check(name, NULL) || strcmp(name, l->after) <= 0 ||
	    (l->rest && strcmp(name, l->names[NAMES_MAX - 1]) > 0))
		return 0;
	(void)snprintf(l->names[l->count++], sizeof(l->names[0]), "%s", name);
	if (l->count == 2 * NAMES_MAX)
		listing_cut(l);
	return 0;
}

static int
listing_walk(struct pool_store *s, const char *after, struct err *e)
{
	struct pool_listing *l = calloc(1, sizeof(*l));
	int rc = 0;

	if (l) {
		(void)snprintf(l->after, sizeof(l->after), "%s", after);
		l->names = calloc(2 * NAMES_MAX, sizeof(l->names[0]));
		l->parts = calloc(NAMES_MAX, sizeof(*l->parts));
	}
	pool_list_forget(s);
	if (!l || !l->names || !l->parts)
		rc = err_set(e, REPL_E_NOMEM, "no memory for a list of pools");
	if (!rc)
		rc = pool_walk(s->dirfd, listing_visit, l, e);
	if (rc) {
		listing_free(l);
		return rc;
	}
	listing_cut(l);
	s->listing = l;
	return 0;
}

/* The first that is greater than after. */
static unsigned
listing_first(const struct pool_listing *l, const char *after)
{
	unsigned from = 0, to = l->count;

	while (from < to) {
		unsigned at = (from + to) / 2;

		if (strcmp(l->names[at], after) <= 0)
			from = at + 1;
		else
			to = at;
	}
	return from;
}

/* Whether it has all names that are greater than after, up to its last one. */
static bool
listing_goes_on(const struct pool_listing *l, const char *after)
{
	return l && strcmp(after, l->after) >= 0 &&
	       (!l->rest || listing_first(l, after) < l->count);
}

static bool
parts_visit(void *ctx, const char *part, const char *set)
{
	struct pool_listing *l = ctx;
	const char(*at)[TARGET_POOL_MAX + 1] =
		bsearch(part, l->names, l->count, sizeof(l->names[0]), name_compare);

	(void)set;
	if (at)
		l->parts[at - l->names] = true;
	return false;
}

static bool
is_part(struct pool_store *s, unsigned i)
{
	if (!s->listing->parts_known)
		pool_sets_visit(s, parts_visit, s->listing);
	s->listing->parts_known = true;
	return s->listing->parts[i];
}

struct page {
	struct pool_info *infos;
	unsigned count, max;
	uint64_t end_ns;
};

static bool
page_is_full(const struct page *p)
{
	return p->count == p->max || (p->count > 0 && clock_now_ns() >= p->end_ns);
}

/* Add what of the names from the i-th on are pools, until it is full; where that ends. */
static unsigned
page_take(struct pool_store *s, unsigned i, struct page *p)
{
	const struct pool_listing *l = s->listing;
	struct err why;

	for (; i < l->count && !page_is_full(p); i++) {
		struct pool_info *info = &p->infos[p->count];

		err_clear(&why);
		/* Removed since the walk: it is not in the list. */
		if (pool_info(s, l->names[i], info, &why) == REPL_E_NOT_FOUND)
			continue;
		if (why.code && is_part(s, i))
			continue;
		(void)snprintf(info->damage, sizeof(info->damage), "%.511s", why.text);
		info->damage_code = why.code;
		p->count++;
	}
	return i;
}

int
pool_list(struct pool_store *s, const char *after, struct pool_info *infos, unsigned max,
	  unsigned *count, bool *more, struct err *e)
{
	struct page p = {.infos = infos, .max = max, .end_ns = clock_now_ns() + PAGE_NS};
	char from[TARGET_POOL_MAX + 1];
	int rc = 0;

	(void)snprintf(from, sizeof(from), "%s", after ? after : "");
	*more = false;
	if (!after || !listing_goes_on(s->listing, from))
		rc = listing_walk(s, from, e);
	/* Names of no pools take no room in the list, however many there are in a row. */
	while (!rc) {
		const struct pool_listing *l = s->listing;
		unsigned end = page_take(s, listing_first(l, from), &p);

		*more = end < l->count || l->rest;
		if (end < l->count || !l->rest || page_is_full(&p))
			break;
		(void)snprintf(from, sizeof(from), "%s", l->names[l->count - 1]);
		rc = listing_walk(s, from, e);
	}
	if (rc || !*more)
		pool_list_forget(s);
	*count = rc ? 0 : p.count;
	*more = *more && !rc;
	return rc;
}
