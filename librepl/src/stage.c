/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "control.h"
#include "fill.h"
#include "hex.h"

#define JOURNAL_UNIT  4096U
#define SMALL_MESSAGE 8192U
#define FAR_NS        1000000U /* a wait for room takes longer where the way is long */

struct stage {
	struct lane *lanes[REPL_LANES_MAX];
	unsigned count;
	unsigned used; /* of these: more as the way proves long */
	unsigned next; /* where one is looked for that has its turn */
	struct fill fill;
	struct fill_source from;
	uint64_t stall_ns;
	struct breath breath;
};

/* ---- the control channel ---- */

/*
 * A page by itself takes a header and an entry: this share of it. Where a message has no room for
 * all of it there are two of each.
 */
static uint64_t
journal_share(const struct remote *r)
{
	return remote_terms(r)->msg_size < SMALL_MESSAGE ? 32 : 64;
}

uint64_t
remote_journal_room(const struct remote *r, uint64_t bytes)
{
	uint64_t with = bytes + bytes / journal_share(r) + WIRE_MSG_SIZE_MIN;

	/* In whole pages, as targets make it. */
	return (with + JOURNAL_UNIT - 1) / JOURNAL_UNIT * JOURNAL_UNIT;
}

uint64_t
remote_journal_takes(const struct remote *r)
{
	uint64_t room = remote_journal_max(r) / JOURNAL_UNIT * JOURNAL_UNIT;
	uint64_t share = journal_share(r);

	return room > WIRE_MSG_SIZE_MIN ? (room - WIRE_MSG_SIZE_MIN) / (share + 1) * share : 0;
}

/* A target that does not tell takes one request at a time. */
static int
resumed_parse(struct json_object *result, uint64_t *ahead, struct err *e)
{
	bool resumed = false;
	int rc = control_has(result, "resumed") ? control_get_bool(result, "resumed", &resumed, e)
						: 0;

	*ahead = !rc && resumed;
	if (!rc && resumed && control_has(result, "ahead"))
		rc = control_get_u64(result, "ahead", 1, INT64_MAX, ahead, e);
	return rc ? control_answer_bad(rc, "journal.begin", e) : 0;
}

/* ahead NULL: one that was left is not wanted. */
static int
journal_begin(struct remote *r, uint64_t bytes, uint64_t *ahead, struct err *e)
{
	struct json_object *params, *result = NULL;
	int rc;

	if (remote_journal_max(r) == 0)
		return err_set(e, REPL_E_REFUSED, "pool '%s': the target keeps no journal of it",
			       remote_info(r)->name);
	params = json_object_new_object();
	control_add(params, "bytes", json_object_new_int64((int64_t)remote_journal_room(r, bytes)));
	if (ahead)
		control_add(params, "resume", json_object_new_boolean(true));
	rc = remote_call(r, "journal.begin", params, ahead ? &result : NULL, e);
	if (!rc && ahead)
		rc = resumed_parse(result, ahead, e);
	json_object_put(result);
	return rc;
}

int
remote_journal_begin(struct remote *r, uint64_t bytes, struct err *e)
{
	return journal_begin(r, bytes, NULL, e);
}

int
remote_journal_resume(struct remote *r, uint64_t bytes, uint64_t *ahead, struct err *e)
{
	*ahead = 0;
	return journal_begin(r, bytes, ahead, e);
}

static int
kept_row(struct json_object *row, const char *hash, uint64_t size, struct stage_kept *k,
	 struct err *e)
{
	const size_t digits = 2 * (size_t)HASH128_SIZE;
	int64_t off = -1, len = -1;

	if (json_object_is_type(row, json_type_array) && json_object_array_length(row) == 2) {
		off = json_object_get_int64(json_object_array_get_idx(row, 0));
		len = json_object_get_int64(json_object_array_get_idx(row, 1));
	}
	if (off < 0 || len < 1 || len > (int64_t)WIRE_MSG_SIZE_MAX || (uint64_t)off >= size ||
	    (uint64_t)len > size - (uint64_t)off ||
	    !hex_decode(hash, digits, k->hash, HASH128_SIZE))
		return err_set(e, REPL_E_INVAL, "a range that is none");
	k->off = (uint64_t)off;
	k->len = (uint64_t)len;
	return 0;
}

static int
kept_rows(struct json_object *result, uint64_t size, struct stage_kept *kept, unsigned *count,
	  struct err *e)
{
	const size_t digits = 2 * (size_t)HASH128_SIZE;
	struct json_object *rows;
	const char *hashes;
	int rc = control_get_array(result, "ranges", STAGE_KEPT_MAX, &rows, e);

	if (!rc)
		rc = control_get_text(result, "hashes", STAGE_KEPT_MAX * digits, &hashes, e);
	if (rc)
		return rc;
	*count = (unsigned)json_object_array_length(rows);
	if (strlen(hashes) != *count * digits)
		return err_set(e, REPL_E_INVAL, "%zu digits of %u hashes", strlen(hashes), *count);
	for (unsigned i = 0; !rc && i < *count; i++)
		rc = kept_row(json_object_array_get_idx(rows, i), hashes + i * digits, size,
			      &kept[i], e);
	return rc;
}

int
remote_journal_kept_ask(struct remote *r, const struct hash_key *key, int64_t *id, struct err *e)
{
	struct json_object *params = json_object_new_object();

	hashkey_add(key, params);
	return remote_post(r, "journal.kept", params, id, e);
}

int
remote_journal_kept(struct remote *r, int64_t id, uint64_t size, struct stage_kept *kept,
		    unsigned *count, uint64_t *bytes, bool *more, struct err *e)
{
	struct json_object *result = NULL;
	int rc = remote_take(r, "journal.kept", id, &result, e);

	*count = 0;
	if (!rc)
		rc = control_get_u64(result, "bytes", 0, INT64_MAX, bytes, e);
	if (!rc)
		rc = control_get_bool(result, "more", more, e);
	if (!rc)
		rc = kept_rows(result, size, kept, count, e);
	rc = control_answer_bad(rc, "journal.kept", e);
	json_object_put(result);
	return rc;
}

int
remote_journal_commit(struct remote *r, enum sidecar_state state, const struct generation *g,
		      uint64_t position, struct err *e)
{
	struct json_object *params = json_object_new_object();

	control_add(params, "state", json_object_new_string(sidecar_state_name(state)));
	if (g)
		remote_params_add_chain(params, g);
	remote_params_add_position(params, position);
	return remote_call(r, "journal.commit", params, NULL, e);
}

int
remote_journal_apply(struct remote *r, uint64_t max, uint64_t *done, uint64_t *total, struct err *e)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	int rc;

	control_add(params, "max", json_object_new_int64((int64_t)max));
	rc = remote_call(r, "journal.apply", params, &result, e);
	if (!rc)
		rc = control_get_u64(result, "total", 0, INT64_MAX, total, e);
	if (!rc)
		rc = control_get_u64(result, "done", 0, *total, done, e);
	rc = control_answer_bad(rc, "journal.apply", e);
	json_object_put(result);
	return rc;
}

int
remote_journal_drop(struct remote *r, struct err *e)
{
	return remote_call(r, "journal.drop", json_object_new_object(), NULL, e);
}

/* ---- the lanes ---- */

/* One that is lost takes the others with it: what was staged lacks something. */
static int
stage_lost(struct stage *s, struct err *e)
{
	const struct lane *lost = NULL;

	for (unsigned i = 0; !lost && i < s->count; i++)
		lost = s->lanes[i]->status ? s->lanes[i] : NULL;
	if (!lost)
		return 0;
	for (unsigned i = 0; i < s->count; i++)
		lane_fail(s->lanes[i], lost->status, lost->why);
	return err_set(e, lost->status, "%s", lost->why);
}

/* Where there is no room for it any more nothing else is sent: the lanes are as good as before. */
static int
stage_status(struct stage *s, struct err *e)
{
	int rc = stage_lost(s, e);

	for (unsigned i = 0; !rc && i < s->count; i++)
		if (s->lanes[i]->full)
			rc = err_set(e, REPL_E_NOSPC, "the target refused an update: %s",
				     repl_strstatus(REPL_E_NOSPC));
	/* What is not sent leaves its buffer to the next one. */
	s->fill.building = s->fill.building && !rc;
	return rc;
}

/*
 * Until one of those that have not come so far has. All of them are moved meanwhile, and one that
 * is lost ends it, so that nobody waits for the others then.
 */
static int
stage_wait(struct stage *s, bool (*until)(const struct lane *), struct err *e)
{
	struct lane *lanes[REPL_LANES_MAX];
	unsigned n = 0;
	int rc = 0;

	for (unsigned i = 0; i < s->used; i++)
		if (!until(s->lanes[i]))
			lanes[n++] = s->lanes[i];
	/* They share the way: each may take as many times longer to bring one message. */
	if (n > 0)
		rc = lanes_run_while_moving(lanes, n, until, s->stall_ns * s->used, &s->breath, e);
	return rc ? rc : stage_lost(s, e);
}

/*
 * A target that is near keeps pace with one lane: what more of them have on their way is only in
 * the way of caches, and of what the network can hold.
 */
static int
stage_wait_turn(struct stage *s, struct err *e)
{
	uint64_t since_ns = clock_now_ns();
	int rc = stage_wait(s, fill_has_turn, e);

	if (clock_now_ns() - since_ns >= FAR_NS)
		s->used = s->used < s->count / 2 ? s->used * 2 : s->count;
	return rc;
}

/* The next one that has its turn, or NULL. */
static struct lane *
stage_pick(struct stage *s)
{
	for (unsigned i = 0; i < s->used; i++) {
		struct lane *l = s->lanes[s->next++ % s->used];

		if (fill_has_turn(l))
			return l;
	}
	return NULL;
}

int
stage_begin(struct remote *r, const struct fill_source *from, struct breath breath,
	    struct stage **out, struct err *e)
{
	unsigned count = remote_terms(r)->lanes;
	struct stage *s = calloc(1, sizeof(*s));
	int rc = 0;

	*out = NULL;
	if (!s)
		return err_set(e, REPL_E_NOMEM, "no memory to stage a replica");
	s->count = count < REPL_LANES_MAX ? count : REPL_LANES_MAX;
	for (unsigned i = 0; i < s->count; i++) {
		s->lanes[i] = remote_lane(r, i);
		s->lanes[i]->full = false;
		if (!rc && (s->lanes[i]->ring || !lane_done(s->lanes[i])))
			rc = err_set(e, REPL_E_REFUSED, "lane %u is in use or has a receive ring",
				     i);
	}
	if (!rc)
		rc = stage_status(s, e);
	if (rc) {
		free(s);
		return rc;
	}
	for (unsigned i = 0; i < s->count; i++)
		s->lanes[i]->stages = true;
	s->from = *from;
	s->breath = breath;
	s->used = 1;
	s->stall_ns = remote_op_timeout_ms(r) * NS_PER_MS;
	*out = s;
	return 0;
}

static int
stage_send(struct stage *s, struct err *e)
{
	fill_send(&s->fill, wire_stage_end);
	return stage_status(s, e);
}

static int
stage_open(struct stage *s, uint64_t len, struct err *e)
{
	struct lane *l = NULL;
	int rc = 0;

	if (s->fill.building)
		return 0;
	while (!rc && !(l = stage_pick(s)))
		rc = stage_wait_turn(s, e);
	if (!rc)
		rc = stage_status(s, e);
	return rc ? rc : fill_begin(&s->fill, l, len, e);
}

int
stage_range(struct stage *s, uint64_t off, uint64_t len, struct err *e)
{
	int rc = stage_status(s, e);

	while (!rc && len > 0) {
		size_t n;

		rc = stage_open(s, len, e);
		if (rc)
			break;
		n = fill_room(&s->fill, off, len);
		rc = n == 0 ? stage_send(s, e) : fill_add(&s->fill, &s->from, off, n, e);
		off += n;
		len -= n;
	}
	return rc;
}

static bool
stage_is_quiet(const struct stage *s)
{
	for (unsigned i = 0; i < s->used; i++)
		if (!fill_is_quiet(s->lanes[i]))
			return false;
	return true;
}

int
stage_settle(struct stage *s, struct err *e)
{
	int rc = stage_status(s, e);

	if (!rc && s->fill.building && s->fill.message.entry_count > 0)
		fill_send(&s->fill, wire_stage_end);
	rc = stage_lost(s, e);
	while (!rc && !stage_is_quiet(s))
		rc = stage_wait(s, fill_is_quiet, e);
	return rc ? rc : stage_status(s, e);
}

void
stage_end(struct stage *s)
{
	for (unsigned i = 0; s && i < s->count; i++)
		s->lanes[i]->stages = false;
	free(s);
}
