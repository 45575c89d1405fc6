/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_load - fills a pool by its resync journal, round by round.
 *
 * usage: stage_load -i IDENTITY -k KNOWN_HOSTS rounds TARGET/POOL SIZE COUNT SEED FIRST
 *        stage_load -i IDENTITY -k KNOWN_HOSTS hold TARGET/POOL SIZE COUNT SEED FIRST
 *        stage_load -i IDENTITY -k KNOWN_HOSTS check TARGET/POOL FILE ROUND
 *        stage_load -i IDENTITY -k KNOWN_HOSTS speed TARGET/POOL SIZE
 *
 * rounds  Each page gets the number of the round, in ranges of random lengths, and so does the
 *         generation; prints "began N", "committed N". The target's end is no failure.
 * hold    The same, and what is committed is not applied before the end of the standard input.
 *
 * check   Opens the pool, so that the target brings in what is left, and looks at its file: all
 *         pages are of the round that the generation names, which is ROUND or later; prints it.
 *
 * speed   A whole pool by the journal: MB/s of each step.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "config.h"
#include "le.h"
#include "stage.h"

#define PAGE      4096U
#define APPLY_MAX (8U << 20)

struct load {
	struct repl_config *config;
	const char *name;
	struct remote *remote;
	uint8_t *mem;
	uint64_t size;
	uint32_t seed;
	bool hold; /* after the first commit */
};

static int
load_fail(const char *what, const struct err *e)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "FAILED: %s: %s\n", what, e->text);
	return 1;
}

static uint32_t
draw(struct load *l, uint32_t below)
{
	l->seed = l->seed * 1664525U + 1013904223U;
	return (l->seed >> 8) % below;
}

static void
round_fill(struct load *l, uint64_t n)
{
	for (uint64_t at = 0; at < l->size; at += PAGE) {
		memset(l->mem + at, (int)(n & 0xff), PAGE);
		put_le64(l->mem + at, n);
		put_le64(l->mem + at + PAGE - 8, n);
	}
}

static int
session(struct load *l, enum remote_mode mode, struct err *e)
{
	struct json_object *params = json_object_new_object();
	int rc = remote_new(l->config, &l->config->targets[0], NULL, &l->remote, e);

	json_object_object_add(params, "name", json_object_new_string(l->name));
	json_object_object_add(params, "size", json_object_new_int64((int64_t)l->size));
	if (rc || mode != REMOTE_WRITE) {
		json_object_put(params);
	} else {
		rc = remote_call(l->remote, "pool.create", params, NULL, e);
		if (rc == REPL_E_EXISTS)
			rc = 0;
	}
	return rc ? rc : remote_pool_open(l->remote, l->name, mode, e);
}

static void
load_end(struct load *l, unsigned ms)
{
	if (l->remote)
		remote_free(l->remote, ms);
	l->remote = NULL;
}

static int
round_stage(struct load *l, struct err *e)
{
	const struct fill_source from = {.mem = l->mem, .fd = -1};
	struct stage *s = NULL;
	uint64_t at = 0;
	int rc = remote_journal_begin(l->remote, l->size, e);

	if (!rc)
		rc = stage_begin(l->remote, &from, (struct breath){0}, &s, e);
	while (!rc && at < l->size) {
		uint64_t len = (1 + (uint64_t)draw(l, 40)) * PAGE;

		if (len > l->size - at)
			len = l->size - at;
		rc = stage_range(s, at, len, e);
		at += len;
	}
	if (!rc)
		rc = stage_settle(s, e);
	stage_end(s);
	return rc;
}

static int
round_run(struct load *l, uint64_t n, struct err *e)
{
	struct generation g = {0};
	uint64_t done = 0, total = 1;
	int rc;

	put_le64(g.current.b, n);
	g.current.b[15] = 1;
	round_fill(l, n);
	(void)printf("began %llu\n", (unsigned long long)n);
	(void)fflush(stdout);
	rc = round_stage(l, e);
	if (!rc)
		rc = remote_journal_commit(l->remote, SIDECAR_OUTDATED, &g, 0, e);
	if (rc)
		return rc;
	(void)printf("committed %llu\n", (unsigned long long)n);
	(void)fflush(stdout);
	while (l->hold && getchar() != EOF)
		continue;
	while (!rc && done < total)
		rc = remote_journal_apply(l->remote, 1 + draw(l, (uint32_t)l->size), &done, &total,
					  e);
	return rc;
}

static int
run_rounds(struct load *l, uint64_t first, uint64_t count)
{
	struct err e;
	int rc = 0;

	err_clear(&e);
	l->mem = malloc(l->size);
	if (!l->mem || session(l, REMOTE_WRITE, &e) ||
	    remote_lanes_open(l->remote, l->config->lanes, &e))
		return load_fail("open", &e);
	for (uint64_t n = first; !rc && n < first + count; n++)
		rc = round_run(l, n, &e);
	if (rc == REPL_E_LOST || rc == REPL_E_TIMEOUT)
		(void)printf("lost\n");
	else if (rc)
		return load_fail("round", &e);
	load_end(l, rc ? 0 : 5000);
	return 0;
}

static int
run_check(struct load *l, const char *file, uint64_t least)
{
	const struct sidecar *m;
	uint8_t page[PAGE];
	uint64_t n, at = 0;
	struct err e;
	int fd;

	err_clear(&e);
	if (session(l, REMOTE_STABLE, &e))
		return load_fail("open", &e);
	m = &remote_info(l->remote)->meta;
	n = get_le64(m->generation.current.b);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	while (read(fd, page, PAGE) == PAGE) {
		if (get_le64(page) != n || get_le64(page + PAGE - 8) != n)
			(void)err_set(&e, REPL_E_CORRUPT,
				      "page at %llu is of round %llu, the generation of %llu",
				      (unsigned long long)at, (unsigned long long)get_le64(page),
				      (unsigned long long)n);
		at += PAGE;
	}
	(void)close(fd);
	if (!e.code && (at != m->pool_size || n < least))
		(void)err_set(&e, REPL_E_CORRUPT, "round %llu of %llu, %llu bytes",
			      (unsigned long long)n, (unsigned long long)least,
			      (unsigned long long)at);
	if (!e.code && (m->state == SIDECAR_INCONSISTENT || m->state == SIDECAR_UP_TO_DATE) && n)
		(void)err_set(&e, REPL_E_CORRUPT, "it is %s", sidecar_state_name(m->state));
	load_end(l, 5000);
	if (e.code)
		return load_fail("check", &e);
	(void)printf("round %llu\n", (unsigned long long)n);
	return 0;
}

static void
speed_say(const char *what, uint64_t bytes, uint64_t from)
{
	(void)printf("%-8s %7.1f MB/s\n", what,
		     (double)bytes * 1e3 / (double)(clock_now_ns() - from));
}

static int
run_speed(struct load *l)
{
	struct fill_source source = {.fd = -1};
	uint64_t start, since, done = 0, total = 1;
	struct stage *s = NULL;
	struct err e;
	int rc;

	err_clear(&e);
	l->mem = malloc(l->size);
	if (!l->mem || session(l, REMOTE_WRITE, &e) ||
	    remote_lanes_open(l->remote, l->config->lanes, &e))
		return load_fail("open", &e);
	round_fill(l, 77);
	source.mem = l->mem;
	start = since = clock_now_ns();
	rc = remote_journal_begin(l->remote, l->size, &e);
	speed_say("begin", l->size, since);
	since = clock_now_ns();
	if (!rc)
		rc = stage_begin(l->remote, &source, (struct breath){0}, &s, &e);
	if (!rc)
		rc = stage_range(s, 0, l->size, &e);
	if (!rc)
		rc = stage_settle(s, &e);
	stage_end(s);
	speed_say("stage", l->size, since);
	since = clock_now_ns();
	if (!rc)
		rc = remote_journal_commit(l->remote, SIDECAR_OUTDATED, NULL, 0, &e);
	speed_say("commit", l->size, since);
	since = clock_now_ns();
	while (!rc && done < total)
		rc = remote_journal_apply(l->remote, APPLY_MAX, &done, &total, &e);
	speed_say("apply", l->size, since);
	speed_say("all", l->size, start);
	load_end(l, 5000);
	return rc ? load_fail("speed", &e) : 0;
}

static uint64_t
number(char **argv, int i)
{
	return argv[i] ? strtoull(argv[i], NULL, 10) : 0;
}

int
main(int argc, char **argv)
{
	struct load l = {.seed = 1};
	struct err e;
	int option, rc = 2;

	err_clear(&e);
	if (repl_config_new(&l.config))
		return 1;
	while ((option = getopt(argc, argv, "i:k:")) != -1)
		if (repl_config_set(l.config, option == 'i' ? "identity" : "known-hosts", optarg))
			return 1;
	if (argc - optind < 3 || repl_config_add_target(l.config, argv[optind + 1]))
		return 2;
	argv += optind;
	l.name = l.config->targets[0].pool;
	l.size = number(argv, 2);
	if (strcmp(argv[0], "check") == 0) {
		rc = run_check(&l, argv[2], number(argv, 3));
	} else if (strcmp(argv[0], "speed") == 0) {
		rc = run_speed(&l);
	} else if (argc - optind >= 6) {
		l.seed = (uint32_t)number(argv, 4);
		l.hold = strcmp(argv[0], "hold") == 0;
		rc = run_rounds(&l, number(argv, 5), number(argv, 3));
	}
	/* What has failed is open still. */
	load_end(&l, 0);
	free(l.mem);
	repl_config_free(l.config);
	return rc;
}
