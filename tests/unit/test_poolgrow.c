/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool that grows has its old size or its new one after a cut at any step, and zeros behind. */
#include "unit.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool_set_world.h"

#define SIZE  (16U * 4096)
#define LARGE (SIZE + 5U * 4096)
#define REST  (4U << 20)

static unsigned ends; /* of data that were looked for */

/* Instead of libc's. */
off_t
lseek(int fd, off_t off, int whence)
{
	ends += whence == SEEK_HOLE;
	return syscall(SYS_lseek, fd, off, whence);
}

/* A device that fails, instead of libc's. */
static int sync_errno;
static int watched_fd = -1;
static unsigned syncs, watched_syncs;

int
fsync(int fd)
{
	syncs++;
	watched_syncs += fd == watched_fd;
	if (!sync_errno)
		return (int)syscall(SYS_fsync, fd);
	errno = sync_errno;
	return -1;
}

/* A file system that gives no space, whatever it says is free. */
static int space_errno;

int
fallocate(int fd, int mode, off_t off, off_t len)
{
	if (!space_errno)
		return (int)syscall(SYS_fallocate, fd, mode, off, len);
	errno = space_errno;
	return -1;
}

/* What others do when one directory has been listed, and those behind it have not. */
static void (*others_do)(void);

int
closedir(DIR *at)
{
	int (*libcs)(DIR *) = (int (*)(DIR *))dlsym(RTLD_NEXT, "closedir");
	void (*act)(void) = others_do;

	others_do = NULL;
	if (act)
		act();
	return libcs(at);
}

static int
setup(void **state)
{
	(void)state;
	return world_new(0, 0);
}

static struct pool *
open_new(bool sparse)
{
	struct pool *p = NULL;

	assert_int_equal(pool_create(store, "p", SIZE, NULL, sparse, &info, &err), 0);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
	return p;
}

static struct stat
file_stat(void)
{
	struct stat st;

	assert_int_equal(fstatat(pool_store_dirfd(store), "p", &st, 0), 0);
	return st;
}

static uint64_t
recorded(void)
{
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	return info.meta.pool_size;
}

static void
space_is_allocated_and_the_record_comes_last(void **state)
{
	struct pool *p = open_new(false);
	struct stat st;

	(void)state;
	assert_int_equal(pool_grow_space(p, LARGE, &err), 0);
	st = file_stat();
	assert_true(st.st_size == LARGE && st.st_blocks * 512 >= LARGE);
	assert_int_equal(recorded(), SIZE);
	assert_int_equal(pool_grow_record(p, LARGE, &err), 0);
	assert_int_equal(recorded(), LARGE);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(recorded(), LARGE);
}

/* As a kill leaves it: readers see the old size, the next writer mends it. */
static void
growth_that_was_cut_off_is_cut_back(void **state)
{
	struct pool *p = open_new(false);

	(void)state;
	assert_int_equal(pool_grow_space(p, LARGE, &err), 0);
	assert_int_equal(pool_close(p, false, &err), 0);
	assert_int_equal(pool_open(store, "p", POOL_READ, "r", &p, &err), 0);
	assert_int_equal(pool_get_info(p)->meta.pool_size, SIZE);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(file_stat().st_size, LARGE);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
	assert_int_equal(file_stat().st_size, SIZE);
	assert_int_equal(pool_close(p, true, &err), 0);
}

static void
growth_is_taken_back(void **state)
{
	struct pool *p = open_new(false);

	(void)state;
	assert_int_equal(pool_grow_space(p, LARGE, &err), 0);
	assert_int_equal(pool_grow_space(p, SIZE + 4096, &err), 0);
	assert_int_equal(file_stat().st_size, SIZE + 4096);
	assert_int_equal(pool_grow_undo(p, &err), 0);
	assert_int_equal(file_stat().st_size, SIZE);
	assert_int_equal(pool_close(p, true, &err), 0);
}

/* Bytes behind a pool that are not zero are another's, whatever its sidecar says. */
static void
bytes_behind_the_pool_are_no_growth(void **state)
{
	struct pool *p = open_new(false);
	int fd;

	(void)state;
	assert_int_equal(pool_grow_space(p, LARGE, &err), 0);
	assert_int_equal(pool_close(p, false, &err), 0);
	fd = openat(pool_store_dirfd(store), "p", O_WRONLY);
	assert_int_equal(pwrite(fd, "x", 1, LARGE - 1), 1);
	(void)close(fd);
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), REPL_E_CORRUPT);
	assert_int_equal(file_stat().st_size, LARGE);
}

static void
sparse_pool_takes_no_space(void **state)
{
	struct pool *p = open_new(true);

	(void)state;
	assert_true(pool_get_info(p)->meta.sparse);
	assert_int_equal(file_stat().st_blocks, 0);
	assert_int_equal(pool_grow_space(p, 1ULL << 40, &err), 0);
	assert_int_equal(pool_grow_record(p, 1ULL << 40, &err), 0);
	assert_true(file_stat().st_blocks * 512 < SIZE);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_true(recorded() == 1ULL << 40 && info.meta.sparse);
}

static void
growth_without_room_leaves_all_as_it_was(void **state)
{
	struct pool *p = open_new(false);
	struct rlimit old, limit;

	(void)state;
	assert_int_equal(pool_grow_space(p, 1ULL << 62, &err), REPL_E_NOSPC);
	assert_non_null(strstr(err.text, "'p'"));
	assert_int_equal(file_stat().st_size, SIZE);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){.rlim_cur = LARGE - 1, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(pool_grow_space(p, LARGE, &err), REPL_E_LIMIT);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(file_stat().st_size, SIZE);
	assert_int_equal(recorded(), SIZE);
	assert_int_equal(pool_grow_space(p, LARGE, &err), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
}

/* What is there already is not wanted again: only the file's own limit is of all of it. */
static void
growth_names_what_it_lacks(void **state)
{
	static const struct {
		int errnum, rc;
		const char *text;
	} rows[] = {{ENOSPC, REPL_E_NOSPC, "20480 bytes are wanted"},
		    {EDQUOT, REPL_E_NOSPC, "20480 bytes are wanted, more than the disk quota"},
		    {EIO, REPL_E_IO, "allocate 20480 bytes"},
		    {EFBIG, REPL_E_LIMIT, "no file of 86016 bytes"}};
	struct pool *p = open_new(false);

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		space_errno = rows[i].errnum;
		assert_int_equal(pool_grow_space(p, LARGE, &err), rows[i].rc);
		space_errno = 0;
		if (!strstr(err.text, rows[i].text))
			fail_msg("no '%s' in: %s", rows[i].text, err.text);
		assert_int_equal(file_stat().st_size, SIZE);
	}
	assert_int_equal(pool_grow_space(p, LARGE, &err), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
}

/*
 * One copy of the sidecar says the new size, the other one could not be written: which of
 * them a reader believes after a cut is open, so the file keeps what both need.
 */
static void
growth_that_is_half_recorded_is_not_cut_back(void **state)
{
	struct pool *p = open_new(false);
	struct rlimit old, limit;

	(void)state;
	assert_int_equal(pool_grow_space(p, LARGE, &err), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){.rlim_cur = SIDECAR_SLOT_SIZE, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_not_equal(pool_grow_record(p, LARGE, &err), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(recorded(), LARGE);

	assert_int_equal(pool_grow_undo(p, &err), REPL_E_IO);
	assert_non_null(strstr(err.text, "'p'"));
	assert_int_equal(pool_grow_space(p, 2 * LARGE, &err), REPL_E_IO);
	assert_int_equal(file_stat().st_size, LARGE);
	assert_int_equal(recorded(), LARGE);

	/* Written whole it is what it says. */
	assert_int_equal(pool_grow_record(p, LARGE, &err), 0);
	assert_int_equal(pool_grow_space(p, 2 * LARGE, &err), 0);
	assert_int_equal(pool_grow_undo(p, &err), 0);
	assert_int_equal(file_stat().st_size, LARGE);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_int_equal(recorded(), LARGE);
}

static void
failed_sync_is_not_forgotten(void **state)
{
	struct pool *p = open_new(false);

	(void)state;
	assert_false(pool_sync_failed(p));
	sync_errno = EIO;
	assert_int_equal(pool_grow_space(p, LARGE, &err), REPL_E_IO);
	sync_errno = 0;
	assert_int_equal(file_stat().st_size, SIZE);
	assert_true(pool_sync_failed(p));
	assert_int_equal(pool_grow_space(p, LARGE, &err), 0);
	assert_true(pool_sync_failed(p));
	assert_int_equal(pool_close(p, false, &err), 0);
}

/* The kernel tells each open file description an error once, and the flushes have this one. */
static void
no_error_of_a_flush_is_taken_from_it(void **state)
{
	struct pool *p = open_new(false);

	(void)state;
	watched_fd = pool_fd(p);
	syncs = watched_syncs = 0;
	assert_int_equal(pool_grow_space(p, LARGE, &err), 0);
	assert_int_equal(pool_grow_undo(p, &err), 0);
	assert_true(syncs >= 2);
	assert_int_equal(watched_syncs, 0);
	watched_fd = -1;
	assert_int_equal(pool_close(p, true, &err), 0);
}

/* On disk: what is in memory only has no other place. */
static void
lost_pages_are_not_met_again(void **state)
{
	struct pool_store *on_disk;
	char place[TEMPDIR_MAX];
	struct pool *p = NULL;
	unsigned char resident = 0;
	void *mem;

	(void)state;
	assert_int_equal(tempdir_new(place, 1), 0);
	assert_int_equal(pool_store_new(place, &on_disk, &err), 0);
	assert_int_equal(pool_create(on_disk, "p", SIZE, NULL, false, &info, &err), 0);
	assert_int_equal(pool_open(on_disk, "p", POOL_WRITE, "w", &p, &err), 0);
	assert_int_equal(pwrite(pool_fd(p), "x", 1, 0), 1);
	assert_int_equal(fdatasync(pool_fd(p)), 0);
	pool_forget(p);
	mem = mmap(NULL, 4096, PROT_READ, MAP_SHARED, pool_fd(p), 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	assert_int_equal(mincore(mem, 4096, &resident), 0);
	if (strcmp(pool_get_info(p)->filesystem, "ext4") == 0)
		assert_int_equal(resident & 1, 0);
	assert_int_equal(*(const char *)mem, 'x');
	(void)munmap(mem, 4096);
	assert_int_equal(pool_close(p, true, &err), 0);
	pool_store_free(on_disk);
	tempdir_free(place);
}

#define FAR (6U << 20) /* where nobody reads ahead who looks how a pool begins */

/* A pool on disk with a page that is clean and in the page cache. */
static struct pool *
open_cached(const char *place, struct pool_store **on_disk)
{
	struct pool *p = NULL;

	assert_int_equal(pool_store_new(place, on_disk, &err), 0);
	assert_int_equal(pool_create(*on_disk, "p", 2U * FAR, NULL, false, &info, &err), 0);
	assert_int_equal(pool_open(*on_disk, "p", POOL_WRITE, "w", &p, &err), 0);
	assert_int_equal(pwrite(pool_fd(p), "x", 1, FAR), 1);
	assert_int_equal(fdatasync(pool_fd(p)), 0);
	return p;
}

static bool
is_cached(const struct pool *p)
{
	void *mem = mmap(NULL, 4096, PROT_READ, MAP_SHARED, pool_fd(p), FAR);
	unsigned char resident = 0;

	assert_ptr_not_equal(mem, MAP_FAILED);
	assert_int_equal(mincore(mem, 4096, &resident), 0);
	(void)munmap(mem, 4096);
	return resident & 1;
}

/*
 * A sync that fails leaves pages that are clean and not on media. Its error is told once: at the
 * opening, say, for what is written back when the session before has ended.
 */
static void
pages_that_an_opening_finds_lost_are_not_met_again(void **state)
{
	struct pool_store *on_disk;
	char place[TEMPDIR_MAX];
	struct pool *p;

	(void)state;
	assert_int_equal(tempdir_new(place, 1), 0);
	p = open_cached(place, &on_disk);
	assert_int_equal(pool_close(p, false, &err), 0);
	sync_errno = EIO;
	assert_int_equal(pool_open(on_disk, "p", POOL_WRITE, "w", &p, &err), REPL_E_IO);
	sync_errno = 0;
	err_clear(&err);
	assert_int_equal(pool_open(on_disk, "p", POOL_WRITE, "w", &p, &err), 0);
	if (strcmp(pool_get_info(p)->filesystem, "ext4") == 0)
		assert_false(is_cached(p));
	assert_int_equal(pool_close(p, true, &err), 0);
	pool_store_free(on_disk);
	tempdir_free(place);
}

static bool
says_writer_open(const char *place)
{
	char path[TEMPDIR_MAX + 8];
	struct sidecar meta;
	bool repair;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/p.repl", place);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(sidecar_read(fd, &meta, &repair, &err), 0);
	(void)close(fd);
	return meta.writer_open;
}

/* Others may have the pages mapped: so the next writer is told, until one has closed in order. */
static void
what_a_flush_has_lost_is_told_to_the_next_writer(void **state)
{
	struct pool_store *on_disk;
	char place[TEMPDIR_MAX];
	struct pool *p;

	(void)state;
	assert_int_equal(tempdir_new(place, 1), 0);
	p = open_cached(place, &on_disk);
	pool_flush_lost(p);
	assert_int_equal(pool_close(p, false, &err), 0);
	assert_true(says_writer_open(place));
	assert_int_equal(pool_open(on_disk, "p", POOL_WRITE, "w", &p, &err), 0);
	assert_int_equal(pool_get_info(p)->meta.state, SIDECAR_UNKNOWN);
	assert_int_equal(pool_close(p, true, &err), 0);
	assert_false(says_writer_open(place));
	/* By the opening itself. */
	sync_errno = EIO;
	assert_int_equal(pool_open(on_disk, "p", POOL_WRITE, "w", &p, &err), REPL_E_IO);
	sync_errno = 0;
	err_clear(&err);
	assert_true(says_writer_open(place));
	pool_store_free(on_disk);
	tempdir_free(place);
}

/* It may have been killed between a sync that failed and the forgetting. */
static void
pages_of_a_killed_writer_are_read_again(void **state)
{
	struct pool_store *on_disk;
	char place[TEMPDIR_MAX];
	struct pool *p = NULL;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(tempdir_new(place, 1), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)open_cached(place, &on_disk);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(pool_store_new(place, &on_disk, &err), 0);
	assert_int_equal(pool_open(on_disk, "p", POOL_WRITE, "w", &p, &err), 0);
	if (strcmp(pool_get_info(p)->filesystem, "ext4") == 0)
		assert_false(is_cached(p));
	assert_int_equal(pool_close(p, true, &err), 0);
	pool_store_free(on_disk);
	tempdir_free(place);
}

/* Between a reader's looks at the sidecar and at the file both may have changed. */
/* In a child: grows the pool 2,000 times; its exit status is 0 if all went well. */
static void
grow_on(void)
{
	struct pool *p = NULL;
	uint64_t size = SIZE;

	if (pool_open(store, "p", POOL_WRITE, "w", &p, &err))
		_exit(1);
	for (unsigned i = 0; i < 2000; i++, size += 4096) {
		if (pool_grow_space(p, size + 4096, &err) ||
		    pool_grow_record(p, size + 4096, &err) ||
		    pwrite(pool_fd(p), "x", 1, (off_t)size) != 1)
			_exit(1);
	}
	_exit(0);
}

static void
reader_beside_a_growing_writer_finds_no_damage(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(pool_create(store, "p", SIZE, NULL, false, &info, &err), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		grow_on();
	while (waitpid(pid, &status, WNOHANG) == 0)
		if (pool_info(store, "p", &info, &err))
			fail_msg("%s", err.text);
	assert_int_equal(status, 0);
}

static struct pool *grower;

static void
grow_by_a_file(uint64_t size, const char *lines)
{
	write_set("s", lines);
	assert_int_equal(pool_grow_space(grower, size, &err), 0);
	assert_int_equal(pool_grow_record(grower, size, &err), 0);
}

/* Files 1 and 3 are where nobody has looked yet. */
static void
grow_by_three_files(void)
{
	grow_by_a_file(5 * MB, "OPTION NOHDRS\n4M d\n4M e\n");
	grow_by_a_file(9 * MB, "OPTION NOHDRS\n6M d\n6M e\n");
	grow_by_a_file(13 * MB, "OPTION NOHDRS\n8M d\n8M e\n");
	assert_true(there("e/000001.pmem") && there("d/000002.pmem") && there("e/000003.pmem"));
}

static void
grow_and_close(void)
{
	grow_by_three_files();
	assert_int_equal(pool_close(grower, true, &err), 0);
}

static void
set_of_directories(void)
{
	write_set("s", "OPTION NOHDRS\n4M d\n4M e\n");
	assert_int_equal(pool_set_create(store, "s", 4 * MB, NULL, NULL, false, &info, &err), 0);
	grower = open_write();
}

static void
directories_that_grow_while_they_are_listed_lack_nothing(void **state)
{
	struct pool *pool;

	(void)state;
	make_dir("d");
	make_dir("e");
	set_of_directories();
	others_do = grow_by_three_files;
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_null(others_do);
	assert_true(info.meta.pool_size == 13 * MB);
	assert_int_equal(pool_close(grower, true, &err), 0);
	assert_int_equal(pool_remove(store, "s", 0, NULL, &err), 0);

	set_of_directories();
	others_do = grow_and_close;
	pool = open_write();
	assert_null(others_do);
	assert_int_equal(pool_close(pool, true, &err), 0);
}

/* For the end of a run of data the kernel may go through all of it. */
static void
zeros_behind_a_pool_are_walked_once(void **state)
{
	static const uint8_t zeros[REST];
	int fd = memfd_create("rest", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 3 * REST), 0);
	assert_int_equal(pwrite(fd, zeros, REST, 0), REST);
	assert_int_equal(pwrite(fd, zeros, REST - 1, 2 * REST), REST - 1);
	ends = 0;
	assert_true(pool_rest_is_zero(fd, 1, 3 * REST));
	assert_true(ends <= 2);
	assert_int_equal(pwrite(fd, "x", 1, 3 * REST - 1), 1);
	assert_false(pool_rest_is_zero(fd, 1, 3 * REST));
	assert_true(pool_rest_is_zero(fd, 1, 3 * REST - 1));
	(void)close(fd);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_free)
	const struct CMUnitTest tests[] = {
		TEST(space_is_allocated_and_the_record_comes_last),
		TEST(growth_that_was_cut_off_is_cut_back),
		TEST(growth_is_taken_back),
		TEST(bytes_behind_the_pool_are_no_growth),
		TEST(sparse_pool_takes_no_space),
		TEST(growth_without_room_leaves_all_as_it_was),
		TEST(growth_names_what_it_lacks),
		TEST(growth_that_is_half_recorded_is_not_cut_back),
		TEST(failed_sync_is_not_forgotten),
		TEST(no_error_of_a_flush_is_taken_from_it),
		TEST(lost_pages_are_not_met_again),
		TEST(what_a_flush_has_lost_is_told_to_the_next_writer),
		TEST(pages_that_an_opening_finds_lost_are_not_met_again),
		TEST(pages_of_a_killed_writer_are_read_again),
		TEST(reader_beside_a_growing_writer_finds_no_damage),
		TEST(directories_that_grow_while_they_are_listed_lack_nothing),
		TEST(zeros_behind_a_pool_are_walked_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
