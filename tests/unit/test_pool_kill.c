/* SPDX-License-Identifier: BSD-3-Clause */
/* Killed at any point, creating and removing leave a whole pool or none, and can be done again. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "pool.h"
#include "tempdir.h"

#define SIZE (4U * 4096)
#define NAME "eu/west/p"

static char dir[TEMPDIR_MAX];

/* In the child: calls left to live. */
static int calls_left = -1;

/* Allocating takes so long, so that creators overlap. */
static useconds_t allocation_us;

static void
die_in_time(void)
{
	if (calls_left >= 0 && calls_left-- == 0)
		(void)raise(SIGKILL);
}

/* In front of the library's own: each call that changes what is on disk may be the last. */
int mkdirat(int at, const char *path, mode_t mode);
int fallocate(int fd, int mode, off_t off, off_t len);
ssize_t pwrite(int fd, const void *buf, size_t len, off_t off);
int fsync(int fd);
int fdatasync(int fd);
int renameat(int from_at, const char *from, int to_at, const char *to);
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags);
int unlinkat(int at, const char *path, int flags);

int
mkdirat(int at, const char *path, mode_t mode)
{
	die_in_time();
	return (int)syscall(SYS_mkdirat, at, path, mode);
}

int
fallocate(int fd, int mode, off_t off, off_t len)
{
	die_in_time();
	(void)usleep(allocation_us);
	return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

ssize_t
pwrite(int fd, const void *buf, size_t len, off_t off)
{
	die_in_time();
	return syscall(SYS_pwrite64, fd, buf, len, off);
}

int
fsync(int fd)
{
	die_in_time();
	return (int)syscall(SYS_fsync, fd);
}

int
fdatasync(int fd)
{
	die_in_time();
	return (int)syscall(SYS_fdatasync, fd);
}

int
renameat(int from_at, const char *from, int to_at, const char *to)
{
	die_in_time();
	return (int)syscall(SYS_renameat2, from_at, from, to_at, to, 0);
}

int
renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	die_in_time();
	return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
}

int
unlinkat(int at, const char *path, int flags)
{
	die_in_time();
	return (int)syscall(SYS_unlinkat, at, path, flags);
}

static int
create(struct pool_store *s)
{
	struct pool_info info;

	return pool_create(s, NAME, SIZE, NULL, false, &info, NULL);
}

static int
destroy(struct pool_store *s)
{
	return pool_remove(s, NAME, 0, NULL, NULL);
}

/* Do it in a process that dies in front of call n; true if it lived. */
static bool
do_and_die(int (*work)(struct pool_store *), int n)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct pool_store *s;
		int rc = pool_store_new(dir, &s, NULL);

		calls_left = n;
		if (!rc)
			rc = work(s);
		_exit(rc ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFEXITED(status);
}

/* Files of whatever name below the directory. */
static int file_count;

static int
count_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)path;
	(void)st;
	(void)at;
	file_count += type == FTW_F;
	return 0;
}

/*
 * The next session finds a whole pool or none, and no leftovers but a sidecar; returns which. cut:
 * that was perhaps being written, and one of its copies is to be mended.
 */
static bool
found_whole(struct pool_store *s, bool cut)
{
	struct pool_info infos[4];
	struct err e;
	unsigned count;
	bool more;

	err_clear(&e);
	assert_int_equal(pool_list(s, NULL, infos, 4, &count, &more, &e), 0);
	file_count = 0;
	assert_int_equal(nftw(dir, count_file, 16, FTW_PHYS), 0);
	assert_true(count <= 1);
	if (!count) {
		assert_true(file_count <= 1);
		assert_int_equal(pool_info(s, NAME, &infos[0], &e), REPL_E_NOT_FOUND);
		return false;
	}
	assert_string_equal(infos[0].damage, "");
	assert_string_equal(infos[0].name, NAME);
	assert_true(cut || !infos[0].sidecar_damaged);
	assert_int_equal(file_count, 2);
	return true;
}

static bool
whole_or_none(struct pool_store *s)
{
	return found_whole(s, false);
}

static void
killed_create(void **state)
{
	bool lived = false;
	int n;

	(void)state;
	for (n = 0; !lived; n++) {
		struct pool_store *s;

		assert_int_equal(tempdir_new(dir, 0), 0);
		lived = do_and_die(create, n);
		assert_int_equal(pool_store_new(dir, &s, NULL), 0);
		if (whole_or_none(s))
			assert_int_equal(destroy(s), 0);
		else
			assert_false(lived);
		assert_int_equal(create(s), 0);
		assert_true(whole_or_none(s));
		pool_store_free(s);
		tempdir_free(dir);
	}
	assert_true(n > 12);
}

static void
killed_remove(void **state)
{
	bool lived = false;
	int n;

	(void)state;
	for (n = 0; !lived; n++) {
		struct pool_store *s;

		assert_int_equal(tempdir_new(dir, 0), 0);
		assert_int_equal(pool_store_new(dir, &s, NULL), 0);
		assert_int_equal(create(s), 0);
		lived = do_and_die(destroy, n);
		if (whole_or_none(s))
			assert_int_equal(destroy(s), 0);
		assert_int_equal(create(s), 0);
		assert_true(whole_or_none(s));
		pool_store_free(s);
		tempdir_free(dir);
	}
	assert_true(n > 5);
}

static int
destroy_primary(struct pool_store *s)
{
	return pool_remove(s, NAME, POOL_REMOVE_PRIMARY, NULL, NULL);
}

/* A primary is there, and as one, or nothing of it that stands in a new one's way. */
static void
killed_remove_primary(void **state)
{
	struct pool_info info;
	bool lived = false;
	int n;

	(void)state;
	for (n = 0; !lived; n++) {
		struct pool_store *s;

		assert_int_equal(tempdir_new(dir, 0), 0);
		assert_int_equal(pool_store_new(dir, &s, NULL), 0);
		assert_int_equal(create(s), 0);
		assert_int_equal(pool_promote(s, NAME, "b", true, &info, NULL), 0);
		lived = do_and_die(destroy_primary, n);
		if (found_whole(s, true)) {
			assert_int_equal(destroy(s), REPL_E_REFUSED);
			assert_int_equal(destroy_primary(s), 0);
		}
		assert_int_equal(create(s), 0);
		assert_true(whole_or_none(s));
		pool_store_free(s);
		tempdir_free(dir);
	}
	assert_true(n > 6);
}

/* ---- the same of a pool in the parts of a set ---- */

#define SET "eu/s"

static void
set_dir_new(void)
{
	char path[TEMPDIR_MAX + 16];
	FILE *f;

	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(path, sizeof(path), "%s/eu", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/" SET, dir);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs("PMEMPOOLSET\n2M us/p0\n2M eu/p1\n", f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int
create_set(struct pool_store *s)
{
	uint8_t attr[PMDK_ATTR_SIZE] = "PMEMOBJ";
	struct pool_info info;

	return pool_set_create(s, SET, SIZE, NULL, attr, false, &info, NULL);
}

static int
destroy_set(struct pool_store *s)
{
	return pool_remove(s, SET, 0, NULL, NULL);
}

/* Whole, or no pool; what is then left is not listed and has no temporary name. */
static bool
set_whole_or_none(struct pool_store *s)
{
	struct pool_info infos[4];
	struct err e;
	unsigned count;
	bool more;

	err_clear(&e);
	assert_int_equal(pool_list(s, NULL, infos, 4, &count, &more, &e), 0);
	file_count = 0;
	assert_int_equal(nftw(dir, count_file, 16, FTW_PHYS), 0);
	assert_true(count <= 1);
	if (!count) {
		assert_true(file_count <= 4);
		assert_int_equal(pool_info(s, SET, &infos[0], &e), REPL_E_NOT_FOUND);
		return false;
	}
	assert_string_equal(infos[0].name, SET);
	assert_string_equal(infos[0].damage, "");
	assert_string_equal(infos[0].header_damage, "");
	assert_int_equal(infos[0].parts, 2);
	assert_int_equal(file_count, 4);
	return true;
}

static void
killed_set(int (*prepare)(struct pool_store *), int (*work)(struct pool_store *), int least)
{
	bool lived = false;
	int n;

	for (n = 0; !lived; n++) {
		struct pool_store *s;

		set_dir_new();
		assert_int_equal(pool_store_new(dir, &s, NULL), 0);
		if (prepare)
			assert_int_equal(prepare(s), 0);
		pool_store_free(s);
		lived = do_and_die(work, n);
		assert_int_equal(pool_store_new(dir, &s, NULL), 0);
		if (set_whole_or_none(s))
			assert_int_equal(destroy_set(s), 0);
		assert_int_equal(create_set(s), 0);
		assert_true(set_whole_or_none(s));
		assert_int_equal(destroy_set(s), 0);
		pool_store_free(s);
		tempdir_free(dir);
	}
	assert_true(n > least);
}

static void
killed_create_set(void **state)
{
	(void)state;
	killed_set(NULL, create_set, 20);
}

static void
killed_remove_set(void **state)
{
	(void)state;
	killed_set(create_set, destroy_set, 8);
}

/* Many processes make one pool at once: one wins, the others are told. */
static void
creators_race(void **state)
{
	struct pool_store *s;
	int status, made = 0;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	allocation_us = 100000;
	for (int i = 0; i < 8; i++) {
		if (fork() == 0) {
			struct pool_info info;
			struct err e;

			if (pool_store_new(dir, &s, &e))
				_exit(3);
			switch (pool_create(s, NAME, SIZE, NULL, false, &info, &e)) {
			case 0:
				_exit(0);
			case REPL_E_EXISTS:
				_exit(1);
			default:
				_exit(2);
			}
		}
	}
	for (int i = 0; i < 8; i++) {
		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status));
		assert_true(WEXITSTATUS(status) <= 1);
		made += WEXITSTATUS(status) == 0;
	}
	allocation_us = 0;
	assert_int_equal(made, 1);
	assert_int_equal(pool_store_new(dir, &s, NULL), 0);
	assert_true(whole_or_none(s));
	pool_store_free(s);
	tempdir_free(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_create),         cmocka_unit_test(killed_remove),
		cmocka_unit_test(killed_create_set),     cmocka_unit_test(killed_remove_set),
		cmocka_unit_test(killed_remove_primary), cmocka_unit_test(creators_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
