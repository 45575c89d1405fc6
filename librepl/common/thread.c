/* SPDX-License-Identifier: BSD-3-Clause */
#include "thread.h"

#include <signal.h>
#include <stddef.h>

#define STACK_LEAST (256U << 10) /* a login takes some 40 KiB */

static int
start(pthread_t *thread, int detach, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	size_t size = 0;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return rc;
	(void)pthread_attr_setdetachstate(&attr, detach);
	if (pthread_attr_getstacksize(&attr, &size) == 0 && size < STACK_LEAST)
		(void)pthread_attr_setstacksize(&attr, STACK_LEAST);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, &attr, run, arg);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return rc;
}

int
thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	return start(thread, PTHREAD_CREATE_JOINABLE, run, arg);
}

int
thread_start_detached(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	return start(&thread, PTHREAD_CREATE_DETACHED, run, arg);
}
