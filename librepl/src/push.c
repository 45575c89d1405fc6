/* SPDX-License-Identifier: BSD-3-Clause */
#include "push.h"

#include "clock.h"
#include "extents.h"
#include "holes.h"
#include "lane_impl.h"

#define CHUNK     (1U << 20)
#define NOTED_MAX (16U << 20)

#define FAR_NS    4000000U /* a wait for a turn takes longer where the way is long ... */
#define FAR_WAITS 8U       /* ... and so do those behind it */

void
push_begin(struct push *p, struct remote *remote, unsigned lane, const struct fill_source *from,
	   struct breath breath)
{
	*p = (struct push){
		.lane = remote_lane(remote, lane),
		.from = *from,
		.stall_ns = (uint64_t)remote_op_timeout_ms(remote) * NS_PER_MS,
		.sparse = remote_info(remote)->meta.sparse,
		.put = remote_terms(remote)->put,
		.breath = breath,
	};
	lane_bind(p->lane, from->mem);
}

/* A write that finds no space there ends the lane, and the target's provider does not tell why. */
static int
push_status(const struct push *p, struct err *e)
{
	const struct lane *l = p->lane;
	bool full = p->sparse && l->status == REPL_E_LOST;

	return l->status ? err_set(e, l->status, "data lane: %s%s", l->why,
				   full ? "; the pool there is sparse: see whether its disk is full"
					: "")
			 : 0;
}

static int
push_run(struct push *p, bool (*until)(const struct lane *), struct err *e)
{
	int rc = lane_run_while_moving(p->lane, until, p->stall_ns, &p->breath, e);

	return rc ? rc : push_status(p, e);
}

/* ---- by PUTs ---- */

static int
put_begin(struct push *p, uint64_t len, struct err *e)
{
	bool waits = !fill_has_turn(p->lane);
	uint64_t since_ns = clock_now_ns();
	int rc = push_run(p, fill_has_turn, e);

	/* Answers come in bursts, behind the first of which nobody waits for the others. */
	if (waits)
		p->waits = clock_now_ns() - since_ns < FAR_NS ? 0 : p->waits + 1;
	return rc ? rc : fill_begin(&p->fill, p->lane, len, e);
}

static int
put_send(struct push *p, fill_end_fn *end, struct err *e)
{
	fill_send(&p->fill, end);
	return push_status(p, e);
}

/* Behind the PUTs, on their lane, in messages as few as possible. */
static int
put_ask(struct push *p, struct err *e)
{
	int rc = 0;

	/* One that has nothing yet is not sent, and its buffer is the next one's. */
	if (p->fill.building && p->fill.message.entry_count > 0)
		rc = put_send(p, wire_put_end, e);
	p->fill.building = false;
	for (unsigned i = 0; !rc && i < p->due.count; i++) {
		const struct range *r = &p->due.r[i];
		uint64_t at = 0;

		while (!rc && at < r->len) {
			struct wire_entry en = {
				.off = r->off + at,
				.len = (uint32_t)chunk_len(r->len - at, LANE_FLUSH_CHUNK),
				.op = WIRE_OP_FLUSH};

			if (p->fill.building && !wire_commit_fits(&p->fill.message, 0))
				rc = put_send(p, wire_commit_end, e);
			if (!rc && !p->fill.building)
				rc = put_begin(p, 0, e);
			if (!rc)
				wire_commit_add(&p->fill.message, &en, NULL);
			at += en.len;
		}
	}
	rangeset_clear(&p->due);
	return !rc && p->fill.building ? put_send(p, wire_commit_end, e) : rc;
}

static int
put_settle(struct push *p, struct err *e)
{
	int rc = put_ask(p, e);

	return rc ? rc : push_run(p, fill_is_quiet, e);
}

/* As much of the range as one message takes; *taken of it. */
static int
put_some(struct push *p, uint64_t off, uint64_t len, uint64_t *taken, struct err *e)
{
	int rc = p->fill.building ? 0 : put_begin(p, len, e);
	size_t n;

	*taken = 0;
	if (rc)
		return rc;
	n = fill_room(&p->fill, off, len);
	if (n == 0)
		return put_send(p, wire_put_end, e);
	if (rangeset_add(&p->due, off, n) < 0)
		return put_ask(p, e);
	*taken = n;
	return fill_add(&p->fill, &p->from, off, n, e);
}

/* ---- by the method that the lane chooses ---- */

static int
push_drain(struct push *p, bool (*until)(const struct lane *), struct err *e)
{
	lane_begin(p->lane, LANE_SETTLE, 0, 0);
	return push_run(p, until, e);
}

int
push_post(struct push *p, struct err *e)
{
	int rc;

	if (p->put)
		return put_ask(p, e);
	rc = push_run(p, lane_done, e);
	p->noted = 0;
	return rc ? rc : push_drain(p, lane_posted, e);
}

/* The lane reads memory where PUTs would have read the file, and it may have no space for holes. */
static int
push_touch(const struct push *p, uint64_t off, uint64_t len, struct err *e)
{
	return extents_fill(p->from.fd) ? holes_touch(p->from.mem, off, len, e) : 0;
}

/* What could not be written at once waits in the lane: not for all of the copy. */
static int
push_note(struct push *p, uint64_t off, uint64_t len, struct err *e)
{
	int rc = push_run(p, lane_done, e);

	if (!rc)
		rc = push_touch(p, off, len, e);
	if (!rc)
		rc = push_run(p, lane_has_room, e);
	while (!rc && lane_flush(p->lane, off, len) < 0)
		rc = push_drain(p, lane_done, e);
	if (rc || p->lane->todo.count == 0)
		return rc;
	p->noted += len;
	return p->noted < NOTED_MAX ? 0 : push_post(p, e);
}

int
push_range(struct push *p, uint64_t off, uint64_t len, struct err *e)
{
	int rc = 0;

	for (uint64_t n; !rc && len > 0; off += n, len -= n) {
		n = len < CHUNK ? len : CHUNK;
		if (p->put && p->waits >= FAR_WAITS) {
			rc = put_settle(p, e);
			p->put = false;
		}
		if (rc)
			break;
		rc = p->put ? put_some(p, off, n, &n, e) : push_note(p, off, n, e);
	}
	return rc;
}

int
push_settle(struct push *p, struct err *e)
{
	int rc = push_post(p, e);

	if (rc)
		return rc;
	return push_run(p, p->put ? fill_is_quiet : lane_done, e);
}
