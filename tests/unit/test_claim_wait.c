/* SPDX-License-Identifier: BSD-3-Clause */
/* A drain that others have held up goes on when they are out of its way, however late. */
#include "unit.h"

#include <stdlib.h>
#include <time.h>

#include "../../librepl/src/calltime.c"
#include "../../librepl/src/claims.c"
#include "../../librepl/src/ownwait.c"
#include "../../librepl/src/repl_claim.c"

#define TIMEOUT_MS 20U
#define WRITER     1U

static struct repl_config cfg;
static struct lane lane0;
static unsigned ended;
static bool writes_again, held;
static int turn_rc;

/* ---- what is beside claims ---- */

struct lane *
lane_of(struct repl *r, unsigned replica, unsigned lane)
{
	(void)r;
	(void)replica;
	(void)lane;
	return &lane0;
}

void
lane_begin(struct lane *l, enum lane_kind kind, uint64_t off, uint64_t len)
{
	assert_ptr_equal(l, &lane0);
	assert_int_equal(kind, LANE_WRITTEN);
	assert_int_equal(off + len, 0);
}

bool
lane_done(const struct lane *l)
{
	(void)l;
	return true;
}

/* A target that hangs is given up when who waits for that has no time left. */
int
lanes_finish(struct repl *r, unsigned lane, bool (*until)(const struct lane *), struct err *e)
{
	const struct timespec nap = {.tv_nsec = (long)(2 * TIMEOUT_MS * NS_PER_MS)};

	(void)r;
	(void)until;
	(void)e;
	assert_int_equal(lane, WRITER);
	(void)nanosleep(&nap, NULL);
	ended++;
	return 0;
}

int
lane_take_turn(struct repl *r, unsigned lane, struct err *e)
{
	if (turn_rc)
		return err_set(e, turn_rc, "others have it");
	assert_false(r->slots[lane].has_turn);
	r->slots[lane].has_turn = true;
	return 0;
}

void
lane_leave_turn(struct repl *r, unsigned lane)
{
	r->slots[lane].has_turn = false;
}

int
lane_lend(struct repl *r, unsigned lane)
{
	assert_false(r->slots[lane].has_turn);
	return 1;
}

void
lane_again(struct repl *r, unsigned lane, int lent)
{
	(void)lane;
	assert_int_equal(lent, 1);
	if (writes_again)
		assert_true(claims_early(&r->claims, WRITER, 0, 4096));
}

bool
lane_borrow(struct repl *r, unsigned lane, uint64_t deadline_ns)
{
	(void)r;
	while (held && clock_now_ns() < deadline_ns)
		(void)nanosleep(&(const struct timespec){.tv_nsec = (long)NS_PER_MS}, NULL);
	return !held && lane == WRITER;
}

/* It gives up as hold.h has it. */
void
hold_waited(struct repl *r, uint64_t waited_ns)
{
	(void)r;
	held = held && waited_ns < TIMEOUT_MS * NS_PER_MS / 2;
}

void
lane_leave(struct repl *r, unsigned lane)
{
	(void)r;
	assert_int_equal(lane, WRITER);
}

/* ---- the tests ---- */

/* Lane 0 has bytes to drain that lane 1 has written early. */
static struct repl *
handle_new(void)
{
	struct repl *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	cfg.op_timeout_ms = TIMEOUT_MS;
	r->cfg = &cfg;
	r->replica_count = 1;
	r->lane_count = 2;
	r->slots = calloc(2, sizeof(*r->slots));
	assert_non_null(r->slots);
	assert_int_equal(claims_init(&r->claims, 2, &r->abandoned), 0);
	r->claims_made = true;
	assert_true(claims_early(&r->claims, WRITER, 0, 4096));
	assert_int_equal(rangeset_add(&r->slots[0].pending, 64, 8), 0);
	ended = 0;
	writes_again = held = false;
	turn_rc = 0;
	return r;
}

static void
handle_free(struct repl *r)
{
	claims_fini(&r->claims);
	free(r->slots);
	free(r);
}

static void
what_has_ended_too_late_is_out_of_the_way(void **state)
{
	uint64_t begin_ns = clock_now_ns(), called_ns = begin_ns;
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(lanes_claim(r, 0, NULL, 0, &begin_ns, &e), 0);
	assert_int_equal(ended, 1);
	assert_true(begin_ns >= called_ns + TIMEOUT_MS * NS_PER_MS);
	handle_free(r);
}

static void
what_goes_on_is_waited_for_no_longer(void **state)
{
	uint64_t begin_ns = clock_now_ns();
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	writes_again = true;
	assert_int_equal(lanes_claim(r, 0, NULL, 0, &begin_ns, &e), REPL_E_BUSY);
	assert_non_null(strstr(e.text, "lane 1 "));
	assert_int_equal(ended, 1);
	handle_free(r);
}

/* That has the other lane, and waits for its own target. */
static void
a_hold_is_told_to_hurry(void **state)
{
	uint64_t begin_ns = clock_now_ns();
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	held = true;
	assert_int_equal(lanes_claim(r, 0, NULL, 0, &begin_ns, &e), 0);
	assert_int_equal(ended, 1);
	handle_free(r);
}

/* A hold has lanes one after the other: who waits in one for the turn must get it. */
static void
a_lane_is_not_lent_in_a_turn(void **state)
{
	uint64_t begin_ns = clock_now_ns();
	struct repl *r = handle_new();
	struct err e;

	(void)state;
	err_clear(&e);
	r->slots[0].has_turn = true;
	assert_int_equal(lanes_claim(r, 0, NULL, 0, &begin_ns, &e), 0);
	assert_true(r->slots[0].has_turn);
	claims_drop(&r->claims, 0);
	assert_true(claims_early(&r->claims, WRITER, 0, 4096));
	turn_rc = REPL_E_TIMEOUT;
	assert_int_equal(lanes_claim(r, 0, NULL, 0, &begin_ns, &e), REPL_E_TIMEOUT);
	assert_false(r->slots[0].has_turn);
	assert_int_equal(r->claims.any, 0);
	handle_free(r);
}

/* With all of it claimed: it records a loss, which takes as long as the local disk does. */
static void *
writer_records(void *arg)
{
	const struct timespec nap = {.tv_nsec = (long)(5 * TIMEOUT_MS * NS_PER_MS)};
	struct repl *r = arg;

	(void)nanosleep(&nap, NULL);
	claims_drop(&r->claims, WRITER);
	diskclock_end(&r->local.disk);
	return NULL;
}

static void
a_record_is_waited_for_as_long_as_it_takes(void **state)
{
	const struct range all = {.len = 4096};
	uint64_t begin_ns = clock_now_ns();
	struct repl *r = handle_new();
	pthread_t writer;
	unsigned other;
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(
		claims_take(&r->claims, WRITER, &r->slots[WRITER].pending, &all, 1, 0, &other),
		CLAIMS_TAKEN);
	diskclock_begin(&r->local.disk);
	assert_int_equal(pthread_create(&writer, NULL, writer_records, r), 0);
	assert_int_equal(lanes_claim(r, 0, NULL, 0, &begin_ns, &e), 0);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_int_equal(ended, 0);
	handle_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_ended_too_late_is_out_of_the_way),
		cmocka_unit_test(a_hold_is_told_to_hurry),
		cmocka_unit_test(a_lane_is_not_lent_in_a_turn),
		cmocka_unit_test(a_record_is_waited_for_as_long_as_it_takes),
		cmocka_unit_test(what_goes_on_is_waited_for_no_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
