/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ship_impl - what the parts of ship share: ship.c is the drains' side of the queue,
 * shipper.c moves it on, one replica at a time, and has the threads, ship_drive.c is the calls
 * that wait and move it themselves meanwhile.
 *
 * Whose turn it is: a lane has one owner at a time (shipper.inside), who sends from
 * the front of the list and takes answers. A call that waits is the owner for as long as
 * it waits; what it leaves behind lies until a thread's timer, at most SHIP_TICK_NS, and
 * goes on by that thread or by the next call, whoever comes first. So a thread is never
 * woken by a drain, and one that lags costs its drains nothing but the sending.
 */
#ifndef LIBREPL_SHIP_IMPL_H
#define LIBREPL_SHIP_IMPL_H

#include "ackpolicy.h"
#include "clock.h"
#include "lane_ship.h"
#include "ship.h"
#include "shipqueue.h"
#include "stall.h"
#include "turns.h"

#define SHIP_TICK_NS NS_PER_MS /* or a quarter of async-lag-time */

struct shipper {
	struct ship *ship;
	unsigned replica;
	pthread_t thread;
	bool started;
	int timer_fd; /* the thread sleeps on it */
	/* guarded by the lock */
	bool armed;            /* the timer is set, or the thread is awake */
	struct remote *remote; /* whose lane 0 is used; NULL: none */
	bool inside;           /* somebody owns the lane: the thread, or a call that waits */
	bool broken;           /* the lane is lost, the replica not yet: for the thread to do */
	bool wanted;           /* by a reader, whose turn it is ... */
	bool lent;             /* ... and who has the lane */
	uint64_t owed;         /* up to that number it goes before the next reader */
	struct turns readers;  /* theirs; has a lock of its own */
	bool readers_made;
	/* the owner's, or of who installs */
	struct ship_at at;
	bool at_end; /* all that was queued was sent, and more may be */
	struct shipment
		*writes;    /* the last one that went by RMA, which may read it still, or NULL */
	bool begun;         /* something is on its way ... */
	struct stall stall; /* ... and there must be a sign of life again and again */
};

struct ship {
	struct repl *r;
	struct ackpolicy policy;
	uint64_t tick_ns;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t moved; /* changes; of calls that wait and don't drive */
	bool lock_made, moved_made;
	bool stop;
	uint64_t changes;      /* something was acknowledged, closed or left */
	bool driven;           /* a call drives */
	bool driver_sleeps;    /* ... and looks at driver_fd */
	uint32_t driver_lanes; /* ... and owns these: changed by itself */
	int driver_fd;
	struct shipqueue q;
	struct shipper shipper[REPL_TARGETS_MAX];
};

/*
 * ---- ship.c ----
 *
 * Of calls, and of what they share with our threads. False in a child that has come back to a
 * call: other threads of its parent may have been amid the queue. Nothing of that is touched there
 * any more, nor is the lock given up.
 */
bool ship_lock(struct ship *s);
void ship_unlock(struct ship *s);

/* ---- shipper.c; with the lock ---- */

/* What lies is looked at in a moment, or now. */
void shipper_arm(struct shipper *p);
void shipper_hurry(struct shipper *p);

/* What went by RMA is not read any more. */
void shipper_drop_writes(struct shipper *p);

/*
 * Something is to be sent. What was queued when a reader gave the lane back goes before the next
 * one; what has come since then waits for who wants it.
 */
bool shipper_may_send(const struct shipper *p);

/* Nothing is on its way, nor to be sent before the reader that wants the lane has it. */
bool shipper_yields(const struct shipper *p);

/* Own its lane, if there is something to do and nobody does. */
bool shipper_claim(struct shipper *p);
void shipper_release(struct shipper *p);

/* ---- shipper.c; without the lock ---- */

/*
 * Of the owner: send what there is room for, unless it is spared that, take what was answered.
 * *more: there is something to wait for, else it is to be released. True if something has moved.
 */
bool shipper_turn(struct shipper *p, bool spared, bool *more);

int shipper_start(struct ship *s, unsigned replica, struct err *e);
void shippers_stop(struct ship *s);

/* ---- ship_drive.c; with the lock ---- */

/* Those that wait are to look again. */
void ship_changed(struct ship *s);

/* Something was queued: a driver that sleeps is to send it. */
void ship_queued(struct ship *s);

/*
 * Wait until something has changed that matters to who waits for some of those replicas, a
 * moment or the deadline; the lock is given up meanwhile. A call that finds nobody doing so
 * moves their lanes on until ship_wait_end(), with *drives, false at first, set. Before
 * anything else is waited for that is due. In a child that comes back to it ship_lock() fails from
 * then on, which is to be looked at first.
 */
struct ship_want {
	uint32_t replicas;
	unsigned count; /* so many of them must answer; 0: each answer matters */
};

void ship_wait(struct ship *s, bool *drives, const struct ship_want *want, uint64_t deadline_ns);
void ship_wait_end(struct ship *s, bool *drives);

/* The same for who only waits. */
void ship_sleep(struct ship *s, uint64_t deadline_ns);

#endif
