/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keeper_impl - what the parts of a keeper share: keeper.c is the thread and its
 * decisions, join.c gets a replica back and takes a lost one away.
 */
#ifndef LIBREPL_KEEPER_IMPL_H
#define LIBREPL_KEEPER_IMPL_H

#include "channel.h"
#include "keeper.h"
#include "replica_fsm.h"

struct keeper {
	struct repl *r;
	struct replica *p;
	unsigned replica;
	pthread_t thread;
	bool started;
	_Atomic bool runs; /* until it has nothing to do with the replica any more */
	struct replica_fsm fsm;
	enum fsm_event_kind first;
	struct remote *joining; /* being brought up, not installed */
	bool holding;
	bool installing;        /* repl_resync_end() is due after that; guarded by wake_lock */
	bool no_journal;        /* its target knows none */
	struct generation told; /* what the replica was last asked to record */
	_Atomic int cancel;     /* not 0: what it does ends with that status */
	struct channel_fds fds; /* of joining's channel */
	_Atomic bool retry;     /* the operator wants a try now */
	struct resync_progress progress;
	uint64_t latency_seen[REPL_HIST_BUCKETS]; /* drains, as looked at last */
};

/* Open a session and judge the replica; joining is left for the caller also after a failure. */
struct fsm_event keeper_connect(struct keeper *k, struct err *e);

/* What the target shows of the keeper that is arg to others: the params of a ping. */
struct json_object *keeper_report(void *arg);

/* Make joining equal; RESYNCED with the hold held. */
struct fsm_event keeper_resync(struct keeper *k, enum judge_verdict what, struct err *e);

/* Under the hold, which it releases: writes go to joining from now on; INSTALLED or FAILED. */
struct fsm_event keeper_install(struct keeper *k, struct err *e);

void keeper_release(struct keeper *k);

/* Free the remote of a lost replica when nobody can be in it any more. */
void keeper_retire(struct keeper *k);

#endif
