/* SPDX-License-Identifier: BSD-3-Clause */
/* dirty_impl - what is behind a struct dirty, for dirty.c and its tests. */
#ifndef LIBREPL_DIRTY_IMPL_H
#define LIBREPL_DIRTY_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "dirty.h"

/* One replica's. */
struct track {
	_Atomic bool tracked;
	bool suspect;   /* since a crash only a comparison tells what it lacks */
	bool untrusted; /* the map may lack blocks */
	struct gen_id base;
	struct dirtymap *current, *batch; /* NULL: none */
};

struct dirty {
	struct local *local;
	unsigned count; /* of replicas */
	unsigned shift; /* of all maps */
	uint64_t pool_size;
	/*
	 * Shared to mark, exclusive to exchange the maps or to let them grow. Takes
	 * no other lock within.
	 */
	pthread_rwlock_t maps_lock;
	struct track track[REPL_TARGETS_MAX];
};

#endif
