/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dirtyload - what a dirty map's region that was found is worth, and what it says
 * is dirty: the rules of trust of POOL-FORMAT.md, 1.6.
 *
 * Pure: pages come by a call of the caller's. No error of the region is one of the
 * caller's: what is damaged tells less, or nothing.
 */
#ifndef COMMON_DIRTYLOAD_H
#define COMMON_DIRTYLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "dirtypage.h"

/* A page by its number in the region; false: it can't be read. */
typedef bool dirtyload_read(void *arg, uint64_t index, uint8_t page[DIRTYPAGE_SIZE]);

/* A range that a replica may lack. */
typedef void dirtyload_mark(void *arg, uint64_t off, uint64_t len);

struct dirtyload_from {
	dirtyload_read *read;
	void *arg;
	struct gen_id pool;         /* whose region it is */
	uint64_t len;               /* as the sidecar names it; 0: there is none */
	uint64_t pool_size;         /* now */
	uint64_t recorded;          /* as the sidecar has it; 0: it has none */
	struct dirtypage_file file; /* that the pool is in now */
	bool crashed;               /* the last writer did not close */
	bool keep;                  /* after-crash = dirty-map: an activity log counts */
};

struct dirtyload {
	struct dirtyload_from from;
	struct dirtypage_header h; /* if whole */
	bool whole;                /* the header can be believed */
	bool covered;              /* a crash is, by the activity log */
	bool suspect;              /* only a comparison tells what a replica lacks */
	uint64_t activity[DIRTYPAGE_EXTENT_WORDS];
};

void dirtyload_begin(struct dirtyload *l, const struct dirtyload_from *from);

/* Where the map of the replica of that name is, if it is tracked; -1: nowhere. */
int dirtyload_slot(const struct dirtyload *l, const uint8_t name[HASH128_SIZE]);

/*
 * Whether the region is that of a writer that had a replica of that name: what the activity log
 * says goes for those. By another name it may be one that a map tells of.
 */
bool dirtyload_names(const struct dirtyload *l, const uint8_t name[HASH128_SIZE]);

/*
 * Mark what a replica lacks: by the map in slot, unless that is -1, and if a crash
 * is covered by the activity log. REPL_E_NOMEM: it is not told.
 */
int dirtyload_marks(const struct dirtyload *l, int slot, dirtyload_mark *mark, void *arg,
		    struct err *e);

#endif
