/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dirty_impl - what is behind a struct dirty; shared by dirty.c (the maps),
 * dirty_region.c (the region in the local sidecar), dirty_activity.c (the
 * activity log), dirty_settle.c (the pool's file) and dirty_thread.c (writing back).
 *
 * Lock order: io_lock, activity.lock, header_lock, maps_lock or sync_lock. Beside them, pool_lock.
 */
#ifndef LIBREPL_DIRTY_IMPL_H
#define LIBREPL_DIRTY_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "dirty.h"
#include "dirtypage.h"
#include "dirtytrack.h"
#include "extentlog.h"

#define DIRTY_IDLE_ROUNDS 10U /* of a second: then an extent is no longer active */
/* What is younger on its way, which is active from its queueing on, is in no extent that is idle.
 */
#define DIRTY_LAG_MS ((DIRTY_IDLE_ROUNDS - 1) * 1000U)
/* The same for what is not drained: it may take so long twice, see stores_are_young(). */
#define DIRTY_STORE_ROUNDS (DIRTY_IDLE_ROUNDS / 2 - 1)

/* One replica's; guarded by maps_lock but for what is atomic. */
struct track {
	_Atomic bool tracked;
	struct dirtytrack worth;
	struct gen_id
		compared_of; /* a replica of this generation lacks below compared what is marked */
	uint64_t compared;
	struct dirtymap *current, *batch; /* NULL: none */
	_Atomic uint64_t *changed;        /* a bit a page: not on media as it is */
};

struct activity {
	pthread_mutex_t lock; /* guards syncing, and log but for looking */
	pthread_cond_t synced;
	bool armed;   /* there is a region, and what is written to it counts */
	bool syncing; /* somebody writes, without the lock */
	struct extentlog log;
	uint64_t formatted[DIRTYPAGE_EXTENT_WORDS]; /* of a new region, while suspended */
	struct range pinned; /* stays active, whoever uses it; guarded by lock */
	uint64_t pins;       /* calls that made it so */
};

struct dirty {
	struct local *local;
	unsigned count; /* of replicas */
	unsigned shift; /* of all maps */
	uint64_t pool_size;
	bool begun;                 /* dirty_start() was called: the sidecar is ours to write */
	struct dirtypage_file file; /* the pool's */
	bool keep;                  /* after-crash = dirty-map: the region is kept while we run */
	bool bases;                 /* else: it tells which generations replicas have */
	struct gen_id found;        /* the local generation as it was found */
	uint8_t name[REPL_TARGETS_MAX][HASH128_SIZE];
	/* Shared to mark, exclusive to exchange the maps or to let them grow. */
	pthread_rwlock_t maps_lock;
	struct track track[REPL_TARGETS_MAX];
	struct activity activity;
	pthread_mutex_t io_lock;     /* guards the region's place; held over its I/O */
	pthread_mutex_t header_lock; /* one writes the header at a time */
	pthread_mutex_t sync_lock;   /* one syncs at a time; guards sync_fd and sync_lost */
	int sync_fd;                 /* of the region's own: local_again() */
	bool sync_lost;              /* a sync has failed, and of what others had written, too */
	pthread_mutex_t pool_lock;   /* one settles at a time, and is told */
	_Atomic bool pool_lost;      /* likewise, of the pool's file: nobody tells what it has */
	_Atomic bool header_changed;
	uint64_t (*lag_ms)(void *arg); /* guarded by io_lock, as lag_arg */
	void *lag_arg;
	void (*record_again)(void *arg); /* as record_arg, before the thread; NULL: nobody asks */
	void *record_arg;
	_Atomic unsigned store_turn;
	_Atomic uint64_t stores[2]; /* not drained: of this turn and of the one before */
	unsigned store_rounds;      /* that this turn has lasted; guarded by io_lock */
	struct {
		uint64_t off; /* 0: there is none of ours */
		struct gen_id pool;
		struct dirtypage_header layout; /* what the pages' places follow from */
	} region;
	_Atomic bool abandoned;   /* in the child of a fork: ownwait.h */
	_Atomic bool broken;      /* media can't be trusted */
	_Atomic bool broken_told; /* and say so, or nobody looks there */
	char why[256];            /* written once, before broken */
	pthread_t thread;
	pthread_mutex_t stop_lock;
	pthread_cond_t wake;
	bool started, stop;
};

/* What is said, to nobody, where the lock is not to be had any more. */
int is_parents(const struct dirty *d, struct err *e);

/* dirty.c: begin a replica's map; the caller sets base and trust. */
int dirty_track_new(struct dirty *d, unsigned replica, struct err *e);

/* dirty_region.c */

/* What the sidecar's region holds. An error of it is no error: replicas are suspect then. */
void region_load(struct dirty *d, bool crashed);

/*
 * A new region with all that there is now, in place of the one that the sidecar
 * has; the activity log is not in use meanwhile. Under r->lock and io_lock.
 */
int region_rebuild(struct dirty *d, struct err *e);

/*
 * The small region that tells nothing but bases is on media, and the next sidecar that is stored
 * names it. Without room that one names none. Under r->lock and io_lock.
 */
bool region_make_bases(struct dirty *d);

/*
 * The sidecar names no region, whichever it or one of its copies has named; after an error the
 * next one that is stored doesn't. Under r->lock and io_lock.
 */
int region_disown(struct dirty *d, struct err *e);

/* Give back the space behind what the sidecar names. */
void region_trim(struct dirty *d);

/* A page of the region, by its number. */
int region_write(struct dirty *d, uint64_t index, const uint8_t page[DIRTYPAGE_SIZE],
		 struct err *e);

/*
 * What was written is on media. An error once another sync has failed: the kernel tells it once, to
 * whichever of two, and leaves what both have lost clean.
 */
int region_sync(struct dirty *d, struct err *e);

/* The header as things are now, and a sync. */
int region_write_header(struct dirty *d, struct err *e);

/* All pages that have changed, not synced. With io_lock held. *any: there were some. */
int region_write_maps(struct dirty *d, bool *any, struct err *e);

/* Nothing on media counts any more, and media are told, if they can be: dirty_untold(). */
void region_fail(struct dirty *d, const struct err *why);

/* Where in a sidecar a region of len bytes has room. */
uint64_t region_place(const struct sidecar *meta, uint64_t len);

/* dirty_activity.c */
int activity_init(struct activity *a, struct err *e);
void activity_fini(struct activity *a);

/*
 * All who write stop, until activity_resume(). on: what activity_format() has written is on media,
 * be it put on there or about to be taken off.
 */
void activity_suspend(struct dirty *d);
void activity_resume(struct dirty *d, bool on);

/* What is wanted, into a new region. Suspended. */
int activity_format(struct dirty *d, struct err *e);

/* The pool has grown: extents may be larger. Suspended. */
void activity_grow(struct dirty *d, uint64_t pool_size);

/*
 * Extents that have been idle are taken off in two steps: after the first one
 * nobody relies on them; the maps are written and synced in between, and so is
 * what the pool's file has of them.
 */
bool activity_retire_begin(struct dirty *d, uint64_t idle[DIRTYPAGE_EXTENT_WORDS]);
void activity_retire_end(struct dirty *d, const uint64_t idle[DIRTYPAGE_EXTENT_WORDS]);

/* dirty_settle.c */

/* The pool's file is on media; false where it has lost something, now or before. Takes its time. */
bool settle_pool(struct dirty *d, uint64_t size);

/* dirty_thread.c */

/* What the thread does each second. */
void dirty_round(struct dirty *d);
int dirty_thread_start(struct dirty *d, struct err *e);
void dirty_thread_stop(struct dirty *d);

#endif
