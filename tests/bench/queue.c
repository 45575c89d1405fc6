/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue - a persist to three replicas, with each way of waiting for them, against one
 * to one replica, side by side. Prints one JSON object.
 *
 * usage: queue HOST IDENTITY KNOWN-HOSTS ROUNDS SLICE-MS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "side.h"

#define SIZE (64UL << 20)

static const struct way {
	const char *name, *ack;
	unsigned sync, async;
} ways[] = {
	{"one", "all", 1, 0},
	{"three, all", "all", 3, 0},
	{"three, quorum", "quorum", 3, 0},
	{"three, any", "any", 3, 0},
	{"one and one asynchronous", "all", 1, 1},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static const size_t lens[] = {64, 4096, 65536};
static size_t len;

static int
persist(void *arg, uint64_t i)
{
	struct side_pool *p = arg;
	size_t off = (size_t)(i * 7919 * len % SIZE);

	p->mem[off]++;
	return repl_persist(p->r, 0, off, len);
}

static void
add(struct repl_config *cfg, const char *key, const struct side_target *t, unsigned way,
    unsigned replica)
{
	char target[256];

	(void)snprintf(target, sizeof(target), "%s/w%u-%u", t->host, way, replica);
	side_check(repl_config_set(cfg, key, target), target);
}

static void
open_way(struct side_pool *p, const struct side_target *t, unsigned way)
{
	struct repl_config *cfg = NULL;

	p->size = p->room = SIZE;
	p->mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->mem == MAP_FAILED)
		exit(1);
	side_check(repl_config_new(&cfg), "config");
	side_check(repl_config_set(cfg, "identity", t->identity), "identity");
	side_check(repl_config_set(cfg, "known-hosts", t->known_hosts), "known-hosts");
	side_check(repl_config_set(cfg, "ack", ways[way].ack), "ack");
	for (unsigned i = 0; i < ways[way].sync + ways[way].async; i++)
		add(cfg, i < ways[way].sync ? "target" : "async-target", t, way, i);
	side_check(repl_open(cfg, p->mem, SIZE, REPL_OPEN_CREATE, &p->r), ways[way].name);
	repl_config_free(cfg);
}

static void
measure(struct side_pool *pools, unsigned rounds, uint64_t slice_ns)
{
	struct side side[WAYS], *sides[WAYS];

	memset(side, 0, sizeof(side));
	for (unsigned w = 0; w < WAYS; w++) {
		side[w].name = ways[w].name;
		side[w].op = persist;
		side[w].arg = &pools[w];
		sides[w] = &side[w];
	}
	side_measure(sides, WAYS, rounds, slice_ns, false);
	for (unsigned w = 0; w < WAYS; w++)
		(void)printf("%s{\"len\": %zu, \"name\": \"%s\", \"ns\": %.1f, \"ratio\": %.3f}",
			     w || len != lens[0] ? ", " : "", len, ways[w].name,
			     side_ns(&side[w], rounds), side_ratio(&side[w], &side[0], rounds));
}

int
main(int argc, char **argv)
{
	unsigned rounds = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	struct side_pool pools[WAYS];
	struct side_target t;

	if (argc != 6 || rounds == 0 || rounds > SIDE_ROUNDS_MAX)
		return 2;
	t = (struct side_target){.host = argv[1], .identity = argv[2], .known_hosts = argv[3]};
	for (unsigned w = 0; w < WAYS; w++)
		open_way(&pools[w], &t, w);
	(void)printf("{\"class\": \"%s\", \"ways\": [", side_class(&pools[0]));
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		len = lens[i];
		measure(pools, rounds, (uint64_t)atoi(argv[5]) * 1000000U);
	}
	(void)printf("]}\n");
	for (unsigned w = 0; w < WAYS; w++)
		side_close(&pools[w]);
	return 0;
}
