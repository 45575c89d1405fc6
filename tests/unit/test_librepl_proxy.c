/* SPDX-License-Identifier: BSD-3-Clause */
/* A ProxyCommand is ended with its session, also without /proc or a descriptor, and no other child
 * of the program that has come to its number. */
#include "unit.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proxy.h"

#define STATUS 42

static const struct proxy_words words = {.host = "h", .name = "n", .user = "u", .port = 22};

static struct proxy
started(const char *command)
{
	struct proxy p = {0};
	struct err e;
	int fd;

	err_clear(&e);
	assert_int_equal(proxy_start(command, &words, &fd, &p, &e), 0);
	assert_int_equal(close(fd), 0);
	assert_true(p.pid > 0);
	return p;
}

/* Of the number pid, which is free; -1: who runs this may not have it. It waits for a signal, or
 * ends with STATUS. */
static pid_t
worker_new(pid_t pid, bool ends)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	pid_t made;

	args.set_tid = (uintptr_t)&pid;
	args.set_tid_size = 1;
	made = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (made == 0) {
		while (!ends)
			(void)pause();
		_exit(STATUS);
	}
	return made;
}

/* A number is not had again in the tick in which it was. */
static void
tick_pass(void)
{
	uint64_t tick_ns = 1000000000U / (uint64_t)sysconf(_SC_CLK_TCK), begin = 0, now;
	struct timespec t;

	do {
		assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &t), 0);
		now = (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
		begin = begin ? begin : now;
	} while (now - begin < 2 * tick_ns);
}

/* As a program does that waits for all its children, or ignores SIGCHLD. */
static void
end_unseen(const struct proxy *p)
{
	assert_int_equal(kill(p->pid, SIGKILL), 0);
	assert_int_equal(waitpid(-1, NULL, 0), p->pid);
	tick_pass();
}

static const char *const commands[] = {"sleep 1000", "env --ignore-signal=TERM sleep 1000"};

static void
stops(const struct proxy *p)
{
	proxy_stop(p);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void
one_that_runs_is_ended_and_waited_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct proxy p = started(commands[i]);

		stops(&p);
	}
}

/* As without /proc. */
static void
one_whose_start_is_not_known_is_ended_and_waited_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct proxy p = started(commands[i]);

		p.started = 0;
		stops(&p);
	}
}

static void
one_is_ended_and_waited_for_without_a_descriptor(void **state)
{
	struct rlimit had, few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
	few = had;
	few.rlim_cur = STDERR_FILENO + 1;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct proxy p = started(commands[i]);

		assert_true(p.started > 0);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		assert_int_equal(dup(STDERR_FILENO), -1);
		assert_int_equal(errno, EMFILE);
		proxy_stop(&p);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &had), 0);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
	}
}

/* It has come to the number of one that was waited for: here it would end this program. */
static void
what_is_no_child_is_left_alone(void **state)
{
	struct proxy p = {.pid = getpid()};

	(void)state;
	proxy_stop(&p);
}

static void
one_that_has_ended_is_waited_for(void **state)
{
	struct proxy p = started("true");
	siginfo_t how;

	(void)state;
	assert_int_equal(waitid(P_PID, (id_t)p.pid, &how, WEXITED | WNOWAIT), 0);
	stops(&p);
}

static void
one_that_the_program_has_waited_for_is_no_other(void **state)
{
	struct proxy p = started("sleep 1000");
	siginfo_t how;
	int status;

	(void)state;
	end_unseen(&p);
	proxy_stop(&p);
	if (worker_new(p.pid, false) < 0) {
		assert_true(errno == EPERM || errno == ENOSYS);
		skip();
	}
	proxy_stop(&p);
	assert_int_equal(waitpid(p.pid, &status, WNOHANG), 0);
	assert_int_equal(kill(p.pid, SIGKILL), 0);
	assert_int_equal(waitpid(p.pid, &status, 0), p.pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	/* Nor is its status anybody else's. */
	assert_int_equal(worker_new(p.pid, true), p.pid);
	assert_int_equal(waitid(P_PID, (id_t)p.pid, &how, WEXITED | WNOWAIT), 0);
	proxy_stop(&p);
	assert_int_equal(waitpid(p.pid, &status, WNOHANG), p.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
}

static int short_of;

int __real_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
		       const posix_spawnattr_t *attr, char *const argv[], char *const env[]);
int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
		       const posix_spawnattr_t *attr, char *const argv[], char *const env[]);

int
__wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
		   const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	return short_of ? short_of : __real_posix_spawn(pid, path, files, attr, argv, env);
}

static void
fails(enum repl_reason reason, const char *word)
{
	struct proxy p = {0};
	struct err e;
	int fd;

	err_clear(&e);
	/* This target alone is away. */
	assert_int_equal(proxy_start("cat", &words, &fd, &p, &e), REPL_E_UNREACHABLE);
	assert_int_equal(e.code, REPL_E_UNREACHABLE);
	assert_int_equal(e.reason, reason);
	assert_non_null(strstr(e.text, "h: starting ProxyCommand 'cat'"));
	assert_non_null(strstr(e.text, word));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void
what_keeps_one_from_starting_is_told(void **state)
{
	(void)state;
	short_of = EAGAIN;
	fails(REPL_REASON_LOCAL, "RLIMIT_NPROC, pids.max");
	short_of = ENOMEM;
	fails(REPL_REASON_LOCAL, "memory");
	short_of = EMFILE;
	fails(REPL_REASON_LOCAL, "RLIMIT_NOFILE");
	short_of = EPERM;
	fails(REPL_REASON_LOCAL, "not permitted");
	short_of = 0;
	assert_int_equal(setenv("SHELL", "/nowhere/sh", 1), 0);
	fails(REPL_REASON_CONFIG, "/nowhere/sh (SHELL)");
	assert_int_equal(setenv("SHELL", "/dev/null", 1), 0);
	fails(REPL_REASON_CONFIG, "/dev/null (SHELL)");
	assert_int_equal(unsetenv("SHELL"), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_runs_is_ended_and_waited_for),
		cmocka_unit_test(one_whose_start_is_not_known_is_ended_and_waited_for),
		cmocka_unit_test(one_is_ended_and_waited_for_without_a_descriptor),
		cmocka_unit_test(what_is_no_child_is_left_alone),
		cmocka_unit_test(one_that_has_ended_is_waited_for),
		cmocka_unit_test(one_that_the_program_has_waited_for_is_no_other),
		cmocka_unit_test(what_keeps_one_from_starting_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
