/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that is linked with the library has the signal handlers of a fresh process. */
#include "unit.h"

#include <signal.h>

#include "fabric.h"

static int caught; /* a signal that something caught before main() or in fabric */

/* cmocka catches signals itself while a test runs: so this runs before it. */
static void
look_for_handlers(void)
{
	struct sigaction now;

	for (int sig = 1; sig < 32; sig++) {
		if (sig == SIGKILL || sig == SIGSTOP || sigaction(sig, NULL, &now))
			continue;
		if (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN)
			caught = sig;
	}
}

static void
libinfinipath_catches_nothing(void **state)
{
	(void)state;
	if (caught)
		fail_msg("signal %d has a handler", caught);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(libinfinipath_catches_nothing)};

	(void)fab_provider_present("tcp");
#ifndef __SANITIZE_ADDRESS__
	look_for_handlers();
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
