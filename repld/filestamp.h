/* SPDX-License-Identifier: BSD-3-Clause */
/* filestamp - whether a file that is read anew for each login is another one than before. */
#ifndef REPLD_FILESTAMP_H
#define REPLD_FILESTAMP_H

#include <stdbool.h>
#include <sys/stat.h>

/* Which file it was, and as of when; zero: none yet. */
struct filestamp {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec modified, changed;
};

/* Whether there is a file, and another one than stamp tells; it does so from then on. */
bool filestamp_changed(const char *path, struct filestamp *stamp);

#endif
