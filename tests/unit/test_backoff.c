/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits lie between the least one and a ceiling that doubles up to the greatest. */
#include "unit.h"

#include "backoff.h"

#define MS 1000000ULL

static void
the_ceiling_doubles_up_to_the_greatest(void **state)
{
	static const uint64_t want[] = {400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
	struct backoff b;

	(void)state;
	backoff_init(&b, 200 * MS, 30000 * MS);
	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct backoff at = b;
		uint64_t span = want[i] * MS - 200 * MS;

		assert_true(backoff_next(&b, 0) == 200 * MS);
		b = at;
		assert_true(backoff_next(&b, span) == want[i] * MS);
		b = at;
		assert_true(backoff_next(&b, span + 1) == 200 * MS);
	}
	for (unsigned i = 0; i < 200; i++)
		assert_in_range(backoff_next(&b, i * 0x9e3779b97f4a7c15ULL), 200 * MS, 30000 * MS);
	backoff_reset(&b);
	assert_in_range(backoff_next(&b, UINT64_MAX), 200 * MS, 400 * MS);
}

static void
without_hope_waits_are_long_at_once(void **state)
{
	struct backoff b;

	(void)state;
	backoff_init(&b, 200 * MS, 30000 * MS);
	backoff_exhaust(&b);
	assert_true(backoff_next(&b, 29800 * MS) == 30000 * MS);
}

static void
odd_bounds_do_no_harm(void **state)
{
	struct backoff b;

	(void)state;
	backoff_init(&b, 5, 1);
	assert_true(backoff_next(&b, 7) == 5);
	backoff_init(&b, 0, 0);
	assert_true(backoff_next(&b, 7) == 1);
	backoff_init(&b, 1, UINT64_MAX);
	for (unsigned i = 0; i < 100; i++)
		assert_in_range(backoff_next(&b, UINT64_MAX - i), 1, UINT64_MAX);
	backoff_init(&b, UINT64_MAX, UINT64_MAX);
	assert_true(backoff_next(&b, 3) == UINT64_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_ceiling_doubles_up_to_the_greatest),
		cmocka_unit_test(without_hope_waits_are_long_at_once),
		cmocka_unit_test(odd_bounds_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
