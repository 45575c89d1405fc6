/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork_returns FILE - has FILE open, with the configuration of REPL_CONFIG, and a log in it. It
 * says ready; when it is told that its target does not answer any more threads append to the log
 * and trim it, and each is interrupted by a handler that forks. The child abandons the handle and
 * returns to the call, which ends there as one whose replicas are lost. When it has said forked the
 * target is to answer, and the parent's calls succeed.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <librepl.h>

#define SIZE    (1U << 20)
#define LOG_OFF (SIZE / 2)
#define THREADS 4U
#define ROUNDS  3U
#define CHILD_S 20U

struct call {
	pthread_t thread;
	unsigned lane;
	bool trims;
	atomic_bool begun;
	int rc;
};

static uint8_t *mem;
static struct repl *handle;
static struct repl_log *lines;
static uint64_t end; /* of what is in the log before */
static volatile sig_atomic_t is_child;
static _Atomic pid_t forked;

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
	}
	atomic_store(&forked, pid);
}

static void *
call_run(void *arg)
{
	struct call *c = arg;

	atomic_store(&c->begun, true);
	c->rc = c->trims ? repl_log_trim(lines, c->lane, end)
			 : repl_log_append(lines, c->lane, "a line", 6, NULL);
	if (is_child)
		_exit(c->rc == 0 || c->rc == REPL_E_LOST ? 0 : 2);
	return NULL;
}

static void
nap(void)
{
	(void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
}

static void
interrupt(const struct call *c)
{
	int status = 0;

	atomic_store(&forked, 0);
	check(pthread_kill(c->thread, SIGUSR1) == 0, "pthread_kill");
	while (atomic_load(&forked) == 0)
		nap();
	check(atomic_load(&forked) > 0, "fork");
	check(waitpid(atomic_load(&forked), &status, 0) == atomic_load(&forked), "waitpid");
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
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	check(fd >= 0 && ftruncate(fd, SIZE) == 0, path);
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
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
}

int
main(int argc, char **argv)
{
	struct call calls[THREADS];

	if (argc != 2 || signal(SIGUSR1, on_signal) == SIG_ERR)
		return 2;
	open_all(argv[1]);
	say("ready");
	told();
	/* Of two that do the same one is at it, and the other one waits for it. */
	for (unsigned i = 0; i < THREADS; i++) {
		calls[i] = (struct call){.lane = i, .trims = i >= THREADS / 2};
		check(pthread_create(&calls[i].thread, NULL, call_run, &calls[i]) == 0, "thread");
		while (!atomic_load(&calls[i].begun))
			nap();
	}
	for (unsigned i = 0; i < ROUNDS * THREADS; i++)
		interrupt(&calls[i % THREADS]);
	say("forked");
	for (unsigned i = 0; i < THREADS; i++) {
		check(pthread_join(calls[i].thread, NULL) == 0, "join");
		check(calls[i].rc == 0, "the parent's call");
	}
	repl_log_close(lines);
	check(repl_close(handle) == 0, "closing");
	return 0;
}
