/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers flush amid other work is flushed at the end of that, however much it is and of
 * however many pools; and nothing that a handler has not named is taken for readable.
 */
#include "unit.h"

#include <stdlib.h>

#include "../../librepl/preload/calm.c"

#define PAGES 4096U

struct pool pools[POOLS_MAX];
unsigned pool_count;

static struct {
	bool added, changed; /* so */
	bool flushed, looked_at;
} pages[POOLS_MAX][PAGES];
static unsigned between; /* flushed, and never added */
static unsigned drains;

bool
report(const char *format, ...)
{
	(void)format;
	abort();
}

bool
is_sharing(void)
{
	return false;
}

void
piece_flush(struct pool *p, uint64_t off, size_t len, enum look look)
{
	for (uint64_t page = off; page < off + len; page++) {
		if (!pages[p - pools][page].added)
			assert_int_not_equal(look, LOOK_NOT);
		between += !pages[p - pools][page].added;
		pages[p - pools][page].flushed = true;
		pages[p - pools][page].looked_at |= look == LOOK_CHANGED;
	}
}

void
thread_drain(void)
{
	drains++;
}

static void
add(unsigned pool, unsigned page, enum look look)
{
	late_add(&pools[pool], page, 1, look);
	pages[pool][page].added = true;
	pages[pool][page].changed |= look == LOOK_CHANGED;
}

static int
begin(void **state)
{
	(void)state;
	memset(pages, 0, sizeof(pages));
	for (unsigned i = 0; i < POOLS_MAX; i++)
		pools[i].state = POOL_OPEN;
	between = drains = 0;
	return 0;
}

static void
all_is_flushed(void)
{
	assert_int_equal(drains, 1);
	for (unsigned i = 0; i < POOLS_MAX; i++) {
		for (unsigned page = 0; page < PAGES; page++) {
			assert_true(pages[i][page].flushed || !pages[i][page].added);
			assert_true(pages[i][page].looked_at || !pages[i][page].changed);
		}
	}
}

static void
some_are_flushed_as_they_are(void **state)
{
	struct calm calm = calm_begin();

	(void)state;
	for (unsigned page = 0; page < 20; page += 2)
		add(3, page, LOOK_NOT);
	calm_end(calm);
	all_is_flushed();
	assert_int_equal(between, 0);
}

static void
many_of_one_pool(void **state)
{
	struct calm calm = calm_begin();

	(void)state;
	for (unsigned page = 0; page < PAGES; page += 7)
		add(0, page * 5 % PAGES, page % 3 ? LOOK_NOT : LOOK_CHANGED);
	calm_end(calm);
	all_is_flushed();
}

/* What is near becomes one: the two in the middle, and nothing of what is far from them. */
static void
one_too_many(void **state)
{
	struct calm calm = calm_begin();

	(void)state;
	for (unsigned i = 0; i < LATE_MAX; i++)
		add(0, 100 * i, LOOK_NOT);
	add(0, 502, LOOK_NOT);
	add(0, 3504, LOOK_NOT);
	calm_end(calm);
	all_is_flushed();
	/* When the last but one came there was no room: two that were as far as any became one. */
	assert_int_equal(between, 99 + 1);
}

static void
many_of_all_pools(void **state)
{
	struct calm calm = calm_begin();

	(void)state;
	for (unsigned page = 0; page < 300; page += 3)
		for (unsigned i = 0; i < POOLS_MAX; i++)
			add(i, page, (enum look)((i + page) % 3));
	calm_end(calm);
	all_is_flushed();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(some_are_flushed_as_they_are, begin),
		cmocka_unit_test_setup(many_of_one_pool, begin),
		cmocka_unit_test_setup(one_too_many, begin),
		cmocka_unit_test_setup(many_of_all_pools, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
