/* SPDX-License-Identifier: BSD-3-Clause */
/* Losing machines costs nothing that was acknowledged; and a rule that is broken is found out.
 *
 *   test_losses [whole]   whole: the search for a broken rule begins at the first seed
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define SEEDS       (SANITIZED ? 300 : 3000)
#define FOUND       (sizeof(found_seeds) / sizeof(found_seeds[0]))
#define SEEDS_BOUND 30000 /* within which every broken rule is found */

static bool whole;

/*
 * Where the search begins for a rule whose first seed is far: a little before
 * that seed, as the simulator is now. Where it no longer is that one the search
 * takes longer, and finds as much.
 */
static const uint64_t far_seeds[SIM_MUTATION_COUNT] = {
	[SIM_APPLY_UNCOMMITTED] = 1160, [SIM_CLEAR_EARLY] = 1160,
	[SIM_TRUST_AFTER_CRASH] = 4940, [SIM_PROMOTE_OUTDATED] = 3870,
	[SIM_PROMOTE_TOLD] = 3270,      [SIM_RESTORE_TOLD] = 15430,
	[SIM_SYNC_TOLD] = 22850,        [SIM_PART_OVER_MORE] = 3270,
	[SIM_DAMAGED_CLEAN] = 8400,     [SIM_QUEUE_COUNT_LAGGARD] = 1420,
	[SIM_RETIRE_BUSY] = 2970,       [SIM_OPEN_IN_PIECES] = 7740,
	[SIM_KEEP_MAP] = 2310,          [SIM_LAGGARD_UNTOLD] = 75510,
	[SIM_RETIRE_UNSYNCED] = 4950,   [SIM_NO_ADVANCE_IN_DOUBT] = 190,
	[SIM_DROP_COMMITTED] = 170,     [SIM_NO_SYNC_AT_OPEN] = 960,
	[SIM_POSITION_KEPT] = 1430,     [SIM_ACTIVE_UNSYNCED] = 470,
	[SIM_REGION_KEPT] = 820,        [SIM_GROW_BESIDE_RESYNC] = 230,
	[SIM_RING_UNFLUSHED] = 1010,    [SIM_RING_ORDER] = 470,
	[SIM_RING_MARKS_ORDER] = 195,   [SIM_RING_TORN] = 830,
};

/* Others that have found something: once more each time. */
static const uint64_t found_seeds[] = {117774663, 1005563,   1045137,   30051144,   1886104041,
				       171548,    400102934, 400048704, 1886217316, 3897226376};

static void
tell(const struct sim_result *result)
{
	char text[SIM_TEXT_MAX];

	(void)fprintf(stderr, "%s\n", result->reason);
	for (size_t i = 0; i < result->event_count; i++)
		(void)fprintf(stderr, "  %s\n",
			      sim_event_text(&result->events[i], text, sizeof(text)));
}

/* What is found is the rule that was broken, and nothing that fails without that. */
static void
holds_unbroken(uint64_t seed)
{
	static struct sim_result result;
	struct sim_config config = {.seed = seed};

	sim_run(&config, &result);
	if (result.failed) {
		tell(&result);
		fail_msg("seed %u, no rule is broken", (unsigned)seed);
	}
}

static void
nothing_acknowledged_is_lost(void **state)
{
	static struct sim_result result;
	struct sim_stats sum = {0};

	(void)state;
	for (uint64_t i = 1; i <= SEEDS + FOUND; i++) {
		uint64_t seed = i <= SEEDS ? i : found_seeds[i - SEEDS - 1];
		struct sim_config config = {.seed = seed};

		sim_run(&config, &result);
		if (result.failed) {
			tell(&result);
			fail_msg("seed %u", (unsigned)seed);
		}
		sum.acks += result.stats.acks;
		sum.losses += result.stats.losses;
		sum.resyncs += result.stats.resyncs;
		sum.refused += result.stats.refused;
		sum.promotions += result.stats.promotions;
		sum.power_cuts += result.stats.power_cuts;
		sum.replayed += result.stats.replayed;
	}
	/* It is about something: each of these happens in about every run. */
	assert_true(sum.acks > SEEDS && sum.losses > SEEDS / 4 && sum.resyncs > SEEDS / 2);
	assert_true(sum.refused > SEEDS / 10 && sum.promotions > SEEDS / 10 &&
		    sum.power_cuts > SEEDS / 4);
	/* In half of the runs there is what may have to be replayed. */
	assert_true(sum.replayed > SEEDS / 20);
}

static void
every_broken_rule_is_found_out(void **state)
{
	static struct sim_result result;

	(void)state;
	for (int m = SIM_NONE + 1; m < SIM_MUTATION_COUNT; m++) {
		uint64_t start = whole ? 0 : far_seeds[m];
		struct sim_config config = {.seed = start, .mutation = (enum sim_mutation)m};

		result.failed = false;
		while (!result.failed && config.seed < start + SEEDS_BOUND) {
			config.seed++;
			sim_run(&config, &result);
		}
		if (!result.failed)
			fail_msg("not found in %d seeds: %s", SEEDS_BOUND,
				 sim_mutation_text(config.mutation));
		holds_unbroken(config.seed);
		(void)printf("seed %5u, %2u events: %s\n", (unsigned)config.seed,
			     (unsigned)result.event_count, sim_mutation_text(config.mutation));
	}
}

static void
a_seed_repeats(void **state)
{
	static struct sim_result a, b;
	struct sim_config config = {.mutation = SIM_NO_MARK};

	(void)state;
	/* With each of what a run may have. */
	for (config.seed = 4711; config.seed < 4711 + 16; config.seed++) {
		sim_run(&config, &a);
		sim_run(&config, &b);
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

/* What fails is told by as few events as still fail. */
static void
a_failure_is_told_shortly(void **state)
{
	static struct sim_result result;
	struct sim_config config = {.mutation = SIM_NO_ADVANCE};
	unsigned shortest = SIM_EVENTS_MAX;

	(void)state;
	for (config.seed = 1; config.seed <= 50; config.seed++) {
		sim_run(&config, &result);
		if (result.failed && result.event_count < shortest)
			shortest = (unsigned)result.event_count;
	}
	assert_in_range(shortest, 1, 4);
}

static void
chains_tell(unsigned nodes, unsigned depth, enum chains_rule rule)
{
	struct chains_result result;

	chains_explore(nodes, depth, rule, &result);
	if (result.failed)
		fail_msg("%s", result.reason);
	assert_true(result.states > 10000);
	for (unsigned r = 0; r < 4; r++)
		assert_true(result.by_relation[r] > 1000);
	(void)printf("%u copies: %u sequences, %u states, %u relations\n", nodes,
		     (unsigned)result.sequences, (unsigned)result.states,
		     (unsigned)result.relations);
}

static void
chains_tell_who_is_newer(void **state)
{
	struct chains_result result;

	(void)state;
	for (unsigned nodes = 2; nodes <= 3; nodes++) {
		chains_tell(nodes, nodes == 2 ? 8 : 6, CHAINS_AS_BUILT);
		chains_explore(nodes, 4, CHAINS_NO_ADVANCE, &result);
		assert_true(result.failed);
	}
}

static void
chains_with_gaps_tell_the_same(void **state)
{
	struct chains_result result;

	(void)state;
	for (unsigned nodes = 2; nodes <= 3; nodes++) {
		chains_tell(nodes, nodes == 2 ? 8 : 6, CHAINS_FORGET);
		chains_explore(nodes, 4, CHAINS_FORGET_ALL, &result);
		assert_true(result.failed);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_acknowledged_is_lost),
		cmocka_unit_test(every_broken_rule_is_found_out),
		cmocka_unit_test(a_seed_repeats),
		cmocka_unit_test(a_failure_is_told_shortly),
		cmocka_unit_test(chains_tell_who_is_newer),
		cmocka_unit_test(chains_with_gaps_tell_the_same),
	};

	whole = argc > 1 && strcmp(argv[1], "whole") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
