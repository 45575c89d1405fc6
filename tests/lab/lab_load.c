/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lab_load - updates on several lanes that go on through all that happens to
 * the replicas.
 *
 * usage: lab_load FILE JOURNAL CREATE PAUSE-US TARGET... [KEY=VALUE ...]
 *
 * CREATE is 0 or 1. The pool's own content tells where each lane goes on: what
 * is found is taken for drained, as a program does after a crash. Says "ready"
 * when open; reads from standard input: "stop" ends the updates and closes, "well"
 * tells whether updates go on and all replicas are up to date,
 * "stat" prints a line for each replica. What it has come to is in JOURNAL. The file
 * that LAB_MEDIA names holds what of FILE has been synced, and nothing else: what is
 * left of it when the power of this machine fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <librepl.h>

#include "lab.h"

/* What a look at the updates may wait for them. */
#define WELL_MOVE_US 5000000U

struct lab {
	struct repl *repl;
	uint8_t *pool;
	uint8_t *media; /* or NULL */
	struct lab_journal *journal;
	unsigned pause_us;
	_Atomic bool stop;
};

struct worker {
	struct lab *lab;
	pthread_t thread;
	unsigned lane;
	uint64_t next; /* update */
};

static void
die(const char *what)
{
	(void)fprintf(stderr, "lab_load: %s: %s\n", what, strerror(errno));
	exit(3);
}

static void
die_repl(const char *what)
{
	(void)fprintf(stderr, "lab_load: %s: %s\n", what, repl_errormsg());
	exit(4);
}

static uint64_t
now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Here first, then on the replicas: what they have this file has, too. librepl_persist(3). */
static void
settle(const struct lab *lab, uint64_t off, uint64_t len)
{
	uint64_t page = off & ~(uint64_t)4095;

	if (msync(lab->pool + page, off + len - page, MS_SYNC))
		die("msync");
	if (lab->media)
		memcpy(lab->media + off, lab->pool + off, len);
}

/* One call to the library: how long it took and whether it failed. */
static int
noted(struct worker *w, uint64_t begin_us, int rc)
{
	uint64_t us = now_us() - begin_us;

	if (us > w->lab->journal->lane[w->lane].worst_us)
		w->lab->journal->lane[w->lane].worst_us = us;
	if (rc)
		atomic_fetch_add(&w->lab->journal->lane[w->lane].errors, 1);
	return rc;
}

static void
fill_record(struct worker *w, uint64_t n)
{
	uint64_t words[LAB_WORDS];

	words[0] = n;
	for (unsigned i = 0; i < LAB_LANES; i++)
		words[LAB_DEPENDS + i] = i == w->lane ? n - 1 : w->lab->journal->lane[i].acked;
	for (uint32_t i = LAB_FILL; i < LAB_WORDS; i++)
		words[i] = lab_word(w->lane, n, i);
	memcpy(w->lab->pool + lab_record_off(w->lane, n), words, sizeof(words));
}

static void
fill_large(struct worker *w, uint64_t n)
{
	uint64_t *at = (uint64_t *)(void *)(w->lab->pool + lab_large_off(w->lane, n));

	for (uint32_t i = 0; i < LAB_LARGE / 8; i++)
		at[i] = lab_word(w->lane, n, i);
}

static int
update(struct worker *w, uint64_t n)
{
	struct repl *r = w->lab->repl;
	uint64_t count_off = w->lane * LAB_LANE_SIZE, begin_us;
	int rc = 0;

	fill_record(w, n);
	settle(w->lab, lab_record_off(w->lane, n), LAB_RECORD);
	if (n % LAB_LARGE_EACH == 0) {
		fill_large(w, n);
		settle(w->lab, lab_large_off(w->lane, n), LAB_LARGE);
		begin_us = now_us();
		rc = noted(w, begin_us,
			   repl_flush(r, w->lane, lab_large_off(w->lane, n), LAB_LARGE));
	}
	begin_us = now_us();
	if (!rc)
		rc = noted(w, begin_us,
			   repl_persist(r, w->lane, lab_record_off(w->lane, n), LAB_RECORD));
	if (rc)
		return rc;
	*(uint64_t *)(void *)(w->lab->pool + count_off) = n;
	settle(w->lab, count_off, 8);
	begin_us = now_us();
	return noted(w, begin_us, repl_persist(r, w->lane, count_off, 8));
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	const struct timespec pause = {.tv_nsec = (long)w->lab->pause_us * 1000};

	while (!atomic_load(&w->lab->stop)) {
		uint64_t n = w->next;

		w->lab->journal->lane[w->lane].begun = n;
		/* By on-loss = fail the same update is tried until it is acknowledged. */
		if (update(w, n)) {
			(void)nanosleep(&(const struct timespec){.tv_nsec = 2000000}, NULL);
			continue;
		}
		w->lab->journal->lane[w->lane].acked = n;
		w->next++;
		if (w->lab->pause_us)
			(void)nanosleep(&pause, NULL);
	}
	return NULL;
}

static void *
map_file(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *mem;

	/* Allocated: a disk that is full is not the program's own trouble. */
	if (fd < 0 || posix_fallocate(fd, 0, (off_t)size))
		die(path);
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		die(path);
	(void)close(fd);
	return mem;
}

static struct repl *
open_replicas(struct lab *lab, char **args, bool create)
{
	struct repl_config *cfg;
	struct repl *r;

	if (repl_config_new(&cfg))
		die_repl("config");
	for (; *args; args++) {
		char *value = strchr(*args, '=');

		if (value)
			*value++ = '\0';
		if (value ? repl_config_set(cfg, *args, value) : repl_config_add_target(cfg, *args))
			die_repl(*args);
	}
	if (repl_open(cfg, lab->pool, lab_pool_size(), create ? REPL_OPEN_CREATE : 0, &r))
		die_repl("open");
	repl_config_free(cfg);
	return r;
}

static void
print_stat(struct repl *r)
{
	for (unsigned i = 0; i < repl_replicas(r); i++) {
		struct repl_stat st = {.struct_size = sizeof(st)};

		if (repl_stat(r, i, &st))
			die_repl("stat");
		(void)printf("stat %u %d/%d/%d %s\n", i, st.connection, st.replication, st.data,
			     st.reason);
	}
	(void)fflush(stdout);
}

/*
 * Two more updates of each lane: the second one begins after this call. A replica
 * that has gone without a word is lost by then, if nothing has noticed it before.
 */
static bool
all_move(const struct lab *lab)
{
	const struct timespec look = {.tv_nsec = 5000000};
	uint64_t due[LAB_LANES], end_us = now_us() + WELL_MOVE_US;

	for (unsigned i = 0; i < LAB_LANES; i++)
		due[i] = lab->journal->lane[i].acked + 2;
	for (unsigned i = 0; i < LAB_LANES; i++) {
		while (lab->journal->lane[i].acked < due[i]) {
			if (now_us() > end_us)
				return false;
			(void)nanosleep(&look, NULL);
		}
	}
	return true;
}

/* All replicas are as they should be. */
static bool
all_well(const struct lab *lab)
{
	struct repl *r = lab->repl;

	if (!all_move(lab))
		return false;
	for (unsigned i = 0; i < repl_replicas(r); i++) {
		struct repl_stat st = {.struct_size = sizeof(st)};

		if (repl_stat(r, i, &st) || st.connection != REPL_CONN_CONNECTED ||
		    st.replication != REPL_REPL_ESTABLISHED || st.data != REPL_DATA_UP_TO_DATE)
			return false;
	}
	return true;
}

static void
obey(struct lab *lab)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "stop\n") == 0)
			return;
		if (strcmp(line, "well\n") == 0) {
			(void)puts(all_well(lab) ? "well yes" : "well no");
			(void)fflush(stdout);
		} else {
			print_stat(lab->repl);
		}
	}
	/* Whoever told us is gone: nobody waits for an end in order. */
	_exit(5);
}

int
main(int argc, char **argv)
{
	struct worker workers[LAB_LANES];
	struct lab lab = {0};
	int rc;

	if (argc < 6)
		return 2;
	lab.pool = map_file(argv[1], lab_pool_size());
	lab.journal = map_file(argv[2], sizeof(*lab.journal));
	if (getenv("LAB_MEDIA"))
		lab.media = map_file(getenv("LAB_MEDIA"), lab_pool_size());
	lab.pause_us = (unsigned)atoi(argv[4]);
	lab.journal->closed = 0;
	lab.repl = open_replicas(&lab, argv + 5, atoi(argv[3]) != 0);
	for (unsigned i = 0; i < LAB_LANES; i++) {
		uint64_t *count = (uint64_t *)(void *)(lab.pool + i * LAB_LANE_SIZE);

		if (*count < lab.journal->lane[i].acked) {
			(void)fprintf(stderr,
				      "lab_load: lane %u: %" PRIu64 " of %" PRIu64
				      " acknowledged updates are here\n",
				      i, *count, lab.journal->lane[i].acked);
			return 6;
		}
		workers[i] = (struct worker){.lab = &lab, .lane = i, .next = *count + 1};
		/* What is found has reached the replicas with the opening. */
		lab.journal->lane[i].acked = *count;
		lab.journal->lane[i].begun = *count;
	}
	(void)puts("ready");
	(void)fflush(stdout);
	for (unsigned i = 0; i < LAB_LANES; i++)
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
			die("thread");
	obey(&lab);
	atomic_store(&lab.stop, true);
	for (unsigned i = 0; i < LAB_LANES; i++)
		(void)pthread_join(workers[i].thread, NULL);
	rc = repl_close(lab.repl);
	lab.journal->closed = (uint64_t)(1 - rc);
	if (rc)
		(void)fprintf(stderr, "lab_load: close: %s\n", repl_errormsg());
	return rc ? 4 : 0;
}
