/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pull - ranges of the replica into a local file. The calling thread
 * reads them from the target while one more writes them to the file: the network
 * does not stand still for the file, which has pages to find and to make.
 *
 * Where the target has the pool in its page cache it reads the pool's file for each FETCH into a
 * window, and some lanes take turns: to map a page costs it more than to copy it. Over a long way,
 * where more must be on its way than there are windows, and of other targets, one lane reads the
 * pool itself by RMA.
 */
#ifndef LIBREPL_PULL_H
#define LIBREPL_PULL_H

#include "breath.h"
#include "remote.h"

struct pull;

/*
 * By lane and those behind it, all idle. Reads end by deadline_ns at the latest, 0: each has the op
 * timeout. fd is borrowed. All that waits, for the link or the file, breathes meanwhile.
 */
int pull_begin(struct remote *remote, unsigned lane, int fd, uint64_t deadline_ns,
	       struct breath breath, struct pull **out, struct err *e);

/* Have a range read and written; waits only for room. Ranges do not overlap. */
int pull_range(struct pull *p, uint64_t off, uint64_t len, struct err *e);

/* All of it is in the file; what cannot be written any more is told here at the latest. */
int pull_settle(struct pull *p, struct err *e);

/*
 * After a failure as well: what has come, or comes within a second, is written, it serves the next
 * try. Where more is under way the lanes of the remote are closed. NULL is allowed.
 */
void pull_end(struct pull *p);

#endif
