/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolparts - a pool that lies in the parts that a pool set file names: the
 * files of those parts, their making, their headers of PMDK's, their mapping.
 * The pool's bytes are those of the parts in their order, without the headers.
 *
 * Parts are named as pools are, relative to the pool directory or by a path that
 * begins with it, and like pools' names can't lead out of it or over a link.
 */
#ifndef REPLD_POOLPARTS_H
#define REPLD_POOLPARTS_H

#include <sys/stat.h>

#include "pmdk.h"
#include "pmem.h"
#include "poolset.h"
#include "target.h"

struct poolpart {
	char name[TARGET_POOL_MAX + 1];
	uint64_t file_size;
	uint64_t off, len; /* what of the file is the pool's */
	int fd;            /* -1: not open */
};

struct poolparts {
	enum poolset_headers headers;
	unsigned count;
	uint64_t size; /* of the pool that they can hold */
	struct poolpart part[POOLSET_PARTS_MAX];
};

/* Whether the file is small enough for a set file and begins as one. */
bool poolparts_begins(int fd, const struct stat *st);

/*
 * Read set file fd of that name and see where its parts are, beneath dirfd,
 * which is dir; no part is opened. REPL_E_INVAL and REPL_E_REFUSED name the line.
 */
int poolparts_read(int dirfd, const char *dir, int fd, const char *name, struct poolparts **out,
		   struct err *e);
void poolparts_free(struct poolparts *p); /* and close */

/* Open all. REPL_E_CORRUPT if one is missing or has another size than its line says. */
int poolparts_open(struct poolparts *p, int dirfd, const char *name, int flags, struct err *e);

/*
 * Files under temporary names, 0600, with all their space and with headers from
 * attr (NULL or all zero: none, for sets without headers), synced and locked:
 * nothing has its name yet. ask: the bytes that they are to hold, for the error.
 * Call under the lock on names, as poolparts_publish().
 */
struct poolparts_made;
int poolparts_make(struct poolparts *p, int dirfd, const char *name, struct poolparts_made **out,
		   struct err *e);
int poolparts_fill(struct poolparts_made *m, const uint8_t *attr, struct err *e);

/* Give them their names, replacing nothing; after an error none has one. */
int poolparts_publish(struct poolparts_made *m, struct err *e);

/* Remove what has no name of its own yet. */
void poolparts_made_free(struct poolparts_made *m);

/* REPL_E_EXISTS if a part is there. */
int poolparts_absent(const struct poolparts *p, int dirfd, const char *name, struct err *e);

/* Remove those that are there; also empty directories on their way. */
int poolparts_remove(const struct poolparts *p, int dirfd, const char *name, struct err *e);

/*
 * Attributes and headers, of parts that are open. Getting them is REPL_E_CORRUPT
 * if a header is damaged or the headers do not belong together.
 */
int poolparts_attr_check(const struct poolparts *p, const uint8_t *attr, struct err *e);
int poolparts_attr_get(const struct poolparts *p, uint8_t attr[PMDK_ATTR_SIZE], struct err *e);
int poolparts_attr_set(const struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE],
		       struct err *e);

/* The first size bytes of the pool, as pmem_map_new(). */
int poolparts_map(const struct poolparts *p, const char *path, uint64_t size, bool write,
		  struct pmem_map **out, struct err *e);

#endif
