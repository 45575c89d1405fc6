/* SPDX-License-Identifier: BSD-3-Clause */
#include "filelock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procself.h"

#define ENTRIES_MAX 4096U
#define INFO_MAX    4096U

/* What can't be looked at for want of a descriptor or of memory may be one: it is not taken away.
 */
static bool
may_be_one(int errnum)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM;
}

/*
 * /proc/locks would tell at once, but a reader of it waits for an RCU grace period, 10 to 30 ms,
 * and meanwhile each lock(2) of the machine waits for him.
 */
static bool
info_has_lock(const char *number)
{
	char path[64], buf[INFO_MAX];
	size_t have = 0;
	ssize_t got;
	int fd;

	(void)snprintf(path, sizeof(path), PROCSELF "/fdinfo/%.20s", number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return may_be_one(errno);
	while (have < sizeof(buf) - 1 && (got = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0)
		have += (size_t)got;
	(void)close(fd);
	buf[have] = '\0';
	return strstr(buf, "POSIX") != NULL || have == sizeof(buf) - 1;
}

static bool
entry_says(const char *number, const struct stat *st)
{
	struct stat seen;
	char *end;
	long fd = strtol(number, &end, 10);

	return end != number && fd >= 0 && fd <= INT_MAX && fstat((int)fd, &seen) == 0 &&
	       seen.st_ino == st->st_ino && seen.st_dev == st->st_dev && info_has_lock(number);
}

/* Each lock is one of a descriptor that is open. No malloc(3): a signal handler may have called. */
bool
filelock_ours(const struct stat *st)
{
	_Alignas(struct dirent64) char buf[ENTRIES_MAX];
	int fd = open(PROCSELF "/fd", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	bool found = false;
	ssize_t got;

	if (fd < 0)
		return may_be_one(errno);
	while (!found && (got = getdents64(fd, buf, sizeof(buf))) > 0) {
		for (ssize_t at = 0; at < got && !found;) {
			const struct dirent64 *entry = (const struct dirent64 *)(buf + at);

			found = entry_says(entry->d_name, st);
			at += entry->d_reclen;
		}
	}
	(void)close(fd);
	return found;
}

/* A lock of the description's own is in the way of a POSIX one of whichever process. */
bool
filelock_seen(int fd)
{
	struct flock lock = {.l_type = F_WRLCK};
	struct stat st;

	if (fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK)
		return false;
	return fstat(fd, &st) == 0 && filelock_ours(&st);
}

void
filelock_close(int fd)
{
	if (fd >= 0 && !filelock_seen(fd))
		(void)close(fd);
}
