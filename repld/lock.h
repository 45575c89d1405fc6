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

/*
 * How long to wait for work on names, which is short, for a writer that is just leaving, for one
 * that is not on record yet, and for a reader that brings in what a dead writer has left.
 */
#define LOCK_NAMES_MS    5000U
#define LOCK_WRITER_MS   100U
#define LOCK_ENTERING_MS 1000U
#define LOCK_READER_MS   2000U

/* True if the lock was had within timeout_ms (0: at once or not at all); else errno says why. */
bool lock_take(int fd, unsigned timeout_ms);        /* exclusive */
bool lock_take_shared(int fd, unsigned timeout_ms); /* beside other shared ones */
void lock_drop(int fd);

/*
 * lock_take() of a sidecar, open for writing, by who is going to put himself on record there. Until
 * lock_entered() what stands there is of the holder before, and lock_look() tells.
 */
bool lock_enter(int fd, unsigned timeout_ms);
void lock_entered(int fd);

/*
 * True if whoever has the lock of that sidecar is on record, and nobody else gets it before
 * lock_look_end(); also where there are no such locks. Waits for a moment.
 */
bool lock_look(int fd);
void lock_look_end(int fd);

#endif
