/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync_impl - what a run of resync.c consists of: resync_scan.c marks what is
 * to be copied, resync_copy.c copies what is marked, resync_kept.c goes on with what an earlier
 * session has staged, resync_sample.c foretells how much that comes to, resync_space.c asks whether
 * what is marked has its space there, resync.c decides on rounds.
 */
#ifndef LIBREPL_RESYNC_IMPL_H
#define LIBREPL_RESYNC_IMPL_H

#include "dirty.h"
#include "hashwalk.h"
#include "push.h"
#include "resync.h"
#include "resync_throttle.h"
#include "stage.h"

#define RESYNC_FINE  4096U        /* what is coarser in the map is refined to this */
#define RESYNC_CHUNK (256U << 10) /* moved between two looks at the world */
#define RESYNC_TAKE  (1U << 20)   /* taken from the map at once; a grain fits */
#define RESYNC_LOOK  (1ULL << 30) /* of the map gone through between two */
#define RESYNC_SPARE (1U << 20)   /* room in a journal that may be asked for in vain */

/* How long something takes for so many bytes, as last measured. */
struct pace {
	uint64_t bytes, ns;
};

struct resync_run {
	struct resync *s;
	uint64_t size; /* of both sides, for this round */
	bool refine;   /* in this pass blocks are compared before they are copied */
	bool held;     /* nobody writes */
	bool direct;   /* no journal: ranges are written to the pool */
	bool marked;   /* the replica is recorded as inconsistent */
	bool blank;    /* there is nothing in it to protect */
	bool fill;     /* to read a hole of the pool here is to fill it */
	struct fill_source source;
	uint64_t from; /* what lies before it an earlier run has compared */
	struct throttle throttle;
	struct hashwalk *walk; /* under way: it has the control channel */
	struct stage *stage;
	bool resumes;                /* what was staged before and not committed is wanted */
	bool resumed;                /* and was there, in this round */
	struct resync_kept *kept;    /* that, up to the end of the first pass; or NULL */
	const struct dirtymap *want; /* with kept: what was marked before that was compared */
	struct push push;
	uint64_t reserved, staged; /* bytes of the journal: asked for, used */
	bool full;                 /* the target had no space for as much as was asked for */
	struct pace copying, applying;
	uint64_t began_ns, began_staged; /* of this pass */
	uint64_t taken;                  /* with want: of that, by this pass */
	uint64_t passed, found;          /* what it has looked at, and what differed of that */
	uint64_t foretold;  /* what differs at least of all in the round's first pass */
	uint64_t waited_ns; /* by the throttle, in this pass */
	uint64_t heard_ns;  /* when the target was last asked something */
	uint64_t ticked_ns; /* when the rate was last looked at */
	uint64_t ticked_done;
};

/* ---- resync_copy.c ---- */

/* Cancellation, signs of life, progress; between any two steps. */
int resync_breathe(struct resync_run *r, struct err *e);

/* The same for those who wait. */
struct breath resync_breath(struct resync_run *r);

/* Let the foreground have its turn before so many bytes. */
int resync_yield(struct resync_run *r, uint64_t bytes, struct err *e);

/* Copy all of a range, no more than RESYNC_TAKE, which has to be there. */
int resync_put(struct resync_run *r, uint64_t off, uint64_t len, struct err *e);

/*
 * Copy all that is marked below r->size, into the journal or the pool, and have it
 * there: staged, or durable. What is marked meanwhile behind the cursor is left.
 */
int resync_pass(struct resync_run *r, struct err *e);

/* Run a walk of the pool by blocks of RESYNC_FINE: its arg, next, differ and passed are set. */
int resync_compare(struct resync_run *r, struct hashwalk *w, struct err *e);

uint64_t resync_left(const struct resync_run *r);

/* Bytes of a journal. */
struct resync_room {
	uint64_t need;     /* r->staged among them */
	uint64_t expected; /* beside them, by what was seen */
	uint64_t more;     /* that may be needed */
};

/*
 * Have a journal with that room: only where there is none for what is needed and expected it fails.
 * Then r->reserved is what may be staged before it is asked for again. ahead: as of
 * remote_journal_resume(), or NULL.
 */
int resync_reserve(struct resync_run *r, const struct resync_room *room, uint64_t *ahead,
		   struct err *e);
void pace_add(struct pace *p, uint64_t bytes, uint64_t ns);
uint64_t pace_ns(const struct pace *p, uint64_t bytes);

/* ---- resync_scan.c ---- */

/*
 * Mark all from r->from on, and no less where the target is lost over it: however early a resync is
 * cut off, the map is then no smaller than what lacks.
 */
int resync_mark_all(struct resync_run *r, struct err *e);

/* Take back of what is marked from r->from on what is equal (HASHES) or a hole (FULL). */
int resync_scan(struct resync_run *r, enum resync_what what, struct err *e);

/* A full journal or none is no reason to leave the replica behind. */
static inline bool
resync_is_refusal(int rc)
{
	return rc == REPL_E_REFUSED || rc == REPL_E_LIMIT || rc == REPL_E_NOSPC;
}

/* ---- resync_kept.c ---- */

/*
 * Have a journal for what is marked: a new one, or with r->resumed one that has something in it
 * already. Then r->staged and r->reserved are with that.
 */
int resync_kept_begin(struct resync_run *r, struct err *e);

/*
 * Stage again what it has wrongly. From then on all that it brings equals the pool here, but for
 * what is marked again.
 */
int resync_kept_stage(struct resync_run *r, struct err *e);

/* Bytes that are wanted and were told of by no range of it. */
uint64_t resync_kept_left(const struct resync_run *r);

/* The first bytes of a range that it does not bring; without any false. */
bool resync_kept_lacks(const struct resync_run *r, uint64_t off, uint64_t len, struct range *lacks);

/*
 * Have all answers that are under way, for a request of another kind: it would come between. They
 * are looked at when their turn comes, but for an error that is the end of all requests.
 */
int resync_kept_settle(struct resync_run *r, struct err *e);

/* The pass has come to its end, or the journal is gone. */
void resync_kept_free(struct resync_run *r);

/* ---- resync_sample.c ---- */

/* Of what is marked now, bytes that differ at least; 0: that can't be told. Without an open batch.
 */
int resync_sample(struct resync_run *r, uint64_t *least, struct err *e);

/* ---- resync_space.c ---- */

/*
 * Of a sparse replica: whether to write what is marked takes no space on its disk. What is marked
 * from now on is not in the answer. Without an open batch.
 */
int resync_has_space(struct resync_run *r, bool *has, struct err *e);

#endif
