/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock - flock(2) with a bounded wait.
 *
 * The lock belongs to the open file, so it ends with the process that holds
 * it, however that dies. On a directory it guards the names in it.
 */
#ifndef REPLD_LOCK_H
#define REPLD_LOCK_H

#include <stdbool.h>

/* How long to wait for work on names, which is short, and for a writer that is just leaving. */
#define LOCK_NAMES_MS  5000U
#define LOCK_WRITER_MS 100U

/* True if the lock was had within timeout_ms (0: at once or not at all); else errno says why. */
bool lock_take(int fd, unsigned timeout_ms);        /* exclusive */
bool lock_take_shared(int fd, unsigned timeout_ms); /* beside other shared ones */
void lock_drop(int fd);

#endif
