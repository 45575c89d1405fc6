/* SPDX-License-Identifier: BSD-3-Clause */
/* Local data may be copied only over a replica that is new, equal or behind. */
#include "unit.h"

#include "relation.h"

static struct gen_id
id(uint8_t n)
{
	struct gen_id g = {{0}};

	g.b[0] = n;
	return g;
}

/* A chain with these identifiers, the newest first; 0 ends it. */
static struct sidecar
meta(uint8_t uuid, uint8_t current, uint8_t before, uint8_t first)
{
	struct sidecar s = {.pool_uuid = id(uuid)};

	s.generation.current = id(current);
	s.generation.history[0] = id(before);
	s.generation.history[1] = id(first);
	return s;
}

static enum relation_verdict
judge(const struct sidecar *local, struct sidecar replica, const char *part)
{
	const char *why = NULL;
	enum relation_verdict verdict = relation_judge(local, &replica, &why);

	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("'%s' does not say '%s'", why, part);
	return verdict;
}

static void
copies_over_what_has_nothing_of_its_own(void **state)
{
	struct sidecar local = meta(9, 3, 2, 1);

	(void)state;
	assert_int_equal(judge(NULL, meta(9, 0, 0, 0), "never"), RELATION_COPY);
	assert_int_equal(judge(&local, meta(9, 0, 0, 0), "never"), RELATION_COPY);
	assert_int_equal(judge(&local, meta(9, 3, 2, 1), "same"), RELATION_COPY);
	assert_int_equal(judge(&local, meta(9, 1, 0, 0), "behind"), RELATION_COPY);
}

static void
compares_what_has(void **state)
{
	struct sidecar local = meta(9, 3, 2, 1);

	(void)state;
	assert_int_equal(judge(NULL, meta(9, 3, 2, 1), "nothing is known"), RELATION_COMPARE);
	assert_int_equal(judge(&local, meta(9, 4, 3, 2), "newer"), RELATION_COMPARE);
	assert_int_equal(judge(&local, meta(9, 5, 2, 1), "diverged"), RELATION_COMPARE);
	assert_int_equal(judge(&local, meta(9, 7, 6, 0), "in common"), RELATION_COMPARE);
	assert_int_equal(judge(&local, meta(8, 7, 6, 0), "another pool"), RELATION_COMPARE);
}

/* A pool made by hand before its first sync keeps the uuid that it was given. */
static void
a_chain_counts_more_than_a_uuid(void **state)
{
	struct sidecar local = meta(9, 3, 2, 1);

	(void)state;
	assert_int_equal(judge(&local, meta(8, 2, 1, 0), "behind"), RELATION_COPY);
	assert_int_equal(judge(&local, meta(8, 3, 2, 1), "same"), RELATION_COPY);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_over_what_has_nothing_of_its_own),
		cmocka_unit_test(compares_what_has),
		cmocka_unit_test(a_chain_counts_more_than_a_uuid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
