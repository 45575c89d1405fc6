/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of two that open a pool which has no record yet, one gets it and the other is
 * told, as is who got the lock of one that is no more; a record that names updates which the pool
 * may lack is refused. The file of a range is found however that was mapped, or it is told that it
 * can't be. Who only looks whether media have lost something is kept from nothing by a device that
 * can't be read.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "boot.h"
#include "local.h"
#include "pagecache.h"
#include "tempdir.h"

static void
begin(struct local *l, const char *file)
{
	local_init(l);
	assert_int_equal(local_open(l, file, 4096, NULL), 0);
	assert_false(l->present);
	assert_int_equal(local_new_id(&l->meta.pool_uuid, NULL), 0);
	l->meta.pool_size = 4096;
	l->meta.state = SIDECAR_UP_TO_DATE;
}

static void
second_record_replaces_none(void **state)
{
	char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8];
	struct local first, second;
	struct err e;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	begin(&first, file);
	begin(&second, file);
	assert_int_equal(local_store(&first, NULL), 0);
	err_clear(&e);
	assert_int_equal(local_store(&second, &e), REPL_E_BUSY);
	local_fini(&second);
	assert_int_equal(local_store(&first, NULL), 0);
	local_fini(&first);
	local_init(&second);
	assert_int_equal(local_open(&second, file, 4096, NULL), 0);
	assert_true(second.present);
	local_fini(&second);
	tempdir_free(dir);
}

int __wrap_flock(int fd, int how);
int __real_flock(int fd, int how);

/* While somebody has the record locked, who ends with that. */
static void (*holder_does)(const char *record);
static const char *held_record;

int
__wrap_flock(int fd, int how)
{
	if (!holder_does)
		return __real_flock(fd, how);
	holder_does(held_record);
	holder_does = NULL;
	errno = EWOULDBLOCK;
	return -1;
}

static void
holder_replaces(const char *record)
{
	char next[TEMPDIR_MAX + 24];
	int fd;

	(void)snprintf(next, sizeof(next), "%s.next", record);
	fd = open(next, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(rename(next, record), 0);
}

static void
holder_removes(const char *record)
{
	assert_int_equal(unlink(record), 0);
}

static void
holder_keeps(const char *record)
{
	(void)record;
}

/* As restore leaves it: the old one is nobody's, and free. */
static void
replaced_while_it_was_locked_is_no_record(void **state)
{
	static void (*const cases[])(const char *) = {holder_keeps, holder_replaces,
						      holder_removes};
	char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8], record[TEMPDIR_MAX + 16];
	struct local l;
	struct err e;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	(void)snprintf(record, sizeof(record), "%s" SIDECAR_SUFFIX, file);
	held_record = record;
	for (unsigned i = 0; i < 3; i++) {
		(void)unlink(record);
		begin(&l, file);
		assert_int_equal(local_store(&l, NULL), 0);
		local_fini(&l);
		holder_does = cases[i];
		local_init(&l);
		err_clear(&e);
		assert_int_equal(local_open(&l, file, 4096, &e), i == 0 ? 0 : REPL_E_BUSY);
		assert_null(holder_does);
		assert_int_equal(l.present, i == 0);
		assert_true(i == 0 || strstr(e.text, record));
		local_fini(&l);
	}
	tempdir_free(dir);
}

/* A command sees all of a file of which the program maps a part. */
static void
doubt_tells_of_no_growth(void **state)
{
	char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8];
	struct local l;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	begin(&l, file);
	assert_int_equal(local_store(&l, NULL), 0);
	local_fini(&l);
	local_init(&l);
	assert_int_equal(local_open(&l, file, 8192, NULL), 0);
	local_doubt(&l);
	assert_int_equal(l.meta.pool_size, 8192);
	local_fini(&l);
	local_init(&l);
	assert_int_equal(local_open(&l, file, 4096, NULL), 0);
	assert_true(l.meta.writer_open);
	assert_int_equal(l.meta.pool_size, 4096);
	local_fini(&l);
	tempdir_free(dir);
}

/* While the machine runs the kernel has what a killed program has stored. */
static void
record_tells_whether_the_power_was_kept(void **state)
{
	char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8];
	struct gen_id now;
	struct local l;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	boot_now(&now);
	assert_false(gen_id_is_nil(&now));
	begin(&l, file);
	assert_int_equal(boot_power(&l.meta), BOOT_KEPT);
	assert_int_equal(local_store(&l, NULL), 0);
	l.meta.writer_open = true;
	l.meta.boot = now;
	assert_int_equal(boot_power(&l.meta), BOOT_KEPT);
	/* What a sync could not write may be gone in the same run. */
	local_doubt(&l);
	assert_true(l.meta.writer_open);
	local_fini(&l);
	local_init(&l);
	assert_int_equal(local_open(&l, file, 4096, NULL), 0);
	assert_int_equal(boot_power(&l.meta), BOOT_CUT);
	memset(&l.meta.boot, 0, sizeof(l.meta.boot));
	assert_int_equal(boot_power(&l.meta), BOOT_UNTOLD);
	l.meta.writer_open = false;
	assert_int_equal(boot_power(&l.meta), BOOT_KEPT);
	local_fini(&l);
	tempdir_free(dir);
}

/* An administrator's command makes it, and the program is to go on with it. */
static void
record_belongs_to_the_files_owner(void **state)
{
	const uid_t other = geteuid() == 0 ? 65534 : geteuid();
	char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8];
	struct local l;
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	fd = open(file, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, other, (gid_t)-1), 0);
	(void)close(fd);
	begin(&l, file);
	assert_int_equal(local_store(&l, NULL), 0);
	assert_int_equal(fstat(l.fd, &st), 0);
	assert_int_equal(st.st_uid, other);
	assert_int_equal(st.st_mode & 0777, 0600);
	local_fini(&l);
	tempdir_free(dir);
}

/* A region of a target's: only that target can bring in what is in it. */
static void
what_a_target_left_is_refused(void **state)
{
	static const char *const words[] = {"receive ring", "resync journal"};
	char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8];
	struct local l;
	struct err e;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	for (unsigned i = 0; i < 2; i++) {
		local_init(&l);
		if (i == 0)
			begin(&l, file);
		else
			assert_int_equal(local_open(&l, file, 4096, NULL), 0);
		l.meta.ring_off = i == 0 ? SIDECAR_SIZE : 0;
		l.meta.ring_len = i == 0 ? 4096 : 0;
		l.meta.journal_off = i == 1 ? SIDECAR_SIZE : 0;
		l.meta.journal_len = i == 1 ? 4096 : 0;
		l.meta.journal_committed = i == 1;
		assert_int_equal(local_store(&l, NULL), 0);
		local_fini(&l);
		err_clear(&e);
		assert_int_equal(local_open(&l, file, 4096, &e), REPL_E_REFUSED);
		assert_non_null(strstr(e.text, words[i]));
		assert_non_null(strstr(e.text, "replctl probe"));
		assert_false(l.present);
		/* As its target would. */
		l.meta.ring_off = l.meta.ring_len = l.meta.journal_off = l.meta.journal_len = 0;
		l.meta.journal_committed = false;
		assert_int_equal(sidecar_write(l.fd, &l.meta, NULL), 0);
		local_fini(&l);
	}
	tempdir_free(dir);
}

/* Stands in for a mount, which needs rights. */
int __wrap_statfs(const char *path, struct statfs *fs);

static long file_system;

int
__wrap_statfs(const char *path, struct statfs *fs)
{
	assert_non_null(path);
	memset(fs, 0, sizeof(*fs));
	fs->f_type = file_system;
	return 0;
}

/* Known before anything is copied that it could not record. */
static void
no_record_where_nothing_is_written(void **state)
{
	char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8];
	struct local l;
	struct err e;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	file_system = HUGETLBFS_MAGIC;
	local_init(&l);
	err_clear(&e);
	assert_int_equal(local_open(&l, file, 4096, &e), REPL_E_FAILED);
	assert_int_equal(e.reason, REPL_REASON_LOCAL);
	assert_non_null(strstr(e.text, "/pool.repl: hugetlbfs takes no write(2)"));
	assert_non_null(strstr(e.text, "another file system"));
	local_fini(&l);
	file_system = 0;
	begin(&l, file);
	local_fini(&l);
	tempdir_free(dir);
}

#define PAGE  4096UL
#define PAGES 6UL

static int
file_of(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(PAGES * PAGE)), 0);
	return fd;
}

static void
map(uint8_t *at, int fd, size_t page, size_t pages, int flags)
{
	assert_ptr_equal(mmap(at + page * PAGE, pages * PAGE, PROT_READ | PROT_WRITE,
			      flags | MAP_FIXED, fd, (off_t)(page * PAGE)),
			 at + page * PAGE);
}

static void
expect_file(const uint8_t *at, const char *file)
{
	char *found;

	assert_int_equal(local_find_file(at, PAGES * PAGE, &found, NULL), 0);
	if (file) {
		assert_non_null(found);
		assert_string_equal(found, file);
	} else {
		assert_null(found);
	}
	free(found);
}

static void
file_of_a_range_in_pieces(void **state)
{
	char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8], other[TEMPDIR_MAX + 8], *found;
	uint8_t *at;
	struct local_range range;
	int fd, again, fd2;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	(void)snprintf(other, sizeof(other), "%s/other", dir);
	fd = file_of(file);
	again = file_of(file);
	fd2 = file_of(other);
	at = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	expect_file(at, NULL);
	map(at, fd, 0, PAGES, MAP_SHARED);
	expect_file(at, file);
	assert_int_equal(mprotect(at, PAGE, PROT_READ), 0);
	expect_file(at, file);
	assert_int_equal(madvise(at + 3 * PAGE, PAGE, MADV_DONTDUMP), 0);
	expect_file(at, file);
	map(at, again, 4, 2, MAP_SHARED);
	expect_file(at, file);
	/* Not where a piece is of another place, of another file, nobody else's, or not there. */
	assert_int_equal(local_find_file(at + PAGE, PAGE, &found, NULL), 0);
	assert_null(found);
	assert_int_equal(local_find_range(at + PAGE, 5 * PAGE, &range, NULL), 0);
	assert_non_null(range.path);
	assert_string_equal(range.path, file);
	assert_int_equal(range.off, PAGE);
	assert_false(range.is_private);
	free(range.path);
	map(at, fd2, 2, 1, MAP_SHARED);
	expect_file(at, NULL);
	assert_int_equal(local_find_range(at + PAGE, 5 * PAGE, &range, NULL), 0);
	assert_null(range.path);
	assert_int_equal(range.off, 0);
	assert_false(range.is_private);
	map(at, fd, 2, 1, MAP_SHARED);
	expect_file(at, file);
	map(at, fd, 5, 1, MAP_PRIVATE);
	expect_file(at, NULL);
	/* Any piece of it, and none beside it. */
	for (unsigned from = 0; from < PAGES; from++) {
		assert_int_equal(
			local_find_range(at + from * PAGE, (PAGES - from) * PAGE, &range, NULL), 0);
		assert_null(range.path);
		assert_true(range.is_private);
	}
	assert_int_equal(local_find_range(at, 5 * PAGE, &range, NULL), 0);
	assert_non_null(range.path);
	assert_false(range.is_private);
	free(range.path);
	assert_int_equal(munmap(at + 5 * PAGE, PAGE), 0);
	expect_file(at, NULL);
	assert_int_equal(munmap(at, 5 * PAGE), 0);
	(void)close(fd);
	(void)close(again);
	(void)close(fd2);
	tempdir_free(dir);
}

static void
touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

/* What has a pool's name is not what is mapped, where it has come later. */
static void
another_file_is_told_from_the_mapped_one(void **state)
{
	char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8], other[TEMPDIR_MAX + 8];
	char record[TEMPDIR_MAX + 16];
	struct err e;
	uint8_t *at;
	int fd, fd2;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	(void)snprintf(other, sizeof(other), "%s/other", dir);
	(void)snprintf(record, sizeof(record), "%s" SIDECAR_SUFFIX, file);
	fd = file_of(file);
	fd2 = file_of(other);
	at = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, NULL, NULL), 0);
	map(at, fd, 0, PAGES, MAP_SHARED);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, NULL, NULL), 0);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, file, NULL), 0);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, record, NULL), 0);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, other, NULL), REPL_E_INVAL);
	assert_int_equal(local_check_mapped(at + PAGE, PAGE, other, NULL), REPL_E_INVAL);
	/* A pool of several has its record beside what is named, whatever that is. */
	map(at, fd2, 2, 4, MAP_SHARED);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, file, NULL), 0);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, other, NULL), 0);
	map(at, fd, 2, 4, MAP_SHARED);
	touch(record);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, NULL, NULL), 0);
	assert_int_equal(rename(other, file), 0);
	err_clear(&e);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, file, &e), REPL_E_INVAL);
	assert_non_null(strstr(e.text, file));
	assert_non_null(strstr(e.text, "map it anew"));
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, NULL, NULL), REPL_E_INVAL);
	/* Nobody's pool that has a record, and none at all. */
	assert_int_equal(unlink(record), 0);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, NULL, NULL), 0);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, file, NULL), REPL_E_INVAL);
	assert_int_equal(ftruncate(fd2, 0), 0);
	assert_int_equal(local_check_mapped(at, PAGES * PAGE, file, NULL), 0);
	assert_int_equal(munmap(at, PAGES * PAGE), 0);
	(void)close(fd);
	(void)close(fd2);
	tempdir_free(dir);
}

/* What can't be looked up is not taken for memory of no file, nor is what is not in the maps. */
static void
file_that_can_not_be_told(void **state)
{
	char dir[TEMPDIR_MAX], name[200], *found;
	struct err e;
	uint8_t *at;
	int fd;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	assert_int_equal(chdir(dir), 0);
	memset(name, 'd', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	/* So that the path of what is in it is longer than one may be. */
	for (unsigned i = 0; i < PATH_MAX / sizeof(name) + 1; i++) {
		assert_int_equal(mkdir(name, 0700), 0);
		assert_int_equal(chdir(name), 0);
	}
	fd = file_of("pool");
	at = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(local_find_file(at, PAGES * PAGE, &found, &e), REPL_E_FAILED);
	assert_null(found);
	assert_non_null(strstr(e.text, "can't tell which file is mapped"));
	assert_int_equal(unlink("pool"), 0);
	expect_file(at, NULL);
	assert_int_equal(munmap(at, PAGES * PAGE), 0);
	assert_int_equal(local_find_file(at, PAGES * PAGE, &found, &e), REPL_E_FAILED);
	assert_null(found);
	(void)close(fd);
	for (unsigned i = 0; i < PATH_MAX / sizeof(name) + 1; i++) {
		assert_int_equal(chdir(".."), 0);
		assert_int_equal(rmdir(name), 0);
	}
	assert_int_equal(chdir("/"), 0);
	tempdir_free(dir);
}

int __wrap_pagecache_open(int fd, int *direct, struct err *e);
int __wrap_pagecache_agree(const struct pagecache *c, uint64_t *bytes, struct err *e);

static bool opens; /* the device can be read at its beginning */
static uint64_t lost_before;

int
__wrap_pagecache_open(int fd, int *direct, struct err *e)
{
	*direct = opens ? dup(fd) : -1;
	return opens ? 0 : err_errno(e, REPL_E_IO, EIO, "at 0");
}

int
__wrap_pagecache_agree(const struct pagecache *c, uint64_t *bytes, struct err *e)
{
	(void)c;
	*bytes += lost_before;
	return err_errno(e, REPL_E_IO, EIO, "at 4096");
}

static void
what_can_not_be_read_may_be_lost(void **state)
{
	char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8];
	uint64_t lost;
	struct err e;
	int fd;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	for (unsigned i = 0; i < 3; i++) {
		opens = i > 0;
		lost_before = i > 1 ? PAGE : 0;
		err_clear(&e);
		assert_int_equal(local_agree(fd, dir, PAGE, PAGECACHE_EITHER, &lost, &e), 0);
		assert_true(lost > lost_before);
		assert_int_equal(e.code, 0);
		assert_int_equal(local_agree(fd, dir, PAGE, PAGECACHE_MEMORY, &lost, &e),
				 REPL_E_IO);
	}
	(void)close(fd);
	tempdir_free(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_of_a_range_in_pieces),
		cmocka_unit_test(another_file_is_told_from_the_mapped_one),

		cmocka_unit_test(file_that_can_not_be_told),
		cmocka_unit_test(second_record_replaces_none),
		cmocka_unit_test(replaced_while_it_was_locked_is_no_record),
		cmocka_unit_test(doubt_tells_of_no_growth),
		cmocka_unit_test(record_tells_whether_the_power_was_kept),
		cmocka_unit_test(record_belongs_to_the_files_owner),
		cmocka_unit_test(what_a_target_left_is_refused),
		cmocka_unit_test(no_record_where_nothing_is_written),
		cmocka_unit_test(what_can_not_be_read_may_be_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
