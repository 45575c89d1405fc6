/* SPDX-License-Identifier: BSD-3-Clause */
/* Of the table of mappings: what is gone is not found. */
#include "unit.h"

#include "../../librepl/preload/maps.c"

#define PAGE 4096U

/* Memory of the program's own may lie where a pool was. */
static void
what_was_unmapped_is_in_no_range(void **state)
{
	struct maps_piece piece;
	uint32_t left, cut_off;

	(void)state;
	assert_int_equal(maps_add((void *)(16 * PAGE), 4 * PAGE, 0, 1), 0);
	assert_true(maps_find(8 * PAGE, 64 * PAGE, &piece));
	assert_int_equal(piece.len, 4 * PAGE);
	assert_int_equal(maps_remove((void *)(16 * PAGE), 4 * PAGE, &left, &cut_off), 1U << 1);
	assert_false(maps_find(8 * PAGE, 64 * PAGE, &piece));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_unmapped_is_in_no_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
