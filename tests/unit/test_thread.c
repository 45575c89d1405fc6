/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread of the library's takes from the one that starts it no signals, no real-time policy
 * and no closer binding to CPUs than the process's first thread has; a wider one it keeps.
 */
#include "unit.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "thread.h"

struct seen {
	cpu_set_t cpus;
	sigset_t blocked;
	int policy;
};

/* Of a thread that is not the process's first one. */
struct opener {
	cpu_set_t every, single; /* CPUs */
	struct seen bound, wide; /* what threads that it started were, when it was so itself */
	bool is_real;            /* it may have a real-time policy */
	bool failed;
};

static void *
look(void *arg)
{
	struct seen *s = arg;

	s->policy = sched_getscheduler(0);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
	return sched_getaffinity(0, sizeof(s->cpus), &s->cpus) ? arg : NULL;
}

static bool
started(struct seen *s)
{
	pthread_t thread;
	void *failed = s;

	return thread_start(&thread, look, s) == 0 && pthread_join(thread, &failed) == 0 && !failed;
}

static bool
binds(pid_t thread, const cpu_set_t *cpus)
{
	return sched_setaffinity(thread, sizeof(*cpus), cpus) == 0;
}

static void *
opens(void *arg)
{
	const struct sched_param real = {.sched_priority = 1};
	struct opener *o = arg;

	o->is_real = sched_setscheduler(0, SCHED_FIFO, &real) == 0;
	o->failed = !binds(0, &o->single) || !started(&o->bound) || !binds(0, &o->every) ||
		    !binds(getpid(), &o->single) || !started(&o->wide) ||
		    !binds(getpid(), &o->every);
	return NULL;
}

static void
it_is_not_bound_as_who_starts_it(void **state)
{
	struct opener o = {0};
	pthread_t thread;

	(void)state;
	if (sched_getaffinity(0, sizeof(o.every), &o.every) || CPU_COUNT(&o.every) < 2)
		skip();
	for (size_t cpu = 0; CPU_COUNT(&o.single) == 0; cpu++) {
		if (CPU_ISSET(cpu, &o.every))
			CPU_SET(cpu, &o.single);
	}
	assert_int_equal(pthread_create(&thread, NULL, opens, &o), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(o.failed);
	assert_true(CPU_EQUAL(&o.bound.cpus, &o.every));
	assert_true(CPU_EQUAL(&o.wide.cpus, &o.every));
	assert_int_equal(o.bound.policy, SCHED_OTHER);
	assert_int_equal(sigismember(&o.bound.blocked, SIGUSR1), 1);
	if (!o.is_real)
		print_message("no real-time policy may be set here\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_not_bound_as_who_starts_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
