/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolparts - a pool that lies in the parts that a pool set file names: the
 * files of those parts, their making, their headers of PMDK's, their mapping.
 * The pool's bytes are those of the parts in their order, without the headers.
 *
 * Parts are named as pools are, relative to the pool directory or by a path that
 * begins with it, and like pools' names can't lead out of it or over a link.
 *
 * A part that is a directory stands for files in it, 000000.pmem and so on, that are
 * made as the pool needs them: poolparts_dir.c. Each REPLICA section of the set
 * file is a struct of its own behind that of the pool: a local replica, which
 * gets what the pool gets.
 */
#ifndef REPLD_POOLPARTS_H
#define REPLD_POOLPARTS_H

#include <sys/stat.h>

#include "pmdk.h"
#include "pmem.h"
#include "poolset.h"
#include "target.h"

#define POOLPARTS_FILES_MAX 1024U /* of one section */
#define POOLPARTS_ALIGN     4096U /* of the size of a pool in them */

struct poolpart {
	char name[TARGET_POOL_MAX + 1];
	unsigned number; /* of a file in a directory */
	uint64_t file_size;
	uint64_t off, len; /* what of the file is the pool's */
	int fd;            /* -1: not open */
};

struct pooldir {
	char name[TARGET_POOL_MAX + 1];
	uint64_t size; /* of all files in it, at most */
};

struct poolparts {
	enum poolset_headers headers;
	/*
	 * Of the pool's own: the headers link the sections with one another, so that PMDK opens the
	 * set on this machine, and the attributes are in the sidecar. A set of files without local
	 * replicas has them in its headers, which name the initiator's replicas.
	 */
	bool linked;
	unsigned replica;       /* 0: the pool itself; else a local replica */
	struct poolparts *next; /* the next local replica */
	int dirfd;              /* borrowed */
	unsigned dir_count;     /* 0: the parts are files */
	struct pooldir dir[POOLSET_PARTS_MAX];
	unsigned there; /* so many parts are made; those behind are on their way */
	unsigned count, room;
	struct poolpart *part;
	uint64_t size; /* of the pool that what is made can hold */
};

/* *begins: whether the file is small enough for a set file and begins as one. */
int poolparts_begins(int fd, const struct stat *st, const char *name, bool *begins, struct err *e);

/*
 * Read set file fd of that name and see where its parts are, beneath dirfd,
 * which is dir; no part is opened. REPL_E_INVAL and REPL_E_REFUSED name the line.
 */
int poolparts_read(int dirfd, const char *dir, int fd, const char *name, struct poolparts **out,
		   struct err *e);
void poolparts_free(struct poolparts *p); /* and close */

/* The size of the largest pool that each section can hold or, of directories, be made for. */
uint64_t poolparts_room(const struct poolparts *p);

/* That of what is made. */
uint64_t poolparts_held(const struct poolparts *p);

/*
 * Open all; of the local replicas only for writing. REPL_E_CORRUPT if one is missing, or one of a
 * local replica has another size than its line says.
 */
int poolparts_open(struct poolparts *p, const char *name, int flags, struct err *e);

/* REPL_E_CORRUPT if one of the pool's own, which are open, has not the size that is due. */
int poolparts_check_sizes(const struct poolparts *p, const char *name, struct err *e);

/* Another process has let the pool grow: open for reading what has come. */
int poolparts_follow(struct poolparts *p, const char *name, struct err *e);

/*
 * Of directories: plan the files that a pool of size bytes takes beside those that are there.
 * The first ones just hold it, later ones are all of one size. Nothing of a set of files.
 */
int poolparts_plan(struct poolparts *p, uint64_t size, struct err *e);

/* Give the directories what the set file gives them now, if it names the same ones as before. */
void poolparts_take_room(struct poolparts *p, const struct poolparts *now);

/* Give up what is planned and not made. */
void poolparts_unplan(struct poolparts *p);

/* Of directories: whether there are files in which a pool of size bytes has no byte. */
bool poolparts_added(const struct poolparts *p, uint64_t size);

/*
 * Remove the files in directories that a pool of size bytes has no byte in. REPL_E_CORRUPT if there
 * is anything but zeros in one.
 */
int poolparts_cut(struct poolparts *p, const char *name, uint64_t size, struct err *e);

/*
 * Files under temporary names, 0600, for all parts that are not there; filled, they have all their
 * space, synced and locked: nothing has its name yet. Call under the lock on names, as
 * poolparts_publish().
 */
struct poolparts_made;
int poolparts_make(struct poolparts *p, const char *name, struct poolparts_made **out,
		   struct err *e);
int poolparts_fill(struct poolparts_made *m, struct err *e);
int poolparts_sync(struct poolparts_made *m, struct err *e);

/* Give them their names, replacing nothing; after an error none has one. */
int poolparts_publish(struct poolparts_made *m, struct err *e);

/* Remove what has no name of its own yet. */
void poolparts_made_free(struct poolparts_made *m);

/* REPL_E_EXISTS if a part is there. */
int poolparts_absent(const struct poolparts *p, const char *name, struct err *e);

/* How many are there. */
unsigned poolparts_there(const struct poolparts *p);

/* Remove those that are there; also empty directories on their way. */
int poolparts_remove(const struct poolparts *p, const char *name, struct err *e);

/*
 * Attributes and headers, of parts that are open: poolparts_head.c. Getting them is REPL_E_CORRUPT
 * if a header is damaged or the headers do not belong together, REPL_E_REFUSED if one is another
 * pool's. kept: the attributes in the sidecar, of a linked set.
 */
int poolparts_attr_check(const struct poolparts *p, const uint8_t *attr, struct err *e);
int poolparts_attr_get(const struct poolparts *p, const uint8_t kept[PMDK_ATTR_SIZE],
		       uint8_t attr[PMDK_ATTR_SIZE], struct err *e);
int poolparts_attr_set(const struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE],
		       struct err *e);

/*
 * REPL_E_REFUSED if a part that is open is another pool's by its header. attr: what the sidecar
 * keeps; none: nobody can say.
 */
int poolparts_attr_foreign(const struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE],
			   struct err *e);

/*
 * The same of a linked set; and REPL_E_CORRUPT if a part is another one of its section or, for
 * writing, if the pool's own can't lead its local replicas, a header being damaged. Nothing is told
 * of parts that are too short.
 */
int poolparts_attr_own(const struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE], bool write,
		       struct err *e);

/*
 * Of a linked set that is open for writing: write headers anew that are damaged or linked
 * otherwise, whereupon *same becomes false: the sections may differ. Damage to the pool's own is
 * left to poolparts_attr_get().
 */
int poolparts_attr_mend(const struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE], bool *same,
			struct err *e);

/*
 * Before a program of this machine's takes the set, attr being in the sidecar: it is a linked one
 * from now on, and so are its headers, also one that an earlier try has left damaged.
 */
int poolparts_attr_link(struct poolparts *p, const uint8_t attr[PMDK_ATTR_SIZE], struct err *e);

/*
 * The first size bytes of the pool, with addresses for total, as pmem_map_new_at(); for writing
 * with the local replicas, as pmem_map_add_copy().
 */
int poolparts_map(const struct poolparts *p, const char *path, uint64_t size, uint64_t total,
		  bool write, struct pmem_map **out, struct err *e);

/* Map what is behind map's end up to size, as pmem_map_extend(). */
int poolparts_extend(const struct poolparts *p, struct pmem_map *map, uint64_t size, struct err *e);

/* ---- between the files of this module ---- */

/* Room for one more part in p; NULL: out of memory. Its fd is -1. */
struct poolpart *poolparts_add(struct poolparts *p);

/* What is in p's directories; into now, whose part is to be freed, also after an error. */
int poolparts_scan(struct poolparts *p, struct err *e);
int poolparts_scan_again(const struct poolparts *p, struct poolparts *now, struct err *e);

/*
 * Whether the temporary file leaf, at path from the pool directory, was to be one of the files that
 * a directory stands for.
 */
bool poolparts_is_temp(const char *path, const char *leaf);

#endif
