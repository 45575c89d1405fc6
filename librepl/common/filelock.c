/* SPDX-License-Identifier: BSD-3-Clause */
#include "filelock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINES_MAX 4096U

/* Of the inode alone: of device numbers some file systems give two. */
static bool
line_says(const char *line, const struct stat *st)
{
	char kind[16];
	uint64_t ino;
	int pid;

	return sscanf(line, "%*s %15s %*s %*s %d %*[^:]:%*[^:]:%" SCNu64, kind, &pid, &ino) == 3 &&
	       strcmp(kind, "POSIX") == 0 && pid == getpid() && ino == st->st_ino;
}

/* By read(2), since a signal handler may have called. */
bool
filelock_ours(const struct stat *st)
{
	int fd = open("/proc/locks", O_RDONLY | O_CLOEXEC);
	char buf[LINES_MAX], *end;
	size_t have = 0;
	ssize_t got;
	bool found = false;

	while (fd >= 0 && !found && have < sizeof(buf) - 1 &&
	       (got = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		char *line = buf;

		have += (size_t)got;
		buf[have] = '\0';
		for (; !found && (end = strchr(line, '\n')) != NULL; line = end + 1) {
			*end = '\0';
			found = line_says(line, st);
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
	}
	if (fd >= 0)
		(void)close(fd);
	return found;
}

void
filelock_close(int fd)
{
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || !filelock_ours(&st)))
		(void)close(fd);
}
