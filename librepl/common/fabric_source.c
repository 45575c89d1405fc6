/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric_source.h"

#include <stdio.h>
#include <stdlib.h>

#include "daxmap.h"

/* ---- may it be registered? ---- */

static void
source_off(struct fab_source *s, const struct err *why)
{
	(void)snprintf(s->why, sizeof(s->why), "%.*s", (int)sizeof(s->why) - 1, why->text);
	atomic_store_explicit(&s->off, true, memory_order_release);
}

/* As of this moment: the program's mapping, and the limit of locked memory. */
static int
source_check(const struct fab_source *s, const struct range *r, struct err *e)
{
	int rc = daxmap_check(&DAXMAP_SELF, s->mem + r->off, r->len, e);

	return rc ? rc : ofi_mem_spare(r->len, e);
}

static int
source_may(struct fab_source *s, const struct range *first, struct err *e)
{
	if (!s->stops)
		return err_set(e, REPL_E_REFUSED,
			       "the RNIC's connections can't be stopped at once");
	if (!ofi_fork_safe())
		return err_set(e, REPL_E_REFUSED,
			       "kernel or libibverbs would take what is registered from the "
			       "program's children");
	if (source_check(s, first, e))
		return e->code;
	/* That for which it is registered is sending alone. */
	if (ofi_mem_cached(s->domain, s->lane_mem, SOURCE_LEAST, s->lane_mr))
		return err_set(e, REPL_E_REFUSED,
			       "libfabric would let the target write to it, without "
			       "FI_MR_CACHE_MAX_COUNT=0 in the environment");
	return 0;
}

/* ---- pieces ---- */

static uint64_t
pool_size(const struct regions *g)
{
	unsigned count = atomic_load_explicit(&g->count, memory_order_acquire);
	struct range last = count ? regions_get(g, count - 1) : (struct range){0};

	return last.off + last.len;
}

static int
pieces_new(struct fab_source *s, struct err *e)
{
	uint64_t size = pool_size(s->pool), unit = SOURCE_PIECE;

	while (size / unit >= REGIONS_MAX / 4)
		unit *= 2;
	s->mr = calloc(REGIONS_MAX, sizeof(struct fid_mr *));
	if (!s->mr)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	return regions_init(&s->pieces, unit, size, e);
}

/* The number of the piece that all of the range lies in, or REGIONS_MAX. */
static unsigned
source_piece(struct fab_source *s, uint64_t off, size_t len)
{
	uint64_t size;
	unsigned i;

	if (regions_reach(&s->pieces, off, len) == 0) {
		size = pool_size(s->pool);
		if (off >= size || len > size - off || regions_grow(&s->pieces, size, NULL))
			return REGIONS_MAX;
	}
	i = regions_find(&s->pieces, off);
	return regions_reach(&s->pieces, off, len) == len ? i : REGIONS_MAX;
}

/*
 * Registering a piece takes about as long as copying an eighth of it: so much is
 * copied before, and no program pays for it more than twice what copying costs.
 */
static bool
source_register(struct fab_source *s, unsigned i, size_t len)
{
	struct range r = regions_get(&s->pieces, i);
	struct err e;
	int rc;

	s->copied += len;
	if (s->copied < r.len / SOURCE_SHARE || r.len > SOURCE_MAX - s->registered)
		return false;
	s->copied = 0;
	err_clear(&e);
	rc = source_check(s, &r, &e);
	if (!rc)
		rc = ofi_mem_register(s->domain, (void *)(uintptr_t)(s->mem + r.off), r.len,
				      FI_WRITE, &s->mr[i], &e);
	if (rc) {
		source_off(s, &e);
		return false;
	}
	s->registered += r.len;
	return true;
}

/* ---- for the lane ---- */

void
source_begin(struct fab_source *s, const void *mem, _Atomic uint64_t *uncopied)
{
	struct range first;
	struct err e;

	if (!s->domain || !s->pool || !mem || s->mem == mem || atomic_load(&s->off))
		return;
	err_clear(&e);
	if (s->mem) {
		(void)err_set(&e, REPL_E_REFUSED, "the pool has moved");
		source_off(s, &e);
		return;
	}
	s->mem = mem;
	s->uncopied = uncopied;
	if (pieces_new(s, &e)) {
		source_off(s, &e);
		return;
	}
	first = regions_get(&s->pieces, 0);
	if (source_may(s, &first, &e))
		source_off(s, &e);
}

void
source_fini(struct fab_source *s)
{
	for (unsigned i = 0; s->mr && i < REGIONS_MAX; i++)
		ofi_close(s->mr[i] ? &s->mr[i]->fid : NULL);
	free(s->mr);
	s->mr = NULL;
	regions_fini(&s->pieces);
}

bool
source_take(struct fab_source *s, const void *src, size_t len, uint64_t off, void **desc)
{
	unsigned i;

	if (!s->mem || len < SOURCE_LEAST || (uintptr_t)src != (uintptr_t)s->mem + off ||
	    atomic_load_explicit(&s->off, memory_order_relaxed))
		return false;
	i = source_piece(s, off, len);
	if (i == REGIONS_MAX || (!s->mr[i] && !source_register(s, i, len)))
		return false;
	*desc = fi_mr_desc(s->mr[i]);
	atomic_fetch_add_explicit(s->uncopied, len, memory_order_relaxed);
	return true;
}

void
source_info(const struct fab_source *s, struct fab_source_info *out)
{
	bool off = atomic_load_explicit(&s->off, memory_order_acquire);

	*out = (struct fab_source_info){.told = s->domain && s->mem, .pool = s->mem && !off};
	if (off)
		(void)snprintf(out->why, sizeof(out->why), "%s", s->why);
}
