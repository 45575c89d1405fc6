/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall - whether what is awaited on the lanes of a session has stopped to move.
 *
 * Whoever moves much can't tell how long that takes: it is given up when nothing has moved for a
 * while, no event and no byte of a connection. Over a slow link the bytes alone tell: a
 * piece has its event when all of it is through, or everything that the system had taken before.
 */
#ifndef LIBREPL_STALL_H
#define LIBREPL_STALL_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"

struct stall {
	uint64_t limit_ns;  /* that it may stand still */
	uint64_t moved_ns;  /* when something moved */
	uint64_t looked_ns; /* when the bytes were looked at, or 0 */
	uint64_t bytes;     /* as they were then */
};

static inline struct stall
stall_begin(uint64_t limit_ns, uint64_t now_ns)
{
	return (struct stall){.limit_ns = limit_ns, .moved_ns = now_ns};
}

/* There was an event. */
static inline void
stall_moved(struct stall *s, uint64_t now_ns)
{
	s->moved_ns = now_ns;
}

/* Whether it has stood still for too long; to be asked often. */
bool stall_over(struct stall *s, const struct fab_lane *fab, uint64_t now_ns);

#endif
