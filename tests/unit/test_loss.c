/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A replica that is lost never has the generation of those that go on, and one that lags is not
 * called newer than it is.
 */
#include "loss_world.h"

static void
lost_replica_is_behind(void **state)
{
	struct repl *r = set_new();

	(void)state;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_false(current(r, 0));
	assert_true(current(r, 1) && current(r, 2));
	/* Nothing that is stored from now on may reach it; the others go on. */
	assert_int_equal(remotes[0].cuts, 1);
	assert_int_equal(remotes[1].cuts + remotes[2].cuts, 0);
	assert_int_equal(gen_compare(&r->generation, &remotes[0].generation), GEN_AHEAD);
	assert_true(gen_id_equal(&base[0], &remotes[0].generation.current));
	assert_true(gen_id_is_nil(&base[1]));
	set_free(r);
}

/*
 * Two that are lost by the same call: 1 has more than 0, and less than was drained. Told of 0's
 * loss it would be outdated, in a generation that is none after 0's, and 0 look better.
 */
static void
who_is_lost_with_another_is_told_nothing(void **state)
{
	static const struct repl_loss both[] = {{0, REPL_E_TIMEOUT, "gone", REPL_REASON_NONE},
						{1, REPL_E_TIMEOUT, "gone", REPL_REASON_NONE}};
	struct repl *r = set_new();
	struct generation before;

	(void)state;
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	before = r->generation;
	drains = 7;
	drains_had[0] = 5;
	drains_had[1] = 6;
	drains_had[2] = 7;
	repl_lose_all(r, both, 2, clock_deadline(1000));
	assert_int_equal(dropped, 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(atomic_load(&r->replicas[i].lost), REPL_E_TIMEOUT);
		assert_int_equal(remotes[i].state, SIDECAR_UP_TO_DATE);
		assert_true(gen_id_equal(&remotes[i].generation.current, &before.current));
		assert_true(gen_id_equal(&base[i], &before.current));
	}
	/* One generation for both. */
	assert_true(current(r, 2));
	assert_true(gen_id_equal(&remotes[2].generation.history[0], &before.current));
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/*
 * Replica 2 lags when 0 is lost: what 0 may have and 2 has not is no reason to
 * call 2 newer. It is up to date when it has come so far.
 */
static void
laggard_is_not_newer_than_a_lost_one(void **state)
{
	struct repl *r = set_new();
	struct generation whole, lost;

	(void)state;
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 5;
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	whole = r->generation;
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	drains = drains_had[0] = drains_had[1] = 7;
	lost = r->generation;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_true(current(r, 1) && current(r, 2));
	assert_int_equal(remotes[1].state, SIDECAR_UP_TO_DATE);
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	/* Of the generation before it lacks something, of the one before that nothing. */
	assert_true(gen_id_equal(&remotes[2].generation.history[0], &whole.current));
	assert_int_equal(gen_compare(&r->generation, &remotes[2].generation), GEN_EQUAL);
	assert_int_not_equal(gen_compare(&remotes[2].generation, &remotes[0].generation),
			     GEN_AHEAD);
	/* Another loss before it has caught up: it lacks some of two generations. */
	drains = 9;
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	assert_true(gen_id_equal(&remotes[2].generation.history[0], &whole.current));
	/* What was acknowledged since is of the generation that it has now. */
	drains = 11;
	repl_label(r, 2, clock_deadline(1000), clock_deadline(1000));
	assert_true(gen_id_equal(&remotes[2].generation.history[0], &whole.current));
	/* It has all that the first one that was lost can have, and says so before it has the rest.
	 */
	drains_had[2] = 7;
	repl_label(r, 2, clock_deadline(1000), clock_deadline(1000));
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	assert_true(current(r, 2));
	assert_true(gen_id_equal(&remotes[2].generation.history[0], &lost.current));
	assert_int_equal(gen_compare(&remotes[2].generation, &remotes[0].generation), GEN_AHEAD);
	drains_had[2] = 9;
	repl_label(r, 2, clock_deadline(1000), clock_deadline(1000));
	assert_int_equal(remotes[2].state, SIDECAR_UP_TO_DATE);
	assert_true(current(r, 2));
	assert_int_equal(gen_compare(&r->generation, &remotes[2].generation), GEN_EQUAL);
	assert_memory_equal(&remotes[2].generation, &r->generation, sizeof(r->generation));
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/*
 * It has caught up when another one is lost, and its target says outdated until it is told the
 * new generation: for as long nothing may be copied into the lost one, which looks better.
 */
static void
laggard_is_one_until_its_target_has_recorded(void **state)
{
	struct repl *r = set_new();

	(void)state;
	drains = 7;
	drains_had[0] = drains_had[1] = 7;
	drains_had[2] = 5;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	drains_had[2] = 7;
	repl_lose(r, 1, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_int_equal(remotes[2].state, SIDECAR_UP_TO_DATE);
	assert_int_equal(remotes[2].behind, 7);
	assert_int_equal(atomic_load(&r->replicas[2].behind), 0);
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/* However many are lost while it lags, what it had before that it names. */
static void
laggard_keeps_what_it_had_all_of(void **state)
{
	struct repl *r = set_new();

	(void)state;
	repl_lose(r, 1, REPL_E_LOST, "gone", clock_deadline(1000));
	drains = drains_had[0] = 7;
	drains_had[2] = 5;
	for (unsigned i = 0; i < 2 * GEN_HISTORY; i++)
		assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	assert_int_equal(gen_compare(&remotes[2].generation, &remotes[1].generation), GEN_AHEAD);
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/* It has caught up, and does not answer when it is to be labelled: no fault of the others. */
static void
laggard_that_hangs_takes_no_other_with_it(void **state)
{
	struct repl *r = set_new();

	(void)state;
	drains = 7;
	drains_had[0] = drains_had[1] = 7;
	drains_had[2] = 5;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	drains_had[2] = 7;
	remotes[2].manner = HANGS_AFTER;
	repl_label(r, 2, clock_deadline(900), clock_deadline(900));
	assert_int_equal(atomic_load(&r->replicas[2].lost), REPL_E_TIMEOUT);
	assert_int_equal(atomic_load(&r->replicas[1].lost), 0);
	assert_true(current(r, 1));
	assert_false(current(r, 2));
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/* Its keeper pings, and whatever is recorded meanwhile may take long on a disk that stalls. */
static void
laggard_is_labelled_later_beside_a_record_that_takes_long(void **state)
{
	struct repl *r = set_new();
	uint64_t begin_ns;

	(void)state;
	drains = 7;
	drains_had[0] = drains_had[1] = 7;
	drains_had[2] = 5;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	drains_had[2] = 7;
	begin_ns = clock_now_ns();
	pthread_mutex_lock(&r->lock);
	repl_label(r, 2, clock_deadline(100), clock_deadline(900));
	pthread_mutex_unlock(&r->lock);
	assert_in_range(clock_now_ns() - begin_ns, 100 * NS_PER_MS, 200 * NS_PER_MS);
	assert_int_equal(remotes[2].state, SIDECAR_OUTDATED);
	repl_label(r, 2, clock_deadline(100), clock_deadline(900));
	assert_int_equal(remotes[2].state, SIDECAR_UP_TO_DATE);
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

/* It has recorded the generation, only its answer did not come. */
static void
replica_lost_in_recording_is_behind(void **state)
{
	struct repl *r = set_new();

	(void)state;
	remotes[1].manner = HANGS_AFTER;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(900));
	assert_int_not_equal(atomic_load(&r->replicas[1].lost), 0);
	assert_false(current(r, 1));
	assert_int_equal(atomic_load(&r->replicas[2].lost), 0);
	assert_true(current(r, 2));
	set_free(r);
}

/* With nobody left to go on with the program does: what it writes they lack. */
static void
last_replicas_lost_in_recording_are_behind(void **state)
{
	struct repl *r = set_new();

	(void)state;
	remotes[1].manner = remotes[2].manner = HANGS_AFTER;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(900));
	for (unsigned i = 0; i < REPLICAS; i++) {
		assert_int_not_equal(atomic_load(&r->replicas[i].lost), 0);
		assert_int_equal(gen_compare(&r->generation, &remotes[i].generation), GEN_AHEAD);
	}
	set_free(r);
}

static void
full_local_disk_leaves_replicas_apart(void **state)
{
	struct repl *r = set_new();

	(void)state;
	store_rc = REPL_E_NOSPC;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_false(gen_id_equal(&remotes[0].generation.current, &remotes[1].generation.current));
	assert_true(current(r, 1) && current(r, 2));
	set_free(r);
}

/* One that comes and goes must not push another's generation out of the history. */
static void
flapping_replica_makes_no_stranger_of_an_absent_one(void **state)
{
	struct repl *r = set_new();

	(void)state;
	repl_lose(r, 1, REPL_E_LOST, "gone", clock_deadline(1000));
	/* Which of the two it has is not known: neither may be forgotten. */
	remotes[2].manner = HANGS_AFTER;
	assert_int_equal(repl_advance(r, clock_deadline(100), NULL), 0);
	for (unsigned i = 0; i < 40; i++) {
		repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
		assert_int_equal(gen_compare(&r->generation, &remotes[1].generation), GEN_AHEAD);
		assert_int_equal(gen_compare(&r->generation, &remotes[2].generation), GEN_AHEAD);
		assert_int_equal(gen_compare(&r->generation, &remotes[0].generation), GEN_AHEAD);
		atomic_store(&r->replicas[0].lost, 0);
		remotes[0].generation = r->generation;
		r->replicas[0].has = r->generation.current;
	}
	set_free(r);
}

/* The program begins again: of one that is away it knows what is on media, by the map. */
static void
begun_again(struct repl *r)
{
	for (unsigned i = 0; i < REPLICAS; i++) {
		struct replica *p = &r->replicas[i];

		p->has = p->told = (struct gen_id){0};
		if (!atomic_load(&p->lost))
			p->has = r->generation.current;
	}
	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
}

/*
 * Another one is lost while it is told so, and its answer does not come; or the program has died
 * before that was asked for, and took it for one that has what it has.
 */
static void
many_openings_make_no_stranger_of_one_that_was_told(bool told)
{
	struct repl *r = set_new();

	assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
	if (told)
		remotes[2].manner = HANGS_AFTER;
	repl_lose(r, 1, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_int_equal(atomic_load(&r->replicas[2].lost) != 0, told);
	if (!told) {
		atomic_store(&r->replicas[2].lost, REPL_E_LOST);
		assert_int_equal(repl_advance(r, clock_deadline(1000), NULL), 0);
		base[2] = r->generation.current;
	}
	for (unsigned i = 0; i < 2 * GEN_HISTORY; i++) {
		begun_again(r);
		assert_int_equal(gen_compare(&r->generation, &remotes[1].generation), GEN_AHEAD);
		assert_int_equal(gen_compare(&r->generation, &remotes[2].generation), GEN_AHEAD);
	}
	set_free(r);
}

static void
one_that_was_told_and_has_not_answered_is_no_stranger(void **state)
{
	(void)state;
	many_openings_make_no_stranger_of_one_that_was_told(true);
}

static void
one_that_was_to_be_told_is_no_stranger(void **state)
{
	(void)state;
	many_openings_make_no_stranger_of_one_that_was_told(false);
}

/* Neither of the map on media, nor of the record that names it, can be told that it does not count.
 */
static struct repl *
set_untold(struct generation *recorded)
{
	struct repl *r = set_new();

	*recorded = r->generation;
	untold = true;
	store_rc = REPL_E_IO;
	return r;
}

static void
what_is_in_no_log_is_newer_than_the_record(void **state)
{
	struct generation recorded, told;
	struct repl *r = set_untold(&recorded);

	(void)state;
	assert_int_equal(repl_record_doubt(r, NULL), 0);
	for (unsigned i = 0; i < REPLICAS; i++)
		assert_int_equal(gen_compare(&remotes[i].generation, &recorded), GEN_AHEAD);
	/* Once is enough, and who is lost after it is newer as well. */
	told = r->generation;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_int_equal(repl_record_doubt(r, NULL), 0);
	assert_int_equal(gen_compare(&remotes[0].generation, &recorded), GEN_AHEAD);
	assert_true(gen_id_equal(&remotes[0].generation.current, &told.current));
	set_free(r);
}

static void
what_is_in_no_log_is_refused_while_one_is_away(void **state)
{
	struct generation recorded;
	struct repl *r = set_untold(&recorded);
	struct err e;

	(void)state;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	/* It may have been told, or not. */
	remotes[1].manner = HANGS;
	err_clear(&e);
	assert_int_equal(repl_record_doubt(r, &e), REPL_E_IO);
	assert_non_null(strstr(e.text, "read-only"));
	assert_int_not_equal(atomic_load(&r->replicas[1].lost), 0);
	atomic_store(&r->replicas[0].lost, 0);
	assert_int_equal(repl_record_doubt(r, NULL), REPL_E_IO);
	atomic_store(&r->replicas[1].lost, 0);
	assert_int_equal(repl_record_doubt(r, NULL), 0);
	set_free(r);
}

static void
what_is_in_no_log_goes_on_once_it_is_recorded(void **state)
{
	struct generation recorded;
	struct repl *r = set_untold(&recorded);

	(void)state;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(1000));
	assert_int_equal(repl_record_doubt(r, NULL), REPL_E_IO);
	store_rc = 0;
	assert_int_equal(repl_record_doubt(r, NULL), 0);
	assert_false(untold || atomic_load(&r->unrecorded));
	assert_true(current(r, 1) && current(r, 2));
	set_free(r);
}

static void *
lose_first(void *arg)
{
	repl_lose(arg, 0, REPL_E_LOST, "gone", clock_deadline(900));
	return NULL;
}

/* What another thread drains meanwhile is acknowledged only when the rest can be told apart. */
static void
acknowledgement_waits_for_the_record(void **state)
{
	struct repl *r = set_new();
	pthread_t thread;

	(void)state;
	remotes[1].manner = HANGS;
	assert_int_equal(pthread_create(&thread, NULL, lose_first, r), 0);
	while (atomic_load(&r->replicas[0].lost) == 0)
		(void)sched_yield();
	repl_await_recorded(r);
	assert_true(current(r, 2));
	assert_false(current(r, 0));
	(void)pthread_join(thread, NULL);
	set_free(r);
}

/* Another thread of its parent's has what guards the reason, as at the fork of a handler. */
static void
child_comes_back_from_a_loss(void **state)
{
	struct repl *r = set_new();
	pthread_t thread;

	(void)state;
	(void)pthread_mutex_lock(&r->reason_lock);
	assert_int_equal(pthread_create(&thread, NULL, lose_first, r), 0);
	/* It is amid it when it has this. */
	while (pthread_mutex_trylock(&r->lock) == 0) {
		(void)pthread_mutex_unlock(&r->lock);
		(void)sched_yield();
	}
	atomic_store(&r->abandoned, true);
	(void)alarm(20);
	(void)pthread_join(thread, NULL);
	(void)alarm(0);
	(void)pthread_mutex_unlock(&r->reason_lock);
	assert_int_equal(atomic_load(&r->replicas[0].lost), 0);
	atomic_store(&r->abandoned, false);
	set_free(r);
}

static void
advance_without_a_replica_is_an_error(void **state)
{
	struct repl *r = set_new();

	(void)state;
	for (unsigned i = 0; i < REPLICAS; i++)
		remotes[i].manner = HANGS;
	assert_int_equal(repl_advance(r, clock_deadline(60), NULL), REPL_E_LOST);
	set_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_replica_is_behind),
		cmocka_unit_test(flapping_replica_makes_no_stranger_of_an_absent_one),
		cmocka_unit_test(one_that_was_told_and_has_not_answered_is_no_stranger),
		cmocka_unit_test(one_that_was_to_be_told_is_no_stranger),
		cmocka_unit_test(who_is_lost_with_another_is_told_nothing),
		cmocka_unit_test(laggard_is_not_newer_than_a_lost_one),
		cmocka_unit_test(laggard_is_one_until_its_target_has_recorded),
		cmocka_unit_test(laggard_keeps_what_it_had_all_of),
		cmocka_unit_test(laggard_that_hangs_takes_no_other_with_it),
		cmocka_unit_test(laggard_is_labelled_later_beside_a_record_that_takes_long),
		cmocka_unit_test(replica_lost_in_recording_is_behind),
		cmocka_unit_test(last_replicas_lost_in_recording_are_behind),
		cmocka_unit_test(full_local_disk_leaves_replicas_apart),
		cmocka_unit_test(what_is_in_no_log_is_newer_than_the_record),
		cmocka_unit_test(what_is_in_no_log_is_refused_while_one_is_away),
		cmocka_unit_test(what_is_in_no_log_goes_on_once_it_is_recorded),
		cmocka_unit_test(acknowledgement_waits_for_the_record),
		cmocka_unit_test(child_comes_back_from_a_loss),
		cmocka_unit_test(advance_without_a_replica_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
