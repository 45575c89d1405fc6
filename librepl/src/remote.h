/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote - one target: control channel, open pool, lanes.
 *
 * Control calls are serialised by a mutex inside, so that a heartbeat thread
 * and others may share a remote; lanes are one thread's each.
 */
#ifndef LIBREPL_REMOTE_H
#define LIBREPL_REMOTE_H

#include <json-c/json.h>

#include "boot.h"
#include "config.h"
#include "generation.h"
#include "lane.h"
#include "plan.h"
#include "pmdk.h"
#include "profile.h"
#include "sidecar.h"

#define REMOTE_ADDRESS_MAX 64 /* of where a target is reached for data, with a zone */

struct remote;

/* A request whose answer was not taken yet. */
struct remote_request {
	const char *method;
	int64_t id;
	uint64_t begin_ns;
};

/* info of docs/PROTOCOL.md, taken apart. */
struct replica_info {
	char name[TARGET_POOL_MAX + 1];
	struct sidecar meta;
	enum boot_power power; /* of a primary's machine, since its program opened it */
	int durability;        /* enum profile_class */
	char filesystem[32];
	bool sidecar_damaged;
	bool journal_left; /* when it was opened: one that is not committed */
	/* Of a pool set: what is in front of the pool, and what that says. */
	unsigned header; /* bytes, 0 or 4096 */
	bool has_attr;
	uint8_t attr[PMDK_ATTR_SIZE];
	char header_damage[256]; /* why there is none, though a header */
};

/* What lanes.open granted, and the profile that the plan is made from. */
struct lane_terms {
	unsigned lanes;
	unsigned depth;
	size_t msg_size;
	bool rma;
	bool ring;         /* only DEPOSITs go */
	bool bare;         /* payloads need no checksum */
	bool put;          /* PUTs may be sent */
	size_t window;     /* bytes that a FETCH may ask for; 0: none may be sent */
	uint64_t imm_unit; /* 0: immediates are not to be used */
	char provider[16];
	char why[200]; /* not the provider preferred, or "" */
};

struct channel_fds;

/* What a thread that is told to stop, and the child of a fork, need of a remote. */
struct remote_hooks {
	const _Atomic int *cancel; /* or NULL: not 0 ends waits with that status in 0.1 s */
	struct channel_fds *fds;   /* or NULL: the channel's */
	bool lanes; /* are opened later: libfabric is loaded while the login goes on, 0.2 s */
};

/*
 * SSH, hello. The config's timeouts are kept; it need not outlive the call. hooks,
 * which may be NULL, holds for all calls until remote_detach().
 */
int remote_new(const struct repl_config *c, const struct target *t,
	       const struct remote_hooks *hooks, struct remote **out, struct err *e);

/*
 * remote_call_by() is cut short at *until if that was 0 when it was called and is not any more;
 * borrowed. No call is under way.
 */
void remote_bound(struct remote *r, const _Atomic uint64_t *until);

/* No more hooks. No call is under way. */
void remote_detach(struct remote *r);

/* Of calls from now on, in place of the config's. */
void remote_set_op_timeout(struct remote *r, unsigned ms);

/*
 * All lanes: the memory that offsets refer to; and lane_watch(). They are idle.
 */
void remote_bind(struct remote *r, const void *mem, const _Atomic int *gone);

/*
 * Of a remote that is lost: no lane sends anything that is stored in the pool from now on. Any
 * thread, beside those that are in its lanes.
 */
void remote_cut(struct remote *r);

/*
 * A line for people, "large-writes = ...": whether they are taken from the pool that was bound; ""
 * where there is no choice. Returns its length.
 */
size_t remote_source_format(const struct remote *r, char *buf, size_t size);

/*
 * Of several that end at once each is told before the answer of any is waited for: its lanes are
 * closed and pool.close is sent. Only remote_free() may follow, which takes the answer.
 */
void remote_leave(struct remote *r, uint64_t deadline_ns);

/*
 * Ends it: pool.close, unless it was sent, and bye if still possible within timeout_ms, then the
 * channel.
 */
void remote_free(struct remote *r, unsigned timeout_ms);

/* In the child of a fork: close the descriptor of the channel and say nothing. */
void remote_abandon(struct remote *r);

/* How often the target wants to hear from us. */
unsigned remote_heartbeat_ms(const struct remote *r);
unsigned remote_op_timeout_ms(const struct remote *r);

/*
 * What the way there and back takes at most: the least that any request of the session has taken
 * from its sending to its answer.
 */
uint64_t remote_trip_ns(const struct remote *r);

const struct target *remote_target(const struct remote *r);

/*
 * One request and its answer within op_timeout_ms. params is taken; NULL, or what control_add()
 * has left incomplete, is REPL_E_NOMEM, and nothing is sent. result may be NULL.
 */
int remote_call(struct remote *r, const char *method, struct json_object *params,
		struct json_object **result, struct err *e);

/* The same by a deadline of the caller's. */
int remote_call_by(struct remote *r, const char *method, struct json_object *params,
		   uint64_t deadline_ns, struct json_object **result, struct err *e);

/*
 * The same in two steps, so that several requests are on their way: answers
 * are taken in the order of the posts. No other thread may call meanwhile.
 */
int remote_post(struct remote *r, const char *method, struct json_object *params, int64_t *id,
		struct err *e);
int remote_take(struct remote *r, const char *method, int64_t id, struct json_object **result,
		struct err *e);

/*
 * Ask for a sign of life; params is taken, as by remote_call(). REPL_E_TIMEOUT if for
 * timeout_ms there was none, neither here nor on a lane. 0 also when another thread's
 * request is under way, which finds out itself, and when *cancel is not 0 any more.
 */
int remote_ping(struct remote *r, struct json_object *params, unsigned timeout_ms,
		const _Atomic int *cancel, struct err *e);

/*
 * A sign of life in the middle of long work by the session, whose next request this is. With it
 * goes what report returns, until remote_detach(); without one nothing.
 */
int remote_beat(struct remote *r, struct err *e);
void remote_reports(struct remote *r, struct json_object *(*report)(void *arg), void *arg);

/* A request went wrong: every other one is REPL_E_LOST, without the cause. */
bool remote_is_broken(struct remote *r);

/* The next safe step that the target gave with the last error; "" if none. */
const char *remote_next_step(const struct remote *r);

enum remote_mode {
	REMOTE_READ,   /* beside a writer */
	REMOTE_STABLE, /* for reading; no writer is there, and none comes meanwhile */
	REMOTE_WRITE,  /* the only writer */
};

int remote_pool_open(struct remote *r, const char *name, enum remote_mode mode, struct err *e);

/*
 * The same for writing, under the chain of the caller's own data, by which the target judges:
 * REPL_E_DIVERGED where it would have to give up what the caller lacks, unless force;
 * REPL_E_REFUSED for a primary. chain may be NULL or nil: nothing is known, and the caller has to
 * judge.
 */
int remote_pool_open_as(struct remote *r, const char *name, const struct generation *chain,
			bool force, struct err *e);
int remote_pool_close(struct remote *r, struct err *e);
int remote_pool_mark(struct remote *r, enum sidecar_state state, const struct generation *g,
		     struct err *e);
/* The same by a deadline of the caller's. */
int remote_pool_mark_by(struct remote *r, enum sidecar_state state, const struct generation *g,
			uint64_t deadline_ns, struct err *e);
/*
 * As a part of the generation, up to a drain of it: unknown, of that position. A target of an
 * earlier version calls it outdated.
 */
int remote_pool_mark_part(struct remote *r, const struct generation *g, uint64_t position,
			  struct err *e);
/*
 * The same in two steps, to tell several targets at once: from a post that succeeds until the take,
 * which is the same thread's, other requests to this target wait. That one looks for the answer
 * until look_ns; without *there there was none, and it is to be called again.
 */
struct remote_mark {
	enum sidecar_state state;
	struct gen_id current; /* nil: not told */
	uint64_t position;     /* of a part; 0: none */
	uint64_t size;         /* of the pool before */
	struct remote_request request;
};
int remote_mark_post(struct remote *r, enum sidecar_state state, const struct generation *g,
		     uint64_t deadline_ns, struct remote_mark *m, struct err *e);
int remote_mark_take(struct remote *r, const struct remote_mark *m, uint64_t look_ns,
		     uint64_t deadline_ns, bool *there, struct err *e);
/*
 * Let the open pool grow to size bytes, or with prepare see to it that it can. To
 * the size that it has: give that up. With lanes open they know the new part on
 * return. By a deadline of the caller's.
 */
int remote_pool_grow(struct remote *r, uint64_t size, bool prepare, uint64_t deadline_ns,
		     struct err *e);
const struct replica_info *remote_info(const struct remote *r); /* of the open pool */

/*
 * REPL_E_REFUSED if the open pool is that of a set whose parts have headers, which
 * are no part of its bytes: only librpmem's users know what to do with it.
 */
int remote_refuse_headers(const struct remote *r, struct err *e);
const struct profile *remote_profile(const struct remote *r);

/*
 * Where what the target has told to be its address is reached from here: the zone of a
 * link-local one is the name of an interface, and each side's own. SSH has found the way.
 */
void remote_reach(const struct remote *r, const char *told, char *out, size_t size);

/*
 * Opens and connects count lanes (or what is granted). With provider auto by
 * verbs where both sides have it; if that fails by tcp, and the terms say why.
 */
int remote_lanes_open(struct remote *r, unsigned count, struct err *e);

/* The member "providers" of a request: those of this side, in the order of preference. */
void remote_params_add_providers(struct json_object *params, const struct remote *r);
/*
 * Before lanes are opened: there will be one, without a receive ring, for a shipper (ship.h), with
 * so much room that a long way does not hold it up. By messages, whatever method is configured.
 */
void remote_queue(struct remote *r);
/*
 * Before the pool is opened: no drain of this side's program is acknowledged without the replica,
 * of which that is recorded. Not for a tool: its file may be a copy that has but a part of what
 * was.
 */
void remote_wait(struct remote *r);
/*
 * The same: a journal that is not committed when the session ends is to be kept, and one that was
 * is there to be resumed (stage.h). A target of an earlier version drops it.
 */
void remote_keep_journal(struct remote *r);
bool remote_queued(const struct remote *r);

/*
 * The same without a receive ring, whatever the method: for a resync. And then: lanes as
 * the method wants them, count of them, in place of those. All are idle.
 */
int remote_lanes_open_bare(struct remote *r, unsigned count, struct err *e);
int remote_lanes_reopen(struct remote *r, unsigned count, struct err *e);

/* REPL_E_LIMIT where the target has granted fewer; a queued one needs no more than it grants. */
int remote_lanes_check(const struct remote *r, unsigned count, struct err *e);

/* Close the lanes, whatever is under way on them; the target is not told. There may be none. */
void remote_free_lanes(struct remote *r);

/* remote_abandon(), of the lanes. */
void remote_abandon_lanes(struct remote *r);
const struct lane_terms *remote_terms(const struct remote *r);
struct lane *remote_lane(struct remote *r, unsigned i);

/* Read len bytes of the open pool from off by an idle lane. */
int remote_read(struct remote *r, unsigned lane, void *buf, uint64_t off, uint64_t len,
		uint64_t deadline_ns, struct err *e);

struct remote_read_until {
	uint64_t more_ns;     /* 0: no bound of its own */
	uint64_t deadline_ns; /* what is not answered by then ends the lane */
};

/*
 * The same, in pieces of LANE_READ_MAX at most: from more_ns on none is begun but the first, and
 * REPL_E_TIMEOUT leaves the lane idle.
 */
int remote_read_pieces(struct remote *r, unsigned lane, void *buf, uint64_t off, uint64_t len,
		       const struct remote_read_until *until, struct err *e);
uint32_t remote_epoch(const struct remote *r);

/* What went over a remote's lanes. */
struct remote_traffic {
	uint64_t messages, writes, reads, bytes, immediates;
	uint64_t uncopied; /* of the bytes: that an RNIC took from the pool itself */
};

/* Add up; any thread, as long as the remote is there. */
void remote_traffic_add(struct remote *r, struct remote_traffic *sum);

/* The ranges that one pool.hash of the open pool may ask for; 0: it knows of no list of them. */
uint64_t remote_hash_ranges(const struct remote *r);

/* Whether its target hashes by a key that it is told. */
bool remote_hash_key(const struct remote *r);

/* Bytes that nobody knows; any thread. */
int remote_random(const struct remote *r, void *to, size_t len, struct err *e);

/* The bytes of messages that the open pool's journal may have; 0: it has none. */
uint64_t remote_journal_max(const struct remote *r);

/* Members "generation" and "history" of a request. */
void remote_params_add_chain(struct json_object *params, const struct generation *g);
void remote_params_add_position(struct json_object *params, uint64_t position); /* unless 0 */

/* Take an info object apart, hostile as it may be. */
int replica_info_parse(struct json_object *o, struct replica_info *info, struct err *e);

/* The same for a profile object; what is missing or unknown stays at the safe default. */
void replica_profile_parse(struct json_object *o, struct profile *p);

#endif
