/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy of a whole pool is told to the lane by and by: whoever makes it comes back between two
 * ranges, to be heard by the target and to be interrupted, however slow the link.
 */
#include "unit.h"

#include <stdio.h>

#include "../../librepl/src/push.c"

#define MIB  (1ULL << 20)
#define SIZE (256 * MIB)

static struct lane lane;
static bool rma;                        /* the pool is in its reach */
static unsigned room;                   /* for writes */
static uint64_t noted, most, next, sum; /* bytes: not yet begun, ...; where the next range begins */

struct lane *
remote_lane(struct remote *r, unsigned i)
{
	(void)r;
	assert_int_equal(i, 0);
	return &lane;
}

static struct replica_info info;

const struct replica_info *
remote_info(const struct remote *r)
{
	(void)r;
	return &info;
}

unsigned
remote_op_timeout_ms(const struct remote *r)
{
	(void)r;
	return 1000;
}

void
lane_bind(struct lane *l, const void *mem)
{
	(void)l;
	(void)mem;
}

bool
lane_done(const struct lane *l)
{
	return l->phase == LANE_IDLE;
}

bool
lane_posted(const struct lane *l)
{
	return l->phase != LANE_POST_FIRST;
}

bool
lane_has_room(const struct lane *l)
{
	(void)l;
	return room > 0;
}

void
lane_begin(struct lane *l, enum lane_kind kind, uint64_t off, uint64_t len)
{
	assert_int_equal(kind, LANE_SETTLE);
	assert_int_equal(l->phase, LANE_IDLE);
	assert_int_equal(off + len, 0);
	l->phase = LANE_POST_FIRST;
}

static unsigned breaths, last; /* the last one ends the wait; 0: none does */

static int
take(void *arg, struct err *e)
{
	assert_ptr_equal(arg, &breaths);
	return ++breaths == last ? err_set(e, REPL_E_FAILED, "enough") : 0;
}

/* As little as until() asks for, with a breath before each step. */
int
lane_run_while_moving(struct lane *l, bool (*until)(const struct lane *), uint64_t stall_ns,
		      const struct breath *breath, struct err *e)
{
	int rc = 0;

	assert_int_equal(stall_ns, 1000 * NS_PER_MS);
	while (!until(l)) {
		rc = breath_take(breath, e);
		if (rc)
			break;
		if (room == 0) {
			room = 1;
		} else if (l->phase == LANE_POST_FIRST) {
			l->phase = LANE_AWAIT;
			l->todo.count = 0;
			noted = 0;
		} else {
			l->phase = LANE_IDLE;
		}
	}
	return rc;
}

int
lane_flush(struct lane *l, uint64_t off, uint64_t len)
{
	assert_int_equal(off, next);
	assert_int_equal(l->phase, LANE_IDLE);
	next = off + len;
	sum += len;
	if (rma && room > 0) {
		room--;
		return 0;
	}
	l->todo.count = 1;
	noted += len;
	most = noted > most ? noted : most;
	return 0;
}

static void
some_begin(struct push *p, struct err *e)
{
	const struct breath breath = {.take = take, .arg = &breaths};

	err_clear(e);
	rma = false;
	room = 2;
	noted = next = sum = 0;
	breaths = last = 0;
	memset(&lane, 0, sizeof(lane));
	push_begin(p, NULL, 0, NULL, breath);
	assert_int_equal(push_range(p, 0, MIB, e), 0);
}

static void
push_all(bool by_rma)
{
	struct push p;
	struct err e;

	err_clear(&e);
	rma = by_rma;
	room = 2;
	noted = most = next = sum = 0;
	memset(&lane, 0, sizeof(lane));
	push_begin(&p, NULL, 0, NULL, (struct breath){0});
	assert_int_equal(push_range(&p, 0, SIZE / 2, &e), 0);
	for (uint64_t off = SIZE / 2; off < SIZE; off += MIB / 4)
		assert_int_equal(push_range(&p, off, MIB / 4, &e), 0);
	assert_int_equal(push_settle(&p, &e), 0);
	assert_int_equal(sum, SIZE);
	assert_int_equal(noted, 0);
}

static void
test_writes_go_as_there_is_room(void **state)
{
	(void)state;
	push_all(true);
	assert_int_equal(most, 0);
}

static void
test_messages_do_not_pile_up(void **state)
{
	(void)state;
	push_all(false);
	assert_in_range(most, MIB, 16 * MIB);
}

/* Twice, since a push goes on after it has settled. */
static void
test_whoever_waits_breathes(void **state)
{
	struct push p;
	struct err e;

	(void)state;
	some_begin(&p, &e);
	for (unsigned times = 1; times <= 2; times++) {
		assert_int_equal(push_settle(&p, &e), 0);
		assert_in_range(breaths, times, 4 * times);
		assert_int_equal(push_range(&p, next, MIB, &e), 0);
	}
}

static void
test_a_breath_ends_the_wait(void **state)
{
	struct push p;
	struct err e;

	(void)state;
	some_begin(&p, &e);
	last = 1;
	assert_int_equal(push_settle(&p, &e), REPL_E_FAILED);
	assert_string_equal(e.text, "enough");
}

/* The provider there does not say why a write has ended the lane. */
static void
test_a_disk_that_may_be_full_is_named(void **state)
{
	(void)state;
	for (unsigned sparse = 0; sparse < 2; sparse++) {
		struct push p;
		struct err e;

		info.meta.sparse = sparse;
		some_begin(&p, &e);
		info.meta.sparse = false;
		lane.status = REPL_E_LOST;
		(void)snprintf(lane.why, sizeof(lane.why), "closed by the target");
		assert_int_equal(push_range(&p, 0, MIB, &e), REPL_E_LOST);
		assert_non_null(strstr(e.text, "data lane: closed by the target"));
		assert_int_equal(strstr(e.text, "disk is full") != NULL, sparse);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whoever_waits_breathes),
		cmocka_unit_test(test_a_breath_ends_the_wait),
		cmocka_unit_test(test_writes_go_as_there_is_room),
		cmocka_unit_test(test_messages_do_not_pile_up),
		cmocka_unit_test(test_a_disk_that_may_be_full_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
