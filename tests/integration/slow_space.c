/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: fallocate(2) takes SLOW_SPACE milliseconds at least, as
 * where a file system has to write all of a file, and copy_file_range(2) SLOW_COPY; with that set
 * no file becomes another's clone. fsync(2) waits while there is a file of the name SLOW_SYNC, and
 * makes one of that name and ".met"; with SLOW_SYNC_OF only of what has a name that ends so. What
 * takes space behind the first 64 KiB of a file, by fallocate(2) or pwrite(2), waits while there is
 * a file of the name SPACE_GATE.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define GATED  65536

EXPORT int fallocate(int fd, int mode, off_t off, off_t len);
EXPORT ssize_t pwrite(int fd, const void *p, size_t len, off_t off);
EXPORT ssize_t copy_file_range(int in, off_t *in_off, int out, off_t *out_off, size_t len,
			       unsigned flags);
EXPORT int ioctl(int fd, unsigned long request, ...);

/* Milliseconds. */
static void
pause_for(const char *variable)
{
	const char *text = getenv(variable);
	long ms = text ? strtol(text, NULL, 10) : 0;
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	(void)nanosleep(&pause, NULL);
}

static void
gate_wait(off_t off)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	const char *gate = off > GATED ? getenv("SPACE_GATE") : NULL;

	while (gate && access(gate, F_OK) == 0)
		(void)nanosleep(&pause, NULL);
}

EXPORT ssize_t
pwrite(int fd, const void *p, size_t len, off_t off)
{
	ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");

	gate_wait(off);
	return real(fd, p, len, off);
}

EXPORT int
fallocate(int fd, int mode, off_t off, off_t len)
{
	int (*real)(int, int, off_t, off_t) = dlsym(RTLD_NEXT, "fallocate");

	pause_for("SLOW_SPACE");
	gate_wait(off);
	return real(fd, mode, off, len);
}

EXPORT ssize_t
copy_file_range(int in, off_t *in_off, int out, off_t *out_off, size_t len, unsigned flags)
{
	ssize_t (*real)(int, off_t *, int, off_t *, size_t, unsigned) =
		dlsym(RTLD_NEXT, "copy_file_range");

	pause_for("SLOW_COPY");
	return real(in, in_off, out, out_off, len, flags);
}

EXPORT int
ioctl(int fd, unsigned long request, ...)
{
	int (*real)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (request == FICLONE && getenv("SLOW_COPY")) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return real(fd, request, arg);
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
