/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork_returns FILE [CALL] - has FILE open, with the configuration of REPL_CONFIG, and a log in it.
 * It says ready; when it is told that its target does not answer any more threads append to the
 * log, trim it, make much durable, let the pool grow, and append by a tail word, and each is
 * interrupted by a handler that forks. The child abandons the handle and returns to the call, which
 * ends there as one whose replicas are lost. When it has said forked the target is to answer, and
 * the parent's calls succeed; a child that returns only then stores nothing over what they have.
 * With CALL, which is drain or grow, it does that, and the handler interrupts each sync of
 * FILE.repl in it. The child opens a file as often as that has the number of each descriptor that
 * is free when the handle is abandoned: nothing is written to it.
 */
#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <librepl.h>

#define SIZE      (1U << 20)
#define LOG_OFF   (SIZE / 2)
#define DATA      4096U      /* where what is appended by the tail word begins, which is at 0 */
#define MUCH      (SIZE / 8) /* of each that drains: more than a queue has room for */
#define THREADS   8U
#define ROUNDS    3U
#define CHILD_S   20U
#define OWN_MAX   64U /* descriptors */
#define SYNCS_MAX 32U

enum does { APPENDS, TRIMS, DRAINS, GROWS, APPENDS_WORD };

struct call {
	pthread_t thread;
	unsigned lane;
	enum does does;
	atomic_bool begun;
	int rc;
};

/* Of two that do the same one is at it, and the other one waits for it. */
static const enum does all[THREADS] = {APPENDS, APPENDS, TRIMS, TRIMS,
				       DRAINS,  DRAINS,  GROWS, APPENDS_WORD};

static uint8_t *mem;
static struct repl *handle;
static struct repl_log *lines;
static uint64_t end; /* of what is in the log before */
static volatile sig_atomic_t is_child;
static _Atomic pid_t forked;
static int wake[2]; /* closed: the child that waits for it returns */
static atomic_bool child_waits;

static int pool;
static struct stat record;        /* FILE.repl */
static __thread bool amid_sync;   /* of which each sync by this thread is interrupted */
static pid_t children[SYNCS_MAX]; /* of those */
static unsigned synced;
static int own = -1;                     /* the child's file */
static char own_name[] = "fork_returns"; /* as a memory file */

static void
check(bool ok, const char *what)
{
	if (ok)
		return;
	(void)fprintf(stderr, "%s: %s\n", what, repl_errormsg());
	_exit(1);
}

static void
on_signal(int number)
{
	pid_t pid = fork();

	(void)number;
	if (pid == 0) {
		is_child = 1;
		(void)alarm(CHILD_S);
		repl_abandon(handle);
		if (atomic_load(&child_waits)) {
			char c;

			(void)close(wake[1]);
			while (read(wake[0], &c, 1) > 0)
				;
		}
	}
	atomic_store(&forked, pid);
}

/* What librepl calls. */
__attribute__((visibility("default"))) int
fdatasync(int fd)
{
	struct stat st;

	if (amid_sync && fstat(fd, &st) == 0 && st.st_ino == record.st_ino &&
	    st.st_dev == record.st_dev) {
		(void)raise(SIGUSR1);
		amid_sync = !is_child;
		check(synced < SYNCS_MAX, "syncs");
		children[synced++] = forked;
		for (unsigned i = 0; is_child && i < OWN_MAX; i++)
			own = own < 0 ? memfd_create(own_name, MFD_CLOEXEC)
				      : fcntl(own, F_DUPFD_CLOEXEC, 0);
	}
	return (int)syscall(SYS_fdatasync, fd);
}

static int
append_word(unsigned lane, const char *data, size_t len)
{
	size_t off;

	return repl_append(handle, lane, 0, LOG_OFF, data, len, &off);
}

static int
grow(void)
{
	return ftruncate(pool, 2 * SIZE) ? -1 : repl_grow(handle, 2 * SIZE);
}

static void *
call_run(void *arg)
{
	struct call *c = arg;

	atomic_store(&c->begun, true);
	if (c->does == APPENDS)
		c->rc = repl_log_append(lines, c->lane, "a line", 6, NULL);
	else if (c->does == TRIMS)
		c->rc = repl_log_trim(lines, c->lane, end);
	else if (c->does == DRAINS)
		c->rc = repl_persist(handle, c->lane, MUCH * (c->lane % 2 + 1), MUCH);
	else if (c->does == GROWS)
		c->rc = grow();
	else
		c->rc = append_word(c->lane, "first", 5);
	if (is_child)
		_exit(c->rc == 0 || c->rc == REPL_E_LOST ? 0 : 2);
	return NULL;
}

static void
nap(void)
{
	(void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
}

static pid_t
child_new(const struct call *c)
{
	atomic_store(&forked, 0);
	check(pthread_kill(c->thread, SIGUSR1) == 0, "pthread_kill");
	while (atomic_load(&forked) == 0)
		nap();
	check(atomic_load(&forked) > 0, "fork");
	return atomic_load(&forked);
}

static void
child_ends(pid_t pid, const struct call *c)
{
	int status = 0;

	check(waitpid(pid, &status, 0) == pid, "waitpid");
	if (status == 0)
		return;
	(void)fprintf(stderr, "lane %u: the child ends by signal %d, with %d\n", c->lane,
		      WTERMSIG(status), WEXITSTATUS(status));
	_exit(1);
}

static void
told(void)
{
	char c;

	check(read(STDIN_FILENO, &c, 1) == 1, "input");
}

static void
say(const char *text)
{
	(void)puts(text);
	(void)fflush(stdout);
}

static void
open_all(const char *path)
{
	struct repl_config *cfg = NULL;

	pool = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(pool >= 0 && ftruncate(pool, SIZE) == 0, path);
	mem = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, pool, 0);
	check(mem != MAP_FAILED, "mmap");
	check(repl_config_new(&cfg) == 0 && repl_config_load(cfg, NULL) == 0, "the configuration");
	check(repl_open(cfg, mem, SIZE, REPL_OPEN_CREATE, &handle) == 0, "opening");
	repl_config_free(cfg);
	check(repl_lanes(handle) == THREADS, "lanes");
	check(repl_log_create(handle, LOG_OFF, SIZE - LOG_OFF, REPL_LOG_CHECKSUM, &lines) == 0,
	      "making the log");
	for (unsigned i = 0; i < 2000; i++)
		check(repl_log_append(lines, 0, "a line", 6, NULL) == 0, "filling the log");
	end = repl_log_tail(lines);
	*(uint64_t *)(void *)mem = htole64(DATA);
	check(repl_persist(handle, 0, 0, 8) == 0, "the tail word");
}

/* What it was about to store when it was made, it leaves alone. */
static void
late_child_stores_nothing(pid_t pid, const struct call *c)
{
	check(append_word(c->lane, "second", 6) == 0, "a second append");
	(void)close(wake[1]);
	child_ends(pid, c);
	check(le64toh(*(uint64_t *)(void *)mem) == DATA + 11, "the tail word is of before");
	check(memcmp(mem + DATA, "firstsecond", 11) == 0, "what was appended is gone");
}

static void
amid_record(const char *path, const char *call)
{
	char name[4096];
	struct stat st;
	int rc;

	check(snprintf(name, sizeof(name), "%s.repl", path) > 0 && stat(name, &record) == 0, name);
	amid_sync = true;
	rc = strcmp(call, "grow") == 0 ? grow() : repl_persist(handle, 0, MUCH, MUCH);
	amid_sync = false;
	check(synced > 0, "the record is not synced");
	if (is_child) {
		check(rc == 0 || rc == REPL_E_LOST, call);
		check(own >= 0 && fstat(own, &st) == 0, "a file");
		check(st.st_size == 0, "the child's file is written to");
		_exit(0);
	}
	check(rc == 0, call);
	for (unsigned i = 0; i < synced; i++)
		child_ends(children[i], &(const struct call){.lane = i});
	check(repl_close(handle) == 0, "closing");
}

int
main(int argc, char **argv)
{
	struct call calls[THREADS], *last = &calls[THREADS - 1];
	pid_t late;

	if (argc < 2 || argc > 3 || pipe2(wake, O_CLOEXEC) || signal(SIGUSR1, on_signal) == SIG_ERR)
		return 2;
	open_all(argv[1]);
	say("ready");
	told();
	if (argc == 3) {
		amid_record(argv[1], argv[2]);
		return 0;
	}
	for (unsigned i = 0; i < THREADS; i++) {
		calls[i] = (struct call){.lane = i, .does = all[i]};
		check(pthread_create(&calls[i].thread, NULL, call_run, &calls[i]) == 0, "thread");
		while (!atomic_load(&calls[i].begun))
			nap();
	}
	for (unsigned i = 0; i < ROUNDS * THREADS; i++)
		child_ends(child_new(&calls[i % THREADS]), &calls[i % THREADS]);
	atomic_store(&child_waits, true);
	late = child_new(last);
	say("forked");
	for (unsigned i = 0; i < THREADS; i++) {
		check(pthread_join(calls[i].thread, NULL) == 0, "join");
		check(calls[i].rc == 0, "the parent's call");
	}
	late_child_stores_nothing(late, last);
	repl_log_close(lines);
	check(repl_close(handle) == 0, "closing");
	return 0;
}
