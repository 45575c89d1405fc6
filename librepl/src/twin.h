/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * twin - a second mapping of the pages of a range, so that they can be read when who has mapped the
 * range has unmapped it. libpmemobj does that to the local part of a pool set before it closes the
 * remote ones; and what is mapped in its place meanwhile is none of the pool's.
 */
#ifndef LIBREPL_TWIN_H
#define LIBREPL_TWIN_H

#include <stdbool.h>
#include <stddef.h>

struct twin {
	void *mem; /* of size bytes, as they are in the range */
	void *room;
	size_t room_size;
};

/*
 * Of size bytes at addr, multiples of 4096. False, and nothing is mapped, if they are not all of
 * shared mappings, or /proc is not there.
 */
bool twin_map(struct twin *t, const void *addr, size_t size);

/* Also of one that was never mapped, and is all zero. */
void twin_unmap(struct twin *t);

#endif
