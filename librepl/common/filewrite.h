/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filewrite - bytes into a file of the library's own, in a thread of the program's. Beyond the
 * limit that the program may have set for the size of files (RLIMIT_FSIZE) the kernel ends it by
 * SIGXFSZ; here that is EFBIG and nothing else.
 */
#ifndef COMMON_FILEWRITE_H
#define COMMON_FILEWRITE_H

#include <stddef.h>
#include <sys/types.h>

/* All of it: 0, or -1 with errno. */
int filewrite_all(int fd, const void *buf, size_t len, off_t off);

/* Files in this directory take no write(2), only mappings: the name of its file system, else NULL.
 */
const char *filewrite_unable(const char *dir);

/* posix_fallocate(3): 0 or an errno. */
int filewrite_allocate(int fd, off_t off, off_t len);

/* Of a log, which may be a pipe: one that can't be written is lost, and that is all. */
void filewrite_line(int fd, const char *line, size_t len);

#endif
