/* SPDX-License-Identifier: BSD-3-Clause */
#include "regions.h"

#include <stdlib.h>

#define READY_WORDS (REGIONS_MAX / 64)

uint64_t
regions_unit(uint64_t size)
{
	uint64_t unit = REGIONS_UNIT;

	/* Three quarters are left for growing. */
	while (size / unit >= REGIONS_MAX / 4)
		unit *= 2;
	return unit;
}

bool
regions_unit_valid(uint64_t unit)
{
	return unit >= REGIONS_UNIT_MIN && unit <= 1ULL << 62 && (unit & (unit - 1)) == 0;
}

int
regions_init(struct regions *g, uint64_t unit, uint64_t size, struct err *e)
{
	int rc;

	g->unit = unit;
	atomic_init(&g->count, 0);
	/* Zeroed by the kernel: what is not used takes no memory. */
	g->r = calloc(REGIONS_MAX, sizeof(*g->r));
	g->ready = calloc(READY_WORDS, sizeof(*g->ready));
	g->place = calloc(REGIONS_MAX, 2 * sizeof(*g->place));
	if (!g->r || !g->ready || !g->place)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	rc = regions_grow(g, size, e);
	g->aligned = atomic_load(&g->count);
	return rc;
}

void
regions_fini(struct regions *g)
{
	free(g->r);
	free(g->ready);
	free(g->place);
	g->place = NULL;
	g->r = NULL;
	g->ready = NULL;
	atomic_store(&g->count, 0);
}

static unsigned
regions_count(const struct regions *g)
{
	return atomic_load_explicit(&g->count, memory_order_acquire);
}

static uint64_t
regions_end(const struct regions *g, unsigned count)
{
	return count ? g->r[count - 1].off + g->r[count - 1].len : 0;
}

int
regions_grow_check(const struct regions *g, uint64_t size, struct err *e)
{
	unsigned n = regions_count(g);
	uint64_t at = regions_end(g, n);

	if (size <= at || (size - 1) / g->unit - at / g->unit < REGIONS_MAX - n)
		return 0;
	return err_set(e, REPL_E_LIMIT,
		       "a pool of %llu bytes that has grown so often needs more than %u regions "
		       "for RMA: close it and open it again",
		       (unsigned long long)size, REGIONS_MAX);
}

int
regions_grow(struct regions *g, uint64_t size, struct err *e)
{
	unsigned n = regions_count(g);
	uint64_t at = regions_end(g, n);

	if (regions_grow_check(g, size, e))
		return REPL_E_LIMIT;
	while (at < size) {
		uint64_t end = (at / g->unit + 1) * g->unit;

		end = end < size ? end : size;
		g->r[n++] = (struct range){.off = at, .len = end - at};
		at = end;
	}
	atomic_store_explicit(&g->count, n, memory_order_release);
	return 0;
}

unsigned
regions_find(const struct regions *g, uint64_t off)
{
	unsigned count = regions_count(g);
	unsigned from = g->aligned, to = count;

	if (off / g->unit < g->aligned && off < regions_end(g, g->aligned))
		return (unsigned)(off / g->unit);
	while (from < to) {
		unsigned mid = from + (to - from) / 2;

		if (off < g->r[mid].off)
			to = mid;
		else if (off - g->r[mid].off >= g->r[mid].len)
			from = mid + 1;
		else
			return mid;
	}
	return count;
}

struct range
regions_get(const struct regions *g, unsigned i)
{
	return i < regions_count(g) ? g->r[i] : (struct range){0};
}

uint64_t
regions_reach(const struct regions *g, uint64_t off, uint64_t max)
{
	struct range r = regions_get(g, regions_find(g, off));
	uint64_t left = r.len ? r.off + r.len - off : 0;

	return left < max ? left : max;
}

bool
regions_is_ready(const struct regions *g, unsigned i)
{
	return i < REGIONS_MAX &&
	       (atomic_load_explicit(&g->ready[i / 64], memory_order_acquire) >> i % 64 & 1);
}

void
regions_set_ready(struct regions *g, unsigned i)
{
	if (i < REGIONS_MAX)
		atomic_fetch_or_explicit(&g->ready[i / 64], 1ULL << i % 64, memory_order_release);
}

/* Two lanes may hear of the same region at once: they hear the same. */
int
regions_tell(struct regions *g, unsigned i, const struct regions_place *p, struct err *e)
{
	struct range r = regions_get(g, i);
	struct regions_place before;

	if (r.len == 0 || p->addr > UINT64_MAX - r.len)
		return err_set(e, REPL_E_PROTOCOL,
			       "the target told no possible place for region %u", i);
	if (regions_place(g, i, &before) && (before.addr != p->addr || before.key != p->key))
		return err_set(e, REPL_E_PROTOCOL, "the target told two places for region %u", i);
	atomic_store_explicit(&g->place[2UL * i], p->addr, memory_order_relaxed);
	atomic_store_explicit(&g->place[2UL * i + 1], p->key, memory_order_relaxed);
	regions_set_ready(g, i);
	return 0;
}

bool
regions_place(const struct regions *g, unsigned i, struct regions_place *out)
{
	if (!regions_is_ready(g, i))
		return false;
	out->addr = atomic_load_explicit(&g->place[2UL * i], memory_order_relaxed);
	out->key = atomic_load_explicit(&g->place[2UL * i + 1], memory_order_relaxed);
	return true;
}
