/* SPDX-License-Identifier: BSD-3-Clause */
/* A waiter polls for a bounded time, and gives its core away at each poll while others poll for it.
 */
#include "unit.h"

#include "spin.h"

#define LONG_NS 10000000000ULL

#define READ_NS 10U /* what it takes to look at the clock */

static uint64_t now_ns = 1000000000;
static uint64_t away_ns; /* what giving the core away takes */
static bool switches;    /* ... because another thread has had it */
static unsigned yields;

/* In the place of libc's: what other programs have of the machine is no part of this. */
int
clock_gettime(clockid_t clock, struct timespec *at)
{
	(void)clock;
	now_ns += READ_NS;
	at->tv_sec = (time_t)(now_ns / NS_PER_S);
	at->tv_nsec = (long)(now_ns % NS_PER_S);
	return 0;
}

/* In the place of libc's. */
int
sched_yield(void)
{
	yields++;
	now_ns += away_ns;
	return 0;
}

/* In the place of libc's. */
int
getrusage(__rusage_who_t who, struct rusage *u)
{
	static long count;

	assert_int_equal(who, RUSAGE_THREAD);
	memset(u, 0, sizeof(*u));
	u->ru_nivcsw = count += switches;
	return 0;
}

/* Poll so often; how often the core was given away. */
static unsigned
poll_for(struct spin *s, unsigned polls)
{
	yields = 0;
	for (unsigned i = 0; i < polls; i++)
		assert_true(spin_again_for(s, LONG_NS));
	return yields;
}

static void
alone_it_keeps_its_core(void **state)
{
	struct spin s = {0};

	(void)state;
	away_ns = 0;
	assert_int_equal(poll_for(&s, 640), 10);
	assert_int_equal(s.shared, 0);
}

static void
beside_others_that_poll_it_gives_it_away(void **state)
{
	struct spin s = {0};

	(void)state;
	away_ns = 10000;
	switches = true;
	/* Once it may have been a thread of the kernel's. */
	assert_int_equal(poll_for(&s, 64), 1);
	assert_int_equal(s.shared, 0);
	away_ns = 0;
	assert_int_equal(poll_for(&s, 64), 1);
	away_ns = 10000;
	assert_int_equal(poll_for(&s, 64), 1);
	assert_int_equal(s.shared, 0);
	assert_int_equal(poll_for(&s, 64), 1);
	assert_int_equal(s.shared, SPIN_SHARED_WAITS);
	away_ns = 0;
	assert_int_equal(poll_for(&s, 10), 10);
	/* Each wait brings the end of that nearer. */
	for (unsigned i = 0; i < SPIN_SHARED_WAITS; i++)
		spin_reset(&s);
	assert_int_equal(s.shared, 0);
	assert_int_equal(poll_for(&s, 63), 0);
	spin_reset(&s);
	assert_int_equal(s.shared, 0);
}

/* An interrupt, or a host that runs something else. */
static void
what_only_takes_time_changes_nothing(void **state)
{
	struct spin s = {0};

	(void)state;
	away_ns = 10000;
	switches = true;
	(void)poll_for(&s, 64);
	s.shared = s.hits = 0;
	switches = false;
	assert_int_equal(poll_for(&s, 640), 10);
	assert_int_equal(s.shared, 0);
}

static void
beside_others_that_compute_it_does_not(void **state)
{
	struct spin s = {.shared = 5};

	(void)state;
	away_ns = 2 * SPIN_COMPUTED_NS;
	assert_int_equal(poll_for(&s, 1), 1);
	assert_int_equal(s.shared, 0);
	assert_int_equal(poll_for(&s, 64), 1);
	assert_int_equal(s.shared, 0);
}

static void
it_ends(void **state)
{
	struct spin s = {.shared = 1};
	uint64_t begin = clock_now_ns();

	(void)state;
	away_ns = 0;
	while (spin_again_for(&s, 1000000))
		;
	assert_true(clock_now_ns() - begin >= 1000000);
	spin_reset(&s);
	begin = clock_now_ns();
	while (spin_again_for(&s, 1000000))
		;
	assert_true(clock_now_ns() - begin >= 1000000);
}

/* The first poll starts the clock, and slow ones end it in time. */
static void
slow_polls_make_it_no_longer(void **state)
{
	struct spin s = {0};
	unsigned polls = 0;

	(void)state;
	away_ns = 0;
	do {
		now_ns += 20000;
		polls++;
	} while (spin_again_for(&s, 100000));
	assert_in_range(polls, 6, 6 + SPIN_CLOCK_MASK + 1);
}

/* How many polls of 20 us there are before it sleeps. */
static unsigned
slow_polls(struct spin *s, uint64_t limit_ns, unsigned most)
{
	unsigned polls = 0;

	do {
		now_ns += 20000;
		polls++;
	} while (polls < most && spin_again_for_answer(s, limit_ns));
	return polls;
}

static void
where_answers_take_a_while_it_polls_longer(void **state)
{
	struct spin s = {0};

	(void)state;
	away_ns = 0;
	/* The first one. */
	assert_in_range(slow_polls(&s, 1000000, 400), 50, 51 + SPIN_CLOCK_MASK + 1);
	spin_answered(&s, 1000000000);
	assert_true(s.more);
	assert_in_range(slow_polls(&s, 1000000, 400), 200, 201 + SPIN_CLOCK_MASK + 1);
	assert_true(clock_now_ns() - s.since_ns >= 4000000);
	/* Not on a core that others need. */
	spin_reset(&s);
	s.shared = 5;
	assert_in_range(slow_polls(&s, 1000000, 400), 50, 52);
	s.shared = 0;
	/* An answer that took longer is the last one that is waited for so long. */
	spin_answered(&s, 1);
	assert_false(s.more);
	assert_in_range(slow_polls(&s, 1000000, 400), 50, 51 + SPIN_CLOCK_MASK + 1);
}

static void
without_time_it_sleeps_at_once(void **state)
{
	struct spin s = {0};

	(void)state;
	away_ns = yields = 0;
	assert_false(spin_again_for(&s, 0));
	s.shared = 5;
	assert_false(spin_again_for(&s, 0));
	assert_int_equal(yields, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone_it_keeps_its_core),
		cmocka_unit_test(beside_others_that_poll_it_gives_it_away),
		cmocka_unit_test(what_only_takes_time_changes_nothing),
		cmocka_unit_test(beside_others_that_compute_it_does_not),
		cmocka_unit_test(it_ends),
		cmocka_unit_test(slow_polls_make_it_no_longer),
		cmocka_unit_test(where_answers_take_a_while_it_polls_longer),
		cmocka_unit_test(without_time_it_sleeps_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
