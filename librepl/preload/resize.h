/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resize - calls that change a file's size, be it a pool's: what was flushed of that and goes is on
 * the replicas before, and these follow.
 */
#ifndef PRELOAD_RESIZE_H
#define PRELOAD_RESIZE_H

#include <sys/stat.h>
#include <sys/types.h>

/*
 * The call, after which a file that was like before may have len bytes. What it returns, and its
 * errno.
 */
int resize_by(const struct stat *before, off_t len, int (*call)(const void *), const void *arg);

/* It has been done: the file has that size now. */
void resized(const struct stat *before, off_t len);

/* The file's size, or the one before: of fd, or where that is -1 of path, which begins at dir. */
off_t resize_left(const struct stat *before, int fd, int dir, const char *path);

#endif
