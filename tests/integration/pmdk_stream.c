/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmdk_stream PROGRAM FILE - write to a pool, made if there is none, until killed, a
 * line on standard output for each thing that is durable.
 * pmdk_stream PROGRAM-check FILE - the lines, on standard input, are kept by FILE.
 *
 *   log    libpmemlog: appends of numbered records; the lines are their numbers
 *   blk    libpmemblk: blocks full of one number, which rises; "block number"
 *   pmem2  libpmem2: numbered records in a ring, each before a count of them; the count
 *   threads libpmem: each thread persists the number that the one before it has persisted;
 *          the last one's
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libpmem.h>
#include <libpmem2.h>
#include <libpmemblk.h>
#include <libpmemlog.h>

#include "check.h"

#define BLOCK   4096U
#define BLOCKS  64U
#define WORDS   (BLOCK / sizeof(uint64_t))
#define RING    512U
#define SIZE    (1UL << 20)
#define THREADS 6U
#define APART   136U /* words from a thread's number to the next one's: some share a page */
#define RECORDS 24U  /* words of a record of a log, at most */

static void
must(int ok, const char *what, uint64_t is, uint64_t due)
{
	if (ok)
		return;
	(void)fprintf(stderr, "%s: %" PRIu64 ", not %" PRIu64 "\n", what, is, due);
	exit(1);
}

static void
tell(uint64_t n)
{
	(void)printf("%" PRIu64 "\n", n);
	(void)fflush(stdout);
}

static uint64_t
last_told(void)
{
	uint64_t last = 0;
	char line[32];

	/* A word says that it begins anew. */
	while (fgets(line, sizeof(line), stdin))
		last = strtoull(line, NULL, 10);
	return last;
}

/* ---- log ---- */

static size_t
record_words(uint64_t number)
{
	return 1 + number * 7 % RECORDS;
}

static void
record_make(uint64_t *record, uint64_t number)
{
	for (size_t i = 0; i < record_words(number); i++)
		record[i] = number;
}

/* In order from 1 on, each of them whole. */
static int
record_look(const void *buf, size_t len, void *arg)
{
	const uint64_t *at = buf, *end = at + len / sizeof(*at);
	uint64_t *count = arg, number = 1;

	for (; at < end; number++) {
		must((size_t)(end - at) >= record_words(number), "words left", (uint64_t)(end - at),
		     record_words(number));
		for (size_t i = 0; i < record_words(number); i++)
			must(at[i] == number, "a record's word", at[i], number);
		at += record_words(number);
	}
	*count = number - 1;
	return 0;
}

static void
log_write(const char *path)
{
	PMEMlogpool *log = pmemlog_create(path, PMEMLOG_MIN_POOL + 1000, 0600);
	uint64_t record[RECORDS], count = 0;

	if (!log)
		log = pmemlog_open(path);
	check(log != NULL, path);
	pmemlog_walk(log, 0, record_look, &count);
	for (;;) {
		record_make(record, ++count);
		if (pmemlog_append(log, record, record_words(count) * sizeof(*record))) {
			(void)printf("rewinding\n");
			(void)fflush(stdout);
			pmemlog_rewind(log);
			count = 0;
		} else {
			tell(count);
		}
	}
}

static void
log_check(const char *path)
{
	PMEMlogpool *log = pmemlog_open(path);
	uint64_t count = 0, told = last_told();

	check(log != NULL, path);
	pmemlog_walk(log, 0, record_look, &count);
	must(count >= told, "records", count, told);
	pmemlog_close(log);
}

/* ---- blk ---- */

static void
blk_write(const char *path)
{
	PMEMblkpool *blk = pmemblk_create(path, BLOCK, PMEMBLK_MIN_POOL + 1000, 0600);
	static uint64_t block[WORDS];
	uint64_t number = 1;

	if (!blk)
		blk = pmemblk_open(path, BLOCK);
	check(blk != NULL, path);
	for (unsigned i = 0; i < BLOCKS; i++) {
		check(pmemblk_read(blk, block, i) == 0, "pmemblk_read");
		if (block[0] >= number)
			number = block[0] + 1;
	}
	for (;; number++) {
		unsigned i = (unsigned)(number * 2654435761U % BLOCKS);

		for (size_t k = 0; k < WORDS; k++)
			block[k] = number;
		check(pmemblk_write(blk, block, i) == 0, "pmemblk_write");
		(void)printf("%u ", i);
		tell(number);
	}
}

static void
blk_check(const char *path)
{
	PMEMblkpool *blk = pmemblk_open(path, BLOCK);
	uint64_t told[BLOCKS] = {0}, number;
	static uint64_t block[WORDS];
	unsigned i;

	check(blk != NULL, path);
	while (scanf("%u %" SCNu64, &i, &number) == 2)
		told[i % BLOCKS] = number;
	for (i = 0; i < BLOCKS; i++) {
		check(pmemblk_read(blk, block, i) == 0, "pmemblk_read");
		for (size_t k = 0; k < WORDS; k++)
			must(block[k] == block[0], "a word of a block", block[k], block[0]);
		must(block[0] >= told[i], "a block", block[0], told[i]);
	}
	pmemblk_close(blk);
}

/* ---- pmem2 ---- */

struct ring {
	uint64_t count;
	uint8_t pad[4088];
	uint64_t records[RING][32];
};

static void
pmem2_write(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	struct pmem2_config *cfg;
	struct pmem2_source *src;
	struct pmem2_map *map = NULL;
	uint64_t record[32];
	struct ring *ring;

	check(fd >= 0 && ftruncate(fd, SIZE) == 0, path);
	check(pmem2_config_new(&cfg) == 0 &&
		      pmem2_config_set_required_store_granularity(cfg, PMEM2_GRANULARITY_PAGE) ==
			      0 &&
		      pmem2_source_from_fd(&src, fd) == 0 && pmem2_map_new(&map, cfg, src) == 0,
	      "pmem2_map_new");
	ring = pmem2_map_get_address(map);
	for (;;) {
		uint64_t number = ring->count + 1;

		for (unsigned i = 0; i < 32; i++)
			record[i] = number;
		(void)pmem2_get_memcpy_fn(map)(ring->records[number % RING], record, sizeof(record),
					       0);
		ring->count = number;
		pmem2_get_persist_fn(map)(&ring->count, sizeof(ring->count));
		tell(number);
	}
}

static void
pmem2_check(const char *path)
{
	FILE *f = fopen(path, "r");
	static struct ring ring;
	uint64_t told = last_told();

	check(f && fread(&ring, sizeof(ring), 1, f) == 1, path);
	must(ring.count >= told, "the count", ring.count, told);
	/* The oldest is being replaced. */
	for (uint64_t n = ring.count; n > 0 && n + RING - 1 > ring.count; n--) {
		for (unsigned i = 0; i < 32; i++)
			must(ring.records[n % RING][i] == n, "a record's word",
			     ring.records[n % RING][i], n);
	}
	(void)fclose(f);
}

/* ---- threads ---- */

static uint64_t *numbers; /* in the pool */
static _Atomic uint64_t persisted[THREADS];
static int is_pmem;

static void *
thread_write(void *arg)
{
	uintptr_t i = (uintptr_t)arg;
	uint64_t *number = numbers + i * APART;

	for (;;) {
		uint64_t due = i == 0 ? *number + 1 : atomic_load(&persisted[i - 1]);

		if (due == *number) {
			(void)sched_yield();
			continue;
		}
		*number = due;
		if (is_pmem)
			pmem_persist(number, sizeof(*number));
		else
			check(pmem_msync(number, sizeof(*number)) == 0, "pmem_msync");
		atomic_store(&persisted[i], due);
		if (i == THREADS - 1)
			tell(due);
	}
	return NULL;
}

static void
threads_write(const char *path)
{
	pthread_t t;

	numbers = pmem_map_file(path, SIZE, PMEM_FILE_CREATE, 0600, NULL, &is_pmem);
	check(numbers != NULL, path);
	for (uintptr_t i = 0; i < THREADS; i++)
		atomic_store(&persisted[i], numbers[i * APART]);
	for (uintptr_t i = 0; i < THREADS; i++)
		check(pthread_create(&t, NULL, thread_write, (void *)i) == 0, "a thread");
	(void)pthread_join(t, NULL);
}

/* No thread is ahead of the one that it follows. */
static void
threads_check(const char *path)
{
	FILE *f = fopen(path, "r");
	static uint64_t is[THREADS * APART];
	uint64_t told = last_told();

	check(f && fread(is, sizeof(is), 1, f) == 1, path);
	for (unsigned i = 1; i < THREADS; i++)
		must(is[i * APART] <= is[(i - 1) * APART], "a thread's number", is[i * APART],
		     is[(i - 1) * APART]);
	must(is[(THREADS - 1) * APART] >= told, "the last one's", is[(THREADS - 1) * APART], told);
	(void)fclose(f);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *);
	} modes[] = {{"log", log_write},         {"log-check", log_check},
		     {"blk", blk_write},         {"blk-check", blk_check},
		     {"pmem2", pmem2_write},     {"pmem2-check", pmem2_check},
		     {"threads", threads_write}, {"threads-check", threads_check}};

	for (size_t i = 0; argc == 3 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, argv[1]) == 0) {
			modes[i].run(argv[2]);
			return 0;
		}
	}
	return 2;
}
