/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue - a persist to three replicas, with each way of waiting for them, against one
 * to one replica, and bare TCP to as many servers, side by side. Prints one JSON object.
 *
 * usage: queue HOST IDENTITY KNOWN-HOSTS ROUNDS SLICE-MS BUSY-POLL
 *
 * BUSY-POLL is that of both sides: the target's configuration has it, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "raw_many.h"
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

/* Bare TCP to as many as are waited for: what it costs beside that is ours. */
static const struct bare {
	const char *name;
	unsigned servers, way;
} bares[] = {
	{"bare TCP to one", 1, 0},
	{"bare TCP to three", 3, 1},
};
#define BARES (sizeof(bares) / sizeof(bares[0]))

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
open_way(struct side_pool *p, const struct side_target *t, unsigned way, const char *busy_poll)
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
	side_check(repl_config_set(cfg, "busy-poll", busy_poll), "busy-poll");
	for (unsigned i = 0; i < ways[way].sync + ways[way].async; i++)
		add(cfg, i < ways[way].sync ? "target" : "async-target", t, way, i);
	side_check(repl_open(cfg, p->mem, SIZE, REPL_OPEN_CREATE, &p->r), ways[way].name);
	repl_config_free(cfg);
}

static void
print(const struct side *s, const struct side *to, unsigned rounds)
{
	(void)printf("{\"len\": %zu, \"name\": \"%s\", \"ns\": %.1f, \"ratio\": %.3f", len, s->name,
		     side_ns(s, rounds), side_ratio(s, to, rounds));
}

static void
measure(struct side_pool *pools, struct raw_many **raw, unsigned rounds, uint64_t slice_ns)
{
	struct side side[WAYS + BARES], *sides[WAYS + BARES];

	memset(side, 0, sizeof(side));
	for (unsigned i = 0; i < WAYS + BARES; i++) {
		sides[i] = &side[i];
		if (i < WAYS) {
			side[i].name = ways[i].name;
			side[i].op = persist;
			side[i].arg = &pools[i];
			continue;
		}
		side[i].name = bares[i - WAYS].name;
		side[i].op = raw_many_trip;
		side[i].arg = raw[i - WAYS];
		raw_many_size(raw[i - WAYS], (uint32_t)len);
	}
	side_measure(sides, WAYS + BARES, rounds, slice_ns, false);
	for (unsigned i = 0; i < WAYS + BARES; i++) {
		(void)printf("%s", i || len != lens[0] ? ", " : "");
		print(&side[i], &side[0], rounds);
		for (unsigned b = 0; b < BARES; b++) {
			if (bares[b].way == i)
				(void)printf(", \"to_bare\": %.3f",
					     side_ratio(&side[i], &side[WAYS + b], rounds));
		}
		(void)printf("}");
	}
}

int
main(int argc, char **argv)
{
	unsigned rounds = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	struct raw_many *raw[BARES];
	struct side_pool pools[WAYS];
	struct side_target t;

	if (argc != 7 || rounds == 0 || rounds > SIDE_ROUNDS_MAX)
		return 2;
	t = (struct side_target){.host = argv[1], .identity = argv[2], .known_hosts = argv[3]};
	for (unsigned b = 0; b < BARES; b++)
		raw[b] = raw_many_new(bares[b].servers, (unsigned)atoi(argv[6]));
	for (unsigned w = 0; w < WAYS; w++)
		open_way(&pools[w], &t, w, argv[6]);
	(void)printf("{\"class\": \"%s\", \"busy_poll_us\": %s, \"ways\": [", side_class(&pools[0]),
		     argv[6]);
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		len = lens[i];
		measure(pools, raw, rounds, (uint64_t)atoi(argv[5]) * 1000000U);
	}
	(void)printf("]}\n");
	for (unsigned w = 0; w < WAYS; w++)
		side_close(&pools[w]);
	for (unsigned b = 0; b < BARES; b++)
		raw_many_free(raw[b]);
	return 0;
}
