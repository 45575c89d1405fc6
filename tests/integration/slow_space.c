/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: fallocate(2) takes SLOW_SPACE milliseconds at least, as
 * where a file system has to write all of a file. fsync(2) waits while there is a file of the name
 * SLOW_SYNC, and makes one of that name and ".met"; with SLOW_SYNC_OF only of what has a name that
 * ends so.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int fallocate(int fd, int mode, off_t off, off_t len);

EXPORT int
fallocate(int fd, int mode, off_t off, off_t len)
{
	int (*real)(int, int, off_t, off_t) = dlsym(RTLD_NEXT, "fallocate");
	const char *text = getenv("SLOW_SPACE");
	long ms = text ? strtol(text, NULL, 10) : 0;
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	(void)nanosleep(&pause, NULL);
	return real(fd, mode, off, len);
}

static bool
is_slow(int fd)
{
	const char *end = getenv("SLOW_SYNC_OF");
	char path[64], name[4096];
	size_t len = end ? strlen(end) : 0;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = len ? readlink(path, name, sizeof(name)) : 0;
	return !len || (n >= (ssize_t)len && memcmp(name + n - len, end, len) == 0);
}

EXPORT int
fsync(int fd)
{
	int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
	const struct timespec pause = {.tv_nsec = 10000000};
	const char *gate = is_slow(fd) ? getenv("SLOW_SYNC") : NULL;
	char met[4096];

	for (int told = 0; gate && access(gate, F_OK) == 0; told = 1) {
		(void)snprintf(met, sizeof(met), "%s.met", gate);
		if (!told)
			(void)close(open(met, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		(void)nanosleep(&pause, NULL);
	}
	return real(fd);
}
