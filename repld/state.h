/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state - what a session owns: store, registry entry, pool, mapping, lanes.
 *
 * Handlers change it, the dispatch table reads its phase, the event loop
 * publishes and frees it. Used by one thread; only the counters of data.h are
 * written by another.
 */
#ifndef REPLD_STATE_H
#define REPLD_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <json-c/json.h>

#include "baseline.h"
#include "conf.h"
#include "data.h"
#include "err.h"
#include "pmem.h"
#include "pool.h"
#include "probe.h"
#include "publisher.h"
#include "registry.h"

#define STATE_PEER_MAX 96

/* What the session is in; a set, from state_phase(). */
enum state_phase {
	PHASE_HELLO = 1 << 0, /* hello was answered */
	PHASE_POOL = 1 << 1,  /* a pool is open */
	PHASE_WRITE = 1 << 2, /* and open for writing */
	PHASE_LANES = 1 << 3, /* lanes are open */
};

struct state {
	const struct conf *conf; /* borrowed */
	struct pool_store *store;
	struct registry *registry;
	struct publisher *publisher; /* of registry */
	struct pool *pool;
	struct pmem_map *map;
	struct data *data;
	struct poolring *ring;       /* of the lanes; NULL: none */
	struct roundlog *log;        /* of the lanes; NULL: none */
	struct poolposition *record; /* of the lanes; NULL: none */
	struct fab_warm *warm;       /* until lanes are opened */
	uint64_t grown;              /* allocated and mapped up to here, not recorded; 0: nothing */
	struct baseline *baseline;   /* what bench.open started last, with a pool open */
	struct probe probe;          /* of the open pool */
	bool write;
	bool positions;    /* it is told some, and they are to be on record */
	bool rma;          /* the lanes reach the pool by RMA */
	bool flush_failed; /* since the pool was opened; lanes may be gone */
	const char *ends;  /* why the session does, after the answer; NULL: it goes on */
	bool dirty;        /* the registry entry is older than this */
	unsigned lanes;
	unsigned msg_size;
	unsigned refusals; /* logged so far */
	time_t since;
	uint64_t published_ns;
	uint64_t published_commits;
	char unpublished[ERR_TEXT_MAX]; /* what was logged of its entry last; "": it is well */
	struct json_object *report;     /* what the peer says of its replica here; NULL: nothing */
	char made[TARGET_POOL_MAX + 1]; /* a pool that goes if nobody uses it; "": none */
	struct gen_id made_id;          /* its UUID */
	bool made_untold;               /* nothing shows that the peer knows of it */
	char id[32];
	char peer[STATE_PEER_MAX]; /* printable */
	const char *work; /* what it is doing to a pool that it has not open; NULL: nothing */
	char pool_name[TARGET_POOL_MAX + 1]; /* of what is open or at work on; "": none */
};

void state_init(struct state *s, const struct conf *c);

/*
 * End of the session. A pool that is still open is closed as not clean. reason
 * goes to the log.
 */
void state_fini(struct state *s, const char *reason);

unsigned state_phase(const struct state *s);

/*
 * Enter the session into the registry under a peer's name for itself, of
 * which only printable characters are kept. May be called again if it fails.
 */
int state_join(struct state *s, const char *peer, struct err *e);

/* Does a writer wait for the pool with each drain? */
enum state_waits {
	WAITS_UNKNOWN, /* it is of an earlier version */
	WAITS_EACH,
	WAITS_NEVER, /* it sends POSITIONs, which are to be on record also behind a kill */
};

struct state_opening {
	const char *name;
	enum pool_mode mode;
	const struct generation
		*chain;         /* for writing: of the peer's own data; NULL: none is told */
	bool force;             /* for writing: unjudged */
	enum state_waits waits; /* for writing */
	bool resumes;           /* for writing: goes on with a journal that is not committed */
};

int state_pool_open(struct state *s, const struct state_opening *o, struct err *e);

/*
 * The pool was made by this session, for itself: unless something is recorded of it, it goes when
 * it is closed or the session ends. One at a time. Of one who comes again it stays if nothing is
 * heard of the peer after that: it may have gone while the pool was made, for it took too long.
 */
void state_pool_made(struct state *s, const struct pool_info *info, bool again);

/* The peer has sent another request. */
void state_heard(struct state *s);

/*
 * What goes on until state_work_end() may take long, and goes on without its peer: status tells of
 * it. No pool is open; what: a constant.
 */
void state_work_begin(struct state *s, const char *what, const char *name);
void state_work_end(struct state *s);

/* No pool is open, and nothing of the session uses memory that mapping would disturb, see pmem.h.
 */
void state_quiet(struct state *s);

/*
 * pool_check_files() of the pool, open for writing. What goes to files without a name is on
 * nobody's replica, nor what goes to a file that was cut: where it fails the session ends.
 */
int state_check_files(struct state *s, struct err *e);

/*
 * Let the pool, open for writing, grow to size bytes. With prepare only so far
 * that growing to it can't fail for want of space; to the size that the pool has
 * gives that up again. REPL_E_NOSPC, REPL_E_LIMIT: all is as before. Of files that are not what
 * they were it is as state_check_files().
 */
int state_pool_grow(struct state *s, uint64_t size, bool prepare, struct err *e);

/* A flush has failed on the open pool: it must not be called up to date. */
bool state_flush_failed(const struct state *s);

/* One has failed here: from now on the lanes take no update either. */
void state_flush_lost(struct state *s);

/* Closes lanes and baseline, too. The pool is not open any more, whatever is returned. */
int state_pool_close(struct state *s, bool clean, struct err *e);

/*
 * On success the session's lanes are open; p is borrowed. ring: make a receive
 * ring for them, of which p->ring then says whether it could be made.
 */
int state_lanes_open(struct state *s, struct data_params *p, bool ring, struct err *e);
void state_lanes_close(struct state *s);

/* Make ranges of the pool durable, so that no round log brings back what was there. */
int state_persist(struct state *s, struct range *r, size_t count, struct err *e);

/* What the lanes' round log brings is durable in the pool, before something else comes over it. */
int state_log_settle(struct state *s, struct err *e);

/* Take what the peer says of its replica; NULL changes nothing. */
void state_report(struct state *s, struct json_object *report);

/* This session's entry for status; a new object or NULL. */
struct json_object *state_entry(const struct state *s);

/* Let the registry be brought up to date, at most once a second. A failure is logged once. */
void state_publish(struct state *s);

/* Do some of what can wait until nothing else is to be done; true if there was anything. */
bool state_tidy(struct state *s);

/* When it is time for that, by the clock; UINT64_MAX: there is nothing. */
uint64_t state_tidy_at(const struct state *s);

/* When state_publish() has work, as a deadline; UINT64_MAX if it has none. */
uint64_t state_publish_at(const struct state *s);

#endif
