/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fileclaim - locks of flock(2), by which programs of this project keep apart. Those of fcntl(2)
 * are filelock's.
 */
#ifndef COMMON_FILECLAIM_H
#define COMMON_FILECLAIM_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "err.h"

/* LOCK_EX or LOCK_SH, soon. Where another one keeps it REPL_E_BUSY, "PATH is HELD". */
int fileclaim_take(int fd, int how, const char *path, const char *held, struct err *e);

/*
 * fstat(2), with the device that /proc/locks tells: the mount's. Where that is another than stat(2)
 * has, as of a file system with subvolumes, several files may have that device and one number.
 */
int fileclaim_stat(int fd, struct stat *file);

/*
 * Whether a line of /proc/locks, "7: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF", tells of one
 * on that file, and whose it is, 0 or less: of a process that is not seen from here.
 */
bool fileclaim_line(const char *line, const struct stat *file, pid_t *owner, bool *exclusive);

/*
 * Whether anybody has one, without taking it for a moment; false too where the system hides it, or
 * does not tell which file's it is.
 */
bool fileclaim_seen(const struct stat *file);

#endif
