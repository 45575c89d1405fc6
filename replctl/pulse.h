/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pulse - a thread that lets a target hear from us while something else takes all the time of ours,
 * as what is measured does, or a slow disk: one that hears nothing for its heartbeat-timeout, ten
 * seconds by default, ends the session.
 */
#ifndef REPLCTL_PULSE_H
#define REPLCTL_PULSE_H

#include <pthread.h>
#include <stdatomic.h>

#include "err.h"
#include "remote.h"

struct pulse {
	struct remote *remote; /* NULL: it does not beat */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t stopped;
	_Atomic int stop;
};

/* All zeros before. The remote stays until pulse_stop(); others may use it meanwhile. */
int pulse_start(struct pulse *p, struct remote *remote, struct err *e);

/* Again is allowed, and without a start. */
void pulse_stop(struct pulse *p);

#endif
