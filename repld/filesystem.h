/* SPDX-License-Identifier: BSD-3-Clause */
/* filesystem - what an open file lies on, as a word; and its sync. */
#ifndef REPLD_FILESYSTEM_H
#define REPLD_FILESYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "pagecache.h"

#define FILESYSTEM_NAME_MAX 32

/* "ext4", "tmpfs", "xfs-dax", "devdax", ...; the magic number for an unknown one. */
void filesystem_name(int fd, char *out, size_t size);

/*
 * Files there may have blocks in common, and what is stored in one of those takes space. Not of
 * DAX, where it is dear to ask for it with each store.
 */
bool filesystem_shares(int fd);

/*
 * Another open file description of the same file, or -1. The kernel tells each of them an error
 * once: who syncs by one of its own hears of what it has lost, whoever else has been told.
 */
int filesystem_again(int fd, int flags);

/*
 * Have the page cache agree with media again, of a file that is synced before and behind: pages
 * that a failed sync has left clean and not on media stay there for as long as somebody maps them.
 * *bytes counts what differed. Does nothing where media can't be read past the cache.
 */
int filesystem_agree(int fd, enum pagecache_right right, uint64_t *bytes, struct err *e);

/* fsync(2) by one of its own: the error may be for what another thread has written. */
int filesystem_sync(int fd);

#endif
