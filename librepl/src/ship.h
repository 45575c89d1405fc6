/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ship - replicas that a drain does not drive by the caller's own lanes: all of
 * them with ack = quorum and any, the asynchronous ones with ack = all.
 *
 * A drain copies what was flushed into shipments (shipqueue.h), puts them behind
 * what is there for all queued replicas and waits until as many of them as
 * the policy asks for have acknowledged. Calls that wait send them, a thread a replica
 * what no call waits for: ship_impl.h.
 *
 * Why a queued replica is at any moment a prefix of what was drained:
 * - There is one list for all replicas. A shipment gets its place in it, and its
 *   bytes, under one lock: what is copied later is newer and lies behind, also
 *   where threads drain ranges that overlap.
 * - A replica gets the list from its front on one lane, by one thread at a time; COMMITs of
 *   a lane are applied in their order, and a BARRIER behind each shipment has its bytes
 *   on the media before anything of the next is stored. What goes by RMA is stored at once,
 *   so it begins when all before it is acknowledged.
 * - A replica that is given up gets nothing more; it comes back by a resync that
 *   ends in a moment of its own, under a hold, with an empty queue.
 * The shipment that is just being applied may be there in part, as a drain that
 * was cut off. POSITION says on the target which shipments are whole.
 *
 * A lost replica's queue becomes dirty marks before repl_lose() returns: ship_lost().
 *
 * Locks: ship's own is the innermost; none of these calls may be made with it, and it is never
 * held while something of a remote is waited for. A call that waits may own lanes meanwhile: it
 * gives them back before it waits for anything else.
 */
#ifndef LIBREPL_SHIP_H
#define LIBREPL_SHIP_H

#include "lane.h"
#include "repl_impl.h"

struct ship;
struct shipment;

/*
 * For the handle's queued replicas, if it has any (else *out is NULL): threads for all,
 * the remotes that are there attached. No drain has begun.
 */
int ship_new(struct repl *r, struct ship **out, struct err *e);

/* The handle is ready, for losses too: those that are there are told where they stand. NULL is
 * allowed. */
void ship_begin(struct ship *s);

/* End the threads. Nobody drains any more; ship_finish() first. */
void ship_stop(struct ship *s);

/* All that is queued is given up. After the lanes: RMA may read it until they are gone. */
void ship_free(struct ship *s);

/*
 * In the child of a fork, with r->abandoned set: close the child's descriptors. A call that has
 * been interrupted ends soon, without what it was to queue or to wait for. NULL is allowed.
 */
void ship_abandon(struct ship *s);

/* Whether the handle's configuration has this replica served by a queue. */
bool ship_queues(const struct repl *r, unsigned replica);

/* Whether the replica is served from here; s may be NULL. */
bool ship_serves(const struct ship *s, unsigned replica);

/*
 * Put the set's ranges, then the job's own range behind them (LANE_DRAIN: none),
 * into the queue. *out: what to await, or NULL if there was nothing to do. With no room
 * in the queue of a replica it is waited for or given up, by on-lag, within three
 * quarters of op-timeout from begin_ns on, or an eighth from now on but not behind latest_ns, or an
 * eighth since another one was lost over it; the last is for recording a loss. What the pool's own
 * pages have been waited for is none of that time. behind: of
 * LANE_ATOMIC8, its store is made in the same step, or NULL.
 * REPL_E_NOMEM: a part may be queued, nothing was stored, and there is nothing to await.
 */
int ship_post(struct ship *s, const struct rangeset *first, enum lane_kind kind,
	      const struct range *second, const struct repl_behind *behind, uint64_t begin_ns,
	      uint64_t latest_ns, struct shipment **out, struct err *e);

/*
 * Takes m. Returns when as many replicas have it as the policy asks for; with the same time as
 * above, or an eighth of it from now on but not behind latest_ns, those that don't answer are lost.
 * True if there are enough: else all that are left have it.
 */
bool ship_await(struct ship *s, struct shipment *m, uint64_t begin_ns, uint64_t latest_ns);

/* As many are there as a drain needs; of no ship, too. */
bool ship_enough(struct ship *s);

/* REPL_E_LOST: that they are not. */
int ship_few(struct ship *s, struct err *e);

/* ---- for those who lose and bring back replicas ---- */

/* A new generation has become r->generation, and no drain returns before it is recorded. */
void ship_ended(struct ship *s, const struct generation *chain);

/*
 * Whether the replica is a laggard: lacks some of what was acknowledged in generations before
 * this one, chain's, from which they go. Then replica.behind is what the oldest of them ends with,
 * and is not 0 until ship_labelled(): for as long no drain counts what it acknowledges.
 */
bool ship_behind(struct ship *s, unsigned replica, struct generation *chain);

/* It was behind and has all up to that drain: repl_label() is due. */
bool ship_caught_up(struct ship *s, unsigned replica);

/*
 * A replica that drains wait for has to catch up: meanwhile one that is lost may be the best copy
 * there is, and nothing is copied into it.
 */
bool ship_settling(struct ship *s);

/* It is labelled up to date. */
void ship_labelled(struct ship *s, unsigned replica);

/* ack_awaited(); s may be NULL. */
uint32_t ship_awaited(struct ship *s, uint32_t lost, uint32_t live, uint32_t back);

/*
 * The replica is lost: nothing more is sent, and what it may lack is marked in its dirty map.
 * Any thread, also again; does not wait.
 */
void ship_lost(struct ship *s, unsigned replica);

/*
 * No thread of ours uses its remote any more: it may be freed. After ship_lost(); false if not by
 * the deadline.
 */
bool ship_leave(struct ship *s, unsigned replica, uint64_t deadline_ns);

/* Under a hold: remote, equal to the range and with its lane open, is to be served. */
void ship_install(struct ship *s, unsigned replica, struct remote *remote);

/*
 * Lane 0 of a queued replica for a reader, by the deadline: what was sent is answered, nothing is
 * sent until ship_lane_return(). One at a time, in turns with what is queued. NULL: lost, or not in
 * time, which says nothing of the replica: who sends to it looks whether that answers.
 */
struct lane *ship_lane_borrow(struct ship *s, unsigned replica, uint64_t deadline_ns);
void ship_lane_return(struct ship *s, unsigned replica);

/*
 * All replicas have all, or those that have not by the deadline are lost, recorded by
 * lose_ns. Nobody drains any more.
 */
void ship_finish(struct ship *s, uint64_t deadline_ns, uint64_t lose_ns);

/* What a replica lacks of what was drained: bytes, and since when. Any thread. */
void ship_lag(struct ship *s, unsigned replica, uint64_t *bytes, uint64_t *ms);

/* All that are not lost have what was drained up to that shipment; NULL is allowed. Any thread. */
bool ship_all_have(struct ship *s, uint64_t number);

/* Since when one of them all lacks something that was drained, in milliseconds; 0: none does. */
uint64_t ship_oldest_ms(struct ship *s);

#endif
