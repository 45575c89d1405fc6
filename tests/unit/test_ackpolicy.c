/* SPDX-License-Identifier: BSD-3-Clause */
/* A drain returns when those that look best to whoever has only the replicas have it. */
#include "unit.h"

#include "ackpolicy.h"

static struct shipqueue q;

static struct shipment *
queue_one(void)
{
	struct shipment *m = shipment_new(0, 0);

	assert_non_null(m);
	shipqueue_append(&q, m, 1);
	return m;
}

static void
begin(unsigned replicas)
{
	memset(&q, 0, sizeof(q));
	for (unsigned i = 0; i < replicas; i++)
		shipqueue_open(&q, i);
}

static void
end(struct shipment *m)
{
	if (m)
		shipqueue_unref(&q, m);
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++)
		shipqueue_close(&q, i, NULL, NULL);
}

static void
policies_need(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 5; n++) {
		assert_int_equal(ack_needed(ACK_ALL, n), n);
		assert_int_equal(ack_needed(ACK_ANY, n), n ? 1 : 0);
		assert_int_equal(ack_needed(ACK_QUORUM, n), n ? n / 2 + 1 : 0);
	}
}

static void
one_that_was_lost_or_lags_does_not_count(void **state)
{
	const struct ackpolicy p = {.served = 15, .sync = 7, .needed = 2};
	struct shipment *m;
	bool enough;

	(void)state;
	begin(4);
	m = queue_one();
	for (unsigned i = 0; i < 4; i++)
		shipqueue_sent(&q, i);
	shipqueue_acked(&q, 3); /* nobody waits for it */
	assert_int_equal(ack_left(&p, m, 15, 0, &enough), 7);
	shipqueue_acked(&q, 0);
	shipqueue_acked(&q, 1);
	assert_int_equal(ack_left(&p, m, 15, 0, &enough), 0);
	assert_true(enough);
	assert_int_equal(ack_left(&p, m, 14, 0, &enough), 4);
	assert_int_equal(ack_left(&p, m, 15, 2, &enough), 6);
	assert_false(enough);
	/* All that are left have it. */
	assert_int_equal(ack_left(&p, m, 2, 0, &enough), 0);
	assert_false(enough);
	end(m);
}

static void
advance(struct generation *g, uint8_t name)
{
	const struct gen_id id = {{name}};

	gen_advance(g, &id);
	shipqueue_ended(&q, g);
}

/* What a label names behind the current generation, of which the first is the newest. */
static void
label_is(unsigned replica, const struct generation *g, uint64_t behind, uint8_t first)
{
	struct generation chain = *g;

	assert_int_equal(shipqueue_behind(&q, replica, &chain), behind);
	assert_int_equal(chain.current.b[0], g->current.b[0]);
	assert_int_equal(chain.history[0].b[0], first);
}

static void
behind_is_who_lacks_what_a_drain_has_returned_for(void **state)
{
	struct generation g = {.current = {{1}}};
	struct shipment *a, *b;

	(void)state;
	begin(2);
	advance(&g, 2);
	a = queue_one();
	b = queue_one();
	for (unsigned i = 0; i < 4; i++)
		shipqueue_sent(&q, i / 2);
	shipqueue_acked(&q, 1);
	label_is(0, &g, 0, 1);
	shipqueue_through(&q, a->number);
	/* Of the current one nobody need have anything. */
	label_is(0, &g, 0, 1);
	advance(&g, 3);
	label_is(0, &g, a->number, 1);
	label_is(1, &g, 0, 2);
	shipqueue_acked(&q, 1);
	shipqueue_through(&q, b->number);
	shipqueue_through(&q, a->number);
	advance(&g, 4);
	/* The oldest that it lacks some of counts, and when it has that the next. */
	label_is(0, &g, a->number, 1);
	shipqueue_acked(&q, 0);
	label_is(0, &g, b->number, 2);
	label_is(1, &g, 0, 3);
	assert_true(shipqueue_has(&q, 0, a->number));
	assert_false(shipqueue_has(&q, 0, b->number));
	shipqueue_acked(&q, 0);
	label_is(0, &g, 0, 3);
	shipqueue_unref(&q, b);
	end(a);
}

/* However many generations there are while it lags, it names what it had before. */
static void
laggard_keeps_what_a_full_history_keeps(void **state)
{
	struct generation g = {.current = {{1}}};
	const struct gen_id kept = {{1}};
	struct shipment *m;

	(void)state;
	begin(1);
	advance(&g, 2);
	m = queue_one();
	shipqueue_sent(&q, 0);
	shipqueue_through(&q, m->number);
	for (uint8_t name = 3; name < 3 * GEN_HISTORY; name++) {
		const struct gen_id id = {{name}};

		gen_advance_keeping(&g, &id, &kept, 1);
		shipqueue_ended(&q, &g);
		label_is(0, &g, m->number, 1);
	}
	shipqueue_acked(&q, 0);
	label_is(0, &g, 0, 3 * GEN_HISTORY - 2);
	end(m);
}

static void
laggard_waits_or_goes(void **state)
{
	struct ackpolicy p = {.served = 3, .sync = 3, .needed = 1, .lag_ns = 1000};
	uint32_t late;

	(void)state;
	begin(2);
	p.lag_bytes = 2 * SHIPMENT_OVERHEAD;
	for (unsigned i = 0; i < 2; i++)
		shipqueue_unref(&q, queue_one());
	assert_int_equal(ack_room(&p, &q, 3, 2, false, &late), ACK_ROOM_THERE);
	shipqueue_unref(&q, queue_one());
	for (unsigned i = 0; i < 3; i++)
		shipqueue_sent(&q, 1);
	shipqueue_acked(&q, 1);
	assert_int_equal(ack_room(&p, &q, 3, 2, false, &late), ACK_ROOM_WAIT);
	assert_int_equal(late, 1);
	assert_int_equal(ack_room(&p, &q, 3, 2, true, &late), ACK_ROOM_LOSE);
	assert_false(ack_room_held(&p, &q, 3, 2));
	/* With on-lag = degrade only where another one is well ahead of the bound. */
	p.degrade = true;
	assert_int_equal(ack_room(&p, &q, 3, 2, false, &late), ACK_ROOM_WAIT);
	shipqueue_acked(&q, 1);
	assert_int_equal(ack_room(&p, &q, 3, 2, false, &late), ACK_ROOM_LOSE);
	assert_int_equal(late, 1);
	assert_true(ack_room_held(&p, &q, 3, 2));
	assert_false(ack_room_held(&p, &q, 1, 2));
	/* No drain needs one, and there is no other. */
	p.needed = p.sync = 0;
	assert_false(ack_room_held(&p, &q, 1, 2));
	end(NULL);
}

static void
blocked_call_waits_for_those_it_needs(void **state)
{
	const struct ackpolicy p = {.served = 6, .sync = 6, .needed = 1}, none = {0};

	(void)state;
	assert_int_equal(ack_awaited(&none, 7, 0, 0), 7);
	assert_int_equal(ack_awaited(&none, 7, 1, 2), 4);
	assert_int_equal(ack_awaited(&p, 7, 2, 0), 1);
	assert_int_equal(ack_awaited(&p, 7, 0, 0), 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_need),
		cmocka_unit_test(one_that_was_lost_or_lags_does_not_count),
		cmocka_unit_test(behind_is_who_lacks_what_a_drain_has_returned_for),
		cmocka_unit_test(laggard_keeps_what_a_full_history_keeps),
		cmocka_unit_test(laggard_waits_or_goes),
		cmocka_unit_test(blocked_call_waits_for_those_it_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
