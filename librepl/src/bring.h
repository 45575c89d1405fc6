/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bring - what a replica lacks that is a prefix of the range, at an opening: nobody writes, and no
 * keeper is there yet. It goes by the replica's journal, so that it stays a prefix at every moment:
 * we may end in the middle, and our file be lost then.
 */
#ifndef LIBREPL_BRING_H
#define LIBREPL_BRING_H

#include "repl_impl.h"
#include "resync.h"

struct dirty;

/*
 * Make the replica equal to the range, recorded as up-to-date with chain. Its remote has lanes
 * without a receive ring, none of them in use, and keeps them. What differs is marked in dirty.
 * Directly only where the target keeps no journal, or has no room for it.
 */
int bring_resync(struct repl *r, unsigned replica, struct dirty *dirty, enum resync_what what,
		 const struct generation *chain, struct err *e);

#endif
