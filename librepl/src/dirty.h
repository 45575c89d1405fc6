/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dirty - what the replicas of a handle that are away have missed, kept in
 * memory and in a region of the local sidecar: POOL-FORMAT.md, 1.6.
 *
 * A replica is *tracked* from the moment at which it is lost until it has
 * everything again. What is tracked is relative to a *base*, the generation
 * that the replica has: the map holds all blocks in which it may differ from the
 * local pool. Marking is in memory; a thread writes back behind it. What would be
 * lost by that in a crash the activity log covers, with after-crash = dirty-map:
 * it knows, on media, the parts of the pool that were written to lately.
 *
 * No error of the region fails a call here: dirty_media_ok() tells of it, the
 * region is made untrusted, and memory goes on. Where that can't be done either
 * dirty_untold() tells.
 *
 * "Under r->lock" below: the call may write the local sidecar, so that nobody
 * else may be at it; at opening and closing nobody is.
 */
#ifndef LIBREPL_DIRTY_H
#define LIBREPL_DIRTY_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "dirtymap.h"
#include "generation.h"
#include "local.h"

struct dirty;

enum dirty_trust {
	DIRTY_NONE,      /* the replica is not tracked */
	DIRTY_TRUSTED,   /* the map holds all that it lacks */
	DIRTY_UNTRUSTED, /* only a comparison can tell */
};

/*
 * Read what the local sidecar holds; l may have no path, and is borrowed for as
 * long as d lives. crashed: the sidecar says that a writer is open, so that the
 * one before us did not close. REPL_E_NOMEM, REPL_E_LIMIT.
 */
int dirty_open(struct local *l, const struct repl_config *c, uint64_t pool_size, bool crashed,
	       struct dirty **out, struct err *e);

/*
 * Before the local sidecar is stored that says that a writer is open: without dirty-map it names no
 * region any more whose maps or log anybody would believe, since none are kept up, but a small one,
 * on media by then, if a replica is tracked. With dirty-map none where the pool has grown, until
 * dirty_start(). Under r->lock.
 */
void dirty_begin(struct dirty *d);

/*
 * From dirty_start() to dirty_close() a thread, with no lock of ours, calls again(arg) each second:
 * what else the sidecar lacks is written there, by nobody whose silence a target would notice.
 * Before dirty_start().
 */
void dirty_watch_record(struct dirty *d, void (*again)(void *arg), void *arg);

/*
 * Once the local sidecar is on media (the first generation is recorded) and
 * before the program may write: with dirty-map makes the region. Without this call dirty_close()
 * leaves the sidecar as it is. Where the region can't be made the sidecar names none; only if it
 * can't be told so, or there is no thread to be had, there is an error. Under r->lock.
 */
int dirty_start(struct dirty *d, struct err *e);

/* Without the lock: there is something for dirty_note_bases(). */
bool dirty_bases_due(const struct dirty *d);

/*
 * Put on media which generations replicas that are away have, if that has changed: also after a
 * crash that only a comparison can mend they stay in our chain. Where it fails it stays due. With
 * dirty-map the thread does it. Under r->lock.
 */
void dirty_note_bases(struct dirty *d);

/*
 * Before dirty_close(), and the word that the writer has closed: all of the pool's file is on
 * media. Nothing but maps tells then what replicas lack of it, and a power cut takes nothing from
 * one that was closed in order. Where it fails the maps are untrusted, and local.lost is set, by
 * then. NULL is allowed.
 */
void dirty_settle(struct dirty *d);

/*
 * Writes what is left; with nothing tracked the region goes. Before the sidecar
 * says that its writer has closed. Under r->lock. NULL is allowed.
 */
void dirty_close(struct dirty *d);

/*
 * From now on what replica misses is marked; base is the generation that it has,
 * NULL if it was not there to be asked: the one that is known of it, or that the
 * local side was opened with. At the moment of the call a replica of that
 * generation lacks nothing but what is marked already. Goes on
 * with the map that is there, and as much trust as that has, if that is of the
 * same base; if it is of another one its marks stay and it becomes untrusted,
 * until dirty_rebase(). What another replica lacks that was lost in the same generation is
 * marked. After a crash that only a comparison can mend a new map
 * begins untrusted. Under r->lock. REPL_E_NOMEM: nothing is tracked.
 */
int dirty_track(struct dirty *d, unsigned replica, const struct gen_id *base);

/*
 * What a replica lacks that was lost just now the others are marked with that were lost in the same
 * generation. Under r->lock.
 */
void dirty_share(struct dirty *d, unsigned replica);

/*
 * The same of one that is there, and has told that it is of generation has, which is told of it
 * from now on: without a map that is of that one nothing tells what it lacked before.
 */
int dirty_track_found(struct dirty *d, unsigned replica, const struct gen_id *has);

/*
 * The map of a tracked replica may lack blocks, for all that it says: it is
 * untrusted, here and after another opening, until dirty_rebase() or
 * dirty_untrack(). What a comparison has told goes by no map: dirty_compared()
 * stays. Under r->lock.
 */
void dirty_doubt(struct dirty *d, unsigned replica);

/*
 * The same of one that is copied into and is no prefix meanwhile, or in whose place there is
 * another one, by the thread that resyncs it: what comes to be there is compared from the
 * beginning.
 */
void dirty_forsake(struct dirty *d, unsigned replica);

/*
 * What is marked now is all that a replica of generation base lacks: a comparison
 * of everything has ended, or the replica has got a new generation. The map is
 * trusted from now on. Under r->lock, or by the thread that resyncs it; the replica is
 * tracked.
 */
void dirty_rebase(struct dirty *d, unsigned replica, const struct gen_id *base);

/*
 * It has everything: the map goes, on media too. Also for one that opening has
 * found equal: what a crash has left uncertain is certain now. No I/O.
 */
void dirty_untrack(struct dirty *d, unsigned replica);
bool dirty_tracked(const struct dirty *d, unsigned replica);

/* Does the map hold all that a replica of generation replica_current lacks? */
enum dirty_trust dirty_found(const struct dirty *d, unsigned replica,
			     const struct gen_id *replica_current);

/* What its map is relative to; false if it is not tracked. */
bool dirty_base(const struct dirty *d, unsigned replica, struct gen_id *base);

/* No I/O, any thread. Nothing happens if the replica is not tracked. */
void dirty_mark(struct dirty *d, unsigned replica, uint64_t off, uint64_t len);
void dirty_mark_all(struct dirty *d, unsigned replica);

/*
 * The activity log, any thread; may sync, mostly it is a look at a bit. Call it
 * for each range of a drain before anything of it is sent, and again before the
 * drain returns, when it is queued and marked: the bit must be there when
 * something is acknowledged, and stays for ten seconds without a call. Does
 * nothing with after-crash = compare. True if it may have waited for the local disk.
 */
bool dirty_active(struct dirty *d, uint64_t off, uint64_t len);

/*
 * In the child of a fork: nobody waits there for what another thread had begun to write. May be
 * NULL.
 */
void dirty_abandon(struct dirty *d);

/* Whether dirty_active() has nothing to do for it. Without waiting. */
bool dirty_logged(struct dirty *d, uint64_t off, uint64_t len);

/*
 * Stores of the library's own, before whose drain the program may die or the call fail, and what
 * replicas are sent, by a drain or ahead of it: begun before dirty_active(), or dirty_logged(), for
 * their range and before they are made, ended when they are drained. No extent is taken off as long
 * as some of them may be in it. dirty_store_end() takes what dirty_store_begin() has said; who does
 * not call it knows nothing of what replicas have. Any thread.
 */
unsigned dirty_store_begin(struct dirty *d);
void dirty_store_end(struct dirty *d, unsigned turn);

/*
 * From now on the range, and what lies between it and others, stays in the activity log: targets
 * have yet to do what was acknowledged. Until dirty_unpin() with what dirty_pins() said before
 * they were told to end that; pinned since, it stays.
 */
void dirty_pin(struct dirty *d, uint64_t off, uint64_t len);
uint64_t dirty_pins(struct dirty *d);
void dirty_unpin(struct dirty *d, uint64_t pins);

/*
 * lag_ms(arg) tells since when something that was drained is on its way to a replica, 0 if nothing
 * is: the activity log keeps what may be. lag_ms NULL: nothing is ever; returns when nobody is
 * in it. Without locks of the caller's.
 */
void dirty_watch_lag(struct dirty *d, uint64_t (*lag_ms)(void *arg), void *arg);

/*
 * The current marks become the batch, and new ones go to an empty map. The batch
 * is the caller's to read until dirty_batch_end(). NULL if there is no memory, or
 * the replica is not tracked; one batch of a replica at a time.
 */
struct dirtymap *dirty_batch_begin(struct dirty *d, unsigned replica);

/*
 * Move the first run of marks at or behind from into the batch, which it opens
 * where there is none: whole blocks, that end at or below end or with the pool, at
 * most max_len bytes (1 MiB is always enough for one). What is marked while it is
 * taken is either seen in memory by the caller or still marked. *run is valid if
 * there is one; false also for want of memory (*e). from is a block's beginning.
 */
bool dirty_take(struct dirty *d, unsigned replica, uint64_t from, uint64_t end, uint64_t max_len,
		struct range *run, struct err *e);

/* Bytes of the marks without the batch. */
uint64_t dirty_marked(const struct dirty *d, unsigned replica);

/* done: its blocks are on the replica's media, their bits go; else they are merged back. */
void dirty_batch_end(struct dirty *d, unsigned replica, bool done);

/*
 * The end of one that a comparison of everything was working on: what lies below upto, a block's
 * beginning, is compared, and marked anew where it differs; the rest is merged back, or has been
 * as well. How far it came is remembered, in memory, as long as the map is continued, for a
 * replica of that generation.
 */
void dirty_batch_compared(struct dirty *d, unsigned replica, const struct gen_id *of, uint64_t upto,
			  bool whole);

/* How far; 0: from the beginning. */
uint64_t dirty_compared(const struct dirty *d, unsigned replica, const struct gen_id *of);

/* Of the marks and the batch, a block of both counted twice. 0 if not tracked. */
uint64_t dirty_bytes(const struct dirty *d, unsigned replica);

/* Bytes of a block. */
unsigned dirty_grain(const struct dirty *d);

/* The pool has pool_size bytes now; a batch that is open keeps its size. Under r->lock. */
int dirty_grow(struct dirty *d, uint64_t pool_size, struct err *e);

/*
 * A growth has failed, here or elsewhere: the pool has pool_size bytes, as before. No mark may stay
 * behind that, where no resync ever takes it. Under r->lock.
 */
void dirty_grow_undo(struct dirty *d, uint64_t pool_size);

/*
 * What is on media can't be trusted and does not say so: an opening after a crash would. For who
 * comes from dirty_active(): what he wrote is in no log.
 */
bool dirty_untold(const struct dirty *d);

/*
 * Of such a region the next sidecar that is stored does not speak, and dirty_recorded() tells that
 * one was. False if that is so already, or media were told meanwhile. Under r->lock.
 */
bool dirty_disown(struct dirty *d);
void dirty_recorded(struct dirty *d);

/* Whether what is on media can be trusted; *why (if not NULL) lives as long as d. */
bool dirty_media_ok(const struct dirty *d, const char **why);

/* Bytes of memory that the maps of so many replicas would take: at most pool/32768, rounded up. */
uint64_t dirty_memory(uint64_t pool_size, unsigned replicas);

#endif
