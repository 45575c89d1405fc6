/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * siblings - the handles that this process has on replicas of one pool set (repl_set.h).
 *
 * Each has a target of its own, and nothing is kept on the local side: what a replica is worth
 * beside the others must be told by the replicas. So the handles have their generations in common:
 * all that are written to get the same one, and when one is lost the others get the next before
 * anything is acknowledged without it. The lost one is behind them from then on.
 *
 * Handles are of one set if the UUID of the set in their attributes is the same; one without
 * headers has no siblings. Lock order: the siblings' lock, then repl.lock of any of them.
 */
#ifndef LIBREPL_SIBLINGS_H
#define LIBREPL_SIBLINGS_H

#include "err.h"
#include "generation.h"
#include "setsource.h"

struct repl;
struct siblings;

/* Of a handle that was opened: r->set->found and attr are what was found then. */
int siblings_join(struct repl *r, struct err *e);

/* No other thread uses the handle. It may never have joined, or have left. */
void siblings_leave(struct repl *r);

/*
 * The generation in common, for a replica that is made equal to the local data: the first time a
 * new one on top of the newest that was found.
 */
int siblings_generation(struct repl *r, struct generation *chain, struct err *e);

/*
 * Record it on r's replica as up to date, and from then on each that follows. By the deadline, and
 * beside others in a quarter of op-timeout, else it is lost, and the others are told. filled: from
 * another replica, by nobody who goes on; it is as whole as one that was closed in order, and newer
 * than those of which none was.
 */
int siblings_record(struct repl *r, bool filled, uint64_t deadline_ns, struct err *e);

/*
 * What of the replica speaks against taking data from it. *other is then who, one that can be read
 * if there is one; it is there as long as none of the handles is closed.
 */
enum setsource siblings_judge(struct repl *r, const struct repl **other);

/* Of those that were opened before r one can be read, and is found to be whole. */
bool siblings_earlier_whole(struct repl *r);

/* One of the others can be read. */
bool siblings_readable(struct repl *r);

/*
 * The turn of repl_direct_begin(), among all of them: their other replicas stay whole. opened: also
 * beside one that is live and has all.
 */
bool siblings_direct_begin(struct repl *r, bool opened);
void siblings_direct_note(struct repl *r);
void siblings_direct_end(struct repl *r);

/*
 * Around the recording of a loss. NULL, and nothing is held, of a handle that has not joined, or in
 * a child that comes back to a call: see ownwait.h.
 */
struct siblings *siblings_lock(struct repl *r);
void siblings_unlock(struct siblings *s);

/*
 * One was lost: the others get a generation that it does not have. Under locked->lock, if that is
 * not NULL.
 */
void siblings_advance(struct siblings *s, const struct repl *locked, uint64_t deadline_ns);

/*
 * Under r->lock: r's replica, which was lost, comes back to the generation in common, and gets each
 * that follows.
 */
void siblings_rejoin(struct siblings *s, struct repl *r);

#endif
