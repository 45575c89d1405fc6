/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of threads that append one at a time leads, all others are told the truth about theirs and
 * none waits for ever; a leader lets those come first whom the last group has served.
 */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "logturn.h"
#include "spin.h"

#define THREADS 6U
#define APPENDS 3000U

static struct logturn turn;
static _Atomic bool abandoned;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next, durable; /* guarded by it */
static bool failed;
static _Atomic unsigned leaders, groups;
static uint64_t fail_at; /* the group that holds this position fails */

static _Atomic unsigned yields;
static uint64_t away_ns; /* what giving the core away takes */

/* In the place of libc's. */
int
sched_yield(void)
{
	uint64_t end = clock_now_ns() + away_ns;

	atomic_fetch_add(&yields, 1);
	while (away_ns && clock_now_ns() < end)
		;
	return 0;
}

static int
fresh(void **state)
{
	(void)state;
	atomic_store(&abandoned, false);
	logturn_init(&turn, &abandoned);
	next = durable = away_ns = 0;
	failed = false;
	fail_at = UINT64_MAX;
	atomic_store(&groups, 0);
	atomic_store(&yields, 0);
	return 0;
}

/* Under the lock. Some groups take so long that those who wait go to sleep. */
static void
lead(void)
{
	uint64_t to = next;

	if (!failed) {
		assert_int_equal(atomic_fetch_add(&leaders, 1), 0);
		assert_true(to > durable);
		pthread_mutex_unlock(&lock);
		if (atomic_fetch_add(&groups, 1) % 50 == 0)
			(void)usleep(300);
		pthread_mutex_lock(&lock);
		assert_int_equal(atomic_fetch_sub(&leaders, 1), 1);
		if (to >= fail_at)
			failed = true;
		else
			durable = to;
	}
	logturn_end(&turn, &lock, durable, failed);
}

/* False: it will not be durable. */
static bool
append(void)
{
	enum logturn_role role;
	uint64_t end;
	bool is;

	pthread_mutex_lock(&lock);
	if (failed) {
		pthread_mutex_unlock(&lock);
		return false;
	}
	end = ++next;
	role = logturn_await(&turn, &lock, end);
	if (role == LOGTURN_LEAD)
		lead();
	pthread_mutex_lock(&lock);
	is = durable >= end;
	assert_true(is || failed);
	if (role != LOGTURN_LEAD)
		assert_int_equal(is, role == LOGTURN_DURABLE);
	pthread_mutex_unlock(&lock);
	return is;
}

static void *
writer(void *arg)
{
	unsigned *done = arg;

	while (*done < APPENDS && append())
		(*done)++;
	return NULL;
}

static void
run_writers(unsigned *done)
{
	pthread_t t[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		done[i] = 0;
		assert_int_equal(pthread_create(&t[i], NULL, writer, &done[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
}

static void
each_append_becomes_durable(void **state)
{
	unsigned done[THREADS];

	(void)state;
	run_writers(done);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(done[i], APPENDS);
	assert_int_equal(durable, THREADS * APPENDS);
	assert_false(turn.leading);
	assert_null(turn.first);
	assert_int_equal(turn.waiting, 0);
}

/* What was placed before the failure is told to be durable, what was after is not. */
static void
all_hear_of_a_failure(void **state)
{
	unsigned done[THREADS], sum = 0;

	(void)state;
	fail_at = THREADS * APPENDS / 2;
	run_writers(done);
	for (unsigned i = 0; i < THREADS; i++)
		sum += done[i];
	assert_int_equal(sum, durable);
	assert_true(durable < fail_at);
	assert_null(turn.first);
}

/* The threads of one group after the other, as far as a single one can play them. */
static void
lead_one(unsigned served)
{
	turn.served = served;
	pthread_mutex_lock(&lock);
	next++;
	atomic_store(&yields, 0);
	assert_int_equal(logturn_await(&turn, &lock, next), LOGTURN_LEAD);
	lead();
}

static void
those_of_the_last_group_are_let_first(void **state)
{
	(void)state;
	lead_one(1);
	assert_int_equal(atomic_load(&yields), 0);
	lead_one(4);
	assert_true(atomic_load(&yields) > 0);
	/* They have not come: the next leader expects nobody. */
	assert_int_equal(turn.served, 1);
}

static void
beside_those_who_compute_nobody_is_waited_for(void **state)
{
	unsigned waits = 0;

	(void)state;
	away_ns = SPIN_COMPUTED_NS;
	lead_one(4);
	assert_int_equal(atomic_load(&yields), 1);
	away_ns = 0;
	for (lead_one(4); waits < 10000 && atomic_load(&yields) == 0; waits++)
		lead_one(4);
	assert_in_range(waits, 100, 1000);
}

static void *
follower(void *arg)
{
	enum logturn_role *role = arg;

	pthread_mutex_lock(&lock);
	*role = logturn_await(&turn, &lock, ++next);
	return NULL;
}

static bool
somebody_waits(void)
{
	bool waits;

	pthread_mutex_lock(&lock);
	waits = turn.waiting > 0;
	pthread_mutex_unlock(&lock);
	return waits;
}

/* The child of a fork comes back to its parent's call, and who leads is not there. */
static void
nobody_waits_who_has_abandoned_it(void **state)
{
	enum logturn_role role = LOGTURN_DURABLE;
	pthread_t t;

	(void)state;
	turn.leading = true;
	assert_int_equal(pthread_create(&t, NULL, follower, &role), 0);
	while (!somebody_waits())
		(void)usleep(1000);
	atomic_store(&abandoned, true);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(role, LOGTURN_FAILED);
	/* Nor for the lock. */
	pthread_mutex_lock(&lock);
	turn.leading = false;
	turn.served = 3;
	assert_int_equal(logturn_await(&turn, &lock, ++next), LOGTURN_FAILED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_append_becomes_durable, fresh),
		cmocka_unit_test_setup(all_hear_of_a_failure, fresh),
		cmocka_unit_test_setup(nobody_waits_who_has_abandoned_it, fresh),
		cmocka_unit_test_setup(those_of_the_last_group_are_let_first, fresh),
		cmocka_unit_test_setup(beside_those_who_compute_nobody_is_waited_for, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
