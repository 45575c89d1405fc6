/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A disk under the pool directory that fails or stalls is told as that, nothing is taken for right
 * meanwhile, and sessions do not wait for another's large files.
 */
#include "unit.h"

#include <stdarg.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "pool_set_world.h"

#define SIZE (16U * 4096)

static const char *unread; /* the file that can't be read */
static int past_errno;     /* of an open of a file past the page cache */
static int past_read;      /* of the read of its begin */

/* In place of libc's. */
ssize_t
pread(int fd, void *buf, size_t len, off_t off)
{
	struct stat st, is;

	if (past_read && off == 0 && (fcntl(fd, F_GETFL) & O_DIRECT)) {
		errno = past_read;
		return -1;
	}
	if (unread && fstatat(pool_store_dirfd(store), unread, &st, 0) == 0 &&
	    fstat(fd, &is) == 0 && st.st_ino == is.st_ino) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, buf, len, off);
}

int
open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if ((flags & O_DIRECT) && past_errno) {
		errno = past_errno;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static unsigned given_back; /* large files, whose space is given back when they are closed */
static bool kept_waiting;   /* the others, by one of them */

int
close(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0 && st.st_size >= SIZE) {
		int other = open(dir, O_RDONLY | O_DIRECTORY);

		given_back++;
		kept_waiting |= flock(other, LOCK_EX | LOCK_NB) != 0;
		(void)syscall(SYS_close, other);
	}
	return (int)syscall(SYS_close, fd);
}

static int
setup(void **state)
{
	(void)state;
	return world_new(0, SIZE);
}

static int
setup_on_disk(void **state)
{
	(void)state;
	return world_new(1, SIZE);
}

static int
teardown(void **state)
{
	unread = NULL;
	past_errno = past_read = 0;
	return world_free(state);
}

static void
sidecar_that_can_not_be_read_is_not_damaged(void **state)
{
	struct pool_info infos[2];
	struct pool *p = NULL;
	unsigned count;
	bool more;

	(void)state;
	unread = "p.repl";
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), REPL_E_IO);
	assert_non_null(strstr(err.text, strerror(EIO)));
	assert_null(strstr(err.text, "remove"));
	assert_int_equal(pool_info(store, "p", &info, &err), REPL_E_IO);
	assert_null(strstr(err.text, "remove"));
	assert_int_equal(pool_list(store, NULL, infos, 2, &count, &more, &err), 0);
	assert_int_equal(count, 1);
	assert_int_equal(infos[0].damage_code, REPL_E_IO);
	unread = NULL;
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
}

static void
open_for_writing(const void *arg)
{
	struct pool *p;

	(void)arg;
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
}

static void
memory_that_can_not_be_compared_with_media_is_not_taken_for_equal(void **state)
{
	static const int errors[][2] = {{ENFILE, REPL_E_LIMIT}, {EIO, REPL_E_IO}};
	static const int allowed[] = {EINVAL, EOPNOTSUPP};
	struct pool *p = NULL;

	(void)state;
	killed_after(open_for_writing, NULL);
	for (unsigned i = 0; i < 2; i++) {
		past_errno = errors[i][0];
		assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), errors[i][1]);
	}
	past_errno = 0;
	past_read = EIO;
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), REPL_E_IO);
	assert_non_null(strstr(err.text, "comparing memory with media"));
	past_read = 0;
	/* Where the file system or its device can't do it. */
	for (unsigned i = 0; i < 4; i++) {
		past_errno = i < 2 ? allowed[i] : 0;
		past_read = i < 2 ? 0 : allowed[i - 2];
		assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
		pool_free(p);
	}
}

/* Who has the lock on names waits for the disk: no other writer is in the way. */
static void
disk_that_stalls_is_no_other_writer(void **state)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	(void)state;
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(pool_create(store, "q", SIZE, NULL, false, &info, &err), REPL_E_TIMEOUT);
	assert_int_equal(err.reason, REPL_REASON_TARGET_IO);
	(void)close(fd);
	err_clear(&err);
	assert_int_equal(pool_create(store, "q", SIZE, NULL, false, &info, &err), 0);
}

static void
leave_large(const char *name)
{
	int fd = openat(pool_store_dirfd(store), name, O_RDWR | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	(void)close(fd);
}

static void
large_files_keep_nobody_waiting_while_they_go(void **state)
{
	(void)state;
	given_back = 0;
	kept_waiting = false;
	assert_int_equal(pool_create(store, "p", SIZE, NULL, false, &info, &err), 0);
	assert_int_equal(pool_remove(store, "p", 0, NULL, &err), 0);
	assert_int_equal(given_back, 1);
	assert_false(kept_waiting);
	/* What killed creations have left. */
	leave_large(".tmp-0123456789abcdef");
	leave_large(".tmp-fedcba9876543210");
	pool_store_free(store);
	assert_int_equal(pool_store_new(dir, &store, &err), 0);
	assert_int_equal(given_back, 3);
	assert_false(kept_waiting);
	/* The parts of a set. */
	write_set("s", "2M a\n2M b\nREPLICA\n4M c\n");
	assert_int_equal(create("s", MB), 0);
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);
	assert_int_equal(given_back, 6);
	assert_false(kept_waiting);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(sidecar_that_can_not_be_read_is_not_damaged),
		cmocka_unit_test_setup_teardown(
			memory_that_can_not_be_compared_with_media_is_not_taken_for_equal,
			setup_on_disk, teardown),
		T(disk_that_stalls_is_no_other_writer),
		cmocka_unit_test_setup_teardown(large_files_keep_nobody_waiting_while_they_go,
						set_world_new, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
