/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of a remote: what is asked for, what is granted, connecting, reading. */
#include "remote_impl.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clock.h"
#include "control.h"
#include "hex.h"
#include "wire.h"

#define REMOTE_MSG_SIZE 262144U /* a resync by the journal takes less by larger messages */
#define RING_MSG_SIZE   32768U  /* its buffers are media */
#define REMOTE_DEPTH    8U
#define REPLICA_FDS     12U /* of a replica's connection and records */
#define LANE_FDS        13U
#define QUEUE_MSG_SIZE  131072U /* of the lane of a queue; with the depth, 8 MiB in flight */
#define QUEUE_DEPTH     WIRE_DEPTH_MAX

void
remote_free_lanes(struct remote *r)
{
	struct fab_lane **fabs = r->fabs;

	/* A child abandons what there is at any moment. */
	r->fabs = NULL;
	for (unsigned i = 0; fabs && i < r->terms.lanes; i++)
		fab_lane_free(fabs[i]);
	free(fabs);
	free(r->lanes);
	regions_fini(&r->regions);
	r->lanes = NULL;
}

static bool
ring_wanted(const struct remote *r)
{
	return r->write && r->method >= 0 && (PLAN_BIT(r->method) & PLAN_DEPOSITS) &&
	       !r->without_ring;
}

static unsigned
remote_msg_size(const struct remote *r)
{
	return r->queued ? QUEUE_MSG_SIZE : ring_wanted(r) ? RING_MSG_SIZE : REMOTE_MSG_SIZE;
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

void
remote_wait(struct remote *r)
{
	r->waits = true;
}

void
remote_keep_journal(struct remote *r)
{
	r->keeps_journal = true;
}

bool
remote_queued(const struct remote *r)
{
	return r->queued;
}

/* Both are offered, and may be fallen back from; once that was done it holds for the session. */
static bool
verbs_offered(const struct remote *r)
{
	return strcmp(r->provider, "auto") == 0 && r->why[0] == '\0' && fab_rdma_present();
}

void
remote_params_add_providers(struct json_object *params, const struct remote *r)
{
	struct json_object *providers = json_object_new_array();

	if (verbs_offered(r))
		control_append(providers, json_object_new_string("verbs"));
	if (strcmp(r->provider, "auto") != 0)
		control_append(providers, json_object_new_string(r->provider));
	else
		control_append(providers, json_object_new_string("tcp"));
	control_add(params, "providers", providers);
}

static struct json_object *
lanes_params(const struct remote *r, unsigned count)
{
	struct json_object *params = json_object_new_object();

	control_add(params, "count", json_object_new_int((int)count));
	control_add(params, "msg_size", json_object_new_int((int)remote_msg_size(r)));
	control_add(params, "depth", json_object_new_int((int)remote_depth(r)));
	remote_params_add_providers(params, r);
	if (ring_wanted(r))
		control_add(params, "ring", json_object_new_boolean(true));
	return params;
}

struct lanes_grant {
	const char *provider, *address, *key;
	uint64_t port, rma_region, imm_unit;
	uint64_t msg_size, depth; /* asked for, then granted */
	uint64_t window, deadline_ms;
	bool rma, ring, bare, put;
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
		rc = control_get_text(o, "address", REMOTE_ADDRESS_MAX - 1, &g->address, e);
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
		rc = control_get_u64(o, "deadline_ms", 1, INT64_MAX, &g->deadline_ms, e);
	if (!rc)
		rc = control_get_array(o, "lanes", asked, &g->tokens, e);
	if (!rc && control_has(o, "ring"))
		rc = control_get_bool(o, "ring", &g->ring, e);
	if (!rc && control_has(o, "bare"))
		rc = control_get_bool(o, "bare", &g->bare, e);
	if (!rc && control_has(o, "put"))
		rc = control_get_bool(o, "put", &g->put, e);
	if (!rc && control_has(o, "window"))
		rc = control_get_u64(o, "window", 0, WIRE_FETCH_MAX, &g->window, e);
	if (rc)
		return control_answer_bad(rc, "lanes.open", e);
	if (!regions_unit_valid(g->rma_region))
		return err_set(e, REPL_E_PROTOCOL, "lanes.open: rma_region is no power of two");
	if (json_object_array_length(g->tokens) > 0)
		return 0;
	(void)err_set(e, REPL_E_LIMIT, "the target granted no lane");
	(void)err_because(e, REPL_REASON_TARGET_LIMIT);
	return REPL_E_LIMIT;
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
lane_connect(struct remote *r, const struct fab_params *p, struct json_object *token, struct err *e)
{
	unsigned i = p->lane;
	const char *text = json_object_get_string(token);
	uint8_t raw[WIRE_TOKEN_SIZE], hello[WIRE_HELLO_SIZE];

	if (!text || !hex_decode(text, strlen(text), raw, sizeof(raw)))
		return err_set(e, REPL_E_PROTOCOL, "lanes.open: token %u is no 64 hex digits", i);
	wire_hello_encode(hello, raw);
	if (fab_lane_connect(p, hello, sizeof(hello), &r->fabs[i], e))
		return err_prefix(e, "lane %u", i);
	return 0;
}

static int
lane_connected(struct remote *r, const struct fab_params *p, unsigned i, struct err *e)
{
	struct lane_setup setup = {.fab = r->fabs[i],
				   .profile = &r->profile,
				   .regions = &r->regions,
				   .rma = r->terms.rma,
				   .rma_max = fab_lane_rma_max(r->fabs[i]),
				   .keyed = strcmp(p->provider, "verbs") == 0,
				   .imm_unit = r->terms.imm_unit,
				   .bare = r->terms.bare,
				   .depth = r->terms.depth,
				   .msg_size = r->terms.msg_size,
				   .epoch = r->epoch,
				   .busy_poll_ns = r->busy_poll_ns};

	if (r->terms.ring)
		setup.stamp = &r->stamp;
	if (method_holds(r))
		setup.force = PLAN_BIT(r->method);
	lane_init(&r->lanes[i], &setup);
	return method_check(r, &r->lanes[i].limits, e);
}

static int
key_parse(const char *text, uint64_t *key, struct err *e)
{
	uint8_t raw[8];

	if (strlen(text) != 2 * sizeof(raw) || !hex_decode(text, strlen(text), raw, sizeof(raw)))
		return err_set(e, REPL_E_PROTOCOL, "lanes.open: key is no 16 hex digits");
	*key = 0;
	for (unsigned i = 0; i < sizeof(raw); i++)
		*key = *key << 8 | raw[i];
	return 0;
}

static bool
provider_asked(const struct remote *r, const char *name)
{
	if (strcmp(r->provider, "auto") != 0)
		return strcmp(name, r->provider) == 0;
	return strcmp(name, "tcp") == 0 || (strcmp(name, "verbs") == 0 && verbs_offered(r));
}

/* It was one of those that were asked for, and the profile is that of the pool by it. */
static int
provider_take(struct remote *r, struct json_object *result, const struct lanes_grant *g,
	      struct err *e)
{
	bool verbs = strcmp(g->provider, "verbs") == 0;
	struct json_object *o = NULL;

	if (!provider_asked(r, g->provider))
		return err_set(e, REPL_E_PROTOCOL, "lanes.open: provider '%s' was not asked for",
			       g->provider);
	if (json_object_object_get_ex(result, "profile", &o) &&
	    json_object_is_type(o, json_type_object))
		replica_profile_parse(o, &r->profile);
	else if (verbs)
		return err_set(e, REPL_E_PROTOCOL, "lanes.open: no profile");
	(void)snprintf(r->profile.provider_why, sizeof(r->profile.provider_why), "%s", r->why);
	return 0;
}

/* Of provider auto: what keeps its lanes from the one preferred. */
static const char *
provider_why(const struct remote *r, const struct lanes_grant *g)
{
	if (strcmp(r->provider, "auto") != 0 || strcmp(g->provider, "verbs") == 0 || r->why[0])
		return r->why;
	return fab_rdma_present()
		       ? "not verbs: the target can use no RDMA device at its data-address"
		       : "not verbs: this machine has no RDMA device";
}

static void
terms_take(struct remote *r, const struct lanes_grant *g)
{
	r->terms = (struct lane_terms){.lanes = (unsigned)json_object_array_length(g->tokens),
				       .depth = (unsigned)g->depth,
				       .msg_size = g->msg_size,
				       .rma = g->rma,
				       .ring = g->ring,
				       .bare = g->bare,
				       .put = g->put,
				       .window = g->window,
				       .imm_unit = g->imm_unit};
	(void)snprintf(r->terms.provider, sizeof(r->terms.provider), "%s", g->provider);
	(void)snprintf(r->terms.why, sizeof(r->terms.why), "%s", provider_why(r, g));
}

void
remote_reach(const struct remote *r, const char *told, char *out, size_t size)
{
	const char *zone = strchr(channel_peer(r->channel), '%');
	char address[INET6_ADDRSTRLEN] = "";
	size_t len = strcspn(told, "%");
	struct in6_addr a;

	if (len < sizeof(address))
		memcpy(address, told, len);
	if (zone && inet_pton(AF_INET6, address, &a) == 1 && IN6_IS_ADDR_LINKLOCAL(&a))
		(void)snprintf(out, size, "%s%s", address, zone);
	else
		(void)snprintf(out, size, "%s", told);
}

/* A limit is told with the value that is needed. */
static int
lanes_limit(const struct remote *r, struct err *e)
{
	struct rlimit have;
	char text[ERR_TEXT_MAX];

	if (!e || !strstr(e->text, "RLIMIT_NOFILE") || getrlimit(RLIMIT_NOFILE, &have))
		return REPL_E_LIMIT;
	memcpy(text, e->text, sizeof(text));
	return err_set(
		e, REPL_E_LIMIT,
		"%s, which is %llu: a replica with %u lanes takes some %u, beside what else is "
		"open",
		text, (unsigned long long)have.rlim_cur, r->terms.lanes,
		REPLICA_FDS + LANE_FDS * r->terms.lanes);
}

static int
lanes_connect(struct remote *r, const struct lanes_grant *g, uint64_t deadline_ns, struct err *e)
{
	char host[REMOTE_ADDRESS_MAX];
	struct fab_params p = {.provider = g->provider,
			       .cancel = r->cancel,
			       .host = host,
			       .port = (uint16_t)g->port,
			       .depth = (unsigned)g->depth,
			       .msg_size = g->msg_size,
			       .regions = &r->regions};
	int rc = key_parse(g->key, &p.key, e);

	if (rc)
		return rc;
	remote_reach(r, g->address, host, sizeof(host));
	r->fabs = calloc(r->terms.lanes, sizeof(struct fab_lane *));
	r->lanes = calloc(r->terms.lanes, sizeof(*r->lanes));
	if (!r->fabs || !r->lanes)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	rc = regions_init(&r->regions, g->rma_region, r->info.meta.pool_size, e);
	/* All at once: over a long way each takes its time. */
	for (unsigned i = 0; !rc && i < r->terms.lanes; i++) {
		p.lane = i;
		rc = lane_connect(r, &p, json_object_array_get_idx(g->tokens, i), e);
	}
	if (!rc)
		rc = fab_lanes_connected(r->fabs, r->terms.lanes, &p, deadline_ns, e);
	for (unsigned i = 0; !rc && i < r->terms.lanes; i++)
		rc = lane_connected(r, &p, i, e);
	return rc == REPL_E_LIMIT ? lanes_limit(r, e) : rc;
}

/*
 * Lanes that may be fallen back from: after deadline_ms no more of them are taken, and of who is
 * silent for about as long the target ends the session, which the others are to be of.
 */
static uint64_t
try_deadline(const struct remote *r, const struct lanes_grant *g, uint64_t deadline_ns)
{
	uint64_t half = g->deadline_ms / 2, early;

	if (strcmp(r->provider, "auto") != 0 || strcmp(g->provider, "verbs") != 0 ||
	    half > UINT_MAX)
		return deadline_ns;
	early = clock_deadline((unsigned)half);
	return early < deadline_ns ? early : deadline_ns;
}

/* Ask and connect once. *open: the target has them open, whatever came of it. */
static int
lanes_try(struct remote *r, unsigned count, uint64_t deadline_ns, bool *open, struct err *e)
{
	struct lanes_grant g = {.msg_size = remote_msg_size(r), .depth = remote_depth(r)};
	struct json_object *result = NULL;
	int rc = remote_call(r, "lanes.open", lanes_params(r, count), &result, e);

	*open = rc == 0;
	if (rc)
		return rc;
	rc = lanes_grant_parse(result, count, r->info.meta.pool_size, &g, e);
	if (!rc)
		rc = ring_check(r, &g, e);
	if (!rc)
		rc = provider_take(r, result, &g, e);
	if (!rc) {
		terms_take(r, &g);
		rc = lanes_connect(r, &g, try_deadline(r, &g, deadline_ns), e);
	}
	if (rc)
		remote_free_lanes(r);
	json_object_put(result);
	return rc;
}

int
remote_lanes_open(struct remote *r, unsigned count, struct err *e)
{
	uint64_t deadline_ns = clock_deadline(r->connect_timeout_ms);
	bool verbs = verbs_offered(r), open, early;
	struct err why;
	int rc;

	/* By another provider other methods may be right, and for a flush the fabric is not asked
	 * yet. */
	early = (strcmp(r->provider, "tcp") == 0 || !fab_rdma_present()) &&
		r->method != PLAN_NATIVE_FLUSH;
	rc = early ? method_check(r, NULL, e) : 0;
	if (rc)
		return rc;
	fab_warm_free(r->warm);
	r->warm = NULL;
	count = r->queued ? 1 : count;
	err_clear(&why);
	if (!verbs)
		return lanes_try(r, count, deadline_ns, &open, e);
	rc = lanes_try(r, count, clock_deadline(r->connect_timeout_ms / 2), &open, &why);
	if (rc == 0)
		return 0;
	(void)snprintf(r->why, sizeof(r->why), "not verbs: %.180s", why.text);
	rc = open ? remote_call(r, "lanes.close", json_object_new_object(), NULL, e) : 0;
	return rc ? rc : lanes_try(r, count, deadline_ns, &open, e);
}

int
remote_lanes_open_bare(struct remote *r, unsigned count, struct err *e)
{
	r->without_ring = true;
	r->without_log = r->info.journal_left;
	return remote_lanes_open(r, count, e);
}

int
remote_lanes_check(const struct remote *r, unsigned count, struct err *e)
{
	if (r->queued || r->terms.lanes >= count)
		return 0;
	(void)err_set(e, REPL_E_LIMIT,
		      "the target grants %u lanes, and the program has %u since it opened its "
		      "pool: raise lanes-max in the target's repld.conf, or set lanes to %u here "
		      "and start the program again",
		      r->terms.lanes, count, r->terms.lanes);
	(void)err_because(e, REPL_REASON_TARGET_LIMIT);
	return REPL_E_LIMIT;
}

int
remote_lanes_reopen(struct remote *r, unsigned count, struct err *e)
{
	struct remote_traffic sum = {0};
	int rc;

	if (!r->without_ring)
		return 0;
	r->without_ring = false;
	/* Beside a journal the target has made no round log either. */
	if (!ring_wanted(r) && !r->without_log)
		return 0;
	remote_traffic_add(r, &sum);
	r->before = sum;
	remote_free_lanes(r);
	rc = remote_call(r, "lanes.close", json_object_new_object(), NULL, e);
	if (!rc)
		rc = remote_lanes_open(r, count, e);
	return rc ? rc : remote_lanes_check(r, count, e);
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
		fab_lane_source(r->fabs[i], mem, &r->lanes[i].counters.uncopied);
		lane_watch(&r->lanes[i], gone);
	}
}

void
remote_cut(struct remote *r)
{
	for (unsigned i = 0; r->fabs && i < r->terms.lanes; i++)
		fab_lane_cut(r->fabs[i]);
}

void
remote_abandon_lanes(struct remote *r)
{
	for (unsigned i = 0; r->fabs && i < r->terms.lanes; i++) {
		if (r->fabs[i])
			fab_lane_abandon(r->fabs[i]);
	}
}

size_t
remote_source_format(const struct remote *r, char *buf, size_t size)
{
	struct fab_source_info info = {0};

	/* The first that copies tells why. */
	for (unsigned i = 0; r->fabs && i < r->terms.lanes && !info.why[0]; i++)
		fab_lane_source_info(r->fabs[i], &info);
	buf[0] = '\0';
	if (!info.told)
		return 0;
	return (size_t)snprintf(buf, size, "large-writes = %s (%s)\n",
				info.why[0] ? "copied" : "from the pool",
				info.why[0] ? info.why : "it is mapped from device DAX");
}

void
remote_traffic_add(struct remote *r, struct remote_traffic *sum)
{
	sum->messages += r->before.messages;
	sum->writes += r->before.writes;
	sum->reads += r->before.reads;
	sum->bytes += r->before.bytes;
	sum->immediates += r->before.immediates;
	sum->uncopied += r->before.uncopied;
	for (unsigned i = 0; r->lanes && i < r->terms.lanes; i++) {
		struct lane_counters *c = &r->lanes[i].counters;

		sum->messages += atomic_load(&c->messages);
		sum->writes += atomic_load(&c->writes);
		sum->reads += atomic_load(&c->reads);
		sum->bytes += atomic_load(&c->bytes);
		sum->immediates += atomic_load(&c->immediates);
		sum->uncopied += atomic_load(&c->uncopied);
	}
}

int
remote_read_pieces(struct remote *r, unsigned lane, void *buf, uint64_t off, uint64_t len,
		   const struct remote_read_until *until, struct err *e)
{
	uint64_t deadline_ns = until->deadline_ns;
	struct lane *l = &r->lanes[lane];

	/* What is complete may not be in the pool yet; what is not drained has no claim to go. */
	if (r->terms.ring) {
		lane_begin(l, LANE_WRITTEN, 0, 0);
		lanes_run(&l, 1, lane_done, deadline_ns);
	}
	for (uint64_t at = 0, n; at < len; at += n) {
		if (at > 0 && until->more_ns && clock_now_ns() >= until->more_ns)
			return err_set(e, REPL_E_TIMEOUT,
				       "%llu of %llu bytes were read in the time that there is: "
				       "read them by several calls",
				       (unsigned long long)at, (unsigned long long)len);
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

int
remote_read(struct remote *r, unsigned lane, void *buf, uint64_t off, uint64_t len,
	    uint64_t deadline_ns, struct err *e)
{
	const struct remote_read_until until = {.deadline_ns = deadline_ns};

	return remote_read_pieces(r, lane, buf, off, len, &until, e);
}
