/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_leak - opens and closes a replica set COUNT times, and tries to open one
 * that is not there FAILS times; no descriptor, thread or memory may stay.
 *
 * The heap is counted to the byte, so run it without the allocator's caches:
 * GLIBC_TUNABLES=glibc.malloc.tcache_count=0.
 *
 *   api_leak FILE SIZE COUNT FAILS MISSING-TARGET [KEY=VALUE ...]
 */
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <librepl.h>
#include <rdma/fabric.h>

#define WARM_UP   3
#define RSS_SLACK 4096L /* KiB; the allocator's, not the library's */

/*
 * The provider net of libfabric 1.17 forgets two entries of 24 bytes for every
 * lane, which occupy up to 48 each; no less than that is found.
 */
#define LANES 4
#if FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION < 18
#define PROVIDER_LOSS (LANES * 2 * 48)
#else
#define PROVIDER_LOSS 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEAP_IS_MALLOC false
#else
#define HEAP_IS_MALLOC true
#endif

struct usage {
	long entries[2]; /* of /proc/self/fd and /proc/self/task */
	long heap;
	long rss_kib;
};

static long
count_entries(const char *path)
{
	DIR *d = opendir(path);
	long n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static long
rss_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "RssAnon:", 8) == 0)
			kib = strtol(line + 8, NULL, 10);
	if (f)
		(void)fclose(f);
	return kib;
}

static struct usage
usage_now(void)
{
	struct usage u = {
		.entries = {count_entries("/proc/self/fd"), count_entries("/proc/self/task")}};

	if (HEAP_IS_MALLOC) {
		u.heap = (long)mallinfo2().uordblks;
		(void)malloc_trim(0);
		u.rss_kib = rss_kib();
	}
	return u;
}

/* By a descriptor, a thread, or a byte each time more than allowed. */
static bool
usage_grew(const struct usage *a, const struct usage *b, unsigned count, long allowed)
{
	(void)printf("descriptors %ld -> %ld, threads %ld -> %ld, heap %ld -> %ld, RSS %ld -> %ld "
		     "KiB\n",
		     a->entries[0], b->entries[0], a->entries[1], b->entries[1], a->heap, b->heap,
		     a->rss_kib, b->rss_kib);
	return b->entries[0] > a->entries[0] || b->entries[1] > a->entries[1] ||
	       b->heap >= a->heap + (long)count * (1 + allowed) ||
	       b->rss_kib > a->rss_kib + RSS_SLACK;
}

static uint8_t *
map(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	void *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static bool
open_close(const struct repl_config *cfg, uint8_t *mem, size_t size)
{
	struct repl *r = NULL;

	/* Never all zeros: so does a pool look that was made anew beside an old record. */
	mem[0] = (uint8_t)(mem[0] % 255 + 1);
	if (repl_open(cfg, mem, size, REPL_OPEN_CREATE, &r) || repl_persist(r, 0, 0, 64)) {
		(void)fprintf(stderr, "open: %s\n", repl_errormsg());
		(void)repl_close(r);
		return false;
	}
	return repl_close(r) == 0;
}

static bool
open_missing(const struct repl_config *cfg, uint8_t *mem, size_t size)
{
	struct repl *r = NULL;

	if (repl_open(cfg, mem, size, 0, &r) == REPL_E_NOT_FOUND && !r)
		return true;
	(void)fprintf(stderr, "a missing pool: %s\n", repl_errormsg());
	(void)repl_close(r);
	return false;
}

/* Do it count times; after the first few nothing may grow. */
static bool
repeat(bool (*what)(const struct repl_config *, uint8_t *, size_t), const struct repl_config *cfg,
       uint8_t *mem, size_t size, unsigned count, long allowed)
{
	struct usage before = {0}, after;
	struct timespec a = {0}, b;

	for (unsigned i = 0; i < count + WARM_UP; i++) {
		if (i == WARM_UP) {
			before = usage_now();
			(void)clock_gettime(CLOCK_MONOTONIC, &a);
		}
		if (!what(cfg, mem, size))
			return false;
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	after = usage_now();
	(void)printf("%u times, %.1f ms each\n", count,
		     ((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6) /
			     (count ? count : 1));
	return !usage_grew(&before, &after, count, allowed);
}

static bool
options(char **v, struct repl_config *cfg, struct repl_config *missing)
{
	for (; *v; v++) {
		char *value = strchr(*v, '=');

		if (!value)
			return false;
		*value++ = '\0';
		if (repl_config_set(cfg, *v, value))
			return false;
		if (strcmp(*v, "target") != 0 && repl_config_set(missing, *v, value))
			return false;
	}
	return true;
}

int
main(int argc, char **argv)
{
	struct repl_config *cfg = NULL, *missing = NULL;
	uint8_t *mem;
	size_t size;
	bool ok;

	if (argc < 7 || repl_config_new(&cfg) || repl_config_new(&missing))
		return 2;
	size = (size_t)strtoull(argv[2], NULL, 0);
	mem = map(argv[1], size);
	ok = mem && repl_config_add_target(missing, argv[5]) == 0 &&
	     options(argv + 6, cfg, missing) &&
	     repeat(open_close, cfg, mem, size, (unsigned)strtoul(argv[3], NULL, 0),
		    PROVIDER_LOSS) &&
	     repeat(open_missing, missing, mem, size, (unsigned)strtoul(argv[4], NULL, 0), 0);
	repl_config_free(cfg);
	repl_config_free(missing);
	return ok ? 0 : 1;
}
