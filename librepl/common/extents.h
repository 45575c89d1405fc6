/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extents - where a file has data, and where only holes, which read as zeros
 * and need not be looked at.
 */
#ifndef COMMON_EXTENTS_H
#define COMMON_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "checksum.h"
#include "rangeset.h"

/*
 * The first run of data at or behind off, below size; length 0 if there is
 * none. Where the file system can't tell, or may not know yet what was stored in a mapping of the
 * file, all is data.
 */
struct range extents_next(int fd, uint64_t off, uint64_t size);

/*
 * Whether to read the holes of the file where it is mapped is to fill them: on tmpfs, which gives
 * each page that is looked at its space, and raises SIGBUS if it has none. read() takes none.
 */
bool extents_fill(int fd);

/*
 * Of a file: to read it is to read the pages of its mappings, whatever was stored in them a moment
 * ago. A network's or a user's file system may give other bytes.
 */
bool extents_cached(int fd);

/*
 * Before [addr, addr + len) of such a mapping is read. False: there is no space for a hole of it.
 * True also where that can't be asked.
 */
bool extents_touch(const void *addr, size_t len);

/*
 * Asked for ranges in rising order, it looks at the file once a hole, and once a
 * range where there are data: looking for their end takes the kernel time in
 * proportion to what lies between, and who asks for little would pay for all.
 */
struct extents {
	int fd; /* borrowed; -1: all is data */
	uint64_t size;
	uint64_t from, data; /* nothing but a hole is between them */
	uint64_t zeros;      /* so many were hashed last, to */
	uint8_t zeros_hash[HASH128_SIZE];
};

void extents_init(struct extents *x, int fd, uint64_t size);

/* Whether [off, off + len), below size, is one hole. */
bool extents_hole(struct extents *x, uint64_t off, uint64_t len);

/* The hash of len zeros, at most EXTENTS_ZEROS_MAX, by the one key of all that x is asked for. */
#define EXTENTS_ZEROS_MAX (1U << 20)
void extents_hash_zeros(struct extents *x, const struct hash_key *k, uint64_t len,
			uint8_t hash[HASH128_SIZE]);

#endif
