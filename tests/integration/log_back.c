/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_back - a log that is in use while a replica comes back.
 *
 * usage: log_back run|trim KIND FILE TARGET [KEY=VALUE ...]
 *        log_back check FILE TARGET [KEY=VALUE ...]
 *
 * run makes a log, says "ready" and appends, until the replica was away and is back: then
 * it kills itself. trim trims meanwhile, on a lane of its own, says "ready" when all of the log was
 * used more than once, and how the replica came back. check opens the log of FILE, a copy of that
 * replica, on a new one.
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
#define LOG_OFF   (32 * MIB)
#define OTHER     (2 * MIB) /* bytes before it that change, too: so its tail is not copied at once */
#define RECORD    (32UL * 1024 - 64)
#define PACE_US   100U
#define SIZE      (64 * MIB)
#define SIZE_TRIM (288 * MIB)
#define RING      (SIZE_TRIM - LOG_OFF) /* about what that log has room for */
#define TRIM_US   20000U

struct back {
	atomic_bool stop;
	struct repl *repl;
	struct repl_log *log;
	uint8_t *pool;
	size_t size;
};

static int
start(struct back *b, const char *file, const char *target, char **options, int count)
{
	struct repl_config *cfg = NULL;
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc;

	if (fd < 0 || ftruncate(fd, (off_t)b->size))
		return REPL_E_FAILED;
	b->pool = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (b->pool == MAP_FAILED)
		return REPL_E_FAILED;
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
		rc = repl_open(cfg, b->pool, b->size, REPL_OPEN_CREATE, &b->repl);
	repl_config_free(cfg);
	return rc;
}

static bool
established(struct back *b)
{
	struct repl_stat st = {.struct_size = sizeof(st)};

	return repl_stat(b->repl, 0, &st) == 0 && st.replication == REPL_REPL_ESTABLISHED;
}

static void *
watch(void *arg)
{
	struct back *b = arg;

	while (established(b))
		(void)usleep(1000);
	while (!established(b))
		;
	(void)kill(getpid(), SIGKILL);
	return NULL;
}

static void *
change_other(void *arg)
{
	struct back *b = arg;

	for (int i = 0; !repl_persist(b->repl, 1, 0, OTHER); i++) {
		memset(b->pool, i, OTHER);
		(void)usleep(10 * PACE_US);
	}
	return NULL;
}

static int
run(struct back *b, enum repl_log_kind kind)
{
	uint8_t *data = calloc(1, RECORD);
	pthread_t other, watcher;
	int rc = repl_log_create(b->repl, LOG_OFF, b->size - LOG_OFF, kind, &b->log);

	if (!data || (!rc && (pthread_create(&other, NULL, change_other, b) ||
			      pthread_create(&watcher, NULL, watch, b))))
		return REPL_E_NOMEM;
	(void)puts("ready");
	(void)fflush(stdout);
	while (!rc) {
		rc = repl_log_append(b->log, 0, data, RECORD, NULL);
		if (rc == REPL_E_NOSPC)
			rc = repl_log_trim(b->log, 0, repl_log_tail(b->log));
		/* Slow enough to be caught up with. */
		(void)usleep(PACE_US);
	}
	return rc;
}

static void *
trim_on(void *arg)
{
	struct back *b = arg;

	while (!atomic_load(&b->stop)) {
		uint64_t at = repl_log_tail(b->log);

		(void)usleep(TRIM_US);
		if (repl_log_trim(b->log, 1, at))
			(void)fprintf(stderr, "log_back: trim: %s\n", repl_errormsg());
	}
	return NULL;
}

static void *
watch_moved(void *arg)
{
	struct repl_stat st = {.struct_size = sizeof(st)};
	struct back *b = arg;
	uint64_t moved = 0;
	bool torn = false;

	while (established(b))
		(void)usleep(1000);
	while (repl_stat(b->repl, 0, &st) == 0 && st.replication != REPL_REPL_ESTABLISHED) {
		moved = st.resync_moved > moved ? st.resync_moved : moved;
		torn |= st.data == REPL_DATA_INCONSISTENT;
		(void)usleep(1000);
	}
	(void)printf("%llu MiB%s\n", (unsigned long long)(moved / MIB),
		     torn ? ", and it was inconsistent" : "");
	atomic_store(&b->stop, true);
	return NULL;
}

static int
run_trimmed(struct back *b, enum repl_log_kind kind)
{
	int rc = repl_log_create(b->repl, LOG_OFF, b->size - LOG_OFF, kind, &b->log);
	uint8_t *data = calloc(1, RECORD);
	pthread_t trimmer, watcher;
	bool ready = false;

	if (!data || (!rc && (pthread_create(&trimmer, NULL, trim_on, b) ||
			      pthread_create(&watcher, NULL, watch_moved, b))))
		return REPL_E_NOMEM;
	while (!rc && !atomic_load(&b->stop)) {
		rc = repl_log_append(b->log, 0, data, RECORD, NULL);
		if (rc == REPL_E_NOSPC)
			rc = 0;
		if (!ready && repl_log_head(b->log) > RING + RING / 2) {
			ready = true;
			(void)puts("ready");
			(void)fflush(stdout);
		}
		(void)usleep(ready ? 10 * PACE_US : PACE_US);
	}
	atomic_store(&b->stop, true);
	(void)pthread_join(trimmer, NULL);
	(void)pthread_join(watcher, NULL);
	free(data);
	return rc;
}

int
main(int argc, char **argv)
{
	struct back b = {0};
	bool trims = argc > 1 && strcmp(argv[1], "trim") == 0;
	bool runs = argc > 1 && strcmp(argv[1], "run") == 0;
	int at = runs || trims ? 3 : 2, rc;

	if (argc < at + 2)
		return 2;
	b.size = trims ? SIZE_TRIM : SIZE;
	rc = start(&b, argv[at], argv[at + 1], argv + at + 2, argc - at - 2);
	if (!rc && runs)
		rc = run(&b, (enum repl_log_kind)atoi(argv[2]));
	else if (!rc && trims)
		rc = run_trimmed(&b, (enum repl_log_kind)atoi(argv[2]));
	else if (!rc)
		rc = repl_log_open(b.repl, LOG_OFF, &b.log);
	if (rc)
		(void)fprintf(stderr, "log_back: %s\n", repl_errormsg());
	repl_log_close(b.log);
	(void)repl_close(b.repl);
	return rc ? 1 : 0;
}
