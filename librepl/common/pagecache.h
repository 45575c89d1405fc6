/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pagecache - memory of a file that differs from what media have of it. What a sync has failed to
 * write is clean in the page cache: it is not written again, a later sync succeeds, and whoever
 * reads or maps the file finds it there, for as long as nobody needs the memory.
 */
#ifndef COMMON_PAGECACHE_H
#define COMMON_PAGECACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/* A file's pages are those of the device itself. */
bool pagecache_is_dax(int fd);

/* Or they have no device. */
bool pagecache_in_memory(int fd);

/* Whose bytes stay where they differ. Of those of either what differs is only counted. */
enum pagecache_right {
	PAGECACHE_MEDIA,
	PAGECACHE_MEMORY,
	PAGECACHE_EITHER,
};

struct pagecache {
	int fd;          /* of the file, for reading */
	int direct;      /* pagecache_open() */
	const void *map; /* the file, from its first byte on; it is not read */
	uint64_t size;   /* to be looked at: all of the file, or whole pages of it */
	enum pagecache_right right;
};

/*
 * *direct is another open file description of the file that passes its page cache, or -1 where
 * there is none to be passed, or the file system, or the device below it, does not let it.
 */
int pagecache_open(int fd, int *direct, struct err *e);

/*
 * Have memory agree with media, of a file that is synced; *bytes counts what differed. Where media
 * or memory are right nobody stores to it meanwhile: a store to a page that is written past the
 * cache may be lost. Where memory is right, and that is seen in time, it is REPL_E_FAILED; and it
 * keeps what media do not take. The caller syncs it behind that: what is written so may be in the
 * device's. With PAGECACHE_EITHER not all of a file that is stored to everywhere is looked at, and
 * some of the rest then counts.
 */
int pagecache_agree(const struct pagecache *c, uint64_t *bytes, struct err *e);

#endif
