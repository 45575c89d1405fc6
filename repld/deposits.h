/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deposits - apply DEPOSITs to a pool, one after the other: what the data thread
 * does as they arrive and what a replay does with those that it did not come to.
 */
#ifndef REPLD_DEPOSITS_H
#define REPLD_DEPOSITS_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"
#include "pmem.h"
#include "wire.h"

#define DEPOSITS_RANGES_MAX 4096

struct deposits {
	struct pmem_map *map;
	bool back;  /* take space first: where a disk is full storing is a SIGBUS */
	bool whole; /* a replay that, cut, is begun anew: barriers split nothing */
	struct range ranges[DEPOSITS_RANGES_MAX]; /* stored, not yet durable */
	size_t count;
	uint64_t bytes;   /* stored so far */
	uint64_t flushes; /* so far */
};

void deposits_init(struct deposits *d, struct pmem_map *map);

/*
 * Store what a checked DEPOSIT says, with its barriers but for those of a whole: what it has stored
 * behind the last one is durable after deposits_flush(). An error is of a flush
 * or, with back, REPL_E_NOSPC: nothing more may be applied. What is to be trimmed is passed over: a
 * replay need not make it zero.
 */
int deposits_apply(struct deposits *d, const struct wire_commit_view *v, struct err *e);

/* One entry of it; *payload is where that of the next one is, and is moved on. */
int deposits_entry(struct deposits *d, const struct wire_entry *en, const uint8_t **payload,
		   struct err *e);

int deposits_flush(struct deposits *d, struct err *e);

#endif
