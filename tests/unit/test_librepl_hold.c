/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls and the hold have turns: it comes about beside calls that last for long, one behind the
 * other and on several lanes, none of which fails for it; and it ends when they have waited.
 */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "clock.h"
#include "hold.h"
#include "repl_lanes.h"

#define OP_TIMEOUT_MS 1000U
#define LANES         3U
#define CALL_MS       (OP_TIMEOUT_MS * 45 / 100)

static struct repl_config cfg;
static struct lane_slot slots[LANES];
static struct repl *repl;
static _Atomic bool stop;
static _Atomic unsigned inside, refused, calls, breaths;
static unsigned breaths_max;

static int
setup(void **state)
{
	(void)state;
	repl = calloc(1, sizeof(*repl));
	cfg.op_timeout_ms = OP_TIMEOUT_MS;
	repl->cfg = &cfg;
	repl->lane_count = LANES;
	repl->slots = slots;
	atomic_store(&stop, false);
	atomic_store(&refused, 0);
	atomic_store(&calls, 0);
	atomic_store(&breaths, 0);
	breaths_max = 0;
	return pthread_mutex_init(&repl->grow_lock, NULL);
}

static int
teardown(void **state)
{
	(void)state;
	(void)pthread_mutex_destroy(&repl->grow_lock);
	free(repl);
	return 0;
}

static void
pause_ms(unsigned ms)
{
	(void)nanosleep(&(const struct timespec){.tv_sec = ms / 1000,
						 .tv_nsec = (long)(ms % 1000) * 1000000},
			NULL);
}

static int
breathe(void *arg, struct err *e)
{
	(void)arg;
	if (atomic_fetch_add(&breaths, 1) + 1 == breaths_max)
		return err_set(e, REPL_E_LOST, "no air");
	return 0;
}

static int
take(unsigned ms, _Atomic int *flag, struct err *e)
{
	const struct hold_wait wait = {
		.deadline_ns = clock_deadline(ms), .flag = flag, .breath = {.take = breathe}};

	return hold_take(repl, 0, &wait, e);
}

/* Drains that last for nearly half of op-timeout, as fast as they are let. */
static void *
call_on(void *arg)
{
	unsigned lane = *(unsigned *)arg;

	pause_ms(lane * CALL_MS / LANES);
	while (!atomic_load(&stop)) {
		if (lane_enter(repl, lane, NULL)) {
			atomic_fetch_add(&refused, 1);
			continue;
		}
		atomic_fetch_add(&inside, 1);
		pause_ms(CALL_MS);
		atomic_fetch_sub(&inside, 1);
		lane_leave(repl, lane);
		atomic_fetch_add(&calls, 1);
	}
	return NULL;
}

static void
it_comes_about_beside_long_calls(void **state)
{
	unsigned lane[LANES] = {0, 1, 2};
	_Atomic int flag = 0;
	pthread_t thread[LANES];
	struct err e;

	(void)state;
	for (unsigned i = 0; i < LANES; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, call_on, &lane[i]), 0);
	for (unsigned i = 0; i < 3; i++) {
		unsigned before = atomic_load(&calls);

		while (atomic_load(&inside) < LANES)
			pause_ms(1);
		err_clear(&e);
		if (take(OP_TIMEOUT_MS, &flag, &e))
			fail_msg("%s", e.text);
		assert_int_equal(atomic_load(&inside), 0);
		/* Each lane's call was through, and no other began meanwhile. */
		assert_int_equal(atomic_load(&calls) - before, LANES);
		hold_release(repl);
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < LANES; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(atomic_load(&refused), 0);
	assert_int_equal(atomic_load(&flag), 0);
}

/* The same lock is for both. */
static void
who_has_the_lock_is_named(void **state)
{
	_Atomic int flag = 0, other = 0;
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(take(OP_TIMEOUT_MS, &flag, &e), 0);
	assert_int_equal(take(1, &other, &e), REPL_E_TIMEOUT);
	hold_release(repl);
	assert_non_null(strstr(e.text, "another replica"));
	assert_null(strstr(e.text, "repl_grow"));
	assert_int_equal(pthread_mutex_lock(&repl->grow_lock), 0);
	err_clear(&e);
	assert_int_equal(take(1, &flag, &e), REPL_E_TIMEOUT);
	assert_int_equal(pthread_mutex_unlock(&repl->grow_lock), 0);
	assert_non_null(strstr(e.text, "repl_grow()"));
}

static void *
call_once(void *arg)
{
	(void)arg;
	if (lane_enter(repl, 0, NULL))
		atomic_fetch_add(&refused, 1);
	else
		lane_leave(repl, 0);
	return NULL;
}

static void *
commit_once(void *arg)
{
	*(int *)arg = repl_commit(repl, 0);
	return NULL;
}

/* It is in no lane, and waits for all. */
static void
it_ends_when_a_commit_has_waited(void **state)
{
	_Atomic int flag = 0;
	uint64_t begin_ns;
	pthread_t thread;
	int rc = 1;
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(take(OP_TIMEOUT_MS, &flag, &e), 0);
	begin_ns = clock_now_ns();
	assert_int_equal(pthread_create(&thread, NULL, commit_once, &rc), 0);
	while (!atomic_load(&flag) && clock_now_ns() - begin_ns < 10 * NS_PER_S)
		pause_ms(1);
	hold_release(repl);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(flag, REPL_E_TIMEOUT);
	assert_int_equal(rc, 0);
}

/* Held, and its target is slow: the flag tells it to end. */
static void
it_ends_when_a_call_has_waited(void **state)
{
	_Atomic int flag = 0;
	uint64_t begin_ns, ns;
	pthread_t thread;
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(take(OP_TIMEOUT_MS, &flag, &e), 0);
	begin_ns = clock_now_ns();
	assert_int_equal(pthread_create(&thread, NULL, call_once, NULL), 0);
	while (!atomic_load(&flag))
		pause_ms(1);
	ns = clock_now_ns() - begin_ns;
	hold_release(repl);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(atomic_load(&refused), 0);
	assert_true(ns >= OP_TIMEOUT_MS * NS_PER_MS / 2);
	/* A call that is not through in time is in the way, and is not waited for for ever. */
	atomic_store(&flag, 0);
	assert_int_equal(lane_enter(repl, 1, &e), 0);
	begin_ns = clock_now_ns();
	assert_int_equal(take(60000, &flag, &e), REPL_E_TIMEOUT);
	assert_true(clock_now_ns() - begin_ns >= OP_TIMEOUT_MS * NS_PER_MS / 4 * 3);
	lane_leave(repl, 1);
	/* Nothing is wanted any more. */
	for (unsigned i = 0; i < LANES; i++) {
		assert_true(lane_borrow(repl, i, 0));
		lane_leave(repl, i);
	}
}

/* Its target does not bear silence, neither while calls end nor while the pool grows. */
static void
who_waits_for_it_breathes(void **state)
{
	_Atomic int flag = 0;
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(lane_enter(repl, 1, &e), 0);
	assert_int_equal(take(200, &flag, &e), REPL_E_TIMEOUT);
	assert_in_range(atomic_load(&breaths), 2, 20);
	/* What it says of the target ends the wait, and nothing is kept. */
	breaths_max = atomic_load(&breaths) + 2;
	assert_int_equal(take(OP_TIMEOUT_MS, &flag, &e), REPL_E_LOST);
	lane_leave(repl, 1);
	atomic_store(&breaths, 0);
	(void)pthread_mutex_lock(&repl->grow_lock);
	assert_int_equal(take(200, &flag, &e), REPL_E_TIMEOUT);
	assert_in_range(atomic_load(&breaths), 2, 20);
	(void)pthread_mutex_unlock(&repl->grow_lock);
	assert_int_equal(take(OP_TIMEOUT_MS, &flag, &e), 0);
	hold_release(repl);
}

/* A call that waits for a target that hangs, and who waits for its lane meanwhile. */
static void
to_wait_for_a_lane_costs_no_core(void **state)
{
	struct rusage before, after;

	(void)state;
	assert_int_equal(lane_enter(repl, 0, NULL), 0);
	assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
	assert_false(lane_borrow(repl, 0, clock_deadline(500)));
	assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
	assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 1, 1000);
	lane_leave(repl, 0);
}

/* Who takes only what is free does not overtake it. */
static void
who_takes_what_is_free_stands_back(void **state)
{
	(void)state;
	lane_want(repl, 2, true);
	assert_false(lane_borrow(repl, 2, 0));
	lane_want(repl, 2, false);
	assert_true(lane_borrow(repl, 2, 0));
	lane_leave(repl, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_has_the_lock_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(it_comes_about_beside_long_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(it_ends_when_a_call_has_waited, setup, teardown),
		cmocka_unit_test_setup_teardown(it_ends_when_a_commit_has_waited, setup, teardown),
		cmocka_unit_test_setup_teardown(who_waits_for_it_breathes, setup, teardown),
		cmocka_unit_test_setup_teardown(to_wait_for_a_lane_costs_no_core, setup, teardown),
		cmocka_unit_test_setup_teardown(who_takes_what_is_free_stands_back, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
