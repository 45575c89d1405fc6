/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading libfabric leaves the signals of the program as they were, and in our own programs
 * meanwhile as well. */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric.h"

static int changed; /* a signal with another disposition than before */
static bool away;   /* another thread saw one meanwhile */
static bool left;   /* no thread did in a process that has asked for it */
static atomic_bool loaded;

static void
on_term(int sig)
{
	(void)sig;
}

static void *
look_meanwhile(void *arg)
{
	struct sigaction now;

	while (!atomic_load(&loaded)) {
		(void)sigaction(SIGTERM, NULL, &now);
		away = away || now.sa_handler != on_term;
	}
	return arg;
}

/* As in replctl and repld; in a process of its own, for it is not as in others from then on. */
static bool
are_left_meanwhile(void)
{
	pid_t child = fork();
	pthread_t thread;
	int status;

	if (child)
		return waitpid(child, &status, 0) == child && status == 0;
	(void)signal(SIGTERM, on_term);
	fab_leave_signals();
	if (pthread_create(&thread, NULL, look_meanwhile, NULL))
		_exit(2);
	(void)fab_provider_at("tcp", "127.0.0.1", NULL);
	atomic_store(&loaded, true);
	(void)pthread_join(thread, NULL);
	_exit(away);
}

/* cmocka catches signals itself while a test runs: so this runs before it. */
static void
look_for_changes(void)
{
	struct sigaction before[32], now;

	(void)signal(SIGTERM, on_term);
	(void)signal(SIGINT, SIG_IGN);
	for (int sig = 1; sig < 32; sig++)
		(void)sigaction(sig, NULL, &before[sig]);
	(void)fab_provider_at("tcp", "127.0.0.1", NULL);
	for (int sig = 1; sig < 32; sig++) {
		(void)sigaction(sig, NULL, &now);
		if (sig != SIGKILL && sig != SIGSTOP && now.sa_handler != before[sig].sa_handler)
			changed = sig;
	}
}

static void
libinfinipath_catches_nothing(void **state)
{
	(void)state;
	if (changed)
		fail_msg("signal %d has another handler", changed);
}

static void
nor_meanwhile(void **state)
{
	(void)state;
	assert_true(left);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(libinfinipath_catches_nothing),
					   cmocka_unit_test(nor_meanwhile)};

	left = are_left_meanwhile();
	look_for_changes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
