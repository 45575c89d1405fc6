/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: fallocate(2) takes SLOW_SPACE milliseconds at least, as
 * where a file system has to write all of a file.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

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
