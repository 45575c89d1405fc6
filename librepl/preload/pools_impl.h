/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What pools*.c, which follow the program, calm.c, forked.c and ending.c, which see to its threads,
 * handlers, forks and end, and pool_open.c, which has to do with the replicas and the file, know of
 * a pool in common.
 */
#ifndef PRELOAD_POOLS_IMPL_H
#define PRELOAD_POOLS_IMPL_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <librepl.h>

#include "kin.h"
#include "pools.h"

#define POOLS_MAX KIN_POOLS /* a bit each in a thread's mask */

/* What it is told of at its end a program that goes on is told of after that. */
#define LATE_NS 3000000000ULL

/*
 * A lane has no more than that undrained: a drain has to get through in a part of op-timeout, and
 * all that a program makes durable at once might not, over a slow link.
 */
#define LANE_BYTES ((size_t)4 << 20)

enum pool_state {
	POOL_CLOSED,
	POOL_OPEN,
	POOL_OFF, /* not replicated until it is mapped anew, has another size, or the retry time */
};

/* Lock order: a pool's lock, then its lanes'. */
struct pool {
	char *path;
	const char *targets[REPL_TARGETS_MAX]; /* with the settings', from target_count on */
	unsigned target_count;
	pthread_rwlock_t lock; /* guards what follows; held for reading in a call. What is atomic
				  is looked at without it, too */
	bool forked;           /* it may be the parent's still */
	_Atomic int state;     /* changed under the lock */
	_Atomic uint64_t retry_ns;
	unsigned cuts; /* openings in a row that have ended amid a copy */
	struct repl *r;
	pid_t opener;      /* the thread that has opened it */
	_Atomic dev_t dev; /* the file that is mapped, whatever its path names now */
	_Atomic ino_t ino;
	uint64_t born_ns;      /* ... when it was made; 0: not known */
	_Atomic uint64_t file; /* ... all of that in one word; 0: none yet */
	uint8_t *_Atomic view; /* the whole file, what the replicas are made equal to; with the
				  first mapping */
	size_t room;           /* of the view, may be more than the file has */
	_Atomic bool longer;   /* the file may be, than when that was looked at */
	size_t file_size;      /* when it was mapped last */
	_Atomic uint64_t end;  /* of the file, when this process has looked or changed it last */
	_Atomic size_t size;   /* what the replicas have */
	size_t refused_size;   /* that the file has, and no replica takes; or 0 */
	unsigned lanes;
	_Atomic uint64_t look_ns;   /* when to look at the replicas next */
	_Atomic uint32_t told_lost; /* a bit each, till it is told that it is back */
	_Atomic bool told_short;    /* said once */
	_Atomic bool told_synced;   /* likewise */
	_Atomic size_t told_behind; /* said once of each size of the replicas */
	_Atomic bool told_sharing, told_stray, told_over; /* likewise */
	_Atomic bool told_hidden;                         /* likewise */
	_Atomic bool others;                              /* another program had it open */
	_Atomic bool told_loading; /* that it waits for a library that is being loaded */
	_Atomic bool try_now;      /* to open it, though it is not time yet */
	_Atomic bool told_mark;    /* said once */
	_Atomic bool owing;        /* something was posted, and not asked for */
	_Atomic uint64_t stuck;    /* what who has it open is asked for in vain */
	pthread_mutex_t serving;   /* one at a time */
	_Atomic bool stored;       /* mapped for writing, by this process */
	/* The file that this process had a descriptor of to write to it by; 0: none. */
	_Atomic dev_t written_dev;
	_Atomic ino_t written_ino;
	_Atomic uint64_t synced_ns;  /* when it was synced first, not mapped; 0: never */
	struct timespec mapped_mtim; /* when the file was written last before it was mapped */
	pthread_mutex_t lane_locks[REPL_LANES_MAX]; /* each guards what follows of its lane */
	size_t undrained[REPL_LANES_MAX];
	uint64_t undrained_end[REPL_LANES_MAX]; /* of the last of these bytes; 0: there are none */
	_Atomic bool gone; /* one of these: what was flushed is not asked of this handle any more */
	bool given_up;     /* its last commit has failed */
	_Atomic bool unread; /* of what was to be flushed some could not be read: pool_anew() */
	_Atomic bool told_unread;
	_Atomic pid_t over_by; /* the thread that exits; 0: it is not over */
	/* Of the file, see mark_name(): a handler, which waits for no lock, may read the one while
	 * the other one is changed. */
	_Atomic unsigned name_at;
	char names[2][PATH_MAX];
};

extern struct pool pools[POOLS_MAX];
extern unsigned pool_count;

/* It is this file from now on. The pool is locked for writing. */
static inline void
pool_set_file(struct pool *p, const struct stat *st, uint64_t born_ns)
{
	const uint64_t mix = 0x9e3779b97f4a7c15;
	uint64_t file = (st->st_dev * mix + st->st_ino) * mix + born_ns;

	p->dev = st->st_dev;
	p->ino = st->st_ino;
	p->born_ns = born_ns;
	p->file = file ? file : 1;
}

/* False: there were too many lines of late, see lines.h. */
__attribute__((format(printf, 1, 2))) bool report(const char *format, ...);
/* The next one is told in any case: the program ends by it. */
void report_room(void);
uint64_t now_ns(void);

/* ---- pools.c ---- */

/* The constructors of the libraries of a program run before ours: what they have mapped. */
void pools_mapped_before(void);

/*
 * The number of the pool whose file fd is, which is looked at; or -1. It has the pool's name, or
 * had it and is mapped still, and that is no other one's by now, or can't be looked up.
 */
int pool_of_file(int fd, struct stat *file);

/* Call take() for each line "key<tab>value" of text, an environment variable's. NULL: none. */
void take_lines(const char *name, const char *text, void (*take)(char *, char *, void *),
		void *arg);

/* Of the environment that the program has begun with: it may change that. NULL: not there. */
extern char *pools_set, *pools_config;

/* Also for those of a child of a fork. */
void pool_locks_init(struct pool *p);

/* ---- ending.c ---- */

/* exit(3) has come to its last handler: this thread opens the pool no more, if that one is another.
 */
bool pool_is_over(const struct pool *p);

/*
 * At exit, before what has been registered for it up to now, the pools are closed; what was flushed
 * is drained.
 */
void register_end(void);
void register_end_begins(void);

/* Of the constructor: what comes last of all. */
void ending_begin(void);

/*
 * The pools are closed where OpenSSL is about to be cleaned up: without it no target can be told
 * that they are.
 */
void pools_end_openssl(void);

/* ---- forked.c ---- */

/* Of the constructor. */
void fork_begin(void);

/* In a child that no handler of fork(2) told of itself, that is made up for. */
void fork_look(void);

/*
 * Of whom this process comes. A call that finds another number at its end than at its beginning was
 * interrupted by a handler that has forked, and this is the child: its locks are new, it has none
 * of them, and what the call says its parent is told.
 */
unsigned pools_forks(void);

/* False: it is such a child, all locks of which are free then. */
bool pool_unlock(struct pool *p, unsigned forks);

/*
 * For writing, one pool at a time; not amid work on a pool, as in a signal handler. Who finds that
 * it has that no more is such a child, which leaves what it was at to its parent.
 */
void pool_lock_write(struct pool *p);
bool pool_trylock_write(struct pool *p);
bool pool_has_write(void);
bool pool_unlock_write(struct pool *p); /* as pool_unlock() */

/* In a child that shares its parent's memory, as of vfork(2), but not what that opens. */
bool is_sharing(void);

/*
 * False in a child in which no handler of fork(2) has run, which can't have replicas, and in
 * a thread of which pool_is_over(). That is told.
 */
bool pools_may_open(struct pool *p);

/* ---- pools_map.c ---- */

/*
 * pools_mapped(), but for pool_renewed(). True: that is due, the file has taken the place of a
 * pool's that was replicated.
 */
bool mapping_add(void *addr, size_t len, int prot, int flags, int fd, off_t off);

/* ---- pools_persist.c ---- */

/* What of a range is to be flushed may not be there to be read. */
enum look {
	LOOK_NOT,     /* it is: the program has just had it */
	LOOK_SYNC,    /* it may end behind the file, and holes are none of what the program stored:
			 where they take space when they are looked at they are left out */
	LOOK_CHANGED, /* likewise, but holes count */
};

/*
 * The range is on its way to the replicas, with what else this thread flushes before
 * thread_drain().
 */
void piece_flush(struct pool *p, uint64_t off, size_t len, enum look look);

/* What any thread has flushed is drained, of a pool that is longer than that. */
void pool_commit(struct pool *p, uint64_t to);

/* The same, and it is locked for writing till pool_unlock(), with those forks. */
void pool_commit_hold(struct pool *p, uint64_t to, unsigned forks);
int pool_commit_locked(struct pool *p); /* it is open, and locked for writing */

/*
 * The same before it is closed, once or more: the program makes nothing durable by that, and is
 * told of a failure only. With nothing new behind that it is not tried again: it may have waited
 * for block-timeout.
 */
void pool_commit_last(struct pool *p);

/* This thread has flushed what is not drained. */
bool thread_flushed(void);
void thread_drain(void);

/* In the child of a fork. */
void thread_forget(void);

/* To who has it open, for this thread's next drain, or to be settled before that. */
void thread_post(struct pool *p, uint64_t off, size_t len, enum look look);
void thread_settle(void);

/* Under the pool's lock, that being open, and these two under the lane's. 0, or a status. */
unsigned lane_of_thread(const struct pool *p);
int lane_flush(struct pool *p, unsigned lane, uint64_t off, size_t len);
int lane_drain(struct pool *p, unsigned lane);
/* LANE_BYTES at most, of what can be read: p->unread for the rest, unless the replicas keep that.
 */
int lane_flush_there(struct pool *p, unsigned lane, uint64_t off, size_t len, enum look look);

/* ---- calm.c ---- */

/* In a signal handler that has interrupted work on a pool: its locks are this thread's own. */
bool pools_busy(void);

/*
 * What is around any work on a pool: a thread does not end in it, and errno stays. At its end what
 * handlers have flushed meanwhile is made durable.
 */
struct calm {
	int saved_errno, cancel;
};

struct calm calm_begin(void);
void calm_end(struct calm c);

/* The same around a fork, without that end. */
void calm_hold(void);
void calm_let_go(void);

/* For that end; what touches what is there becomes one with it, and of many what is near. */
void late_add(struct pool *p, uint64_t off, size_t len, enum look look);

/* None of them is made durable any more: that is told; or it is not this process's. */
void late_lost_all(void);
void late_forget(void);

/* ---- lost.c ---- */

/* The pool is opened; is drained, now: look at once; is closed next. All while it is open. */
void lost_begin(struct pool *p);
void lost_look(struct pool *p, bool now);
void lost_end(struct pool *p);

/* ---- mark.c ---- */

/*
 * The pool has another file, or it is mapped once more, by fd, or -1: the marks are beside what its
 * path leads to now, as for replctl, wherever a link in that leads later. By one at a time.
 */
void mark_name(struct pool *p, int fd);

/* The file beside which the marks are. */
const char *mark_file(const struct pool *p);

/*
 * Whether it is that by this name still, or by what the path leads to by now, as where its
 * directory was renamed. By one at a time.
 */
bool mark_is_near(struct pool *p);

/* Of the pool, for who has it open. True: there was none. */
bool mark_set(struct pool *p);

/* ---- pools_kin.c ---- */

/* Another process of the kin has it open, and serves. */
bool pool_elsewhere(const struct pool *p);

/* Something for that one. */
void pool_post(struct pool *p, uint64_t off, size_t len, enum look look);

/* All that was posted is on the replicas, or the pool can't be opened, which is told. */
void pool_settle(struct pool *p);

/* The same, and what who has it open has flushed. */
void pool_settle_all(struct pool *p);

/* pool_settle() where a process leaves the pool. */
void pool_leave(struct pool *p);

/*
 * Of the file that has the pool's name, and another process of the kin has open, while what is
 * mapped here is one that had that before. It is never opened here: who has it takes what is given,
 * soon; and all that it has flushed is on the replicas, unless it ends meanwhile.
 */
void pool_give(struct pool *p, uint64_t off, size_t len);
void pool_given_all(struct pool *p);

/* Others of the kin wait for it. serve_last: it is closed next, and locked for writing. */
void pool_serve(unsigned number);
void pool_serve_last(struct pool *p);

/* ---- view.c ---- */

/* fd is the pool's file; its dev, ino and file_size are known. */
int view_map(struct pool *p, int fd);
void view_unmap(struct pool *p);

/*
 * How many of len bytes from off on can be read, be that in whole pages, without a look at the
 * file's size: its name may be another one's by now.
 */
size_t view_has(const struct pool *p, uint64_t off, size_t len);

/*
 * The mapped file by its path, whose file_size is known then, or -1 if that names another one by
 * now. It is a descriptor to look at it only, whose end takes no lock away.
 */
int view_open(struct pool *p);

/* The same, of which nothing is changed, for its size. False: its path names another one. */
bool view_ends(const struct pool *p, uint64_t *end);

/*
 * Where the file ends, as this process has seen it or made it; and where it does by what one of the
 * kin has told last, UINT64_MAX if there is more.
 */
void view_ends_at(struct pool *p, uint64_t end);
uint64_t view_ended(const struct pool *p);

/*
 * The same, to be asked for its data, where a hole takes space when it is looked at: on tmpfs; and
 * where its last page ends. For filelock_close(); -1: not there, or there is no descriptor of it to
 * be had.
 */
int view_holes(const struct pool *p, uint64_t *end);

/* All of it has space, LANE_BYTES at most. It costs little; false also where nobody knows. */
bool view_is_stored(const struct pool *p, uint64_t off, size_t len);

/* Another description of it, which can be read. */
int view_again(int fd);

/* Whether there is a byte in the file that is no zero. */
bool pool_any_written(int fd, size_t size);

/* Where there are data from off on, and where they end; off itself where nobody knows. */
size_t view_data(int fd, size_t off, size_t to);
size_t view_data_end(int fd, size_t off, size_t to);

/* ---- pool_open.c; "locked": for writing ---- */

void pool_close_locked(struct pool *p);

/* A cheap look, without the lock; if so, pool_ready(). */
bool pool_due(struct pool *p);
/* False: another process of the kin opens it. */
bool pool_ready(struct pool *p);
/* The same unless another thread has just taken the last mapping back: it would stay open. */
void pool_ready_mapped(struct pool *p);

/*
 * The same of a file that has taken the pool's name, and is whole perhaps: nobody need make
 * anything of it durable any more. One that holds nothing but zeros is to be written.
 */
void pool_renewed(struct pool *p);

/* Some of it is about to be flushed, and another program has it open: that will know. */
void pool_missed(struct pool *p);

/*
 * The program has written up to end, which is more than the replicas have. True if they have
 * all now that the file has.
 */
bool pool_grow(struct pool *p, uint64_t end);

/*
 * Of p->unread: the replicas are opened anew, which makes them equal to the file, or tells which
 * one can't be and why.
 */
void pool_anew(struct pool *p);

/* pools_set is there. */
void pool_policy_begin(void);

/* Bytes of the file lie behind the pool's size, in the last page that it has. */
bool pool_rest_is_written(const struct pool *p);

/* What was made durable there the replicas can't have. */
void pool_behind(struct pool *p, uint64_t from, uint64_t to);

/* The end of the last page that has bytes of it: what a program stores there is of no file. */
static inline uint64_t
pool_pages(const struct pool *p)
{
	return (p->size + 4095) / 4096 * 4096;
}

/* The program's own wish is to stop when a replica is lost. */
void pool_failed(const struct pool *p, int rc, const char *what);

/* ---- missed.c ---- */

/* A pool is mapped: nothing of that is told any more. */
void missed_none(void);

/* In the child of a fork. */
void missed_forked(void);

/* What there is to be told is told. */
void missed_end(void);

/* Pools may be mapped from now on. */
void missed_begin(void);

/* Some of the pool was made durable, by this process or by a child of it. */
void missed_flushed(const struct pool *p);

/*
 * The pool has a file by now that may be another one. True: it has taken the place of one of which
 * some was made durable, and that is forgotten. Till the new one has been opened, by this process
 * or by one of the kin, missed_renewed().
 */
bool missed_forget(const struct pool *p);
bool missed_renewed(const struct pool *p);
void missed_opened(const struct pool *p);

/* ---- last_thread.c ---- */

/* This thread is the replicas', made by librepl or a library that it uses. */
bool thread_is_theirs(void);

/* In the child of a fork. */
void last_thread_forked(void);

#endif
