/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alive - signs of life to all targets that have no keeper, who gives them else: at opening and
 * closing this machine's own disk, another target, or the end of another one's keeper, is waited
 * for, for longer than a target may bear silence.
 *
 * Others may use the remotes meanwhile, and nobody frees one.
 */
#ifndef LIBREPL_ALIVE_H
#define LIBREPL_ALIVE_H

#include <pthread.h>
#include <stdbool.h>

struct repl;

struct alive {
	struct repl *r;
	pthread_t thread;
	bool started;
	bool over; /* guarded by repl.wake_lock */
};

/* Without a thread to be had nobody gives any. */
void alive_begin(struct alive *a, struct repl *r);
void alive_end(struct alive *a);

#endif
