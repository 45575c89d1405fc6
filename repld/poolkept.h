/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolkept - the messages of a resync journal that an earlier session has left, one after the
 * other: docs/POOL-FORMAT.md, section 1.7. Nothing is believed of them but what is read here, and
 * that may be anything: whoever goes on with them looks at what they bring.
 */
#ifndef REPLD_POOLKEPT_H
#define REPLD_POOLKEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "wire.h"

struct poolkept;

/*
 * They begin at off of fd, which is borrowed, and have room for bytes. From now on they are of
 * epoch.
 */
int poolkept_new(int fd, uint64_t off, uint64_t bytes, uint32_t epoch, struct poolkept **out,
		 struct err *e);
void poolkept_free(struct poolkept *k);

/*
 * The next one: whole, of a pool of that size, in the file as one of the epoch. *v is valid until
 * the next call, and wire_commit_message() gives what is in the file by then. False: here they end.
 */
bool poolkept_next(struct poolkept *k, uint64_t pool_size, struct wire_commit_view *v);

#endif
