/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * holes - the segments of a pool that are holes both here and on the replica:
 * nobody needs to look at them. And the question for those of the replica.
 */
#ifndef LIBREPL_HOLES_H
#define LIBREPL_HOLES_H

#include <sys/stat.h>

#include "remote.h"

#define HOLES_SEGMENT (16U << 20)

struct holes {
	uint8_t *map; /* a bit a segment that is to be looked at; NULL: all are */
	uint64_t size;
	/* Called between looks and questions, so that the target hears; not 0 ends it. Or NULL. */
	int (*tell)(void *arg, struct err *e);
	void *arg;
};

/*
 * The local file, for its holes: -1 if path is NULL, can't be opened, or is not what is mapped at
 * addr from its beginning. Another file may have got the name meanwhile, whose holes say nothing.
 * Nor where the program has locked it, but for one that holes_close() has kept.
 */
int holes_open(const char *path, const void *addr);

/* It is kept for the next one, till holes_end(). -1 is allowed. */
void holes_close(int fd);

/*
 * Nobody looks at the file any more: those are closed, unless that would take a lock away. forked:
 * in the child of a fork, which has those of its parent.
 */
void holes_end(dev_t dev, ino_t ino, bool forked);

/* Whether that file is mapped there from its beginning. */
bool holes_mapped_at(const void *addr, const struct stat *st);

/*
 * The bytes of the file path that is mapped at addr from its beginning, where they are fewer than
 * size: within its last page the mapping does not tell. Else size.
 */
uint64_t holes_length_at(const char *path, const void *addr, uint64_t size);

/*
 * Find them; fd is the local file. Without one, or where it has no hole, the
 * target is not asked.
 */
int holes_find(struct holes *h, struct remote *remote, int fd, uint64_t size, struct err *e);
void holes_fini(struct holes *h);

/* The first segment from off, a segment's beginning, that is to be looked at; the size if none. */
uint64_t holes_next(const struct holes *h, uint64_t off);

/*
 * Whether the range holds nothing but zeros: its file was made anew, or its device. path as in
 * holes_open(); NULL: all of the range is looked at. False where a part can't be read.
 */
bool holes_blank(const char *path, const void *addr, uint64_t size);

/* Of a file that extents_fill() is true of: before the range is read in memory. REPL_E_NOMEM. */
int holes_touch(const uint8_t *mem, uint64_t off, uint64_t len, struct err *e);

/* What pool.extents is asked for. */
struct holes_asked {
	struct remote *remote;
	uint64_t size; /* of the pool */
	uint32_t grain;
	/* Called for each run of data of an answer; rounded outwards to the grain, below size. */
	void (*data)(void *arg, struct range data);
	void *arg;
};

/*
 * One answer: where the replica has data, from *off on, below the size and a multiple of the grain.
 * *off is where to go on, the size or more if there is nothing left; up to there all else is holes.
 */
int holes_ask(const struct holes_asked *a, uint64_t *off, struct err *e);

#endif
