/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A replica that is lost takes none of those that go on with it, whatever time it takes to tell
 * them so.
 */
#include "loss_world.h"

static void
hanging_takes_no_other_with_it(enum manner manner)
{
	struct repl *r = set_new();

	remotes[1].manner = manner;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(900));
	assert_int_equal(atomic_load(&r->replicas[1].lost), REPL_E_TIMEOUT);
	assert_int_equal(atomic_load(&r->replicas[2].lost), 0);
	assert_true(current(r, 2));
	set_free(r);
}

static void
one_that_does_not_answer_takes_no_other_with_it(void **state)
{
	(void)state;
	hanging_takes_no_other_with_it(HANGS);
}

/* Its keeper's request comes first, also behind one that takes nothing. */
static void
one_that_takes_no_request_leaves_time_to_one_that_is_asked(void **state)
{
	struct repl *r = set_new();

	(void)state;
	remotes[0].manner = TAKES_NOTHING;
	remotes[1].manner = IS_ASKED;
	repl_lose(r, 2, REPL_E_LOST, "gone", clock_deadline(900));
	assert_int_equal(atomic_load(&r->replicas[0].lost), REPL_E_TIMEOUT);
	assert_int_equal(atomic_load(&r->replicas[1].lost), 0);
	assert_true(current(r, 1));
	set_free(r);
}

/* However many that are: half of the time is left for its answer. */
static void
several_that_take_no_request_leave_time_for_an_answer(void **state)
{
	struct repl *r = set_new();

	(void)state;
	r->replica_count = MANY;
	for (unsigned i = REPLICAS; i < MANY; i++)
		r->replicas[i].remote = &remotes[i];
	for (unsigned i = 0; i < MANY - 2; i++)
		remotes[i].manner = TAKES_NOTHING;
	remotes[MANY - 2].manner = TAKES_TIME;
	repl_lose(r, MANY - 1, REPL_E_LOST, "gone", clock_deadline(800));
	assert_int_equal(atomic_load(&r->replicas[0].lost), REPL_E_TIMEOUT);
	assert_int_equal(atomic_load(&r->replicas[MANY - 2].lost), 0);
	assert_true(current(r, MANY - 2));
	set_free(r);
}

static void
one_that_takes_no_request_takes_no_other_with_it(void **state)
{
	(void)state;
	hanging_takes_no_other_with_it(TAKES_NOTHING);
}

/* However many hang: all are given up at once, and there is time for those that are well. */
static void
all_that_hang_are_given_up_by_one_deadline(void **state)
{
	struct repl *r = set_new();
	uint64_t begin_ns = clock_now_ns();

	(void)state;
	remotes[0].manner = remotes[1].manner = HANGS;
	assert_int_equal(repl_advance(r, begin_ns + 1000 * NS_PER_MS, NULL), 0);
	assert_int_not_equal(atomic_load(&r->replicas[0].lost), 0);
	assert_int_not_equal(atomic_load(&r->replicas[1].lost), 0);
	assert_int_equal(atomic_load(&r->replicas[2].lost), 0);
	assert_true(current(r, 2));
	assert_true(clock_now_ns() <= begin_ns + 750 * NS_PER_MS);
	set_free(r);
}

/* Before there are keepers others ping meanwhile, as keepers do: their requests wait for that. */
static void
answers_are_taken_as_they_come(void **state)
{
	struct repl *r = set_new();
	struct remote_mark marks[REPLICAS] = {{.state = SIDECAR_UP_TO_DATE}};
	uint64_t begin_ns = clock_now_ns();

	(void)state;
	remotes[0].manner = HANGS;
	assert_true(advance_take(r, 7, marks, begin_ns + 1000 * NS_PER_MS));
	assert_true(remotes[0].taken_ns >= begin_ns + 1000 * NS_PER_MS);
	assert_true(remotes[1].taken_ns <= begin_ns + 100 * NS_PER_MS);
	assert_true(remotes[2].taken_ns <= begin_ns + 100 * NS_PER_MS);
	set_free(r);
}

/* This machine's disk takes longer than the call may: the targets have nothing to do with that. */
static void
a_slow_disk_here_takes_no_replica_with_it(void **state)
{
	struct repl *r = set_new();

	(void)state;
	store_ns = 300 * NS_PER_MS;
	remotes[1].manner = remotes[2].manner = TAKES_TIME;
	repl_lose(r, 0, REPL_E_LOST, "gone", clock_deadline(200));
	assert_int_equal(atomic_load(&r->replicas[1].lost), 0);
	assert_int_equal(atomic_load(&r->replicas[2].lost), 0);
	assert_true(current(r, 1) && current(r, 2));
	set_free(r);
}

/* A growth has op-timeout, of which a loss has but a part, and is answered first. */
static struct repl *
set_that_grows(unsigned replica, unsigned ms)
{
	struct repl *r = set_new();

	remotes[replica].manner = GROWS;
	remotes[replica].grown_ns = clock_deadline(ms);
	atomic_store(&r->replicas[replica].grows_until_ns, clock_deadline(config.op_timeout_ms));
	return r;
}

static void
one_that_grows_is_told_behind_that(void **state)
{
	struct repl *r = set_that_grows(1, 600);
	struct calltime t = calltime_begin(&r->local.disk, clock_now_ns());

	(void)state;
	repl_lose(r, 0, REPL_E_LOST, "gone", repl_loss_deadline(r));
	assert_true(clock_now_ns() >= remotes[1].grown_ns);
	for (unsigned i = 1; i < REPLICAS; i++) {
		assert_int_equal(atomic_load(&r->replicas[i].lost), 0);
		assert_true(current(r, i));
	}
	/* The others do not wait for it, and calls have the time that it has taken as well. */
	assert_true(remotes[2].taken_ns < remotes[1].grown_ns);
	assert_true(calltime_end(&r->local.disk, &t, 1) > remotes[1].grown_ns);
	set_free(r);
}

/* Labelled as it was before, it would count for none of the drains that wait for the record. */
static void
one_that_grows_is_told_what_it_has_then(void **state)
{
	struct repl *r = set_that_grows(1, 600);

	(void)state;
	drains = 2;
	drains_had[0] = drains_had[2] = drains;
	drains_had[1] = 1;
	repl_lose(r, 0, REPL_E_LOST, "gone", repl_loss_deadline(r));
	assert_true(current(r, 1));
	assert_int_equal(remotes[1].state, SIDECAR_UP_TO_DATE);
	assert_int_equal(atomic_load(&r->replicas[1].behind), 0);
	drains = drains_had[0] = drains_had[1] = drains_had[2] = 0;
	set_free(r);
}

static void
one_that_does_not_end_to_grow_takes_no_other_with_it(void **state)
{
	struct repl *r = set_that_grows(1, 10 * config.op_timeout_ms);
	uint64_t until_ns = clock_deadline(config.op_timeout_ms);

	(void)state;
	repl_lose(r, 0, REPL_E_LOST, "gone", repl_loss_deadline(r));
	assert_int_equal(atomic_load(&r->replicas[1].lost), REPL_E_TIMEOUT);
	assert_int_equal(atomic_load(&r->replicas[2].lost), 0);
	assert_true(current(r, 2));
	assert_true(clock_now_ns() <= until_ns + 10 * NS_PER_MS);
	set_free(r);
}

static void
laggard_that_grows_is_labelled_later(void **state)
{
	struct repl *r = set_that_grows(2, 600);

	(void)state;
	atomic_store(&r->replicas[2].behind, 1);
	drains_had[2] = 1;
	repl_label(r, 2, clock_deadline(100), repl_loss_deadline(r));
	assert_int_equal(atomic_load(&r->replicas[2].lost), 0);
	assert_true(clock_now_ns() < remotes[2].grown_ns);
	assert_int_equal(atomic_load(&r->replicas[2].behind), 1);
	atomic_store(&r->replicas[2].grows_until_ns, 0);
	atomic_store(&clock_ns, remotes[2].grown_ns);
	repl_label(r, 2, clock_deadline(100), repl_loss_deadline(r));
	assert_int_equal(atomic_load(&r->replicas[2].lost), 0);
	assert_int_equal(atomic_load(&r->replicas[2].behind), 0);
	drains_had[2] = 0;
	set_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_does_not_answer_takes_no_other_with_it),
		cmocka_unit_test(one_that_takes_no_request_takes_no_other_with_it),
		cmocka_unit_test(one_that_takes_no_request_leaves_time_to_one_that_is_asked),
		cmocka_unit_test(several_that_take_no_request_leave_time_for_an_answer),
		cmocka_unit_test(all_that_hang_are_given_up_by_one_deadline),
		cmocka_unit_test(answers_are_taken_as_they_come),
		cmocka_unit_test(a_slow_disk_here_takes_no_replica_with_it),
		cmocka_unit_test(one_that_grows_is_told_behind_that),
		cmocka_unit_test(one_that_grows_is_told_what_it_has_then),
		cmocka_unit_test(one_that_does_not_end_to_grow_takes_no_other_with_it),
		cmocka_unit_test(laggard_that_grows_is_labelled_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
