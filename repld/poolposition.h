/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolposition - the record of how far a pool has come whose updates cost no sync:
 * docs/POOL-FORMAT.md, section 1.9. It is in the sidecar, in the same kind of memory as the pool,
 * and follows each round. Where rounds go into a log that tells it (roundlog.h).
 *
 * Making maps memory: see pmem.h.
 */
#ifndef REPLD_POOLPOSITION_H
#define REPLD_POOLPOSITION_H

#include <stdint.h>

#include "err.h"
#include "sidecar.h"

struct poolposition;

/*
 * Make a record in the sidecar, an open file that has no region; meta is what the sidecar says and
 * will say. On an error the sidecar is as it was.
 */
int poolposition_make(int sidecar_fd, const char *path, struct sidecar *meta,
		      struct poolposition **out, struct err *e);

/* Durably: all that comes before it is. By any thread, one at a time. */
int poolposition_tell(struct poolposition *p, uint64_t position, struct err *e);

/* The record stays on media. p may be NULL. */
void poolposition_free(struct poolposition *p);

/* What a dead writer has left, named by meta; 0: it has told none. REPL_E_CORRUPT, REPL_E_IO. */
int poolposition_read(int sidecar_fd, const struct sidecar *meta, uint64_t *position,
		      struct err *e);

/* Take the record away, and put its position, or 0 where that is not known, on record. */
int poolposition_drop(int sidecar_fd, struct sidecar *meta, uint64_t position, struct err *e);

#endif
