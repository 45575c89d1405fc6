/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What loading libfabric brings along: undone where it touches the process,
 * done early where it takes time.
 */
#include "fabric_ofi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* True if the address lies in a library that libfabric pulls in for PSM devices. */
static bool
is_infinipath(void *address)
{
	Dl_info info;

	return address && dladdr(address, &info) && info.dli_fname &&
	       strstr(info.dli_fname, "infinipath") != NULL;
}

/*
 * Debian's libfabric is linked with libpsm_infinipath, whose constructor
 * catches SIGINT, SIGTERM, SIGSEGV and others and calls exit() in the handler:
 * a signal at the wrong moment hangs the program. Nobody asked for that: put
 * the default back, for these handlers only and before main().
 */
__attribute__((constructor)) static void
fabric_release_signals(void)
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGILL, SIGABRT, SIGBUS, SIGSEGV, SIGFPE};
	struct sigaction old;
	void *handler;

	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++) {
		if (sigaction(sigs[i], NULL, &old))
			continue;
		/* Both members share their place; the cast keeps to what POSIX allows. */
		memcpy(&handler,
		       old.sa_flags & SA_SIGINFO ? (void *)&old.sa_sigaction
						 : (void *)&old.sa_handler,
		       sizeof(handler));
		if (is_infinipath(handler))
			(void)signal(sigs[i], SIG_DFL);
	}
}

struct fab_warm {
	pthread_t thread;
};

static void *
warm_main(void *arg)
{
	(void)fab_provider_present("tcp");
	return arg;
}

struct fab_warm *
fab_warm_new(void)
{
	struct fab_warm *w = calloc(1, sizeof(*w));
	sigset_t all, old;
	int ret;

	if (!w)
		return NULL;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&w->thread, NULL, warm_main, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret) {
		free(w);
		return NULL;
	}
	return w;
}

void
fab_warm_free(struct fab_warm *w)
{
	if (!w)
		return;
	(void)pthread_join(w->thread, NULL);
	free(w);
}
