/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target stores nothing behind a BARRIER before all in front of it is
 * durable, however the initiator cut its COMMITs.
 */
#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

#include "data_world.h"
#include "sidecar.h"

static void
barrier_inside_a_commit(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-b");
	serve(&pool);
	assert_string_equal(pool.log, "a|b|");
}

static void
barrier_at_the_end_holds_the_next_commit(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-");
	arrive(0, 2, "b");
	serve(&pool);
	assert_string_equal(pool.log, "a|b|");
}

static void
barrier_at_the_start_holds_its_commit(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a");
	arrive(0, 2, "-b");
	serve(&pool);
	assert_string_equal(pool.log, "a|b|");
}

static void
barrier_holds_no_other_lane(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-");
	arrive(0, 2, "b");
	arrive(1, 1, "x");
	serve(&pool);
	assert_string_equal(pool.log, "ax|b|");
}

static void
failed_flush_holds_all_that_follows(void **state)
{
	struct pmem_map pool = {.log = "", .persist_rc = REPL_E_IO};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-b");
	arrive(0, 2, "c");
	serve(&pool);
	assert_string_equal(pool.log, "a|");
	assert_int_equal(fabric.status[0], REPL_E_IO);
	assert_int_equal(fabric.status[1], REPL_E_IO);
}

static void
failed_sync_of_another_thread_holds_all_that_follows(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a");
	others_sync = REPL_E_IO;
	serve(&pool);
	others_sync = 0;
	assert_string_equal(pool.log, "");
	assert_int_equal(fabric.status[0], REPL_E_IO);
}

/* Stored, it would be the end of the process. What comes behind it must not be there without it. */
static void
store_without_space_holds_all_that_follows(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct pmem_map pool = {.log = "", .full = true};

		memset(&fabric, 0, sizeof(fabric));
		set_tail(&pool, 2048);
		if (i == 0)
			arrive(0, 1, "a");
		else
			arrive_append(0, 1, POOL_SIZE, 16, 'a');
		arrive(0, 2, "b");
		pool_is_sparse = true;
		serve(&pool);
		pool_is_sparse = false;
		assert_string_equal(pool.log, "");
		assert_int_equal(fabric.status[0], REPL_E_NOSPC);
		assert_int_equal(fabric.status[1], REPL_E_NOSPC);
	}
}

/*
 * What finds no space in a sparse pool is refused when it is staged, as is all behind it: a journal
 * that was committed without would keep everybody from the pool.
 */
static void
stage_takes_space_of_a_sparse_pool(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct sidecar meta = {
			.pool_size = POOL_SIZE, .state = SIDECAR_OUTDATED, .epoch = 7};
		struct pmem_map pool = {.log = "", .full = i & 1};
		int fd = memfd_create("sidecar", MFD_CLOEXEC);
		bool refused = (i & 1) && (i & 2);
		int rc;

		memset(&fabric, 0, sizeof(fabric));
		pool_is_sparse = i & 2;
		assert_int_equal(sidecar_write(fd, &meta, NULL), 0);
		assert_int_equal(pooljournal_new(fd, &the_journal, NULL), 0);
		assert_int_equal(pooljournal_begin(the_journal, &meta, POOL_SIZE, NULL), 0);
		arrive_stage(0, 1, 'a');
		serve(&pool);
		rc = pooljournal_commit(the_journal, &meta, SIDECAR_UP_TO_DATE, NULL, 0, false,
					NULL);
		pooljournal_free(the_journal);
		the_journal = NULL;
		pool_is_sparse = false;
		(void)close(fd);
		assert_string_equal(pool.log, "");
		assert_int_equal(fabric.status[0], refused ? REPL_E_NOSPC : 0);
		assert_int_equal(rc, refused ? REPL_E_NOSPC : 0);
		assert_int_equal(meta.journal_committed, !refused);
	}
}

/* Each lane by its own sequence, and all of them into one journal as they came. */
static void
stages_of_two_lanes_are_one_journal(void **state)
{
	struct sidecar meta = {.pool_size = POOL_SIZE, .state = SIDECAR_OUTDATED, .epoch = 7};
	struct pmem_map pool = {.log = ""};
	struct journal_progress p = {0};
	int fd = memfd_create("sidecar", MFD_CLOEXEC);

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	assert_int_equal(sidecar_write(fd, &meta, NULL), 0);
	assert_int_equal(pooljournal_new(fd, &the_journal, NULL), 0);
	assert_int_equal(pooljournal_begin(the_journal, &meta, POOL_SIZE, NULL), 0);
	arrive_stage(1, 1, 'a');
	arrive_stage(0, 1, 'b');
	arrive_stage(0, 2, 'c');
	arrive_stage(1, 2, 'd');
	serve(&pool);
	assert_string_equal(pool.log, "");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fabric.status[i], 0);
	assert_int_equal(
		pooljournal_commit(the_journal, &meta, SIDECAR_UP_TO_DATE, NULL, 0, false, NULL),
		0);
	assert_int_equal(pooljournal_apply(the_journal, &meta, &pool, UINT64_MAX, &p, NULL), 0);
	assert_int_equal(p.done, p.total);
	assert_string_equal(pool.log, "papbpcpd|");
	pooljournal_free(the_journal);
	the_journal = NULL;
	(void)close(fd);
}

/* Its size may still turn out not to be recorded. */
static void
region_of_a_growth_that_is_under_way_is_refused(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive_register(1, 1);
	grow_to = 2UL * POOL_SIZE;
	serve(&pool);
	grow_to = 0;
	assert_int_equal(fabric.status[0], REPL_E_INVAL);
	assert_int_equal(fabric.registered, 0);
}

/* What an RNIC has of the pool is locked already, the rest will be when it is asked for. */
static void
growth_has_room_only_where_it_may_be_locked(void **state)
{
	static const struct {
		uint64_t size;
		bool registers;
		int rc;
	} rows[] = {{3UL * POOL_SIZE, true, 0},
		    {3UL * POOL_SIZE + 1, true, REPL_E_LIMIT},
		    {2UL * POOL_SIZE, false, 0},
		    {2UL * POOL_SIZE + 1, false, REPL_E_LIMIT}};
	struct pmem_map pool = {.log = ""};

	(void)state;
	pin_max = 2UL * POOL_SIZE;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(&fabric, 0, sizeof(fabric));
		if (rows[i].registers)
			arrive_register(1, 0);
		grow_ask = rows[i].size;
		serve(&pool);
		assert_int_equal(fabric.registered, rows[i].registers);
		assert_int_equal(grow_answer, rows[i].rc);
	}
	pin_max = grow_ask = 0;
}

static void
immediates_share_the_flush_of_a_round(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive_imm(0, ANSWER);
	arrive(0, 2, "a");
	arrive_imm(0, ANSWER | 1);
	arrive(1, 1, "x");
	serve(&pool);
	assert_string_equal(pool.log, "ax|");
	assert_int_equal(fabric.status[2], 0);
	assert_int_equal(fabric.dropped, 0);
}

static void
immediate_waits_behind_a_barrier(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-");
	arrive_imm(0, ANSWER);
	serve(&pool);
	/* Its flush is one of its own. */
	assert_string_equal(pool.log, "a||");
}

static void
immediate_after_a_failed_flush_is_refused(void **state)
{
	struct pmem_map pool = {.log = "", .persist_rc = REPL_E_IO};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-");
	arrive_imm(0, ANSWER);
	serve(&pool);
	assert_string_equal(pool.log, "a|");
	assert_int_equal(fabric.status[1], REPL_E_IO);
}

static void
more_immediates_than_the_depth_end_the_lane(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	for (unsigned i = 0; i < 5; i++)
		arrive_imm(1, ANSWER | i);
	arrive(0, 1, "a");
	serve(&pool);
	assert_int_equal(fabric.dropped, 2);
	assert_int_equal(fabric.status[4], REPL_E_PROTOCOL);
	assert_string_equal(pool.log, "a|");
}

static void
sequences_without_a_gap_are_asked_for(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive_imm(0, ANSWER);
	arrive(0, 1, "a");
	serve(&pool);
	assert_int_equal(fabric.dropped, 1);
	assert_string_equal(pool.log, "|");
}

static void
immediate_to_a_pool_opened_for_reading_ends_the_lane(void **state)
{
	static const uint32_t bits[] = {0, ANSWER};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct pmem_map pool = {.log = ""};

		memset(&fabric, 0, sizeof(fabric));
		arrive_imm(0, bits[i]);
		serve_as(&pool, false);
		assert_int_equal(fabric.dropped, 1);
		assert_int_equal(fabric.status[0], REPL_E_REFUSED);
		assert_string_equal(pool.log, "");
	}
}

static void
immediate_of_an_unknown_lane_ends_all(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	fabric.silent = 1;
	arrive_imm(2, ANSWER);
	serve(&pool);
	assert_int_equal(fabric.dropped, 3);
	assert_string_equal(pool.log, "");
}

/* Two flushes for both: all bytes, then both tail words. */
static void
append_stores_its_tail_behind_a_flush(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2000);
	arrive_append(0, 1, 4096, 100, 'a');
	arrive_append(1, 1, 4096, 30, 'b');
	serve(&pool);
	assert_string_equal(pool.log, "ab|TT|");
	assert_int_equal(fabric.place[0], 2000);
	assert_int_equal(fabric.place[1], 2100);
	assert_int_equal(get_le64(pool.mem + TAIL), 2130);
	assert_true(pool.mem[2099] == 'a' && pool.mem[2100] == 'b' && pool.mem[2130] == 0);
}

/* The second takes its place when the first has its own and has not stored its tail. */
static void
append_behind_a_barrier_leaves_no_gap(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2000);
	arrive(1, 1, "x-");
	arrive_append(1, 2, 4096, 30, 'b');
	arrive_append(0, 1, 4096, 100, 'a');
	serve(&pool);
	assert_string_equal(pool.log, "xa|bT|T|");
	assert_int_equal(fabric.place[0], 2000);
	assert_int_equal(fabric.place[1], 2100);
	assert_int_equal(get_le64(pool.mem + TAIL), 2130);
}

static void
append_without_room_leaves_the_lane_alive(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 4000);
	arrive_append(0, 1, 4096, 97, 'a');
	arrive_append(0, 2, 4096, 96, 'b');
	arrive_append(0, 3, 4096, 1, 'c');
	serve(&pool);
	assert_int_equal(fabric.status[0], REPL_E_NOSPC);
	assert_int_equal(fabric.status[1], 0);
	assert_int_equal(fabric.place[0], 4000);
	assert_int_equal(fabric.status[2], REPL_E_NOSPC);
	assert_int_equal(get_le64(pool.mem + TAIL), 4096);
	assert_string_equal(pool.log, "b|T|");
}

/* The pool's bytes are the application's, and it may have been damaged or mean harm. */
static void
append_by_a_hostile_tail_word_is_refused(void **state)
{
	static const struct {
		uint64_t tail;
		int status;
	} rows[] = {
		{UINT64_MAX, REPL_E_CORRUPT},
		{UINT64_MAX - 50, REPL_E_CORRUPT},
		{POOL_SIZE + 1, REPL_E_CORRUPT},
		{POOL_SIZE, REPL_E_NOSPC},
		{TAIL, REPL_E_INVAL},
		{TAIL - 63, REPL_E_INVAL},
		{TAIL + 7, REPL_E_INVAL},
		{TAIL - 64, 0},
		{TAIL + 8, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pmem_map pool = {.log = ""};

		memset(&fabric, 0, sizeof(fabric));
		set_tail(&pool, rows[i].tail);
		arrive_append(0, 1, POOL_SIZE, 64, 'a');
		serve(&pool);
		assert_int_equal(fabric.status[0], rows[i].status);
		assert_int_equal(get_le64(pool.mem + TAIL),
				 rows[i].status ? rows[i].tail : rows[i].tail + 64);
	}
}

static void
failed_flush_gives_no_place(void **state)
{
	struct pmem_map pool = {.log = "", .persist_rc = REPL_E_IO};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2000);
	arrive_append(0, 1, 4096, 100, 'a');
	serve(&pool);
	assert_string_equal(pool.log, "a|");
	assert_int_equal(fabric.status[0], REPL_E_IO);
	assert_int_equal(get_le64(pool.mem + TAIL), 2000);
}

static void
region_is_registered_when_it_is_asked_for(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a");
	serve(&pool);
	assert_int_equal(fabric.registered, 0);
	memset(&fabric, 0, sizeof(fabric));
	arrive_register(1, 1);
	arrive_register(2, 0);
	arrive_register(3, UINT64_MAX);
	serve_as(&pool, false);
	assert_int_equal(fabric.registered, 1);
	assert_int_equal(fabric.registered_len, POOL_SIZE);
	assert_int_equal(fabric.status[0], REPL_E_INVAL);
	assert_int_equal(fabric.status[1], 0);
	assert_int_equal(fabric.status[2], REPL_E_INVAL);
}

static void
position_is_the_highest_that_is_durable(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive_drain(1, 'a', 5);
	arrive_drain(2, 'b', 7);
	arrive_drain(3, 'c', 6);
	serve(&pool);
	assert_string_equal(pool.log, "a|b|c|");
	assert_int_equal(position, 7);
}

static void
failed_flush_gives_no_position(void **state)
{
	struct pmem_map pool = {.log = "", .persist_rc = REPL_E_IO};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive_drain(1, 'a', 5);
	serve(&pool);
	assert_int_equal(fabric.status[0], REPL_E_IO);
	assert_int_equal(position, 0);
}

/* Behind the flush, before the answer; what is no higher is not told. */
static void
position_is_recorded(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct pmem_map pool = {.log = ""};

		memset(&fabric, 0, sizeof(fabric));
		arrive_drain(1, 'a', 5);
		arrive_drain(2, 'b', 7);
		arrive_drain(3, 'c', 6);
		position_record = (struct poolposition){.pool = &pool, .rc = i ? REPL_E_IO : 0};
		serve(&pool);
		position_record.pool = NULL;
		assert_string_equal(pool.log, i ? "a|R5" : "a|R5b|R7c|");
		assert_int_equal(fabric.status[0], i ? REPL_E_IO : 0);
		assert_int_equal(position, i ? 0 : 7);
	}
}

/* As what RMA writes: it is there when it is answered, and durable by the FLUSH behind it. */
static void
put_is_stored_and_not_flushed(void **state)
{
	(void)state;
	for (unsigned logged = 0; logged < 2; logged++) {
		struct pmem_map pool = {.log = ""};

		memset(&fabric, 0, sizeof(fabric));
		put_granted = true;
		arrive_put(0, 1, 'a');
		arrive_put(0, 2, 'b');
		arrive_entry(3, WIRE_OP_FLUSH, 64, 1);
		if (logged)
			serve_logged(&pool, 0);
		else
			serve(&pool);
		put_granted = false;
		assert_string_equal(pool.log, "papb|");
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(fabric.status[i], 0);
	}
}

/* Each of these ends the lane, and nothing is stored. */
static void
put_is_refused(void **state)
{
	static const struct {
		bool granted, write, staging;
	} rows[] = {{false, true, false}, {true, false, false}, {true, true, true}};
	struct sidecar meta = {.pool_size = POOL_SIZE, .state = SIDECAR_OUTDATED, .epoch = 7};
	int fd = memfd_create("sidecar", MFD_CLOEXEC);
	struct pooljournal *journal = NULL;

	(void)state;
	assert_int_equal(sidecar_write(fd, &meta, NULL), 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pmem_map pool = {.log = ""};

		memset(&fabric, 0, sizeof(fabric));
		if (rows[i].staging) {
			assert_int_equal(pooljournal_new(fd, &journal, NULL), 0);
			assert_int_equal(pooljournal_begin(journal, &meta, POOL_SIZE, NULL), 0);
			the_journal = journal;
		}
		put_granted = rows[i].granted;
		arrive_put(0, 1, 'a');
		serve_as(&pool, rows[i].write);
		put_granted = false;
		the_journal = NULL;
		assert_string_equal(pool.log, "");
		assert_int_equal(fabric.dropped, 1);
		assert_int_not_equal(fabric.status[0], 0);
	}
	pooljournal_free(journal);
	(void)close(fd);
}

/* What was stored on the lane before; no more than the window takes. */
static void
fetch_fills_the_window(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a");
	arrive_entry(2, WIRE_OP_FETCH, 64, 8);
	arrive_entry(3, WIRE_OP_FETCH, 0, WINDOW + 1);
	serve(&pool);
	assert_int_equal(fabric.status[1], 0);
	assert_int_equal(fabric.status[2], REPL_E_INVAL);
	assert_int_equal(fabric.keys, 1);
	assert_memory_equal(fabric.window[0], "aaaaaaaa", 8);
}

/* What comes without end delays no answer for ever, nor the end of the port and the lanes. */
static void
flood_of_events_is_left_in_between(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	fabric.endless = true;
	arrive(0, 1, "a");
	serve(&pool);
	assert_int_equal(fabric.status[0], 0);
}

/* Nothing is ever idle then, and the end of all trims would be a long one. */
static void
trims_go_on_in_a_flood(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	fabric.endless = true;
	atomic_store(&zeroed, 0);
	arrive_entry(1, WIRE_OP_TRIM, 4096, 4096);
	awaits_zero = true;
	serve(&pool);
	awaits_zero = false;
	assert_int_equal(fabric.status[0], 0);
	assert_int_equal(zeroed_served, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(barrier_inside_a_commit),
		cmocka_unit_test(barrier_at_the_end_holds_the_next_commit),
		cmocka_unit_test(barrier_at_the_start_holds_its_commit),
		cmocka_unit_test(barrier_holds_no_other_lane),
		cmocka_unit_test(failed_flush_holds_all_that_follows),
		cmocka_unit_test(failed_sync_of_another_thread_holds_all_that_follows),
		cmocka_unit_test(store_without_space_holds_all_that_follows),
		cmocka_unit_test(stage_takes_space_of_a_sparse_pool),
		cmocka_unit_test(stages_of_two_lanes_are_one_journal),
		cmocka_unit_test(region_of_a_growth_that_is_under_way_is_refused),
		cmocka_unit_test(growth_has_room_only_where_it_may_be_locked),
		cmocka_unit_test(append_stores_its_tail_behind_a_flush),
		cmocka_unit_test(append_behind_a_barrier_leaves_no_gap),
		cmocka_unit_test(append_without_room_leaves_the_lane_alive),
		cmocka_unit_test(append_by_a_hostile_tail_word_is_refused),
		cmocka_unit_test(failed_flush_gives_no_place),
		cmocka_unit_test(position_is_the_highest_that_is_durable),
		cmocka_unit_test(failed_flush_gives_no_position),
		cmocka_unit_test(position_is_recorded),
		cmocka_unit_test(region_is_registered_when_it_is_asked_for),
		cmocka_unit_test(immediates_share_the_flush_of_a_round),
		cmocka_unit_test(immediate_waits_behind_a_barrier),
		cmocka_unit_test(immediate_after_a_failed_flush_is_refused),
		cmocka_unit_test(more_immediates_than_the_depth_end_the_lane),
		cmocka_unit_test(sequences_without_a_gap_are_asked_for),
		cmocka_unit_test(immediate_to_a_pool_opened_for_reading_ends_the_lane),
		cmocka_unit_test(immediate_of_an_unknown_lane_ends_all),
		cmocka_unit_test(put_is_stored_and_not_flushed),
		cmocka_unit_test(put_is_refused),
		cmocka_unit_test(fetch_fills_the_window),
		cmocka_unit_test(flood_of_events_is_left_in_between),
		cmocka_unit_test(trims_go_on_in_a_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
