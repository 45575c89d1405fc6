/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transfer - bring a whole range to a replica or back, by block hashes.
 *
 * Both directions compare hashes of blocks and move only blocks that differ.
 * Where nearly all differ they stop comparing for growing stretches, so that a
 * full copy is not slowed by hashing. What is a hole on both sides is passed over. The remote has
 * its pool open (for writing to push) and at least one lane.
 */
#ifndef LIBREPL_TRANSFER_H
#define LIBREPL_TRANSFER_H

#include "remote.h"

#define TRANSFER_BLOCK 65536U

struct transfer_progress {
	uint64_t total; /* bytes of the pool */
	uint64_t done;  /* bytes dealt with: compared, moved or both */
	uint64_t moved; /* bytes moved over the lanes */
};

struct transfer {
	struct remote *remote;
	unsigned lane;
	const char *file; /* that is mapped as mem, so that its holes are known; NULL: none */
	bool untouched;   /* all of mem is a shared mapping of it that nobody has used so far */
	/* Called now and then by the calling thread; non-zero cancels (REPL_E_FAILED). */
	int (*progress)(void *arg, const struct transfer_progress *p);
	void *arg;
	uint64_t deadline_ns; /* of the whole; 0 = only each step's own */
};

/* Make the replica equal to mem; durable on return. Marks nothing. */
int transfer_push(const struct transfer *t, const void *mem, uint64_t size,
		  struct transfer_progress *sum, struct err *e);

/* Make the file's first size bytes equal to the replica; the file has that size. Not synced. */
int transfer_pull(const struct transfer *t, int fd, uint64_t size, struct transfer_progress *sum,
		  struct err *e);

/*
 * Compare; differ() is called for each maximal differing range in order, with block
 * granularity refined to 64 bytes. REPL_E_DIFFER if there was any.
 */
int transfer_compare(const struct transfer *t, const void *mem, uint64_t size,
		     void (*differ)(void *arg, uint64_t off, uint64_t len),
		     struct transfer_progress *sum, struct err *e);

#endif
