/* SPDX-License-Identifier: BSD-3-Clause */
#include "thread.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#define STACK_LEAST (256U << 10) /* a login takes some 40 KiB */

/* Linux can be built for as many. */
#define CPUS_MOST 8192U

/*
 * A thread that opens a pool may be bound to a CPU and go before all others there: what the
 * library does beside it would have to wait for it, or it for that.
 */
static void
loosen(pthread_attr_t *attr)
{
	cpu_set_t first[CPUS_MOST / CPU_SETSIZE], own[CPUS_MOST / CPU_SETSIZE];
	const struct sched_param param = {0};
	int policy = sched_getscheduler(0);

	if (policy == SCHED_FIFO || policy == SCHED_RR) {
		(void)pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
		(void)pthread_attr_setschedpolicy(attr, SCHED_OTHER);
		(void)pthread_attr_setschedparam(attr, &param);
	}
	if (sched_getaffinity(getpid(), sizeof(first), first) == 0 &&
	    sched_getaffinity(0, sizeof(own), own) == 0 && !CPU_EQUAL_S(sizeof(own), first, own) &&
	    CPU_COUNT_S(sizeof(first), first) >= CPU_COUNT_S(sizeof(own), own))
		(void)pthread_attr_setaffinity_np(attr, sizeof(first), first);
}

static int
create(pthread_t *thread, int detach, bool inherits, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	size_t size = 0;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return rc;
	(void)pthread_attr_setdetachstate(&attr, detach);
	if (pthread_attr_getstacksize(&attr, &size) == 0 && size < STACK_LEAST)
		(void)pthread_attr_setstacksize(&attr, STACK_LEAST);
	if (!inherits)
		loosen(&attr);
	rc = pthread_create(thread, &attr, run, arg);
	(void)pthread_attr_destroy(&attr);
	return rc;
}

static int
start(pthread_t *thread, int detach, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	int rc;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = create(thread, detach, false, run, arg);
	/* The program may be forbidden what it takes, and CPUs may go meanwhile. */
	if (rc)
		rc = create(thread, detach, true, run, arg);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
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
