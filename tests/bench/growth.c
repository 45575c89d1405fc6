/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * growth - what it costs to open a huge pool, and what four lanes notice of the
 * growth of theirs. Prints one JSON object.
 *
 * usage: growth open HOST IDENTITY KNOWN-HOSTS ROUNDS HUGE-POOL SIZE
 *        growth grow HOST IDENTITY KNOWN-HOSTS ROUNDS BYTES [HUGE-POOL SIZE]
 *
 * open: HUGE-POOL of SIZE bytes, made before, against one of 4 MiB, in turns. The
 * last one stays open until the end of standard input, to be looked at.
 * grow: a pool of 64 MiB, or HUGE-POOL, grows by BYTES in each round while four threads persist
 * 64 bytes on a lane each; their longest persist meanwhile, against that of as
 * long a time before, or of a millisecond.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "side.h"

#define SMALL   (4U << 20)
#define BASE    (64U << 20)
#define WRITERS 4U
#define RECORD  64U
#define ROOM    4096U /* of each writer */
#define MS      1000000ULL
#define QUIET   (300 * MS) /* before the first growth, whose length is not known */
#define BRIEF   MS         /* a time without growth is at least as long */

/* ---- opening ---- */

static double
open_ms(struct side_pool *p, const struct side_target *t, const char *pool, size_t size)
{
	uint64_t begin = side_now_ns();

	(void)side_open(p, t, pool, size, &(struct side_options){.no_compare = true});
	return (double)(side_now_ns() - begin) / MS;
}

static int
measure_open(const struct side_target *t, unsigned rounds, const char *pool, size_t size)
{
	double huge_ms[SIDE_ROUNDS_MAX], small_ms[SIDE_ROUNDS_MAX];
	struct side_pool huge, small;
	char byte;

	for (unsigned i = 0; i < rounds; i++) {
		small_ms[i] = open_ms(&small, t, "growth-small", SMALL);
		side_close(&small);
		huge_ms[i] = open_ms(&huge, t, pool, size);
		if (i + 1 < rounds)
			side_close(&huge);
	}
	(void)printf("{\"class\": \"%s\", \"open\": {\"size\": %zu, \"huge_ms\": %.1f, "
		     "\"small_ms\": %.1f}}\n",
		     side_class(&huge), size, side_median(huge_ms, rounds),
		     side_median(small_ms, rounds));
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	side_close(&huge);
	return 0;
}

/* ---- growing ---- */

struct writer {
	pthread_t thread;
	unsigned lane;
	_Atomic uint64_t longest; /* of the persists that have ended since it was zeroed */
};

static struct side_pool pool;
static _Atomic bool stop;

static void *
write_on(void *arg)
{
	struct writer *w = arg;
	size_t base = (size_t)w->lane * ROOM;
	uint64_t begin = side_now_ns(), end, i = 0;

	while (!atomic_load(&stop)) {
		side_check(repl_persist(pool.r, w->lane, base + i++ % (ROOM / RECORD) * RECORD,
					RECORD),
			   "persist");
		end = side_now_ns();
		if (end - begin > atomic_load(&w->longest))
			atomic_store(&w->longest, end - begin);
		begin = end;
	}
	return NULL;
}

static void
forget(struct writer *w)
{
	for (unsigned i = 0; i < WRITERS; i++)
		atomic_store(&w[i].longest, 0);
}

static double
longest_us(struct writer *w)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < WRITERS; i++) {
		uint64_t one = atomic_load(&w[i].longest);

		if (one > most)
			most = one;
	}
	return (double)most / 1000;
}

static void
sleep_ns(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / (1000 * MS)),
			      .tv_nsec = (long)(ns % (1000 * MS))};

	(void)nanosleep(&ts, NULL);
}

static int
measure_growth(const struct side_target *t, unsigned rounds, size_t bytes, const char *name,
	       size_t base)
{
	double grow_ms[SIDE_ROUNDS_MAX], quiet[SIDE_ROUNDS_MAX], growing[SIDE_ROUNDS_MAX];
	struct writer w[WRITERS];
	uint64_t begin, took = QUIET;

	(void)side_open(&pool, t, name ? name : "growth", base,
			&(struct side_options){.lanes = WRITERS,
					       .room = base + rounds * bytes,
					       .no_compare = name != NULL});
	for (unsigned i = 0; i < WRITERS; i++) {
		w[i].lane = i;
		atomic_init(&w[i].longest, 0);
		if (pthread_create(&w[i].thread, NULL, write_on, &w[i])) {
			perror("pthread_create");
			exit(1);
		}
	}
	sleep_ns(QUIET);
	for (unsigned i = 0; i < rounds; i++) {
		forget(w);
		sleep_ns(took > BRIEF ? took : BRIEF);
		quiet[i] = longest_us(w);
		forget(w);
		begin = side_now_ns();
		side_check(repl_grow(pool.r, base + (i + 1) * bytes), "grow");
		took = side_now_ns() - begin;
		growing[i] = longest_us(w);
		grow_ms[i] = (double)took / MS;
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < WRITERS; i++)
		(void)pthread_join(w[i].thread, NULL);
	(void)printf("{\"class\": \"%s\", \"%s\": {\"bytes\": %zu, \"ms\": %.1f, "
		     "\"quiet_longest_us\": %.1f, \"growing_longest_us\": %.1f}}\n",
		     side_class(&pool), name ? "grow_sparse" : "grow", bytes,
		     side_median(grow_ms, rounds), side_median(quiet, rounds),
		     side_median(growing, rounds));
	side_close(&pool);
	return 0;
}

int
main(int argc, char **argv)
{
	struct side_target target;
	unsigned rounds;

	if (argc < 7)
		return 2;
	target = (struct side_target){argv[2], argv[3], argv[4]};
	rounds = (unsigned)atoi(argv[5]);
	if (rounds == 0 || rounds > SIDE_ROUNDS_MAX)
		return 2;
	if (strcmp(argv[1], "open") == 0 && argc == 8)
		return measure_open(&target, rounds, argv[6], strtoull(argv[7], NULL, 10));
	if (strcmp(argv[1], "grow") == 0 && argc == 7)
		return measure_growth(&target, rounds, strtoull(argv[6], NULL, 10), NULL, BASE);
	if (strcmp(argv[1], "grow") == 0 && argc == 9)
		return measure_growth(&target, rounds, strtoull(argv[6], NULL, 10), argv[7],
				      strtoull(argv[8], NULL, 10));
	return 2;
}
