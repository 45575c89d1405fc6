/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolstore - what pool.c (open, look), poolmake.c (create, remove) and
 * poolgrow.c share.
 */
#ifndef REPLD_POOLSTORE_H
#define REPLD_POOLSTORE_H

#include "pool.h"
#include "poolpath.h"

struct pool_store {
	int dirfd; /* its lock guards names: making, removing, cleaning up */
	char *dir;
};

/* The two files of a pool, open. */
struct pool_files {
	int fd;
	int sidecar_fd;
	struct stat st; /* of the pool's own file */
};

struct pool {
	struct pool_files files;
	bool write;
	char *path;
	struct pool_info info;
};

/* Whether what the file has from off to size reads as zeros. */
bool pool_rest_is_zero(int fd, uint64_t off, uint64_t size);

/* Take the lock on names, with a bounded wait; REPL_E_BUSY. lock_drop(s->dirfd) ends it. */
int pool_store_lock(struct pool_store *s, const char *name, struct err *e);

/* The error of who finds the writer lock taken: names the holder. */
int pool_busy(int sidecar_fd, const char *name, struct err *e);

/* Remove what killed creations have left, if the lock on names is free. */
void pool_make_clean(struct pool_store *s);

#endif
