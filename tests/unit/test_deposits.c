/* SPDX-License-Identifier: BSD-3-Clause */
/* A TRIM in a DEPOSIT is the data thread's: a replay passes it over. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "deposits.h"
#include "tempdir.h"

#define PAGE      4096U
#define POOL_SIZE (64 * PAGE)

static struct pmem_map *map;
static char dir[TEMPDIR_MAX];
static int fd;

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

static void
replay_passes_a_trim_over(void **state)
{
	static struct deposits d;
	struct wire_entry stamp = {.off = 1, .op = WIRE_OP_STAMP};
	struct wire_entry en = {.len = POOL_SIZE - PAGE, .op = WIRE_OP_TRIM};
	struct wire_commit_view v;
	struct wire_commit c;
	uint8_t msg[256];
	size_t len;

	(void)state;
	deposits_init(&d, map);
	wire_commit_begin(&c, msg, sizeof(msg), 2);
	wire_commit_add(&c, &stamp, NULL);
	wire_commit_add(&c, &en, NULL);
	len = wire_deposit_end(&c, 1, 1);
	assert_int_equal(wire_deposit_decode(msg, len, POOL_SIZE, &v, NULL), 0);
	assert_int_equal(deposits_apply(&d, &v, NULL), 0);
	assert_int_equal(deposits_flush(&d, NULL), 0);
	assert_int_equal(*(const char *)pmem_map_addr(map), 'x');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(replay_passes_a_trim_over, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
