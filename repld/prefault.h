/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prefault - a thread that touches the pages of a pool ahead of a copy that is
 * about to come (pmem_map_prefault()), beside it: whoever asked for the copy does not
 * wait, be the memory as slow as it may.
 */
#ifndef REPLD_PREFAULT_H
#define REPLD_PREFAULT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "pmem.h"

struct prefault {
	struct pmem_map *map;
	pthread_t thread;
	bool started;
	_Atomic bool stop;
};

/* Once for a mapping; again it does nothing. It only saves time: no thread is no error. */
void prefault_begin(struct prefault *p, struct pmem_map *map);

/* Before the mapping goes. */
void prefault_end(struct prefault *p);

#endif
