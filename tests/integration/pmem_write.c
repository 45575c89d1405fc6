/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmem_write MODE FILE - a program that knows nothing of replication makes
 * bytes of a file of 1 MiB durable, in one of the ways that programs have:
 *
 *   pmem     libpmem's functions          msync    mmap(2) and msync(2)
 *   pmem2    libpmem2's, by pointers      threads  pmem, by 12 threads
 *   fork     pmem, then a child does after its parent has ended, until FILE.enough is there
 *   other    pmem, in a file beside FILE
 *   two      pmem, in FILE and in FILE.2
 *   slow     pmem, a line on standard output for each persist, 200 of them
 *   until    likewise, until FILE.enough is there
 *   deep     libpmem2's deep flush, then it is killed
 *   forks    pmem, by a thread all the time, until a fork beside it has taken half a second
 *   amid     a signal handler's, in the middle of a copy to the same place, then it is killed
 *   byte     libpmem2's, where it says that stores need that, then it is killed
 *   auto     libpmem's, likewise
 *   whole    libpmem2's functions of all of a sparse file, and of its mapping when it is half as
 * long
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpmem.h>
#include <libpmem2.h>

#include "check.h"

#define SIZE    (1UL << 20)
#define THREADS 12
#define WRITES  64

static char *
map(const char *path)
{
	int is_pmem;

	return pmem_map_file(path, SIZE, PMEM_FILE_CREATE, 0600, NULL, &is_pmem);
}

/* Each function of libpmem's on a page of its own, from at on. */
static void
write_pmem(char *at, int salt)
{
	static const char text[200] = "what must not be lost";

	memset(at, 'a' + salt, 100);
	(void)pmem_msync(at, 100);
	(void)pmem_memcpy_persist(at + 4096, text, sizeof(text));
	(void)pmem_memmove_persist(at + 8192, text, sizeof(text));
	(void)pmem_memset_persist(at + 12288, 'b' + salt, 3000);
	(void)pmem_memcpy_nodrain(at + 16384, text, sizeof(text));
	(void)pmem_memset(at + 20480, 'c' + salt, 500, PMEM_F_MEM_NODRAIN);
	(void)pmem_memcpy(at + 24576, text, sizeof(text), PMEM_F_MEM_NOFLUSH);
	pmem_flush(at + 24576, sizeof(text));
	pmem_drain();
	at[28672] = 'd';
	(void)pmem_deep_persist(at + 28672, 1);
}

static void *
write_thread(void *arg)
{
	char *at = arg;

	for (int i = 0; i < WRITES; i++) {
		memset(at + i * 512, 'A' + i, 512);
		(void)pmem_msync(at + i * 512, 512);
	}
	return NULL;
}

static int
write_threads(char *at)
{
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, write_thread, at + i * WRITES * 512))
			return 1;
	}
	for (unsigned i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	return 0;
}

static int
map_pmem2(const char *path, struct pmem2_config **cfg, struct pmem2_source **src,
	  struct pmem2_map **m)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	return fd < 0 || ftruncate(fd, SIZE) || pmem2_config_new(cfg) ||
	       pmem2_config_set_required_store_granularity(*cfg, PMEM2_GRANULARITY_PAGE) ||
	       pmem2_source_from_fd(src, fd) || pmem2_map_new(m, *cfg, *src);
}

static int
write_pmem2(const char *path)
{
	struct pmem2_config *cfg;
	struct pmem2_source *src;
	struct pmem2_map *m;
	char text[] = "by a pointer";
	char *at;

	if (map_pmem2(path, &cfg, &src, &m))
		return 1;
	at = pmem2_map_get_address(m);
	memset(at, 'p', 300);
	pmem2_get_persist_fn(m)(at, 300);
	memset(at + 4096, 'q', 300);
	pmem2_get_flush_fn(m)(at + 4096, 300);
	pmem2_get_drain_fn(m)();
	(void)pmem2_get_memcpy_fn(m)(at + 8192, text, sizeof(text), 0);
	(void)pmem2_get_memmove_fn(m)(at + 12288, text, sizeof(text), PMEM2_F_MEM_NODRAIN);
	(void)pmem2_get_memset_fn(m)(at + 16384, 'r', 5000, PMEM2_F_MEM_NODRAIN);
	pmem2_get_drain_fn(m)();
	return pmem2_map_delete(&m) || pmem2_source_delete(&src) || pmem2_config_delete(&cfg);
}

/* Each of them is msync(2) where memory is none that caches are flushed of. */
static void
whole_by_each(struct pmem2_map *m, char *at, int c)
{
	memset(at, c, 100);
	pmem2_get_persist_fn(m)(at, SIZE);
	memset(at + 4096, c, 100);
	pmem2_get_flush_fn(m)(at, SIZE);
	pmem2_get_drain_fn(m)();
	memset(at + 8192, c, 100);
	check(pmem2_deep_flush(m, at, SIZE) == 0, "pmem2_deep_flush");
}

static int
write_whole(const char *path)
{
	struct pmem2_config *cfg;
	struct pmem2_source *src;
	struct pmem2_map *m;
	struct stat before, now;
	char *at;

	if (map_pmem2(path, &cfg, &src, &m))
		return 1;
	at = pmem2_map_get_address(m);
	check(pmem2_map_get_store_granularity(m) == PMEM2_GRANULARITY_PAGE, "its granularity");
	memset(at, 'a', 12288);
	pmem2_get_persist_fn(m)(at, 8);
	check(stat(path, &before) == 0, "stat");
	whole_by_each(m, at, 'b');
	check(stat(path, &now) == 0 && now.st_blocks == before.st_blocks, "its holes have space");
	check(truncate(path, SIZE / 2) == 0, "truncate");
	whole_by_each(m, at, 'c');
	(void)pmem2_map_delete(&m);
	(void)pmem2_source_delete(&src);
	(void)pmem2_config_delete(&cfg);
	return 0;
}

/* The replica is opened by the first persist, and made equal to what the file has by then. */
static int
write_deep(const char *path)
{
	struct pmem2_config *cfg;
	struct pmem2_source *src;
	struct pmem2_map *m;
	char *at;

	if (map_pmem2(path, &cfg, &src, &m))
		return 1;
	at = pmem2_map_get_address(m);
	pmem2_get_persist_fn(m)(at, 8);
	memset(at + 4096, 's', 300);
	if (pmem2_deep_flush(m, at + 4096, 300))
		return 1;
	return raise(SIGKILL);
}

/* What was durable before is on the replica from the opening on. */
static int
store_killed(char *at, bool needs, pmem2_persist_fn persist)
{
	persist(at, 8);
	memset(at + 4096, 't', 300);
	if (needs)
		persist(at + 4096, 300);
	else
		(void)puts("stored");
	(void)fflush(stdout);
	return raise(SIGKILL);
}

static int
write_byte(const char *path)
{
	struct pmem2_config *cfg;
	struct pmem2_source *src;
	struct pmem2_map *m;

	if (map_pmem2(path, &cfg, &src, &m))
		return 1;
	return store_killed(pmem2_map_get_address(m),
			    pmem2_map_get_store_granularity(m) != PMEM2_GRANULARITY_BYTE,
			    pmem2_get_persist_fn(m));
}

static void
persist(const void *at, size_t len)
{
	pmem_persist(at, len);
}

static int
write_auto(char *at)
{
	return store_killed(at, pmem_has_auto_flush() != 1, persist);
}

static char *amid_at;

static void
on_closed(int number)
{
	(void)number;
	memset(amid_at, 'h', 300);
	(void)pmem_msync(amid_at, 300);
	(void)raise(SIGKILL);
}

/* The copy comes to a page that can't be read. */
static int
write_amid(char *at)
{
	char *from = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (from == MAP_FAILED || mprotect(from + 4096, 4096, PROT_NONE))
		return 1;
	at[0] = 'a';
	(void)pmem_msync(at, 1);
	amid_at = at + 4096;
	(void)signal(SIGSEGV, on_closed);
	(void)pmem_memcpy_persist(amid_at, from + 4096 - 100, 300);
	return 1;
}

static int
write_msync(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	char *at;

	if (fd < 0 || ftruncate(fd, SIZE))
		return 1;
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return 1;
	memset(at + 40960, 'm', 9000);
	return msync(at + 40960, 9000, MS_SYNC) || munmap(at, SIZE);
}

static int
write_fork(char *at, const char *path)
{
	char done[4096], enough[4096];

	write_pmem(at, 0);
	if (fork() != 0)
		_exit(0);
	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	/* The parent's replication ends with it; until then this process has none. */
	for (int i = 0; i < 600 && access(enough, F_OK); i++) {
		(void)usleep(100000);
		write_pmem(at + 65536, i % 20);
	}
	write_pmem(at + 65536, 20);
	(void)snprintf(done, sizeof(done), "%s.done", path);
	(void)close(open(done, O_CREAT | O_WRONLY, 0600));
	return 0;
}

static int
write_slow(char *at, int count, const char *path)
{
	char enough[4096];

	(void)snprintf(enough, sizeof(enough), "%s.enough", path);
	for (int i = 0; i < count && access(enough, F_OK); i++) {
		(void)snprintf(at, 64, "%d", i);
		(void)pmem_msync(at, 64);
		(void)printf("%d\n", i);
		(void)fflush(stdout);
		(void)usleep(20000);
	}
	return 0;
}

static void *
write_on(void *arg)
{
	char *at = arg;

	for (unsigned i = 0;; i++) {
		at[0] = (char)i;
		(void)pmem_msync(at, 1);
	}
	return NULL;
}

static double
clock_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int
write_forks(char *at)
{
	double begin = clock_s(), since, longest = 0;
	pthread_t thread;

	(void)pmem_msync(at, 1);
	if (pthread_create(&thread, NULL, write_on, at))
		return 2;
	(void)puts("writes");
	(void)fflush(stdout);
	while (longest < 0.5 && clock_s() - begin < 20) {
		pid_t child;

		since = clock_s();
		child = fork();
		if (child == 0)
			_exit(0);
		longest = clock_s() - since > longest ? clock_s() - since : longest;
		(void)waitpid(child, NULL, 0);
		(void)usleep(20000);
	}
	(void)printf("%.3f s\n", longest);
	(void)fflush(stdout);
	_exit(longest < 0.5);
}

int
main(int argc, char **argv)
{
	char other[4096], *at;
	const char *mode = argc == 3 ? argv[1] : "";
	const char *path = argc == 3 ? argv[2] : "";

	if (strcmp(mode, "pmem2") == 0)
		return write_pmem2(path);
	if (strcmp(mode, "deep") == 0)
		return write_deep(path);
	if (strcmp(mode, "byte") == 0)
		return write_byte(path);
	if (strcmp(mode, "whole") == 0)
		return write_whole(path);
	if (strcmp(mode, "msync") == 0)
		return write_msync(path);
	(void)snprintf(other, sizeof(other), "%s.2", path);
	at = map(strcmp(mode, "other") == 0 ? other : path);
	if (!at)
		return 2;
	if (strcmp(mode, "threads") == 0)
		return write_threads(at);
	if (strcmp(mode, "fork") == 0)
		return write_fork(at, path);
	if (strcmp(mode, "slow") == 0)
		return write_slow(at, 200, path);
	if (strcmp(mode, "until") == 0)
		return write_slow(at, 3000, path);
	if (strcmp(mode, "amid") == 0)
		return write_amid(at);
	if (strcmp(mode, "auto") == 0)
		return write_auto(at);
	if (strcmp(mode, "forks") == 0)
		return write_forks(at);
	write_pmem(at, 0);
	if (strcmp(mode, "two") == 0) {
		char *second = map(other);

		if (!second)
			return 2;
		write_pmem(second, 3);
		write_pmem(at, 7);
		(void)pmem_unmap(second, SIZE);
	}
	(void)pmem_unmap(at, SIZE);
	return 0;
}
