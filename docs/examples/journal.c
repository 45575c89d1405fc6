/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal - an example: lines of text in a log that librepl keeps durable on a
 * remote host.
 *
 *   journal append FILE TARGET [KEY=VALUE ...]   append the lines of standard input; says each
 *                                                one's position once it is durable
 *   journal list FILE TARGET [KEY=VALUE ...]     print all lines, the oldest first
 *   journal trim FILE TARGET POSITION [KEY=VALUE ...]   forget the lines before POSITION
 *
 * The pool file is FILE, JOURNAL_SIZE bytes, all of it the log.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <librepl.h>

#define JOURNAL_SIZE (1UL << 20)
#define LINE_SIZE    4096

static int
fail(const char *what)
{
	(void)fprintf(stderr, "journal: %s: %s\n", what, repl_errormsg());
	return 1;
}

static void *
map_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	void *p = MAP_FAILED;

	/* With its space: a store into a hole would end the program where the disk is full. */
	if (fd >= 0)
		errno = posix_fallocate(fd, 0, JOURNAL_SIZE);
	if (fd >= 0 && errno == 0)
		p = mmap(NULL, JOURNAL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		perror(path);
	if (fd >= 0)
		(void)close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* With "KEY=VALUE" of the command line. */
static int
open_pool(void *pool, const char *target, int optc, char **optv, struct repl **r)
{
	struct repl_config *cfg = NULL;
	int rc = repl_config_new(&cfg);

	if (!rc)
		rc = repl_config_load(cfg, NULL);
	if (!rc)
		rc = repl_config_add_target(cfg, target);
	for (int i = 0; !rc && i < optc; i++) {
		char *value = strchr(optv[i], '=');

		if (value)
			*value++ = '\0';
		rc = repl_config_set(cfg, optv[i], value ? value : "");
	}
	if (!rc)
		rc = repl_open(cfg, pool, JOURNAL_SIZE, REPL_OPEN_CREATE, r);
	repl_config_free(cfg);
	return rc;
}

/* The log at the pool's start, made at the first use. */
static int
open_log(struct repl *r, struct repl_log **log)
{
	int rc = repl_log_open(r, 0, log);

	if (rc == REPL_E_NOT_FOUND)
		rc = repl_log_create(r, 0, JOURNAL_SIZE, REPL_LOG_CHECKSUM, log);
	return rc;
}

/*
 * Here as well, for what no replica has. It orders nothing: behind a power cut of this machine the
 * pool is restored from a replica before this is run again (docs/RECOVERY.md).
 */
static int
make_durable(void *pool)
{
	if (msync(pool, JOURNAL_SIZE, MS_SYNC) == 0)
		return 0;
	perror("msync");
	return 1;
}

static int
append_lines(struct repl_log *log, void *pool)
{
	char line[LINE_SIZE];
	uint64_t position;

	while (fgets(line, sizeof(line), stdin)) {
		if (repl_log_append(log, 0, line, strlen(line), &position))
			return fail("append");
		if (make_durable(pool))
			return 1;
		(void)printf("%" PRIu64 "\n", position);
		if (fflush(stdout))
			return 1;
	}
	return 0;
}

static int
list_lines(struct repl_log *log)
{
	uint64_t at = repl_log_head(log);
	char line[LINE_SIZE];
	size_t len;
	int rc;

	while ((rc = repl_log_read(log, at, line, sizeof(line), &len, &at)) == 0)
		(void)fwrite(line, 1, len, stdout);
	return rc == REPL_E_NOT_FOUND ? 0 : fail("read");
}

static int
trim_lines(struct repl_log *log, void *pool, const char *position)
{
	if (repl_log_trim(log, 0, strtoull(position, NULL, 10)))
		return fail("trim");
	return make_durable(pool);
}

int
main(int argc, char **argv)
{
	const char *command = argc >= 4 ? argv[1] : "";
	int trim = strcmp(command, "trim") == 0 && argc >= 5;
	struct repl *r = NULL;
	struct repl_log *log = NULL;
	void *pool;
	int rc = 0;

	if (!trim && strcmp(command, "append") != 0 && strcmp(command, "list") != 0) {
		(void)fputs("usage: journal append|list FILE TARGET [KEY=VALUE ...] | "
			    "journal trim FILE TARGET POSITION [KEY=VALUE ...]\n",
			    stderr);
		return 2;
	}
	pool = map_file(argv[2]);
	if (!pool)
		return 1;
	if (open_pool(pool, argv[3], argc - 4 - trim, argv + 4 + trim, &r) || open_log(r, &log))
		rc = fail("open");
	else if (trim)
		rc = trim_lines(log, pool, argv[4]);
	else
		rc = strcmp(command, "list") == 0 ? list_lines(log) : append_lines(log, pool);
	repl_log_close(log);
	return repl_close(r) && !rc ? fail("close") : rc;
}
