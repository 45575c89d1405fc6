/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * damaged - which replicas this thread has found damaged when it opened them last.
 *
 * pmempool sync, of whose replicas a whole one is there, makes a damaged one anew. It
 * removes that first by running rpmemd on the target, which is not there: so what
 * this thread has found damaged is removed by the library, for libpmempool and nobody else.
 */
#ifndef LIBREPL_COMPAT_DAMAGED_H
#define LIBREPL_COMPAT_DAMAGED_H

#include <stdbool.h>

#define TARGET_MAX 768U

/* Of more than 16 that are, in all threads, the one that was found first is forgotten. */
void damaged_note(const char *target, bool is);

bool damaged_is(const char *target);

#endif
