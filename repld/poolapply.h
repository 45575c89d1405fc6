/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolapply - the messages of a committed journal come into the pool, in their order as far as
 * that can be told: those that bring rising ranges are copied by two threads, and made durable
 * beside the copying of what follows. What of it is durable after a crash is not known, and need
 * not be: all of it is applied again.
 */
#ifndef REPLD_POOLAPPLY_H
#define REPLD_POOLAPPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "journalfmt.h"
#include "pmem.h"

struct poolapply;

/*
 * The messages that *is tells of begin at off of fd, which is borrowed. One thread uses it; it
 * starts others, which are gone when a call returns.
 */
int poolapply_new(int fd, uint64_t off, const struct journal_commit *is, struct poolapply **out,
		  struct err *e);
void poolapply_free(struct poolapply *a);

/*
 * About max bytes more, at least one message. When poolapply_done() has come to the end all of it
 * is durable, and was what was committed. REPL_E_CORRUPT if it can't be believed, REPL_E_IO if
 * something was not made durable: a later flush proves nothing on it.
 */
int poolapply_run(struct poolapply *a, struct pmem_map *map, uint64_t max, struct err *e);
uint64_t poolapply_done(const struct poolapply *a);

/* Read it all. REPL_E_IO: the device may have it another time; REPL_E_CORRUPT: the file is too
 * short. */
int poolapply_read(int fd, uint8_t *p, size_t len, uint64_t off, struct err *e);

#endif
