/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dirtypage - the pages of a dirty map's region in the local sidecar:
 * POOL-FORMAT.md, 1.6.
 *
 * Pure. Each page carries a checksum whose seed is of the pool and of the page's
 * own place: a page that strayed, or was left there by another pool, is damaged.
 */
#ifndef COMMON_DIRTYPAGE_H
#define COMMON_DIRTYPAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "checksum.h"
#include "dirtymap.h"
#include "err.h"
#include "generation.h"

#define DIRTYPAGE_SIZE         4096U
#define DIRTYPAGE_REPLICAS_MAX 16U
#define DIRTYPAGE_EXTENTS      4096U /* of the activity log, at most */
#define DIRTYPAGE_EXTENT_WORDS (DIRTYPAGE_EXTENTS / 64)
#define DIRTYPAGE_EXTENT_SHIFT 22U /* an extent has at least 4 MiB */

/* The region: a header, the activity log, each replica's pages. */
#define DIRTYPAGE_ACTIVITY 1U
#define DIRTYPAGE_MAPS     2U

struct dirtypage_slot {
	bool tracked;
	bool untrusted;             /* its map may lack blocks */
	uint8_t name[HASH128_SIZE]; /* hash of the target's text */
	struct gen_id base;
	uint64_t epoch; /* counts the maps that were begun in this place */
};

/* Which file a region is of, that may be replaced by another one of its name. All zero: unknown. */
struct dirtypage_file {
	uint64_t inode;
	uint64_t born; /* nanoseconds of the file system's clock; 0: it does not tell */
};

struct dirtypage_header {
	bool activity; /* the activity log is kept: what it tells after a crash counts */
	bool broken;   /* writing failed: nothing of the region counts */
	uint32_t count;
	uint32_t shift;        /* of a block */
	uint32_t extent_shift; /* of an extent of the activity log */
	uint64_t pool_size;
	struct dirtypage_file file;
	struct dirtypage_slot slot[DIRTYPAGE_REPLICAS_MAX];
};

/* Smallest extents of a pool of this size. */
uint32_t dirtypage_extent_shift(uint64_t pool_size);

/* The region's size for a header like this. */
uint64_t dirtypage_region_len(const struct dirtypage_header *h);

/* The number of a replica's page in the region, from 0. */
uint64_t dirtypage_index(const struct dirtypage_header *h, unsigned replica, uint64_t page);

void dirtypage_header_encode(const struct dirtypage_header *h, const struct gen_id *pool,
			     uint8_t out[DIRTYPAGE_SIZE]);

/*
 * REPL_E_CORRUPT, or REPL_E_VERSION if it is whole and of a newer version. One
 * that decodes describes a region of len bytes.
 */
int dirtypage_header_decode(const uint8_t in[DIRTYPAGE_SIZE], const struct gen_id *pool,
			    uint64_t len, struct dirtypage_header *h, struct err *e);

/* A page of bits; index is its number in the region. False if it is damaged. */
void dirtypage_map_encode(const uint64_t words[DIRTYMAP_PAGE_WORDS], const struct gen_id *pool,
			  uint64_t index, uint64_t epoch, uint8_t out[DIRTYPAGE_SIZE]);
bool dirtypage_map_decode(const uint8_t in[DIRTYPAGE_SIZE], const struct gen_id *pool,
			  uint64_t index, uint64_t *epoch, uint64_t words[DIRTYMAP_PAGE_WORDS]);

/* The activity log, a bit an extent. */
void dirtypage_activity_encode(const uint64_t words[DIRTYPAGE_EXTENT_WORDS],
			       const struct gen_id *pool, uint8_t out[DIRTYPAGE_SIZE]);
bool dirtypage_activity_decode(const uint8_t in[DIRTYPAGE_SIZE], const struct gen_id *pool,
			       uint64_t words[DIRTYPAGE_EXTENT_WORDS]);

#endif
