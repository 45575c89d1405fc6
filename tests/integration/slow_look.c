/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: to look for a file's next hole takes SLOW_LOOK
 * milliseconds at least, as on a disk where nobody has looked before.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT off_t
lseek(int fd, off_t off, int whence)
{
	off_t (*real)(int, off_t, int) = dlsym(RTLD_NEXT, "lseek");
	const char *text = getenv("SLOW_LOOK");
	long ms = text ? strtol(text, NULL, 10) : 0;
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	if (whence == SEEK_HOLE)
		(void)nanosleep(&pause, NULL);
	return real(fd, off, whence);
}
