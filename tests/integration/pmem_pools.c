/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmem_pools MODE FILE: what is done to one of two pools, FILE and FILE.2, holds up nobody who uses
 * the other one.
 *
 *   forks   a child is made when FILE.go is there: FILE.2 is being opened, again, at a target that
 *           does not answer
 *   serves  children use them, which their parent has open; the target of FILE is stopped before
 *           FILE.go is there, until it says "on"
 *   closes  one of FILE's targets has stopped when FILE.go is there, and does not get what is made
 *           durable last, before FILE is unmapped
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpmem.h>

#include "check.h"

#define SIZE   (1UL << 20)
#define LONG_S 3U /* that no call takes, be the machine busy */

static atomic_bool stop;

static uint64_t
now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static char *
map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	char *at;

	check(fd >= 0 && ftruncate(fd, SIZE) == 0, path);
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(at != MAP_FAILED, path);
	return at;
}

static const char *
name(const char *path, const char *suffix)
{
	static char all[4096];

	check(snprintf(all, sizeof(all), "%s%s", path, suffix) < (int)sizeof(all), path);
	return all;
}

static void
file_wait(const char *path)
{
	while (access(path, F_OK) != 0)
		(void)usleep(10000);
}

static void *
put(void *at)
{
	memset(at, 'p', 100);
	pmem_persist(at, 100);
	return NULL;
}

/* Returns how long the longest call has taken. */
static void *
put_often(void *at)
{
	uint64_t longest = 0, begin, took;

	while (!atomic_load(&stop)) {
		begin = now_ns();
		(void)put(at);
		took = now_ns() - begin;
		longest = took > longest ? took : longest;
		(void)usleep(1000);
	}
	return (void *)(uintptr_t)longest;
}

static void
child_make(void)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(0);
	check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child");
}

static int
forks(const char *path, char *first, char *second)
{
	pthread_t opener, putter;
	void *longest;

	check(pthread_create(&opener, NULL, put_often, second) == 0, "pthread_create");
	check(pthread_create(&putter, NULL, put_often, first) == 0, "pthread_create");
	file_wait(name(path, ".go"));
	child_make();
	atomic_store(&stop, true);
	(void)pthread_join(putter, &longest);
	(void)pthread_join(opener, NULL);
	(void)printf("%llu ms\n", (unsigned long long)((uintptr_t)longest / 1000000));
	return (uintptr_t)longest / 1000000000 < LONG_S ? 0 : 1;
}

static pid_t
put_by_child(const char *path, char *at, unsigned later_us)
{
	pid_t child = fork();
	uint64_t begin;

	check(child >= 0, "fork");
	if (child > 0)
		return child;
	file_wait(name(path, ".go"));
	(void)usleep(later_us);
	begin = now_ns();
	(void)alarm(40);
	(void)put(at);
	_exit((now_ns() - begin) / 1000000000 < LONG_S ? 0 : 1);
}

/* The one that takes its time has been asked when the other one is. */
static int
serves(const char *path, char *first, char *second)
{
	pid_t slow = put_by_child(path, first, 0), quick = put_by_child(path, second, 500000);
	int status, took;

	check(waitpid(quick, &took, 0) == quick, "the quick one");
	(void)printf("on\n");
	(void)fflush(stdout);
	check(waitpid(slow, &status, 0) == slow, "the slow one");
	return took;
}

static int
closes(const char *path, char *first)
{
	uint64_t begin;

	file_wait(name(path, ".go"));
	begin = now_ns();
	(void)put(first);
	check(munmap(first, SIZE) == 0, "munmap");
	(void)printf("%llu ms\n", (unsigned long long)((now_ns() - begin) / 1000000));
	return 0;
}

int
main(int argc, char **argv)
{
	char *first, *second;

	check(argc == 3, "MODE FILE");
	first = map(argv[2]);
	(void)put(first);
	(void)printf("first\n");
	(void)fflush(stdout);
	/* Mapped, it would have been opened with the first one. */
	file_wait(name(argv[2], ".second"));
	second = map(name(argv[2], ".2"));
	(void)put(second);
	(void)printf("second\n");
	(void)fflush(stdout);
	if (strcmp(argv[1], "forks") == 0)
		return forks(argv[2], first, second);
	if (strcmp(argv[1], "serves") == 0)
		return serves(argv[2], first, second);
	if (strcmp(argv[1], "closes") == 0)
		return closes(argv[2], first);
	return 2;
}
