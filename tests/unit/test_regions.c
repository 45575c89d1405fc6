/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions cover a pool without gap or overlap, and growth leaves those that are there as they are.
 */
#include "unit.h"

#include "regions.h"

#define UNIT (1ULL << 20)

/* One behind the other from 0 to size, none across a multiple of the unit. */
static void
check_cover(const struct regions *g, uint64_t size)
{
	unsigned count = atomic_load(&g->count);
	uint64_t at = 0;

	for (unsigned i = 0; i < count; i++) {
		struct range r = regions_get(g, i);

		assert_true(r.off == at && r.len > 0);
		assert_true(r.off / g->unit == (r.off + r.len - 1) / g->unit);
		assert_int_equal(regions_find(g, r.off), i);
		assert_int_equal(regions_find(g, r.off + r.len - 1), i);
		assert_true(regions_reach(g, r.off + 1, UINT64_MAX) == r.len - 1);
		at += r.len;
	}
	assert_true(at == size);
	assert_int_equal(regions_find(g, size), count);
	assert_int_equal(regions_find(g, UINT64_MAX), count);
	assert_true(regions_reach(g, size, 8) == 0);
	assert_true(regions_get(g, count).len == 0);
}

static void
growth_adds_regions_behind(void **state)
{
	static const uint64_t sizes[] = {4096,
					 8192,
					 UNIT - 4096,
					 UNIT,
					 2 * UNIT + 4096,
					 5 * UNIT,
					 5 * UNIT + 4096,
					 6 * UNIT + 4096,
					 40 * UNIT};
	struct regions g;

	(void)state;
	for (unsigned first = 0; first < sizeof(sizes) / sizeof(sizes[0]); first++) {
		assert_int_equal(regions_init(&g, UNIT, sizes[first], NULL), 0);
		check_cover(&g, sizes[first]);
		for (unsigned i = first + 1; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			unsigned last = atomic_load(&g.count) - 1;
			struct range before = regions_get(&g, last);
			struct range after;

			assert_int_equal(regions_grow(&g, sizes[i], NULL), 0);
			check_cover(&g, sizes[i]);
			after = regions_get(&g, last);
			assert_true(after.off == before.off && after.len == before.len);
		}
		regions_fini(&g);
	}
}

static void
too_many_regions_are_refused_and_change_nothing(void **state)
{
	struct regions g;
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(regions_init(&g, UNIT, REGIONS_MAX * UNIT, &e), 0);
	assert_int_equal(regions_grow_check(&g, REGIONS_MAX * UNIT, &e), 0);
	assert_int_equal(regions_grow_check(&g, REGIONS_MAX * UNIT + 4096, &e), REPL_E_LIMIT);
	assert_int_equal(regions_grow(&g, REGIONS_MAX * UNIT + 4096, &e), REPL_E_LIMIT);
	check_cover(&g, REGIONS_MAX * UNIT);
	regions_fini(&g);
	/* A part of a unit behind another takes a region of its own. */
	assert_int_equal(regions_init(&g, UNIT, UNIT / 2, &e), 0);
	assert_int_equal(regions_grow_check(&g, (REGIONS_MAX - 1) * UNIT, &e), 0);
	assert_int_equal(regions_grow(&g, (REGIONS_MAX - 1) * UNIT, &e), 0);
	check_cover(&g, (REGIONS_MAX - 1) * UNIT);
	assert_int_equal(regions_grow_check(&g, (REGIONS_MAX - 1) * UNIT + 1, &e), REPL_E_LIMIT);
	regions_fini(&g);
	assert_int_equal(regions_init(&g, UNIT, REGIONS_MAX * UNIT + 1, &e), REPL_E_LIMIT);
	regions_fini(&g);
}

static void
unit_suits_every_pool(void **state)
{
	struct regions g;

	(void)state;
	for (uint64_t size = 4096; size <= INT64_MAX - 4095; size = size * 2 + 4096) {
		uint64_t unit = regions_unit(size);

		assert_true(regions_unit_valid(unit));
		assert_int_equal(regions_init(&g, unit, size, NULL), 0);
		regions_fini(&g);
	}
	assert_true(regions_unit(1ULL << 40) == REGIONS_UNIT);
	assert_false(regions_unit_valid(0));
	assert_false(regions_unit_valid(4096));
	assert_false(regions_unit_valid(3ULL << 30));
	assert_false(regions_unit_valid(1ULL << 63));
}

static void
marks_are_each_their_own(void **state)
{
	struct regions g;

	(void)state;
	assert_int_equal(regions_init(&g, UNIT, 200 * UNIT, NULL), 0);
	regions_set_ready(&g, 65);
	regions_set_ready(&g, REGIONS_MAX);
	assert_true(regions_is_ready(&g, 65));
	assert_false(regions_is_ready(&g, 1));
	assert_false(regions_is_ready(&g, 64));
	assert_false(regions_is_ready(&g, REGIONS_MAX));
	regions_fini(&g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_adds_regions_behind),
		cmocka_unit_test(too_many_regions_are_refused_and_change_nothing),
		cmocka_unit_test(unit_suits_every_pool),
		cmocka_unit_test(marks_are_each_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
