/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_source - what an initiator's lane with an RNIC takes large writes from: the
 * program's pool itself, where its memory may be registered, else a copy in the lane's
 * buffers. ARCHITECTURE.md, "Writes from the pool itself", has the rule and its reasons.
 *
 * One thread uses it, that of the lane; source_info() may be called by any.
 */
#ifndef COMMON_FABRIC_SOURCE_H
#define COMMON_FABRIC_SOURCE_H

#include "fabric_ofi.h"
#include "regions.h"

#define SOURCE_LEAST 4096U         /* bytes; a shorter write is copied */
#define SOURCE_PIECE (64ULL << 20) /* registered at a time */
#define SOURCE_MAX   (64ULL << 30) /* registered by a lane: closing it gives that back */
#define SOURCE_SHARE 8U            /* of a piece must have been copied before */

struct fab_source {
	struct fid_domain *domain;  /* borrowed; NULL: nothing is registered with this provider */
	void *lane_mem;             /* borrowed: of the lane's own memory ... */
	struct fid_mr *lane_mr;     /* ... and as what it is registered */
	bool stops;                 /* a connection that is shut down sends no more */
	const struct regions *pool; /* borrowed, or NULL: of the size that the target knows */
	const uint8_t *mem;         /* borrowed; NULL: nothing is taken from the pool */
	_Atomic uint64_t *uncopied; /* borrowed */
	struct regions pieces;
	struct fid_mr **mr; /* by piece, REGIONS_MAX; NULL: not registered */
	uint64_t registered, copied;
	_Atomic bool off; /* why was written, for good */
	char why[160];
};

/* mem is where the pool begins; bytes are counted in *uncopied. Nothing is registered yet; whether
 * it may be is looked at. */
void source_begin(struct fab_source *s, const void *mem, _Atomic uint64_t *uncopied);

/* Only after the endpoint, which may be sending from there. */
void source_fini(struct fab_source *s);

/*
 * Whether the write may be taken from src itself, with *desc. It may not if src is
 * not where off of the pool lies.
 */
bool source_take(struct fab_source *s, const void *src, size_t len, uint64_t off, void **desc);

void source_info(const struct fab_source *s, struct fab_source_info *out);

#endif
