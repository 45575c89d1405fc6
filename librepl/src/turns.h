/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turns - one thread at a time, for milliseconds rather than for good.
 *
 * Whoever is running when it is free may take it, which costs no switch of threads; but who
 * has waited for a millisecond goes first, in the order in which they came. So nobody waits
 * for longer than those before it take.
 */
#ifndef LIBREPL_TURNS_H
#define LIBREPL_TURNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct turn;

struct turns {
	pthread_mutex_t lock; /* guards all of it, never for long */
	bool taken;
	struct turn *first, *last; /* who waits */
	const _Atomic bool *abandoned;
};

/* 0, or an error number. abandoned: in a child that comes back to a call, see ownwait.h. */
int turns_init(struct turns *t, const _Atomic bool *abandoned);
void turns_fini(struct turns *t);

/* False: not by the deadline, or in that child. */
bool turns_enter(struct turns *t, uint64_t deadline_ns);
void turns_leave(struct turns *t);

#endif
