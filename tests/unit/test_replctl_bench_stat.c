/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantiles and medians are those of the textbook, also of few values and of none. */
#include "unit.h"

#include "bench_raw.h"
#include "bench_stat.h"
#include "clock.h"

static void
quantile_is_the_nearest_rank(void **state)
{
	uint32_t v[1000];

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		v[i] = 1000 - i;
	bench_sort(v, 1000);
	assert_int_equal(bench_quantile(v, 1000, 500), 500);
	assert_int_equal(bench_quantile(v, 1000, 990), 990);
	assert_int_equal(bench_quantile(v, 1000, 999), 999);
	assert_int_equal(bench_quantile(v, 1000, 1000), 1000);
	assert_int_equal(bench_quantile(v, 1000, 0), 1);
}

static void
few_values_have_quantiles(void **state)
{
	uint32_t three[] = {30, 10, 20}, one[] = {7};

	(void)state;
	bench_sort(three, 3);
	assert_int_equal(bench_quantile(three, 3, 500), 20);
	assert_int_equal(bench_quantile(three, 3, 999), 30);
	assert_int_equal(bench_quantile(one, 1, 500), 7);
	assert_int_equal(bench_quantile(one, 0, 500), 0);
	bench_sort(one, 0);
}

static void
median_leaves_the_rounds_in_order(void **state)
{
	double odd[] = {9, 1, 5}, even[] = {4, 1, 3, 2};

	(void)state;
	assert_true(bench_median(odd, 3) == 5);
	assert_true(odd[0] == 9 && odd[1] == 1 && odd[2] == 5);
	assert_true(bench_median(even, 4) == 2.5);
	assert_true(bench_median(odd, 1) == 9);
	assert_true(bench_median(odd, 0) == 0);
}

/* Over a way of 600 ms as well what goes at once by a connection is through before that ends. */
static void
far_away_fewer_are_measured(void **state)
{
	static const uint64_t trips_ms[] = {100, 600, 1500, 5000};

	(void)state;
	/* Near nobody waits for long. */
	assert_int_equal(bench_warm_count(200, 0), 200);
	assert_int_equal(bench_warm_count(200, NS_PER_MS), 200);
	assert_int_equal(bench_slice_count(NS_PER_S, NS_PER_MS), 1000);
	assert_int_equal(bench_slice_count(NS_PER_S, NS_PER_S / 20), 20);
	assert_int_equal(bench_slice_count(NS_PER_MS, NS_PER_MS), 8);
	assert_int_equal(bench_slice_count(NS_PER_S, 1), BENCH_SAMPLES_MAX);
	for (unsigned i = 0; i < sizeof(trips_ms) / sizeof(trips_ms[0]); i++) {
		uint64_t trip_ns = trips_ms[i] * NS_PER_MS;
		uint64_t warm_ns = bench_warm_count(200, trip_ns) * trip_ns;
		uint64_t slice_ns = bench_slice_count(NS_PER_S / 8, trip_ns) * trip_ns;

		assert_in_range(bench_warm_count(200, trip_ns), 2, 20);
		assert_true(bench_slice_count(NS_PER_S / 8, trip_ns) >= 3);
		assert_true(warm_ns + slice_ns < BENCH_RAW_SECONDS_MAX * NS_PER_S / 2);
		assert_true(bench_seconds_for(warm_ns) * NS_PER_S > 2 * warm_ns);
		assert_true(bench_seconds_for(slice_ns) * NS_PER_S > 2 * slice_ns);
	}
	assert_true(bench_seconds_for(UINT64_MAX) > BENCH_RAW_SECONDS_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantile_is_the_nearest_rank),
		cmocka_unit_test(few_values_have_quantiles),
		cmocka_unit_test(median_leaves_the_rounds_in_order),
		cmocka_unit_test(far_away_fewer_are_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
