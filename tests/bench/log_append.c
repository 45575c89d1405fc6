/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_append - what an append to a log costs: of each kind against a persist of
 * the same bytes, single against batches of 16, and four writers on four lanes
 * against one. All on one session, in turns. Prints one JSON object.
 *
 * usage: log_append HOST IDENTITY KNOWN-HOSTS ROUNDS SLICE-MS
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "side.h"

#define RECORD  64U
#define BATCH   16U
#define WRITERS 4U
#define KINDS   4U
#define AREA    (4U << 20) /* of each log */
#define PLAIN   (1U << 20) /* what is persisted without a log */
#define TRIM_AT (AREA / 2)

static const char *const kinds[KINDS] = {"checksum", "pointer", "counter", "register"};

static struct side_pool pool;
static struct repl_log *logs[KINDS];
static uint8_t record[RECORD];

/* Before the log is full; the target makes room in its own time. */
static int
keep_room(struct repl_log *log, unsigned lane)
{
	uint64_t tail = repl_log_tail(log);

	return tail - repl_log_head(log) < TRIM_AT ? 0 : repl_log_trim(log, lane, tail);
}

static int
persist(void *arg, uint64_t i)
{
	size_t off = (size_t)KINDS * AREA + (size_t)(i % (PLAIN / RECORD)) * RECORD;

	(void)arg;
	memcpy(pool.mem + off, record, RECORD);
	return repl_persist(pool.r, 0, off, RECORD);
}

static int
append(void *arg, uint64_t i)
{
	struct repl_log *log = arg;
	int rc = i % BATCH ? 0 : keep_room(log, 0);

	return rc ? rc : repl_log_append(log, 0, record, RECORD, NULL);
}

static int
append_batch(void *arg, uint64_t i)
{
	struct repl_log *log = arg;
	struct iovec iov[BATCH];
	int rc = keep_room(log, 0);

	(void)i;
	for (unsigned n = 0; n < BATCH; n++)
		iov[n] = (struct iovec){.iov_base = record, .iov_len = RECORD};
	return rc ? rc : repl_log_append_batch(log, 0, iov, BATCH, NULL);
}

/* ---- several writers ---- */

struct writer {
	pthread_t thread;
	unsigned lane;
	struct repl_log *log;
	_Atomic bool *stop;
	uint64_t done;
};

static void *
write_records(void *arg)
{
	struct writer *w = arg;

	while (!atomic_load_explicit(w->stop, memory_order_relaxed)) {
		/* One of them makes room for all. */
		if (w->lane == 0)
			side_check(keep_room(w->log, 0), "trim");
		side_check(repl_log_append(w->log, w->lane, record, RECORD, NULL), "append");
		w->done++;
	}
	return NULL;
}

/* Records a second. */
static double
rate(struct repl_log *log, unsigned count, uint64_t slice_ns)
{
	struct timespec ts = {.tv_sec = (time_t)(slice_ns / 1000000000U),
			      .tv_nsec = (long)(slice_ns % 1000000000U)};
	struct writer w[WRITERS];
	_Atomic bool stop = false;
	uint64_t begin = side_now_ns(), done = 0;

	for (unsigned i = 0; i < count; i++) {
		w[i] = (struct writer){.lane = i, .log = log, .stop = &stop};
		if (pthread_create(&w[i].thread, NULL, write_records, &w[i])) {
			perror("pthread_create");
			exit(1);
		}
	}
	(void)nanosleep(&ts, NULL);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < count; i++) {
		(void)pthread_join(w[i].thread, NULL);
		done += w[i].done;
	}
	return (double)done * 1e9 / (double)(side_now_ns() - begin);
}

static void
measure_writers(unsigned rounds, uint64_t slice_ns)
{
	double one[SIDE_ROUNDS_MAX], many[SIDE_ROUNDS_MAX], ratio[SIDE_ROUNDS_MAX];
	cpu_set_t all;

	/* Several threads are not to share the one core that the single writer was given. */
	memset(&all, 0xff, sizeof(all));
	(void)sched_setaffinity(0, sizeof(all), &all);
	for (unsigned i = 0; i < rounds; i++) {
		one[i] = rate(logs[0], 1, slice_ns);
		many[i] = rate(logs[0], WRITERS, slice_ns);
		ratio[i] = one[i] > 0 ? many[i] / one[i] : 0;
	}
	(void)printf("\"writers\": {\"one_per_s\": %.0f, \"four_per_s\": %.0f, \"ratio\": %.3f}}\n",
		     side_median(one, rounds), side_median(many, rounds),
		     side_median(ratio, rounds));
}

/* ---- one writer ---- */

static void
measure_kinds(unsigned rounds, uint64_t slice_ns)
{
	struct side plain = {.name = "persist", .op = persist}, side[KINDS];
	struct side *sides[KINDS + 1] = {&plain};

	for (unsigned k = 0; k < KINDS; k++) {
		side[k] = (struct side){.name = kinds[k], .op = append, .arg = logs[k]};
		sides[k + 1] = &side[k];
	}
	side_measure(sides, KINDS + 1, rounds, slice_ns, false);
	(void)printf("\"persist_ns\": %.0f, \"kinds\": [", side_ns(&plain, rounds));
	for (unsigned k = 0; k < KINDS; k++)
		(void)printf("%s{\"kind\": \"%s\", \"ns\": %.0f, \"ratio\": %.3f}", k ? ", " : "",
			     kinds[k], side_ns(&side[k], rounds),
			     side_ratio(&side[k], &plain, rounds));
	(void)printf("],\n");
}

static void
measure_batches(unsigned rounds, uint64_t slice_ns)
{
	struct side single = {.name = "single", .op = append, .arg = logs[0]};
	struct side batch = {.name = "batch", .op = append_batch, .arg = logs[0]};
	struct side *sides[] = {&single, &batch};

	side_measure(sides, 2, rounds, slice_ns, true);
	(void)printf("\"batches\": {\"records\": %u, \"single_ns\": %.0f, \"batch_ns\": %.0f, "
		     "\"records_ratio\": %.3f},\n",
		     BATCH, side_ns(&single, rounds), side_ns(&batch, rounds),
		     BATCH * side_ratio(&single, &batch, rounds));
}

int
main(int argc, char **argv)
{
	struct side_target target;
	unsigned rounds;
	uint64_t slice_ns;

	if (argc != 6)
		return 2;
	target = (struct side_target){argv[1], argv[2], argv[3]};
	rounds = (unsigned)atoi(argv[4]);
	slice_ns = (uint64_t)atoi(argv[5]) * 1000000U;
	if (rounds == 0 || rounds > SIDE_ROUNDS_MAX)
		return 2;
	memset(record, 0x5a, sizeof(record));
	(void)side_open(&pool, &target, "log", (size_t)KINDS * AREA + PLAIN,
			&(struct side_options){.lanes = WRITERS});
	for (unsigned k = 0; k < KINDS; k++)
		side_check(repl_log_create(pool.r, (size_t)k * AREA, AREA,
					   (enum repl_log_kind)(REPL_LOG_CHECKSUM + k), &logs[k]),
			   kinds[k]);
	(void)printf("{\"class\": \"%s\", \"record\": %u, ", side_class(&pool), RECORD);
	measure_kinds(rounds, slice_ns);
	measure_batches(rounds, slice_ns);
	measure_writers(rounds, slice_ns * 4);
	for (unsigned k = 0; k < KINDS; k++)
		repl_log_close(logs[k]);
	side_close(&pool);
	return 0;
}
