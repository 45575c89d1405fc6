/* SPDX-License-Identifier: BSD-3-Clause */
/* tempdir - a directory for one test, gone with all that is in it afterwards. */
#ifndef TESTS_TEMPDIR_H
#define TESTS_TEMPDIR_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEMPDIR_MAX 64

static inline int
tempdir_unlink(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static inline void
tempdir_free(const char *dir)
{
	(void)nftw(dir, tempdir_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* In memory where there is such a place, as most tests want, or on disk. */
static inline int
tempdir_new(char dir[TEMPDIR_MAX], int on_disk)
{
	const char *base = !on_disk && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

	(void)snprintf(dir, TEMPDIR_MAX, "%s/repl-test-XXXXXX", base);
	return mkdtemp(dir) ? 0 : -1;
}

#endif
