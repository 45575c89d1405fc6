/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lineage - what a copy of a pool is called when people have gone on from one: its chain, and how
 * much it has of the last generation.
 *
 * Pure. Who names a generation as an ancestor has all that was acknowledged in it, and overwrites a
 * copy that stands there. So nothing here lets a copy that may have but a part of a generation
 * name it, unless its position says how much. fresh and id are identifiers that nobody has.
 */
#ifndef COMMON_LINEAGE_H
#define COMMON_LINEAGE_H

#include <stdbool.h>

#include "generation.h"
#include "sidecar.h"

/*
 * Its writer was lost and did not wait for it with each drain, and nobody knows how much of its
 * generation it has: a queued replica that could keep no position, or has got none yet.
 */
bool lineage_is_untold(const struct sidecar *replica);

/*
 * local is a copy of replica: of the same generation, or, where that is outdated, inconsistent or
 * untold, or of a part that local, as a primary, can't tell, of fresh in its place. What is known
 * of how much it has is noted.
 */
void lineage_copy(struct sidecar *local, const struct sidecar *replica, const struct gen_id *fresh);

/*
 * Of two replicas that a file equals a's chain tells more of what that is: it goes further, or a
 * has all of its generation and b may not. Of contents that a copy was cut off in it says nothing.
 */
bool lineage_tells_more(const struct sidecar *a, const struct sidecar *b);

/*
 * A file is used by the record beside it, which may be a replica's: of one that has lost its writer
 * without a word (named, since a program that uses its own file is not) nobody has looked how much
 * it has. It gets fresh in place of the generation of which that may be a part. One that was closed
 * in order has no position any more, since it has all.
 */
void lineage_in_place(struct sidecar *local, const struct gen_id *fresh);

/*
 * Before a new generation is put on local, of which only a part may be here (its position): that
 * generation becomes no ancestor, since who has more of it would pass for one that is behind. Who
 * has that one and is told the new one is a copy of it; who is away has to be chosen by people.
 */
void lineage_forget_part(struct sidecar *local, const struct gen_id *fresh);

/*
 * file has been restored from replica, which is not inconsistent: its state, chain and position.
 * changed: not all of its bytes are the replica's.
 */
void lineage_restore(struct sidecar *file, const struct sidecar *replica, bool changed,
		     const struct gen_id *fresh);

/*
 * What is made equal to local before that has got a new generation: chain, which is local's,
 * becomes its own. Returns up to which position it has that generation, 0 if it has all: so it is
 * with a promoted laggard's, of which the one before is no ancestor.
 */
uint64_t lineage_equal(const struct sidecar *local, struct generation *chain);

/* s has what a copy has that lagged: its generation up to that position, which is not 0. */
void lineage_part(struct sidecar *s, uint64_t position);

/*
 * file is about to equal a replica, and both are recorded as whole. changed: bytes were moved, or
 * its generation is not to count.
 */
void lineage_sync(struct sidecar *file, bool changed, const struct gen_id *fresh,
		  const struct gen_id *id);

/*
 * file may lack some of what was acknowledged in its generation: where it gets a new one, as by a
 * sync that discards what a replica has, that becomes no ancestor. (A sync that discards nothing
 * leaves it to both of them, as one of which nobody says that they have all.)
 */
void lineage_lost(struct sidecar *file, const struct gen_id *fresh);

/* A replica becomes a primary, of generation id. */
void lineage_promote(struct sidecar *s, const struct gen_id *id);

/* The same as it is recorded before bytes of the pool are changed for it. */
void lineage_promote_begin(struct sidecar *s, const struct gen_id *id);

/*
 * A primary becomes a replica again, of generation id. lost: it may lack some of what its program
 * had acknowledged, and is no newer than who has that.
 */
void lineage_demote(struct sidecar *s, bool lost, const struct gen_id *id);

#endif
