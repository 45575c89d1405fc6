/* SPDX-License-Identifier: BSD-3-Clause */
#include "push.h"

#include "clock.h"

#define CHUNK     (1U << 20)
#define NOTED_MAX (16U << 20)

void
push_begin(struct push *p, struct remote *remote, unsigned lane, const void *mem,
	   struct breath breath)
{
	p->lane = remote_lane(remote, lane);
	p->stall_ns = (uint64_t)remote_op_timeout_ms(remote) * NS_PER_MS;
	p->sparse = remote_info(remote)->meta.sparse;
	p->noted = 0;
	p->breath = breath;
	lane_bind(p->lane, mem);
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

static int
push_drain(struct push *p, bool (*until)(const struct lane *), struct err *e)
{
	lane_begin(p->lane, LANE_SETTLE, 0, 0);
	return push_run(p, until, e);
}

int
push_post(struct push *p, struct err *e)
{
	int rc = push_run(p, lane_done, e);

	p->noted = 0;
	return rc ? rc : push_drain(p, lane_posted, e);
}

/* What could not be written at once waits in the lane: not for all of the copy. */
static int
push_note(struct push *p, uint64_t off, uint64_t len, struct err *e)
{
	int rc = push_run(p, lane_done, e);

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
		rc = push_note(p, off, n, e);
	}
	return rc;
}

int
push_settle(struct push *p, struct err *e)
{
	int rc = push_post(p, e);

	return rc ? rc : push_run(p, lane_done, e);
}
