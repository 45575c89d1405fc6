/* SPDX-License-Identifier: BSD-3-Clause */
/* What a keeper does: traces, and what no sequence of events may lead to. */
#include "unit.h"

#include <stdlib.h>

#include "librepl.h"
#include "replica_fsm.h"

#define MS 1000000ULL

static struct replica_fsm fsm;
static uint64_t now;

static struct fsm_action
feed(struct fsm_event event)
{
	return fsm_step(&fsm, &event, now, 0);
}

#define step(...) feed((struct fsm_event){__VA_ARGS__})

#define assert_step(a, k, s)                                                                       \
	do {                                                                                       \
		assert_int_equal((a).kind, k);                                                     \
		assert_int_equal(fsm.state, s);                                                    \
	} while (0)

static void
begin(void)
{
	now = 1000 * MS;
	fsm_init(&fsm, 200 * MS, 30000 * MS, now);
}

static void
establish(void)
{
	begin();
	assert_step(step(.kind = FSM_START), FSM_DO_CONNECT, FSM_CONNECTING);
	assert_step(step(.kind = FSM_CONNECTED, .verdict = JUDGE_DELTA), FSM_DO_RESYNC,
		    FSM_RESYNCING);
	assert_step(step(.kind = FSM_RESYNCED), FSM_DO_INSTALL, FSM_ESTABLISHED);
	assert_step(step(.kind = FSM_INSTALLED), FSM_DO_NOTHING, FSM_ESTABLISHED);
}

static void
a_lost_replica_comes_back(void **state)
{
	struct fsm_action a;

	(void)state;
	establish();
	a = step(.kind = FSM_LOST, .status = REPL_E_LOST);
	assert_step(a, FSM_DO_WAIT, FSM_BACKOFF);
	assert_true(a.disconnect && a.changed);
	assert_true(a.until_ns == now + 200 * MS);
	assert_int_equal(fsm.status, REPL_E_LOST);

	/* Too early: the same wait, nothing to tell. */
	now += 199 * MS;
	a = step(.kind = FSM_TIMER);
	assert_step(a, FSM_DO_WAIT, FSM_BACKOFF);
	assert_false(a.changed || a.disconnect);
	assert_true(a.until_ns == now + 1 * MS);

	now += 1 * MS;
	assert_step(step(.kind = FSM_TIMER), FSM_DO_CONNECT, FSM_CONNECTING);
	a = step(.kind = FSM_CONNECTED, .verdict = JUDGE_HASHES);
	assert_step(a, FSM_DO_RESYNC, FSM_RESYNCING);
	assert_int_equal(a.what, JUDGE_HASHES);
	assert_step(step(.kind = FSM_RESYNCED), FSM_DO_INSTALL, FSM_ESTABLISHED);
	assert_true(fsm.reconnect_count == 0);
	assert_step(step(.kind = FSM_INSTALLED), FSM_DO_NOTHING, FSM_ESTABLISHED);
	assert_true(fsm.reconnect_count == 1);
	assert_int_equal(fsm.status, 0);
}

/* One wait, in nanoseconds, until the next try has failed. */
static uint64_t
fail_once(int status, uint64_t random)
{
	struct fsm_event event = {.kind = FSM_FAILED, .status = status};
	struct fsm_action a = fsm_step(&fsm, &event, now, random);
	uint64_t waited = a.until_ns - now;

	assert_step(a, FSM_DO_WAIT, FSM_BACKOFF);
	now = a.until_ns;
	assert_step(step(.kind = FSM_TIMER), FSM_DO_CONNECT, FSM_CONNECTING);
	return waited;
}

static void
tries_get_rarer_and_a_success_ends_that(void **state)
{
	(void)state;
	begin();
	(void)step(.kind = FSM_START);
	assert_true(fail_once(REPL_E_UNREACHABLE, 200 * MS) == 400 * MS);
	assert_true(fail_once(REPL_E_TIMEOUT, 600 * MS) == 800 * MS);
	for (unsigned i = 0; i < 20; i++)
		(void)fail_once(REPL_E_UNREACHABLE, 0);
	assert_true(fail_once(REPL_E_UNREACHABLE, 29800 * MS) == 30000 * MS);

	/* A connection alone is no success: a resync that always fails is tried seldom as well. */
	(void)step(.kind = FSM_CONNECTED, .verdict = JUDGE_DELTA);
	assert_true(fail_once(REPL_E_NOSPC, 29800 * MS) == 30000 * MS);
	(void)step(.kind = FSM_CONNECTED, .verdict = JUDGE_DELTA);
	(void)step(.kind = FSM_RESYNCED);
	(void)step(.kind = FSM_INSTALLED);
	assert_true(fail_once(REPL_E_LOST, 200 * MS) == 400 * MS);
}

/* It can be made equal, and not be installed: its target has no room for a receive ring, say. */
static void
a_failure_at_the_last_step_is_no_success(void **state)
{
	(void)state;
	begin();
	(void)step(.kind = FSM_START);
	for (unsigned i = 0; i < 20; i++) {
		(void)step(.kind = FSM_CONNECTED, .verdict = JUDGE_DELTA);
		assert_step(step(.kind = FSM_RESYNCED), FSM_DO_INSTALL, FSM_ESTABLISHED);
		(void)fail_once(REPL_E_REFUSED, 0);
	}
	(void)step(.kind = FSM_CONNECTED, .verdict = JUDGE_DELTA);
	(void)step(.kind = FSM_RESYNCED);
	assert_true(fail_once(REPL_E_REFUSED, 29800 * MS) == 30000 * MS);
	assert_true(fsm.reconnect_count == 0);
}

static void
what_a_person_must_mend_is_tried_seldom(void **state)
{
	(void)state;
	begin();
	(void)step(.kind = FSM_START);
	assert_true(fail_once(REPL_E_AUTH, 29800 * MS) == 30000 * MS);
}

static void
the_refused_wait_for_the_operator(void **state)
{
	struct fsm_action a;

	(void)state;
	begin();
	(void)step(.kind = FSM_START);
	a = step(.kind = FSM_REFUSED, .reason = JUDGE_PROMOTED, .status = REPL_E_REFUSED);
	assert_step(a, FSM_DO_NOTHING, FSM_STANDALONE);
	assert_true(a.disconnect && a.changed);
	assert_int_equal(fsm.reason, JUDGE_PROMOTED);
	now += 3600000 * MS;
	assert_step(step(.kind = FSM_TIMER), FSM_DO_NOTHING, FSM_STANDALONE);
	assert_step(step(.kind = FSM_RESUME), FSM_DO_CONNECT, FSM_CONNECTING);
	assert_int_equal(fsm.reason, 0);

	assert_step(step(.kind = FSM_CONNECTED, .verdict = JUDGE_REFUSE), FSM_DO_NOTHING,
		    FSM_STANDALONE);
	(void)step(.kind = FSM_RESUME);
	assert_step(step(.kind = FSM_FAILED, .status = REPL_E_DIVERGED), FSM_DO_NOTHING,
		    FSM_STANDALONE);
}

static void
a_pause_holds_from_everywhere(void **state)
{
	struct fsm_action a;

	(void)state;
	establish();
	a = step(.kind = FSM_PAUSE);
	assert_step(a, FSM_DO_NOTHING, FSM_PAUSED);
	assert_true(a.disconnect);
	now += 3600000 * MS;
	assert_step(step(.kind = FSM_TIMER), FSM_DO_NOTHING, FSM_PAUSED);
	/* The resync that was under way ends now; nobody wants its connection. */
	assert_step(step(.kind = FSM_RESYNCED), FSM_DO_NOTHING, FSM_PAUSED);
	assert_step(step(.kind = FSM_FAILED, .status = REPL_E_LOST), FSM_DO_NOTHING, FSM_PAUSED);
	a = step(.kind = FSM_CONNECTED, .verdict = JUDGE_DELTA);
	assert_step(a, FSM_DO_NOTHING, FSM_PAUSED);
	assert_true(a.disconnect);
	assert_step(step(.kind = FSM_RESUME), FSM_DO_CONNECT, FSM_CONNECTING);
	(void)step(.kind = FSM_FAILED, .status = REPL_E_LOST);
	assert_step(step(.kind = FSM_PAUSE), FSM_DO_NOTHING, FSM_PAUSED);
}

static void
an_adopted_one_is_established(void **state)
{
	(void)state;
	begin();
	assert_step(step(.kind = FSM_ADOPT), FSM_DO_NOTHING, FSM_ESTABLISHED);
	assert_true(fsm.reconnect_count == 0);
	(void)step(.kind = FSM_LOST, .status = REPL_E_TIMEOUT);
	assert_int_equal(fsm.state, FSM_BACKOFF);
}

/* What a keeper has, by the actions that it was told. */
struct model {
	bool connected, installed, held;
};

static void
model_take(struct model *m, const struct fsm_event *event, const struct fsm_action *a)
{
	if (event->kind == FSM_CONNECTED)
		m->connected = true;
	if (a->disconnect)
		m->connected = m->installed = false;
	if (a->kind == FSM_DO_INSTALL)
		m->installed = true;
	assert_true(m->installed == (fsm.state == FSM_ESTABLISHED));
	assert_true(m->connected == (fsm.state == FSM_RESYNCING || fsm.state == FSM_ESTABLISHED));
	/* A state that nothing but the operator ends, or something is under way. */
	assert_true(a->kind != FSM_DO_NOTHING || fsm.state != FSM_BACKOFF);
	if (a->kind == FSM_DO_WAIT)
		assert_true(a->until_ns <= now + 30000 * MS);
}

/* Any events in any order, also those that a keeper would not tell now. */
static void
no_order_of_events_breaks_it(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 2000; seed++) {
		struct model m = {0};
		unsigned rng = seed;

		begin();
		(void)step(.kind = FSM_START);
		for (unsigned i = 0; i < 60; i++) {
			struct fsm_event event = {
				.kind = (enum fsm_event_kind)((unsigned)rand_r(&rng) %
							      (FSM_STOP + 1)),
				.verdict = (enum judge_verdict)((unsigned)rand_r(&rng) % 5),
				.status = -(int)((unsigned)rand_r(&rng) % 22),
			};
			struct fsm_action a;

			/* The opening tells these at the start only. */
			if (event.kind == FSM_ADOPT || event.kind == FSM_START)
				continue;
			/* One that has a connection does not open another. */
			if (event.kind == FSM_CONNECTED && m.connected)
				continue;
			now += (unsigned)rand_r(&rng) % 40000 * MS;
			a = fsm_step(&fsm, &event, now, (uint64_t)rand_r(&rng) << 30);
			model_take(&m, &event, &a);
			if (fsm.state == FSM_ENDED)
				break;
		}
	}
}

static void
the_end_is_the_end(void **state)
{
	(void)state;
	establish();
	assert_step(step(.kind = FSM_STOP), FSM_DO_END, FSM_ENDED);
	for (unsigned kind = 0; kind <= FSM_STOP; kind++)
		assert_step(step(.kind = (enum fsm_event_kind)kind), FSM_DO_END, FSM_ENDED);
}

static void
all_have_names(void **state)
{
	(void)state;
	for (unsigned i = 0; i <= FSM_ENDED; i++)
		assert_string_not_equal(fsm_state_name((enum fsm_state)i), "unknown");
	for (unsigned i = 0; i <= FSM_STOP; i++)
		assert_string_not_equal(fsm_event_name((enum fsm_event_kind)i), "unknown");
	assert_string_equal(fsm_state_name((enum fsm_state)99), "unknown");
	assert_string_equal(fsm_event_name((enum fsm_event_kind)99), "unknown");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_replica_comes_back),
		cmocka_unit_test(tries_get_rarer_and_a_success_ends_that),
		cmocka_unit_test(a_failure_at_the_last_step_is_no_success),
		cmocka_unit_test(what_a_person_must_mend_is_tried_seldom),
		cmocka_unit_test(the_refused_wait_for_the_operator),
		cmocka_unit_test(a_pause_holds_from_everywhere),
		cmocka_unit_test(an_adopted_one_is_established),
		cmocka_unit_test(no_order_of_events_breaks_it),
		cmocka_unit_test(the_end_is_the_end),
		cmocka_unit_test(all_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
