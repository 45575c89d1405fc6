/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * push - write ranges of the local pool to the replica by one lane, as many as
 * there are, without a deadline of the whole: a slow link may take its time, a
 * dead one may not.
 *
 * Where the target has the pool in its page cache they go by PUTs, which it writes to the pool's
 * file: to map a page costs it more than to copy it. Over a long way, where more must be on its
 * way than messages have buffers for, and to other targets, they go by the method that is chosen
 * for large ranges, RMA in practice.
 */
#ifndef LIBREPL_PUSH_H
#define LIBREPL_PUSH_H

#include "breath.h"
#include "fill.h"
#include "remote.h"

struct push {
	struct lane *lane;
	struct fill_source from;
	uint64_t stall_ns;
	bool sparse;    /* the pool takes its space as it is written */
	uint64_t noted; /* bytes that the lane has not begun to write */
	struct breath breath;

	bool put;            /* by PUTs */
	unsigned waits;      /* in a row, that show a long way */
	struct fill fill;    /* the PUT that is being filled */
	struct rangeset due; /* was put, its durability not yet asked for */
};

/*
 * On an idle lane. All that waits does so for as long as the lane moves, and breathes meanwhile.
 */
void push_begin(struct push *p, struct remote *remote, unsigned lane,
		const struct fill_source *from, struct breath breath);

/*
 * Note a range; it may be read until the next settle has ended. Waits while as much is
 * on its way as the lane takes, so that whoever copies a pool comes back now and then.
 */
int push_range(struct push *p, uint64_t off, uint64_t len, struct err *e);

/* Have all that was noted on its way; the target makes it durable meanwhile. */
int push_post(struct push *p, struct err *e);

/* All that was noted is durable, and the lane idle. */
int push_settle(struct push *p, struct err *e);

#endif
