/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * statussock - the listening unix socket of a handle: made, found again, removed.
 *
 * It is made under another name and moved into its place, so that nobody ever
 * meets one with the wrong mode, and a path of any length can be used.
 */
#ifndef LIBREPL_STATUSSOCK_H
#define LIBREPL_STATUSSOCK_H

#include <sys/types.h>

#include "err.h"

#define STATUSSOCK_SUFFIX ".repl-sock"

struct statussock {
	int fd, dir; /* -1: none */
	dev_t dev;
	ino_t ino;
	char *name; /* in dir */
};

void statussock_init(struct statussock *s);

/*
 * Listen at path, mode 0600. A socket there that nobody listens on is replaced;
 * one in use is REPL_E_BUSY, and what is no socket REPL_E_EXISTS.
 */
int statussock_open(struct statussock *s, const char *path, struct err *e);

/* Close, and remove the socket if it is still this one. */
void statussock_close(struct statussock *s);

/* In the child of a fork: the socket stays the parent's. Nothing is freed: the heap may be locked.
 */
void statussock_abandon(struct statussock *s);

/* Connect to the socket at path: a descriptor (close-on-exec), or negative with e filled. */
int statussock_connect(const char *path, struct err *e);

#endif
