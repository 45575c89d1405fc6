/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork_uses FILE - has FILE open, with the configuration of REPL_CONFIG, and a log in it, and forks
 * children that call every function with what they have of it, and end by exit(3): a handler closes
 * there what the program has open. Each call is refused at once, and the parent notices nothing.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <librepl.h>

#define SIZE     (1U << 20)
#define LOG_OFF  (SIZE / 2)
#define CHILDREN 20
#define CHILD_S  20U

static uint8_t *mem;
static struct repl *handle;
static struct repl_log *lines;
static atomic_bool stop;
static bool ok = true;
static pid_t parent;

static void
refused(int rc, const char *call)
{
	if (rc == REPL_E_INVAL && strstr(repl_errormsg(), "fork"))
		return;
	(void)fprintf(stderr, "%s: %d, %s\n", call, rc, repl_errormsg());
	_exit(1);
}

#define REFUSED(call) refused(call, #call)

static void
close_all(void)
{
	int rc;

	repl_log_close(lines);
	rc = repl_close(handle);
	if (getpid() != parent)
		refused(rc, "repl_close(handle)");
	else if (rc)
		_exit(1);
}

static void
child_uses(void)
{
	struct repl_stat st = {.struct_size = sizeof(st)};
	struct iovec iov = {.iov_base = "line", .iov_len = 4};
	struct repl_log *more;
	const char *text;
	uint64_t next;
	uint8_t buf[8];
	size_t n;

	REFUSED(repl_flush(handle, 1, 0, 8));
	REFUSED(repl_drain(handle, 1));
	REFUSED(repl_persist(handle, 1, 0, 8));
	REFUSED(repl_persist_atomic8(handle, 1, 0));
	REFUSED(repl_persist_pair(handle, 1, 0, 8, 8, 8));
	REFUSED(repl_commit(handle, 1));
	REFUSED(repl_append(handle, 1, 0, SIZE, "x", 1, &n));
	REFUSED(repl_grow(handle, 2 * SIZE));
	REFUSED(repl_read(handle, 1, 0, buf, 0, sizeof(buf)));
	REFUSED(repl_stat(handle, 0, &st));
	REFUSED(repl_profile(handle, 0, &text));
	REFUSED(repl_log_create(handle, 0, LOG_OFF, REPL_LOG_CHECKSUM, &more));
	REFUSED(repl_log_open(handle, LOG_OFF, &more));
	REFUSED(repl_log_append(lines, 1, "line", 4, NULL));
	REFUSED(repl_log_append_batch(lines, 1, &iov, 1, NULL));
	REFUSED(repl_log_read(lines, 0, buf, sizeof(buf), &n, &next));
	REFUSED(repl_log_trim(lines, 1, 0));
	if (repl_log_head(lines) != 0 || repl_log_tail(lines) != 0)
		_exit(1);
}

static bool
child_ends(unsigned i)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(CHILD_S);
		if (i % 3 == 0)
			child_uses();
		if (i % 3 == 1)
			repl_abandon(handle);
		exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void *
work(void *arg)
{
	unsigned lane = arg ? 1 : 0;

	for (unsigned i = 0; !atomic_load(&stop); i++) {
		mem[lane * 4096] = (uint8_t)i;
		if (repl_persist(handle, lane, lane * 4096, 1) ||
		    repl_log_append(lines, lane, "a line", 6, NULL)) {
			(void)fprintf(stderr, "lane %u: %s\n", lane, repl_errormsg());
			ok = false;
			break;
		}
		if (lane && repl_log_trim(lines, lane, repl_log_tail(lines)))
			ok = false;
	}
	return NULL;
}

static bool
open_pool(const char *path)
{
	struct repl_config *cfg = NULL;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool opened;

	if (fd < 0 || ftruncate(fd, SIZE))
		return false;
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	opened = mem != MAP_FAILED && repl_config_new(&cfg) == 0 &&
		 repl_config_load(cfg, NULL) == 0 &&
		 repl_open(cfg, mem, SIZE, REPL_OPEN_CREATE, &handle) == 0 &&
		 repl_log_create(handle, LOG_OFF, SIZE - LOG_OFF, REPL_LOG_POINTER, &lines) == 0;
	repl_config_free(cfg);
	return opened;
}

int
main(int argc, char **argv)
{
	struct repl_stat st = {.struct_size = sizeof(st)};
	pthread_t thread[2];

	parent = getpid();
	if (argc != 2 || !open_pool(argv[1]) || atexit(close_all)) {
		(void)fprintf(stderr, "%s\n", repl_errormsg());
		return 2;
	}
	for (unsigned i = 0; i < 2; i++) {
		if (pthread_create(&thread[i], NULL, work, i ? &stop : NULL))
			return 2;
	}
	for (unsigned i = 0; i < CHILDREN; i++) {
		if (!child_ends(i)) {
			(void)fprintf(stderr, "child %u\n", i);
			_exit(1);
		}
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_join(thread[i], NULL);
	if (!ok || repl_stat(handle, 0, &st) || st.error_count || st.reconnect_count) {
		(void)fprintf(stderr, "%" PRIu64 " errors, %s\n", st.error_count, st.reason);
		return 1;
	}
	return 0;
}
