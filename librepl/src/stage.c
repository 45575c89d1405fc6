/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"

#include <stdlib.h>

#include "clock.h"
#include "control.h"
#include "lane_impl.h"

#define PIECE_MIN 4096U /* of a range: less is not put at the end of a message */

struct stage {
	struct lane *lane;
	const uint8_t *mem;
	uint64_t stall_ns;
	struct breath breath;
	struct wire_commit message;
	bool building;
};

/* ---- the control channel ---- */

int
remote_journal_begin(struct remote *r, uint64_t bytes, struct err *e)
{
	struct json_object *params;
	/* A range of a page is cut once at most: two entries, and a header for a message of one. */
	uint64_t with = bytes + bytes / 64 + WIRE_MSG_SIZE_MIN;

	if (remote_journal_max(r) == 0)
		return err_set(e, REPL_E_REFUSED, "pool '%s': the target keeps no journal of it",
			       remote_info(r)->name);
	params = json_object_new_object();
	json_object_object_add(params, "bytes", json_object_new_int64((int64_t)with));
	return remote_call(r, "journal.begin", params, NULL, e);
}

int
remote_journal_commit(struct remote *r, enum sidecar_state state, const struct generation *g,
		      struct err *e)
{
	struct json_object *params = json_object_new_object();

	json_object_object_add(params, "state", json_object_new_string(sidecar_state_name(state)));
	if (g)
		remote_params_add_chain(params, g);
	return remote_call(r, "journal.commit", params, NULL, e);
}

int
remote_journal_apply(struct remote *r, uint64_t max, uint64_t *done, uint64_t *total, struct err *e)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	int rc;

	json_object_object_add(params, "max", json_object_new_int64((int64_t)max));
	rc = remote_call(r, "journal.apply", params, &result, e);
	if (!rc)
		rc = control_get_u64(result, "total", 0, INT64_MAX, total, e);
	if (!rc)
		rc = control_get_u64(result, "done", 0, *total, done, e);
	json_object_put(result);
	return rc;
}

int
remote_journal_drop(struct remote *r, struct err *e)
{
	return remote_call(r, "journal.drop", NULL, NULL, e);
}

/* ---- the lane ---- */

static bool
stage_turn(const struct lane *l)
{
	return l->status || l->seq_sent - l->seq_acked < l->depth;
}

static bool
stage_quiet(const struct lane *l)
{
	return l->status || l->seq_sent == l->seq_acked;
}

static int
stage_status(const struct stage *s, struct err *e)
{
	const struct lane *l = s->lane;

	return l->status ? err_set(e, l->status, "%s", l->why) : 0;
}

int
stage_begin(struct remote *r, unsigned lane, const void *mem, struct breath breath,
	    struct stage **out, struct err *e)
{
	struct lane *l = remote_lane(r, lane);
	struct stage *s;

	*out = NULL;
	if (l->ring || !lane_done(l))
		return err_set(e, REPL_E_REFUSED, "lane %u is in use or has a receive ring", lane);
	if (l->status)
		return err_set(e, l->status, "%s", l->why);
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, REPL_E_NOMEM, "no memory to stage a replica");
	s->lane = l;
	s->mem = mem;
	s->breath = breath;
	s->stall_ns = remote_op_timeout_ms(r) * NS_PER_MS;
	*out = s;
	return 0;
}

static void
stage_send(struct stage *s)
{
	struct lane *l = s->lane;
	struct err e;
	size_t len;

	s->building = false;
	err_clear(&e);
	len = wire_stage_end(&s->message, l->seq_sent + 1, l->epoch);
	if (fab_lane_send(l->fab, len, &e)) {
		lane_fail(l, e.code, e.text);
		return;
	}
	l->seq_sent++;
	lane_count(&l->counters.messages, 1);
}

/* A whole message of one range needs one entry: what is reserved and not used costs a move. */
static int
stage_open(struct stage *s, uint64_t len, struct err *e)
{
	struct lane *l = s->lane;
	uint32_t entries = (uint32_t)(l->msg_size / PIECE_MIN) + 1;
	uint8_t *buf;
	int rc = 0;

	if (s->building)
		return 0;
	if (entries > WIRE_ENTRIES_MAX)
		entries = WIRE_ENTRIES_MAX;
	if (len >= l->msg_size)
		entries = 1;
	if (!stage_turn(l))
		rc = lane_run_while_moving(l, stage_turn, s->stall_ns, &s->breath, e);
	if (!rc)
		rc = stage_status(s, e);
	if (rc)
		return rc;
	buf = fab_lane_buf(l->fab);
	if (!buf)
		return err_set(e, REPL_E_FAILED, "a lane has no buffer within its depth");
	wire_commit_begin(&s->message, buf, l->msg_size, entries);
	s->building = true;
	return 0;
}

static size_t
stage_room(const struct stage *s)
{
	const struct wire_commit *c = &s->message;

	return c->entry_count < c->entry_room
		       ? c->size - wire_commit_size(c->entry_room, c->payload_len)
		       : 0;
}

int
stage_range(struct stage *s, uint64_t off, uint64_t len, struct err *e)
{
	int rc = stage_status(s, e);

	while (!rc && len > 0) {
		struct wire_entry en = {.off = off, .op = WIRE_OP_COPY};
		size_t room;

		rc = stage_open(s, len, e);
		if (rc)
			break;
		room = stage_room(s);
		if (room < len && room < PIECE_MIN && s->message.entry_count > 0) {
			stage_send(s);
			rc = stage_status(s, e);
			continue;
		}
		en.len = (uint32_t)(len < room ? len : room);
		wire_commit_add(&s->message, &en, s->mem + off);
		lane_count(&s->lane->counters.bytes, en.len);
		off += en.len;
		len -= en.len;
	}
	return rc;
}

int
stage_settle(struct stage *s, struct err *e)
{
	int rc;

	if (s->building && s->message.entry_count > 0 && !s->lane->status)
		stage_send(s);
	rc = lane_run_while_moving(s->lane, stage_quiet, s->stall_ns, &s->breath, e);
	return rc ? rc : stage_status(s, e);
}

void
stage_end(struct stage *s)
{
	free(s);
}
