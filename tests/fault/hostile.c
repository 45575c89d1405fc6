/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: hostile -i IDENTITY -k KNOWN_HOSTS [-p PROVIDER] MODE TARGET/POOL
 *
 * Each mode checks the target's answer itself; exit status 0 when all were as
 * docs/PROTOCOL.md demands, 3 when the pool has other bytes than it must have.
 */
#include "hostile.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "config.h"
#include "control.h"
#include "hex.h"

static const struct mode {
	const char *name;
	void (*run)(struct hostile *h);
} modes[] = {
	{"tokens", mode_tokens}, {"late", mode_late},       {"garbage", mode_garbage},
	{"half", mode_half},     {"idle", mode_idle},       {"linger", mode_linger},
	{"rma", mode_rma},       {"commits", mode_commits}, {"readonly", mode_readonly},
	{"flood", mode_flood},   {"lanes", mode_lanes},     {"immediates", mode_immediates},
	{"ring", mode_ring},     {"appends", mode_appends}, {"stages", mode_stages},
	{"window", mode_window},
};

_Noreturn static void __attribute__((format(printf, 2, 0)))
end(int status, const char *fmt, va_list ap)
{
	(void)printf("FAILED: ");
	(void)vprintf(fmt, ap);
	(void)printf("\n");
	(void)fflush(stdout);
	_exit(status);
}

_Noreturn void
hostile_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	end(1, fmt, ap);
}

_Noreturn void
hostile_lost(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	end(3, fmt, ap);
}

static struct json_object *
create_params(const char *name)
{
	struct json_object *params = json_object_new_object();

	json_object_object_add(params, "name", json_object_new_string(name));
	json_object_object_add(params, "size", json_object_new_int64(HOSTILE_POOL_SIZE));
	return params;
}

void
hostile_open(struct hostile *h, bool write)
{
	const struct target *t = &h->config->targets[0];
	struct err e;
	int rc;

	err_clear(&e);
	if (remote_new(h->config, t, NULL, &h->remote, &e))
		hostile_fail("session: %s", e.text);
	rc = remote_call(h->remote, "pool.create", create_params(t->pool), NULL, &e);
	if (rc && rc != REPL_E_EXISTS)
		hostile_fail("pool.create: %s", e.text);
	if (remote_pool_open(h->remote, t->pool, write ? REMOTE_WRITE : REMOTE_READ, &e))
		hostile_fail("pool.open: %s", e.text);
	h->epoch = remote_epoch(h->remote);
}

void
hostile_close(struct hostile *h)
{
	remote_free(h->remote, HOSTILE_WAIT_MS);
	h->remote = NULL;
	regions_fini(&h->regions);
}

void
hostile_ping(struct hostile *h)
{
	struct err e;

	err_clear(&e);
	if (remote_call(h->remote, "ping", json_object_new_object(), NULL, &e))
		hostile_fail("ping: %s", e.text);
}

static int
grant_parse(struct json_object *o, struct grant *g, struct err *e)
{
	struct json_object *tokens;
	const char *address, *key;
	uint64_t port = 0, depth = 0, msg_size = 0;

	if (control_get_text(o, "address", sizeof(g->address) - 1, &address, e) ||
	    control_get_text(o, "key", 16, &key, e) ||
	    control_get_u64(o, "port", 1, 65535, &port, e) ||
	    control_get_u64(o, "depth", 1, 64, &depth, e) ||
	    control_get_u64(o, "msg_size", 1, WIRE_MSG_SIZE_MAX, &msg_size, e) ||
	    control_get_u64(o, "imm_unit", 0, INT64_MAX, &g->imm_unit, e) ||
	    control_get_u64(o, "deadline_ms", 1, INT64_MAX, &g->deadline_ms, e) ||
	    control_get_array(o, "lanes", HOSTILE_LANES_MAX, &tokens, e))
		return e->code;
	(void)snprintf(g->address, sizeof(g->address), "%s", address);
	g->key = strtoull(key, NULL, 16);
	g->port = (uint16_t)port;
	g->depth = (unsigned)depth;
	g->msg_size = msg_size;
	g->lanes = (unsigned)json_object_array_length(tokens);
	for (unsigned i = 0; i < g->lanes; i++) {
		const char *text = json_object_get_string(json_object_array_get_idx(tokens, i));

		if (!hex_decode(text, strlen(text), g->tokens[i], WIRE_TOKEN_SIZE))
			return err_set(e, REPL_E_PROTOCOL, "bad token '%s'", text);
	}
	return 0;
}

static void
grant_ask(struct hostile *h, unsigned lanes, unsigned depth, bool ring, struct grant *g)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	struct json_object *providers = json_object_new_array();
	bool granted = false;
	struct err e;

	err_clear(&e);
	memset(g, 0, sizeof(*g));
	g->provider = h->provider;
	regions_fini(&h->regions);
	if (regions_init(&h->regions, HOSTILE_POOL_SIZE, HOSTILE_POOL_SIZE, &e))
		hostile_fail("%s", e.text);
	/* By verbs keys and addresses are the RNIC's. */
	g->regions = strcmp(h->provider, "verbs") == 0 ? &h->regions : NULL;
	json_object_array_add(providers, json_object_new_string(h->provider));
	json_object_object_add(params, "providers", providers);
	json_object_object_add(params, "count", json_object_new_int((int)lanes));
	json_object_object_add(params, "depth", json_object_new_int((int)depth));
	json_object_object_add(params, "msg_size", json_object_new_int(16384));
	json_object_object_add(params, "ring", json_object_new_boolean(ring));
	if (remote_call(h->remote, "lanes.open", params, &result, &e) || grant_parse(result, g, &e))
		hostile_fail("lanes.open: %s", e.text);
	if (control_get_bool(result, "ring", &granted, &e) || granted != ring)
		hostile_fail("lanes.open: %s receive ring", granted ? "a" : "no");
	if (control_get_bool(result, "bare", &g->bare, &e))
		hostile_fail("lanes.open: %s", e.text);
	json_object_put(result);
}

void
hostile_grant(struct hostile *h, unsigned lanes, unsigned depth, struct grant *g)
{
	grant_ask(h, lanes, depth, false, g);
}

void
hostile_grant_ring(struct hostile *h, unsigned lanes, unsigned depth, struct grant *g)
{
	grant_ask(h, lanes, depth, true, g);
}

void
hostile_lanes_close(struct hostile *h)
{
	struct err e;

	err_clear(&e);
	if (remote_call(h->remote, "lanes.close", json_object_new_object(), NULL, &e))
		hostile_fail("lanes.close: %s", e.text);
}

int
hostile_connect(const struct grant *g, const uint8_t *token, unsigned depth, size_t msg_size,
		uint64_t key, struct fab_lane **out, struct err *e)
{
	struct fab_params p = {.provider = g->provider,
			       .regions = g->regions,
			       .host = g->address,
			       .port = g->port,
			       .depth = depth,
			       .msg_size = msg_size,
			       .key = key};
	uint8_t hello[WIRE_HELLO_SIZE];
	int rc;

	err_clear(e);
	for (unsigned i = 0; i < g->lanes; i++)
		if (memcmp(g->tokens[i], token, WIRE_TOKEN_SIZE) == 0)
			p.lane = i + g->lane_lie;
	wire_hello_encode(hello, token);
	rc = fab_lane_connect(&p, hello, sizeof(hello), out, e);
	if (!rc)
		rc = fab_lanes_connected(out, 1, &p, clock_deadline(HOSTILE_WAIT_MS), e);
	if (rc) {
		fab_lane_free(*out);
		*out = NULL;
	}
	return rc;
}

struct fab_lane *
hostile_lane(const struct grant *g, unsigned i)
{
	struct fab_lane *l;
	struct err e;

	if (hostile_connect(g, g->tokens[i], g->depth, g->msg_size, g->key, &l, &e))
		hostile_fail("lane %u: %s", i, e.text);
	return l;
}

void
hostile_await(struct fab_lane *l, unsigned ms, struct fab_event *ev)
{
	uint64_t deadline = clock_deadline(ms);

	for (;;) {
		fab_lane_poll(l, ev);
		if (ev->type != FAB_NONE || clock_left_ms(deadline) == 0)
			return;
		fab_lanes_wait(&l, 1, -1, deadline);
	}
}

void
hostile_await_ack(struct fab_lane *l, uint64_t seq, bool good, const char *what)
{
	struct wire_ack ack = {0};
	struct fab_event ev;
	struct err e;

	err_clear(&e);
	do
		hostile_await(l, HOSTILE_WAIT_MS, &ev);
	while (ev.type == FAB_WRITTEN);
	if (ev.type != FAB_RECV || wire_ack_decode(ev.data, ev.len, &ack, &e) ||
	    (ack.status == 0) != good || ack.seq != seq)
		hostile_fail("%s %llu: event %d %s, seq %llu, status %d", what,
			     (unsigned long long)seq, ev.type, ev.type == FAB_CLOSED ? ev.text : "",
			     (unsigned long long)ack.seq, ack.status);
	fab_lane_repost(l, ev.slot);
}

void
hostile_send(struct hostile *h, struct fab_lane *l, struct wire_commit *c, uint64_t seq,
	     struct wire_ack *ack)
{
	struct fab_event ev;
	struct err e;

	err_clear(&e);
	if (fab_lane_send(l, wire_commit_end(c, seq, h->epoch), &e))
		hostile_fail("good COMMIT: %s", e.text);
	do
		hostile_await(l, HOSTILE_WAIT_MS, &ev);
	while (ev.type == FAB_WRITTEN);
	if (ev.type != FAB_RECV || wire_ack_decode(ev.data, ev.len, ack, &e) || ack->seq != seq)
		hostile_fail("good COMMIT %llu: event %d, seq %llu", (unsigned long long)seq,
			     ev.type, (unsigned long long)ack->seq);
	if (ack->has_key &&
	    regions_tell(&h->regions, 0,
			 &(struct regions_place){.addr = ack->addr, .key = ack->key}, &e))
		hostile_fail("good COMMIT %llu: %s", (unsigned long long)seq, e.text);
	fab_lane_repost(l, ev.slot);
}

static void
register_add(struct wire_commit *c)
{
	struct wire_entry region = {.off = 0, .op = WIRE_OP_REGISTER};

	wire_commit_add(c, &region, NULL);
}

void
hostile_register(struct hostile *h, struct fab_lane *l, uint64_t seq)
{
	struct wire_commit c;
	struct wire_ack ack = {0};

	wire_commit_begin(&c, fab_lane_buf(l), wire_commit_size(1, 0), 1);
	register_add(&c);
	hostile_send(h, l, &c, seq, &ack);
	if (ack.status)
		hostile_fail("registering: status %d", ack.status);
}

void
hostile_register_once(struct hostile *h, const struct grant *g)
{
	struct fab_lane *l = hostile_lane(g, g->lanes - 1);

	hostile_register(h, l, 1);
	fab_lane_free(l);
}

void
hostile_commit(struct hostile *h, struct fab_lane *l, uint64_t seq, uint64_t off, const void *data,
	       uint32_t len)
{
	struct wire_entry entry = {.off = off, .len = len, .op = WIRE_OP_COPY};
	struct wire_commit c;
	struct wire_ack ack = {0};
	uint8_t *buf = fab_lane_buf(l);

	if (!buf)
		hostile_fail("no room for COMMIT %llu", (unsigned long long)seq);
	wire_commit_begin(&c, buf, wire_commit_size(2, len), 2);
	if (seq == 1)
		register_add(&c);
	wire_commit_add(&c, &entry, data);
	hostile_send(h, l, &c, seq, &ack);
	if (ack.status)
		hostile_fail("good COMMIT %llu: status %d", (unsigned long long)seq, ack.status);
}

void
hostile_read_pool(struct fab_lane *l, uint8_t *buf)
{
	size_t most =
		fab_lane_rma_max(l) < HOSTILE_POOL_SIZE ? fab_lane_rma_max(l) : HOSTILE_POOL_SIZE;
	struct fab_event ev;
	struct err e;

	err_clear(&e);
	for (size_t off = 0; off < HOSTILE_POOL_SIZE; off += most) {
		if (fab_lane_read(l, buf + off, most, off, &e))
			hostile_fail("RMA read: %s", e.text);
		/* That an immediate was delivered may be told after its answer. */
		do
			hostile_await(l, HOSTILE_WAIT_MS, &ev);
		while (ev.type == FAB_WRITTEN);
		if (ev.type != FAB_READ)
			hostile_fail("RMA read: event %d%s%s", ev.type,
				     ev.type == FAB_CLOSED ? " " : "",
				     ev.type == FAB_CLOSED ? ev.text : "");
	}
}

int
hostile_tcp(const struct grant *g)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(g->port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || inet_pton(AF_INET, g->address, &a.sin_addr) != 1 ||
	    connect(fd, (struct sockaddr *)&a, sizeof(a)))
		hostile_fail("connecting to %s:%u: %m", g->address, g->port);
	return fd;
}

void
hostile_raise_nofile(void)
{
	struct rlimit r;

	(void)getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

static int
hostile_configure(struct hostile *h, int argc, char **argv)
{
	struct err e;
	int opt;

	err_clear(&e);
	if (repl_config_new(&h->config))
		return 1;
	h->provider = "tcp";
	while ((opt = getopt(argc, argv, "i:k:p:")) != -1) {
		if (opt == '?')
			return 2;
		if (opt == 'p')
			h->provider = optarg;
		else if (config_set(h->config, opt == 'i' ? "identity" : "known-hosts", optarg, &e))
			hostile_fail("%s", e.text);
	}
	if (argc - optind != 2)
		return 2;
	h->target = argv[optind + 1];
	if (config_add_target(h->config, h->target, &e))
		hostile_fail("%s", e.text);
	return 0;
}

int
main(int argc, char **argv)
{
	struct hostile h = {0};
	int rc = hostile_configure(&h, argc, argv);

	if (rc)
		return rc;
	rc = 2;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[optind], modes[i].name) == 0) {
			modes[i].run(&h);
			rc = 0;
		}
	}
	repl_config_free(h.config);
	return rc;
}
