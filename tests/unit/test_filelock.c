/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose locks on a file are seen, and what a close leaves of them. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "filelock.h"

static char path[] = "/tmp/test_filelock.XXXXXX";

static int
setup(void **state)
{
	int fd = mkstemp(path);

	*state = NULL;
	return fd < 0 || ftruncate(fd, 8192) || close(fd) ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static int
opened(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void
lock_at(int fd, int cmd, short type, off_t off)
{
	struct flock lock = {.l_type = type, .l_start = off, .l_len = 1};

	assert_int_equal(fcntl(fd, cmd, &lock), 0);
}

static bool
ours(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(filelock_ours(&st), filelock_seen(fd));
	return filelock_seen(fd);
}

/* A child holds a lock until the parent closes its end of the pipe. */
static pid_t
child_locks(int held[2])
{
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(held), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct flock lock = {.l_type = F_RDLCK, .l_len = 1};
		int fd = open(path, O_RDWR), ready[2] = {held[0], held[1]};

		if (fd < 0 || fcntl(fd, F_SETLK, &lock) || write(ready[1], &byte, 1) != 1)
			_exit(1);
		(void)close(ready[1]);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(held[0], &byte, 1), 1);
	return pid;
}

static void
none(void **state)
{
	int fd = opened();

	(void)state;
	assert_false(ours(fd));
	filelock_close(fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	filelock_close(-1);
}

static void
own(void **state)
{
	int mine = opened(), other = opened(), copy = dup(mine);

	(void)state;
	assert_true(copy >= 0);
	lock_at(mine, F_SETLK, F_RDLCK, 4097);
	assert_true(ours(mine));
	assert_true(ours(other));
	filelock_close(other);
	assert_true(ours(copy));
	assert_true(fcntl(other, F_GETFD) >= 0);
	lock_at(mine, F_SETLK, F_UNLCK, 4097);
	filelock_close(other);
	assert_int_equal(fcntl(other, F_GETFD), -1);
	assert_int_equal(close(mine) | close(copy), 0);
}

static void
own_without_a_descriptor(void **state)
{
	int mine = opened(), other = opened();
	struct rlimit limit, none;

	(void)state;
	lock_at(mine, F_SETLK, F_WRLCK, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	/* One is enough for the directory, and not for what is in it. */
	for (int spare = 1; spare >= 0; spare--) {
		none = (struct rlimit){.rlim_cur = (rlim_t)other + 1 + (rlim_t)spare,
				       .rlim_max = limit.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		filelock_close(other);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		assert_true(fcntl(other, F_GETFD) >= 0);
		assert_true(ours(other));
	}
	assert_int_equal(close(mine) | close(other), 0);
}

/* Closing another descriptor takes none of these away. */
static void
of_description(void **state)
{
	int mine = opened(), other = opened();

	(void)state;
	lock_at(mine, F_OFD_SETLK, F_WRLCK, 0);
	assert_false(ours(other));
	assert_int_equal(close(mine) | close(other), 0);
}

static void
foreign(void **state)
{
	int held[2], fd = opened(), status;
	pid_t pid = child_locks(held);

	(void)state;
	assert_false(ours(fd));
	lock_at(fd, F_SETLK, F_RDLCK, 0);
	assert_true(ours(fd));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(ours(fd));
	assert_int_equal(close(fd) | close(held[0]) | close(held[1]), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none),
		cmocka_unit_test(own),
		cmocka_unit_test(own_without_a_descriptor),
		cmocka_unit_test(of_description),
		cmocka_unit_test(foreign),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
