/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repl_impl - what is behind a struct repl; shared by repl.c (persistence), repl_open.c and
 * replica_open.c (opening and closing), repl_loss.c (recording losses), keeper.c (getting replicas
 * back), hold.c, and repl_log.c, repl_log_trim.c and log_step.c (logs).
 *
 * Lock order: repl.grow_lock, the lanes in the order of their numbers, repl.lock, then a
 * remote's own, then repl.trims.lock, repl.reason_lock, repl.wake_lock. A lane is waited for with
 * nothing held but grow_lock and, by a hold, the lanes before it. Claims (claims.h) are waited for
 * in a lane and in a turn of appends, with nothing on its way.
 *
 * Who may follow replica.remote: a thread that is in a lane, as long as lost is 0 when it
 * looks; one that holds grow_lock and lock, or one of both where the other's absence
 * is of no matter (it is changed with both held, and reason_lock); and the
 * replica's keeper, which is the only one to change it.
 */
#ifndef LIBREPL_REPL_IMPL_H
#define LIBREPL_REPL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "claims.h"
#include "config.h"
#include "local.h"
#include "remote.h"
#include "turns.h"
#include "twin.h"

struct keeper;
struct dirty;
struct ship;
struct shipment;
struct siblings;
struct repl_behind;

/* Of op-timeout, that a replica has at least to take a generation, or to answer, whatever of it
 * others have taken. */
#define REPL_TELL_SHARE 8U

/* What a target was found to be at some time; newest first, each one different. */
struct profile_note {
	struct profile_note *next;
	char *text;
};

struct replica {
	struct remote *remote; /* installed, or lost and not yet taken away; NULL: none */
	_Atomic int lost;      /* 0: installed; else the status that it was lost with */
	_Atomic int connection, replication, data; /* enum repl_connection, ... */
	_Atomic uint64_t degraded_count, error_count;
	_Atomic uint64_t install_count;   /* how often it came (back) */
	_Atomic uint64_t reconnect_count; /* ... after it was established once */
	_Atomic int why;                  /* enum repl_reason, why it is not established */
	_Atomic bool paused;              /* the operator wants it so */
	_Atomic uint64_t behind; /* labelled outdated, at least until it has this drain; 0: not */
	struct keeper *keeper;   /* from the opening to the closing */
	bool made;               /* by the opening: it was not there */
	/* Guarded by repl.reason_lock. */
	char reason[256];              /* why it is not established */
	char trouble[256];             /* why the last try to get it back failed; "" */
	struct remote_traffic traffic; /* of the remotes that are gone */
	struct profile_note *profiles;
	char provider[16];      /* of the lanes that were installed last; "" */
	char provider_why[200]; /* not the one preferred, or "" */
	/* Guarded by repl.lock. */
	struct gen_id has;  /* the generation that it has confirmed last; nil: none known */
	struct gen_id told; /* one that it was told and has not confirmed; nil: none */
	uint32_t epoch;     /* of the last session that wrote to it, as it tells; 0: none known */
	/* Set with repl.lock. */
	_Atomic uint64_t grows_until_ns; /* it makes room, and answers nothing else; 0: no */
};

/* What all replicas' lanes of one index share. */
struct lane_slot {
	_Atomic int busy;        /* who is in: repl_lanes.c */
	_Atomic unsigned wanted; /* by those who would borrow it */
	bool has_turn;           /* of repl.appends: whoever has entered the lane */
	_Atomic uint64_t flush_count, merged_count, drain_count;
	_Atomic uint64_t latency_ns[REPL_HIST_BUCKETS], latency_sum_ns;
	struct rangeset pending; /* pending.h: whoever is in the lane */
	bool sends;              /* some of it may be with replicas: dirty_store_begin() ... */
	unsigned store_turn;     /* ... has said */
	/* A job that queued replicas (ship.h) are to get, and do not have in their queue yet. */
	bool ship_due;
	enum lane_kind ship_kind;
	const struct rangeset *ship_first;
	struct range ship_second;
	const struct repl_behind *ship_behind; /* its store is due with that, or NULL */
	struct shipment *shipped;              /* one that they have, to be awaited */
	uint64_t shipped_number;               /* of the last one; 0: none */
};

/* What targets may have yet to make zero: pending.h. */
struct trims {
	pthread_mutex_t lock;     /* guards all of it */
	struct rangeset noted;    /* since the last drain began that is to end them */
	struct rangeset settling; /* before that */
	uint64_t number;          /* of that drain */
	uint64_t pins;            /* dirty_pins() by then */
	_Atomic bool ended;       /* it has ended those of who is waited for */
	uint64_t shipment;        /* ... and the others' when they have this */
};

/* Of a handle on a pool set: repl_set.h. */
struct repl_set {
	bool create; /* make the pool, which is not there yet */
	bool keep;   /* a replica that is lost is taken up again */
	struct twin
		twin; /* of the caller's range, which may be unmapped before the end: repl->mem */
	bool fill;    /* ... for a copy of another replica */
	bool created; /* done so */
	bool has_attr;
	uint8_t attr[PMDK_ATTR_SIZE]; /* to create with, or as found */
	unsigned header;              /* bytes of the caller's range in front of the pool's */
	_Atomic bool begun;           /* it may be written to */
	_Atomic bool unfinished;      /* it holds a copy that was begun and not finished */
	_Atomic bool beside;          /* another one of its set is open here, or was */
	struct sidecar found;         /* what the target told when it was opened */
	_Atomic(struct siblings *) siblings; /* NULL: it has not joined them */
	pthread_mutex_t asking; /* its keeper pings, or it is caught up before the first write */
	/* Guarded by their lock. */
	struct repl *next;
	bool told;   /* it gets each generation that follows */
	bool direct; /* it is copied into, or about to be, without a journal */
};

struct repl {
	struct repl_config *cfg;
	struct repl_set *set;   /* NULL: none */
	unsigned forks;         /* forks_count() of the process whose it is */
	_Atomic bool abandoned; /* in a child of that one */
	uint8_t *mem;
	char *file;      /* that is mapped at mem, if it is one */
	bool is_private; /* mem is, where that was looked for */
	_Atomic size_t size;
	unsigned replica_count;
	unsigned lane_count;
	struct replica replicas[REPL_TARGETS_MAX];
	struct lane_slot *slots;
	struct ship *ship;           /* NULL: no replica is queued */
	pthread_mutex_t lock;        /* guards generation, local and losing; held across calls */
	pthread_mutex_t grow_lock;   /* one grows or holds at a time; held across calls */
	pthread_mutex_t reason_lock; /* guards what replicas say; never held across calls */
	pthread_mutex_t wake_lock;   /* goes with wake, guards logs; never held across calls */
	pthread_cond_t wake;         /* a loss, an install, a wish: keepers and calls that block */
	unsigned resyncing;          /* keepers in a resync; guarded by wake_lock */
	bool growing;                /* ... or who wants none of them; guarded by wake_lock */
	uint32_t direct;             /* replicas copied into directly; guarded by wake_lock */
	_Atomic uint64_t until_ns;   /* of closing: cuts requests from before it short; 0: none */
	struct calltime closing;     /* ... as it began */
	_Atomic int cut;             /* not 0: opening has failed, what is under way ends */
	bool lock_made, grow_lock_made, reason_lock_made, wake_lock_made, wake_made, appends_made;
	bool claims_made, trims_made;
	_Atomic bool stop;             /* keepers end */
	bool ready;                    /* opened: losses are recorded; guarded by lock */
	bool known;                    /* at the opening the local sidecar told a generation */
	bool blank;                    /* ... and the range held nothing but zeros */
	_Atomic bool vouched;          /* ... as does a replica, so that this is what was written */
	unsigned flags;                /* of repl_open() */
	_Atomic(_Atomic int *) holder; /* the flag of who has the hold, or NULL: hold.h */
	_Atomic uint64_t hurry_ns;     /* ... from when on he has to, if a call waits */
	struct dirty *dirty;           /* NULL with a set */
	struct local local;
	struct generation generation; /* of the set, as recorded last */
	_Atomic bool unrecorded; /* ... but not in our own record, which could not be written */
	_Atomic bool advancing;  /* another one is being told: who has all it lacks is looked at */
	uint32_t believed; /* away since before it: the next opening would go by an old map of them
			    */
	struct turns appends; /* one at a time */
	struct trims trims;
	struct claims claims;    /* what lanes have on their way to replicas that no queue serves */
	_Atomic bool log_failed; /* a log of the handle has: replicas may lack its bytes */
	struct repl_log *logs;   /* that are open */
	struct statusd *statusd; /* NULL: nobody is told */
};

/* The handle ends: logs that are still open are told, and are only good for being closed. */
void repl_logs_detach(struct repl *r);

/*
 * Mark a replica lost, begin its dirty map and record on the others, before anything
 * more is acknowledged, that it is behind: a new generation that it does not have. By
 * the deadline; those that cannot be told are lost as well. Their keepers go on.
 */
void repl_lose(struct repl *r, unsigned replica, int status, const char *why, uint64_t deadline_ns);

/*
 * The same of several that are lost at once: none of them is told of the others' loss. One that had
 * more than they would be outdated by it and look worse than them, and one that hangs would take
 * the time of those that are well.
 */
struct repl_loss {
	unsigned replica;
	int status;
	const char *why;
	enum repl_reason reason; /* what the status does not tell; NONE: it does */
};
void repl_lose_all(struct repl *r, const struct repl_loss *losses, unsigned count,
		   uint64_t deadline_ns);

/* Of a loss that no call waits for: a call that finds one has as much left of its own time. */
uint64_t repl_loss_deadline(const struct repl *r);

/*
 * A laggard, which was told a generation before it had all of those before, is told of each of
 * them when it has, and labelled up to date when it has all. By the deadline; else it is lost. Not
 * now where something else is being recorded until until_ns, which this machine's disk may hold up.
 */
void repl_label(struct repl *r, unsigned replica, uint64_t until_ns, uint64_t deadline_ns);

/*
 * Return when a loss that another thread has noticed is recorded: what is
 * acknowledged before that could not be told from what the lost replica has.
 */
void repl_await_recorded(struct repl *r);

/*
 * The lock, in a call that a handler may interrupt which forks: false in a child that has come back
 * to it. Whoever had the lock is not there.
 */
bool repl_lock_own(struct repl *r);
bool repl_reason_lock(struct repl *r); /* likewise */

/*
 * Record a new generation on the local side and on all replicas that are not
 * lost; REPL_E_LOST if none is left.
 */
int repl_advance(struct repl *r, uint64_t deadline_ns, struct err *e);

/*
 * Record this one, which the replica has in common with others that are no part of r, as that of
 * what is up to date. By the deadline, else it is lost. REPL_E_LOST also if it was before.
 */
int repl_tell(struct repl *r, const struct generation *chain, uint64_t deadline_ns, struct err *e);

/* Beside those of librepl.h: of repl_open_run(). */
#define REPL_OPEN_ANEW (1U << 31)
#define REPL_OPEN_RUN  (1U << 30)

/*
 * Open cfg's replicas, as repl_open(); takes cfg and set, whatever is returned. With
 * a set nothing is kept on the local side, and nothing is compared or copied.
 */
int repl_open_with(struct repl_config *cfg, struct repl_set *set, void *addr, size_t size,
		   unsigned flags, struct repl **out, struct err *e);

/* Free all; replicas that are not lost are closed in order by the deadline. */
void repl_free(struct repl *r, uint64_t end_ns);

/* The step of opening that a set has of its own: its pool, not its lanes. repl_set.c */
int repl_set_open_pool(struct repl *r, struct remote *remote, struct err *e);

/* The same for a replica that was lost: of no other pool, and not before something is written. */
int repl_set_open_again(struct repl *r, struct remote *remote, struct err *e);

/* Of a handle on a pool set, whose replica does not come back once it is lost. */
bool repl_set_gives_up(const struct repl *r);

/* Whether it is a prefix of the range that lacks something, which it gets before the first write.
 */
bool repl_set_by_resync(const struct repl *r);

/* Take back what a failed opening has created. */
void repl_set_undo(struct repl *r, struct remote *remote);

/*
 * Under r->lock: the generations that replicas which are away, or are lost now, may come back with
 * must stay in our chain. keep has room for REPL_BASES_MAX; how many there are.
 */
#define REPL_BASES_MAX (3 * REPL_TARGETS_MAX)
unsigned repl_bases_kept(const struct repl *r, struct gen_id *keep);

/* Under r->lock: the same step alone, for a replica that may have a generation of ours. */
int repl_advance_locked(struct repl *r, uint64_t deadline_ns, struct err *e);

/* Try again to put our generation on record, if that could not be done. */
void repl_record_again(struct repl *r);

/*
 * With dirty_untold(): the replicas that are there get a generation, so that an opening after a
 * crash sees that there is something that its record does not know. REPL_E_IO while one is away
 * that has none of those, and the record can't be written: of what is acknowledged it would lack
 * what nobody knows of.
 */
int repl_record_doubt(struct repl *r, struct err *e);

/*
 * With on-loss = block: until each replica that is lost now is back or was so
 * meanwhile, at most block-timeout; then REPL_E_LOST.
 */
int repl_await_back(struct repl *r, struct err *e);

/*
 * A resync and repl_grow() exclude each other: false if one is under way or wanted;
 * and the other way round, which cuts resyncs short and waits for their ends. What a resync
 * has made equal is installed before its end, and that is not cut short.
 */
bool repl_resync_begin(struct repl *r);
void repl_resync_end(struct repl *r);
int repl_resync_suspend(struct repl *r, struct err *e);
void repl_resync_resume(struct repl *r);
bool repl_grows(struct repl *r);

/*
 * Whether a replica may be made inconsistent by a copy that no journal takes: not while another
 * one is and none is live, for the local pool alone would be left, should all be lost at once; nor
 * while those that are live are laggards, which lack what it may have, and either catch up or are
 * lost. It is noted until the last call. opened: some may be live. One that is no prefix of
 * anything waits for none, and is noted all the same.
 */
bool repl_direct_begin(struct repl *r, unsigned replica, bool opened);
void repl_direct_note(struct repl *r, unsigned replica);
void repl_direct_end(struct repl *r, unsigned replica);

/*
 * From now on writes go to this remote, which is equal: of opening, or under r->lock
 * and a hold. Takes it.
 */
void repl_install(struct repl *r, unsigned replica, struct remote *remote);

/* Wake keepers and calls that block: something has changed. */
void repl_wake(struct repl *r);

/* Of opening, for the keeper that gets a replica back: replica_open.c. */
unsigned repl_connect_ms(const struct repl_config *c); /* for a request before all lanes are open */
int repl_open_pool(struct repl *r, struct remote *remote, bool *made_now, struct err *e);

/* What can be said of a replica at a moment; any thread. */
struct replica_snapshot {
	int connection, replication, data;
	int lost; /* 0, or the status that it was lost with */
	int why;  /* enum repl_reason */
	bool paused;
	uint64_t error_count, degraded_count, reconnect_count;
	struct remote_traffic traffic; /* since the opening */
	char reason[256];              /* "" when established */
	char trouble[256];             /* of the last try to get it back, "" */
	char provider[16], provider_why[200];
};

void repl_snapshot(struct repl *r, unsigned replica, struct replica_snapshot *out);

/*
 * On all replicas, make the range zero in the target's own time, all of whole
 * pages; or, with len 0, have all such ranges finished. As a public call.
 */
int repl_trim(struct repl *r, unsigned lane, size_t off, size_t len);

/*
 * As a public call: ranges a, of which the second may be empty, and b behind them, which is stored
 * by the library when no other drain, however wide, can send it before a is durable. By then a and
 * b are claimed, or queued replicas have a in their queues, and of 8 bytes that are b get those
 * with the store. 8 bytes are durable all or nothing.
 * store() runs once, or not at all where the call fails; with REPL_E_BUSY it has not.
 */
struct repl_behind {
	struct range a[2], b;
	void (*store)(void *arg);
	void *arg;
};

/*
 * By whoever is in the call. Not in a child that returns to it: the parent has gone on since, and
 * both have one pool.
 */
static inline void
repl_behind_store(const struct repl *r, const struct repl_behind *behind)
{
	if (!r->abandoned)
		behind->store(behind->arg);
}

int repl_persist_behind(struct repl *r, unsigned lane, const struct repl_behind *behind);

/* The text of repl_profile(), allocated; NULL: out of memory. */
char *repl_profile_text(struct remote *remote);

/* Under reason_lock: that is what the replica is found to be now. Takes text, which may be NULL. */
void repl_note_profile(struct replica *p, char *text);

#endif
