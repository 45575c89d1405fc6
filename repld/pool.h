/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool - the store: pool files and their sidecars beneath the pool directory.
 *
 * Names are resolved beneath the directory only, without following any link
 * out of it (openat2 with RESOLVE_BENEATH, and by hand where the kernel lacks
 * it). Files are 0600. A pool is made under a temporary name with all space
 * allocated and renamed when it is whole, sidecar first, so that a failed or
 * killed create leaves nothing under the pool's name.
 */
#ifndef REPLD_POOL_H
#define REPLD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "boot.h"
#include "err.h"
#include "pmdk.h"
#include "pmem.h"
#include "pooljournal.h"
#include "poolposition.h"
#include "poolring.h"
#include "roundlog.h"
#include "sidecar.h"
#include "target.h"

struct pool_store;
struct pool;

/*
 * What a reader is told. When the recorded writer was killed, meta already
 * says so: not open, and unknown instead of up-to-date.
 */
/* What a pool is opened for, and who may have it open beside. */
enum pool_mode {
	POOL_READ,   /* reading; a writer may be at work */
	POOL_STABLE, /* reading; other readers only, a shared lock */
	POOL_WRITE,  /* the exclusive lock */
};

struct pool_info {
	char name[TARGET_POOL_MAX + 1];
	struct sidecar meta;
	bool sidecar_damaged;   /* one copy */
	uint64_t ring_messages; /* in meta's receive ring and not applied; lists and infos only */
	char filesystem[32];    /* "tmpfs", "ext4", ... */
	char damage[512];       /* list only: why meta is not valid, else "" */
	int damage_code;        /* enum repl_status of it */
	bool lacks;             /* pool_promote() only: refused for that; force is the way */
	enum boot_power power;  /* of a primary, or one that was demoted now: its program's end */
	unsigned parts;         /* of a pool set; 0: the pool is one file */
	unsigned replicas;      /* local ones of a pool set, beside itself */
	unsigned header;        /* bytes of a set in front of the pool's first: 0 or 4096 */
	uint8_t attr[PMDK_ATTR_SIZE]; /* what the set's headers say, if header and not damaged */
	char header_damage[256];      /* why attr is not valid, else "" */
};

/* Opens the directory, removes leftovers of killed creates and journals of long ago. */
int pool_store_new(const char *dir, struct pool_store **out, struct err *e);
void pool_store_free(struct pool_store *s);
int pool_store_dirfd(const struct pool_store *s);

/*
 * uuid NULL: a random one. All space is allocated unless sparse. Never replaces a file: EXISTS,
 * also for a file of this name that has no sidecar. Directories in name are made, 0700.
 */
int pool_create(struct pool_store *s, const char *name, uint64_t size, const struct gen_id *uuid,
		bool sparse, struct pool_info *info, struct err *e);
int pool_info(struct pool_store *s, const char *name, struct pool_info *info, struct err *e);

/* Whether name is a pool set file's; false also if there is nothing. */
int pool_set_is(struct pool_store *s, const char *name, bool *is, struct err *e);

/*
 * Make the pool of a set file: its parts, whose headers hold attr (NULL or all zero
 * for OPTION NOHDRS), and the sidecar beside the set file. size: of the pool,
 * without headers; at most what the parts can hold. filling: for a copy, so that it is inconsistent
 * until that is whole. All or nothing.
 */
int pool_set_create(struct pool_store *s, const char *name, uint64_t size,
		    const struct gen_id *uuid, const uint8_t *attr, bool filling,
		    struct pool_info *info, struct err *e);

/* Visit the parts of a set in order: none if the pool is no set. replica 0: of the pool itself. */
typedef void pool_part_visit(void *ctx, const char *name, uint64_t size, unsigned replica);
int pool_set_parts(struct pool_store *s, const char *name, pool_part_visit *visit, void *ctx,
		   struct err *e);

/* The first bytes of the pool, up to size; *len gets how many there are. */
int pool_head(struct pool_store *s, const char *name, uint8_t *buf, size_t size, size_t *len,
	      struct err *e);

#define POOL_REMOVE_SET     1U /* the set file as well */
#define POOL_REMOVE_FORCE   2U /* also parts without a sidecar; nothing there is no error */
#define POOL_REMOVE_PRIMARY 4U /* a primary, too: else it is REFUSED */
#define POOL_REMOVE_DAMAGED 8U /* it was found damaged: REFUSED where it is not any more */

/* What somebody has looked at before he decided. All zero: there was no pool. */
struct pool_seen {
	struct gen_id uuid, generation;
	bool forgotten; /* no generation is told, since another hand had its files */
};

bool pool_is_seen(const struct sidecar *meta, const struct pool_seen *seen);

/*
 * Refused (BUSY) while a writer holds it; a reader keeps what it has open.
 * Also for a damaged pool. Directories left empty are removed. Of a set its parts and its sidecar.
 * seen, may be NULL: REFUSED if it is another one by now.
 */
int pool_remove(struct pool_store *s, const char *name, unsigned flags,
		const struct pool_seen *seen, struct err *e);

/*
 * Pools in name order whose name is greater than after (NULL: from the first),
 * at most max, as many as half a second is enough for, one at least; *more says whether others
 * follow. Damaged ones are listed too, a file without a sidecar among them; a sidecar without a
 * pool is not, nor a file that belongs to another pool (pool_place_is_beside()). Behind the first
 * page names may be those that were there when an earlier one was asked for.
 */
int pool_list(struct pool_store *s, const char *after, struct pool_info *infos, unsigned max,
	      unsigned *count, bool *more, struct err *e);

/*
 * For reading beside a writer nothing is locked or recorded. POOL_STABLE is
 * BUSY while there is a writer, and keeps writers out. For writing the lock is taken, writer_open
 * is recorded with writer as its text and the epoch incremented. The file's size must be what the
 * sidecar says (CORRUPT otherwise, names both); zeros behind it are an unfinished growth, which a
 * writer cuts off.
 *
 * A committed journal that a dead writer has left is brought in first, and one that is not is
 * dropped by who writes, unless it resumes; then its receive ring is replayed: no other thread may
 * map memory meanwhile, see pmem.h.
 */
int pool_open(struct pool_store *s, const char *name, enum pool_mode mode, const char *writer,
	      struct pool **out, struct err *e);

/* Who opens for writing, and by what right. */
struct pool_claim {
	const char *writer;             /* text for people */
	const struct generation *chain; /* of its own data; NULL: it has told none */
	bool force;                     /* whatever the chains say */
	bool primary;                   /* a primary, too: for poolprimary.c */
	bool waits;                     /* for the pool with each drain */
	bool resumes;                   /* a journal that is not committed stays when it goes */
};

/*
 * Pure: may somebody with this claim write to a pool of which meta is known? REPL_E_REFUSED for a
 * primary. REPL_E_DIVERGED where the pool has been written and the writer's chain neither
 * equals nor descends from the pool's: what the pool has that the writer lacks would be lost.
 */
int pool_judge(const struct sidecar *meta, const char *name, const struct pool_claim *claim,
	       struct err *e);

/*
 * REPL_E_REFUSED where a sidecar without its pool is a primary's, whose file is elsewhere for now:
 * else its record would be made over, and the file that comes back were a replica's.
 */
int pool_primary_away(int sidecar_fd, const char *name, struct err *e);

/* pool_open() for writing; who is judged and refused changes nothing. */
int pool_open_by(struct pool_store *s, const char *name, const struct pool_claim *claim,
		 struct pool **out, struct err *e);

/*
 * REPL_E_NOT_FOUND if the files of a pool that is open for writing are not those of its name any
 * more, REPL_E_CORRUPT if one was cut. What is not what it was is on record then.
 */
int pool_check_files(struct pool *p, struct err *e);

int pool_fd(const struct pool *p); /* of a set that of its first part: for its file system */

/*
 * Whether a store may need space, see pmem_map_back(): where it has holes, or blocks of it or of a
 * local replica may be another file's, too.
 */
bool pool_takes_space(const struct pool *p);

/* The file whose holes are those of the pool, for extents.h; -1 if there is none such. */
int pool_extents_fd(const struct pool *p);

/* Map it whole, see pmem.h. */
int pool_map(const struct pool *p, bool write, struct pmem_map **out, struct err *e);

/* Replace the attributes in the headers of a set that is open for writing. */
int pool_set_attr(struct pool *p, const uint8_t attr[PMDK_ATTR_SIZE], struct err *e);
const char *pool_path(const struct pool *p); /* for error texts and the media variant */
const struct pool_info *pool_get_info(const struct pool *p);

/*
 * Record state and, unless NULL, the chain: no position is known in a new generation, but of a part
 * of it that is not 0.
 */
int pool_mark(struct pool *p, enum sidecar_state state, const struct generation *g,
	      uint64_t position, struct err *e);

/*
 * The drain that the pool, open for writing, holds all of: recorded with its next update, at
 * the latest by pool_close(), clean or not. 0 and less than is known change nothing.
 */
void pool_position(struct pool *p, uint64_t position);

/*
 * Make a receive ring of this pool, open for writing; lanes, slots and slot_size
 * of g are given. It is mapped: see pmem.h.
 */
int pool_ring_make(struct pool *p, const struct ring_geometry *g, struct poolring **out,
		   struct err *e);

/*
 * No lane writes to the ring any more: apply what is left in it to the pool, mapped
 * as map, and take it away. With failed (a flush has) or on an error it stays, to
 * be replayed when the pool is opened next. Frees ring, which may be NULL.
 */
int pool_ring_end(struct pool *p, struct poolring *ring, struct pmem_map *map, bool failed,
		  struct err *e);

/*
 * Make a round log of this pool, open for writing and mapped as map, for lanes to come:
 * see roundlog.h. It is mapped: see pmem.h.
 */
int pool_log_make(struct pool *p, struct pmem_map *map, struct roundlog **out, struct err *e);

/*
 * No lane writes to the log any more: what it brings becomes durable in the pool, and it is taken
 * away. With failed (a flush has) or on an error it stays, to be replayed when the pool is
 * opened next. Frees log, which may be NULL.
 */
int pool_log_end(struct pool *p, struct roundlog *log, bool failed, struct err *e);

/*
 * Make a position record of this pool, open for writing, for lanes to come: see poolposition.h.
 * It is mapped: see pmem.h.
 */
int pool_record_make(struct pool *p, struct poolposition **out, struct err *e);

/*
 * No lane tells a position any more: the pool's own one is recorded and the record taken away.
 * Frees it; it may be NULL. On an error it may stay, to be looked at when the pool is opened next.
 */
int pool_record_end(struct pool *p, struct poolposition *record, struct err *e);

/*
 * The resync journal of a pool open for writing, see pooljournal.h. pool_journal() lives as long
 * as the pool is open, for the data thread.
 */
struct pooljournal *pool_journal(const struct pool *p);
int pool_journal_begin(struct pool *p, uint64_t bytes, struct err *e);
/* Of more than one may have: REPL_E_NOSPC where a sparse pool has no room for it, either. */
int pool_journal_spare(struct pool *p, uint64_t bytes, struct err *e);
/*
 * One that was left is taken up, which then has to be looked through; *resumed is false if there
 * was none, or none that can be: one was begun.
 */
int pool_journal_resume(struct pool *p, uint64_t bytes, bool *resumed, struct err *e);
int pool_journal_kept(struct pool *p, struct pmem_map *map, const struct hash_key *key,
		      struct journal_kept *kept, unsigned max, unsigned *count, uint64_t *bytes,
		      bool *more, struct err *e);
int pool_journal_commit(struct pool *p, enum sidecar_state state, const struct generation *g,
			uint64_t position, struct err *e);
/* REPL_E_CORRUPT: the journal is gone, and the pool inconsistent. */
int pool_journal_apply(struct pool *p, struct pmem_map *map, uint64_t max,
		       struct journal_progress *done, struct err *e);
int pool_journal_drop(struct pool *p, struct err *e);

/* Do some of what can wait until nothing else is to be done; true if there was anything. */
bool pool_journal_tidy(struct pool *p);
void pool_journal_tidy_last(struct pool *p); /* when the pool is closed: it takes no long time */

/* When there is something to be done, by the clock; UINT64_MAX: nothing. */
uint64_t pool_journal_tidy_at(const struct pool *p);

/*
 * No lane writes to it any more: a committed journal comes into the pool, mapped as map, another
 * one is dropped, or left to who resumes it. With failed (a flush has) or on an error it is left to
 * whoever opens the pool next.
 */
int pool_journal_end(struct pool *p, struct pmem_map *map, bool failed, struct err *e);

/*
 * Growing, of a pool open for writing. First the space: the file gets size bytes
 * and is synced, nobody sees it; REPL_E_NOSPC and all else leave the pool as it was.
 * Then the record in the sidecar. In between it can be taken back. When the record has
 * failed all that can be done is recording that very size again: the rest is refused, REPL_E_IO.
 */
int pool_grow_space(struct pool *p, uint64_t size, struct err *e);
int pool_grow_record(struct pool *p, uint64_t size, struct err *e);
int pool_grow_undo(struct pool *p, struct err *e);

/* As pool_map() for writing, with addresses for total bytes: REPL_E_LIMIT if they can't be had. */
int pool_map_for(const struct pool *p, uint64_t total, struct pmem_map **out, struct err *e);

/* Map what the space is for behind the end of map, as pmem_map_extend(). */
int pool_map_extend(const struct pool *p, struct pmem_map *map, uint64_t size, struct err *e);

/*
 * Drop what is cached of the pool's file and not mapped, as far as the kernel does. What a failed
 * sync has lost stays in the cache, clean: the next session would hash it, find it equal to the
 * initiator's and call it durable.
 */
void pool_forget(const struct pool *p);

/*
 * The same behind a flush that has failed. Others may have the file mapped, and keep what was
 * lost: so the pool stays as if its writer had been killed, when it is closed, and the next one
 * compares with media what is in memory.
 */
void pool_flush_lost(struct pool *p);

/* A sync of the above has failed: what the pool was written may be lost, as after a flush. */
bool pool_sync_failed(const struct pool *p);

/*
 * Make the pool a primary: a new generation, no replica any more, PMDK's shutdown state that of
 * a pool closed in order. by names who wants it. REPL_E_BUSY beside a writer, REPL_E_REFUSED if
 * the pool misses updates or was never written. With force neither is in the way: the
 * writer's session is ended first (takeover.h). On one that is a primary already nothing happens.
 *
 * Killed at any moment, the pool is what it was, or of a generation of its own and not yet a
 * primary, or a primary; it can be repeated. May map memory, as pool_open() for writing.
 */
int pool_promote(struct pool_store *s, const char *name, const char *by, bool force,
		 struct pool_info *info, struct err *e);

/*
 * A primary becomes a replica again, as it is. REPL_E_BUSY while its program has it. Where it may
 * lack what that had acknowledged (info->power) it is called no newer than who has it.
 */
int pool_demote(struct pool_store *s, const char *name, const char *by, struct pool_info *info,
		struct err *e);

/*
 * pool_close() of a pool of which nobody has recorded anything since it was made, neither a state
 * nor a generation: it is removed while the writer's lock is still had. Any other, and a set, is
 * closed.
 */
int pool_close_unused(struct pool *p, bool clean, struct err *e);

/*
 * The same of one that is not open, if it is the one with this UUID. One that somebody has open or
 * that is gone stays as it is, which is no error.
 */
int pool_remove_unused(struct pool_store *s, const char *name, const struct gen_id *uuid,
		       const char *writer, struct err *e);

/*
 * It is about to be written to. One that nobody has written to is as it was when it was opened,
 * however its session ends. On an error nothing may be written.
 */
int pool_written(struct pool *p, struct err *e);

/*
 * The writer has gone without a word. Before what is in its lanes and its journal is taken in,
 * which may take long: whoever asks meanwhile is told. What can't be recorded now pool_close()
 * tells.
 */
void pool_left(struct pool *p);

/* clean: the writer closed in order; else state becomes UNKNOWN unless it is worse. Frees p. */
int pool_close(struct pool *p, bool clean, struct err *e);

#endif
