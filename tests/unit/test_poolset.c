/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool set file is taken as poolset(5) has it, or refused with the line and what is wrong there.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "poolset.h"

static struct poolset set;
static struct err err;

/* Of a section whose parts are files. */
static uint64_t
size_of(unsigned replica)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < set.count; i++)
		if (set.parts[i].replica == replica)
			sum += poolset_part_len(set.headers, set.parts[i].index, set.parts[i].size);
	return sum;
}

static int
parse(const char *text)
{
	err_clear(&err);
	return poolset_parse(text, strlen(text), &set, &err);
}

static void
test_parts_and_sizes(void **state)
{
	(void)state;
	assert_int_equal(parse("PMEMPOOLSET\n# two\n\n 4M a/p0\r\n2097153\t/pools/p1"), 0);
	assert_int_equal(set.count, 2);
	assert_int_equal(set.headers, POOLSET_EACH);
	assert_string_equal(set.parts[0].path, "a/p0");
	assert_string_equal(set.parts[1].path, "/pools/p1");
	assert_int_equal(set.parts[0].line, 4);
	assert_true(set.parts[0].size == 4U << 20 && set.parts[1].size == 2097153);
	/* A header each, and no piece of a page. */
	assert_true(size_of(0) == (4U << 20) - 4096 + 2097152 - 4096);
}

static void
test_options(void **state)
{
	(void)state;
	assert_int_equal(parse("PMEMPOOLSET\nOPTION SINGLEHDR\n4M a\n4MiB b\n"), 0);
	assert_int_equal(set.headers, POOLSET_SINGLE);
	assert_true(poolset_part_off(set.headers, 0) == 4096);
	assert_true(poolset_part_off(set.headers, 1) == 0);
	assert_true(size_of(0) == (8U << 20) - 4096);
	assert_int_equal(parse("PMEMPOOLSET\nOPTION NOHDRS\n4M a\n4M b\n"), 0);
	assert_int_equal(set.headers, POOLSET_NONE);
	assert_true(size_of(0) == 8U << 20);
}

/* As poolset(5) has it: an option may stand anywhere behind the first line. */
static void
test_option_behind_parts(void **state)
{
	(void)state;
	assert_int_equal(parse("PMEMPOOLSET\n4M a\n4M b\nOPTION SINGLEHDR\n"), 0);
	assert_int_equal(set.headers, POOLSET_SINGLE);
	assert_true(size_of(0) == (8U << 20) - 4096);
}

static void
test_sections(void **state)
{
	(void)state;
	assert_int_equal(parse("PMEMPOOLSET\n4M a\n4M b/\nREPLICA\n8M c\n REPLICA \nAUTO d\n"), 0);
	assert_int_equal(set.replicas, 3);
	assert_int_equal(set.count, 4);
	assert_string_equal(set.parts[1].path, "b");
	assert_true(set.parts[1].replica == 0 && set.parts[1].index == 1);
	assert_true(set.parts[2].replica == 1 && set.parts[2].index == 0);
	assert_true(set.parts[3].replica == 2 && set.parts[3].size == 0);
	assert_true(size_of(1) == (8U << 20) - 4096);
}

static void
test_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"", "no part"},
		{"PMEMPOOLSET", "no part"},
		{"PMEMPOOLSETS\n4M a\n", "line 1: is not PMEMPOOLSET"},
		{"pool\n4M a\n", "line 1: is not PMEMPOOLSET"},
		{"PMEMPOOLSET x\n4M a\n", "line 1: 'x' is one word too many"},
		{"PMEMPOOLSET\n4M\n", "line 2: a size without a path"},
		{"PMEMPOOLSET\n4M a b\n", "line 2: 'b' is one word too many"},
		{"PMEMPOOLSET\n4M a\n1M b\n", "line 3: a part of 1048576 bytes"},
		{"PMEMPOOLSET\n4X a\n", "line 2: '4X' is no size"},
		{"PMEMPOOLSET\n-4M a\n", "line 2: '-4M' is no size"},
		{"PMEMPOOLSET\nAUTO\n", "line 2: a size without a path"},
		{"PMEMPOOLSET\n4M //\n", "line 2: '/' is no part"},
		{"PMEMPOOLSET\n4M a\nREPLICA host b.set\n", "line 3: a replica has no replicas on"},
		{"PMEMPOOLSET\nREPLICA\n4M a\n", "line 2: REPLICA without a part in front"},
		{"PMEMPOOLSET\n4M a\nREPLICA\nREPLICA\n4M b\n", "line 4: REPLICA without a part"},
		{"PMEMPOOLSET\n4M a\nREPLICA\n", "the last REPLICA has no part"},
		{"PMEMPOOLSET\n4M a\nREPLICA\n4M b\nREPLICA\n4M c\nREPLICA\n4M d\nREPLICA\n"
		 "4M e\nREPLICA\n4M f\nREPLICA\n4M g\nREPLICA\n4M h\nREPLICA\n4M i\n",
		 "line 17: more than 7 replicas"},
		{"PMEMPOOLSET\nOPTION NOHDRS\nOPTION NOHDRS\n4M a\n", "line 3: a second OPTION"},
		{"PMEMPOOLSET\nOPTION nohdrs\n4M a\n", "line 2: OPTION 'nohdrs' is neither"},
		{"PMEMPOOLSET\nOPTION\n4M a\n", "line 2: OPTION '' is neither"},
		{"PMEMPOOLSET\n4M a\x01\n", "line 2: a byte 0x01"},
		{"PMEMPOOLSET\n8388607T a\n8388607T b\n", "line 3: the sizes add up"},
		{"PMEMPOOLSET\n99999999999999999999 a\n", "line 2: '99999999999999999999' is no"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(parse(rows[i].text), REPL_E_INVAL);
		if (!strstr(err.text, rows[i].why))
			fail_msg("'%s' in place of '%s'", err.text, rows[i].why);
	}
}

static void
test_bounds(void **state)
{
	char *text = malloc(2 * POOLSET_FILE_MAX);
	size_t at = (size_t)sprintf(text, "PMEMPOOLSET\n");

	(void)state;
	for (unsigned i = 0; i < POOLSET_PARTS_MAX; i++)
		at += (size_t)sprintf(text + at, "2M p%u\n", i);
	assert_int_equal(parse(text), 0);
	assert_int_equal(set.count, POOLSET_PARTS_MAX);
	at += (size_t)sprintf(text + at, "2M more\n");
	assert_int_equal(parse(text), REPL_E_INVAL);
	assert_non_null(strstr(err.text, "more than 64 parts"));
	at = (size_t)sprintf(text, "PMEMPOOLSET\n2M %0*d\n", (int)POOLSET_PATH_MAX, 0);
	assert_int_equal(parse(text), 0);
	at = (size_t)sprintf(text, "PMEMPOOLSET\n2M %0*d\n", (int)POOLSET_PATH_MAX + 1, 0);
	assert_int_equal(parse(text), REPL_E_INVAL);
	memset(text + at, ' ', POOLSET_FILE_MAX);
	assert_int_equal(poolset_parse(text, POOLSET_FILE_MAX + 1, &set, &err), REPL_E_INVAL);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_and_sizes),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_option_behind_parts),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
