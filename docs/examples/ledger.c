/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ledger - an example: a counter and its records in a pool that librepl keeps
 * durable on a remote host.
 *
 *   ledger write FILE TARGET [KEY=VALUE ...]   append until the pool is full, which takes some
 *                                              minutes; prints each number once it is durable
 *                                              on the replica
 *   ledger check FILE LAST                     verify that records 1 .. LAST are there
 *
 * The pool file is FILE, LEDGER_SIZE bytes: a counter at offset 0, records of
 * 64 bytes from offset 4096. Each update is an ordered pair: the record is
 * durable before the counter that covers it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <librepl.h>

#define LEDGER_SIZE (64UL << 20)
#define RECORDS_OFF 4096UL
#define RECORD_MAX  ((LEDGER_SIZE - RECORDS_OFF) / sizeof(struct record))
#define PAUSE_US    100 /* without a replica that answers the pool would be full in two seconds */

struct record {
	uint64_t number;
	uint64_t check;
	char text[48];
};

static uint64_t
record_check(const struct record *r)
{
	uint64_t sum = 1469598103934665603ULL ^ r->number;

	for (size_t i = 0; i < sizeof(r->text); i++)
		sum = (sum ^ (unsigned char)r->text[i]) * 1099511628211ULL;
	return sum;
}

static uint8_t *
map_file(const char *path, int create)
{
	int fd = open(path, O_RDWR | (create ? O_CREAT : 0), 0600);
	void *p;

	if (fd < 0) {
		perror(path);
		return NULL;
	}
	if (create && ftruncate(fd, LEDGER_SIZE)) {
		perror(path);
		(void)close(fd);
		return NULL;
	}
	p = mmap(NULL, LEDGER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (p == MAP_FAILED) {
		perror(path);
		return NULL;
	}
	return p;
}

static int
fail(const char *what)
{
	(void)fprintf(stderr, "ledger: %s: %s\n", what, repl_errormsg());
	return 1;
}

/* Set "KEY=VALUE" of the command line. */
static int
set_option(struct repl_config *cfg, char *option)
{
	char *value = strchr(option, '=');

	if (!value)
		return repl_config_set(cfg, option, "");
	*value++ = '\0';
	return repl_config_set(cfg, option, value);
}

/* On this machine, by whole pages. What replicas have is to be in the pool, so it comes first. */
static int
persist_here(uint8_t *pool, size_t off, size_t len)
{
	size_t from = off & ~(size_t)4095;
	int rc = msync(pool + from, off + len - from, MS_SYNC);

	if (rc)
		perror("msync");
	return rc;
}

static int
append_all(struct repl *r, uint8_t *pool)
{
	uint64_t *counter = (uint64_t *)(void *)pool;
	struct record *records = (struct record *)(void *)(pool + RECORDS_OFF);

	while (*counter < RECORD_MAX) {
		struct record *rec = &records[*counter];
		size_t off = (size_t)((uint8_t *)rec - pool);

		rec->number = *counter + 1;
		(void)snprintf(rec->text, sizeof(rec->text), "payment %" PRIu64 " of the day",
			       rec->number);
		rec->check = record_check(rec);
		if (persist_here(pool, off, sizeof(*rec)))
			return 1;
		/*
		 * A replica that comes back in this moment gets what was flushed and the pool as it
		 * is: never a counter without the record that it covers.
		 */
		if (repl_flush(r, 0, off, sizeof(*rec)))
			return fail("flush");
		*counter += 1;
		if (persist_here(pool, 0, 8))
			return 1;
		if (repl_persist_pair(r, 0, off, sizeof(*rec), 0, 8))
			return fail("persist");
		(void)printf("%" PRIu64 "\n", *counter);
		if (fflush(stdout))
			return 1;
		(void)usleep(PAUSE_US);
	}
	return 0;
}

static int
ledger_write(const char *file, const char *target, int optc, char **optv)
{
	struct repl_config *cfg = NULL;
	struct repl *r = NULL;
	uint8_t *pool = map_file(file, 1);
	int rc;

	if (!pool)
		return 1;
	rc = repl_config_new(&cfg);
	if (!rc)
		rc = repl_config_load(cfg, NULL);
	if (!rc)
		rc = repl_config_add_target(cfg, target);
	for (int i = 0; !rc && i < optc; i++)
		rc = set_option(cfg, optv[i]);
	if (!rc)
		rc = repl_open(cfg, pool, LEDGER_SIZE, REPL_OPEN_CREATE, &r);
	repl_config_free(cfg);
	if (rc)
		return fail("open");
	rc = append_all(r, pool);
	return repl_close(r) ? fail("close") : rc;
}

static int
ledger_check(const char *file, uint64_t last)
{
	uint8_t *pool = map_file(file, 0);
	uint64_t count;

	if (!pool)
		return 1;
	count = *(uint64_t *)(void *)pool;
	if (count < last || count > RECORD_MAX) {
		(void)printf("counter is %" PRIu64 ", %" PRIu64 " was acknowledged\n", count, last);
		return 1;
	}
	for (uint64_t i = 0; i < count; i++) {
		const struct record *rec = (struct record *)(void *)(pool + RECORDS_OFF) + i;

		if (rec->number != i + 1 || rec->check != record_check(rec)) {
			(void)printf("record %" PRIu64 " is damaged\n", i + 1);
			return 1;
		}
	}
	(void)printf("counter %" PRIu64 ", acknowledged %" PRIu64 ", all records whole\n", count,
		     last);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[1], "write") == 0)
		return ledger_write(argv[2], argv[3], argc - 4, argv + 4);
	if (argc == 4 && strcmp(argv[1], "check") == 0)
		return ledger_check(argv[2], strtoull(argv[3], NULL, 10));
	(void)fputs("usage: ledger write FILE TARGET [KEY=VALUE ...] | ledger check FILE LAST\n",
		    stderr);
	return 2;
}
