/* SPDX-License-Identifier: BSD-3-Clause */
#include "ackpolicy.h"

static unsigned
count(uint32_t bits)
{
	return (unsigned)__builtin_popcount(bits);
}

unsigned
ack_needed(enum ack_kind ack, unsigned sync)
{
	if (ack == ACK_QUORUM)
		return sync ? sync / 2 + 1 : 0;
	return ack == ACK_ANY && sync ? 1 : sync;
}

uint32_t
ack_holders(const struct ackpolicy *p, const struct shipment *m, uint32_t live, uint32_t laggards)
{
	return m->acked & p->sync & live & ~laggards;
}

uint32_t
ack_left(const struct ackpolicy *p, const struct shipment *m, uint32_t live, uint32_t laggards,
	 bool *enough)
{
	uint32_t has = ack_holders(p, m, live, laggards);

	*enough = count(has) >= p->needed;
	return *enough ? 0 : m->wanted & ~has & p->sync & live;
}

/* Replicas that lag by more than a part of what they may. */
static uint32_t
lagging(const struct ackpolicy *p, const struct shipqueue *q, unsigned part, uint64_t now_ns)
{
	uint32_t late = 0;

	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		if (q->view[i].weight > p->lag_bytes / part ||
		    shipqueue_lag_ns(q, i, now_ns) > p->lag_ns / part)
			late |= 1U << i;
	}
	return late;
}

/*
 * Whether those that a drain needs are well ahead of the bound. Only then one that has
 * come to it is a laggard: a drain of much brings all there.
 */
static bool
flows(const struct ackpolicy *p, const struct shipqueue *q, uint32_t live, uint64_t now_ns)
{
	uint32_t sync = p->sync & live;
	unsigned need = p->needed < count(sync) ? p->needed : count(sync);

	return count(sync & ~lagging(p, q, 2, now_ns)) >= need;
}

enum ack_room
ack_room(const struct ackpolicy *p, const struct shipqueue *q, uint32_t live, uint64_t now_ns,
	 bool over, uint32_t *late)
{
	bool flow = !p->degrade || flows(p, q, live, now_ns);

	*late = lagging(p, q, 1, now_ns);
	if (!*late)
		return flow || over ? ACK_ROOM_THERE : ACK_ROOM_WAIT;
	return (p->degrade && flow) || over ? ACK_ROOM_LOSE : ACK_ROOM_WAIT;
}

bool
ack_room_held(const struct ackpolicy *p, const struct shipqueue *q, uint32_t live, uint64_t now_ns)
{
	return flows(p, q, live, now_ns) && (live & ~lagging(p, q, 2, now_ns));
}

uint32_t
ack_awaited(const struct ackpolicy *p, uint32_t lost, uint32_t live, uint32_t back)
{
	uint32_t queued = p->served;

	if (count(p->sync & live) < p->needed)
		queued = 0;
	return lost & ~live & ~back & ~queued;
}
