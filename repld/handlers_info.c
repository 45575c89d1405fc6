/* SPDX-License-Identifier: BSD-3-Clause */
/* hello, ping, bye, probe, status. */
#include "handlers.h"

#include <stdio.h>
#include <string.h>

#include "control.h"
#include "describe.h"
#include "provider.h"
#include "report.h"
#include "wire.h"

#define VERSIONS_MAX     16
#define PEER_TEXT_MAX    256
#define SESSION_NAME_MAX 64
#define SESSIONS_TEXT    98304U /* bytes of an answer that sessions take; pools take more */

static void
text_append(char *text, size_t size, const char *sep, int64_t value)
{
	size_t used = strlen(text);

	(void)snprintf(text + used, size - used, "%s%lld", used > 0 ? sep : "", (long long)value);
}

/* Version 1 is the only one; a list without it names both sides. */
static int
version_choose(struct json_object *params, struct err *e)
{
	struct json_object *list;
	char theirs[VERSIONS_MAX * 24] = "";
	int rc;

	rc = control_get_array(params, "versions", VERSIONS_MAX, &list, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *v = json_object_array_get_idx(list, i);

		if (!json_object_is_type(v, json_type_int))
			return err_set(e, REPL_E_INVAL,
				       "member 'versions' holds more than integers");
		if (json_object_get_int64(v) == CONTROL_VERSION)
			return REPL_OK;
		text_append(theirs, sizeof(theirs), ", ", json_object_get_int64(v));
	}
	return err_set(e, REPL_E_VERSION,
		       "no common protocol version: the initiator speaks %s, this target %d",
		       theirs[0] ? theirs : "none", CONTROL_VERSION);
}

static unsigned
min_u(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static struct json_object *
limits_new(const struct conf *c)
{
	struct json_object *o = json_object_new_object();

	describe_add_u64(o, "lanes_max", min_u(c->lanes_max, REPL_LANES_MAX));
	describe_add_u64(o, "msg_size_max", min_u(c->message_size_max, WIRE_MSG_SIZE_MAX));
	describe_add_u64(o, "depth_max", WIRE_DEPTH_MAX);
	return o;
}

static struct json_object *
hello_new(const struct state *s)
{
	struct json_object *o = json_object_new_object();

	describe_add_u64(o, "version", CONTROL_VERSION);
	describe_add_text(o, "software", "repld " REPL_VERSION_TEXT);
	describe_add_text(o, "session", s->id);
	control_add(o, "limits", limits_new(s->conf));
	describe_add_u64(o, "heartbeat_ms", s->conf->heartbeat_ms);
	describe_add_u64(o, "heartbeat_timeout_ms", s->conf->heartbeat_timeout_ms);
	describe_add_u64(o, "idle_timeout_ms", s->conf->idle_timeout_ms);
	return o;
}

int
handle_hello(struct state *s, struct json_object *params, struct reply *r)
{
	const char *peer = "";
	int rc;

	rc = version_choose(params, &r->err);
	if (rc == REPL_E_VERSION)
		dispatch_next(r,
			      "install versions of librepl and repld that speak a common protocol",
			      NULL);
	if (rc)
		return rc;
	if (control_has(params, "peer")) {
		rc = control_get_text(params, "peer", PEER_TEXT_MAX, &peer, &r->err);
		if (rc)
			return rc;
	}
	rc = state_join(s, peer, &r->err);
	if (rc == REPL_E_LIMIT)
		(void)snprintf(
			r->next, sizeof(r->next),
			"end another session, or raise sessions-max in the target's repld.conf");
	if (rc)
		return rc;
	r->result = hello_new(s);
	return REPL_OK;
}

int
handle_ping(struct state *s, struct json_object *params, struct reply *r)
{
	struct json_object *report = NULL;

	/* A heartbeat is never refused for what it carries. */
	if (json_object_object_get_ex(params, "report", &report))
		state_report(s, report_check(report));
	return s->pool && s->write ? state_check_files(s, &r->err) : REPL_OK;
}

int
handle_bye(struct state *s, struct json_object *params, struct reply *r)
{
	(void)params;
	(void)r;
	s->ends = "bye";
	return REPL_OK;
}

/* Probe a pool that this session has not open; it is mapped for reading only. */
static int
probe_named(struct state *s, const char *name, const char *provider, struct probe *out,
	    struct err *e)
{
	char address[HANDLERS_ADDRESS_MAX];
	struct pool *pool = NULL;
	struct pmem_map *map = NULL;
	int rc;

	/* Mapping wants the process for itself, see pmem.h. */
	fab_warm_free(s->warm);
	s->warm = NULL;
	rc = pool_open(s->store, name, POOL_READ, s->peer, &pool, e);
	if (rc)
		return rc;
	rc = pool_map(pool, false, &map, e);
	if (rc)
		goto out;
	handlers_data_address(s->conf, address);
	rc = provider_probe(s->conf, pool_fd(pool), map, false, pool_get_info(pool)->replicas > 0,
			    provider, address, out, e);
	if (!rc && out->rma_untried) {
		out->profile.known[PROFILE_F_RMA] = false;
		out->profile.value[PROFILE_F_RMA] = PROFILE_RMA_YES;
		(void)snprintf(out->profile.source[PROFILE_F_RMA], PROFILE_SOURCE_MAX,
			       "it is tried when the pool is opened for writing");
	}
out:
	pmem_map_free(map);
	(void)pool_close(pool, true, NULL);
	return rc;
}

int
handle_probe(struct state *s, struct json_object *params, struct reply *r)
{
	char address[HANDLERS_ADDRESS_MAX];
	const char *name = NULL, *provider = "tcp";
	struct probe found;
	int rc;

	memset(&found, 0, sizeof(found));
	if (control_has(params, "name")) {
		rc = handlers_get_name(params, &name, &r->err);
		if (rc)
			return rc;
	}
	handlers_data_address(s->conf, address);
	if (control_has(params, "providers")) {
		rc = provider_choose(params, address, &provider, &r->err);
		if (rc)
			return rc;
	}
	if (s->pool && (!name || strcmp(name, s->pool_name) == 0)) {
		found = s->probe;
		rc = REPL_OK;
	} else if (name && s->pool) {
		/* Mapping it wants the process for itself, see pmem.h. */
		rc = err_set(&r->err, REPL_E_BUSY,
			     "pool '%s' is open in this session: probe '%s' after closing it",
			     s->pool_name, name);
	} else if (name) {
		rc = probe_named(s, name, provider, &found, &r->err);
	} else {
		rc = provider_probe(s->conf, pool_store_dirfd(s->store), NULL, false, false,
				    provider, address, &found, &r->err);
	}
	if (rc)
		return rc;
	r->result = describe_profile(&found.profile);
	control_add(r->result, "facts", describe_facts(&found));
	return REPL_OK;
}

/* An entry's, whatever a damaged one has there. */
static const char *
session_name(struct json_object *o)
{
	const char *name = json_object_get_string(json_object_object_get(o, "session"));

	return name ? name : "";
}

/* The registry may be a second behind for this session: show it as it is. */
static void
sessions_refresh_own(struct state *s, struct json_object *sessions)
{
	struct json_object *entry = state_entry(s);

	for (size_t i = 0; control_complete(entry) && i < json_object_array_length(sessions); i++) {
		struct json_object *o = json_object_array_get_idx(sessions, i);

		if (strcmp(session_name(o), s->id) != 0)
			continue;
		(void)json_object_array_put_idx(sessions, i, entry);
		return;
	}
	control_append(sessions, entry);
}

static int
session_compare(const void *a, const void *b)
{
	struct json_object *const *left = a, *const *right = b;

	return strcmp(session_name(*left), session_name(*right));
}

/* As many of those behind after as an answer has room for, in the order of their names. NULL: as
 * incomplete as all. */
static struct json_object *
sessions_page(struct json_object *all, const char *after, bool *more)
{
	struct json_object *page;
	size_t used = 0, len = 0;

	*more = false;
	if (!control_complete(all))
		return NULL;
	page = json_object_new_array();
	json_object_array_sort(all, session_compare);
	for (size_t i = 0; i < json_object_array_length(all); i++) {
		struct json_object *o = json_object_array_get_idx(all, i);

		if (after && strcmp(session_name(o), after) <= 0)
			continue;
		(void)json_object_to_json_string_length(o, JSON_C_TO_STRING_PLAIN, &len);
		*more = used > 0 && len > SESSIONS_TEXT - used;
		if (*more)
			break;
		used += len;
		control_append(page, json_object_get(o));
	}
	return page;
}

int
handle_status(struct state *s, struct json_object *params, struct reply *r)
{
	struct json_object *sessions = NULL;
	const char *after = NULL;
	unsigned untold;
	bool more;
	int rc;

	if (control_has(params, "after") &&
	    control_get_text(params, "after", SESSION_NAME_MAX, &after, &r->err))
		return r->err.code;
	rc = registry_list(pool_store_dirfd(s->store), &sessions, &untold, &r->err);
	if (rc)
		return rc;
	sessions_refresh_own(s, sessions);
	r->result = json_object_new_object();
	control_add(r->result, "sessions", sessions_page(sessions, after, &more));
	json_object_put(sessions);
	if (more)
		describe_add_bool(r->result, "sessions_more", true);
	if (untold)
		describe_add_u64(r->result, "sessions_untold", untold);
	control_add(r->result, "overrides", describe_stated(s->conf));
	return handlers_add_pools(s, NULL, r->result, &r->err);
}
