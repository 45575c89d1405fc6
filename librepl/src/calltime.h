/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calltime - what a call that waits for other calls may take: op-timeout, without what this
 * machine's disk has taken meanwhile for records beside the pool; or a replica that grows, to be
 * told of one.
 *
 * Those calls wait for that themselves, for as long as it takes, with a lane, a turn, or bytes on
 * their way that others wait for. It says nothing of a target, nor that anything hangs.
 */
#ifndef LIBREPL_CALLTIME_H
#define LIBREPL_CALLTIME_H

#include <pthread.h>
#include <stdint.h>

/* How long that was waited for, by whomever, in all. Zero bytes are a new one. */
struct diskclock {
	pthread_mutex_t lock; /* guards all of it; innermost, never held for long */
	unsigned waiting;
	uint64_t since_ns; /* that somebody waits */
	uint64_t ns;       /* ... before that */
};

void diskclock_begin(struct diskclock *c);
void diskclock_end(struct diskclock *c);

struct calltime {
	uint64_t begin_ns;
	uint64_t disk_ns; /* waited for by then */
};

/* Of a call that began then, and has waited for no other one yet. */
struct calltime calltime_begin(struct diskclock *c, uint64_t begin_ns);

/* When it is over as things are now. As long as the disk is waited for that is a while from now. */
uint64_t calltime_end(struct diskclock *c, const struct calltime *t, unsigned timeout_ms);

#endif
