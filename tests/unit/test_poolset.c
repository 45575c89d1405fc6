/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool set file is taken as poolset(5) has it, or refused with the line and what is wrong there.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "poolset.h"

static struct poolset set;
static struct err err;

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
	assert_true(poolset_size(&set) == (4U << 20) - 4096 + 2097152 - 4096);
}

static void
test_options(void **state)
{
	(void)state;
	assert_int_equal(parse("PMEMPOOLSET\nOPTION SINGLEHDR\n4M a\n4MiB b\n"), 0);
	assert_int_equal(set.headers, POOLSET_SINGLE);
	assert_true(poolset_part_off(&set, 0) == 4096 && poolset_part_off(&set, 1) == 0);
	assert_true(poolset_size(&set) == (8U << 20) - 4096);
	assert_int_equal(parse("PMEMPOOLSET\nOPTION NOHDRS\n4M a\n4M b\n"), 0);
	assert_int_equal(set.headers, POOLSET_NONE);
	assert_true(poolset_size(&set) == 8U << 20);
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
		{"PMEMPOOLSET\nAUTO /dev/dax0.0\n", "line 2: AUTO is for devices"},
		{"PMEMPOOLSET\n4M dir/\n", "line 2: 'dir/' is a directory"},
		{"PMEMPOOLSET\n4M a\nREPLICA\n4M b\n", "line 3: a REPLICA of a replica"},
		{"PMEMPOOLSET\n4M a\nOPTION NOHDRS\n", "line 3: OPTION stands before"},
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
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
