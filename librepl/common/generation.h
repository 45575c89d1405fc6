/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generation - who is ahead: a chain of random identifiers for a pool's data.
 *
 * Pure. Each time that copies of a pool may start to differ a new identifier
 * is made and the old one goes to the front of the history. Two copies are
 * compared by looking each one's current identifier up in the other's history
 * (DRBD does the same). The nil identifier means "never written".
 */
#ifndef COMMON_GENERATION_H
#define COMMON_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

#define GEN_ID_SIZE   16
#define GEN_HISTORY   15
#define GEN_TEXT_SIZE 37 /* UUID text and a zero byte */

struct gen_id {
	uint8_t b[GEN_ID_SIZE];
};

struct generation {
	struct gen_id current;
	struct gen_id history[GEN_HISTORY]; /* newest first, nil when unused */
};

enum gen_relation {
	GEN_EQUAL,     /* same current identifier */
	GEN_AHEAD,     /* ours descends from theirs */
	GEN_BEHIND,    /* theirs descends from ours */
	GEN_DIVERGED,  /* a common ancestor, both went on */
	GEN_UNRELATED, /* nothing in common */
};

bool gen_id_is_nil(const struct gen_id *id);
bool gen_id_equal(const struct gen_id *a, const struct gen_id *b);

/* id becomes current, the old current (unless nil) the newest history entry. */
void gen_advance(struct generation *g, const struct gen_id *id);

/*
 * The same, but a full history drops the oldest entry that is none of keep, count of
 * them, and only where there is no such one the oldest of all. While it has another choice it
 * drops none that stands beside one of keep either: who is known by that may have been told the
 * next without an answer, or not have been told it by who died over it and has the one before. A
 * chain with gaps is no lie: it only knows fewer of its ancestors.
 */
void gen_advance_keeping(struct generation *g, const struct gen_id *id, const struct gen_id *keep,
			 unsigned count);

/*
 * id takes the place of the current identifier, which does not become an ancestor:
 * for data that is not all of the generation that it was recorded in.
 */
void gen_replace(struct generation *g, const struct gen_id *id);

/*
 * The ancestors from since on, the newest included, go, for data that may lack some of each of
 * them; all if since is none of them.
 */
void gen_forget_since(struct generation *g, const struct gen_id *since);

/* A nil current is behind everything that is not nil; two nil ones are equal. */
enum gen_relation gen_compare(const struct generation *ours, const struct generation *theirs);

const char *gen_relation_name(enum gen_relation r);

/* Lower-case UUID text, and back (false if it is not one). */
void gen_id_format(const struct gen_id *id, char out[GEN_TEXT_SIZE]);
bool gen_id_parse(const char *text, struct gen_id *id);

#endif
