/* SPDX-License-Identifier: BSD-3-Clause */
/* Comparing two generation chains tells exactly how the copies descend from one another. */
#include "unit.h"

#include "generation.h"

static struct gen_id
id_of(unsigned n)
{
	struct gen_id id = {{0}};

	id.b[0] = (uint8_t)n;
	id.b[GEN_ID_SIZE - 1] = (uint8_t)(n >> 8);
	return id;
}

/* Apply count writes to g, with identifiers first, first + 1, ... */
static void
advance_by(struct generation *g, unsigned first, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct gen_id id = id_of(first + i);

		gen_advance(g, &id);
	}
}

/* The relation by what was done to the copies, not by looking at the chains. */
static enum gen_relation
expected(unsigned shared, unsigned a, unsigned b)
{
	if (shared + a == 0 || shared + b == 0) {
		if (a == b)
			return GEN_EQUAL;
		return a ? GEN_AHEAD : GEN_BEHIND;
	}
	if (!a && !b)
		return GEN_EQUAL;
	/* A chain remembers GEN_HISTORY ancestors besides its current one. */
	if (!b)
		return a <= GEN_HISTORY ? GEN_AHEAD : GEN_UNRELATED;
	if (!a)
		return b <= GEN_HISTORY ? GEN_BEHIND : GEN_UNRELATED;
	if (shared && a <= GEN_HISTORY && b <= GEN_HISTORY)
		return GEN_DIVERGED;
	return GEN_UNRELATED;
}

static enum gen_relation
opposite(enum gen_relation r)
{
	if (r == GEN_AHEAD)
		return GEN_BEHIND;
	return r == GEN_BEHIND ? GEN_AHEAD : r;
}

/* However often a chain goes on, whom it knows by a kept identifier it knows for ever. */
static void
what_is_kept_is_not_forgotten(void **state)
{
	const struct gen_id keep[] = {id_of(3), id_of(9), {{0}}, id_of(7)};
	struct generation g = {0}, old[60] = {0};

	(void)state;
	for (unsigned n = 1; n < 60; n++) {
		struct gen_id id = id_of(n);

		gen_advance_keeping(&g, &id, keep, 4);
		old[n] = g;
		for (unsigned i = 1; i < n; i++) {
			bool kept = i == 3 || i == 7 || i == 9;
			enum gen_relation r = gen_compare(&g, &old[i]);

			/* So are those beside it, and the newest, and nobody is taken for what it
			 * is not. */
			kept |= i == 2 || i == 4 || i == 6 || i == 8 || i == 10;
			if (kept || n - i <= GEN_HISTORY - 8)
				assert_int_equal(r, GEN_AHEAD);
			assert_int_not_equal(r, GEN_BEHIND);
			assert_int_not_equal(r, GEN_EQUAL);
			assert_int_equal(gen_compare(&old[i], &g), opposite(r));
		}
	}
}

/* What is beside gives way to what is to be kept itself. */
static void
what_is_beside_is_kept_while_there_is_room(void **state)
{
	struct gen_id keep[GEN_HISTORY - 1];
	struct generation g = {0};

	(void)state;
	for (unsigned i = 0; i < GEN_HISTORY - 1; i++)
		keep[i] = id_of(1 + 3 * i);
	for (unsigned n = 1; n < 100; n++) {
		struct gen_id id = id_of(n);

		gen_advance_keeping(&g, &id, keep, GEN_HISTORY - 1);
		for (unsigned i = 1; i < n && i <= 1 + 3 * (GEN_HISTORY - 2); i += 3) {
			struct generation old = {.current = id_of(i)};

			assert_int_equal(gen_compare(&g, &old), GEN_AHEAD);
		}
		assert_true(n < 2 ||
			    gen_id_equal(&g.history[0], &(struct gen_id){.b = {(uint8_t)(n - 1)}}));
	}
}

static void
more_to_keep_than_there_is_room_for_drops_the_oldest(void **state)
{
	struct generation g = {0}, plain = {0};
	struct gen_id keep[GEN_HISTORY + 5];

	(void)state;
	for (unsigned i = 0; i < GEN_HISTORY + 5; i++)
		keep[i] = id_of(i + 1);
	for (unsigned i = 0; i < GEN_HISTORY + 5; i++) {
		gen_advance_keeping(&g, &keep[i], keep, GEN_HISTORY + 5);
		gen_advance(&plain, &keep[i]);
		assert_memory_equal(&g, &plain, sizeof(g));
	}
}

/* Every split of up to 18 shared writes and 18 of each side's own. */
static void
every_small_pair_of_chains(void **state)
{
	(void)state;
	for (unsigned shared = 0; shared <= 18; shared++) {
		for (unsigned n = 0; n < 19 * 19; n++) {
			unsigned a = n / 19, b = n % 19;
			struct generation ours = {0}, theirs;
			enum gen_relation want = expected(shared, a, b);

			advance_by(&ours, 1, shared);
			theirs = ours;
			advance_by(&ours, 100, a);
			advance_by(&theirs, 200, b);
			assert_int_equal(gen_compare(&ours, &theirs), want);
			assert_int_equal(gen_compare(&theirs, &ours), opposite(want));
		}
	}
}

/* All pairs of chains over three identifiers and nil, in every arrangement of three slots. */
static void
hostile_chains_are_antisymmetric_and_never_ahead_without_proof(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 4096; n++) {
		struct generation g[2] = {{.current = id_of(n & 3)},
					  {.current = id_of(n >> 2 & 3)}};
		enum gen_relation r;
		bool ahead;

		g[0].history[0] = id_of(n >> 4 & 3);
		g[0].history[GEN_HISTORY - 1] = id_of(n >> 6 & 3);
		g[1].history[0] = id_of(n >> 8 & 3);
		g[1].history[GEN_HISTORY - 1] = id_of(n >> 10 & 3);
		r = gen_compare(&g[0], &g[1]);
		assert_int_equal(gen_compare(&g[1], &g[0]), opposite(r));
		ahead = gen_id_is_nil(&g[1].current) ||
			gen_id_equal(&g[0].history[0], &g[1].current) ||
			gen_id_equal(&g[0].history[GEN_HISTORY - 1], &g[1].current);
		if (r == GEN_AHEAD)
			assert_true(ahead);
	}
}

static void
advance_from_nil_keeps_no_nil_in_the_history(void **state)
{
	struct generation g = {0};
	struct gen_id one = id_of(1), two = id_of(2);

	(void)state;
	gen_advance(&g, &one);
	assert_true(gen_id_equal(&g.current, &one));
	assert_true(gen_id_is_nil(&g.history[0]));
	gen_advance(&g, &two);
	assert_true(gen_id_equal(&g.history[0], &one));
	assert_true(gen_id_is_nil(&g.history[1]));
}

static void
text_form_maps_back(void **state)
{
	static const char text[] = "00112233-4455-6677-8899-aabbccddeeff";
	struct gen_id id;
	char out[GEN_TEXT_SIZE];

	(void)state;
	assert_true(gen_id_parse(text, &id));
	for (unsigned i = 0; i < GEN_ID_SIZE; i++)
		assert_int_equal(id.b[i], i * 0x11);
	gen_id_format(&id, out);
	assert_string_equal(out, text);
}

/* Any one character replaced, any prefix, and a longer text are refused and change nothing. */
static void
only_the_exact_form_parses(void **state)
{
	static const char good[] = "00112233-4455-6677-8899-aabbccddeeff";
	struct gen_id id = id_of(7), before = id;
	char bad[GEN_TEXT_SIZE + 1];

	(void)state;
	for (unsigned i = 0; i < GEN_TEXT_SIZE - 1; i++) {
		strcpy(bad, good);
		bad[i] = good[i] == '-' ? '0' : 'g';
		assert_false(gen_id_parse(bad, &id));
		bad[i] = '\0';
		assert_false(gen_id_parse(bad, &id));
	}
	assert_false(gen_id_parse("00112233-4455-6677-8899-AABBCCDDEEFF", &id));
	assert_false(gen_id_parse("00112233-4455-6677-8899-aabbccddeeff0", &id));
	assert_false(gen_id_parse("{0112233-4455-6677-8899-aabbccddeeff", &id));
	assert_memory_equal(&id, &before, sizeof(id));
}

/* Data that lacks something of its generation does not descend from it. */
static void
a_replaced_one_is_no_ancestor(void **state)
{
	struct generation whole = {0}, part;
	struct gen_id first = {{1}}, second = {{2}}, third = {{3}};

	(void)state;
	gen_advance(&whole, &first);
	gen_advance(&whole, &second);
	part = whole;
	gen_replace(&part, &third);
	assert_int_equal(gen_compare(&whole, &part), GEN_DIVERGED);
	assert_int_equal(gen_compare(&part, &whole), GEN_DIVERGED);
}

static void
relations_have_names(void **state)
{
	(void)state;
	assert_string_equal(gen_relation_name(GEN_EQUAL), "equal");
	assert_string_equal(gen_relation_name(GEN_UNRELATED), "unrelated");
	assert_string_equal(gen_relation_name((enum gen_relation)99), "unknown");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_is_not_forgotten),
		cmocka_unit_test(what_is_beside_is_kept_while_there_is_room),
		cmocka_unit_test(more_to_keep_than_there_is_room_for_drops_the_oldest),
		cmocka_unit_test(every_small_pair_of_chains),
		cmocka_unit_test(hostile_chains_are_antisymmetric_and_never_ahead_without_proof),
		cmocka_unit_test(advance_from_nil_keeps_no_nil_in_the_history),
		cmocka_unit_test(text_form_maps_back),
		cmocka_unit_test(only_the_exact_form_parses),
		cmocka_unit_test(a_replaced_one_is_no_ancestor),
		cmocka_unit_test(relations_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
