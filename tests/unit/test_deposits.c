/* SPDX-License-Identifier: BSD-3-Clause */
/* A TRIM in a DEPOSIT takes no space in a pool that has holes, and a replay passes it over. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deposits.h"
#include "tempdir.h"

#define PAGE      4096U
#define POOL_SIZE (64 * PAGE)

static struct pmem_map *map;
static char dir[TEMPDIR_MAX];
static int fd;
static _Atomic bool stopped;

static int
setup(void **state)
{
	char path[TEMPDIR_MAX + 8];
	struct err e;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(path, sizeof(path), "%s/p", dir);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, POOL_SIZE), 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	return pmem_map_new(fd, path, POOL_SIZE, true, &map, &e);
}

static int
teardown(void **state)
{
	(void)state;
	pmem_map_free(map);
	(void)close(fd);
	tempdir_free(dir);
	return 0;
}

static blkcnt_t
blocks(void)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_blocks;
}

/* As a DEPOSIT trims all of the pool but for its last page. Returns whether it was given up. */
static bool
trim(bool trims, bool hole)
{
	static struct deposits d;
	struct wire_entry stamp = {.off = 1, .op = WIRE_OP_STAMP};
	struct wire_entry en = {.len = POOL_SIZE - PAGE, .op = WIRE_OP_TRIM};
	struct wire_commit_view v;
	struct wire_commit c;
	uint8_t msg[256];
	size_t len;

	deposits_init(&d, map);
	d.trims = trims;
	d.hole = hole;
	d.stop = &stopped;
	wire_commit_begin(&c, msg, sizeof(msg), 2);
	wire_commit_add(&c, &stamp, NULL);
	wire_commit_add(&c, &en, NULL);
	len = wire_deposit_end(&c, 1, 1);
	assert_int_equal(wire_deposit_decode(msg, len, POOL_SIZE, &v, NULL), 0);
	assert_int_equal(deposits_apply(&d, &v, NULL), 0);
	assert_int_equal(deposits_flush(&d, NULL), 0);
	return d.given_up;
}

static void
trim_of_a_pool_with_holes_takes_no_space(void **state)
{
	blkcnt_t before = blocks();

	(void)state;
	assert_false(trim(true, true));
	assert_true(blocks() <= before);
	assert_int_equal(*(const char *)pmem_map_addr(map), 0);
}

static void
lanes_that_end_wait_for_no_trim(void **state)
{
	(void)state;
	stopped = true;
	assert_true(trim(true, false));
	stopped = false;
	assert_int_equal(*(const char *)pmem_map_addr(map), 'x');
}

static void
replay_passes_it_over(void **state)
{
	(void)state;
	assert_false(trim(false, false));
	assert_int_equal(*(const char *)pmem_map_addr(map), 'x');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(trim_of_a_pool_with_holes_takes_no_space, setup,
						teardown),
		cmocka_unit_test_setup_teardown(lanes_that_end_wait_for_no_trim, setup, teardown),
		cmocka_unit_test_setup_teardown(replay_passes_it_over, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
