/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dirtytrack - what a replica's dirty map is worth.
 *
 * Pure. A map is relative to a *base*, the generation that the replica had when it
 * began, and speaks of a replica of that generation only. One that may lack blocks
 * is untrusted; where a crash has left no map that could be believed the next one
 * begins so.
 */
#ifndef COMMON_DIRTYTRACK_H
#define COMMON_DIRTYTRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "generation.h"

struct dirtytrack {
	bool suspect;   /* since a crash only a comparison tells what it lacks */
	bool untrusted; /* the map may lack blocks */
	struct gen_id base;
	uint64_t epoch; /* counts the maps that were begun in this place */
};

/* A map begins, with nothing in it; the caller sets base. */
void dirtytrack_begin(struct dirtytrack *t);

/* What base says of a map that was there already: of another one it is not all. */
void dirtytrack_go_on(struct dirtytrack *t, const struct gen_id *base);

/* What is marked now is all that a replica of generation base lacks. */
void dirtytrack_rebase(struct dirtytrack *t, const struct gen_id *base);

/* The replica has everything. */
void dirtytrack_end(struct dirtytrack *t);

/* Does the map hold all that a replica of this generation lacks? */
bool dirtytrack_speaks_of(const struct dirtytrack *t, const struct gen_id *current);

#endif
