/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns: one at a time, and who has waited goes before who comes again. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#include "clock.h"
#include "turns.h"

#define SOON_NS (30 * NS_PER_S)

static struct turns turns;
static _Atomic bool abandoned;
static _Atomic unsigned order, inside, most;

static void
pause_ms(long ms)
{
	(void)nanosleep(&(const struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static bool
enter(void)
{
	return turns_enter(&turns, clock_now_ns() + SOON_NS);
}

struct waiter {
	pthread_t thread;
	unsigned place; /* 1: first */
};

static void *
wait_once(void *arg)
{
	struct waiter *w = arg;

	if (!enter())
		return NULL;
	w->place = atomic_fetch_add(&order, 1) + 1;
	turns_leave(&turns);
	return NULL;
}

static bool
somebody_waits(const struct turn **last)
{
	const struct turn *now;

	pthread_mutex_lock(&turns.lock);
	now = turns.last;
	pthread_mutex_unlock(&turns.lock);
	if (now == *last)
		return false;
	*last = now;
	return true;
}

static void
who_has_waited_goes_before_who_comes_again(void **state)
{
	struct waiter w[3] = {0};
	const struct turn *last = NULL;

	(void)state;
	assert_int_equal(turns_init(&turns, &abandoned), 0);
	atomic_store(&order, 0);
	assert_true(enter());
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&w[i].thread, NULL, wait_once, &w[i]), 0);
		while (!somebody_waits(&last))
			pause_ms(1);
	}
	pause_ms(5);
	turns_leave(&turns);
	/* Nobody gives the core away in between. */
	assert_true(enter());
	assert_int_equal(atomic_load(&order), 3);
	turns_leave(&turns);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
		assert_int_equal(w[i].place, i + 1);
	}
	turns_fini(&turns);
}

static void
who_gives_up_holds_nobody_up(void **state)
{
	struct waiter w = {0};
	const struct turn *last = NULL;
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(turns_init(&turns, &abandoned), 0);
	atomic_store(&order, 0);
	assert_true(enter());
	begin_ns = clock_now_ns();
	assert_false(turns_enter(&turns, begin_ns + 5 * NS_PER_MS));
	assert_true(clock_now_ns() >= begin_ns + 5 * NS_PER_MS);
	assert_false(turns_enter(&turns, 0));
	assert_int_equal(pthread_create(&w.thread, NULL, wait_once, &w), 0);
	while (!somebody_waits(&last))
		pause_ms(1);
	assert_false(turns_enter(&turns, 0));
	turns_leave(&turns);
	assert_int_equal(pthread_join(w.thread, NULL), 0);
	assert_int_equal(w.place, 1);
	assert_true(enter());
	turns_leave(&turns);
	turns_fini(&turns);
}

static void *
take_many(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 2000; i++) {
		unsigned now;

		if (!enter())
			return NULL;
		now = atomic_fetch_add(&inside, 1) + 1;
		if (now > atomic_load(&most))
			atomic_store(&most, now);
		atomic_fetch_add(&order, 1);
		atomic_fetch_sub(&inside, 1);
		turns_leave(&turns);
	}
	return NULL;
}

static void
one_at_a_time(void **state)
{
	pthread_t thread[4];

	(void)state;
	assert_int_equal(turns_init(&turns, &abandoned), 0);
	atomic_store(&order, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_many, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(atomic_load(&order), 8000);
	assert_int_equal(atomic_load(&most), 1);
	turns_fini(&turns);
}

/* A turn takes as long as a target that hangs is waited for: the others sleep. */
static void
a_long_turn_costs_nobody_a_core(void **state)
{
	struct waiter w[8] = {0};
	struct rusage before, after;

	(void)state;
	assert_int_equal(turns_init(&turns, &abandoned), 0);
	atomic_store(&order, 0);
	assert_true(enter());
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&w[i].thread, NULL, wait_once, &w[i]), 0);
	pause_ms(200);
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	pause_ms(500);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 0, 8000);
	turns_leave(&turns);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
	assert_int_equal(atomic_load(&order), 8);
	turns_fini(&turns);
}

static void *
enter_once(void *arg)
{
	*(bool *)arg = enter();
	return NULL;
}

/* Nobody is there who would give it back, or the lock. */
static void
a_child_that_comes_back_waits_for_nobody(void **state)
{
	bool got = true, waits = false;
	pthread_t thread;

	(void)state;
	assert_int_equal(turns_init(&turns, &abandoned), 0);
	assert_true(enter());
	assert_int_equal(pthread_create(&thread, NULL, enter_once, &got), 0);
	while (!waits) {
		pthread_mutex_lock(&turns.lock);
		waits = turns.first != NULL;
		pthread_mutex_unlock(&turns.lock);
	}
	pthread_mutex_lock(&turns.lock);
	atomic_store(&abandoned, true);
	(void)pthread_join(thread, NULL);
	assert_false(got);
	turns_leave(&turns);
	assert_false(enter());
	pthread_mutex_unlock(&turns.lock);
	atomic_store(&abandoned, false);
	turns_fini(&turns);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_waited_goes_before_who_comes_again),
		cmocka_unit_test(who_gives_up_holds_nobody_up),
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(a_long_turn_costs_nobody_a_core),
		cmocka_unit_test(a_child_that_comes_back_waits_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
