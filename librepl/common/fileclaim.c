/* SPDX-License-Identifier: BSD-3-Clause */
#include "fileclaim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "procself.h"

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

/* False: nobody tells. */
static bool
mount_device(int fd, dev_t *dev)
{
	unsigned dev_major, dev_minor;
	unsigned long long mount;
	bool found = false;
	char *line = NULL;
	struct statx x;
	size_t room = 0;
	FILE *f;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) != 0 || !(x.stx_mask & STATX_MNT_ID))
		return false;
	f = fopen(PROCSELF "/mountinfo", "re");
	if (!f)
		return false;
	while (!found && getline(&line, &room, f) > 0)
		found = sscanf(line, "%llu %*d %u:%u", &mount, &dev_major, &dev_minor) == 3 &&
			mount == x.stx_mnt_id;
	free(line);
	(void)fclose(f);
	if (found)
		*dev = makedev(dev_major, dev_minor);
	return found;
}

int
fileclaim_stat(int fd, struct stat *file)
{
	if (fstat(fd, file) != 0)
		return -1;
	(void)mount_device(fd, &file->st_dev);
	return 0;
}

bool
fileclaim_line(const char *line, const struct stat *file, pid_t *owner, bool *exclusive)
{
	unsigned dev_major, dev_minor;
	unsigned long ino;
	char mode[8];

	if (sscanf(line, "%*u: FLOCK ADVISORY %7s %d %x:%x:%lu", mode, owner, &dev_major,
		   &dev_minor, &ino) != 5)
		return false;
	*exclusive = strcmp(mode, "WRITE") == 0;
	return ino == file->st_ino && dev_major == major(file->st_dev) &&
	       dev_minor == minor(file->st_dev);
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
		seen = fileclaim_line(line, file, &owner, &exclusive);
	free(line);
	(void)fclose(f);
	return seen;
}
