/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.create, list, info, remove, open, mark, close, promote, demote. */
#include "handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "describe.h"
#include "hex.h"
#include "poolset.h"
#include "target.h"

#define BLOCK_SIZE    4096
#define UUID_TEXT_MAX (GEN_TEXT_SIZE - 1)
#define WORD_MAX      32
#define PARTS_TEXT    200000U /* bytes of an answer that parts take; CONTROL_LINE_MAX has all */
#define POOLS_TEXT    131072U /* the same of pools: sessions may be beside them */

int
handlers_get_name(struct json_object *params, const char **name, struct err *e)
{
	/* Longer than any good name, so that the rule is named, not the member. */
	int rc = control_get_text(params, "name", CONTROL_LINE_MAX, name, e);

	return rc ? rc : pool_name_check(*name, e);
}

static int
get_id(struct json_object *params, const char *member, struct gen_id *id, struct err *e)
{
	const char *text;
	int rc = control_get_text(params, member, UUID_TEXT_MAX, &text, e);

	if (rc)
		return rc;
	if (!gen_id_parse(text, id))
		return err_set(e, REPL_E_INVAL, "member '%s' is not a UUID", member);
	return REPL_OK;
}

static int
get_size(struct json_object *params, uint64_t *size, struct err *e)
{
	return control_get_u64(params, "size", 1, INT64_MAX, size, e);
}

static int
get_flag(struct json_object *params, const char *member, bool *flag, struct err *e)
{
	*flag = false;
	return control_has(params, member) ? control_get_bool(params, member, flag, e) : REPL_OK;
}

static int
get_attr(struct json_object *params, uint8_t attr[PMDK_ATTR_SIZE], struct err *e)
{
	const char *text;
	int rc = control_get_text(params, "attr", 2 * PMDK_ATTR_SIZE, &text, e);

	if (rc)
		return rc;
	if (!hex_decode(text, strlen(text), attr, PMDK_ATTR_SIZE))
		return err_set(e, REPL_E_INVAL, "member 'attr' is not %d bytes in hex",
			       PMDK_ATTR_SIZE);
	return REPL_OK;
}

int
handle_pool_create(struct state *s, struct json_object *params, struct reply *r)
{
	struct pool_info info;
	struct gen_id uuid;
	const char *name;
	uint64_t size;
	bool has_uuid = control_has(params, "uuid"), has_attr = control_has(params, "attr"), set;
	bool sparse = false, provisional = false, again = false, filling = false;
	uint8_t attr[PMDK_ATTR_SIZE];
	int rc;

	if (handlers_get_name(params, &name, &r->err) || get_size(params, &size, &r->err) ||
	    (has_uuid && get_id(params, "uuid", &uuid, &r->err)) ||
	    get_flag(params, "sparse", &sparse, &r->err) ||
	    get_flag(params, "provisional", &provisional, &r->err) ||
	    get_flag(params, "again", &again, &r->err) ||
	    get_flag(params, "filling", &filling, &r->err) ||
	    (has_attr && get_attr(params, attr, &r->err)) ||
	    pool_set_is(s->store, name, &set, &r->err))
		return r->err.code;
	memset(&info, 0, sizeof(info));
	if (set && sparse)
		rc = err_set(&r->err, REPL_E_INVAL, "pool set '%s': parts are not sparse", name);
	else if (set)
		rc = pool_set_create(s->store, name, size, has_uuid ? &uuid : NULL,
				     has_attr ? attr : NULL, filling, &info, &r->err);
	else if (has_attr)
		rc = err_set(&r->err, REPL_E_NOT_FOUND,
			     "pool set file '%s': not found, or its first line is "
			     "not " POOLSET_SIGNATURE,
			     name);
	else if (filling)
		rc = err_set(&r->err, REPL_E_INVAL, "pool '%s': only sets are made for a copy",
			     name);
	else
		rc = pool_create(s->store, name, size, has_uuid ? &uuid : NULL, sparse, &info,
				 &r->err);
	if (rc)
		return rc;
	if (provisional && !set)
		state_pool_made(s, &info, again);
	r->result = describe_pool(&info, NULL);
	return REPL_OK;
}

/* As many of them as an answer has room for: false if not all. */
static bool
describe_pools(const struct pool_info *infos, unsigned count, struct json_object *list)
{
	size_t used = 0, len = 0;

	for (unsigned i = 0; i < count; i++) {
		struct json_object *o = describe_pool(&infos[i], NULL);

		(void)json_object_to_json_string_length(o, JSON_C_TO_STRING_PLAIN, &len);
		if (used > 0 && len > POOLS_TEXT - used) {
			json_object_put(o);
			return false;
		}
		used += len;
		control_append(list, o);
	}
	return true;
}

int
handlers_add_pools(struct state *s, const char *after, struct json_object *result, struct err *e)
{
	struct pool_info *infos = calloc(HANDLERS_LIST_MAX, sizeof(*infos));
	struct json_object *list = json_object_new_array();
	unsigned count = 0;
	bool more = false;
	int rc;

	if (!infos || !list) {
		rc = err_set(e, REPL_E_NOMEM, "no memory for a list of pools");
		goto out;
	}
	rc = pool_list(s->store, after, infos, HANDLERS_LIST_MAX, &count, &more, e);
	if (rc)
		goto out;
	if (!describe_pools(infos, count, list))
		more = true;
	control_add(result, "pools", list);
	list = NULL;
	describe_add_bool(result, "more", more);
out:
	json_object_put(list);
	free(infos);
	return rc;
}

int
handle_pool_list(struct state *s, struct json_object *params, struct reply *r)
{
	const char *after = NULL;

	if (control_has(params, "after") &&
	    control_get_text(params, "after", TARGET_POOL_MAX, &after, &r->err))
		return r->err.code;
	r->result = json_object_new_object();
	return handlers_add_pools(s, after, r->result, &r->err);
}

/* Of a pool that may be the open one. */
static struct json_object *
info_new(const struct state *s, const struct pool_info *info)
{
	bool open = s->pool && strcmp(info->name, s->pool_name) == 0;

	return describe_pool(info, open ? &s->probe.profile : NULL);
}

/* What PMDK keeps at the beginning of its pools; nothing of a pool that is none of its. */
static void
add_pmdk(struct state *s, const char *name, struct json_object *result)
{
	uint8_t head[PMDK_HEAD_SIZE];
	struct pmdk_header h;
	struct err e;
	size_t len;

	err_clear(&e);
	if (pool_head(s->store, name, head, sizeof(head), &len, &e) == 0 &&
	    pmdk_parse(head, len, &h))
		control_add(result, "pmdk", describe_pmdk(&h));
}

struct part_list {
	struct json_object *list;
	size_t text; /* bytes of an answer that it takes */
	uint64_t left;
};

/* The first of them, as far as an answer has room, and how many more there are. */
static void
add_part(void *ctx, const char *name, uint64_t size, unsigned replica)
{
	struct json_object *o = json_object_new_object();
	struct part_list *l = ctx;
	size_t len = 0;

	describe_add_text(o, "name", name);
	describe_add_u64(o, "size", size);
	if (replica)
		describe_add_u64(o, "replica", replica);
	(void)json_object_to_json_string_length(o, JSON_C_TO_STRING_PLAIN, &len);
	if (l->left || len > PARTS_TEXT - l->text) {
		l->left++;
		json_object_put(o);
		return;
	}
	l->text += len;
	control_append(l->list, o);
}

static int
add_parts(struct state *s, const char *name, struct json_object *result, struct err *e)
{
	struct part_list l = {.list = json_object_new_array()};
	int rc;

	if (!l.list)
		return err_set(e, REPL_E_NOMEM, "no memory for a list of parts");
	rc = pool_set_parts(s->store, name, add_part, &l, e);
	control_add(result, "parts", l.list);
	if (l.left)
		describe_add_u64(result, "parts_left", l.left);
	return rc;
}

int
handle_pool_info(struct state *s, struct json_object *params, struct reply *r)
{
	struct pool_info info;
	const char *name;

	if (handlers_get_name(params, &name, &r->err))
		return r->err.code;
	memset(&info, 0, sizeof(info));
	if (pool_info(s->store, name, &info, &r->err))
		return r->err.code;
	r->result = info_new(s, &info);
	add_pmdk(s, name, r->result);
	return info.parts ? add_parts(s, name, r->result, &r->err) : REPL_OK;
}

static int
get_seen(struct json_object *params, struct pool_seen *seen, bool *given, struct err *e)
{
	int rc;

	memset(seen, 0, sizeof(*seen));
	*given = control_has(params, "uuid") || control_has(params, "generation");
	if (!*given)
		return REPL_OK;
	rc = get_id(params, "uuid", &seen->uuid, e);
	return rc ? rc : get_id(params, "generation", &seen->generation, e);
}

/* It is on record still, and is told to nobody before the pool is opened next. */
static void
seen_look(struct state *s, const char *name, struct pool_seen *seen)
{
	struct pool_info info;

	seen->forgotten = gen_id_is_nil(&seen->generation) &&
			  pool_info(s->store, name, &info, NULL) == 0 &&
			  pool_is_seen(&info.meta, seen);
}

/* Who is refused for what the pool is. */
static void
removal_next(struct state *s, const char *name, unsigned flags, const struct pool_seen *seen,
	     struct reply *r)
{
	struct pool_info info;

	if (r->err.reason == REPL_REASON_PROMOTED)
		dispatch_next(r,
			      "replctl info TARGET/POOL; replctl remove --force TARGET/POOL "
			      "(where nothing in it counts)",
			      name);
	else if ((seen || flags & POOL_REMOVE_DAMAGED) &&
		 pool_info(s->store, name, &info, NULL) == 0 &&
		 !(seen && pool_is_seen(&info.meta, seen)))
		dispatch_next(r, "replctl info TARGET/POOL (what is there now)", name);
}

int
handle_pool_remove(struct state *s, struct json_object *params, struct reply *r)
{
	bool set, force, primary, damaged, has_seen;
	struct pool_seen given;
	const struct pool_seen *seen;
	const char *name;
	unsigned flags;
	int rc;

	if (handlers_get_name(params, &name, &r->err) || get_flag(params, "set", &set, &r->err) ||
	    get_flag(params, "force", &force, &r->err) ||
	    get_flag(params, "primary", &primary, &r->err) ||
	    get_flag(params, "damaged", &damaged, &r->err) ||
	    get_seen(params, &given, &has_seen, &r->err))
		return r->err.code;
	if (has_seen)
		seen_look(s, name, &given);
	seen = has_seen ? &given : NULL;
	flags = (set ? POOL_REMOVE_SET : 0) | (force ? POOL_REMOVE_FORCE : 0) |
		(primary ? POOL_REMOVE_PRIMARY : 0) | (damaged ? POOL_REMOVE_DAMAGED : 0);
	rc = pool_remove(s->store, name, flags, seen, &r->err);
	if (rc == REPL_E_REFUSED)
		removal_next(s, name, flags, seen, r);
	return rc;
}

static int
get_mode(struct json_object *params, enum pool_mode *mode, struct err *e)
{
	static const char *const names[] = {
		[POOL_READ] = "read", [POOL_STABLE] = "stable", [POOL_WRITE] = "write"};
	const char *text;
	int rc = control_get_text(params, "mode", WORD_MAX, &text, e);

	if (rc)
		return rc;
	for (int i = POOL_READ; i <= POOL_WRITE; i++) {
		*mode = (enum pool_mode)i;
		if (strcmp(text, names[i]) == 0)
			return REPL_OK;
	}
	return err_set(e, REPL_E_INVAL, "mode '%s' is none of 'read', 'stable', 'write'", text);
}

static int
get_history(struct json_object *params, struct generation *g, struct err *e)
{
	struct json_object *list;
	int rc = control_get_array(params, "history", GEN_HISTORY, &list, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *id = json_object_array_get_idx(list, i);

		if (!json_object_is_type(id, json_type_string) ||
		    !gen_id_parse(json_object_get_string(id), &g->history[i]))
			return err_set(e, REPL_E_INVAL, "member 'history' [%zu] is not a UUID", i);
	}
	return REPL_OK;
}

int
handlers_get_chain(struct json_object *params, struct generation *g, bool *given, struct err *e)
{
	int rc;

	*given = control_has(params, "generation");
	memset(g, 0, sizeof(*g));
	if (!*given && control_has(params, "history"))
		return err_set(e, REPL_E_INVAL, "member 'history' without 'generation'");
	if (!*given)
		return REPL_OK;
	rc = get_id(params, "generation", &g->current, e);
	if (rc == REPL_OK && control_has(params, "history"))
		rc = get_history(params, g, e);
	return rc;
}

/* Who is refused for what the data are gets a next step of its own, by what is there now. */
static void
refused_next(struct state *s, const struct state_opening *o, int rc, struct reply *r)
{
	struct pool_info info;
	bool known = pool_info(s->store, o->name, &info, NULL) == 0;
	const struct sidecar *meta = &info.meta;

	if (rc == REPL_E_DIVERGED && known && o->chain &&
	    gen_compare(o->chain, &meta->generation) == GEN_UNRELATED)
		dispatch_next(r,
			      "replctl verify FILE TARGET/POOL (what differs); of another pool: "
			      "choose another name; else replctl resolve --dry-run --discard "
			      "local FILE TARGET/POOL (what FILE would lose)",
			      o->name);
	else if (rc == REPL_E_DIVERGED && known && meta->state == SIDECAR_OUTDATED)
		dispatch_next(r,
			      "replctl resolve --dry-run --discard replica FILE TARGET/POOL (what "
			      "the replica would lose, which is outdated)",
			      o->name);
	else if (rc == REPL_E_DIVERGED)
		dispatch_next(r,
			      "replctl resolve --dry-run --discard local FILE TARGET/POOL (what "
			      "FILE would lose; with --discard replica: what the replica would)",
			      o->name);
	else if (rc == REPL_E_NOT_FOUND && o->mode == POOL_WRITE)
		dispatch_next(r, "replctl create TARGET/POOL --size N", o->name);
	else if (rc == REPL_E_REFUSED && known && meta->primary)
		dispatch_next(r,
			      "replctl info TARGET/POOL; replctl demote TARGET/POOL (when its own "
			      "program has ended)",
			      o->name);
}

int
handle_pool_open(struct state *s, struct json_object *params, struct reply *r)
{
	const struct pool_info *info;
	struct state_opening o = {.waits = WAITS_UNKNOWN};
	struct generation chain;
	bool has_chain, waits;
	int rc;

	if (handlers_get_name(params, &o.name, &r->err) || get_mode(params, &o.mode, &r->err) ||
	    handlers_get_chain(params, &chain, &has_chain, &r->err) ||
	    get_flag(params, "force", &o.force, &r->err) ||
	    get_flag(params, "waits", &waits, &r->err) ||
	    get_flag(params, "resume", &o.resumes, &r->err))
		return r->err.code;
	o.chain = has_chain ? &chain : NULL;
	if (control_has(params, "waits"))
		o.waits = waits ? WAITS_EACH : WAITS_NEVER;
	rc = state_pool_open(s, &o, &r->err);
	if (rc) {
		refused_next(s, &o, rc, r);
		return rc;
	}
	info = pool_get_info(s->pool);
	r->result = info_new(s, info);
	describe_add_u64(r->result, "epoch", info->meta.epoch);
	describe_add_u64(r->result, "journal_max", handlers_journal_max(s));
	describe_add_u64(r->result, "hash_ranges", HANDLERS_HASH_RANGES);
	describe_add_bool(r->result, "hash_key", true);
	control_add(r->result, "profile", describe_profile(&s->probe.profile));
	return REPL_OK;
}

int
handlers_get_state(struct json_object *params, enum sidecar_state *state, struct err *e)
{
	const char *name;
	int rc = control_get_text(params, "state", WORD_MAX, &name, e);

	if (rc)
		return rc;
	for (int i = SIDECAR_UP_TO_DATE; i <= SIDECAR_UNKNOWN; i++) {
		*state = (enum sidecar_state)i;
		if (strcmp(sidecar_state_name(*state), name) == 0)
			return REPL_OK;
	}
	return err_set(e, REPL_E_INVAL, "state '%s' is not known", name);
}

int
handlers_get_position(struct json_object *params, enum sidecar_state state, bool has_chain,
		      uint64_t *position, struct err *e)
{
	*position = 0;
	if (!control_has(params, "position"))
		return REPL_OK;
	if (state != SIDECAR_OUTDATED || !has_chain)
		return err_set(e, REPL_E_INVAL,
			       "member 'position' is of state 'outdated' with a 'generation'");
	return control_get_u64(params, "position", 1, INT64_MAX, position, e);
}

int
handle_pool_mark(struct state *s, struct json_object *params, struct reply *r)
{
	enum sidecar_state state;
	struct generation chain;
	uint64_t position;
	bool has_chain;

	if (handlers_get_state(params, &state, &r->err) ||
	    handlers_get_chain(params, &chain, &has_chain, &r->err) ||
	    handlers_get_position(params, state, has_chain, &position, &r->err))
		return r->err.code;
	if (state == SIDECAR_UP_TO_DATE && state_flush_failed(s))
		return err_set(&r->err, REPL_E_IO,
			       "pool '%s': a flush has failed, it cannot be called up to date",
			       s->pool_name);
	if (pool_mark(s->pool, state, has_chain ? &chain : NULL, position, &r->err))
		return r->err.code;
	r->result = info_new(s, pool_get_info(s->pool));
	return REPL_OK;
}

int
handle_pool_grow(struct state *s, struct json_object *params, struct reply *r)
{
	uint64_t size = 0;
	bool prepare;

	if (get_size(params, &size, &r->err) || get_flag(params, "prepare", &prepare, &r->err) ||
	    state_pool_grow(s, size, prepare, &r->err)) {
		if (r->err.code == REPL_E_LIMIT && s->data && size > pmem_map_room(s->map))
			(void)snprintf(r->next, sizeof(r->next),
				       "grow it to at most what the message names; more than that "
				       "when it has grown and was opened again");
		else if (r->err.code == REPL_E_LIMIT && s->map && size > pmem_map_room(s->map))
			(void)snprintf(
				r->next, sizeof(r->next),
				"choose a smaller size; or, if repld's address space is limited "
				"there "
				"(ulimit -v, LimitAS= of a systemd unit), raise that and start it "
				"again");
		return r->err.code;
	}
	s->dirty = true;
	r->result = info_new(s, pool_get_info(s->pool));
	return REPL_OK;
}

int
handle_pool_attr(struct state *s, struct json_object *params, struct reply *r)
{
	uint8_t attr[PMDK_ATTR_SIZE];

	if (get_attr(params, attr, &r->err) || pool_set_attr(s->pool, attr, &r->err))
		return r->err.code;
	r->result = info_new(s, pool_get_info(s->pool));
	return REPL_OK;
}

int
handle_pool_close(struct state *s, struct json_object *params, struct reply *r)
{
	(void)params;
	return state_pool_close(s, true, &r->err);
}

int
handle_pool_promote(struct state *s, struct json_object *params, struct reply *r)
{
	struct pool_info info;
	const char *name;
	bool force;
	int rc;

	if (handlers_get_name(params, &name, &r->err) || get_flag(params, "force", &force, &r->err))
		return r->err.code;
	memset(&info, 0, sizeof(info));
	state_quiet(s);
	state_work_begin(s, "promote", name);
	rc = pool_promote(s->store, name, s->peer, force, &info, &r->err);
	state_work_end(s);
	if (rc == REPL_E_BUSY && force)
		dispatch_next(r,
			      "end that: on the target, 'fuser -v' of the pool's file and of the "
			      ".repl beside it tells who it is; then again replctl promote --force "
			      "TARGET/POOL",
			      name);
	else if (rc == REPL_E_BUSY)
		dispatch_next(r,
			      "replctl info TARGET/POOL; replctl promote --force TARGET/POOL (all "
			      "the same: its writer is ended first)",
			      name);
	/* Else force is no help, as for a file that may not be opened. */
	else if (info.lacks && info.meta.state == SIDECAR_INCONSISTENT)
		dispatch_next(r,
			      "replctl sync FILE TARGET/POOL (ends that copy), or promote another "
			      "replica; replctl promote --force TARGET/POOL (the part that is "
			      "there)",
			      name);
	else if (info.lacks && info.meta.state == SIDECAR_OUTDATED)
		dispatch_next(
			r,
			"replctl newest TARGET/POOL, and behind it the other replicas, tells "
			"whether one has more; replctl promote --force TARGET/POOL (as it is)",
			name);
	else if (info.lacks)
		dispatch_next(r,
			      "replctl info TARGET/POOL; replctl promote --force TARGET/POOL (as "
			      "it is)",
			      name);
	if (rc)
		return rc;
	r->result = info_new(s, &info);
	return REPL_OK;
}

int
handle_pool_demote(struct state *s, struct json_object *params, struct reply *r)
{
	struct pool_info info;
	const char *name;
	int rc;

	if (handlers_get_name(params, &name, &r->err))
		return r->err.code;
	memset(&info, 0, sizeof(info));
	state_quiet(s);
	state_work_begin(s, "demote", name);
	rc = pool_demote(s->store, name, s->peer, &info, &r->err);
	state_work_end(s);
	if (rc)
		return rc;
	r->result = info_new(s, &info);
	return REPL_OK;
}
