/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * claims - the ranges that lanes have on their way to the replicas: never the same byte on two.
 *
 * Lanes are connections of their own. What one took from the range a moment before another took it
 * newer may arrive a moment behind it, and would stay. So a lane claims what it is about to send,
 * and who comes later waits until it is on all replicas, and only then looks at the bytes. Those
 * who wait go in the order in which they came, and have nothing on its way meanwhile: so what they
 * wait for comes to its end. What was written before its drain has its lane's thread elsewhere,
 * perhaps for long: who is held up by that makes an end of it himself, see claims_take().
 *
 * Safe from any thread; a lane's own calls are made by who is in that lane. In a child that comes
 * back to one nobody else has anything on its way, and nothing is claimed: see ownwait.h.
 */
#ifndef LIBREPL_CLAIMS_H
#define LIBREPL_CLAIMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <librepl.h>

#include "rangeset.h"

#define CLAIMS_MORE_MAX 2U

/* Of one lane. */
struct claim {
	struct rangeset early;      /* written before their drain */
	const struct rangeset *set; /* of a drain, with more: NULL: there is none */
	struct range more[CLAIMS_MORE_MAX];
	bool waits;      /* it has not begun */
	uint64_t turn;   /* the order of those that wait */
	uint64_t lo, hi; /* all of the above lies in between */
};

struct claims {
	pthread_mutex_t lock; /* guards all of it; innermost, never held for long */
	pthread_cond_t ended; /* a claim has, and there is who waits */
	uint64_t any;         /* a bit for each lane that has one */
	uint64_t turns;
	unsigned waiting;
	struct claim *claim; /* of each lane */
	const _Atomic bool *abandoned;
};

/* 0, or an error number. abandoned: in that child. */
int claims_init(struct claims *c, unsigned lanes, const _Atomic bool *abandoned);
void claims_fini(struct claims *c);

/* To write a range before its drain. False: not now, it is to go with that. */
bool claims_early(struct claims *c, unsigned lane, uint64_t off, uint64_t len);

enum claims_got {
	CLAIMS_TAKEN,
	CLAIMS_END_OWN,   /* first make what this lane has written early durable, then again */
	CLAIMS_END_OTHER, /* the same of *other, from outside of this lane */
	CLAIMS_LATE,      /* others have not come to an end */
};

/*
 * For a drain: set, which stays as it is until claims_drop(), and more, of which those without a
 * length do not count. Waits by the deadline; 0: not at all, whatever is in the way.
 */
enum claims_got claims_take(struct claims *c, unsigned lane, const struct rangeset *set,
			    const struct range *more, unsigned count, uint64_t deadline_ns,
			    unsigned *other);

/* Of a drain that was taken nothing was sent: what was written early stays. */
void claims_yield(struct claims *c, unsigned lane);

/* In that child, when *abandoned is set. */
void claims_abandon(struct claims *c);

/* Nothing of a lane's is on its way any more. */
void claims_drop(struct claims *c, unsigned lane);

/* Whether it has written anything that no drain has followed. */
bool claims_has_early(struct claims *c, unsigned lane);

#endif
