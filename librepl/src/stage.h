/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage - the initiator's side of the resync journal: docs/PROTOCOL.md, 2.6.
 *
 * What a replica lacks is staged into a journal beside its pool and comes into
 * the pool all at once or not at all. The calls are those of the control
 * channel; struct stage posts the bytes on the lanes of the session, which have
 * no receive ring: over a long way on all, so that as much as they take is on its way.
 */
#ifndef LIBREPL_STAGE_H
#define LIBREPL_STAGE_H

#include <stdint.h>

#include "breath.h"
#include "checksum.h"
#include "err.h"
#include "fill.h"
#include "generation.h"
#include "hashkey.h"
#include "remote.h"
#include "sidecar.h"

/*
 * Have a journal that takes bytes bytes of the pool, in ranges of 4 KiB or more; again to let it
 * grow. REPL_E_REFUSED, also of a target that knows none, REPL_E_LIMIT or REPL_E_NOSPC: there is no
 * journal, or it is as large as before.
 */
int remote_journal_begin(struct remote *r, uint64_t bytes, struct err *e);

/*
 * The same where an earlier session may have left one, which has been taken up if *ahead is not 0:
 * then remote_journal_kept() is to be called to its end, and what is there leaves the less room.
 * Requests for it may be under way up to *ahead.
 */
int remote_journal_resume(struct remote *r, uint64_t bytes, uint64_t *ahead, struct err *e);

/* A range of the pool that it will bring, and the hash of the bytes. */
struct stage_kept {
	uint64_t off, len;
	uint8_t hash[HASH128_SIZE];
};

#define STAGE_KEPT_MAX 2048U

/*
 * Ask for the next ones, hashed by key, and take the answers, in that order: within a pool of size
 * bytes, in the order in which they will be applied; kept has room for STAGE_KEPT_MAX. *bytes is
 * that of all messages so far. Without *more there are no others, and what is answered behind that
 * means nothing. REPL_E_REFUSED: it is of no use, and to be dropped.
 */
int remote_journal_kept_ask(struct remote *r, const struct hash_key *key, int64_t *id,
			    struct err *e);
int remote_journal_kept(struct remote *r, int64_t id, uint64_t size, struct stage_kept *kept,
			unsigned *count, uint64_t *bytes, bool *more, struct err *e);

/* The bytes of messages that it is then asked to have room for. */
uint64_t remote_journal_room(const struct remote *r, uint64_t bytes);

/* The most bytes of the pool that the target's journal-max lets it take; 0: there is none. */
uint64_t remote_journal_takes(const struct remote *r);

/*
 * What was staged and settled will come into the pool whatever happens, and with it
 * the state and, unless g is NULL, the chain. position: not 0 of a part of the generation, which is
 * outdated, as by remote_pool_mark_part(). On an error it may or may not.
 */
int remote_journal_commit(struct remote *r, enum sidecar_state state, const struct generation *g,
			  uint64_t position, struct err *e);

/* Bring about max bytes of it in, durably; when *done is *total the journal is gone. */
int remote_journal_apply(struct remote *r, uint64_t max, uint64_t *done, uint64_t *total,
			 struct err *e);

/* Forget one that is not committed; none is no error. */
int remote_journal_drop(struct remote *r, struct err *e);

struct stage;

/*
 * On the lanes of r, all idle, that nobody else uses until stage_end(). All that waits breathes
 * meanwhile. One lane that is lost ends it, and the others with it. REPL_E_NOSPC: the target has no
 * room for more; when that is settled the lanes can be used for something else.
 */
int stage_begin(struct remote *r, const struct fill_source *from, struct breath breath,
		struct stage **out, struct err *e);

/*
 * Copies at once into messages; waits only for room, and gives the lanes up when on none of them
 * anything has moved for the op timeout, times the lanes in use. In which order ranges come into
 * the journal is not known: what overlaps another one wants stage_settle() in between.
 */
int stage_range(struct stage *s, uint64_t off, uint64_t len, struct err *e);

/* Send what is left and wait until all is answered, on each lane. */
int stage_settle(struct stage *s, struct err *e);

/* Without stage_settle() some may not have been sent. NULL is allowed. */
void stage_end(struct stage *s);

#endif
