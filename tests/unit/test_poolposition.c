/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far a pool had come whose writer was killed is on record when it is opened next, and never
 * more than that.
 */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "checksum.h"
#include "le.h"
#include "pool_world.h"
#include "regionpage.h"

#define SIZE  (16U * 4096)
#define CELLS (SIDECAR_SIZE + REGION_PAGE)
#define CELL  256U
#define COUNT 16U

static struct pool *pool;
static struct poolposition *record;

static int
setup(void **state)
{
	(void)state;
	return world_new(0, SIZE);
}

static void
writer_opens(void)
{
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "writer", &pool, &err), 0);
	assert_int_equal(pool_record_make(pool, &record, &err), 0);
}

static void
tell(const void *last)
{
	writer_opens();
	for (uint64_t i = 1; i <= *(const uint64_t *)last; i++)
		assert_int_equal(poolposition_tell(record, i, &err), 0);
}

/* A writer that tells 1 to last and is killed. */
static void
killed_behind(uint64_t last)
{
	killed_after(tell, &last);
}

/* Who only looks is told the same before. */
static void
opened(enum pool_mode mode, uint64_t position)
{
	assert_int_equal(pool_info(store, "p", &info, &err), 0);
	assert_int_equal(info.meta.position, position);
	assert_int_equal(info.meta.state, SIDECAR_UNKNOWN);
	assert_int_equal(pool_open(store, "p", mode, "next", &pool, &err), 0);
	assert_int_equal(pool_get_info(pool)->meta.position, position);
	assert_int_equal(pool_get_info(pool)->meta.position_len, 0);
	assert_int_equal(pool_get_info(pool)->meta.state, SIDECAR_UNKNOWN);
	assert_int_equal(pool_close(pool, true, &err), 0);
	assert_int_equal(file_size("p.repl"), SIDECAR_SIZE);
}

static void
what_a_killed_writer_told_is_there(void **state)
{
	static const uint64_t last[] = {0, 1, COUNT - 1, COUNT, COUNT + 1, 1000};

	(void)state;
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++) {
		world_free(NULL);
		setup(NULL);
		killed_behind(last[i]);
		opened(i % 2 ? POOL_READ : POOL_WRITE, last[i]);
		opened(POOL_WRITE, last[i]);
	}
}

/* The cell that was being written is torn: the one before it holds. */
static void
torn_cell_is_passed_over(void **state)
{
	uint8_t torn[8];

	(void)state;
	killed_behind(20);
	put_le64(torn, 21);
	file_change("p.repl", CELLS + 20 % COUNT * CELL, torn, sizeof(torn));
	opened(POOL_READ, 20);
}

/* Nothing of the pool depends on it: it opens, and tells none. */
static void
damaged_record_tells_none(void **state)
{
	static const uint64_t at[] = {SIDECAR_SIZE, SIDECAR_SIZE + 24, SIDECAR_SIZE + 41,
				      SIDECAR_SIZE + 4000};
	uint8_t byte;
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		killed_behind(5);
		/* Whatever it is: of a key or a checksum it may be any. */
		fd = file_open("p.repl");
		assert_int_equal(pread(fd, &byte, 1, (off_t)at[i]), 1);
		byte ^= 0x5a;
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at[i]), 1);
		(void)close(fd);
		opened(POOL_WRITE, 0);
	}
	killed_behind(5);
	fd = file_open("p.repl");
	assert_int_equal(ftruncate(fd, CELLS), 0);
	(void)close(fd);
	opened(POOL_WRITE, 0);
}

/* A cell that is whole and can be no position, by somebody who knows the key. */
static void
forged_cell_is_none(void **state)
{
	uint8_t cell[16], key[8];
	int fd;

	(void)state;
	killed_behind(5);
	fd = file_open("p.repl");
	assert_int_equal(pread(fd, key, sizeof(key), SIDECAR_SIZE + 40), sizeof(key));
	(void)close(fd);
	put_le64(cell, UINT64_MAX);
	put_le64(cell + 8, sum64_seeded(cell, 8, get_le64(key)));
	file_change("p.repl", CELLS + 9 * CELL, cell, sizeof(cell));
	opened(POOL_WRITE, 5);
}

/* Its end puts what the pool says on record, and makes room for the next one. */
static void
writer_that_ends_takes_it_away(void **state)
{
	(void)state;
	writer_opens();
	assert_int_equal(poolposition_tell(record, 7, &err), 0);
	pool_position(pool, 7);
	assert_int_equal(pool_record_end(pool, record, &err), 0);
	assert_int_equal(pool_get_info(pool)->meta.position, 7);
	assert_int_equal(pool_record_make(pool, &record, &err), 0);
	assert_int_equal(pool_record_end(pool, record, &err), 0);
	assert_int_equal(pool_close(pool, false, &err), 0);
	opened(POOL_READ, 7);
}

/* A journal lies behind it, and what gives back the journal's space leaves it. */
static void
journal_lies_behind_it(void **state)
{
	(void)state;
	writer_opens();
	assert_int_equal(pool_journal_begin(pool, 4096, &err), 0);
	assert_int_equal(pool_get_info(pool)->meta.journal_off, CELLS + REGION_PAGE);
	assert_int_equal(pool_journal_drop(pool, &err), 0);
	while (pool_journal_tidy(pool))
		;
	assert_int_equal(poolposition_tell(record, 3, &err), 0);
	assert_int_equal(pool_record_end(pool, record, &err), 0);
	assert_int_equal(pool_close(pool, true, &err), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_a_killed_writer_told_is_there, setup,
						world_free),
		cmocka_unit_test_setup_teardown(torn_cell_is_passed_over, setup, world_free),
		cmocka_unit_test_setup_teardown(damaged_record_tells_none, setup, world_free),
		cmocka_unit_test_setup_teardown(forged_cell_is_none, setup, world_free),
		cmocka_unit_test_setup_teardown(writer_that_ends_takes_it_away, setup, world_free),
		cmocka_unit_test_setup_teardown(journal_lies_behind_it, setup, world_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
