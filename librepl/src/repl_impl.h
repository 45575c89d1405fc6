/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repl_impl - what is behind a struct repl; shared by repl.c (persistence),
 * repl_open.c (opening and closing), repl_loss.c (heartbeat, loss) and
 * repl_log.c (logs).
 *
 * Lock order: repl.grow_lock, repl.lock, then a remote's own, then repl.reason_lock.
 */
#ifndef LIBREPL_REPL_IMPL_H
#define LIBREPL_REPL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "config.h"
#include "local.h"
#include "remote.h"

struct replica {
	struct remote *remote; /* NULL: was not there at open */
	_Atomic int lost;      /* 0 or the status that it was lost with */
	char reason[256];      /* guarded by repl.reason_lock */
	char *profile_text;
	_Atomic uint64_t degraded_count, error_count;
};

/* What all replicas' lanes of one index share. */
struct lane_slot {
	_Atomic int busy;        /* who is in: repl_lanes.c */
	_Atomic unsigned wanted; /* by those who would borrow it */
	_Atomic uint64_t flush_count, merged_count, drain_count;
	_Atomic uint64_t latency_ns[REPL_HIST_BUCKETS];
};

/* Of a handle on a pool set: repl_set.h. */
struct repl_set {
	bool create;  /* make the pool, which is not there yet */
	bool created; /* done so */
	bool has_attr;
	uint8_t attr[PMDK_ATTR_SIZE]; /* to create with, or as found */
	unsigned header;              /* bytes of the caller's range in front of the pool's */
	_Atomic bool begun;           /* it may be written to */
	_Atomic bool unfinished;      /* it holds a copy that was begun and not finished */
};

struct repl {
	struct repl_config *cfg;
	struct repl_set *set; /* NULL: none */
	uint8_t *mem;
	char *file; /* that is mapped at mem, if it is one */
	_Atomic size_t size;
	unsigned replica_count;
	unsigned lane_count;
	struct replica replicas[REPL_TARGETS_MAX];
	struct lane_slot *slots;
	pthread_mutex_t lock; /* guards generation, local and the stop flag; held across calls */
	pthread_mutex_t grow_lock;   /* one grows at a time; held across calls */
	pthread_mutex_t reason_lock; /* guards the reasons; never held across calls */
	pthread_cond_t wake;
	bool lock_made, grow_lock_made, reason_lock_made, wake_made;
	bool stop;
	bool ready; /* opened: losses are recorded */
	struct local local;
	struct generation generation; /* of the set, as recorded last */
	_Atomic bool appending;       /* an append has its turn */
	_Atomic bool log_failed;      /* a log of the handle has: replicas may lack its bytes */
	pthread_t thread;
	bool thread_started;
};

/*
 * Mark a replica lost and record on the others, before anything more is
 * acknowledged, that it is behind: a new generation that it does not have. By
 * the deadline; those that cannot be told are lost as well.
 */
void repl_lose(struct repl *r, unsigned replica, int status, const char *why, uint64_t deadline_ns);

/*
 * Return when a loss that another thread has noticed is recorded: what is
 * acknowledged before that could not be told from what the lost replica has.
 */
void repl_await_recorded(struct repl *r);

/*
 * Record a new generation on the local side and on all replicas that are not
 * lost; REPL_E_LOST if none is left.
 */
int repl_advance(struct repl *r, uint64_t deadline_ns, struct err *e);

/*
 * Open cfg's replicas, as repl_open(); takes cfg and set, whatever is returned. With
 * a set nothing is kept on the local side, and nothing is compared or copied.
 */
int repl_open_with(struct repl_config *cfg, struct repl_set *set, void *addr, size_t size,
		   unsigned flags, struct repl **out, struct err *e);

/* The step of opening that a set has of its own: its pool, not its lanes. repl_set.c */
int repl_set_open_pool(struct repl *r, struct remote *remote, struct err *e);

/* Take back what a failed opening has created. */
void repl_set_undo(struct repl *r, struct remote *remote);

int repl_heartbeat_start(struct repl *r, struct err *e);
void repl_heartbeat_stop(struct repl *r);

/*
 * On all replicas, make the range zero in the target's own time, all of whole
 * pages; or, with len 0, have all such ranges finished. As a public call.
 */
int repl_trim(struct repl *r, unsigned lane, size_t off, size_t len);

/* The text of repl_profile(). */
char *repl_profile_text(struct remote *remote);

#endif
