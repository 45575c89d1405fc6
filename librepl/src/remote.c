/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "clock.h"
#include "control.h"
#include "wire.h"

#define REMOTE_MSG_SIZE 32768U
#define REMOTE_DEPTH    8U
#define QUEUE_MSG_SIZE  131072U /* of the lane of a queue; with the depth, 8 MiB in flight */
#define QUEUE_DEPTH     WIRE_DEPTH_MAX
#define LOCK_PAUSE_NS   200000L
#define PING_LOOK_MS    100U

struct remote {
	struct target target;
	unsigned connect_timeout_ms;
	unsigned op_timeout_ms;
	char provider[16];
	pthread_mutex_t lock;      /* guards the channel and everything up to next_step */
	pthread_mutex_t info_lock; /* guards info; never held across requests */
	bool lock_made, info_lock_made;
	struct channel *channel;
	struct line_buf lines;
	int64_t next_id;  /* of the next request */
	int64_t await_id; /* of the next answer */
	int64_t ping_id;  /* of a ping whose answer nobody has waited for to the end, or 0 */
	bool broken;      /* a request went wrong: the stream can't be trusted */
	char next_step[512];
	struct fab_warm *warm; /* until lanes are opened */
	unsigned heartbeat_ms;
	int method;        /* -1 = auto, else enum plan_method */
	bool without_ring; /* the method is not for these lanes, if it takes a ring */
	bool pool_open;
	bool write;           /* ... for writing */
	uint64_t journal_max; /* 0: the target keeps no journal of it */
	bool queued;
	struct replica_info info;
	struct profile profile;
	uint32_t epoch;
	struct lane_terms terms;
	struct regions regions; /* of the pool as the lanes know it */
	_Atomic uint64_t stamp; /* of DEPOSITs: the last one given out */
	struct fab_lane **fabs;
	struct lane *lanes;
	const _Atomic int *cancel;    /* of the hooks */
	struct remote_traffic before; /* of lanes that were closed */
};

/* ---- requests ---- */

static int
remote_send(struct remote *r, const char *method, struct json_object *params, uint64_t deadline_ns,
	    int64_t *id, struct err *e)
{
	struct json_object *request = control_request_new(r->next_id, method, params);
	char *line = NULL;
	size_t len = 0;
	int rc;

	if (request)
		line = control_line(request, &len);
	json_object_put(request);
	if (!line)
		return err_set(e, REPL_E_NOMEM, "request %s: out of memory or too long", method);
	rc = channel_write(r->channel, line, len, deadline_ns, e);
	free(line);
	if (rc) {
		r->broken = true;
		return rc;
	}
	*id = r->next_id++;
	return 0;
}

/* The next line of the stream as an object. */
static int
remote_read_object(struct remote *r, uint64_t deadline_ns, struct json_object **out, struct err *e)
{
	char *line, *space;
	size_t len, room, got;
	int rc;

	while (!(line = line_buf_next(&r->lines, &len))) {
		rc = line_buf_space(&r->lines, &space, &room, e);
		if (!rc)
			rc = channel_read(r->channel, space, room, deadline_ns, &got, e);
		if (rc)
			return rc;
		line_buf_filled(&r->lines, got);
	}
	return control_parse(line, len, out, e);
}

/* Answer id, which is the next one. A deadline that passes leaves the stream as it was. */
static int
remote_answer(struct remote *r, int64_t id, uint64_t deadline_ns, struct json_object **result,
	      struct err *e)
{
	struct json_object *answer = NULL, *value = NULL;
	int rc = remote_read_object(r, deadline_ns, &answer, e);

	if (rc)
		return rc;
	r->await_id++;
	rc = control_answer_check(answer, id, &value, r->next_step, sizeof(r->next_step), e);
	if (rc == REPL_E_PROTOCOL)
		r->broken = true;
	json_object_put(answer);
	if (result)
		*result = value;
	else
		json_object_put(value);
	return rc;
}

static int
remote_receive(struct remote *r, int64_t id, uint64_t deadline_ns, struct json_object **result,
	       struct err *e)
{
	int64_t before = r->await_id;
	int rc = 0;

	r->next_step[0] = '\0';
	if (r->ping_id && r->ping_id == r->await_id && id == r->ping_id + 1) {
		rc = remote_answer(r, r->ping_id, deadline_ns, NULL, e);
		r->ping_id = 0;
		before++;
	}
	if (!rc && id != r->await_id)
		return err_set(e, REPL_E_INVAL, "answers are taken in the order of the requests");
	if (!rc)
		rc = remote_answer(r, id, deadline_ns, result, e);
	/* What comes later would be taken for the answer to another request. */
	if (rc && r->await_id == before)
		r->broken = true;
	return rc;
}

static int
remote_usable(const struct remote *r, struct err *e)
{
	if (!r->broken)
		return 0;
	return err_set(e, REPL_E_LOST, "control channel to %s is broken", r->target.host);
}

/*
 * Another thread may be waiting for an answer; that one's deadline is not ours.
 * Tried again and again, since gcc's thread sanitizer does not know
 * pthread_mutex_clocklock(); a request takes longer than a pause.
 */
static int
remote_lock_by(struct remote *r, uint64_t deadline_ns, struct err *e)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

	do {
		if (pthread_mutex_trylock(&r->lock) == 0)
			return 0;
		(void)nanosleep(&pause, NULL);
	} while (clock_now_ns() < deadline_ns);
	return err_set(e, REPL_E_TIMEOUT, "%s has not answered an earlier request", r->target.host);
}

int
remote_call_by(struct remote *r, const char *method, struct json_object *params,
	       uint64_t deadline_ns, struct json_object **result, struct err *e)
{
	int64_t id;
	int rc;

	if (result)
		*result = NULL;
	rc = remote_lock_by(r, deadline_ns, e);
	if (rc) {
		json_object_put(params);
		return rc;
	}
	rc = remote_usable(r, e);
	if (rc)
		json_object_put(params);
	else
		rc = remote_send(r, method, params, deadline_ns, &id, e);
	if (!rc)
		rc = remote_receive(r, id, deadline_ns, result, e);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int
remote_call(struct remote *r, const char *method, struct json_object *params,
	    struct json_object **result, struct err *e)
{
	return remote_call_by(r, method, params, clock_deadline(r->op_timeout_ms), result, e);
}

int
remote_post(struct remote *r, const char *method, struct json_object *params, int64_t *id,
	    struct err *e)
{
	int rc;

	pthread_mutex_lock(&r->lock);
	rc = remote_usable(r, e);
	if (rc)
		json_object_put(params);
	else
		rc = remote_send(r, method, params, clock_deadline(r->op_timeout_ms), id, e);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int
remote_take(struct remote *r, int64_t id, struct json_object **result, struct err *e)
{
	int rc;

	pthread_mutex_lock(&r->lock);
	rc = remote_usable(r, e);
	if (!rc)
		rc = remote_receive(r, id, clock_deadline(r->op_timeout_ms), result, e);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

/* ---- signs of life ---- */

static uint64_t
remote_heard(const struct remote *r)
{
	uint64_t n = 0;

	for (unsigned i = 0; r->lanes && i < r->terms.lanes; i++)
		n += atomic_load_explicit(&r->lanes[i].counters.events, memory_order_relaxed);
	return n;
}

static int
ping_await(struct remote *r, unsigned timeout_ms, const _Atomic int *cancel, struct err *e)
{
	uint64_t heard = remote_heard(r), deadline_ns = clock_deadline(timeout_ms);

	for (;;) {
		uint64_t look_ns = clock_deadline(PING_LOOK_MS);
		int rc = remote_answer(r, r->ping_id, look_ns < deadline_ns ? look_ns : deadline_ns,
				       NULL, e);

		if (rc != REPL_E_TIMEOUT || r->await_id > r->ping_id) {
			r->ping_id = 0;
			r->broken |= rc != 0;
			return rc;
		}
		if (cancel && atomic_load(cancel))
			return 0;
		if (remote_heard(r) != heard) {
			heard = remote_heard(r);
			deadline_ns = clock_deadline(timeout_ms);
		}
		if (clock_now_ns() >= deadline_ns)
			return err_set(e, REPL_E_TIMEOUT, "%s has been silent for %u ms: timed out",
				       r->target.host, timeout_ms);
	}
}

int
remote_ping(struct remote *r, struct json_object *params, unsigned timeout_ms,
	    const _Atomic int *cancel, struct err *e)
{
	int rc;

	if (pthread_mutex_trylock(&r->lock)) {
		json_object_put(params);
		return 0;
	}
	rc = remote_usable(r, e);
	if (rc || r->ping_id)
		json_object_put(params);
	else
		rc = remote_send(r, "ping", params, clock_deadline(timeout_ms), &r->ping_id, e);
	if (!rc)
		rc = ping_await(r, timeout_ms, cancel, e);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

/* ---- opening ---- */

/* By name as far as that is known without asking a name service, which knows no deadline. */
static const char *
peer_user(void)
{
	const char *user = getenv("USER");

	if (!user)
		user = getenv("LOGNAME");
	return user ? user : geteuid() == 0 ? "root" : "?";
}

static int
remote_hello(struct remote *r, uint64_t deadline_ns, struct err *e)
{
	struct json_object *params = json_object_new_object(), *versions, *result = NULL;
	char host[64] = "", peer[160];
	const char *user = peer_user();
	uint64_t version, heartbeat;
	int rc;

	versions = json_object_new_array();
	json_object_array_add(versions, json_object_new_int(CONTROL_VERSION));
	json_object_object_add(params, "versions", versions);
	json_object_object_add(params, "software",
			       json_object_new_string("librepl " REPL_VERSION_TEXT));
	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(peer, sizeof(peer), "%.48s@%s pid %ld", user, host, (long)getpid());
	json_object_object_add(params, "peer", json_object_new_string(peer));
	rc = remote_call_by(r, "hello", params, deadline_ns, &result, e);
	if (rc)
		return rc;
	rc = control_get_u64(result, "version", CONTROL_VERSION, CONTROL_VERSION, &version, e);
	if (!rc)
		rc = control_get_u64(result, "heartbeat_ms", 1, 3600000, &heartbeat, e);
	if (!rc)
		r->heartbeat_ms = (unsigned)heartbeat;
	json_object_put(result);
	return rc ? err_set(e, REPL_E_PROTOCOL, "hello: bad answer from %s", r->target.host) : 0;
}

int
remote_new(const struct repl_config *c, const struct target *t, const struct remote_hooks *hooks,
	   struct remote **out, struct err *e)
{
	struct channel_options o = {.identity = c->identity,
				    .known_hosts = c->known_hosts,
				    .command = c->command ? c->command : "repld session"};
	struct remote *r = calloc(1, sizeof(*r));
	uint64_t deadline_ns = clock_deadline(c->connect_timeout_ms);
	int rc;

	*out = NULL;
	if (!r)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	r->target = *t;
	r->connect_timeout_ms = c->connect_timeout_ms;
	r->op_timeout_ms = c->op_timeout_ms;
	(void)snprintf(r->provider, sizeof(r->provider), "%s", c->provider ? c->provider : "auto");
	r->method = c->method - 1;
	r->next_id = r->await_id = 1;
	line_buf_init(&r->lines);
	if (pthread_mutex_init(&r->lock, NULL)) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
		goto out;
	}
	r->lock_made = true;
	if (pthread_mutex_init(&r->info_lock, NULL)) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
		goto out;
	}
	r->info_lock_made = true;
	if (hooks) {
		r->cancel = o.cancel = hooks->cancel;
		o.fd = hooks->fd;
	}
	o.target = &r->target;
	r->warm = fab_warm_new();
	rc = channel_open(&o, deadline_ns, &r->channel, e);
	if (!rc)
		rc = remote_hello(r, deadline_ns, e);
	if (rc)
		goto out;
	*out = r;
	r = NULL;
out:
	remote_free(r, 0);
	return rc;
}

static void
remote_free_lanes(struct remote *r)
{
	for (unsigned i = 0; r->fabs && i < r->terms.lanes; i++)
		fab_lane_free(r->fabs[i]);
	free(r->fabs);
	free(r->lanes);
	regions_fini(&r->regions);
	r->fabs = NULL;
	r->lanes = NULL;
}

void
remote_free(struct remote *r, unsigned timeout_ms)
{
	uint64_t deadline_ns = clock_deadline(timeout_ms);

	if (!r)
		return;
	remote_free_lanes(r);
	if (timeout_ms && !r->broken) {
		if (r->pool_open)
			(void)remote_call_by(r, "pool.close", NULL, deadline_ns, NULL, NULL);
		(void)remote_call_by(r, "bye", NULL, deadline_ns, NULL, NULL);
	}
	channel_free(r->channel);
	fab_warm_free(r->warm);
	line_buf_fini(&r->lines);
	if (r->info_lock_made)
		(void)pthread_mutex_destroy(&r->info_lock);
	if (r->lock_made)
		(void)pthread_mutex_destroy(&r->lock);
	free(r);
}

void
remote_detach(struct remote *r)
{
	r->cancel = NULL;
	channel_detach(r->channel);
}

void
remote_set_op_timeout(struct remote *r, unsigned ms)
{
	r->op_timeout_ms = ms;
}

const struct target *
remote_target(const struct remote *r)
{
	return &r->target;
}

const char *
remote_next_step(const struct remote *r)
{
	return r->next_step;
}

unsigned
remote_op_timeout_ms(const struct remote *r)
{
	return r->op_timeout_ms;
}

void
remote_abandon(struct remote *r)
{
	if (r->channel)
		channel_abandon(r->channel);
}

unsigned
remote_heartbeat_ms(const struct remote *r)
{
	return r->heartbeat_ms;
}

/* ---- pool ---- */

static int
remote_profile_parse(struct json_object *result, struct profile *p, struct err *e)
{
	struct json_object *o = NULL;

	if (!json_object_object_get_ex(result, "profile", &o) ||
	    !json_object_is_type(o, json_type_object))
		return err_set(e, REPL_E_PROTOCOL, "answer of the target: no profile");
	replica_profile_parse(o, p);
	return 0;
}

uint64_t
remote_journal_max(const struct remote *r)
{
	return r->journal_max;
}

void
remote_params_add_chain(struct json_object *params, const struct generation *g)
{
	struct json_object *history = json_object_new_array();
	char text[GEN_TEXT_SIZE];

	gen_id_format(&g->current, text);
	json_object_object_add(params, "generation", json_object_new_string(text));
	for (unsigned i = 0; i < GEN_HISTORY && !gen_id_is_nil(&g->history[i]); i++) {
		gen_id_format(&g->history[i], text);
		json_object_array_add(history, json_object_new_string(text));
	}
	json_object_object_add(params, "history", history);
}

/* params is taken. */
static int
pool_open_with(struct remote *r, struct json_object *params, enum remote_mode mode, struct err *e)
{
	static const char *const names[] = {
		[REMOTE_READ] = "read", [REMOTE_STABLE] = "stable", [REMOTE_WRITE] = "write"};
	struct json_object *result = NULL;
	uint64_t epoch;
	int rc;

	json_object_object_add(params, "mode", json_object_new_string(names[mode]));
	rc = remote_call(r, "pool.open", params, &result, e);
	if (rc)
		return rc;
	r->pool_open = true;
	r->write = mode == REMOTE_WRITE;
	rc = replica_info_parse(result, &r->info, e);
	if (!rc)
		rc = control_get_u64(result, "epoch", 0, UINT32_MAX, &epoch, e);
	if (!rc)
		rc = remote_profile_parse(result, &r->profile, e);
	/* Targets of before know of none, and a request that they don't know ends the session. */
	r->journal_max = 0;
	if (!rc && control_has(result, "journal_max"))
		rc = control_get_u64(result, "journal_max", 0, INT64_MAX, &r->journal_max, e);
	if (!rc)
		r->epoch = (uint32_t)epoch;
	json_object_put(result);
	return rc;
}

int
remote_pool_open(struct remote *r, const char *name, enum remote_mode mode, struct err *e)
{
	struct json_object *params = json_object_new_object();

	json_object_object_add(params, "name", json_object_new_string(name));
	return pool_open_with(r, params, mode, e);
}

int
remote_pool_open_as(struct remote *r, const char *name, const struct generation *chain, bool force,
		    struct err *e)
{
	struct json_object *params = json_object_new_object();

	json_object_object_add(params, "name", json_object_new_string(name));
	if (chain && !gen_id_is_nil(&chain->current))
		remote_params_add_chain(params, chain);
	if (force)
		json_object_object_add(params, "force", json_object_new_boolean(true));
	return pool_open_with(r, params, REMOTE_WRITE, e);
}

int
remote_pool_close(struct remote *r, struct err *e)
{
	remote_free_lanes(r);
	r->pool_open = false;
	return remote_call(r, "pool.close", NULL, NULL, e);
}

/* What other calls may find: never half of it, nor another call's answer. */
static void
remote_info_set(struct remote *r, const struct replica_info *info)
{
	pthread_mutex_lock(&r->info_lock);
	r->info = *info;
	pthread_mutex_unlock(&r->info_lock);
}

int
remote_pool_mark_by(struct remote *r, enum sidecar_state state, const struct generation *g,
		    uint64_t deadline_ns, struct err *e)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	struct replica_info info;
	int rc;

	json_object_object_add(params, "state", json_object_new_string(sidecar_state_name(state)));
	if (g)
		remote_params_add_chain(params, g);
	rc = remote_call_by(r, "pool.mark", params, deadline_ns, &result, e);
	if (!rc)
		rc = replica_info_parse(result, &info, e);
	if (!rc)
		remote_info_set(r, &info);
	json_object_put(result);
	return rc;
}

int
remote_pool_grow(struct remote *r, uint64_t size, bool prepare, uint64_t deadline_ns, struct err *e)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	struct replica_info info;
	int rc;

	json_object_object_add(params, "size", json_object_new_int64((int64_t)size));
	if (prepare)
		json_object_object_add(params, "prepare", json_object_new_boolean(true));
	rc = remote_call_by(r, "pool.grow", params, deadline_ns, &result, e);
	if (!rc)
		rc = replica_info_parse(result, &info, e);
	if (!rc && !prepare && info.meta.pool_size != size)
		rc = err_set(e, REPL_E_PROTOCOL, "pool.grow: the pool has %llu bytes, not %llu",
			     (unsigned long long)info.meta.pool_size, (unsigned long long)size);
	if (!rc)
		remote_info_set(r, &info);
	if (!rc && !prepare && r->regions.r)
		rc = regions_grow(&r->regions, size, e);
	json_object_put(result);
	return rc;
}

int
remote_pool_mark(struct remote *r, enum sidecar_state state, const struct generation *g,
		 struct err *e)
{
	return remote_pool_mark_by(r, state, g, clock_deadline(r->op_timeout_ms), e);
}

const struct replica_info *
remote_info(const struct remote *r)
{
	return &r->info;
}

int
remote_refuse_headers(const struct remote *r, struct err *e)
{
	if (!r->info.header)
		return 0;
	return err_set(
		e, REPL_E_REFUSED,
		"pool '%s' lies in a pool set whose parts have headers of PMDK's: use pmempool "
		"with a set file that has 'REPLICA HOST %s', see librpmem(7)",
		r->info.name, r->info.name);
}

const struct profile *
remote_profile(const struct remote *r)
{
	return &r->profile;
}

uint32_t
remote_epoch(const struct remote *r)
{
	return r->epoch;
}

/* ---- lanes ---- */

static bool
ring_wanted(const struct remote *r)
{
	return r->write && r->method >= 0 && (PLAN_BIT(r->method) & PLAN_DEPOSITS) &&
	       !r->without_ring;
}

static unsigned
remote_msg_size(const struct remote *r)
{
	return r->queued ? QUEUE_MSG_SIZE : REMOTE_MSG_SIZE;
}

static unsigned
remote_depth(const struct remote *r)
{
	return r->queued ? QUEUE_DEPTH : REMOTE_DEPTH;
}

void
remote_queue(struct remote *r)
{
	r->queued = true;
	r->method = -1;
}

bool
remote_queued(const struct remote *r)
{
	return r->queued;
}

static struct json_object *
lanes_params(const struct remote *r, unsigned count)
{
	struct json_object *params = json_object_new_object();
	struct json_object *providers = json_object_new_array();

	json_object_object_add(params, "count", json_object_new_int((int)count));
	json_object_object_add(params, "msg_size", json_object_new_int((int)remote_msg_size(r)));
	json_object_object_add(params, "depth", json_object_new_int((int)remote_depth(r)));
	if (strcmp(r->provider, "auto") != 0)
		json_object_array_add(providers, json_object_new_string(r->provider));
	else
		json_object_array_add(providers, json_object_new_string("tcp"));
	json_object_object_add(params, "providers", providers);
	if (ring_wanted(r))
		json_object_object_add(params, "ring", json_object_new_boolean(true));
	return params;
}

struct lanes_grant {
	const char *provider, *address, *key;
	uint64_t port, rma_region, imm_unit;
	uint64_t msg_size, depth; /* asked for, then granted */
	bool rma, ring;
	struct json_object *tokens;
};

/* A target that miscounts would flush other bytes than were written. */
static int
imm_unit_parse(struct json_object *o, uint64_t pool_size, uint64_t *unit, struct err *e)
{
	int rc = control_get_u64(o, "imm_unit", 0, WIRE_IMM_UNIT_MAX, unit, e);

	if (rc || *unit == 0)
		return rc;
	if (!wire_imm_unit_valid(*unit) || pool_size > *unit * (WIRE_IMM_FIRST_MAX + 1ULL))
		return err_set(e, REPL_E_PROTOCOL,
			       "imm_unit %" PRIu64 " is no unit of a pool of %" PRIu64 " bytes",
			       *unit, pool_size);
	return 0;
}

static int
lanes_grant_parse(struct json_object *o, unsigned asked, uint64_t pool_size, struct lanes_grant *g,
		  struct err *e)
{
	int rc = control_get_text(o, "provider", 15, &g->provider, e);

	if (!rc)
		rc = control_get_text(o, "address", 63, &g->address, e);
	if (!rc)
		rc = control_get_u64(o, "port", 1, 65535, &g->port, e);
	if (!rc)
		rc = control_get_u64(o, "msg_size", WIRE_MSG_SIZE_MIN, g->msg_size, &g->msg_size,
				     e);
	if (!rc)
		rc = control_get_u64(o, "depth", WIRE_DEPTH_MIN, g->depth, &g->depth, e);
	if (!rc)
		rc = control_get_bool(o, "rma", &g->rma, e);
	if (!rc)
		rc = control_get_text(o, "key", 16, &g->key, e);
	if (!rc)
		rc = control_get_u64(o, "rma_region", REGIONS_UNIT_MIN, INT64_MAX, &g->rma_region,
				     e);
	if (!rc)
		rc = imm_unit_parse(o, pool_size, &g->imm_unit, e);
	if (!rc)
		rc = control_get_array(o, "lanes", asked, &g->tokens, e);
	if (!rc && control_has(o, "ring"))
		rc = control_get_bool(o, "ring", &g->ring, e);
	if (rc)
		return err_prefix(e, "answer of the target to lanes.open");
	if (!regions_unit_valid(g->rma_region))
		return err_set(e, REPL_E_PROTOCOL, "lanes.open: rma_region is no power of two");
	if (json_object_array_length(g->tokens) == 0)
		return err_set(e, REPL_E_LIMIT, "the target granted no lane");
	return 0;
}

/* A target gives what was asked for, or says why not by its profile and its log. */
static int
ring_check(const struct remote *r, const struct lanes_grant *g, struct err *e)
{
	if (g->ring == ring_wanted(r))
		return 0;
	if (g->ring)
		return err_set(e, REPL_E_PROTOCOL, "lanes.open: a receive ring not asked for");
	return err_set(
		e, REPL_E_REFUSED,
		"method '%s': the target has granted no receive ring, see its log: make room "
		"in its pool directory, or set method to auto",
		plan_method_name((enum plan_method)r->method));
}

/* One is asked for by name, and holds for the lanes that are being opened. */
static bool
method_holds(const struct remote *r)
{
	return r->method >= 0 && !(r->without_ring && (PLAN_BIT(r->method) & PLAN_DEPOSITS));
}

/* Of a method asked for by name: it must be right and, when the limits are known, to be had. */
static int
method_check(const struct remote *r, const struct plan_limits *lim, struct err *e)
{
	if (!method_holds(r) || !r->write)
		return 0;
	return plan_check_method(&r->profile, (enum plan_method)r->method, lim, e);
}

static int
lane_connect(struct remote *r, const struct fab_params *p, struct json_object *token,
	     uint64_t deadline_ns, struct err *e)
{
	unsigned i = p->lane;
	const char *text = json_object_get_string(token);
	uint8_t raw[WIRE_TOKEN_SIZE], hello[WIRE_HELLO_SIZE];
	struct lane_setup setup = {.profile = &r->profile,
				   .regions = &r->regions,
				   .rma = r->terms.rma,
				   .imm_unit = r->terms.imm_unit,
				   .depth = r->terms.depth,
				   .msg_size = r->terms.msg_size,
				   .epoch = r->epoch};

	if (r->terms.ring)
		setup.stamp = &r->stamp;
	if (method_holds(r))
		setup.force = PLAN_BIT(r->method);
	if (!text || !hex_decode(text, strlen(text), raw, sizeof(raw)))
		return err_set(e, REPL_E_PROTOCOL, "lanes.open: token %u is no 64 hex digits", i);
	wire_hello_encode(hello, raw);
	if (fab_lane_connect(p, hello, sizeof(hello), deadline_ns, &r->fabs[i], e))
		return err_prefix(e, "lane %u", i);
	setup.fab = r->fabs[i];
	lane_init(&r->lanes[i], &setup);
	return method_check(r, &r->lanes[i].limits, e);
}

int
remote_lanes_open(struct remote *r, unsigned count, struct err *e)
{
	uint64_t deadline_ns = clock_deadline(r->connect_timeout_ms);
	struct json_object *result = NULL;
	struct lanes_grant g = {.msg_size = remote_msg_size(r), .depth = remote_depth(r)};
	struct fab_params p = {0};
	uint8_t key[8];
	int rc = method_check(r, NULL, e);

	if (rc)
		return rc;
	fab_warm_free(r->warm);
	r->warm = NULL;
	count = r->queued ? 1 : count;
	rc = remote_call(r, "lanes.open", lanes_params(r, count), &result, e);
	if (rc)
		return rc;
	rc = lanes_grant_parse(result, count, r->info.meta.pool_size, &g, e);
	if (!rc)
		rc = ring_check(r, &g, e);
	if (rc)
		goto out;
	if (strlen(g.key) != 16 || !hex_decode(g.key, 16, key, sizeof(key))) {
		rc = err_set(e, REPL_E_PROTOCOL, "lanes.open: key is no 16 hex digits");
		goto out;
	}
	for (unsigned i = 0; i < 8; i++)
		p.key = p.key << 8 | key[i];
	p.provider = g.provider;
	p.cancel = r->cancel;
	p.host = g.address;
	p.port = (uint16_t)g.port;
	p.depth = (unsigned)g.depth;
	p.msg_size = g.msg_size;
	r->terms.lanes = (unsigned)json_object_array_length(g.tokens);
	r->terms.depth = p.depth;
	r->terms.msg_size = p.msg_size;
	r->terms.rma = g.rma;
	r->terms.ring = g.ring;
	r->terms.imm_unit = g.imm_unit;
	(void)snprintf(r->terms.provider, sizeof(r->terms.provider), "%s", g.provider);
	r->fabs = calloc(r->terms.lanes, sizeof(struct fab_lane *));
	r->lanes = calloc(r->terms.lanes, sizeof(*r->lanes));
	if (!r->fabs || !r->lanes) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
		goto out;
	}
	rc = regions_init(&r->regions, g.rma_region, r->info.meta.pool_size, e);
	p.regions = &r->regions;
	for (unsigned i = 0; !rc && i < r->terms.lanes; i++) {
		p.lane = i;
		rc = lane_connect(r, &p, json_object_array_get_idx(g.tokens, i), deadline_ns, e);
	}
out:
	if (rc)
		remote_free_lanes(r);
	json_object_put(result);
	return rc;
}

int
remote_lanes_open_bare(struct remote *r, unsigned count, struct err *e)
{
	r->without_ring = true;
	return remote_lanes_open(r, count, e);
}

int
remote_lanes_reopen(struct remote *r, unsigned count, struct err *e)
{
	struct remote_traffic sum = {0};
	int rc;

	if (!r->without_ring)
		return 0;
	r->without_ring = false;
	if (!ring_wanted(r))
		return 0;
	remote_traffic_add(r, &sum);
	r->before = sum;
	remote_free_lanes(r);
	rc = remote_call(r, "lanes.close", NULL, NULL, e);
	if (!rc)
		rc = remote_lanes_open(r, count, e);
	if (!rc && r->terms.lanes < count)
		rc = err_set(e, REPL_E_LIMIT, "the target grants %u lanes, %u are in use",
			     r->terms.lanes, count);
	return rc;
}

const struct lane_terms *
remote_terms(const struct remote *r)
{
	return &r->terms;
}

struct lane *
remote_lane(struct remote *r, unsigned i)
{
	return &r->lanes[i];
}

void
remote_bind(struct remote *r, const void *mem, const _Atomic int *gone)
{
	for (unsigned i = 0; i < r->terms.lanes; i++) {
		lane_bind(&r->lanes[i], mem);
		lane_watch(&r->lanes[i], gone);
	}
}

void
remote_traffic_add(struct remote *r, struct remote_traffic *sum)
{
	sum->messages += r->before.messages;
	sum->writes += r->before.writes;
	sum->reads += r->before.reads;
	sum->bytes += r->before.bytes;
	sum->immediates += r->before.immediates;
	for (unsigned i = 0; r->lanes && i < r->terms.lanes; i++) {
		struct lane_counters *c = &r->lanes[i].counters;

		sum->messages += atomic_load(&c->messages);
		sum->writes += atomic_load(&c->writes);
		sum->reads += atomic_load(&c->reads);
		sum->bytes += atomic_load(&c->bytes);
		sum->immediates += atomic_load(&c->immediates);
	}
}

int
remote_read(struct remote *r, unsigned lane, void *buf, uint64_t off, uint64_t len,
	    uint64_t deadline_ns, struct err *e)
{
	struct lane *l = &r->lanes[lane];

	/* What is complete may not be in the pool yet. */
	if (r->terms.ring) {
		lane_begin(l, LANE_SETTLE, 0, 0);
		lanes_run(&l, 1, lane_done, deadline_ns);
	}
	for (uint64_t at = 0, n; at < len; at += n) {
		n = lane_rma_len(l, off + at, len - at);
		if (n == 0)
			return err_set(e, REPL_E_INVAL, "the replica has less than %llu bytes",
				       (unsigned long long)(off + len));
		lane_register(l, off + at);
		lanes_run(&l, 1, lane_done, deadline_ns);
		lanes_run(&l, 1, lane_has_room, deadline_ns);
		if (lane_read(l, (uint8_t *)buf + at, off + at, n) == 0)
			lanes_run(&l, 1, lane_done, deadline_ns);
		if (l->status)
			return err_set(e, l->status, "data lane %u: %s", lane, l->why);
	}
	return 0;
}
