/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resync - a replica brought up to date: what moves and how long it takes of 1 %
 * scattered blocks, the rate of a whole pool by the journal and directly, and
 * what a program's persists to another replica of the same target take meanwhile.
 *
 *   resync TARGET KEY KNOWN-HOSTS SIZE ROUNDS
 *
 * TARGET has the pools "r", of SIZE bytes, new, and "f", of 1 MiB. One JSON object
 * on standard output.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"
#include "dirty.h"
#include "local.h"
#include "remote.h"
#include "resync.h"

#define FRONT_SIZE (1U << 20)
#define FRONT_LEN  4096U
#define ROUNDS_MAX 32
#define SAMPLES    (1U << 16)

static struct repl_config *config;
static struct remote *rem;
static struct dirty *dirty;
static struct local no_local;
static uint8_t *mem;
static uint64_t size;
static struct generation chain_now;

static void
check(int rc, const struct err *e, const char *what)
{
	if (rc == 0)
		return;
	(void)fprintf(stderr, "resync: %s: %s\n", what, e ? e->text : repl_errormsg());
	exit(1);
}

static uint64_t
lo_bytes(void)
{
	FILE *f = fopen("/proc/net/dev", "r");
	unsigned long long n = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, "lo:");

		if (at)
			n = strtoull(at + 3, NULL, 10);
	}
	if (f)
		(void)fclose(f);
	return n;
}

/* ---- the program in front ---- */

static struct {
	pthread_t thread;
	pthread_mutex_t lock; /* guards ns and count */
	_Atomic bool stop;
	uint64_t ns[SAMPLES]; /* since they were last looked at */
	unsigned count;
	uint64_t all[SAMPLES];
	unsigned all_count;
} front = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int
by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void *
front_run(void *arg)
{
	struct repl *r = arg;

	for (uint64_t i = 0; !front.stop; i++) {
		uint64_t begin_ns = clock_now_ns(), ns;
		size_t off = i % (FRONT_SIZE / FRONT_LEN) * FRONT_LEN;

		check(repl_persist(r, 0, off, FRONT_LEN), NULL, "persist");
		ns = clock_now_ns() - begin_ns;
		pthread_mutex_lock(&front.lock);
		front.ns[front.count++ % SAMPLES] = ns;
		front.all[front.all_count++ % SAMPLES] = ns;
		pthread_mutex_unlock(&front.lock);
	}
	return NULL;
}

static uint64_t
median_take(uint64_t *ns, unsigned *count)
{
	uint64_t median = 0;
	unsigned n;

	pthread_mutex_lock(&front.lock);
	n = *count < SAMPLES ? *count : SAMPLES;
	qsort(ns, n, sizeof(*ns), by_value);
	if (n)
		median = ns[n / 2];
	*count = 0;
	pthread_mutex_unlock(&front.lock);
	return median;
}

static uint64_t
front_ns(void *arg)
{
	(void)arg;
	return median_take(front.ns, &front.count);
}

/* ---- resyncs ---- */

static const struct generation *
chain_get(void *arg)
{
	struct gen_id id;
	struct err e;

	(void)arg;
	err_clear(&e);
	check(local_new_id(&id, &e), &e, "generation");
	gen_advance(&chain_now, &id);
	return &chain_now;
}

static int
hold(void *arg, uint64_t deadline_ns, struct breath breath, struct err *e)
{
	(void)arg;
	(void)deadline_ns;
	(void)breath;
	(void)e;
	return 0;
}

static void
release(void *arg)
{
	(void)arg;
}

struct cost {
	uint64_t ns, moved, wire;
};

static struct cost
run(enum resync_what what, bool direct, bool beside)
{
	struct resync_progress progress = {0};
	struct resync s = {.remote = rem,
			   .mem = mem,
			   .dirty = dirty,
			   .progress = &progress,
			   .no_journal = direct};
	uint64_t begin_ns = clock_now_ns(), wire = lo_bytes();
	struct err e;

	s.host.hold = hold;
	s.host.release = release;
	s.host.foreground_ns = beside ? front_ns : NULL;
	err_clear(&e);
	check(resync_run(&s, what, chain_get, &e), &e, "resync");
	return (struct cost){.ns = clock_now_ns() - begin_ns,
			     .moved = progress.moved,
			     .wire = lo_bytes() - wire};
}

static void
block_change(uint64_t off)
{
	(*(uint64_t *)(void *)(mem + off))++;
	dirty_mark(dirty, 0, off, 4096);
}

/* 1 % of the blocks, anywhere; their bytes. */
static uint64_t
scatter(void)
{
	static uint64_t seed = 1;
	uint64_t blocks = size / 4096;

	for (uint64_t i = 0; i < blocks / 100; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		block_change((seed >> 33) % blocks * 4096);
	}
	return blocks / 100 * 4096;
}

static void
change_all(void)
{
	for (uint64_t off = 0; off < size; off += 4096)
		block_change(off);
}

static double
rate(const struct cost *c)
{
	return (double)size * 1e9 / (double)c->ns;
}

static void
open_all(char **argv)
{
	char text[512];
	struct gen_id none = {0};
	struct target t;
	struct err e;

	err_clear(&e);
	check(repl_config_new(&config), NULL, "config");
	check(repl_config_set(config, "identity", argv[2]), NULL, "config");
	check(repl_config_set(config, "known-hosts", argv[3]), NULL, "config");
	(void)snprintf(text, sizeof(text), "%s/r", argv[1]);
	check(repl_config_set(config, "target", text), NULL, text);
	t = config->targets[0];
	check(remote_new(config, &t, NULL, &rem, &e), &e, "connect");
	check(remote_pool_open(rem, t.pool, REMOTE_WRITE, &e), &e, "open");
	check(remote_lanes_open(rem, config->lanes, &e), &e, "lanes");
	local_init(&no_local);
	check(dirty_open(&no_local, config, size, false, &dirty, &e), &e, "dirty");
	check(dirty_track(dirty, 0, &none), NULL, "track");
}

static void
beside_front(char **argv)
{
	struct repl_config *c;
	struct repl *r;
	struct cost cost;
	char text[512];
	uint64_t alone_ns, beside_ns;
	void *pool =
		mmap(NULL, FRONT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(repl_config_new(&c), NULL, "config");
	check(repl_config_set(c, "identity", argv[2]), NULL, "config");
	check(repl_config_set(c, "known-hosts", argv[3]), NULL, "config");
	(void)snprintf(text, sizeof(text), "%s/f", argv[1]);
	check(repl_config_set(c, "target", text), NULL, text);
	check(repl_open(c, pool, FRONT_SIZE, 0, &r), NULL, "open f");
	check(pthread_create(&front.thread, NULL, front_run, r), NULL, "thread");
	(void)nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
	alone_ns = median_take(front.all, &front.all_count);
	(void)front_ns(NULL);
	(void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	change_all();
	(void)median_take(front.all, &front.all_count);
	cost = run(RESYNC_DELTA, false, true);
	beside_ns = median_take(front.all, &front.all_count);
	front.stop = true;
	(void)pthread_join(front.thread, NULL);
	(void)repl_close(r);
	repl_config_free(c);
	(void)munmap(pool, FRONT_SIZE);
	(void)printf("\"front\": {\"alone_ns\": %llu, \"beside_ns\": %llu, \"bytes_per_s\": %.0f}",
		     (unsigned long long)alone_ns, (unsigned long long)beside_ns, rate(&cost));
}

int
main(int argc, char **argv)
{
	unsigned rounds;

	if (argc != 6)
		return 2;
	size = strtoull(argv[4], NULL, 10);
	rounds = (unsigned)atoi(argv[5]);
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return 1;
	open_all(argv);
	change_all();
	(void)run(RESYNC_FULL, false, false);
	(void)printf("{\"size\": %llu, \"rounds\": [", (unsigned long long)size);
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t dirty_bytes = scatter();
		struct cost part = run(RESYNC_DELTA, false, false), journal, direct;

		change_all();
		journal = run(RESYNC_DELTA, false, false);
		change_all();
		direct = run(RESYNC_DELTA, true, false);
		(void)printf("%s{\"dirty\": %llu, \"moved\": %llu, \"wire\": %llu, \"ns\": %llu, "
			     "\"journal\": %.0f, \"direct\": %.0f}",
			     i ? ", " : "", (unsigned long long)dirty_bytes,
			     (unsigned long long)part.moved, (unsigned long long)part.wire,
			     (unsigned long long)part.ns, rate(&journal), rate(&direct));
	}
	(void)printf("], ");
	beside_front(argv);
	(void)printf(", \"class\": \"%s\"}\n",
		     profile_value_name(PROFILE_F_CLASS, remote_info(rem)->durability));
	dirty_close(dirty);
	remote_free(rem, 1000);
	repl_config_free(config);
	return 0;
}
