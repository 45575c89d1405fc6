/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pooljournal - a pool's resync journal on media: made, filled, committed,
 * applied and taken away, in the order of docs/POOL-FORMAT.md, section 1.7. Its
 * pages are journalfmt.h's business, its messages wire.h's, who may do it and
 * when is poolredo.c's.
 *
 * Nothing is mapped: what is in the file is read and written by calls, so a
 * journal may be begun while lanes are open. One thread uses a journal, but for
 * pooljournal_append() and pooljournal_is_open(), which the data thread calls.
 */
#ifndef REPLD_POOLJOURNAL_H
#define REPLD_POOLJOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checksum.h"
#include "err.h"
#include "journalfmt.h"
#include "pmem.h"
#include "sidecar.h"
#include "wire.h"

struct pooljournal;

/* One that is not there yet; sidecar_fd is borrowed. */
int pooljournal_new(int sidecar_fd, struct pooljournal **out, struct err *e);
void pooljournal_free(struct pooljournal *j);

/* It was begun and is not gone: no update but by it. */
bool pooljournal_is_open(const struct pooljournal *j);

/*
 * Have room for bytes of messages; what is there stays. The space must be free now and is taken as
 * it is used. On an error it is as before. *meta is updated as the file is, here and below.
 */
int pooljournal_begin(struct pooljournal *j, struct sidecar *meta, uint64_t bytes, struct err *e);

/*
 * REPL_E_NOSPC where a sparse pool would find less for bytes that come into its holes without a
 * journal, when this one is gone.
 */
int pooljournal_spare(struct pooljournal *j, uint64_t bytes, struct err *e);

/*
 * Add a whole STAGE that wire_stage_decode() accepted. It is in the file on return, and not
 * durable. REPL_E_NOSPC if there is no room: from an error on nothing is taken any more, since what
 * comes may have been meant to lie over what is missing.
 */
int pooljournal_append(struct pooljournal *j, const uint8_t *msg, size_t len, struct err *e);

/* One that could not be added for another reason: the same from now on. */
void pooljournal_fail(struct pooljournal *j, int status);

/*
 * Durable on return, and to be applied whatever happens. After an error it depends on what media
 * hold: nothing is to be done with it but to close the pool.
 */
int pooljournal_commit(struct pooljournal *j, struct sidecar *meta, enum sidecar_state state,
		       const struct generation *g, uint64_t position, bool waited, struct err *e);

struct journal_progress {
	uint64_t done, total; /* bytes of messages */
};

/*
 * Bring about max bytes, at least one message, into the pool. When all of it is there, durably, the
 * sidecar is updated and the journal is gone: done is total. REPL_E_CORRUPT if it can't be
 * believed, which is to be followed by pooljournal_spoil(). REPL_E_IO if something was not made
 * durable: a later flush proves nothing on it.
 */
int pooljournal_apply(struct pooljournal *j, struct sidecar *meta, struct pmem_map *map,
		      uint64_t max, struct journal_progress *p, struct err *e);

/*
 * One that an earlier session has left, named by *meta and not committed, that nothing has been
 * done with: only to be dropped or resumed.
 */
bool pooljournal_is_left(const struct pooljournal *j, const struct sidecar *meta);

/* Whether it is worth leaving as it is, at the end of a session, for another one to resume. */
bool pooljournal_is_resumable(const struct pooljournal *j, const struct sidecar *meta);

/*
 * Go on with one that was left: no message is taken before pooljournal_kept() has told of all that
 * are there. On an error it is to be dropped, whatever the error is, here and below.
 */
int pooljournal_resume(struct pooljournal *j, const struct sidecar *meta, struct err *e);

/* A range that it brings, and the hash of what that is. */
struct journal_kept {
	uint64_t off;
	uint32_t len;
	uint8_t hash[HASH128_SIZE];
};

#define JOURNAL_KEPT_MIN WIRE_ENTRIES_MAX

/*
 * The next ranges of messages that are there, in the order in which they will be applied to map,
 * hashed by key, at most max, which is JOURNAL_KEPT_MIN or more. *bytes is that of all messages so
 * far. Without *more there are no others, and it is filled as one that was begun. asks: the pool
 * takes space when it is stored to; REPL_E_NOSPC where there is none for a range.
 */
int pooljournal_kept(struct pooljournal *j, const struct sidecar *meta, bool asks,
		     struct pmem_map *map, const struct hash_key *key, struct journal_kept *kept,
		     unsigned max, unsigned *count, uint64_t *bytes, bool *more, struct err *e);

/* All of one that was left was told of; *bytes is that of all messages in it. */
bool pooljournal_is_told(struct pooljournal *j, uint64_t *bytes);

/* Take it away without applying it; the first also marks the pool inconsistent. */
int pooljournal_spoil(struct pooljournal *j, struct sidecar *meta, struct err *e);
int pooljournal_drop(struct pooljournal *j, struct sidecar *meta, struct err *e);

/*
 * Give back some of the space that a journal has left; true if there was any. Not beside anything
 * else that makes a region of the sidecar. Giving back a GiB takes a tenth of a second and more,
 * for which nobody who waits for the journal should have to wait.
 */
bool pooljournal_tidy(struct pooljournal *j, const struct sidecar *meta);

/* The same where somebody waits, and nobody comes back to it: as much as a second is enough for. */
void pooljournal_tidy_last(struct pooljournal *j, const struct sidecar *meta);

/*
 * When that is to be begun, by the clock: a while after a journal's end, since the next one writes
 * over what it has left. UINT64_MAX: there is nothing.
 */
uint64_t pooljournal_tidy_at(const struct pooljournal *j, const struct sidecar *meta);

/*
 * What a dead writer has left, named by *meta. Committed: ready for pooljournal_apply() from its
 * beginning; else only for pooljournal_drop(). REPL_E_CORRUPT: only pooljournal_spoil().
 */
int pooljournal_load(struct pooljournal *j, const struct sidecar *meta, struct err *e);

#endif
