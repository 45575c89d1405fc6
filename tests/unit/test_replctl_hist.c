/* SPDX-License-Identifier: BSD-3-Clause */
/* A histogram's count, mean and extremes are exact, its quantiles at most 0.8 % too high. */
#include "unit.h"

#include "hist.h"

#define FAR (1ULL << 50) /* beyond the last bucket */

static struct hist h;

static int
setup(void **state)
{
	(void)state;
	h = (struct hist){0};
	return 0;
}

/* The quantile of a bucket may be its end, never less than the value itself. */
static void
assert_near(uint64_t got, uint64_t exact)
{
	assert_true(got >= exact);
	assert_true((double)got <= (double)exact * (1 + 1.0 / 128));
}

static void
none_is_zero(void **state)
{
	(void)state;
	assert_int_equal(hist_quantile(&h, 500), 0);
	assert_true(hist_mean(&h) == 0);
}

static void
small_values_are_exact(void **state)
{
	(void)state;
	for (uint64_t v = 1; v <= 200; v++)
		hist_add(&h, 201 - v);
	for (unsigned permille = 5; permille <= 1000; permille += 5)
		assert_int_equal(hist_quantile(&h, permille), permille / 5);
	assert_true(hist_mean(&h) == 100.5);
	assert_int_equal(h.least, 1);
	assert_int_equal(h.greatest, 200);
}

static void
every_size_of_value_is_near(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < HIST_MAX_BITS; bits++) {
		uint64_t one = 1ULL << bits;
		uint64_t values[] = {one, one + one / 3, one + one / 2, 2 * one - 1};

		for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			h = (struct hist){0};
			hist_add(&h, values[i]);
			hist_add(&h, values[i]);
			hist_add(&h, FAR);
			assert_near(hist_quantile(&h, 500), values[i]);
			assert_int_equal(hist_quantile(&h, 1000), FAR);
			assert_int_equal(hist_quantile(&h, 0), values[i]);
		}
	}
}

static void
buckets_follow_each_other(void **state)
{
	uint64_t last = 0;

	(void)state;
	/* In each bucket once: the quantile of a rank grows with it, without a gap. */
	for (uint64_t v = 0; v < 1U << 16; v++)
		hist_add(&h, v);
	for (unsigned permille = 1; permille <= 1000; permille++) {
		uint64_t exact = (h.count * permille + 999) / 1000 - 1;
		uint64_t got = hist_quantile(&h, permille);

		assert_near(got, exact);
		assert_true(got >= last);
		last = got;
	}
}

static void
merged_is_as_added(void **state)
{
	static struct hist a, b;

	(void)state;
	for (uint64_t v = 1; v < 100000; v += 7) {
		hist_add(v % 3 ? &a : &b, v * v);
		hist_add(&h, v * v);
	}
	hist_merge(&a, &b);
	assert_memory_equal(&a, &h, sizeof(h));
	b = (struct hist){0};
	hist_merge(&a, &b);
	assert_memory_equal(&a, &h, sizeof(h));
	hist_merge(&b, &a);
	assert_memory_equal(&b, &h, sizeof(h));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(none_is_zero, setup),
		cmocka_unit_test_setup(small_values_are_exact, setup),
		cmocka_unit_test_setup(every_size_of_value_is_near, setup),
		cmocka_unit_test_setup(buckets_follow_each_other, setup),
		cmocka_unit_test_setup(merged_is_as_added, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
