/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * holes - the segments of a pool that are holes both here and on the replica:
 * nobody needs to look at them.
 */
#ifndef LIBREPL_HOLES_H
#define LIBREPL_HOLES_H

#include "remote.h"

#define HOLES_SEGMENT (16U << 20)

struct holes {
	uint8_t *map; /* a bit a segment that is to be looked at; NULL: all are */
	uint64_t size;
	/* Called between questions; not 0 ends it. May be NULL. */
	int (*tell)(void *arg, struct err *e);
	void *arg;
};

/*
 * The local file, for its holes: -1 if path is NULL, can't be opened, or is not what is mapped at
 * addr from its beginning. Another file may have got the name meanwhile, whose holes say nothing.
 * Nor where the program has locked it; for filelock_close().
 */
int holes_open(const char *path, const void *addr);

/*
 * Find them; fd is the local file. Without one, or where it has no hole, the
 * target is not asked.
 */
int holes_find(struct holes *h, struct remote *remote, int fd, uint64_t size, struct err *e);
void holes_fini(struct holes *h);

/* The first segment from off, a segment's beginning, that is to be looked at; the size if none. */
uint64_t holes_next(const struct holes *h, uint64_t off);

#endif
