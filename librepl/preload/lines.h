/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines - how many lines may be told: some at once, and one more each while.
 *
 * A program may live for years. What goes wrong all the time must not fill its standard error, nor
 * may what did so once keep it silent for good. Pure: the time comes in. Any thread, and any signal
 * handler, may take one.
 */
#ifndef PRELOAD_LINES_H
#define PRELOAD_LINES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LINES_AT_ONCE 100U
#define LINES_NS      60000000000ULL

/* All zero: none was told. */
struct lines {
	_Atomic uint64_t all_ns; /* when all may be told at once again */
};

/* False: it is one too many. */
bool lines_take(struct lines *l, uint64_t now_ns);

#endif
