/* SPDX-License-Identifier: BSD-3-Clause */
/* lane_ship - shipments on an idle lane of their own, behind each other by BARRIERs. */
#ifndef LIBREPL_LANE_SHIP_H
#define LIBREPL_LANE_SHIP_H

#include "lane.h"
#include "shipqueue.h"

/* How much of a shipment is in messages; zero: nothing. */
struct ship_at {
	unsigned piece;
	uint64_t done; /* bytes of that piece */
	bool position; /* its POSITION, too */
};

/*
 * Put on what is left of it. True: all is in messages, the last of which may be still under
 * construction, s->seq[replica] says which. False: no room, or the lane is lost: step it.
 */
bool lane_ship(struct lane *l, struct shipment *s, unsigned replica, struct ship_at *at);

/* Send what is under construction. */
void lane_ship_send(struct lane *l);

/* Nothing is under construction or unanswered. */
bool lane_ship_quiet(const struct lane *l);

#endif
