/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: api_misuse null
 *        api_misuse range|files|cancel|logs TARGET KEY KNOWN-HOSTS FILE
 *
 * What programs do wrong: calls without a handle, a range that is not there, too few
 * descriptors, threads that are cancelled in the middle of calls, logs over each other. Says what
 * is not as it should be.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <librepl.h>

#define POOL   1048576U
#define LANES  4U
#define ROUNDS 50

static struct repl *handle;
static struct repl_log *journal;
static char *pool;

static int
wrong(const char *what, int rc)
{
	(void)fprintf(stderr, "%s: %d %s\n", what, rc, repl_errormsg());
	return 1;
}

/* ---- no handle ---- */

static int
null_handle(void)
{
	struct repl_stat st = {.struct_size = sizeof(st)};
	const char *text;
	char buf[8] = {0};
	size_t off;
	int bad = 0;

#define REFUSED(call)                                                                              \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
                                                                                                   \
		if (rc_ != REPL_E_INVAL)                                                           \
			bad = wrong(#call, rc_);                                                   \
	} while (0)
	REFUSED(repl_flush(NULL, 0, 0, 8));
	REFUSED(repl_drain(NULL, 0));
	REFUSED(repl_persist(NULL, 0, 0, 8));
	REFUSED(repl_persist_atomic8(NULL, 0, 0));
	REFUSED(repl_persist_pair(NULL, 0, 0, 8, 8, 8));
	REFUSED(repl_commit(NULL, 0));
	REFUSED(repl_append(NULL, 0, 0, 64, buf, 8, &off));
	REFUSED(repl_grow(NULL, POOL));
	REFUSED(repl_read(NULL, 0, 0, buf, 0, 8));
	REFUSED(repl_stat(NULL, 0, &st));
	REFUSED(repl_profile(NULL, 0, &text));
	if (repl_lanes(NULL) || repl_replicas(NULL) || repl_close(NULL))
		bad = wrong("lanes, replicas or close", 0);
	repl_abandon(NULL);
	return bad;
}

static int
null_log(void)
{
	const struct iovec iov = {.iov_base = (void *)(uintptr_t) "x", .iov_len = 1};
	struct repl_log *log;
	uint64_t next;
	char buf[8];
	size_t len;
	int bad = 0;

	REFUSED(repl_log_create(NULL, 0, REPL_LOG_SIZE_MIN, REPL_LOG_CHECKSUM, &log));
	REFUSED(repl_log_open(NULL, 0, &log));
	REFUSED(repl_log_append(NULL, 0, "x", 1, NULL));
	REFUSED(repl_log_append_batch(NULL, 0, &iov, 1, NULL));
	REFUSED(repl_log_read(NULL, 0, buf, sizeof(buf), &len, &next));
	REFUSED(repl_log_trim(NULL, 0, 0));
	if (repl_log_head(NULL) || repl_log_tail(NULL))
		bad = wrong("head or tail", 0);
	repl_log_close(NULL);
	return bad;
}

/* ---- with a target ---- */

static struct repl_config *
configure(char **words)
{
	static const char *const keys[] = {"target", "identity", "known-hosts"};
	struct repl_config *cfg = NULL;
	int rc = repl_config_new(&cfg);

	for (unsigned i = 0; !rc && i < 3; i++)
		rc = repl_config_set(cfg, keys[i], words[i]);
	if (rc)
		exit(wrong("configuration", rc));
	return cfg;
}

static char *
map_file(const char *path, size_t file, size_t range)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char *at = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)file) == 0)
		at = mmap(NULL, range, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	(void)close(fd);
	return at;
}

static int
open_refused(const struct repl_config *cfg, char *at, size_t size, const char *what)
{
	struct repl *r = NULL;
	int rc = repl_open(cfg, at, size, REPL_OPEN_CREATE, &r);

	if (rc == REPL_E_INVAL && strstr(repl_errormsg(), "can't be read"))
		return 0;
	return wrong(what, rc);
}

/* A range that is mapped in part, and one that is longer than its file. */
static int
ranges(const struct repl_config *cfg, const char *file)
{
	char *at = map_file(file, POOL, POOL);
	int bad;

	if (munmap(at + POOL / 2, POOL / 2))
		return 2;
	bad = open_refused(cfg, at, POOL, "half a range");
	at = map_file(file, POOL / 2, POOL);
	return open_refused(cfg, at, POOL, "half a file") || bad;
}

/*
 * Until there are enough the limit is what the error names, and nothing of it remains: a record
 * that was made and could not be made durable does not count as that of a file that was written.
 */
static int
files(const struct repl_config *cfg, const char *file)
{
	struct rlimit limit;
	unsigned tries = 0;
	int rc = REPL_E_LIMIT;

	pool = map_file(file, POOL, POOL);
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 2;
	for (limit.rlim_cur = 16; rc == REPL_E_LIMIT && limit.rlim_cur <= 200; limit.rlim_cur++) {
		if (setrlimit(RLIMIT_NOFILE, &limit))
			return 2;
		rc = repl_open(cfg, pool, POOL, REPL_OPEN_CREATE, &handle);
		tries += rc == REPL_E_LIMIT && strstr(repl_errormsg(), "RLIMIT_NOFILE");
		/* The file beside the pool, and its directory. */
		if (rc && strstr(repl_errormsg(), "Too many open files"))
			rc = REPL_E_LIMIT;
	}
	if (rc || tries < 2)
		return wrong("descriptors", rc);
	return repl_close(handle) ? 1 : 0;
}

static void *
work(void *arg)
{
	unsigned lane = (unsigned)(uintptr_t)arg;

	for (size_t i = 0;; i++) {
		size_t off = lane * 65536U + i % 512 * 64;

		pthread_testcancel();
		memset(pool + off, (int)i, 64);
		if (repl_persist(handle, lane, off, 64) ||
		    repl_log_append(journal, lane, "record", 6, NULL)) {
			(void)wrong("a call before the thread was cancelled", 0);
			break;
		}
	}
	return NULL;
}

static int
cancelled(const struct repl_config *cfg, const char *file)
{
	pthread_t threads[LANES];
	int rc;

	pool = map_file(file, POOL, POOL);
	rc = repl_open(cfg, pool, POOL, REPL_OPEN_CREATE, &handle);
	if (!rc)
		rc = repl_log_create(handle, POOL / 2, POOL / 2, REPL_LOG_CHECKSUM, &journal);
	for (int round = 0; !rc && round < ROUNDS; round++) {
		for (uintptr_t i = 0; i < LANES; i++)
			if (pthread_create(&threads[i], NULL, work, (void *)i))
				return 2;
		(void)usleep(1000 + (useconds_t)round * 40);
		for (unsigned i = 0; i < LANES; i++)
			(void)pthread_cancel(threads[i]);
		for (unsigned i = 0; i < LANES; i++)
			(void)pthread_join(threads[i], NULL);
		for (unsigned i = 0; !rc && i < LANES; i++)
			rc = repl_persist(handle, i, i * 65536U, 64);
		if (!rc)
			rc = repl_log_trim(journal, 0, repl_log_tail(journal));
	}
	if (rc)
		return wrong("after threads were cancelled", rc);
	repl_log_close(journal);
	return repl_close(handle) ? 1 : 0;
}

/* What was acknowledged by one would be overwritten by the other. */
static int
logs(const struct repl_config *cfg, const char *file)
{
	struct repl_log *other = NULL;
	uint64_t next;
	char buf[8];
	size_t len;
	int rc, bad = 0;

	pool = map_file(file, POOL, POOL);
	rc = repl_open(cfg, pool, POOL, REPL_OPEN_CREATE, &handle);
	if (!rc)
		rc = repl_log_create(handle, 65536, 65536, REPL_LOG_CHECKSUM, &journal);
	if (rc)
		return wrong("a log", rc);
	if (repl_log_open(handle, 65536, &other) != REPL_E_BUSY || other)
		bad = wrong("a log that is open", 0);
	if (repl_log_open(handle, POOL, &other) != REPL_E_INVAL ||
	    !strstr(repl_errormsg(), "1048576 bytes"))
		bad = wrong("a log outside the pool", 0);
	if (repl_log_append(journal, 0, NULL, 4, NULL) != REPL_E_INVAL ||
	    !strstr(repl_errormsg(), "NULL"))
		bad = wrong("a record without data", 0);
	if (repl_log_create(handle, 98304, 65536, REPL_LOG_CHECKSUM, &other) != REPL_E_BUSY)
		bad = wrong("a log in another one", 0);
	if (repl_log_create(handle, 32768, 36864, REPL_LOG_CHECKSUM, &other) != REPL_E_BUSY)
		bad = wrong("a log around the beginning of another one", 0);
	rc = repl_log_create(handle, 131072, 65536, REPL_LOG_CHECKSUM, &other);
	if (rc)
		bad = wrong("a log behind another one", rc);
	repl_log_close(journal);
	rc = repl_log_open(handle, 65536, &journal);
	if (rc || repl_log_append(journal, 0, "last", 4, NULL))
		bad = wrong("a log that was closed", rc);
	repl_log_close(other);
	if (repl_close(handle))
		bad = wrong("close", 0);
	REFUSED(repl_log_append(journal, 0, "late", 4, NULL));
	REFUSED(repl_log_trim(journal, 0, 0));
	REFUSED(repl_log_read(journal, 0, buf, sizeof(buf), &len, &next));
	repl_log_close(journal);
	return bad;
}

int
main(int argc, char **argv)
{
	struct repl_config *cfg;
	int bad = 2;

	if (argc == 2 && !strcmp(argv[1], "null"))
		return null_handle() | null_log();
	if (argc != 6)
		return 2;
	cfg = configure(argv + 2);
	if (!strcmp(argv[1], "range"))
		bad = ranges(cfg, argv[5]);
	else if (!strcmp(argv[1], "files"))
		bad = files(cfg, argv[5]);
	else if (!strcmp(argv[1], "cancel"))
		bad = cancelled(cfg, argv[5]);
	else if (!strcmp(argv[1], "logs"))
		bad = logs(cfg, argv[5]);
	repl_config_free(cfg);
	return bad;
}
