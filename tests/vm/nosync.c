/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nosync - preloaded into repld it makes syncs do nothing while the file that
 * NOSYNC names is there, so that a power cut has something to take.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int
dropped(void)
{
	const char *path = getenv("NOSYNC");

	return path && access(path, F_OK) == 0;
}

EXPORT int
msync(void *addr, size_t len, int flags)
{
	int (*real)(void *, size_t, int) = dlsym(RTLD_NEXT, "msync");

	return dropped() ? 0 : real(addr, len, flags);
}

EXPORT int
fdatasync(int fd)
{
	int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");

	return dropped() ? 0 : real(fd);
}
