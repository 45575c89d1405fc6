/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: the wall clock of each process begins with what the file of
 * WRONG_CLOCK holds, seconds since 1970 in text, and steps when that changes. What measures time is
 * left alone.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static struct timespec begin;

__attribute__((constructor)) static void
begin_now(void)
{
	(void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begin);
}

static struct timespec
wrong(void)
{
	const char *path = getenv("WRONG_CLOCK");
	char text[32] = "";
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
	struct timespec now;

	(void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	if (fd >= 0) {
		(void)!read(fd, text, sizeof(text) - 1);
		(void)syscall(SYS_close, fd);
	}
	now.tv_sec += strtoll(text, NULL, 10) - begin.tv_sec;
	now.tv_nsec -= begin.tv_nsec;
	if (now.tv_nsec < 0) {
		now.tv_nsec += 1000000000;
		now.tv_sec--;
	}
	return now;
}

__attribute__((visibility("default"))) int
clock_gettime(clockid_t clock, struct timespec *t)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
		return (int)syscall(SYS_clock_gettime, clock, t);
	*t = wrong();
	return 0;
}

__attribute__((visibility("default"))) time_t
time(time_t *out)
{
	time_t now = wrong().tv_sec;

	if (out)
		*out = now;
	return now;
}

__attribute__((visibility("default"))) int
gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now = wrong();

	(void)zone;
	*t = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
	return 0;
}
