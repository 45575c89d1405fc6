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
	bool begun;
	bool writes; /* RMA reads its bytes from where they are: also when it is all sent */
};

/*
 * Put on what is left of it; what is large goes by RMA where all before is acknowledged: then
 * its bytes stay until it is, or the lane is gone. True: all is in messages, the last of which may
 * be still under construction, s->seq[replica] says which. False: no room, or the lane is lost:
 * step it.
 */
bool lane_ship(struct lane *l, struct shipment *s, unsigned replica, struct ship_at *at);

/* When all that is on its way is answered it goes by RMA, which spares three copies. */
bool lane_ship_pays_to_wait(const struct lane *l, const struct shipment *s,
			    const struct ship_at *at);

/* Send what is under construction. */
void lane_ship_send(struct lane *l);

/* Nothing is under construction or unanswered. */
bool lane_ship_quiet(const struct lane *l);

#endif
