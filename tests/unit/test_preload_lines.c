/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines are bounded however long a program lives, and it is never silenced for good. */
#include "unit.h"

#include "../../librepl/preload/lines.c"

#define YEAR_NS (365ULL * 24 * 60 * LINES_NS)

static unsigned
taken(struct lines *l, unsigned tries, uint64_t now_ns)
{
	unsigned n = 0;

	while (tries-- > 0)
		n += lines_take(l, now_ns);
	return n;
}

static void
some_at_once(void **state)
{
	struct lines l = {0};

	(void)state;
	assert_int_equal(taken(&l, 1000, 5), LINES_AT_ONCE);
	assert_int_equal(taken(&l, 1000, 5 + LINES_NS - 1), 0);
	assert_int_equal(taken(&l, 1000, 5 + LINES_NS), 1);
	assert_int_equal(taken(&l, 1000, 5 + 4 * LINES_NS), 3);
	assert_int_equal(taken(&l, 1000, 5 + YEAR_NS), LINES_AT_ONCE);
}

static void
no_more_than_that_in_years(void **state)
{
	struct lines l = {0};
	unsigned n = 0;

	(void)state;
	for (uint64_t now_ns = 10 * YEAR_NS; now_ns < 11 * YEAR_NS; now_ns += LINES_NS / 7)
		n += lines_take(&l, now_ns);
	assert_in_range(n, YEAR_NS / LINES_NS, YEAR_NS / LINES_NS + LINES_AT_ONCE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(some_at_once),
		cmocka_unit_test(no_more_than_that_in_years),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
