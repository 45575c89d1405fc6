/* SPDX-License-Identifier: BSD-3-Clause */
#include "prefault.h"

#include <signal.h>

static void *
prefault_main(void *arg)
{
	struct prefault *p = arg;
	size_t off = 0;

	while (off < pmem_map_size(p->map) && !atomic_load(&p->stop))
		off = pmem_map_prefault(p->map, off);
	return NULL;
}

void
prefault_begin(struct prefault *p, struct pmem_map *map)
{
	sigset_t all, old;

	if (p->started)
		return;
	p->map = map;
	atomic_store(&p->stop, false);
	(void)sigfillset(&all);
	/* A fault in a mapping must reach the handler, so it stays unblocked. */
	(void)sigdelset(&all, SIGBUS);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	p->started = pthread_create(&p->thread, NULL, prefault_main, p) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void
prefault_end(struct prefault *p)
{
	if (!p->started)
		return;
	atomic_store(&p->stop, true);
	(void)pthread_join(p->thread, NULL);
	p->started = false;
}
