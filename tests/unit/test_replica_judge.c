/* SPDX-License-Identifier: BSD-3-Clause */
/* A replica is overwritten only if it is proven older; a map is believed only about what it is of.
 */
#include "unit.h"

#include "lineage.h"
#include "replica_judge.h"

static struct gen_id
id(uint8_t n)
{
	struct gen_id g = {{0}};

	g.b[0] = n;
	return g;
}

static struct sidecar
meta(uint8_t uuid, uint8_t current, uint8_t before, uint8_t first)
{
	struct sidecar s = {.pool_uuid = id(uuid), .state = SIDECAR_UP_TO_DATE};

	s.generation.current = id(current);
	s.generation.history[0] = id(before);
	s.generation.history[1] = id(first);
	return s;
}

/* base 0: no map. */
static struct judgement
judge(const struct sidecar *local, struct sidecar replica, uint8_t base, bool trusted,
      uint64_t dirty)
{
	struct gen_id of = id(base);
	struct judge_input in = {.local = local,
				 .replica = &replica,
				 .base = base ? &of : NULL,
				 .trusted = trusted,
				 .dirty_bytes = dirty};
	struct judgement out;

	replica_judge(&in, &out);
	assert_non_null(out.why);
	assert_non_null(out.next);
	assert_int_equal(out.verdict == JUDGE_REFUSE, out.next[0] != '\0');
	return out;
}

#define assert_judged(j, v, r)                                                                     \
	do {                                                                                       \
		struct judgement got = (j);                                                        \
                                                                                                   \
		assert_int_equal(got.verdict, v);                                                  \
		assert_int_equal(got.reason, r);                                                   \
	} while (0)

static void
a_map_is_believed_about_its_own_base_only(void **state)
{
	struct sidecar local = meta(9, 3, 2, 1);

	(void)state;
	assert_judged(judge(&local, meta(9, 2, 1, 0), 2, true, 4096), JUDGE_DELTA, JUDGE_BEHIND);
	assert_judged(judge(&local, meta(9, 2, 1, 0), 1, true, 4096), JUDGE_HASHES, JUDGE_BEHIND);
	assert_judged(judge(&local, meta(9, 2, 1, 0), 2, false, 4096), JUDGE_HASHES, JUDGE_BEHIND);
	assert_judged(judge(&local, meta(9, 2, 1, 0), 0, true, 0), JUDGE_HASHES, JUDGE_BEHIND);
	assert_judged(judge(&local, meta(9, 3, 2, 1), 3, true, 4096), JUDGE_DELTA, JUDGE_SAME);
	assert_judged(judge(&local, meta(9, 3, 2, 1), 0, true, 0), JUDGE_HASHES, JUDGE_SAME);
	assert_judged(judge(&local, meta(9, 3, 2, 1), 3, true, 0), JUDGE_UP_TO_DATE, JUDGE_SAME);
}

static void
what_is_behind_is_never_called_up_to_date(void **state)
{
	struct sidecar local = meta(9, 3, 2, 1), replica = meta(9, 3, 2, 1);

	(void)state;
	assert_judged(judge(&local, meta(9, 2, 1, 0), 2, true, 0), JUDGE_DELTA, JUDGE_BEHIND);
	replica.state = SIDECAR_OUTDATED;
	assert_judged(judge(&local, replica, 3, true, 0), JUDGE_DELTA, JUDGE_SAME);
	replica.state = SIDECAR_UNKNOWN;
	assert_judged(judge(&local, replica, 3, true, 0), JUDGE_DELTA, JUDGE_SAME);
}

static void
an_inconsistent_one_is_compared_as_a_whole(void **state)
{
	struct sidecar local = meta(9, 3, 2, 1), replica = meta(9, 2, 1, 0);

	(void)state;
	replica.state = SIDECAR_INCONSISTENT;
	assert_judged(judge(&local, replica, 2, true, 4096), JUDGE_HASHES, JUDGE_INCONSISTENT);
}

static void
refuses_what_has_something_of_its_own(void **state)
{
	struct sidecar local = meta(9, 3, 2, 1), promoted = meta(9, 2, 1, 0);

	(void)state;
	assert_judged(judge(&local, meta(9, 4, 3, 2), 3, true, 0), JUDGE_REFUSE, JUDGE_NEWER);
	assert_judged(judge(&local, meta(9, 5, 2, 1), 2, true, 0), JUDGE_REFUSE, JUDGE_DIVERGED);
	assert_judged(judge(&local, meta(9, 7, 6, 0), 2, true, 0), JUDGE_REFUSE, JUDGE_NO_COMMON);
	assert_judged(judge(&local, meta(8, 7, 6, 0), 2, true, 0), JUDGE_REFUSE, JUDGE_OTHER_POOL);
	assert_judged(judge(NULL, meta(9, 3, 2, 1), 0, true, 0), JUDGE_REFUSE, JUDGE_LOCAL_UNKNOWN);
	promoted.primary = true;
	assert_judged(judge(&local, promoted, 2, true, 0), JUDGE_REFUSE, JUDGE_PROMOTED);
	promoted.generation.current = id(0);
	assert_judged(judge(&local, promoted, 2, true, 0), JUDGE_REFUSE, JUDGE_PROMOTED);
}

/* A file that was restored from a laggard, and the replica that had got further. */
static void
one_with_a_higher_position_is_newer(void **state)
{
	struct sidecar local = meta(9, 3, 2, 1), replica = meta(9, 3, 2, 1);

	(void)state;
	local.position = 8;
	for (replica.position = 4; replica.position <= 8; replica.position += 4)
		assert_judged(judge(&local, replica, 0, true, 0), JUDGE_HASHES, JUDGE_SAME);
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_REFUSE, JUDGE_NEWER);
	assert_judged(judge(&local, replica, 3, true, 0), JUDGE_REFUSE, JUDGE_NEWER);
	assert_int_equal(judge_relation(&local, &replica), GEN_BEHIND);
	/* One that counted none, as a synchronous one beside an asynchronous one, had all. */
	replica.position = 0;
	replica.state = SIDECAR_UNKNOWN;
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_REFUSE, JUDGE_NEWER);
	/* Nor is one less that was closed in order, or made whole by hand; one that is outdated may
	 * be, but for one that was lost amid a resync. */
	replica.state = SIDECAR_UP_TO_DATE;
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_REFUSE, JUDGE_NEWER);
	replica.state = SIDECAR_OUTDATED;
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_REFUSE, JUDGE_NEWER);
	assert_judged(judge(&local, replica, 3, true, 4096), JUDGE_REFUSE, JUDGE_NEWER);
	replica.generation.history[0] = id(1);
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_HASHES, JUDGE_SAME);
	replica.position = 8;
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_HASHES, JUDGE_SAME);
	replica.state = SIDECAR_INCONSISTENT;
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_HASHES, JUDGE_INCONSISTENT);
	replica = meta(9, 2, 1, 0);
	replica.position = 12;
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_HASHES, JUDGE_BEHIND);
	/* One that was promoted: of the generation in which it was. */
	local = meta(9, 4, 3, 2);
	local.primary = true;
	local.position = 8;
	replica = meta(9, 3, 2, 1);
	replica.position = 8;
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_HASHES, JUDGE_BEHIND);
	/* It may have gone on itself. */
	replica.position = 9;
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_REFUSE, JUDGE_DIVERGED);
	replica.position = 0;
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_REFUSE, JUDGE_DIVERGED);
	assert_int_equal(judge_relation(&local, &replica), GEN_DIVERGED);
	replica.state = SIDECAR_OUTDATED;
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_REFUSE, JUDGE_DIVERGED);
	replica.generation.history[0] = id(1);
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_HASHES, JUDGE_BEHIND);
	replica.state = SIDECAR_UP_TO_DATE;
	replica.generation.current = id(2);
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_HASHES, JUDGE_BEHIND);
	local = meta(9, 3, 2, 1);
	/* A program that was killed has all, whatever a replica has. */
	local.position = 0;
	replica = meta(9, 3, 2, 1);
	replica.position = 12;
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_HASHES, JUDGE_SAME);
}

/* The file has what a laggard has not that was promoted without it, and names its generation. */
static void
a_laggard_that_was_promoted_is_not_newer(void **state)
{
	struct sidecar local = meta(9, 3, 2, 1), replica = meta(9, 4, 3, 2);

	(void)state;
	replica.primary = true;
	assert_int_equal(judge_relation(&local, &replica), GEN_BEHIND);
	replica.position = 8;
	assert_int_equal(judge_relation(&local, &replica), GEN_DIVERGED);
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_REFUSE, JUDGE_PROMOTED);
	local.position = 9;
	assert_int_equal(judge_relation(&local, &replica), GEN_DIVERGED);
	local.position = 8;
	assert_int_equal(judge_relation(&local, &replica), GEN_BEHIND);
	/* Of one generation before it all is there. */
	local = meta(9, 2, 1, 0);
	assert_int_equal(judge_relation(&local, &replica), GEN_BEHIND);
}

/* What goes on from a part of a generation is nobody's who has more of that, also one who was away.
 */
static void
a_part_is_no_ancestor(void **state)
{
	struct sidecar local = meta(9, 3, 2, 1), replica = meta(9, 3, 2, 1);
	struct gen_id fresh = id(7), next = id(8);

	(void)state;
	lineage_forget_part(&local, &fresh);
	assert_true(gen_id_equal(&local.generation.current, &replica.generation.current));
	local.position = 8;
	lineage_forget_part(&local, &fresh);
	assert_int_equal(local.position, 0);
	gen_advance(&local.generation, &next);
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_REFUSE, JUDGE_DIVERGED);
	assert_judged(judge(&local, meta(9, 2, 1, 0), 0, true, 0), JUDGE_HASHES, JUDGE_BEHIND);
	/* Promoted in generation 3. */
	local = meta(9, 4, 3, 2);
	local.primary = true;
	local.position = 8;
	lineage_forget_part(&local, &fresh);
	gen_advance(&local.generation, &next);
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_REFUSE, JUDGE_DIVERGED);
	assert_judged(judge(&local, meta(9, 4, 3, 2), 0, true, 0), JUDGE_HASHES, JUDGE_BEHIND);
	assert_judged(judge(&local, meta(9, 2, 1, 0), 0, true, 0), JUDGE_HASHES, JUDGE_BEHIND);
}

static void
one_never_written_gets_all(void **state)
{
	struct sidecar local = meta(9, 3, 2, 1);

	(void)state;
	assert_judged(judge(&local, meta(9, 0, 0, 0), 0, true, 0), JUDGE_FULL, JUDGE_NEVER_WRITTEN);
	assert_judged(judge(NULL, meta(8, 0, 0, 0), 0, false, 0), JUDGE_FULL, JUDGE_NEVER_WRITTEN);
}

/* After more than GEN_HISTORY losses of others the chain has forgotten an absent replica. */
static void
an_absent_replica_is_known_by_its_map(void **state)
{
	struct sidecar local = meta(9, 1, 0, 0), replica = meta(9, 1, 0, 0);
	struct generation shown;

	(void)state;
	for (uint8_t n = 2; n < 2 + GEN_HISTORY + 5; n++) {
		struct gen_id next = id(n);

		gen_advance(&local.generation, &next);
	}
	assert_judged(judge(&local, replica, 0, true, 0), JUDGE_REFUSE, JUDGE_NO_COMMON);
	assert_judged(judge(&local, replica, 1, true, 4096), JUDGE_DELTA, JUDGE_BEHIND);
	assert_judged(judge(&local, replica, 1, false, 4096), JUDGE_HASHES, JUDGE_BEHIND);

	/* If it went on meanwhile the map does not speak of it. */
	assert_judged(judge(&local, meta(9, 77, 1, 0), 1, true, 4096), JUDGE_REFUSE,
		      JUDGE_NO_COMMON);

	/* A target that compares by itself sees it as the initiator does. */
	shown = judge_present(&local.generation, &replica.generation.current);
	assert_int_equal(gen_compare(&shown, &replica.generation), GEN_AHEAD);
	shown = judge_present(&local.generation, NULL);
	assert_memory_equal(&shown, &local.generation, sizeof(shown));
	shown = judge_present(&local.generation, &local.generation.history[3]);
	assert_memory_equal(&shown, &local.generation, sizeof(shown));
}

static void
one_pool_by_uuid_or_by_a_generation(void **state)
{
	struct sidecar a = meta(9, 3, 2, 0), b = meta(9, 7, 0, 0);

	(void)state;
	assert_true(judge_is_one_pool(&a, &b));
	b = meta(8, 7, 0, 0);
	assert_false(judge_is_one_pool(&a, &b));
	b = meta(8, 3, 2, 0);
	assert_true(judge_is_one_pool(&a, &b));
	b = meta(8, 2, 0, 0);
	assert_true(judge_is_one_pool(&a, &b) && judge_is_one_pool(&b, &a));
	b = meta(8, 4, 2, 0);
	assert_true(judge_is_one_pool(&a, &b));
	/* One that was never written says nothing. */
	b = meta(8, 0, 0, 0);
	assert_false(judge_is_one_pool(&a, &b) || judge_is_one_pool(&b, &a));
	a = meta(9, 0, 0, 0);
	assert_false(judge_is_one_pool(&a, &b));
}

static void
reasons_have_names(void **state)
{
	(void)state;
	for (unsigned i = 0; i < JUDGE_REASON_COUNT; i++)
		assert_string_not_equal(judge_reason_name((enum judge_reason)i), "unknown");
	assert_string_equal(judge_reason_name(JUDGE_REASON_COUNT), "unknown");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_is_believed_about_its_own_base_only),
		cmocka_unit_test(what_is_behind_is_never_called_up_to_date),
		cmocka_unit_test(an_inconsistent_one_is_compared_as_a_whole),
		cmocka_unit_test(refuses_what_has_something_of_its_own),
		cmocka_unit_test(one_with_a_higher_position_is_newer),
		cmocka_unit_test(a_laggard_that_was_promoted_is_not_newer),
		cmocka_unit_test(a_part_is_no_ancestor),
		cmocka_unit_test(one_never_written_gets_all),
		cmocka_unit_test(an_absent_replica_is_known_by_its_map),
		cmocka_unit_test(one_pool_by_uuid_or_by_a_generation),
		cmocka_unit_test(reasons_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
