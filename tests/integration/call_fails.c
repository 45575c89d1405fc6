/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others. With CALL_FAILS="fsync 2" the second fsync(2) of the
 * program fails as that of a failing device does, with "fsync 2-4" up to the fourth, and flock(2)
 * as where a file system's server is out of locks, rename(2) as over a mount point; "killed 1" is
 * killed at its first rename; "maps 1" is fopen(3) of /proc/thread-self/maps;
 * "object" and "array" are json-c's that find no memory.
 * With "stops 2" it is stopped at the second of its renames and fsyncs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static bool
fails(const char *call, int errnum)
{
	static unsigned count;
	const char *text = getenv("CALL_FAILS");
	char which[16];
	unsigned nth, last, now;
	int got = text ? sscanf(text, "%15s %u-%u", which, &nth, &last) : 0;

	if (got < 2 || strcmp(which, call) != 0)
		return false;
	now = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	if (now < nth || now > (got == 3 ? last : nth))
		return false;
	errno = errnum;
	return true;
}

EXPORT int
fsync(int fd)
{
	int (*real)(int) = dlsym(RTLD_NEXT, "fsync");

	if (fails("stops", 0))
		(void)raise(SIGSTOP);
	return fails("fsync", EIO) ? -1 : real(fd);
}

EXPORT ssize_t
pread(int fd, void *buf, size_t len, off_t off)
{
	ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");

	return fails("pread", EIO) ? -1 : real(fd, buf, len, off);
}

EXPORT ssize_t
pwritev(int fd, const struct iovec *iov, int count, off_t off)
{
	ssize_t (*real)(int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, "pwritev");

	return fails("pwritev", EIO) ? -1 : real(fd, iov, count, off);
}

EXPORT FILE *
fopen(const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");

	return strcmp(path, "/proc/thread-self/maps") == 0 && fails("maps", EMFILE)
		       ? NULL
		       : real(path, mode);
}

EXPORT int
rename(const char *from, const char *to)
{
	int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");

	if (fails("killed", 0))
		(void)raise(SIGKILL);
	if (fails("stops", 0))
		(void)raise(SIGSTOP);
	return fails("rename", EBUSY) ? -1 : real(from, to);
}

struct json_object;
EXPORT struct json_object *json_object_new_object(void);
EXPORT struct json_object *json_object_new_array(void);

EXPORT struct json_object *
json_object_new_object(void)
{
	struct json_object *(*real)(void) = dlsym(RTLD_NEXT, "json_object_new_object");

	return fails("object", ENOMEM) ? NULL : real();
}

EXPORT struct json_object *
json_object_new_array(void)
{
	struct json_object *(*real)(void) = dlsym(RTLD_NEXT, "json_object_new_array");

	return fails("array", ENOMEM) ? NULL : real();
}

EXPORT int
flock(int fd, int operation)
{
	int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");

	return fails("flock", ENOLCK) ? -1 : real(fd, operation);
}
