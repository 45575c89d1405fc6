/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolpath - from a pool's name to files beneath the pool directory, and back.
 *
 * The only place that resolves names. No symbolic link is followed anywhere
 * below the pool directory, and nothing above it can be reached, but for the
 * devices of pooldevice.h.
 */
#ifndef REPLD_POOLPATH_H
#define REPLD_POOLPATH_H

#include <stdbool.h>
#include <sys/stat.h>

#include "err.h"
#include "sidecar.h"
#include "target.h"

/*
 * As openat(2), beneath dirfd and without links: a descriptor, or -1 and
 * errno, ELOOP for a link and EXDEV for a way out. It never blocks and never
 * takes a terminal. _by_hand is for kernels without openat2(2).
 */
int path_open(int dirfd, const char *path, int flags, mode_t mode);
int path_open_by_hand(int dirfd, const char *path, int flags, mode_t mode);

/*
 * The error of what is repld's own, as the pool directory itself: REPL_E_CONFIG where it is another
 * user's.
 */
int path_own_error(int errnum, const char *what, struct err *e);
#define PATH_OWN_HINT "is its file system mounted? this user must own it"

/* Where a pool is: its directory and the names of its two files in it. */
struct pool_place {
	int dir; /* -1: none */
	char leaf[TARGET_COMPONENT_MAX + 1];
	char sidecar[TARGET_COMPONENT_MAX + sizeof(SIDECAR_SUFFIX)];
};

/*
 * Check name and open its directory; make: make what is missing on the way,
 * 0700. NOT_FOUND without a directory, REFUSED over a link. On an error p->dir
 * is -1.
 */
int pool_place_open(int dirfd, const char *name, bool make, struct pool_place *p, struct err *e);
void pool_place_close(struct pool_place *p);

/* Of a directory that is open already: the names of a pool's files there. */
void pool_place_name(struct pool_place *p, const char *leaf);

/*
 * Whether what is there by this name, which has no sidecar, is no pool but a file of another one's,
 * which stands beside that: of a restore, of a program that uses it where it lies, or by which that
 * one tells something. owner gets the other one's name.
 */
bool pool_place_is_beside(const struct pool_place *p, const char *name,
			  char owner[TARGET_POOL_MAX + 1]);

/* Remove the directories on the way to name, from the last one on, as far as they are empty. */
void pool_place_prune(int dirfd, const char *name);

/*
 * Open a file of pool name for what flags say. What is no regular file is
 * not opened: pool_file_refuse(). An absent one is REPL_E_NOT_FOUND.
 */
int pool_file_open(const struct pool_place *p, const char *leaf, const char *name, int flags,
		   int *fd, struct stat *st, struct err *e);

/*
 * Leaf is no regular file: REPL_E_REFUSED. But REPL_E_IO if it is a link beside a sidecar, so one
 * to a device, and nothing is there, as after a boot.
 */
int pool_file_refuse(const struct pool_place *p, const char *leaf, const char *name, mode_t mode,
		     struct err *e);

/* "a directory", "a symbolic link", ... */
const char *file_kind(mode_t mode);

/* One file: dir is its directory, leaf its name there, name the way from the pool directory. */
typedef int pool_visit(void *ctx, int dir, const char *leaf, const char *name);

/*
 * Visit every regular file and link to a device-DAX device beneath dirfd, be it there or away, in
 * no order; it may be gone by then. Hidden directories are left out, other links not followed,
 * directories that can't be opened passed over. Ends with the first visit that does not return 0
 * and returns that.
 */
int pool_walk(int dirfd, pool_visit *visit, void *ctx, struct err *e);

#endif
