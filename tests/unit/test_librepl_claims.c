/* SPDX-License-Identifier: BSD-3-Clause */
/* Claims: no byte is on two lanes' way at once, who waits does so in turn, and nobody for ever. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "claims.h"
#include "clock.h"

#define LANES   4U
#define SOON_NS (30 * NS_PER_S)

static struct claims claims;
static _Atomic bool abandoned;

static int
claims_new(void **state)
{
	(void)state;
	return claims_init(&claims, LANES, &abandoned);
}

static int
claims_end(void **state)
{
	(void)state;
	claims_fini(&claims);
	return 0;
}

static void
set_of(struct rangeset *s, uint64_t off, uint64_t len)
{
	rangeset_clear(s);
	assert_int_equal(rangeset_add(s, off, len), 0);
}

static enum claims_got
take(unsigned lane, const struct rangeset *s, uint64_t ns)
{
	unsigned other;

	return claims_take(&claims, lane, s, NULL, 0, ns ? clock_now_ns() + ns : 0, &other);
}

static void
what_lies_apart_needs_no_waiting(void **state)
{
	const struct range word = {.off = 64, .len = 8}, none = {.off = 100, .len = 0};
	struct rangeset a, b, empty;
	unsigned other;

	(void)state;
	set_of(&a, 0, 64);
	assert_int_equal(rangeset_add(&a, 4096, 64), 0);
	set_of(&b, 128, 3968);
	rangeset_clear(&empty);
	assert_int_equal(take(0, &a, 0), CLAIMS_TAKEN);
	assert_int_equal(take(1, &b, 0), CLAIMS_TAKEN);
	assert_int_equal(claims_take(&claims, 2, &empty, &word, 1, 0, &other), CLAIMS_TAKEN);
	assert_int_equal(claims_take(&claims, 3, &empty, &none, 1, 0, &other), CLAIMS_TAKEN);
	claims_drop(&claims, 3);
	assert_true(claims_early(&claims, 3, 72, 56));
	for (unsigned i = 0; i < LANES; i++)
		claims_drop(&claims, i);
	assert_int_equal(claims.any, 0);
}

static void
one_byte_in_common_is_too_many(void **state)
{
	const struct range word = {.off = 4152, .len = 8};
	struct rangeset a, b, empty;
	unsigned other;

	(void)state;
	set_of(&a, 0, 64);
	assert_int_equal(rangeset_add(&a, 4096, 64), 0);
	set_of(&b, 63, 3000);
	rangeset_clear(&empty);
	assert_int_equal(take(2, &a, 0), CLAIMS_TAKEN);
	assert_int_equal(take(1, &b, 0), CLAIMS_LATE);
	assert_int_equal(claims_take(&claims, 3, &empty, &word, 1, 0, &other), CLAIMS_LATE);
	assert_int_equal(other, 2);
	assert_false(claims_early(&claims, 1, 4159, 1));
	assert_true(claims_early(&claims, 1, 4160, 1));
	claims_drop(&claims, 1);
	/* Nothing is left of those. */
	assert_int_equal(claims.any, 1U << 2);
	claims_drop(&claims, 2);
	/* The other way round: of a call, more of it, against a set. */
	assert_int_equal(claims_take(&claims, 3, &empty, &word, 1, 0, &other), CLAIMS_TAKEN);
	assert_int_equal(take(2, &a, 0), CLAIMS_LATE);
	claims_drop(&claims, 3);
	assert_int_equal(take(2, &a, 0), CLAIMS_TAKEN);
	claims_drop(&claims, 2);
}

/* Whose thread may not come back to it for long. */
static void
what_was_written_early_is_ended_by_who_is_held_up(void **state)
{
	struct rangeset a, b;
	unsigned other = LANES;

	(void)state;
	assert_true(claims_early(&claims, 0, 0, 65536));
	assert_true(claims_early(&claims, 1, 65536, 65536));
	set_of(&a, 65000, 8);
	set_of(&b, 65000, 1000);
	assert_int_equal(claims_take(&claims, 2, &a, NULL, 0, clock_now_ns() + SOON_NS, &other),
			 CLAIMS_END_OTHER);
	assert_int_equal(other, 0);
	/* It has something on its way itself, for which others may wait. */
	assert_int_equal(claims_take(&claims, 1, &b, NULL, 0, clock_now_ns() + SOON_NS, &other),
			 CLAIMS_END_OWN);
	assert_true(claims_has_early(&claims, 1));
	/* It may give up again what it has claimed, but not what it has written. */
	set_of(&a, 131072, 8);
	assert_int_equal(take(1, &a, 0), CLAIMS_TAKEN);
	claims_yield(&claims, 1);
	assert_true(claims_has_early(&claims, 1));
	assert_true(claims_early(&claims, 2, 131072, 8));
	assert_false(claims_early(&claims, 2, 131064, 8));
	claims_drop(&claims, 2);
	set_of(&a, 65000, 8);
	claims_drop(&claims, 1);
	assert_false(claims_has_early(&claims, 1));
	assert_int_equal(claims_take(&claims, 1, &b, NULL, 0, clock_now_ns() + SOON_NS, &other),
			 CLAIMS_END_OTHER);
	claims_drop(&claims, 0);
	assert_int_equal(take(1, &b, SOON_NS), CLAIMS_TAKEN);
	/* A lane's own is in nobody's way but of others. */
	claims_drop(&claims, 1);
	assert_true(claims_early(&claims, 2, 65000, 8));
	assert_int_equal(take(2, &a, 0), CLAIMS_TAKEN);
	claims_drop(&claims, 2);
}

static void
who_waits_for_long_is_told(void **state)
{
	struct rangeset a;

	(void)state;
	set_of(&a, 0, 8);
	assert_int_equal(take(0, &a, 0), CLAIMS_TAKEN);
	assert_int_equal(take(1, &a, 20 * NS_PER_MS), CLAIMS_LATE);
	assert_int_equal(claims.any, 1);
	claims_drop(&claims, 0);
	assert_int_equal(claims.any, 0);
}

/* ---- threads ---- */

static _Atomic unsigned order;

struct waiter {
	pthread_t thread;
	unsigned lane, place;
	uint64_t off, len;
};

static void *
wait_once(void *arg)
{
	struct waiter *w = arg;
	struct rangeset s;

	set_of(&s, w->off, w->len);
	if (take(w->lane, &s, SOON_NS) != CLAIMS_TAKEN)
		return NULL;
	w->place = atomic_fetch_add(&order, 1) + 1;
	claims_drop(&claims, w->lane);
	return NULL;
}

static void
begin_waiting(struct waiter *w)
{
	unsigned waiting = 0;

	assert_int_equal(pthread_create(&w->thread, NULL, wait_once, w), 0);
	while (waiting < w->lane) {
		pthread_mutex_lock(&claims.lock);
		waiting = claims.waiting;
		pthread_mutex_unlock(&claims.lock);
	}
}

/* The second waits for the first one, though not for what that waits for. */
static void
they_go_in_the_order_in_which_they_came(void **state)
{
	struct waiter first = {.lane = 1, .off = 0, .len = 4096};
	struct waiter second = {.lane = 2, .off = 4000, .len = 4096};
	struct rangeset a;

	(void)state;
	set_of(&a, 0, 8);
	assert_int_equal(take(0, &a, 0), CLAIMS_TAKEN);
	begin_waiting(&first);
	begin_waiting(&second);
	/* Nor does anything overtake them. */
	assert_false(claims_early(&claims, 3, 8000, 8));
	claims_drop(&claims, 0);
	(void)pthread_join(first.thread, NULL);
	(void)pthread_join(second.thread, NULL);
	assert_int_equal(first.place, 1);
	assert_int_equal(second.place, 2);
}

#define AREA   64U
#define ROUNDS 20000U

static _Atomic uint8_t users[AREA];
static _Atomic unsigned shared, late;

static void *
contend(void *arg)
{
	unsigned lane = (unsigned)(uintptr_t)arg;
	uint64_t random = 88172645463325252ULL + lane;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct rangeset s;
		uint64_t off, len;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		off = random % (AREA - 8);
		len = 1 + (random >> 32) % 8;
		set_of(&s, off, len);
		if (take(lane, &s, SOON_NS) != CLAIMS_TAKEN) {
			atomic_fetch_add(&late, 1);
			continue;
		}
		for (uint64_t b = off; b < off + len; b++)
			shared += atomic_fetch_add(&users[b], 1) != 0;
		for (uint64_t b = off; b < off + len; b++)
			atomic_fetch_sub(&users[b], 1);
		claims_drop(&claims, lane);
	}
	return NULL;
}

static void
no_byte_is_claimed_twice(void **state)
{
	pthread_t thread[LANES];

	(void)state;
	for (unsigned i = 0; i < LANES; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, contend, (void *)(uintptr_t)i),
				 0);
	for (unsigned i = 0; i < LANES; i++)
		(void)pthread_join(thread[i], NULL);
	assert_int_equal(atomic_load(&shared), 0);
	assert_int_equal(atomic_load(&late), 0);
	assert_int_equal(claims.any, 0);
}

static void *
take_in_time(void *arg)
{
	struct rangeset s;

	set_of(&s, 0, 4096);
	*(enum claims_got *)arg = take(1, &s, SOON_NS);
	return NULL;
}

/* Nobody is there who would end what it waits for, or give the lock back. */
static void
a_child_that_comes_back_waits_for_nobody(void **state)
{
	enum claims_got got = CLAIMS_LATE;
	struct rangeset s;
	unsigned waiting = 0;
	pthread_t thread;

	(void)state;
	set_of(&s, 0, 4096);
	assert_int_equal(take(0, &s, 0), CLAIMS_TAKEN);
	assert_int_equal(pthread_create(&thread, NULL, take_in_time, &got), 0);
	while (waiting == 0) {
		pthread_mutex_lock(&claims.lock);
		waiting = claims.waiting;
		pthread_mutex_unlock(&claims.lock);
	}
	atomic_store(&abandoned, true);
	(void)pthread_join(thread, NULL);
	assert_int_equal(got, CLAIMS_TAKEN);
	/* It may be left as whoever had it has it. */
	claims_abandon(&claims);
	pthread_mutex_lock(&claims.lock);
	assert_int_equal(take(2, &s, SOON_NS), CLAIMS_TAKEN);
	assert_false(claims_early(&claims, 3, 0, 8));
	assert_false(claims_has_early(&claims, 3));
	claims_yield(&claims, 2);
	claims_drop(&claims, 0);
	pthread_mutex_unlock(&claims.lock);
	atomic_store(&abandoned, false);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lies_apart_needs_no_waiting),
		cmocka_unit_test(one_byte_in_common_is_too_many),
		cmocka_unit_test(what_was_written_early_is_ended_by_who_is_held_up),
		cmocka_unit_test(who_waits_for_long_is_told),
		cmocka_unit_test(they_go_in_the_order_in_which_they_came),
		cmocka_unit_test(no_byte_is_claimed_twice),
		cmocka_unit_test(a_child_that_comes_back_waits_for_nobody),
	};

	return cmocka_run_group_tests(tests, claims_new, claims_end);
}
