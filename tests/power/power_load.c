/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * power_load - updates of all kinds on several lanes; after a random number of
 * acknowledgements the target's session is killed.
 *
 * usage: power_load SEED FILE JOURNAL TARGET [KEY=VALUE ...]
 *
 * Says "ready" when the replicas are open, then reads from standard input the
 * process ids to kill: one, or those of three sessions, of which two are killed one after
 * the other under load, every third seed both at once, and the third when no lane goes on.
 * Each update is entered in JOURNAL before it is begun and when it has been acknowledged.
 * Ends when all lanes have seen the loss.
 */
#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <librepl.h>

#include "power.h"

#define BATCH         8U
#define ACKS_MIN      40U
#define ACKS_SPREAD   1000U
#define DELAY_US_MAX  1000U
#define ACKS_POLL_US  100U
#define GIVE_UP_US    15000000U
#define AWAIT_POLLS   5000U
#define AWAIT_POLL_US 20U

struct load {
	struct repl *repl;
	uint8_t *pool;
	int journal;
	uint64_t seed;
	_Atomic unsigned acks;
	_Atomic unsigned ordered; /* pairs and appends begun */
	_Atomic unsigned running;
};

struct worker {
	struct load *load;
	pthread_t thread;
	unsigned lane;
	uint64_t random;
	uint32_t seq[POWER_KINDS][2048];
	uint32_t next_pair, next_large_pair, appends;
};

struct update {
	unsigned kind;
	uint32_t slot;
};

static uint32_t
worker_random(struct worker *w, uint32_t below)
{
	w->random = power_mix(w->random);
	return (uint32_t)((w->random >> 33) % below);
}

static void
worker_write(struct worker *w, const struct power_entry *e)
{
	if (write(w->load->journal, e, sizeof(*e)) != (ssize_t)sizeof(*e)) {
		perror("journal");
		_exit(3);
	}
	if (e->acked)
		atomic_fetch_add(&w->load->acks, 1);
}

static void
worker_note(struct worker *w, struct update u, bool acked)
{
	worker_write(w, &(struct power_entry){.lane = (uint8_t)w->lane,
					      .kind = (uint8_t)u.kind,
					      .acked = acked,
					      .slot = u.slot,
					      .seq = w->seq[u.kind][u.slot]});
}

/* The slot's next content, in the journal as begun before any byte of it is. */
static size_t
worker_begin(struct worker *w, struct update u)
{
	uint64_t off = power_slot_off(w->lane, u.kind, u.slot);
	uint32_t seq = ++w->seq[u.kind][u.slot];
	uint8_t *p = w->load->pool + off;

	worker_note(w, u, false);
	for (uint32_t i = 0; i < power_areas[u.kind].slot_size; i++)
		p[i] = power_byte(off, seq, i);
	return off;
}

static struct update
worker_pick(struct worker *w, unsigned kind)
{
	return (struct update){kind, worker_random(w, power_areas[kind].slots)};
}

static int
worker_persist(struct worker *w, unsigned kind)
{
	struct update u = worker_pick(w, kind);
	size_t off = worker_begin(w, u);
	int rc = repl_persist(w->load->repl, w->lane, off, power_areas[kind].slot_size);

	if (!rc)
		worker_note(w, u, true);
	return rc;
}

/* Several flushes, small and large, one drain. */
static int
worker_batch(struct worker *w)
{
	struct update u[BATCH];
	uint32_t first = worker_random(w, power_areas[POWER_SMALL].slots - BATCH);
	int rc = 0;

	for (uint32_t i = 0; i < BATCH; i++) {
		u[i] = (struct update){POWER_SMALL, first + i};
		if (i == 0)
			u[i] = worker_pick(w, POWER_LARGE);
		rc = rc ? rc
			: repl_flush(w->load->repl, w->lane, worker_begin(w, u[i]),
				     power_areas[u[i].kind].slot_size);
	}
	if (!rc)
		rc = repl_drain(w->load->repl, w->lane);
	for (uint32_t i = 0; i < BATCH && !rc; i++)
		worker_note(w, u[i], true);
	return rc;
}

static int
worker_atomic(struct worker *w)
{
	struct update u = worker_pick(w, POWER_ATOMIC);
	int rc = repl_persist_atomic8(w->load->repl, w->lane, worker_begin(w, u));

	if (!rc)
		worker_note(w, u, true);
	return rc;
}

/* The next pair of two kinds of slots that is fresh; none left: nothing. */
static int
worker_pair(struct worker *w, unsigned kind_a, uint32_t *next)
{
	struct update a = {kind_a, *next}, b = {kind_a + 1, *next};
	size_t a_off, b_off;
	int rc;

	if (*next == power_areas[kind_a].slots)
		return 0;
	(*next)++;
	a_off = worker_begin(w, a);
	b_off = worker_begin(w, b);
	atomic_fetch_add(&w->load->ordered, 1);
	rc = repl_persist_pair(w->load->repl, w->lane, a_off, power_areas[a.kind].slot_size, b_off,
			       power_areas[b.kind].slot_size);
	if (!rc) {
		worker_note(w, a, true);
		worker_note(w, b, true);
	}
	return rc;
}

/* To the area that all lanes share; full: nothing. */
static int
worker_append(struct worker *w)
{
	struct power_entry e = {.lane = (uint8_t)w->lane, .kind = POWER_APPEND};
	uint8_t record[POWER_APPEND_LEN];
	size_t off;
	int rc;

	if (w->appends + 1 == POWER_APPENDS_MAX)
		return 0;
	e.seq = ++w->appends;
	e.slot = 1 + worker_random(w, POWER_APPEND_LEN);
	for (uint32_t i = 0; i < e.slot; i++)
		record[i] = power_append_byte(w->lane, e.seq, i);
	worker_write(w, &e);
	atomic_fetch_add(&w->load->ordered, 1);
	rc = repl_append(w->load->repl, w->lane, POWER_TAIL_OFF, POWER_POOL_SIZE, record, e.slot,
			 &off);
	if (!rc) {
		e.slot = (uint32_t)off;
		e.acked = 1;
		worker_write(w, &e);
	}
	return rc == REPL_E_NOSPC ? 0 : rc;
}

static int
worker_step(struct worker *w)
{
	switch (worker_random(w, 11)) {
	case 0:
		return worker_persist(w, POWER_LARGE);
	case 1:
		return worker_batch(w);
	case 2:
	case 3:
		return worker_atomic(w);
	case 4:
	case 5:
		return worker_pair(w, POWER_PAIR_A, &w->next_pair);
	case 6:
		return worker_pair(w, POWER_LARGE_PAIR_A, &w->next_large_pair);
	case 7:
		return worker_append(w);
	default:
		return worker_persist(w, POWER_SMALL);
	}
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;

	while (worker_step(w) == 0)
		;
	atomic_fetch_sub(&w->load->running, 1);
	return NULL;
}

/* Every other seed cuts while a pair or append is under way: order shows only then. */
static void
load_await_order(struct load *l)
{
	unsigned before = atomic_load(&l->ordered);

	if (l->seed % 2 == 0)
		return;
	for (unsigned i = 0; i < AWAIT_POLLS && atomic_load(&l->ordered) == before; i++)
		(void)usleep(AWAIT_POLL_US);
}

static int
load_kill(pid_t pid)
{
	if (kill(pid, SIGKILL)) {
		perror("kill");
		return 1;
	}
	return 0;
}

/* When there have been so many acknowledgements in all, and a moment later. */
static int
load_cut_at(struct load *l, pid_t pid, unsigned acks)
{
	unsigned delay = (unsigned)(power_mix(l->seed + 1) % DELAY_US_MAX);

	for (unsigned us = 0; atomic_load(&l->acks) < acks; us += ACKS_POLL_US) {
		if (us > GIVE_UP_US || atomic_load(&l->running) < POWER_LANES) {
			(void)fprintf(stderr, "power_load: %u of %u acknowledgements: %s\n",
				      atomic_load(&l->acks), acks, repl_errormsg());
			return 1;
		}
		(void)usleep(ACKS_POLL_US);
	}
	load_await_order(l);
	(void)usleep(delay);
	return load_kill(pid);
}

/* At a moment that the seed decides. */
static int
load_cut(struct load *l, pid_t pid)
{
	return load_cut_at(l, pid, ACKS_MIN + (unsigned)(power_mix(l->seed) % ACKS_SPREAD));
}

/* Another one, while the load goes on without the first. */
static int
load_cut_again(struct load *l, pid_t pid)
{
	unsigned more = (unsigned)(power_mix(l->seed + 2) % ACKS_SPREAD);

	if (l->seed % 3 == 0)
		more = 0;
	return load_cut_at(l, pid, atomic_load(&l->acks) + more);
}

/* One, or the first of three, then the second one; the third when the load has ended. */
static int
load_cut_all(struct load *l, pid_t pid[3])
{
	int rc = load_cut(l, pid[0]);

	/* All at once: no generation says which has more. */
	for (unsigned i = 1; i < 3 && l->seed % 4 == 3; i++) {
		if (!rc && pid[i])
			rc = load_kill(pid[i]);
		pid[i] = 0;
	}
	return !rc && pid[1] ? load_cut_again(l, pid[1]) : rc;
}

static int
load_run(struct load *l)
{
	struct worker *workers = calloc(POWER_LANES, sizeof(*workers));
	char line[64], *at = line;
	pid_t pid[3] = {0};
	int rc = 1;

	(void)printf("ready\n");
	(void)fflush(stdout);
	if (!workers || !fgets(line, sizeof(line), stdin))
		return 1;
	for (unsigned i = 0; i < 3; i++)
		pid[i] = (pid_t)strtol(at, &at, 10);
	atomic_store(&l->running, POWER_LANES);
	for (unsigned i = 0; i < POWER_LANES; i++) {
		workers[i].load = l;
		workers[i].lane = i;
		workers[i].random = power_mix(l->seed * POWER_LANES + i);
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
			_exit(3);
	}
	rc = load_cut_all(l, pid);
	if (rc)
		_exit(rc);
	for (unsigned i = 0; i < POWER_LANES; i++)
		(void)pthread_join(workers[i].thread, NULL);
	if (pid[2] && load_kill(pid[2]))
		return 1;
	free(workers);
	(void)printf("%u acknowledged\n", atomic_load(&l->acks));
	return 0;
}

static uint8_t *
load_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	void *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, POWER_POOL_SIZE) == 0)
		p = mmap(NULL, POWER_POOL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static int
load_open(struct load *l, int argc, char **argv)
{
	struct repl_config *cfg = NULL;
	int rc = repl_config_new(&cfg);

	if (!rc)
		rc = repl_config_add_target(cfg, argv[4]);
	if (!rc)
		rc = repl_config_set(cfg, "on-loss", "fail");
	for (int i = 5; !rc && i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			return 2;
		*value++ = '\0';
		rc = repl_config_set(cfg, argv[i], value);
	}
	if (!rc)
		rc = repl_open(cfg, l->pool, POWER_POOL_SIZE, REPL_OPEN_CREATE, &l->repl);
	if (rc)
		(void)fprintf(stderr, "power_load: open: %s\n", repl_errormsg());
	repl_config_free(cfg);
	return rc;
}

/* The area for appends is empty, durably, before anybody appends. */
static int
load_make_tail(struct load *l)
{
	uint64_t tail = htole64(POWER_APPENDS_OFF);
	int rc;

	memcpy(l->pool + POWER_TAIL_OFF, &tail, sizeof(tail));
	rc = repl_persist(l->repl, 0, POWER_TAIL_OFF, sizeof(tail));
	if (rc)
		(void)fprintf(stderr, "power_load: the tail word: %s\n", repl_errormsg());
	return rc;
}

int
main(int argc, char **argv)
{
	struct load l = {.journal = -1};
	int rc;

	if (argc < 5)
		return 2;
	l.seed = strtoull(argv[1], NULL, 0);
	l.pool = load_map(argv[2]);
	l.journal = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	if (!l.pool || l.journal < 0) {
		perror(argv[2]);
		return 1;
	}
	if (load_open(&l, argc, argv) || load_make_tail(&l))
		return 1;
	rc = load_run(&l);
	(void)repl_close(l.repl);
	(void)close(l.journal);
	return rc;
}
