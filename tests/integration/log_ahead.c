/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_ahead - a log whose writer dies with records stored that no replica has.
 *
 * usage: log_ahead run|open FILE TARGET [KEY=VALUE ...]
 *
 * run makes a log, says "ready" and waits for a line; then its writers append a record
 * each, and when the last one is in the pool it says "stored" and waits to be killed.
 * open opens the log, and says how many records there are.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <librepl.h>

#define MIB       (1UL << 20)
#define POOL_SIZE (64 * MIB)
#define LOG_SIZE  (32 * MIB)
#define RING_OFF  12288UL
#define RECORD    (MIB - 64) /* takes a MiB */
#define WRITERS   4U
#define BEFORE    2U /* so that the others' go on into a part that was not written to before */

struct ahead {
	struct repl *repl;
	struct repl_log *log;
	int fd; /* of the pool */
};

static int
start(struct ahead *a, const char *file, const char *target, char **options, int count)
{
	struct repl_config *cfg = NULL;
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc;
	void *pool;

	if (fd < 0 || ftruncate(fd, (off_t)POOL_SIZE))
		return REPL_E_FAILED;
	pool = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pool == MAP_FAILED)
		return REPL_E_FAILED;
	a->fd = fd;
	rc = repl_config_new(&cfg);
	if (!rc)
		rc = repl_config_add_target(cfg, target);
	for (int i = 0; !rc && i < count; i++) {
		char *value = strchr(options[i], '=');

		if (!value)
			return REPL_E_INVAL;
		*value++ = '\0';
		rc = repl_config_set(cfg, options[i], value);
	}
	if (!rc)
		rc = repl_open(cfg, pool, POOL_SIZE, REPL_OPEN_CREATE, &a->repl);
	repl_config_free(cfg);
	return rc;
}

struct writer {
	struct ahead *ahead;
	unsigned lane;
};

static void *
write_one(void *arg)
{
	struct writer *w = arg;
	void *data = calloc(1, RECORD);

	if (data)
		(void)!repl_log_append(w->ahead->log, w->lane, data, RECORD, NULL);
	free(data);
	return NULL;
}

/* By the file, since the thread that stores there and this one know nothing of each other. */
static bool
is_stored(const struct ahead *a, off_t off)
{
	uint8_t byte = 0;

	return pread(a->fd, &byte, 1, off) == 1 && byte;
}

static int
run(struct ahead *a)
{
	struct writer writers[WRITERS];
	void *data = calloc(1, RECORD);
	pthread_t t;
	int rc = repl_log_create(a->repl, 0, LOG_SIZE, REPL_LOG_CHECKSUM, &a->log);

	if (!data)
		return REPL_E_NOMEM;
	for (unsigned i = 0; !rc && i < BEFORE; i++)
		rc = repl_log_append(a->log, 0, data, RECORD, NULL);
	free(data);
	if (rc)
		return rc;
	(void)puts("ready");
	(void)fflush(stdout);
	(void)getchar();
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){.ahead = a, .lane = i};
		if (pthread_create(&t, NULL, write_one, &writers[i]))
			return REPL_E_NOMEM;
		/* The first one's is a group, the others' are the next. */
		while (!is_stored(a, (off_t)(RING_OFF + (BEFORE + i) * MIB)))
			(void)usleep(1000);
	}
	(void)puts("stored");
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}

static int
check(struct ahead *a)
{
	static uint8_t buf[MIB];
	int rc = repl_log_open(a->repl, 0, &a->log);
	uint64_t at = rc ? 0 : repl_log_head(a->log);
	unsigned count = 0;
	size_t len;

	while (!rc) {
		rc = repl_log_read(a->log, at, buf, sizeof(buf), &len, &at);
		count += rc == 0;
	}
	if (rc != REPL_E_NOT_FOUND || at != repl_log_tail(a->log))
		return rc;
	(void)printf("%u records\n", count);
	return 0;
}

int
main(int argc, char **argv)
{
	struct ahead a = {0};
	int rc;

	if (argc < 4)
		return 2;
	rc = start(&a, argv[2], argv[3], argv + 4, argc - 4);
	if (!rc)
		rc = strcmp(argv[1], "run") == 0 ? run(&a) : check(&a);
	if (rc)
		(void)fprintf(stderr, "log_ahead: %s\n", repl_errormsg());
	repl_log_close(a.log);
	(void)repl_close(a.repl);
	return rc ? 1 : 0;
}
