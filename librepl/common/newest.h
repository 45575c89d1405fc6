/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * newest - which of several replicas of one pool to go on from when their primary is gone:
 * docs/RECOVERY.md.
 *
 * Pure. What is asked of each is its metadata as they are once all is brought in that its last
 * writer has left.
 */
#ifndef COMMON_NEWEST_H
#define COMMON_NEWEST_H

#include <stdbool.h>

#include "sidecar.h"

/* By what it is known that one has all that was acknowledged and that another one has. */
enum newest_by {
	NEWEST_UNTOLD,     /* it is not known */
	NEWEST_GENERATION, /* it names the other's generation */
	NEWEST_STATE,      /* the other one is outdated */
	NEWEST_WAITED,     /* of the same generation, in which each drain waited for it */
	NEWEST_POSITION,   /* of the same generation, and the other one's position is no higher */
};

/* It can be gone on from: it was written, and no copy into it is unfinished. */
bool newest_usable(const struct sidecar *s);

/* Of two that are usable. */
enum newest_by newest_over(const struct sidecar *a, const struct sidecar *b);

/*
 * s is outdated since what brought it back was cut off, where its generation came behind that one:
 * it has all of that, as no laggard has that was told of a loss, and nobody knows how much of its
 * own.
 */
bool newest_is_amid_resync(const struct sidecar *s, const struct gen_id *before);

/*
 * a was promoted when it had a part of b's generation, as its position tells, and b may have more:
 * that a names this generation says nothing then.
 */
bool newest_promoted_part(const struct sidecar *a, const struct sidecar *b);

/*
 * The one of count that has all that any of the usable ones has, of several the first of the
 * largest; or count: that is not known of any. *doubt is then the one which is not usable and makes
 * it so, or count.
 */
unsigned newest_of(const struct sidecar *const *replicas, unsigned count, unsigned *doubt);

#endif
