/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending - what each lane has flushed since its last drain: what a replica lacks
 * that is not installed when the drain ends; and what targets were told to make zero, of all
 * lanes, which one may lack that is lost later.
 *
 * Of a lane's slot only the thread that is in the lane, or that has borrowed it,
 * touches it. A drain that is about to be acknowledged settles: what was pending,
 * and what the call itself made durable beyond that, is marked in the dirty map of
 * every replica that is lost at that moment. One that is lost later has it.
 */
#ifndef LIBREPL_PENDING_H
#define LIBREPL_PENDING_H

#include "repl_impl.h"

/* Note a range that was flushed; false if there is no room: drain, and note it again. */
bool pending_note(struct lane_slot *slot, uint64_t off, uint64_t len);

int pending_trims_init(struct trims *t); /* 0, or an error number */
void pending_trims_fini(struct trims *t);

/*
 * Note, before it is settled, a range that targets are making zero in their own time: who is lost
 * may lack it, until all are ended.
 */
void pending_trim(struct repl *r, uint64_t off, uint64_t len);

/*
 * All that are noted are to be ended by a drain that is about to be sent, on whatever lane: by that
 * number they are, when who is waited for has answered it. Queued replicas have ended theirs when
 * they have that shipment. Without the second call they are left to the next such drain.
 */
uint64_t pending_trims_begin(struct repl *r);
void pending_trims_end(struct repl *r, uint64_t number, uint64_t shipment);

/*
 * Mark those that are not ended for one replica. Under r->lock, when calls see that it is lost, and
 * before its queue is dropped: what is noted later is settled with that seen.
 */
void pending_trims_mark(struct repl *r, unsigned replica);

/* Nobody is left who has some to end: those that are lost have them marked. Under a hold. */
void pending_trims_drop(struct repl *r);

/*
 * Before the library stores in the pool by itself: what it leaves there when the program dies, or
 * the call fails, is copied when the pool is opened next. Ended, with *turn, by a drain
 * that has succeeded. REPL_E_IO: it would not be, and nothing is to be stored.
 */
int pending_store(struct repl *r, const struct range *range, unsigned count, unsigned *turn,
		  struct err *e);
void pending_stored(struct repl *r, unsigned turn);

/*
 * Before a range that is pending is written ahead of its drain: whether it is in the activity log
 * by now, which then keeps it until that drain's pending_settle(). If not, the drain is to write
 * it, since a replica may have it all the same when the program dies.
 */
bool pending_early(struct repl *r, unsigned lane, uint64_t off, uint64_t len);

/*
 * Before a drain sends: what is pending, and also, is entered in the activity log, which keeps it
 * until pending_settle(), however long that takes. *begin_ns is now if that has waited for the
 * local disk, which says nothing of the targets. REPL_E_IO: it can't be, nor can it be told, and
 * nothing is to be acknowledged; what is pending stays so.
 */
int pending_active(struct repl *r, unsigned lane, const struct range *also, unsigned count,
		   uint64_t *begin_ns, struct err *e);

/*
 * Before a call that drained a lane of all replicas returns, in success or not, and behind what it
 * has queued: mark all that is pending there and count ranges of also for who is lost; then nothing
 * is pending any more. The activity log has it for ten seconds from now on.
 */
void pending_settle(struct repl *r, unsigned lane, const struct range *also, unsigned count);

/* The same for ranges alone: what is pending stays so. */
void pending_settle_only(struct repl *r, const struct range *also, unsigned count);

/*
 * Likewise before an append returns, in success or not, which pending_active() was called for. What
 * is pending may be with replicas by now, and stays in the activity log until its drain.
 */
void pending_append_end(struct repl *r, unsigned lane, const struct range *also, unsigned count);

/* Mark for one replica what is pending on a lane, which the caller has borrowed. */
void pending_mark(struct repl *r, unsigned lane, unsigned replica);

#endif
