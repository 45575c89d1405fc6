/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: the program gets a SIGHUP as soon as it has a handler for
 * that.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int
sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	static int (*real)(int, const struct sigaction *, struct sigaction *);
	int rc;

	if (!real)
		real = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(
			RTLD_NEXT, "sigaction");
	rc = real(sig, act, old);
	if (sig == SIGHUP && rc == 0 && act && act->sa_handler != SIG_IGN &&
	    act->sa_handler != SIG_DFL)
		(void)raise(SIGHUP);
	return rc;
}
