/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of a log that is open a record that a stray store has damaged is told from a position where none
 * begins: by reads and by trims. A log whose creation was cut off is none, and one whose headers
 * are damaged is one.
 */
#include "unit.h"

#include <stdlib.h>

#include <librepl.h>

#include "logfmt.h"
#include "repl_impl.h"

#define RECORDS 4U
#define DATA    100U

static struct repl *r;
static struct repl_log *logged;
static uint64_t at[RECORDS];

/* A handle none of whose replicas is there, which is all that a log needs. */
static int
setup(void **state)
{
	uint8_t data[DATA] = {1};

	(void)state;
	r = calloc(1, sizeof(*r));
	assert_non_null(r);
	r->size = REPL_LOG_SIZE_MIN;
	r->mem = calloc(1, r->size);
	r->lane_count = 1;
	r->slots = calloc(1, sizeof(*r->slots));
	assert_non_null(r->mem);
	assert_non_null(r->slots);
	assert_int_equal(repl_config_new(&r->cfg), 0);
	assert_int_equal(repl_log_create(r, 0, r->size, REPL_LOG_POINTER, &logged), 0);
	for (unsigned i = 0; i < RECORDS; i++)
		assert_int_equal(repl_log_append(logged, 0, data, sizeof(data), &at[i]), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	repl_log_close(logged);
	repl_config_free(r->cfg);
	free(r->slots);
	free(r->mem);
	free(r);
	return 0;
}

static int
read_at(uint64_t position)
{
	uint8_t data[DATA];
	uint64_t next;
	size_t len;

	return repl_log_read(logged, position, data, sizeof(data), &len, &next);
}

/* What is asked for first is how long it is. */
static void
a_long_record_is_not_passed_over(void **state)
{
	uint64_t position = at[1];
	uint8_t data[DATA];
	size_t len = 0;

	(void)state;
	assert_int_equal(repl_log_read(logged, position, NULL, 0, &len, &position), REPL_E_LIMIT);
	assert_int_equal(len, DATA);
	assert_int_equal(repl_log_read(logged, position, data, DATA - 1, &len, &position),
			 REPL_E_LIMIT);
	assert_int_equal(position, at[1]);
	assert_int_equal(repl_log_read(logged, position, data, len, &len, &position), 0);
	assert_int_equal(position, at[2]);
}

static void
damage(unsigned record)
{
	struct logfmt_header h = {.area_size = r->size};

	r->mem[logfmt_span(&h, at[record], 1).off[0] + LOGFMT_RECORD_HEAD] ^= 1;
}

static void
a_damaged_record_is_told_from_none(void **state)
{
	(void)state;
	assert_int_equal(read_at(at[1] + LOGFMT_ALIGN), REPL_E_INVAL);
	assert_int_equal(read_at(at[1] + 1), REPL_E_INVAL);
	damage(1);
	assert_int_equal(read_at(at[0]), 0);
	assert_int_equal(read_at(at[1]), REPL_E_CORRUPT);
	assert_non_null(strstr(repl_errormsg(), "get the pool from a replica"));
	/* None begins there, as what precedes them says, damaged or not. */
	assert_int_equal(read_at(at[0] + LOGFMT_ALIGN), REPL_E_INVAL);
	assert_int_equal(read_at(at[1] + LOGFMT_ALIGN), REPL_E_INVAL);
	assert_int_equal(read_at(at[2] + 1), REPL_E_INVAL);
	assert_int_equal(read_at(at[2]), 0);
	assert_int_equal(read_at(repl_log_tail(logged)), REPL_E_NOT_FOUND);
}

static void
a_trim_tells_them_apart_as_well(void **state)
{
	(void)state;
	damage(2);
	assert_int_equal(repl_log_trim(logged, 0, at[1] + LOGFMT_ALIGN), REPL_E_INVAL);
	assert_int_equal(repl_log_trim(logged, 0, at[2]), REPL_E_CORRUPT);
	assert_int_equal(repl_log_head(logged), 0);
	assert_int_equal(repl_log_trim(logged, 0, repl_log_tail(logged) + 64), REPL_E_INVAL);
	/* What is damaged may be trimmed. */
	assert_int_equal(repl_log_trim(logged, 0, at[3]), 0);
	assert_int_equal(read_at(at[2]), REPL_E_NOT_FOUND);
	assert_int_equal(read_at(at[3]), 0);
}

static void
a_creation_that_was_cut_is_no_log(void **state)
{
	uint8_t data[DATA] = {2};
	struct repl_log *again;

	(void)state;
	repl_log_close(logged);
	logged = NULL;
	/* Of copy 1 the line with the run is missing; copy 2 comes when a log is first opened. */
	memset(r->mem + 64, 0, 64);
	assert_int_equal(repl_log_open(r, 0, &again), 0);
	repl_log_close(again);
	memset(r->mem + 64, 0, 64);
	r->mem[LOGFMT_PAGE + 64] ^= 1;
	assert_int_equal(repl_log_open(r, 0, &again), REPL_E_CORRUPT);
	assert_int_equal(repl_log_create(r, 0, r->size, REPL_LOG_POINTER, &again), REPL_E_EXISTS);
	memset(r->mem + LOGFMT_PAGE, 0, LOGFMT_PAGE);
	assert_int_equal(repl_log_open(r, 0, &again), REPL_E_NOT_FOUND);
	assert_int_equal(repl_log_create(r, 0, r->size, REPL_LOG_POINTER, &logged), 0);
	assert_int_equal(repl_log_append(logged, 0, data, sizeof(data), &at[0]), 0);
	assert_int_equal(read_at(at[0]), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_damaged_record_is_told_from_none, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_trim_tells_them_apart_as_well, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_record_is_not_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(a_creation_that_was_cut_is_no_log, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
