/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * push - write ranges of the local memory to the replica by one lane, as many as
 * there are, without a deadline of the whole: a slow link may take its time, a
 * dead one may not.
 */
#ifndef LIBREPL_PUSH_H
#define LIBREPL_PUSH_H

#include "remote.h"

struct push {
	struct lane *lane;
	uint64_t stall_ns;
	bool sparse;       /* the pool takes its space as it is written */
	uint64_t noted;    /* bytes that the lane has not begun to write */
	bool settling;     /* by push_settle_some(): its drain was begun */
	uint64_t events;   /* that the lane had had by then, */
	uint64_t still_ns; /* when it was last known to move; 0: not looked at */
};

void push_begin(struct push *p, struct remote *remote, unsigned lane, const void *mem);

/*
 * Note a range; it may be read until the next settle has ended. Waits while as much is
 * on its way as the lane takes, so that whoever copies a pool comes back now and then.
 */
int push_range(struct push *p, uint64_t off, uint64_t len, struct err *e);

/* Have all that was noted on its way; the target makes it durable meanwhile. */
int push_post(struct push *p, struct err *e);

/* All that was noted is durable. */
int push_settle(struct push *p, struct err *e);

/*
 * The same a while at a time, for about ns, to be repeated until *done: the target's end of the
 * control channel is to hear something in between.
 */
int push_settle_some(struct push *p, uint64_t ns, bool *done, struct err *e);

#endif
