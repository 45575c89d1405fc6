/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: pwrite(2) beyond QUOTA bytes of a pool's sidecar fails as
 * where its user has a quota, of which the file system's free space says nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int
is_sidecar(int fd)
{
	char link[32], name[4096];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name));
	return n > 5 && memcmp(name + n - 5, ".repl", 5) == 0;
}

EXPORT ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
	ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
	const char *quota = getenv("QUOTA");

	if (!quota || off + (off_t)len <= strtol(quota, NULL, 10) || !is_sidecar(fd))
		return real(fd, buf, len, off);
	errno = EDQUOT;
	return -1;
}
