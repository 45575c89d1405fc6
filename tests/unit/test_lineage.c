/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy that may have but a part of a generation never names it, unless it says how much. */
#include "unit.h"

#include <string.h>

#include "lineage.h"

static struct gen_id
id(uint8_t n)
{
	return (struct gen_id){.b = {n}};
}

/* Of generation 3, with so much of it. */
static struct sidecar
replica(enum sidecar_state state, uint64_t position)
{
	return (struct sidecar){.state = state,
				.position = position,
				.generation = {.current = id(3), .history = {id(2), id(1)}}};
}

static bool
names(const struct sidecar *s, uint8_t n)
{
	const struct gen_id wanted = id(n);

	for (unsigned i = 0; i < GEN_HISTORY; i++)
		if (gen_id_equal(&s->generation.history[i], &wanted))
			return true;
	return gen_id_equal(&s->generation.current, &wanted);
}

static struct sidecar
restored(struct sidecar from, bool changed)
{
	struct sidecar file = {0};
	const struct gen_id fresh = id(9);

	lineage_restore(&file, &from, changed, &fresh);
	assert_true(names(&file, 2));
	return file;
}

static void
restored_file_says_how_much_it_has(void **state)
{
	struct sidecar file, from = replica(SIDECAR_UNKNOWN, 7);

	(void)state;
	for (unsigned changed = 0; changed < 2; changed++) {
		file = restored(from, changed);
		assert_int_equal(file.position, 7);
		assert_int_equal(file.state, SIDECAR_UNKNOWN);
		assert_true(gen_id_equal(&file.generation.current, &from.generation.current));
	}
	/* Nobody knows, or all that is known is that it is not all. */
	file = restored(replica(SIDECAR_UNKNOWN, 0), false);
	assert_true(names(&file, 9) && !names(&file, 3) && !file.position);
	file = restored(replica(SIDECAR_OUTDATED, 0), true);
	assert_true(names(&file, 9) && !names(&file, 3) && !file.position);
}

static void
file_in_place_names_no_part(void **state)
{
	const struct gen_id fresh = id(9);
	struct sidecar file, killed = replica(SIDECAR_UP_TO_DATE, 0);

	(void)state;
	killed.writer_open = true;
	strcpy(killed.writer, "somebody");
	file = killed;
	lineage_in_place(&file, &fresh);
	assert_true(names(&file, 9) && names(&file, 2) && !names(&file, 3));
	/* Its own program was killed. */
	killed.generation = file.generation;
	file.writer_open = true;
	lineage_in_place(&file, &fresh);
	assert_memory_equal(&file.generation, &killed.generation, sizeof(file.generation));
	/* Its session has seen its writer go. */
	file = replica(SIDECAR_UNKNOWN, 0);
	lineage_in_place(&file, &fresh);
	assert_true(names(&file, 9) && !names(&file, 3));
	/* It says how much it has, has all, or is a primary. */
	for (unsigned i = 0; i < 4; i++) {
		file = replica(i == 3 ? SIDECAR_UP_TO_DATE : SIDECAR_UNKNOWN, i == 0 ? 7 : 0);
		file.waited = i == 1;
		file.primary = i == 2;
		file.writer_open = i != 3;
		strcpy(file.writer, "somebody");
		lineage_in_place(&file, &fresh);
		assert_true(names(&file, 3) && !names(&file, 9));
		assert_int_equal(file.writer[0] != 0, i == 2);
	}
}

/* Closed in order it has all, and keeps its last position: that is no part's. */
static void
file_in_place_that_was_closed_has_all(void **state)
{
	const struct gen_id fresh = id(9), next = id(8);
	struct sidecar file = replica(SIDECAR_UP_TO_DATE, 7);

	(void)state;
	strcpy(file.writer, "somebody");
	lineage_in_place(&file, &fresh);
	assert_int_equal(file.position, 0);
	lineage_forget_part(&file, &fresh);
	gen_advance(&file.generation, &next);
	assert_true(names(&file, 8) && names(&file, 3) && !names(&file, 9));
	/* Its writer was killed, or its session has seen it go: it says how much it has. */
	for (unsigned i = 0; i < 2; i++) {
		file = replica(i ? SIDECAR_UNKNOWN : SIDECAR_UP_TO_DATE, 7);
		file.writer_open = i == 0;
		strcpy(file.writer, "somebody");
		lineage_in_place(&file, &fresh);
		assert_int_equal(file.position, 7);
		lineage_forget_part(&file, &fresh);
		gen_advance(&file.generation, &next);
		assert_true(names(&file, 8) && !names(&file, 3));
	}
}

/* Where its writer has closed in order, or waited for it with each drain. */
static void
restored_file_may_have_all(void **state)
{
	struct sidecar file = restored(replica(SIDECAR_UP_TO_DATE, 7), false),
		       from = replica(SIDECAR_UNKNOWN, 0);

	(void)state;
	assert_true(file.state == SIDECAR_UP_TO_DATE && !file.position);
	assert_true(names(&file, 3) && !names(&file, 9));
	from.waited = true;
	file = restored(from, false);
	assert_true(file.state == SIDECAR_UP_TO_DATE && !file.position);
	assert_true(names(&file, 3) && !names(&file, 9));
	/* Not the same bytes: the replica is behind. */
	file = restored(from, true);
	assert_true(names(&file, 3) && names(&file, 9));
}

/* Promoted once more, too, as which it keeps a part's position. */
static void
promoted_laggard_tells_its_part(void **state)
{
	const struct gen_id new = id(8), newer = id(7), fresh = id(9);
	struct sidecar first, s = replica(SIDECAR_UNKNOWN, 7), file;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		first = s;
		lineage_promote_begin(&first, &new);
		assert_true(names(&first, 8) && !names(&first, 3) && !first.position);
		assert_false(first.primary);
		/* A file that was restored from it, and lies where a target has its pools. */
		s = restored(s, false);
	}
	lineage_promote(&s, &new);
	assert_true(s.primary && s.state == SIDECAR_UP_TO_DATE && s.position == 7);
	assert_true(names(&s, 8) && names(&s, 3));
	file = restored(s, false);
	assert_true(names(&file, 8) && !names(&file, 3) && !file.position);
	file = s;
	lineage_forget_part(&file, &fresh);
	assert_true(names(&file, 8) && !names(&file, 3) && !file.position);
	lineage_demote(&s, false, &newer);
	assert_true(names(&s, 7) && names(&s, 8) && !names(&s, 3));
	assert_true(!s.primary && !s.position);
}

/* What a program's file is equal to, and is lost with it before the file has a new generation. */
static void
equal_copy_says_how_much_it_has(void **state)
{
	const struct gen_id new = id(8);
	struct sidecar copy = {0}, s = replica(SIDECAR_UNKNOWN, 7);

	(void)state;
	copy.generation = s.generation;
	assert_int_equal(lineage_equal(&s, &copy.generation), 7);
	assert_true(names(&copy, 3) && names(&copy, 2));
	lineage_promote(&s, &new);
	copy.generation = s.generation;
	assert_int_equal(lineage_equal(&s, &copy.generation), 0);
	assert_true(names(&copy, 8) && !names(&copy, 3) && names(&copy, 2));
	/* Of a whole one. */
	s = replica(SIDECAR_UP_TO_DATE, 0);
	lineage_promote(&s, &new);
	copy.generation = s.generation;
	assert_int_equal(lineage_equal(&s, &copy.generation), 0);
	assert_true(names(&copy, 8) && names(&copy, 3));
}

static void
promoted_whole_names_all(void **state)
{
	const struct gen_id new = id(8), newer = id(7);
	struct sidecar file, s = replica(SIDECAR_UP_TO_DATE, 7);

	(void)state;
	lineage_promote(&s, &new);
	assert_true(names(&s, 8) && names(&s, 3) && !s.position);
	lineage_demote(&s, false, &newer);
	assert_true(names(&s, 7) && names(&s, 8) && names(&s, 3));
	/* By force. */
	s = replica(SIDECAR_OUTDATED, 0);
	lineage_promote(&s, &new);
	assert_true(names(&s, 8) && !names(&s, 3));
	assert_int_equal(s.state, SIDECAR_UP_TO_DATE);
	/* Its program was killed: what it holds is the pool all the same. */
	s.state = SIDECAR_UNKNOWN;
	lineage_demote(&s, false, &newer);
	assert_true(names(&s, 7) && names(&s, 8));
	file = restored(s, false);
	assert_true(names(&file, 7) && !names(&file, 9));
}

static void
sync_makes_a_part_whole_under_a_name_of_its_own(void **state)
{
	const struct gen_id fresh = id(9), new = id(8);
	struct sidecar file = restored(replica(SIDECAR_UNKNOWN, 7), false);

	(void)state;
	lineage_sync(&file, false, &fresh, &new);
	assert_true(names(&file, 8) && !names(&file, 3) && !file.position);
	file = restored(replica(SIDECAR_UP_TO_DATE, 0), false);
	lineage_sync(&file, false, &fresh, &new);
	assert_true(names(&file, 3) && !names(&file, 8));
	lineage_sync(&file, true, &fresh, &new);
	assert_true(names(&file, 3) && names(&file, 8));
	/* Equal to a replica of which nobody knows how much it has. */
	lineage_copy(&file,
		     &(struct sidecar){.state = SIDECAR_UNKNOWN, .generation = {.current = id(3)}},
		     &fresh);
	assert_true(names(&file, 9) && !names(&file, 3));
}

/* What its machine has lost another one may have. */
static void
sync_of_a_lost_file_descends_from_no_part(void **state)
{
	const struct gen_id fresh = id(9);
	struct sidecar file = replica(SIDECAR_UP_TO_DATE, 0);

	(void)state;
	lineage_lost(&file, &fresh);
	assert_true(names(&file, 9) && names(&file, 2) && !names(&file, 3));
}

/* Its program has replicated it from where it lies, and its machine has lost its power. */
static void
primary_that_lost_something_descends_from_no_part(void **state)
{
	const struct gen_id new = id(8), newer = id(7), used = id(6);
	struct sidecar s = replica(SIDECAR_UP_TO_DATE, 0);

	(void)state;
	lineage_promote(&s, &new);
	gen_advance(&s.generation, &used);
	s.writer_open = true;
	s.boot = id(5);
	lineage_demote(&s, true, &newer);
	assert_true(names(&s, 7) && names(&s, 8) && names(&s, 3) && !names(&s, 6));
	assert_true(!s.primary && !s.writer_open && gen_id_is_nil(&s.boot));
}

/* It has the bytes of one that lags, too, and was promoted: no part of its bears a whole's name. */
static void
promoted_laggard_that_equals_another(void **state)
{
	const struct gen_id new = id(8), fresh = id(9);
	struct sidecar other = replica(SIDECAR_UNKNOWN, 12), file = replica(SIDECAR_UNKNOWN, 10);

	(void)state;
	lineage_promote(&file, &new);
	assert_true(file.primary && file.position == 10);
	lineage_copy(&file, &other, &fresh);
	lineage_forget_part(&file, &fresh);
	assert_true(names(&file, 9) && names(&file, 2) && !names(&file, 3) && !file.position);
	/* Of one that has all it is one. */
	other = replica(SIDECAR_UP_TO_DATE, 12);
	lineage_copy(&file, &other, &fresh);
	assert_true(names(&file, 3) && !file.position);
	/* Who is no primary says how much. */
	file.primary = false;
	other = replica(SIDECAR_UNKNOWN, 12);
	lineage_copy(&file, &other, &fresh);
	assert_true(names(&file, 3) && file.position == 12);
}

/* Its file has no record, or an older one. */
static void
equal_file_names_no_part(void **state)
{
	static const enum sidecar_state states[] = {SIDECAR_OUTDATED, SIDECAR_INCONSISTENT};
	const struct gen_id fresh = id(9);
	struct sidecar file;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct sidecar part = replica(states[i % 2], i / 2 * 7);

		part.waited = i == 1;
		file = (struct sidecar){.generation = {.current = id(2)}};
		lineage_copy(&file, &part, &fresh);
		assert_true(names(&file, 9) && names(&file, 2) && !names(&file, 3));
		assert_int_equal(file.position, 0);
	}
	/* Of what is whole it is one. */
	for (unsigned i = 0; i < 2; i++) {
		struct sidecar whole = replica(i ? SIDECAR_UP_TO_DATE : SIDECAR_UNKNOWN, i * 7);

		whole.waited = i == 0;
		lineage_copy(&file, &whole, &fresh);
		assert_true(names(&file, 3) && !names(&file, 9) && !file.position);
	}
}

/* In whatever order they are looked at. */
static void
of_several_equal_ones_the_chain_that_tells_most_is_taken(void **state)
{
	struct sidecar older = replica(SIDECAR_UP_TO_DATE, 0);
	/* Each of those that stand earlier tells more than the ones behind. */
	const struct sidecar *row[] = {
		&(const struct sidecar){
			.state = SIDECAR_OUTDATED,
			.generation = {.current = id(4), .history = {id(3), id(2)}}},
		&(const struct sidecar){.state = SIDECAR_UP_TO_DATE,
					.position = 7,
					.generation = {.current = id(3), .history = {id(2)}}},
		&(const struct sidecar){.state = SIDECAR_OUTDATED,
					.waited = true,
					.generation = {.current = id(3), .history = {id(2)}}},
		&older,
		&(const struct sidecar){
			.state = SIDECAR_INCONSISTENT,
			.generation = {.current = id(4), .history = {id(3), id(2)}}},
		&(const struct sidecar){.state = SIDECAR_INCONSISTENT,
					.generation = {.current = id(3), .history = {id(2)}}},
	};
	const unsigned count = sizeof(row) / sizeof(row[0]);
	const struct sidecar whole[] = {
		replica(SIDECAR_UP_TO_DATE, 7),
		{.state = SIDECAR_UNKNOWN, .waited = true, .generation = row[1]->generation},
	};
	const struct sidecar part[] = {replica(SIDECAR_OUTDATED, 0), replica(SIDECAR_OUTDATED, 7),
				       replica(SIDECAR_UNKNOWN, 7), replica(SIDECAR_UNKNOWN, 0)};

	(void)state;
	older.generation = (struct generation){.current = id(2)};
	for (unsigned a = 0; a < count; a++)
		for (unsigned b = 0; b < count; b++)
			assert_int_equal(lineage_tells_more(row[a], row[b]), a < b);
	for (unsigned a = 0; a < 2; a++)
		for (unsigned b = 0; b < 4; b++) {
			assert_true(lineage_tells_more(&whole[a], &part[b]));
			assert_false(lineage_tells_more(&part[b], &whole[a]));
			assert_false(lineage_tells_more(&part[b], &part[3 - b]));
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restored_file_says_how_much_it_has),
		cmocka_unit_test(file_in_place_names_no_part),
		cmocka_unit_test(file_in_place_that_was_closed_has_all),
		cmocka_unit_test(restored_file_may_have_all),
		cmocka_unit_test(promoted_laggard_tells_its_part),
		cmocka_unit_test(equal_copy_says_how_much_it_has),
		cmocka_unit_test(promoted_whole_names_all),
		cmocka_unit_test(sync_makes_a_part_whole_under_a_name_of_its_own),
		cmocka_unit_test(sync_of_a_lost_file_descends_from_no_part),
		cmocka_unit_test(primary_that_lost_something_descends_from_no_part),
		cmocka_unit_test(promoted_laggard_that_equals_another),
		cmocka_unit_test(equal_file_names_no_part),
		cmocka_unit_test(of_several_equal_ones_the_chain_that_tells_most_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
