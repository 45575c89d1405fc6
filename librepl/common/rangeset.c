/* SPDX-License-Identifier: BSD-3-Clause */
#include "rangeset.h"

#include <string.h>

void
rangeset_clear(struct rangeset *s)
{
	s->count = 0;
	s->bytes = 0;
}

/* The first range that ends at or behind off: the first that could be touched. */
static unsigned
first_touched(const struct rangeset *s, uint64_t off)
{
	unsigned lo = 0;
	unsigned hi = s->count;

	while (lo < hi) {
		unsigned mid = lo + (hi - lo) / 2;

		if (s->r[mid].off + s->r[mid].len < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int
insert_at(struct rangeset *s, unsigned at, uint64_t off, uint64_t len)
{
	if (s->count == RANGESET_MAX)
		return -1;
	memmove(&s->r[at + 1], &s->r[at], (s->count - at) * sizeof(s->r[0]));
	s->r[at] = (struct range){.off = off, .len = len};
	s->count++;
	s->bytes += len;
	return 0;
}

int
rangeset_add(struct rangeset *s, uint64_t off, uint64_t len)
{
	unsigned first = first_touched(s, off);
	unsigned last = first;
	uint64_t start = off;
	uint64_t end = off + len;
	uint64_t present = 0;

	for (; last < s->count && s->r[last].off <= off + len; last++)
		present += s->r[last].len;
	if (last == first)
		return insert_at(s, first, off, len);
	if (s->r[first].off < start)
		start = s->r[first].off;
	if (s->r[last - 1].off + s->r[last - 1].len > end)
		end = s->r[last - 1].off + s->r[last - 1].len;
	s->r[first] = (struct range){.off = start, .len = end - start};
	s->bytes += end - start - present;
	memmove(&s->r[first + 1], &s->r[last], (s->count - last) * sizeof(s->r[0]));
	s->count -= last - first - 1;
	return (int)(last - first);
}

bool
rangeset_meets(const struct rangeset *s, const struct range *r)
{
	unsigned lo = 0, hi = s->count;

	while (lo < hi) {
		unsigned mid = lo + (hi - lo) / 2;

		if (s->r[mid].off + s->r[mid].len <= r->off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return r->len > 0 && lo < s->count && s->r[lo].off < r->off + r->len;
}
