/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "newest.h"

#define COUNT_MAX 4

/* Generations by letters: "cba" is c, which descends from b and that from a; "" is none. */
struct known {
	const char *chain;
	enum sidecar_state state;
	bool waited;
	uint64_t position;
};

#define NEW  SIDECAR_UP_TO_DATE
#define OLD  SIDECAR_OUTDATED
#define LEFT SIDECAR_UNKNOWN
#define HALF SIDECAR_INCONSISTENT

static struct gen_id
id_of(char letter)
{
	struct gen_id id = {{(uint8_t)letter}};

	return id;
}

static struct sidecar
sidecar_of(const struct known *k)
{
	struct sidecar s = {.state = k->state, .waited = k->waited, .position = k->position};

	for (size_t i = 0; i < strlen(k->chain); i++) {
		if (i == 0)
			s.generation.current = id_of(k->chain[i]);
		else
			s.generation.history[i - 1] = id_of(k->chain[i]);
	}
	return s;
}

/* clang-format off */
static const struct row {
	const char *what;
	struct known is[COUNT_MAX];
	unsigned count, best, doubt; /* count: none */
} rows[] = {
	{"none", {{0}}, 0, 0, 0},
	{"one", {{"a", LEFT, false, 0}}, 1, 0, 1},
	{"never written", {{"", NEW, false, 0}}, 1, 1, 1},
	{"half a copy", {{"a", HALF, true, 0}}, 1, 1, 1},
	{"one names the other", {{"a", NEW, true, 0}, {"ba", LEFT, false, 0}}, 2, 1, 2},
	{"even if it is outdated", {{"ba", OLD, false, 0}, {"a", NEW, true, 0}}, 2, 0, 2},
	{"or the other one has been waited for", {{"a", LEFT, true, 0}, {"ba", LEFT, false, 3}}, 2, 1, 2},
	{"outdated", {{"a", OLD, true, 0}, {"ba", LEFT, true, 0}, {"ba", LEFT, false, 3}}, 3, 1, 3},
	{"amid a resync", {{"ba", OLD, true, 0}, {"ba", LEFT, false, 7}}, 2, 2, 2},
	{"... beside one that tells nothing", {{"ba", LEFT, false, 0}, {"ba", OLD, true, 0}}, 2, 2, 2},
	{"... of the first generation", {{"a", OLD, true, 0}, {"a", LEFT, false, 7}}, 2, 2, 2},
	{"... beside one that has all", {{"ba", OLD, true, 0}, {"ba", LEFT, true, 0}}, 2, 1, 2},
	{"... or was closed", {{"ba", OLD, true, 0}, {"ba", NEW, false, 7}}, 2, 1, 2},
	{"... of a quorum", {{"ba", OLD, false, 0}, {"ba", LEFT, false, 6}, {"ba", LEFT, false, 7}}, 3, 2, 3},
	{"a laggard that was told", {{"b", OLD, true, 0}, {"ba", LEFT, false, 7}}, 2, 1, 2},
	{"... and tells how much it has", {{"ba", OLD, true, 9}, {"ba", LEFT, false, 7}}, 2, 1, 2},
	{"outdated, of another line", {{"ba", OLD, false, 9}, {"ca", LEFT, false, 0}}, 2, 1, 2},
	{"two lines", {{"ba", NEW, true, 0}, {"ca", NEW, true, 0}}, 2, 2, 2},
	{"both were waited for", {{"a", LEFT, true, 0}, {"a", LEFT, true, 0}}, 2, 0, 2},
	{"one was waited for", {{"a", LEFT, false, 77}, {"a", LEFT, true, 0}}, 2, 1, 2},
	{"... of outdated ones that says nothing", {{"a", OLD, true, 0}, {"a", OLD, false, 4}}, 2, 2, 2},
	{"position", {{"a", LEFT, false, 6}, {"a", LEFT, false, 7}, {"a", NEW, false, 5}}, 3, 1, 3},
	{"the same one", {{"a", LEFT, false, 7}, {"a", LEFT, false, 7}}, 2, 0, 2},
	{"none is told", {{"a", LEFT, false, 7}, {"a", LEFT, false, 0}}, 2, 2, 2},
	{"none is told of an older one", {{"ba", LEFT, false, 7}, {"a", LEFT, false, 0}}, 2, 0, 2},
	{"what is not usable counts not", {{"a", HALF, false, 9}, {"a", LEFT, false, 7}, {"", NEW, false, 0}}, 3, 1, 3},
	{"it was the best, amid a copy", {{"cba", HALF, false, 0}, {"ba", LEFT, true, 0}}, 2, 1, 2},
	{"... and beside an outdated one", {{"cba", HALF, false, 0}, {"ba", LEFT, true, 0}, {"da", OLD, false, 0}}, 3, 3, 0},
	{"... of the same generation", {{"ba", HALF, false, 0}, {"da", OLD, false, 0}, {"ba", LEFT, true, 0}}, 3, 3, 0},
	{"... that is named", {{"cba", HALF, false, 0}, {"ba", LEFT, true, 0}, {"a", OLD, false, 0}}, 3, 1, 3},
	{"... of a line of its own", {{"e", HALF, false, 0}, {"ba", LEFT, true, 0}, {"da", OLD, false, 0}}, 3, 1, 3},
};
/* clang-format on */

static void
each_row_is_chosen_from(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		const struct row *r = &rows[n];
		const struct sidecar *list[COUNT_MAX];
		struct sidecar s[COUNT_MAX];
		unsigned best, doubt;

		for (unsigned i = 0; i < r->count; i++) {
			s[i] = sidecar_of(&r->is[i]);
			list[i] = &s[i];
		}
		best = newest_of(list, r->count, &doubt);
		if (best != r->best || doubt != r->doubt)
			fail_msg("%s: %u and %u, not %u and %u", r->what, best, doubt, r->best,
				 r->doubt);
	}
}

static void
a_part_is_no_better_by_its_promotion(void **state)
{
	static const struct {
		struct known other;
		enum newest_by by;
	} cases[] = {
		{{"a", LEFT, false, 7}, NEWEST_UNTOLD},
		{{"a", LEFT, true, 0}, NEWEST_UNTOLD},
		{{"a", LEFT, false, 0}, NEWEST_UNTOLD},
		{{"a", LEFT, false, 6}, NEWEST_GENERATION},
		{{"a", OLD, false, 0}, NEWEST_GENERATION},
		{{"a", OLD, true, 0}, NEWEST_GENERATION},
		{{"az", OLD, true, 0}, NEWEST_UNTOLD},
		{{"az", OLD, false, 0}, NEWEST_GENERATION},
		{{"c", LEFT, false, 7}, NEWEST_UNTOLD},
		{{"z", LEFT, false, 7}, NEWEST_GENERATION},
	};
	const struct known part = {"baz", NEW, false, 6};
	struct sidecar promoted = sidecar_of(&part);

	(void)state;
	promoted.primary = true;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct sidecar other = sidecar_of(&cases[n].other);

		assert_int_equal(newest_over(&promoted, &other), cases[n].by);
		assert_int_equal(newest_over(&other, &promoted), NEWEST_UNTOLD);
	}
}

/* Of two neither is ahead of the other by two different rules. */
static void
no_two_are_ahead_of_each_other(void **state)
{
	static const char *const chains[] = {"a", "ba", "ca", "cba"};
	static const enum sidecar_state states[] = {NEW, OLD, LEFT};
	struct sidecar s[4 * 3 * 2 * 3];
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < 4 * 3 * 2 * 3; i++) {
		const struct known k = {chains[i % 4], states[i / 4 % 3], i / 12 % 2, i / 24 % 3};

		s[count++] = sidecar_of(&k);
	}
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++) {
			enum newest_by a = newest_over(&s[i], &s[k]), b = newest_over(&s[k], &s[i]);

			assert_true(a == NEWEST_UNTOLD || b == NEWEST_UNTOLD || a == b);
			assert_true(a != NEWEST_GENERATION || b == NEWEST_UNTOLD);
			assert_true(a != NEWEST_STATE || b == NEWEST_UNTOLD);
		}
}

/* How far a queued one has come is not known before its session has ended. */
static void
an_open_one_may_lack(void **state)
{
	const struct known open = {"ba", NEW, false, 0}, back = {"ba", OLD, true, 0};
	struct sidecar a = sidecar_of(&open), b = sidecar_of(&back);

	(void)state;
	a.writer_open = true;
	assert_int_equal(newest_over(&a, &b), NEWEST_UNTOLD);
	assert_int_equal(newest_over(&b, &a), NEWEST_UNTOLD);
	/* What a program has in place is the pool, be it killed. */
	a.primary = true;
	assert_int_equal(newest_over(&a, &b), NEWEST_STATE);
}

/* A program was lost amid a growth: the smaller one can follow the larger one, and no other way
 * round. */
static void
of_those_that_have_all_the_largest_is_taken(void **state)
{
	static const struct known all = {"a", LEFT, true, 0}, part = {"a", LEFT, false, 3};
	struct sidecar s[3];
	const struct sidecar *list[] = {&s[0], &s[1], &s[2]};
	unsigned doubt;

	(void)state;
	s[0] = s[1] = s[2] = sidecar_of(&all);
	s[0].pool_size = s[2].pool_size = 4096;
	s[1].pool_size = 8192;
	assert_int_equal(newest_of(list, 3, &doubt), 1);
	s[2].pool_size = 8192;
	assert_int_equal(newest_of(list, 3, &doubt), 1);
	/* It has less: its size is nothing to that. */
	s[1] = sidecar_of(&part);
	s[1].pool_size = 16384;
	assert_int_equal(newest_of(list, 2, &doubt), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_is_chosen_from),
		cmocka_unit_test(a_part_is_no_better_by_its_promotion),
		cmocka_unit_test(an_open_one_may_lack),
		cmocka_unit_test(of_those_that_have_all_the_largest_is_taken),
		cmocka_unit_test(no_two_are_ahead_of_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
