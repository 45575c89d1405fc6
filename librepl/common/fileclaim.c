/* SPDX-License-Identifier: BSD-3-Clause */
#include "fileclaim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <time.h>

#define LOOKS   4
#define LOOK_NS 5000000 /* between them */

int
fileclaim_take(int fd, int how, const char *path, const char *held, struct err *e)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};

	/* Who only looks whether it is held has it for a moment, too. */
	for (unsigned i = 0; i < LOOKS; i++) {
		if (flock(fd, how | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			break;
		if (i + 1 < LOOKS)
			(void)nanosleep(&pause, NULL);
		errno = EWOULDBLOCK;
	}
	if (errno == EWOULDBLOCK)
		return err_set(e, REPL_E_BUSY, "%s is %s", path, held);
	return err_errno(e, err_from_errno(errno), errno, "locking %s", path);
}

bool
fileclaim_line(const char *line, const struct stat *file, bool exact, pid_t *owner, bool *exclusive)
{
	unsigned dev_major, dev_minor;
	unsigned long ino;
	char mode[8];

	if (sscanf(line, "%*u: FLOCK ADVISORY %7s %d %x:%x:%lu", mode, owner, &dev_major,
		   &dev_minor, &ino) != 5)
		return false;
	*exclusive = strcmp(mode, "WRITE") == 0;
	return ino == file->st_ino && dev_major == major(file->st_dev) &&
	       (dev_minor == minor(file->st_dev) || (dev_major == 0 && !exact));
}

bool
fileclaim_seen(const struct stat *file)
{
	FILE *f = fopen("/proc/locks", "re");
	bool seen = false, exclusive;
	char *line = NULL;
	size_t room = 0;
	pid_t owner;

	if (!f)
		return false;
	while (!seen && getline(&line, &room, f) > 0)
		seen = fileclaim_line(line, file, true, &owner, &exclusive);
	free(line);
	(void)fclose(f);
	return seen;
}
