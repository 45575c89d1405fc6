/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fileclaim - locks of flock(2), by which programs of this project keep apart. Those of fcntl(2)
 * are filelock's.
 */
#ifndef COMMON_FILECLAIM_H
#define COMMON_FILECLAIM_H

#include "err.h"

/* LOCK_EX or LOCK_SH, soon. Where another one keeps it REPL_E_BUSY, "PATH is HELD". */
int fileclaim_take(int fd, int how, const char *path, const char *held, struct err *e);

#endif
