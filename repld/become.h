/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * become - repld serve, started by root, and the user that it becomes. The names of its log and of
 * its host key may lead through directories of that user, who must not lead root elsewhere by them.
 */
#ifndef REPLD_BECOME_H
#define REPLD_BECOME_H

#include <sys/types.h>

#include "conf.h"
#include "err.h"

struct become {
	uid_t uid;
	gid_t gid;
	char name[64]; /* that clients log in with */
};

/* Whom the process is to run as: user of repld.conf, or who it is. */
int become_whom(const struct conf *c, struct become *b, struct err *e);

/*
 * log_open() with the rights of that user. Root lends a hand in its own directories only: there it
 * makes the file, and gives it to the user.
 */
int become_log(const struct conf *c, struct err *e);

/* The process can't go back to root. Nothing to be done where it is not root's. */
int become_for_good(const struct become *b, struct err *e);

/*
 * The directory of an absolute path, and the name there, for openat(2) and its kind. Root gets a
 * descriptor by a way without links, else -1 and ELOOP; others get AT_FDCWD and the path as it is.
 */
int become_dir(const char *path, const char **name);
void become_dir_close(int dir);

/* openat(2) there, which does not block; by root not through a link either. */
int become_open(int dir, const char *name, int flags, mode_t mode);

#endif
