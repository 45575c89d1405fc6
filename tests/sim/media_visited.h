/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * media_visited - the states that a search has seen, and those it has still to
 * look at. States are 64-bit keys, kept whole: none is taken for another.
 */
#ifndef SIM_MEDIA_VISITED_H
#define SIM_MEDIA_VISITED_H

#include <stdbool.h>
#include <stdint.h>

#define VISITED_NONE UINT32_MAX

struct visit {
	uint64_t key;
	uint32_t parent; /* the state that it was first reached from */
};

/* Begins as zeros; memory is used again from search to search. Out of memory: aborts. */
struct visited {
	struct visit *visit; /* in the order of discovery */
	uint32_t count, capacity;
	uint32_t *slot; /* hash table of indices in visit, VISITED_NONE where empty */
	uint32_t slot_count;
	uint32_t *stack; /* indices in visit */
	uint32_t depth;
};

/* Empty it. */
void visited_clear(struct visited *v);

/* Unless it was seen, it is kept and still to be looked at. */
void visited_add(struct visited *v, uint64_t key, uint32_t parent);

/* The next to look at, as index in visit; VISITED_NONE at the end. */
uint32_t visited_next(struct visited *v);

void visited_fini(struct visited *v);

#endif
