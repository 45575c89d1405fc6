/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: while the file $SLOW_RENAME is there renameat2(2) takes as
 * many milliseconds as it says, as where a file system's journal is full.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags);

EXPORT int
renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	int (*real)(int, const char *, int, const char *, unsigned) = dlsym(RTLD_NEXT, "renameat2");
	const char *path = getenv("SLOW_RENAME");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[16] = "";
	struct timespec pause;
	long ms;

	if (fd >= 0) {
		(void)!read(fd, text, sizeof(text) - 1);
		(void)close(fd);
	}
	ms = strtol(text, NULL, 10);
	pause = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	(void)nanosleep(&pause, NULL);
	return real(from_at, from, to_at, to, flags);
}
