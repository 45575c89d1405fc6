/* SPDX-License-Identifier: BSD-3-Clause */
/* Nothing is written to media behind a program that stores to the file: it is looked before. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "poolfile.h"
#include "tempdir.h"

#define SIZE 8192U

static char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8];
static struct poolfile pool;
static struct local l;

/* What media lack, and what has become of it. */
static struct {
	uint64_t lost;
	bool stored; /* to the file, while it is looked at */
	unsigned looks, writes;
} cache;

int __wrap_local_agree(int fd, const void *mem, uint64_t size, enum pagecache_right right,
		       uint64_t *lost, struct err *e);

static void
touch(int64_t s)
{
	const struct timespec times[2] = {{.tv_sec = s}, {.tv_sec = s}};

	assert_int_equal(utimensat(AT_FDCWD, file, times, 0), 0);
}

int
__wrap_local_agree(int fd, const void *mem, uint64_t size, enum pagecache_right right,
		   uint64_t *lost, struct err *e)
{
	(void)e;
	assert_int_equal(fd, pool.fd);
	assert_ptr_equal(mem, pool.mem);
	assert_int_equal(size, SIZE);
	*lost = cache.lost;
	if (right == PAGECACHE_EITHER) {
		cache.looks++;
		if (cache.stored)
			touch(2);
	} else {
		assert_int_equal(right, PAGECACHE_MEMORY);
		cache.writes++;
		touch(3);
	}
	return 0;
}

static int
setup(void **state)
{
	struct err e;
	FILE *f;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	f = fopen(file, "w");
	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(truncate(file, SIZE), 0);
	touch(1);
	memset(&cache, 0, sizeof(cache));
	err_clear(&e);
	poolfile_init(&pool);
	local_init(&l);
	assert_int_equal(poolfile_open(&pool, file, &e), 0);
	assert_int_equal(poolfile_settle(&pool, &l, &e), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	poolfile_fini(&pool);
	local_fini(&l);
	tempdir_free(dir);
	return 0;
}

static int
agree(void)
{
	struct err e;

	err_clear(&e);
	return poolfile_agree(&pool, &e);
}

static void
what_media_have_is_only_looked_at(void **state)
{
	(void)state;
	assert_int_equal(agree(), 0);
	assert_int_equal(cache.looks, 1);
	assert_int_equal(cache.writes, 0);
}

static void
what_media_lack_is_written(void **state)
{
	struct err e;

	(void)state;
	cache.lost = 4096;
	assert_int_equal(agree(), 0);
	assert_int_equal(cache.writes, 1);
	/* That was no program. */
	err_clear(&e);
	assert_int_equal(poolfile_unchanged(&pool, &e), 0);
}

/* A page whose word is set and set back looks as if a sync had lost it. */
static void
what_a_program_stores_to_is_not_written(void **state)
{
	(void)state;
	cache.lost = 4096;
	cache.stored = true;
	assert_int_equal(agree(), REPL_E_FAILED);
	assert_int_equal(cache.writes, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_media_have_is_only_looked_at, setup, teardown),
		cmocka_unit_test_setup_teardown(what_media_lack_is_written, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_program_stores_to_is_not_written, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
