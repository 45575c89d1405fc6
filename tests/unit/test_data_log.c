/* SPDX-License-Identifier: BSD-3-Clause */
/* With a round log the target stores nothing before the frame that holds it is in the log. */
#include "unit.h"

#include "data_world.h"

static void
log_takes_all_lanes_in_one_frame_before_anything_is_stored(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-b");
	arrive(0, 2, "-c");
	arrive(1, 1, "x");
	arrive_drain(3, 'd', 9);
	serve_logged(&pool, 0);
	assert_string_equal(pool.log, "L4abcxdS");
	assert_int_equal(fabric.status[0] | fabric.status[1] | fabric.status[2], 0);
	assert_int_equal(position, 9);
}

static void
log_leaves_what_comes_by_rdma_and_all_behind_it(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a");
	arrive_imm(0, ANSWER);
	arrive(0, 3, "b");
	arrive(1, 1, "x");
	serve_logged(&pool, 0);
	assert_string_equal(pool.log, "L2axSb|");
}

/* Before it is answered. */
static void
log_tells_the_position_of_what_it_does_not_have(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct pmem_map pool = {.log = ""};

		memset(&fabric, 0, sizeof(fabric));
		arrive_imm(0, ANSWER);
		arrive_drain(2, 'd', 9);
		serve_logged(&pool, i ? REPL_E_IO : 0);
		assert_string_equal(pool.log, "d|P9");
		assert_int_equal(fabric.status[1], i ? REPL_E_IO : 0);
		assert_int_equal(position, i ? 0 : 9);
	}
}

static void
log_that_fails_stores_nothing(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a");
	arrive(1, 1, "x");
	serve_logged(&pool, REPL_E_IO);
	assert_string_equal(pool.log, "L2");
	assert_int_equal(fabric.status[0], REPL_E_IO);
}

/* A frame that finds no space when it is replayed would keep everybody from a sparse pool. */
static void
log_takes_nothing_for_which_there_is_no_space(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct pmem_map pool = {.log = "", .full = true};

		memset(&fabric, 0, sizeof(fabric));
		set_tail(&pool, 2048);
		if (i == 0)
			arrive(0, 1, "a-b");
		else
			arrive_append(0, 1, POOL_SIZE, 16, 'a');
		arrive(0, 2, "c");
		pool_is_sparse = true;
		serve_logged(&pool, 0);
		pool_is_sparse = false;
		assert_string_equal(pool.log, "");
		assert_int_equal(fabric.status[0], REPL_E_NOSPC);
		assert_int_equal(fabric.status[1], REPL_E_NOSPC);
	}
}

/* Its bytes and the tail word, in one frame with the append behind it. */
static void
log_holds_an_append_as_what_it_came_to(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2048);
	arrive_append(0, 1, 4096, 100, 'a');
	arrive_append(1, 1, 4096, 50, 'x');
	serve_logged(&pool, 0);
	assert_string_equal(pool.log, "L2aTxTS");
	assert_true(fabric.place[0] == 2048 && fabric.place[1] == 2148);
	assert_int_equal(get_le64(pool.mem + TAIL), 2198);
	assert_true(round_log.entries[0].off == 2048 && round_log.entries[0].len == 100);
	assert_true(round_log.entries[1].off == TAIL && round_log.entries[1].op == WIRE_OP_ATOMIC8);
	assert_true(round_log.entries[2].off == 2148 && round_log.entries[2].len == 50);
}

/* The place follows from a word that is stored only after the frame. */
static void
log_has_no_append_in_the_frame_of_its_lanes_stores(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2048);
	arrive(0, 1, "a");
	arrive_append(0, 2, 4096, 100, 'b');
	serve_logged(&pool, 0);
	assert_string_equal(pool.log, "L1aSL1bTS");
}

static void
log_leaves_an_append_that_does_not_fit(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2048);
	arrive_append(0, 1, 2100, 100, 'a');
	serve_logged(&pool, 0);
	assert_string_equal(pool.log, "");
	assert_int_equal(fabric.status[0], REPL_E_NOSPC);
}

/*
 * What a trim makes zero is not in the log. So none is begun while a frame is stored: a replay of
 * what was in front of it in the same frame would bring that back.
 */
static void
log_has_no_trim_among_stores(void **state)
{
	const struct wire_entry copy = {.off = 64, .len = 8, .op = WIRE_OP_COPY};
	const struct wire_entry trim = {.len = 4096, .op = WIRE_OP_TRIM};
	struct pmem_map pool = {.log = ""};
	struct wire_commit c;

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "x");
	wire_commit_begin(&c, fabric.msg[fabric.count], MSG_SIZE, 3);
	wire_commit_add(&c, &copy, "aaaaaaaa");
	wire_commit_add(&c, &trim, NULL);
	wire_commit_add(&c, &copy, "bbbbbbbb");
	fabric.len[fabric.count++] = wire_commit_end(&c, 2, 7);
	arrive(1, 1, "y");
	serve_logged(&pool, 0);
	assert_string_equal(pool.log, "L2xySa0b|");
	assert_int_equal(fabric.status[0] | fabric.status[1], 0);
}

/* A replay would need the space of a hole, for what frames bring of it. */
static void
log_is_settled_where_a_trim_makes_holes(void **state)
{
	const struct wire_entry trim[] = {{.len = 4096, .op = WIRE_OP_TRIM}, {.op = WIRE_OP_TRIM}};

	(void)state;
	for (unsigned sparse = 0; sparse < 2; sparse++) {
		struct pmem_map pool = {.log = ""};
		struct wire_commit c;

		memset(&fabric, 0, sizeof(fabric));
		arrive_imm(0, ANSWER);
		wire_commit_begin(&c, fabric.msg[fabric.count], MSG_SIZE, 3);
		wire_commit_add(&c, &trim[0], NULL);
		wire_commit_add(&c, &trim[1], NULL);
		fabric.len[fabric.count++] = wire_commit_end(&c, 2, 7);
		arrive_imm(0, ANSWER);
		pool_is_sparse = sparse;
		serve_logged(&pool, 0);
		pool_is_sparse = false;
		assert_string_equal(pool.log, sparse ? "0!|" : "0|");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_takes_all_lanes_in_one_frame_before_anything_is_stored),
		cmocka_unit_test(log_leaves_what_comes_by_rdma_and_all_behind_it),
		cmocka_unit_test(log_tells_the_position_of_what_it_does_not_have),
		cmocka_unit_test(log_that_fails_stores_nothing),
		cmocka_unit_test(log_takes_nothing_for_which_there_is_no_space),
		cmocka_unit_test(log_holds_an_append_as_what_it_came_to),
		cmocka_unit_test(log_has_no_append_in_the_frame_of_its_lanes_stores),
		cmocka_unit_test(log_leaves_an_append_that_does_not_fit),
		cmocka_unit_test(log_has_no_trim_among_stores),
		cmocka_unit_test(log_is_settled_where_a_trim_makes_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
