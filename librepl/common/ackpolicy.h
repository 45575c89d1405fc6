/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ackpolicy - when a drain has reached as many queued replicas as its policy asks
 * for, when one of them lags too far, and for whom on-loss = block waits.
 *
 * Pure, over shipqueue. Sets of replicas are bits.
 */
#ifndef COMMON_ACKPOLICY_H
#define COMMON_ACKPOLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "shipqueue.h"

enum ack_kind { ACK_ALL, ACK_QUORUM, ACK_ANY };

/* Of sync replicas that drains may wait for, so many must have it. */
unsigned ack_needed(enum ack_kind ack, unsigned sync);

struct ackpolicy {
	uint32_t served; /* replicas with a queue */
	uint32_t sync;   /* of these waited for by drains */
	unsigned needed; /* of sync */
	bool degrade;    /* a laggard is given up, else it is waited for */
	uint64_t lag_bytes, lag_ns;
};

/*
 * Who has a shipment, and counts. What is acknowledged must be in the copy that looks best to
 * somebody who has only the replicas: one that was lost since is of an older generation than the
 * rest, a laggard is labelled as missing updates until it has caught up.
 */
uint32_t ack_holders(const struct ackpolicy *p, const struct shipment *m, uint32_t live,
		     uint32_t laggards);

/*
 * Those that a drain waits for still, out of the live ones; 0: it is through, with *enough if so
 * many have it as there must be, else all that are left have it.
 */
uint32_t ack_left(const struct ackpolicy *p, const struct shipment *m, uint32_t live,
		  uint32_t laggards, bool *enough);

enum ack_room {
	ACK_ROOM_THERE,
	ACK_ROOM_WAIT,
	ACK_ROOM_LOSE, /* *late are given up */
};

/* Whether one more shipment may be queued; over: the time to wait for that is. */
enum ack_room ack_room(const struct ackpolicy *p, const struct shipqueue *q, uint32_t live,
		       uint64_t now_ns, bool over, uint32_t *late);

/* Whether those that lag hold up others, well ahead of the bound, that are enough for a drain. */
bool ack_room_held(const struct ackpolicy *p, const struct shipqueue *q, uint32_t live,
		   uint64_t now_ns);

/*
 * on-loss = block: of lost, those that were away when a call ended, the ones that it waits for:
 * not live, and not back meanwhile. Of the queued ones not all need be there.
 */
uint32_t ack_awaited(const struct ackpolicy *p, uint32_t lost, uint32_t live, uint32_t back);

#endif
