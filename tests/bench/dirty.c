/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dirty - what the log of after-crash = dirty-map costs a persist, against
 * after-crash = compare, side by side on two pools in files; then, when the
 * replicas are gone, what a persist costs that is only marked in the dirty map.
 * Prints one JSON object. Between the two it makes the file LOST and goes on
 * when both replicas are lost.
 *
 * usage: dirty HOST IDENTITY KNOWN-HOSTS ROUNDS SLICE-MS DIRECTORY LOST
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "side.h"

#define SIZE   (256UL << 20)
#define LEN    64U
#define CHUNK  (1UL << 20)
#define WAIT_S 60U

/* Over all of the pool, so that marks are new ones for some time, and extents many. */
static int
persist(void *arg, uint64_t i)
{
	struct side_pool *p = arg;
	size_t off = (size_t)(i * 10007 * LEN % SIZE);

	p->mem[off]++;
	return repl_persist(p->r, 0, off, LEN);
}

static void
open_one(struct side_pool *p, const struct side_target *t, const char *dir, const char *crash)
{
	char file[512];
	struct side_options o = {.file = file, .after_crash = crash, .on_loss = "degrade"};

	(void)snprintf(file, sizeof(file), "%s/%s", dir, crash);
	side_check(side_open(p, t, crash, SIZE, &o), crash);
	/* The first store to a page costs a fault on both sides, and whatever the host takes for
	 * it. */
	for (size_t off = 0; off < SIZE; off += CHUNK) {
		memset(p->mem + off, 1, CHUNK);
		side_check(repl_persist(p->r, 0, off, CHUNK), "first touch");
	}
}

static bool
is_lost(struct side_pool *p)
{
	struct repl_stat st = {.struct_size = sizeof(st)};

	side_check(repl_stat(p->r, 0, &st), "stat");
	return st.replication == REPL_REPL_DEGRADED;
}

static void
await_loss(struct side_pool *a, struct side_pool *b, const char *mark)
{
	uint64_t end = side_now_ns() + WAIT_S * 1000000000ULL;
	int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0) {
		perror(mark);
		exit(1);
	}
	(void)close(fd);
	while (!is_lost(a) || !is_lost(b)) {
		(void)persist(a, 0);
		(void)persist(b, 0);
		if (side_now_ns() > end) {
			(void)fprintf(stderr, "the replicas are still there\n");
			exit(1);
		}
		(void)usleep(1000);
	}
}

int
main(int argc, char **argv)
{
	struct side_pool compare, map;
	struct side one = {.name = "compare", .op = persist, .arg = &compare};
	struct side two = {.name = "dirty-map", .op = persist, .arg = &map};
	struct side *sides[] = {&one, &two};
	unsigned rounds = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	struct side_target t;
	uint64_t slice_ns;

	if (argc != 8 || rounds == 0 || rounds > SIDE_ROUNDS_MAX)
		return 2;
	t = (struct side_target){.host = argv[1], .identity = argv[2], .known_hosts = argv[3]};
	slice_ns = (uint64_t)atoi(argv[5]) * 1000000U;
	open_one(&compare, &t, argv[6], "compare");
	open_one(&map, &t, argv[6], "dirty-map");
	side_measure(sides, 2, rounds, slice_ns, false);
	(void)printf(
		"{\"class\": \"%s\", \"compare_ns\": %.1f, \"map_ns\": %.1f, \"ratio\": %.3f, ",
		side_class(&map), side_ns(&one, rounds), side_ns(&two, rounds),
		side_ratio(&two, &one, rounds));
	await_loss(&compare, &map, argv[7]);
	one.estimate_ns = two.estimate_ns = 0;
	side_measure(sides, 2, rounds, slice_ns, false);
	(void)printf("\"lost_compare_ns\": %.1f, \"lost_map_ns\": %.1f, \"lost_ratio\": %.3f}\n",
		     side_ns(&one, rounds), side_ns(&two, rounds), side_ratio(&two, &one, rounds));
	side_close(&map);
	side_close(&compare);
	return 0;
}
