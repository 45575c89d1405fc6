/* SPDX-License-Identifier: BSD-3-Clause */
/* journal.begin, journal.kept, journal.commit, journal.apply, journal.drop. */
#include "handlers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "control.h"
#include "describe.h"
#include "hex.h"
#include "log.h"

#define AUTO_MIN   (1ULL << 30) /* journal-max = auto: that, or */
#define AUTO_SHARE 8            /* this share of the pool if it is more */

#define KEPT_MAX   1024U /* ranges in one answer: JOURNAL_KEPT_MIN and more */
#define KEPT_AHEAD 16U   /* requests for them that may be under way */
#define HASH_TEXT  (2 * (size_t)HASH128_SIZE)

uint64_t
handlers_journal_max(const struct state *s)
{
	uint64_t share = pmem_map_size(s->map) / AUTO_SHARE;

	if (!s->write)
		return 0;
	if (s->conf->journal_max)
		return s->conf->journal_max;
	return share > AUTO_MIN ? share : AUTO_MIN;
}

static int
flush_check(const struct state *s, struct err *e)
{
	if (!state_flush_failed(s))
		return 0;
	return err_set(e, REPL_E_IO, "pool '%s': a flush has failed, no update is accepted",
		       s->pool_name);
}

/* Who is refused one copies into the pool directly: not where that finds no space either. */
static int
journal_refuse(struct state *s, uint64_t bytes, struct reply *r)
{
	int rc = pool_journal_spare(s->pool, bytes, &r->err);

	if (rc)
		return rc;
	(void)snprintf(r->next, sizeof(r->next), "raise journal-max in the target's repld.conf");
	return err_set(&r->err, REPL_E_REFUSED,
		       "pool '%s': a journal of %" PRIu64 " bytes, journal-max is %" PRIu64,
		       s->pool_name, bytes, handlers_journal_max(s));
}

int
handle_journal_begin(struct state *s, struct json_object *params, struct reply *r)
{
	bool resume = false, resumed = false;
	uint64_t bytes;
	int rc;

	if (control_get_u64(params, "bytes", 0, INT64_MAX, &bytes, &r->err) ||
	    (control_has(params, "resume") &&
	     control_get_bool(params, "resume", &resume, &r->err)) ||
	    flush_check(s, &r->err))
		return r->err.code;
	if (bytes > handlers_journal_max(s))
		return journal_refuse(s, bytes, r);
	rc = resume ? pool_journal_resume(s->pool, bytes, &resumed, &r->err)
		    : pool_journal_begin(s->pool, bytes, &r->err);
	if (rc)
		return rc;
	r->result = json_object_new_object();
	if (resumed) {
		describe_add_bool(r->result, "resumed", true);
		describe_add_u64(r->result, "ahead", KEPT_AHEAD);
	}
	return REPL_OK;
}

static struct json_object *
kept_describe(const struct journal_kept *kept, unsigned count)
{
	struct json_object *o = json_object_new_object(), *rows = json_object_new_array();
	char *text = malloc(count * HASH_TEXT + 1), *at = text;

	for (unsigned i = 0; text && i < count; i++, at += HASH_TEXT) {
		struct json_object *row = json_object_new_array();

		control_append(row, json_object_new_int64((int64_t)kept[i].off));
		control_append(row, json_object_new_int64(kept[i].len));
		control_append(rows, row);
		hex_encode(kept[i].hash, HASH128_SIZE, at);
	}
	if (text)
		*at = '\0';
	control_add(o, "ranges", rows);
	control_add(o, "hashes", text ? json_object_new_string(text) : NULL);
	free(text);
	return o;
}

int
handle_journal_kept(struct state *s, struct json_object *params, struct reply *r)
{
	struct journal_kept *kept;
	struct hash_key key;
	unsigned count;
	uint64_t bytes;
	bool more;
	int rc;

	if (handlers_get_hash_key(params, &key, &r->err))
		return r->err.code;
	kept = malloc(KEPT_MAX * sizeof(*kept));
	if (!kept)
		return err_set(&r->err, REPL_E_NOMEM, "no memory for what a journal holds");
	rc = pool_journal_kept(s->pool, s->map, &key, kept, KEPT_MAX, &count, &bytes, &more,
			       &r->err);
	/* Without it the initiator can go on. */
	if (rc && rc != REPL_E_PROTOCOL)
		r->err.code = rc = REPL_E_REFUSED;
	if (!rc) {
		r->result = kept_describe(kept, count);
		describe_add_u64(r->result, "bytes", bytes);
		describe_add_bool(r->result, "more", more);
	}
	free(kept);
	return rc;
}

int
handle_journal_commit(struct state *s, struct json_object *params, struct reply *r)
{
	enum sidecar_state state;
	struct generation chain;
	uint64_t position;
	bool has_chain;

	if (handlers_get_state(params, &state, &r->err) ||
	    handlers_get_chain(params, &chain, &has_chain, &r->err) ||
	    handlers_get_position(params, state, has_chain, &position, &r->err) ||
	    flush_check(s, &r->err) || state_log_settle(s, &r->err))
		return r->err.code;
	return pool_journal_commit(s->pool, state, has_chain ? &chain : NULL, position, &r->err);
}

int
handle_journal_apply(struct state *s, struct json_object *params, struct reply *r)
{
	struct journal_progress p;
	uint64_t max;
	int rc;

	if (control_get_u64(params, "max", 1, INT64_MAX, &max, &r->err) || flush_check(s, &r->err))
		return r->err.code;
	rc = pool_journal_apply(s->pool, s->map, max, &p, &r->err);
	/* The kernel tells it once, so the lanes' next flush would report success. */
	if (rc == REPL_E_IO)
		state_flush_lost(s);
	if (rc)
		return rc;
	r->result = json_object_new_object();
	describe_add_u64(r->result, "done", p.done);
	describe_add_u64(r->result, "total", p.total);
	return REPL_OK;
}

int
handle_journal_drop(struct state *s, struct json_object *params, struct reply *r)
{
	(void)params;
	return pool_journal_drop(s->pool, &r->err);
}
