/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_shares FILE MS BYTES REPLICAS - threads with a lane each write to the same BYTES, words of
 * their own and one that they share in each cache line, and make durable ranges that overlap: at
 * once or flushed and drained later, in pairs, as 8-byte stores, by commits of all lanes; they
 * append by a tail word in front of that, and read what is not drained. Every so often, when all
 * have drained what they flushed, each replica that REPL_CONFIG names must have what is here.
 * Prints rounds, differences and calls that failed. Exit status 3: there were differences, and no
 * call has failed.
 */
#include <librepl.h>

#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SIZE    (8UL << 20)
#define AT      (64UL << 10)
#define LINE    64U
#define TAIL    (AT - LINE)
#define RECORDS (SIZE / 2)
#define THREADS 4U
#define CALLS   6U

static struct repl *r;
static char *pool;
static size_t area;
static pthread_barrier_t barrier;
static atomic_bool stop;
static atomic_uint failed;
static unsigned long needed;
static unsigned differences;

static uint64_t
draw(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 20) % below;
}

/* A range of whole lines; some are large enough to be written before their drain. */
static void
draw_range(uint64_t *random, size_t *off, size_t *len)
{
	size_t lines = area / LINE, most = draw(random, 4) ? 4 : lines;
	size_t n = 1 + draw(random, most < lines ? most : lines);

	*off = AT + draw(random, lines - n + 1) * LINE;
	*len = n * LINE;
}

static void
store(unsigned lane, size_t off, size_t len)
{
	for (size_t at = off; at < off + len; at += LINE) {
		_Atomic uint64_t *words = (_Atomic uint64_t *)(void *)(pool + at);

		atomic_fetch_add(&words[lane], 1);
		atomic_fetch_add(&words[THREADS], 1);
	}
}

/* What was flushed before has the tail word in it, and may be on its way. */
static int
append(unsigned lane)
{
	uint64_t record = lane;
	size_t at;

	return repl_flush(r, lane, TAIL, LINE + area) ||
	       repl_append(r, lane, TAIL, SIZE, &record, sizeof(record), &at);
}

static int
flush_and_read(unsigned lane, size_t off, size_t len)
{
	static char bytes[THREADS][RECORDS];

	return repl_flush(r, lane, off, len) || repl_read(r, lane, 0, bytes[lane], off, len);
}

static int
once(unsigned lane, uint64_t *random)
{
	size_t off, len, half;

	draw_range(random, &off, &len);
	store(lane, off, len);
	half = len / 2;
	switch (draw(random, 12)) {
	case 0:
		return repl_persist_pair(r, lane, off, half, off + half, len - half);
	case 1:
		return repl_flush(r, lane, off, len) ||
		       repl_persist_atomic8(r, lane, off + THREADS * sizeof(uint64_t));
	case 2:
		return repl_flush(r, lane, off, len) || repl_commit(r, lane);
	case 3:
		return append(lane);
	case 4:
		return flush_and_read(lane, off, len);
	case 5:
	case 6:
		return repl_flush(r, lane, off, len);
	default:
		return repl_persist(r, lane, off, len);
	}
}

static void *
work(void *arg)
{
	unsigned lane = (unsigned)(uintptr_t)arg;
	uint64_t random = 88172645463325252ULL * (lane + 1);

	for (;;) {
		(void)pthread_barrier_wait(&barrier);
		if (atomic_load(&stop))
			return NULL;
		for (unsigned i = 0; i < CALLS; i++)
			if (once(lane, &random))
				atomic_fetch_add(&failed, 1);
		if (repl_drain(r, lane))
			atomic_fetch_add(&failed, 1);
		(void)pthread_barrier_wait(&barrier);
	}
}

static bool
enough_are_equal(char *copy)
{
	unsigned n = 0;

	for (unsigned i = 0; i < repl_replicas(r) && n < needed; i++) {
		if (repl_read(r, 0, i, copy, TAIL, LINE + area))
			atomic_fetch_add(&failed, 1);
		else
			n += memcmp(copy, pool + TAIL, LINE + area) == 0;
	}
	return n >= needed;
}

static void
rounds(long ms)
{
	unsigned n = 0;
	char *copy = malloc(LINE + area);
	struct timespec begin, now;

	if (!copy)
		abort();
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		(void)pthread_barrier_wait(&barrier);
		(void)pthread_barrier_wait(&barrier);
		n++;
		differences += !enough_are_equal(copy);
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
	(void)printf("%u rounds, %u differ, %u calls failed: %s\n", n, differences,
		     atomic_load(&failed), repl_errormsg());
	free(copy);
}

static int
run(long ms)
{
	pthread_t thread[THREADS];

	(void)pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i))
			return 2;
	rounds(ms);
	atomic_store(&stop, true);
	(void)pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
	if (atomic_load(&failed))
		return 1;
	return differences ? 3 : 0;
}

int
main(int argc, char **argv)
{
	int fd = argc == 5 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1, rc;
	struct repl_config *cfg = NULL;

	if (fd < 0 || ftruncate(fd, (off_t)SIZE))
		return 2;
	area = strtoul(argv[3], NULL, 10) / LINE * LINE;
	needed = strtoul(argv[4], NULL, 10);
	pool = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pool == MAP_FAILED || area == 0 || area > RECORDS - AT || repl_config_new(&cfg) ||
	    repl_config_load(cfg, NULL))
		return 2;
	*(uint64_t *)(void *)(pool + TAIL) = htole64(RECORDS);
	rc = repl_open(cfg, pool, SIZE, REPL_OPEN_CREATE, &r);
	repl_config_free(cfg);
	if (rc) {
		(void)fprintf(stderr, "%s\n", repl_errormsg());
		return 1;
	}
	rc = run(strtol(argv[2], NULL, 10));
	return repl_close(r) && !rc ? 1 : rc;
}
