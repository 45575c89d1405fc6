/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_again - open a log again on the same handle.
 *
 * usage: log_again trim|beside|busy|turns|dies|lags|fails|open|log FILE TARGET [KEY=VALUE ...]
 *
 * trim: behind a large trim, which the target has only noted, the log is opened again and
 * appended to where the trim was. beside: the same, with a part of what is not zero yet made
 * durable before, which ends amid a page. busy: an append fails since its lane is in use all the
 * time, the log is opened again and keeps what it finds. FILE and the replica must be
 * equal after it; busy says how many records there are. turns: two threads open the log by
 * turns, as soon as it is not busy, and each finds what the other one has appended. dies: reads the
 * target's process id from standard input, which is stopped behind a large trim, and waits to be
 * killed. lags: the same of replica 1, and opens the log again; then waits for a line, and until
 * that replica was away and is back. fails: as busy, but with a line that it waits for before, and
 * without opening the log again. open: opens the pool only. log: opens the log, too.
 * Exit status 3: records are lost though no call has failed.
 */
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

#define MIB       (1UL << 20)
#define POOL_SIZE (160 * MIB)
#define LOG_SIZE  (96 * MIB)
#define RECORD    (MIB - 64)
#define OTHER_OFF LOG_SIZE /* what is not of the log */
#define LONG      32U      /* records, which take a while to look through */
#define TURNS     20U
#define TRIES     100U

struct again {
	struct repl *repl;
	struct repl_log *log;
	uint8_t *pool;
	uint8_t *data;
	atomic_bool begun, stop, lost;
	_Atomic uint64_t tail; /* that the last turn has left */
};

static int
set_options(struct repl_config *cfg, char **options, int count)
{
	for (int i = 0; i < count; i++) {
		char *value = strchr(options[i], '=');

		if (!value)
			return REPL_E_INVAL;
		*value++ = '\0';
		if (repl_config_set(cfg, options[i], value))
			return REPL_E_INVAL;
	}
	return 0;
}

static int
start(struct again *a, const char *file, const char *target, char **options, int count)
{
	struct repl_config *cfg = NULL;
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc;

	if (fd < 0 || ftruncate(fd, (off_t)POOL_SIZE))
		return REPL_E_FAILED;
	a->pool = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	a->data = malloc(RECORD);
	if (a->pool == MAP_FAILED || !a->data)
		return REPL_E_FAILED;
	rc = repl_config_new(&cfg);
	if (!rc)
		rc = repl_config_add_target(cfg, target);
	if (!rc)
		rc = set_options(cfg, options, count);
	if (!rc)
		rc = repl_open(cfg, a->pool, POOL_SIZE, REPL_OPEN_CREATE, &a->repl);
	repl_config_free(cfg);
	return rc;
}

/* Until the log is full. */
static int
fill(struct again *a, unsigned *count)
{
	int rc;

	memset(a->data, 0x5a, RECORD);
	for (*count = 0; !(rc = repl_log_append(a->log, 0, a->data, RECORD, NULL)); ++*count)
		;
	return rc == REPL_E_NOSPC ? 0 : rc;
}

/* The tail is in the middle of the ring: what is zeroed last is written first. */
static int
do_trim(struct again *a, bool beside)
{
	unsigned count;
	int rc = fill(a, &count);

	for (unsigned i = 0; !rc && i < count / 2; i++) {
		uint64_t at = repl_log_head(a->log), next;
		size_t len;

		rc = repl_log_read(a->log, at, a->data, RECORD, &len, &next);
		if (!rc)
			rc = repl_log_trim(a->log, 0, next);
	}
	if (!rc)
		rc = fill(a, &count);
	if (!rc)
		rc = repl_log_trim(a->log, 0, repl_log_tail(a->log));
	if (!rc && beside)
		rc = repl_persist(a->repl, 0, LOG_SIZE - MIB, MIB / 2 + 104);
	repl_log_close(a->log);
	a->log = NULL;
	if (!rc)
		rc = repl_log_open(a->repl, 0, &a->log);
	for (unsigned i = 0; !rc && i < 8; i++)
		rc = repl_log_append(a->log, 0, a->data, RECORD, NULL);
	return rc;
}

static void *
occupy(void *arg)
{
	struct again *a = arg;

	while (!atomic_load(&a->stop)) {
		(void)!repl_persist(a->repl, 1, OTHER_OFF, POOL_SIZE - OTHER_OFF);
		atomic_store(&a->begun, true);
	}
	return NULL;
}

static int
do_busy(struct again *a)
{
	unsigned count = 0;
	pthread_t t;
	int rc = repl_log_append(a->log, 0, "first", 5, NULL);
	size_t len;

	if (rc || pthread_create(&t, NULL, occupy, a))
		return rc ? rc : REPL_E_FAILED;
	while (!atomic_load(&a->begun))
		(void)usleep(1000);
	rc = repl_log_append(a->log, 1, "second", 6, NULL);
	atomic_store(&a->stop, true);
	(void)pthread_join(t, NULL);
	(void)printf("append: %d\n", rc);
	repl_log_close(a->log);
	a->log = NULL;
	rc = repl_log_open(a->repl, 0, &a->log);
	for (uint64_t at = rc ? 0 : repl_log_head(a->log); !rc; count++)
		rc = repl_log_read(a->log, at, a->data, RECORD, &len, &at);
	(void)printf("records: %u\n", count - 1);
	return rc == REPL_E_NOT_FOUND ? 0 : rc;
}

/* What this one finds is said where it is not what the one before has left. */
static int
take_turn(struct again *a)
{
	struct repl_log *log;
	uint64_t tail;
	int rc;

	while ((rc = repl_log_open(a->repl, 0, &log)) == REPL_E_BUSY)
		(void)usleep(100);
	if (rc)
		return rc;
	tail = repl_log_tail(log);
	if (tail != atomic_load(&a->tail)) {
		(void)fprintf(stderr, "lost: from %llu to %llu\n", (unsigned long long)tail,
			      (unsigned long long)atomic_load(&a->tail));
		/* What a failed append has left is not promised. */
		atomic_store(&a->lost, !atomic_load(&a->stop));
		rc = REPL_E_CORRUPT;
	}
	if (!rc) {
		rc = repl_log_append(log, 0, "turn", 4, NULL);
		if (rc)
			atomic_store(&a->stop, true);
	}
	atomic_store(&a->tail, repl_log_tail(log));
	repl_log_close(log);
	return rc;
}

static void *
take_turns(void *arg)
{
	struct again *a = arg;
	int rc = 0;

	for (unsigned i = 0; i < TURNS && !rc; i++)
		rc = take_turn(a);
	if (rc) {
		(void)fprintf(stderr, "log_again: a turn: %d, %s\n", rc, repl_errormsg());
		atomic_store(&a->stop, true);
	}
	return NULL;
}

static int
do_turns(struct again *a)
{
	pthread_t t;
	int rc = 0;

	for (unsigned i = 0; !rc && i < LONG; i++)
		rc = repl_log_append(a->log, 0, a->data, RECORD, NULL);
	atomic_store(&a->tail, repl_log_tail(a->log));
	repl_log_close(a->log);
	a->log = NULL;
	if (rc || pthread_create(&t, NULL, take_turns, a))
		return rc ? rc : REPL_E_FAILED;
	(void)take_turns(a);
	(void)pthread_join(t, NULL);
	return atomic_load(&a->stop) ? REPL_E_FAILED : 0;
}

/* An append fails that way, without the last replica, and nobody opens the log again. */
static int
do_fails(struct again *a)
{
	pthread_t t;
	char line[32];
	int rc = repl_log_append(a->log, 0, "first", 5, NULL);

	(void)puts("filled");
	(void)fflush(stdout);
	if (rc || !fgets(line, sizeof(line), stdin))
		return rc ? rc : REPL_E_FAILED;
	rc = repl_persist(a->repl, 0, OTHER_OFF, 1);
	if (rc || pthread_create(&t, NULL, occupy, a))
		return rc ? rc : REPL_E_FAILED;
	while (!atomic_load(&a->begun))
		(void)usleep(1000);
	/* Between two persists it may get the lane all the same, and has to leave it for long
	 * enough. */
	for (unsigned i = 0; i < TRIES && !rc; i++) {
		rc = repl_log_append(a->log, 1, "second", 6, NULL);
		if (!rc)
			(void)usleep(5000);
	}
	atomic_store(&a->stop, true);
	(void)pthread_join(t, NULL);
	(void)printf("append: %d\n", rc);
	return 0;
}

static int
do_dies(struct again *a)
{
	unsigned count;
	char line[32];
	int rc = fill(a, &count);

	(void)puts("filled");
	(void)fflush(stdout);
	if (rc || !fgets(line, sizeof(line), stdin))
		return rc ? rc : REPL_E_FAILED;
	rc = repl_log_trim(a->log, 0, repl_log_tail(a->log));
	(void)kill(atoi(line), SIGSTOP);
	(void)puts("trimmed");
	(void)fflush(stdout);
	while (!rc)
		(void)pause();
	return rc;
}

static bool
stat_is(struct again *a, struct repl_stat *st)
{
	*st = (struct repl_stat){.struct_size = sizeof(*st)};
	return repl_stat(a->repl, 1, st) == 0;
}

/* Replica 1 has been told of a trim, and is stopped; the log goes on without it. */
static int
do_lags(struct again *a)
{
	struct repl_stat st;
	unsigned count;
	char line[32];
	int rc = fill(a, &count);

	(void)puts("filled");
	(void)fflush(stdout);
	if (rc || !fgets(line, sizeof(line), stdin))
		return rc ? rc : REPL_E_FAILED;
	while (stat_is(a, &st) && st.lag_bytes > 0)
		(void)usleep(1000);
	rc = repl_log_trim(a->log, 0, repl_log_tail(a->log));
	while (stat_is(a, &st) && st.lag_bytes > 0)
		;
	(void)kill(atoi(line), SIGSTOP);
	repl_log_close(a->log);
	a->log = NULL;
	if (!rc)
		rc = repl_log_open(a->repl, 0, &a->log);
	(void)puts("settled");
	(void)fflush(stdout);
	if (rc || !fgets(line, sizeof(line), stdin))
		return rc ? rc : REPL_E_FAILED;
	while (stat_is(a, &st) && st.replication == REPL_REPL_ESTABLISHED)
		(void)usleep(1000);
	while (stat_is(a, &st) && st.replication != REPL_REPL_ESTABLISHED)
		(void)usleep(1000);
	return 0;
}

static int
run(struct again *a, const char *how)
{
	int rc;

	if (strcmp(how, "open") == 0)
		return 0;
	if (strcmp(how, "log") == 0)
		return repl_log_open(a->repl, 0, &a->log);
	rc = repl_log_create(a->repl, 0, LOG_SIZE, REPL_LOG_CHECKSUM, &a->log);
	if (rc)
		return rc;
	if (strcmp(how, "dies") == 0)
		return do_dies(a);
	if (strcmp(how, "lags") == 0)
		return do_lags(a);
	if (strcmp(how, "fails") == 0)
		return do_fails(a);
	if (strcmp(how, "turns") == 0)
		return do_turns(a);
	if (strcmp(how, "busy") == 0)
		return do_busy(a);
	return do_trim(a, strcmp(how, "beside") == 0);
}

int
main(int argc, char **argv)
{
	struct again a = {0};
	int rc;

	if (argc < 4)
		return 2;
	rc = start(&a, argv[2], argv[3], argv + 4, argc - 4);
	if (!rc)
		rc = run(&a, argv[1]);
	if (rc)
		(void)fprintf(stderr, "log_again: %s\n", repl_errormsg());
	repl_log_close(a.log);
	(void)repl_close(a.repl);
	free(a.data);
	if (a.lost)
		return 3;
	return rc ? 1 : 0;
}
