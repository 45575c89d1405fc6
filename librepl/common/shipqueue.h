/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shipqueue - what was drained and queued replicas have yet to acknowledge, in
 * one order.
 *
 * Pure: no I/O, clock or thread; the owner (ship.c) has the lock. A shipment is
 * what one drain, or a slice of it, changes, with its bytes. All shipments of a
 * handle form one list; each replica has a view of it: how far it was sent, how
 * far it was acknowledged. So no two replicas can see another order. A shipment
 * lives as long as a view has it before it, or somebody else refers to it.
 */
#ifndef LIBREPL_SHIPQUEUE_H
#define LIBREPL_SHIPQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "generation.h"
#include "librepl.h"

/* What one costs beside its bytes, for the bound of a lag: empty ones are not free. */
#define SHIPMENT_OVERHEAD 256U

struct ship_piece {
	uint64_t off, len;
	size_t at;  /* of its bytes in data; of a COPY and an ATOMIC8 */
	uint8_t op; /* enum wire_op: COPY, ATOMIC8 or TRIM */
};

struct shipment {
	struct shipment *next; /* the list's */
	unsigned refs;         /* views that have it before them, and others */
	uint64_t number;       /* its place in the order, from 1: POSITION */
	uint64_t queued_ns;
	uint32_t wanted, acked;         /* bits of replicas: it went to them, they have it */
	uint64_t seq[REPL_TARGETS_MAX]; /* the lane's: of the message with its end */
	unsigned piece_count, piece_room;
	size_t bytes, room; /* of data */
	uint8_t *data;
	struct ship_piece pieces[];
};

/* For so many pieces and bytes; the caller has the only reference. NULL: no memory. */
struct shipment *shipment_new(unsigned pieces, size_t bytes);

/* Add a range with its bytes, or (src NULL) without any. There must be room. */
void shipment_add(struct shipment *s, uint8_t op, uint64_t off, uint64_t len, const void *src);

/* What it counts for in a lag. */
uint64_t shipment_weight(const struct shipment *s);

struct shipview {
	bool open;
	struct shipment *unsent, *unacked; /* NULL: all is sent, acknowledged */
	uint64_t weight;                   /* of what is not acknowledged */
};

/* A generation that is over, and the last shipment that was acknowledged in it. */
struct ship_ended {
	struct gen_id id;
	uint64_t last; /* 0: none, it is from before the queue */
};

struct shipqueue {
	struct shipment *tail;                /* the last one if it still lives */
	uint64_t last;                        /* number given last */
	uint64_t through;                     /* of the last one that was acknowledged */
	struct ship_ended ended[GEN_HISTORY]; /* a chain's history, place by place */
	struct shipview view[REPL_TARGETS_MAX];
};

/* The replica gets what is appended from now on. */
void shipqueue_open(struct shipqueue *q, unsigned replica);

/*
 * The last in order, for all open views. The caller's reference stays its own.
 */
void shipqueue_append(struct shipqueue *q, struct shipment *s, uint64_t now_ns);

/* The next one to be sent was. */
void shipqueue_sent(struct shipqueue *q, unsigned replica);

/* The oldest one that was sent and not acknowledged is now. */
void shipqueue_acked(struct shipqueue *q, unsigned replica);

/* Drop the reference. */
void shipqueue_unref(struct shipqueue *q, struct shipment *s);

/*
 * The replica gets nothing any more. What it has not acknowledged is told to
 * dropped(), range by range, if that is not NULL: it may have it or not.
 */
void shipqueue_close(struct shipqueue *q, unsigned replica,
		     void (*dropped)(void *arg, uint64_t off, uint64_t len), void *arg);

/* The drain that ends with this shipment returns: it is acknowledged, and all before it. */
void shipqueue_through(struct shipqueue *q, uint64_t number);

/* A new generation, which has just become chain's: what is through was acknowledged before it. */
void shipqueue_ended(struct shipqueue *q, const struct generation *chain);

/*
 * Of the oldest generation that the replica lacks some of, but for the current one, the last
 * shipment; it and what is newer goes from the history of chain, which is that of the last
 * shipqueue_ended(). 0: it has all of them.
 */
uint64_t shipqueue_behind(const struct shipqueue *q, unsigned replica, struct generation *chain);

/* It has all up to that number. */
bool shipqueue_has(const struct shipqueue *q, unsigned replica, uint64_t number);

/* How old the oldest is that the replica has not acknowledged; 0: it has all. */
uint64_t shipqueue_lag_ns(const struct shipqueue *q, unsigned replica, uint64_t now_ns);

#endif
