/* SPDX-License-Identifier: BSD-3-Clause */
/* lanes.open, lanes.close. */
#include "handlers.h"

#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "control.h"
#include "describe.h"
#include "fabric.h"
#include "filesystem.h"
#include "hex.h"
#include "log.h"
#include "provider.h"
#include "wire.h"

#define ASK_MAX      (1U << 30) /* more than is ever granted */
#define FDS_BASE     48         /* of the session itself and of libfabric */
#define FDS_PER_LANE 4

#define MSG_SIZE_PINNED 65536U /* at most, by verbs */

static int
get_granted(struct json_object *params, const char *name, unsigned min, unsigned max,
	    unsigned *granted, struct err *e)
{
	uint64_t asked;
	int rc = control_get_u64(params, name, min, ASK_MAX, &asked, e);

	if (rc)
		return rc;
	*granted = asked > max ? max : (unsigned)asked;
	return REPL_OK;
}

/* Better a text now than a lane that fails half way through. */
static int
limits_check(unsigned lanes, struct err *e)
{
	unsigned long need = FDS_BASE + FDS_PER_LANE * (unsigned long)lanes;
	struct rlimit have;

	if (getrlimit(RLIMIT_NOFILE, &have) || have.rlim_cur >= need)
		return REPL_OK;
	return err_set(
		e, REPL_E_LIMIT,
		"the target's limit of open files (RLIMIT_NOFILE) is %llu, %u lanes need %lu",
		(unsigned long long)have.rlim_cur, lanes, need);
}

static bool
address_is_numeric(const char *address)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;

	if (getaddrinfo(address, NULL, &hints, &found))
		return false;
	freeaddrinfo(found);
	return true;
}

/* SSH_CONNECTION is "CLIENT PORT SERVER PORT": the third word is where SSH came in. */
static bool
address_of_ssh(char out[HANDLERS_ADDRESS_MAX])
{
	const char *text = getenv("SSH_CONNECTION");

	return text && sscanf(text, "%*63s %*7s %63s", out) == 1 && address_is_numeric(out);
}

void
handlers_data_address(const struct conf *c, char out[HANDLERS_ADDRESS_MAX])
{
	if (c->data_address)
		(void)snprintf(out, HANDLERS_ADDRESS_MAX, "%s", c->data_address);
	else if (!address_of_ssh(out))
		(void)snprintf(out, HANDLERS_ADDRESS_MAX, "127.0.0.1");
}

const char *
handlers_told_address(const struct conf *c, const char *address)
{
	return c->data_told ? c->data_told : address;
}

static int
get_params(const struct state *s, struct json_object *params, struct data_params *p, struct err *e)
{
	const struct conf *c = s->conf;
	unsigned lanes_max = c->lanes_max < REPL_LANES_MAX ? c->lanes_max : REPL_LANES_MAX;
	unsigned size_max =
		c->message_size_max < WIRE_MSG_SIZE_MAX ? c->message_size_max : WIRE_MSG_SIZE_MAX;
	unsigned msg_size = 0;

	if (get_granted(params, "count", 1, lanes_max, &p->lanes, e) ||
	    get_granted(params, "msg_size", WIRE_MSG_SIZE_MIN, size_max, &msg_size, e) ||
	    get_granted(params, "depth", WIRE_DEPTH_MIN, WIRE_DEPTH_MAX, &p->depth, e) ||
	    provider_choose(params, p->address, &p->provider, e) || limits_check(p->lanes, e))
		return e->code;
	p->msg_size = msg_size;
	/* Its buffers are pinned. */
	if (strcmp(p->provider, "verbs") == 0 && p->msg_size > MSG_SIZE_PINNED)
		p->msg_size = MSG_SIZE_PINNED;
	p->port_first = (uint16_t)c->data_port_first;
	p->port_last = (uint16_t)c->data_port_last;
	p->map = s->map;
	p->journal = s->write ? pool_journal(s->pool) : NULL;
	p->write = s->write;
	p->hole = pool_get_info(s->pool)->meta.sparse;
	p->sparse = pool_takes_space(s->pool);
	p->epoch = pool_get_info(s->pool)->meta.epoch;
	p->join_ms = c->heartbeat_timeout_ms;
	p->busy_poll_ns = (uint64_t)c->busy_poll_us * 1000;
	return REPL_OK;
}

static struct json_object *
tokens_new(const struct data *d, unsigned lanes)
{
	struct json_object *list = json_object_new_array();
	char text[2 * WIRE_TOKEN_SIZE + 1];

	for (unsigned i = 0; i < lanes; i++) {
		hex_encode(data_token(d, i), WIRE_TOKEN_SIZE, text);
		control_append(list, json_object_new_string(text));
	}
	explicit_bzero(text, sizeof(text));
	return list;
}

static struct json_object *
lanes_new(const struct data *d, const struct data_params *p, const char *told,
	  const struct profile *profile)
{
	struct json_object *o = json_object_new_object();
	char key[17];

	(void)snprintf(key, sizeof(key), "%016" PRIx64, data_key(d));
	describe_add_text(o, "provider", p->provider);
	describe_add_text(o, "address", told);
	describe_add_u64(o, "port", data_port(d));
	control_add(o, "lanes", tokens_new(d, p->lanes));
	describe_add_u64(o, "msg_size", p->msg_size);
	describe_add_u64(o, "depth", p->depth);
	describe_add_bool(o, "rma", p->rma);
	describe_add_text(o, "key", key);
	describe_add_u64(o, "rma_region", data_region_unit(d));
	describe_add_u64(o, "imm_unit", data_imm_unit(d));
	describe_add_u64(o, "deadline_ms", p->join_ms);
	describe_add_bool(o, "ring", p->ring != NULL);
	describe_add_bool(o, "bare", p->bare);
	describe_add_bool(o, "put", p->put);
	describe_add_u64(o, "window", p->window);
	control_add(o, "profile", describe_profile(profile));
	return o;
}

/* A ring must be where the profile says that receive buffers are; a page must be synced. */
static bool
ring_allowed(const struct state *s)
{
	const struct profile *p = &s->probe.profile;

	return s->write && profile_get(p, PROFILE_F_RQWRB) == PROFILE_RQWRB_PM &&
	       profile_get(p, PROFILE_F_RMA) == PROFILE_RMA_YES &&
	       profile_get(p, PROFILE_F_CLASS) != PROFILE_CLASS_PAGE;
}

int
handle_lanes_open(struct state *s, struct json_object *params, struct reply *r)
{
	bool ring = false;
	struct data_params p;
	char address[HANDLERS_ADDRESS_MAX];
	int rc;

	memset(&p, 0, sizeof(p));
	handlers_data_address(s->conf, address);
	p.address = address;
	rc = get_params(s, params, &p, &r->err);
	if (!rc && control_has(params, "ring"))
		rc = control_get_bool(params, "ring", &ring, &r->err);
	if (rc == REPL_E_REFUSED)
		(void)snprintf(r->next, sizeof(r->next), "ask for provider tcp");
	/* What holds of the pool depends on who writes into it. */
	if (!rc)
		rc = provider_probe(s->conf, pool_fd(s->pool), s->map, s->write,
				    pool_get_info(s->pool)->replicas > 0, p.provider, address,
				    &s->probe, &r->err);
	if (rc)
		return rc;
	p.rma = profile_get(&s->probe.profile, PROFILE_F_RMA) == PROFILE_RMA_YES;
	rc = state_lanes_open(s, &p, ring && ring_allowed(s), &r->err);
	if (rc)
		return rc;
	r->result =
		lanes_new(s->data, &p, handlers_told_address(s->conf, address), &s->probe.profile);
	log_info("%u lanes open on %s port %u by %s%s%s", p.lanes, address,
		 (unsigned)data_port(s->data), p.provider, p.rma ? "" : ", messages only",
		 p.ring ? ", with a receive ring" : "");
	return REPL_OK;
}

int
handle_lanes_close(struct state *s, struct json_object *params, struct reply *r)
{
	(void)params;
	(void)r;
	state_lanes_close(s);
	return REPL_OK;
}
