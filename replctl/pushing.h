/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pushing - a file that nobody writes to, brought to a replica by a resync: by the
 * target's journal where that takes it, so that a sync that is cut off leaves
 * the replica as it was, and the next one goes on with the journal.
 */
#ifndef REPLCTL_PUSHING_H
#define REPLCTL_PUSHING_H

#include "progress.h"
#include "remote.h"

struct pushing {
	struct remote *remote; /* pool open for writing, one lane */
	const uint8_t *mem;
	uint64_t size;
	const char *file; /* that is mapped as mem */
	struct progress *progress;
	/*
	 * Called when all is staged or written: what is to be recorded with it, NULL and an
	 * error if it is not to be. moved: bytes that went to the target, by this one or before.
	 */
	const struct generation *(*chain)(void *arg, uint64_t moved, struct err *e);
	void *arg;
	struct transfer_progress sum; /* out */
	uint64_t kept; /* out: bytes that an earlier one, which was cut off, had sent */
};

int pushing_run(struct pushing *p, struct err *e);

#endif
