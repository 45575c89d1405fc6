/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading libfabric leaves the signals of the program as they were. */
#include "unit.h"

#include <signal.h>

#include "fabric.h"

static int changed; /* a signal with another disposition than before */

static void
on_term(int sig)
{
	(void)sig;
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

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(libinfinipath_catches_nothing)};

	look_for_changes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
