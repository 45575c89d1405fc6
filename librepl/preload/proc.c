/* SPDX-License-Identifier: BSD-3-Clause */
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_LEN (PATH_MAX + 128)

int
proc_lines(const char *file, void (*take)(void *, const char *), void *arg)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), why;
	char buf[LINE_MAX_LEN], *end;
	bool rest = false;
	size_t have = 0;
	ssize_t got = 0;

	while (fd >= 0 && (got = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		char *line = buf;

		have += (size_t)got;
		buf[have] = '\0';
		for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
			*end = '\0';
			if (!rest)
				take(arg, line);
			rest = false;
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have + 1);
		if (have < sizeof(buf) - 1)
			continue;
		if (!rest)
			take(arg, buf);
		rest = true;
		have = 0;
	}
	why = errno;
	if (fd >= 0)
		(void)close(fd);
	errno = why;
	return fd < 0 || got < 0 ? -1 : 0;
}

char
proc_state(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	char text[128], *end;
	ssize_t got;

	if (fd < 0)
		return 0;
	got = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[got > 0 ? got : 0] = '\0';
	/* Behind the program's name, in parentheses. */
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : 0;
}
