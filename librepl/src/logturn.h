/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * logturn - which of the threads that append to a log makes durable what all of
 * them have placed.
 *
 * One at a time leads. Who comes meanwhile waits until its own records are
 * durable, or until it is told to lead: each is woken once, by its leader, and
 * the lock is taken again only to lead. Whom the last group has served is
 * probably back in a moment with its next record: a leader lets them place it
 * before it begins, so that groups are of all and not of every other one.
 *
 * The lock is the caller's.
 */
#ifndef LIBREPL_LOGTURN_H
#define LIBREPL_LOGTURN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct logturn_waiter;

struct logturn {
	bool leading; /* somebody leads, or has been told to */
	struct logturn_waiter *first, **last;
	unsigned waiting;
	unsigned served; /* by the last group, its leader included */
	unsigned alone;  /* groups before which nobody is waited for */
	const _Atomic bool *abandoned;
};

enum logturn_role {
	LOGTURN_LEAD,    /* under the lock: make durable what is placed, then logturn_end() */
	LOGTURN_DURABLE, /* without the lock: it is durable */
	LOGTURN_FAILED,  /* without the lock: it will not be, or not by this process */
};

/* abandoned: in a child of the process nobody else is there any more, see ownwait.h. */
void logturn_init(struct logturn *t, const _Atomic bool *abandoned);

/*
 * Under the lock, which is let go meanwhile and was not since what ends at end was
 * placed: wait until that is durable or the caller is to lead.
 */
enum logturn_role logturn_await(struct logturn *t, pthread_mutex_t *lock, uint64_t end);

/*
 * Under the lock, which is let go: the leader is done, and all before durable is. With
 * failed the rest is told so, else who waits first of them leads next.
 */
void logturn_end(struct logturn *t, pthread_mutex_t *lock, uint64_t durable, bool failed);

#endif
