/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A writer that has the pool, or was killed with it: who takes it over ends that one and nobody
 * else, and nobody is told that the pool is up to date before what was left is seen to.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "lock.h"
#include "pool_chains.h"
#include "registry.h"

#define SIZE (16U * 4096)

static bool looks; /* in the next sync of a file of the pool's size */

/* In the C library's place. */
int
fsync(int fd)
{
	struct stat st;

	if (looks && fstat(fd, &st) == 0 && st.st_size == SIZE) {
		looks = false;
		assert_int_equal(pool_info(store, "p", &info, &err), 0);
	}
	return (int)syscall(SYS_fsync, fd);
}

static bool looks_first; /* as soon as somebody has a writer's lock */

int
flock(int fd, int operation)
{
	int rc = (int)syscall(SYS_flock, fd, operation);

	if (rc == 0 && looks_first && operation & LOCK_EX) {
		looks_first = false;
		assert_int_equal(pool_info(store, "p", &info, &err), 0);
	}
	return rc;
}

/* The next wait is known to be in vain: it ends at once; so long it would have lasted. */
static bool cut_short;
static int waited_ms;

int
poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec ts = {.tv_sec = timeout_ms / 1000,
			      .tv_nsec = (long)(timeout_ms % 1000) * 1000000};

	if (cut_short && timeout_ms > 0) {
		cut_short = false;
		waited_ms = timeout_ms;
		ts = (struct timespec){.tv_nsec = 20000000};
	}
	return (int)syscall(SYS_ppoll, fds, count, timeout_ms < 0 ? NULL : &ts, NULL, 0);
}

static unsigned clock_speed; /* times that of the clock */

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (id == CLOCK_MONOTONIC) {
		uint64_t ns =
			((uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec) * clock_speed;

		ts->tv_sec = (time_t)(ns / NS_PER_S);
		ts->tv_nsec = (long)(ns % NS_PER_S);
	}
	return rc;
}

static int
setup(void **state)
{
	(void)state;
	clock_speed = 1;
	looks = looks_first = cut_short = false;
	return world_new(0, SIZE);
}

/* ---- taking over ---- */

enum { REGISTERED = 1, STOPPED = 2, DEAF = 4, OTHER_POOL = 8 };

/*
 * A process that has a pool open for writing, as a session has; one that has had no space to tell
 * of itself.
 */
static pid_t
writer_start(unsigned how)
{
	const char *pool = how & OTHER_POOL ? "q" : "p";
	struct registry *r = NULL;
	struct pool_store *mine;
	struct pool *p;
	int ready[2];
	sigset_t term;
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid > 0) {
		(void)close(ready[1]);
		assert_int_equal(read(ready[0], &c, 1), 1);
		(void)close(ready[0]);
		return pid;
	}
	(void)alarm(60);
	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	if (how & DEAF)
		(void)sigprocmask(SIG_BLOCK, &term, NULL);
	if (pool_store_new(dir, &mine, NULL) || pool_open(mine, pool, POOL_WRITE, "w", &p, NULL))
		_exit(1);
	if (how & REGISTERED && registry_join(pool_store_dirfd(mine), 8, &r, NULL))
		_exit(1);
	(void)!write(ready[1], "x", 1);
	if (how & STOPPED)
		(void)raise(SIGSTOP);
	for (;;)
		(void)pause();
}

/* The signal that a process has died of, 0: it is alive. */
static int
died_of(pid_t pid)
{
	int status = 0;
	pid_t got = waitpid(pid, &status, WNOHANG);

	return got == pid && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void
writer_end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void
force_ends_the_writer_whatever_it_does(void **state)
{
	static const struct {
		unsigned how;
		int signal;
	} rows[] = {
		{REGISTERED, SIGTERM},
		{REGISTERED | DEAF, SIGKILL},
		{REGISTERED | STOPPED, SIGKILL},
	};
	struct generation g = chain(2, 1, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pid_t pid;

		put(SIDECAR_UP_TO_DATE, &g);
		pid = writer_start(rows[i].how);
		expect(pool_promote(store, "p", "b", false, &info, &err), REPL_E_BUSY,
		       "open for writing by w");
		assert_int_equal(died_of(pid), 0);
		err_clear(&err);
		/* It gets time to end in order. */
		cut_short = rows[i].signal == SIGKILL;
		waited_ms = 0;
		assert_int_equal(pool_promote(store, "p", "b", true, &info, &err), 0);
		assert_int_equal(waited_ms >= 1000, rows[i].signal == SIGKILL);
		assert_true(info.meta.primary);
		/* It is dead already, not about to be. */
		assert_int_equal(died_of(pid), rows[i].signal);
		assert_int_equal(pool_demote(store, "p", "b", &info, &err), 0);
	}
}

static void
nobody_else_is_ended(void **state)
{
	struct generation g = chain(2, 1, 0);
	pid_t stranger, other;

	(void)state;
	assert_int_equal(pool_create(store, "q", SIZE, NULL, false, &info, &err), 0);
	put(SIDECAR_UP_TO_DATE, &g);
	stranger = writer_start(0);
	other = writer_start(REGISTERED | OTHER_POOL);
	clock_speed = 10; /* it is waited for in vain */
	expect(pool_promote(store, "p", "b", true, &info, &err), REPL_E_BUSY,
	       "by no session of repld");
	assert_int_equal(died_of(stranger), 0);
	assert_int_equal(died_of(other), 0);
	writer_end(stranger);
	assert_int_equal(pool_promote(store, "p", "b", true, &info, &err), 0);
	assert_int_equal(died_of(other), 0);
	writer_end(other);
}

/* A restore may go on: who reads is no writer. */
static void
a_reader_is_not_ended(void **state)
{
	struct generation g = chain(2, 1, 0);
	struct pool *p;

	(void)state;
	put(SIDECAR_UP_TO_DATE, &g);
	assert_int_equal(pool_open(store, "p", POOL_STABLE, "r", &p, &err), 0);
	clock_speed = 10; /* it is waited for in vain */
	expect(pool_promote(store, "p", "b", true, &info, &err), REPL_E_BUSY, "restore");
	assert_int_equal(pool_close(p, true, &err), 0);
}

/* ---- killed ones ---- */

static void
write_some(const void *arg)
{
	struct pool *p;

	(void)arg;
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
}

/* To bring in what was left may take long, and somebody may ask for the pool meanwhile. */
static void
killed_writers_pool_is_not_up_to_date_while_it_is_opened(void **state)
{
	struct pool *p;

	(void)state;
	killed_after(write_some, NULL);
	looks = true;
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "next", &p, &err), 0);
	assert_false(looks);
	assert_int_equal(info.meta.state, SIDECAR_UNKNOWN);
	assert_true(info.meta.writer_open);
	assert_int_equal(pool_close(p, true, &err), 0);
}

/* Not even before that can be on record, be it by who is refused then, or only reads. */
static void
killed_writers_pool_is_not_up_to_date_before_the_next_is_on_record(void **state)
{
	struct generation older = chain(1, 0, 0), newer = chain(2, 1, 0);
	const struct pool_claim claims[] = {{.writer = "next"},
					    {.writer = "next", .chain = &older}};
	struct pool *p;

	(void)state;
	put(SIDECAR_UP_TO_DATE, &newer);
	for (int i = 0; i < 3; i++) {
		int rc;

		killed_after(write_some_with_record, NULL);
		looks_first = true;
		rc = i < 2 ? pool_open_by(store, "p", &claims[i], &p, &err)
			   : pool_open(store, "p", POOL_READ, "next", &p, &err);
		assert_int_equal(rc, i == 1 ? REPL_E_DIVERGED : 0);
		err_clear(&err);
		assert_false(looks_first);
		assert_int_equal(info.meta.state, SIDECAR_UNKNOWN);
		if (rc == 0)
			assert_int_equal(pool_close(p, true, &err), 0);
		put(SIDECAR_UP_TO_DATE, &newer);
	}
}

/* Those who find its lock taken are in nobody's way. */
static void
writers_pool_stays_up_to_date_while_others_try_to_open_it(void **state)
{
	struct pool_store *mine;
	struct pool *p, *other;
	pid_t pid;

	(void)state;
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(60);
		while (pool_store_new(dir, &mine, NULL) == 0 &&
		       pool_open(mine, "p", POOL_WRITE, "other", &other, NULL) == REPL_E_BUSY)
			pool_store_free(mine);
		_exit(1);
	}
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(pool_info(store, "p", &info, &err), 0);
		assert_int_equal(info.meta.state, SIDECAR_UP_TO_DATE);
		assert_true(info.meta.writer_open);
	}
	assert_int_equal(died_of(pid), 0);
	writer_end(pid);
	assert_int_equal(pool_close(p, true, &err), 0);
}

/* As a session that only clears a left journal away: it has the lock and puts itself on no record.
 */
static void
one_that_clears_away_is_waited_for(void **state)
{
	const struct timespec turn = {.tv_nsec = 3 * LOCK_WRITER_MS * (long)NS_PER_MS};
	int ready[2], fd;
	struct pool *p;
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fd = openat(pool_store_dirfd(store), "p.repl", O_RDWR | O_CLOEXEC);
		if (fd < 0 || !lock_enter(fd, 0))
			_exit(1);
		(void)!write(ready[1], "x", 1);
		(void)nanosleep(&turn, NULL);
		_exit(0);
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_that_clears_away_is_waited_for, setup,
						world_free),
		cmocka_unit_test_setup_teardown(
			killed_writers_pool_is_not_up_to_date_while_it_is_opened, setup,
			world_free),
		cmocka_unit_test_setup_teardown(
			killed_writers_pool_is_not_up_to_date_before_the_next_is_on_record, setup,
			world_free),
		cmocka_unit_test_setup_teardown(
			writers_pool_stays_up_to_date_while_others_try_to_open_it, setup,
			world_free),
		cmocka_unit_test_setup_teardown(force_ends_the_writer_whatever_it_does, setup,
						world_free),
		cmocka_unit_test_setup_teardown(nobody_else_is_ended, setup, world_free),
		cmocka_unit_test_setup_teardown(a_reader_is_not_ended, setup, world_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
