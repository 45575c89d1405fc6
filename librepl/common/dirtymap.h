/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dirtymap - which blocks of a pool a replica lacks: one bit a block.
 *
 * Pure, in memory. A block is 2^shift bytes; a range dirties all blocks that it
 * touches. Setting is lock-free, and whoever sees what comes after a call of
 * dirtymap_set() sees its bits. Bits lie in words of 64; DIRTYMAP_PAGE_WORDS of
 * them fill a page on media (dirtypage.h).
 */
#ifndef COMMON_DIRTYMAP_H
#define COMMON_DIRTYMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "rangeset.h"

#define DIRTYMAP_SHIFT_MIN  12U
#define DIRTYMAP_SHIFT_MAX  20U
#define DIRTYMAP_PAGE_WORDS 510U /* 4080 bytes of bits */

struct dirtymap;

/* Of a pool of 2^12 bytes or more; all blocks are clean. REPL_E_NOMEM. */
int dirtymap_new(uint64_t pool_size, unsigned shift, struct dirtymap **out, struct err *e);
void dirtymap_free(struct dirtymap *m);

/*
 * All blocks of [off, off + len), cut at the pool's end. Any thread. True if one
 * of them was clean.
 */
bool dirtymap_set(struct dirtymap *m, uint64_t off, uint64_t len);
void dirtymap_set_all(struct dirtymap *m);

/* The same blocks are clean. Any thread, but whose bits go is not told. */
void dirtymap_unset(struct dirtymap *m, uint64_t off, uint64_t len);

/* Nobody else may be setting. */
void dirtymap_clear(struct dirtymap *m);

/*
 * The first dirty bytes at or behind from, at most max_len of them and all
 * adjacent, cut at the pool's end; false if there are none. Begins at from
 * itself if its block is dirty.
 */
bool dirtymap_next(const struct dirtymap *m, uint64_t from, uint64_t max_len, struct range *run);

/* The same of what lies below end, cut there: no other words are looked at. */
bool dirtymap_next_below(const struct dirtymap *m, uint64_t from, uint64_t end, struct range *run);

/*
 * Move the first run of dirty blocks at or behind from, whole ones that end at or
 * below end, from m to a map of the same shift; from is a block's beginning,
 * max_len at least a block. Others may be setting in m: what is set after the
 * move stays, and whoever's bit is moved is seen by the caller. A block is at no
 * moment in neither: who looks at both looks at m first.
 */
bool dirtymap_take(struct dirtymap *m, struct dirtymap *to, uint64_t from, uint64_t end,
		   uint64_t max_len, struct range *run);

/* Bytes of dirty blocks, the last one cut at the pool's end. From a counter. */
uint64_t dirtymap_bytes(const struct dirtymap *m);

/*
 * The blocks of [off, off + len) that are dirty in src are in dst too; both of one shift. Others
 * may be setting in dst.
 */
void dirtymap_merge(struct dirtymap *dst, const struct dirtymap *src, uint64_t off, uint64_t len);

/* Nobody else may use it meanwhile. The new part is clean; a pool does not shrink. */
int dirtymap_grow(struct dirtymap *m, uint64_t pool_size, struct err *e);

/* The same, back to a size from before: of a growth that came to nothing. */
void dirtymap_grow_undo(struct dirtymap *m, uint64_t pool_size);

unsigned dirtymap_shift(const struct dirtymap *m);

/* Memory that the bits take. */
uint64_t dirtymap_memory(const struct dirtymap *m);

/* ---- for what keeps it on media ---- */

unsigned dirtymap_pages(const struct dirtymap *m);

/* Pages of a map of such a pool. */
uint64_t dirtymap_pages_of(uint64_t pool_size, unsigned shift);

/* The page that the block at off lies in. */
unsigned dirtymap_page_at(const struct dirtymap *m, uint64_t off);

/* Add a page's bits to words; bits behind the pool's end are zero. */
void dirtymap_page_get(const struct dirtymap *m, unsigned page,
		       uint64_t words[DIRTYMAP_PAGE_WORDS]);

/* Set what is set in words; bits behind the pool's end are passed over. */
void dirtymap_page_set(struct dirtymap *m, unsigned page,
		       const uint64_t words[DIRTYMAP_PAGE_WORDS]);

/* All blocks of a page. */
void dirtymap_page_set_all(struct dirtymap *m, unsigned page);

#endif
