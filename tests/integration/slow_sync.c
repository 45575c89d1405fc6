/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: while the file $SLOW_SYNC is there fdatasync(2) takes as
 * many milliseconds as it says, as where a disk stalls.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int
fdatasync(int fd)
{
	int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
	const char *path = getenv("SLOW_SYNC");
	int says = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[16] = "";
	struct timespec pause;
	long ms;

	if (says >= 0) {
		(void)!read(says, text, sizeof(text) - 1);
		(void)close(says);
	}
	ms = strtol(text, NULL, 10);
	pause = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	(void)nanosleep(&pause, NULL);
	return real(fd);
}
