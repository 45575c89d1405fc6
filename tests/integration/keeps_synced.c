/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: what msync(2) makes durable of the file $SYNCED is copied
 * to $SYNCED.media, which has of it what a power cut would leave at least. With SYNCED_ENDS=N the
 * program is killed as soon as something in the page at byte N of that is not zero.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef long call(long number, ...);

static call *
real_syscall(void)
{
	return (call *)dlsym(RTLD_NEXT, "syscall");
}

static void
part_keep(int media, const char *line, uintptr_t at, uintptr_t end)
{
	uintptr_t from, to;
	uint64_t off;
	int path = 0;

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*4s %" SCNx64 " %*s %*u %n", &from, &to, &off,
		   &path) != 3 ||
	    strcmp(line + path, getenv("SYNCED")) != 0)
		return;
	at = at > from ? at : from;
	end = end < to ? end : to;
	if (at < end && pwrite(media, (const void *)at, end - at, (off_t)(off + (at - from))) < 0)
		abort();
}

static void
page_ends(int media)
{
	const char *ends = getenv("SYNCED_ENDS");
	char page[4096] = "";

	if (ends && pread(media, page, sizeof(page), strtol(ends, NULL, 10)) > 0 &&
	    (page[0] != 0 || memcmp(page, page + 1, sizeof(page) - 1) != 0))
		(void)kill(getpid(), SIGKILL);
}

static void
range_keep(const void *addr, size_t len)
{
	const char *synced = getenv("SYNCED");
	char name[4096], *line = NULL;
	size_t room = 0;
	ssize_t got;
	int saved = errno, media;
	FILE *f;

	if (!synced)
		return;
	(void)snprintf(name, sizeof(name), "%s.media", synced);
	media = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	f = fopen("/proc/self/maps", "re");
	if (media < 0 || !f)
		abort();
	while ((got = getline(&line, &room, f)) > 0) {
		line[got - 1] = '\0';
		part_keep(media, line, (uintptr_t)addr, (uintptr_t)addr + len);
	}
	free(line);
	(void)fclose(f);
	page_ends(media);
	(void)close(media);
	errno = saved;
}

EXPORT int
msync(void *addr, size_t len, int flags)
{
	long rc = real_syscall()(SYS_msync, addr, len, flags);

	if (rc == 0)
		range_keep(addr, len);
	return (int)rc;
}

EXPORT long
syscall(long number, ...)
{
	long a[6], rc;
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	rc = real_syscall()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (rc == 0 && number == SYS_msync)
		range_keep((const void *)a[0], (size_t)a[1]);
	return rc;
}
