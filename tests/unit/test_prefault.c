/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages are touched beside the session, once, and the session's end does not wait for the rest. */
#include "unit.h"

#include <sched.h>

#include "../../repld/prefault.c"

#define SIZE ((size_t)1 << 40)
#define STEP ((size_t)1 << 20)

static _Atomic size_t touched;
static size_t size;

size_t
pmem_map_size(const struct pmem_map *m)
{
	(void)m;
	return size;
}

/* As slow as memory of a busy machine: all of it would take days. */
size_t
pmem_map_prefault(struct pmem_map *m, size_t off)
{
	(void)m;
	assert_int_equal(off, touched);
	(void)sched_yield();
	touched = off + STEP;
	return off + STEP;
}

static void
test_nobody_waits(void **state)
{
	struct prefault p = {0};

	(void)state;
	size = SIZE;
	touched = 0;
	prefault_begin(&p, NULL);
	prefault_begin(&p, NULL);
	while (touched < 8 * STEP)
		(void)sched_yield();
	prefault_end(&p);
	assert_in_range(touched, 8 * STEP, SIZE - 1);
	prefault_end(&p);
}

static void
test_it_comes_to_its_end(void **state)
{
	struct prefault p = {0};

	(void)state;
	size = 5 * STEP;
	touched = 0;
	prefault_begin(&p, NULL);
	while (touched < size)
		(void)sched_yield();
	prefault_begin(&p, NULL);
	prefault_end(&p);
	assert_int_equal(touched, size);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_waits),
		cmocka_unit_test(test_it_comes_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
