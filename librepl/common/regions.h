/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * regions - the ranges by which a pool is registered for RMA.
 *
 * Both sides count them alike: those of the pool as it was when the lanes were
 * opened begin at the multiples of a unit; each growth adds regions from the old
 * end on, cut at multiples of the unit. So a region never changes: what is
 * registered stays as it is while RMA is under way. No RMA crosses a region's
 * end.
 *
 * One thread grows, any may look.
 */
#ifndef COMMON_REGIONS_H
#define COMMON_REGIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "rangeset.h"

#define REGIONS_MAX      16384U
#define REGIONS_UNIT_MIN (1ULL << 20)
#define REGIONS_UNIT     (1ULL << 30) /* what a target takes, unless there would be too many */

/* Of registered memory: its remote address and key, where the provider chooses them. */
struct regions_place {
	uint64_t addr, key;
};

struct regions {
	uint64_t unit;
	unsigned aligned; /* so many, at the beginning, begin at multiples of the unit */
	_Atomic unsigned count;
	struct range *r;         /* REGIONS_MAX */
	_Atomic uint64_t *ready; /* a bit a region: regions_set_ready() */
	_Atomic uint64_t *place; /* two a region, address and key: regions_tell() */
};

/* A power of two for a pool of size bytes that is meant to grow. */
uint64_t regions_unit(uint64_t size);

/* Whether unit, from a peer, may be one. */
bool regions_unit_valid(uint64_t unit);

/* REPL_E_LIMIT if there would be more than REGIONS_MAX. Freed by regions_fini() in any case. */
int regions_init(struct regions *g, uint64_t unit, uint64_t size, struct err *e);
void regions_fini(struct regions *g);

/* Whether the pool may have size bytes, not less than before; REPL_E_LIMIT as above. */
int regions_grow_check(const struct regions *g, uint64_t size, struct err *e);

/* It has them now; on an error nothing has changed. */
int regions_grow(struct regions *g, uint64_t size, struct err *e);

/* The number of the region that off lies in; their count if in none. */
unsigned regions_find(const struct regions *g, uint64_t off);

struct range regions_get(const struct regions *g, unsigned i);

/* The bytes from off to the end of its region, at most max; 0 if it lies in none. */
uint64_t regions_reach(const struct regions *g, uint64_t off, uint64_t max);

/* A mark for the user's own purpose. */
bool regions_is_ready(const struct regions *g, unsigned i);
void regions_set_ready(struct regions *g, unsigned i);

/*
 * The place of a region, told once: it is ready then. REPL_E_PROTOCOL if it
 * would wrap, or was told otherwise before.
 */
int regions_tell(struct regions *g, unsigned i, const struct regions_place *p, struct err *e);

/* False if none was told. */
bool regions_place(const struct regions *g, unsigned i, struct regions_place *out);

#endif
