/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replica_judge - what is to be done with a replica that has just been reached.
 *
 * Pure. From the two sidecars and what the dirty map is worth: how the replica
 * is made equal to the local data, or why it must not be touched. What is not
 * proven to be older than the local data is never overwritten by itself.
 */
#ifndef COMMON_REPLICA_JUDGE_H
#define COMMON_REPLICA_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "generation.h"
#include "sidecar.h"

enum judge_verdict {
	JUDGE_UP_TO_DATE, /* nothing to copy, nothing to record */
	JUDGE_DELTA,      /* what the dirty map says, then record the chain */
	JUDGE_HASHES,     /* compare the whole by hashes, copy what differs */
	JUDGE_FULL,       /* it has never been written */
	JUDGE_REFUSE,     /* not by itself; reason says why, next what helps */
};

enum judge_reason {
	JUDGE_NEVER_WRITTEN,
	JUDGE_SAME,         /* same generation */
	JUDGE_BEHIND,       /* the replica is behind: an ancestor of the local data */
	JUDGE_INCONSISTENT, /* same or behind, with a copy into it not finished */
	JUDGE_LOCAL_UNKNOWN,
	JUDGE_PROMOTED, /* it was made the primary: no replica any more */
	JUDGE_NEWER,    /* it descends from the local data, or has more of its generation */
	JUDGE_DIVERGED, /* both went on from a common ancestor */
	JUDGE_NO_COMMON,
	JUDGE_OTHER_POOL,
	JUDGE_REASON_COUNT,
};

struct judge_input {
	const struct sidecar *local;   /* NULL: nothing is known of the local data */
	const struct sidecar *replica; /* as the target reports it */
	/*
	 * The generation that the replica had when the dirty map for it began, if one
	 * is kept; NULL: none is.
	 */
	const struct gen_id *base;
	bool trusted;         /* the map tells all that was written since base */
	uint64_t dirty_bytes; /* in the map */
};

struct judgement {
	enum judge_verdict verdict;
	enum judge_reason reason;
	enum gen_relation relation; /* of the local data to the replica */
	const char *why;            /* static text */
	const char *next;           /* static text: what helps; "" when nothing needs to be done */
};

void replica_judge(const struct judge_input *in, struct judgement *out);

/*
 * Of the local data to the replica: gen_compare() of the chains, but where one has, by its
 * position, a part of a generation of which the other one has more its chain does not count: local
 * data are behind then. Of one that was promoted with such a part, be it the replica, each has what
 * the other has not: they have diverged.
 */
enum gen_relation judge_relation(const struct sidecar *local, const struct sidecar *replica);

/*
 * By their UUID, or by a generation in common: pools that are made before their program is each
 * have a UUID of their own.
 */
bool judge_is_one_pool(const struct sidecar *a, const struct sidecar *b);

/* A short name, "diverged"; never NULL. */
const char *judge_reason_name(enum judge_reason reason);

/*
 * A chain forgets: a replica that missed more than GEN_HISTORY generations would
 * look like a stranger, though its dirty map says what it is. To a target that
 * compares chains itself present this one: g, with base as its oldest ancestor
 * where g itself has forgotten it. Never used to record.
 */
struct generation judge_present(const struct generation *g, const struct gen_id *base);

#endif
