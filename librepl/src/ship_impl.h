/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ship_impl - what the parts of ship share: ship.c is the drains' side of the queue,
 * shipper.c has the threads that send from it.
 */
#ifndef LIBREPL_SHIP_IMPL_H
#define LIBREPL_SHIP_IMPL_H

#include "ackpolicy.h"
#include "lane_ship.h"
#include "ship.h"
#include "shipqueue.h"

struct shipper {
	struct ship *ship;
	unsigned replica;
	pthread_t thread;
	bool started;
	int wake_fd;
	/* guarded by the lock */
	struct remote *remote; /* whose lane 0 is used; NULL: none */
	bool inside;           /* the thread uses it */
	bool lent;             /* a reader does */
	unsigned wanted;       /* by readers */
	bool sleeping;         /* the thread looks at wake_fd */
	/* the thread's, or of who installs */
	struct ship_at at;
};

struct ship {
	struct repl *r;
	struct ackpolicy policy;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t moved; /* something was acknowledged, closed or left */
	bool lock_made, moved_made;
	bool stop;
	struct shipqueue q;
	struct shipper shipper[REPL_TARGETS_MAX];
};

/* With the lock: there is something to do for them. */
void shippers_wake(struct ship *s);

int shipper_start(struct ship *s, unsigned replica, struct err *e);
void shippers_stop(struct ship *s);

#endif
