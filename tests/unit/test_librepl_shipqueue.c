/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All queued replicas get all that was drained in one order, nothing is freed while one
 * lacks it or kept when none does, and what a lost one may lack is told, no less.
 */
#include "unit.h"

#include <stdlib.h>

#include "shipqueue.h"
#include "wire.h"

#define REPLICAS 3U

static struct shipqueue q;

static int
fresh(void **state)
{
	(void)state;
	memset(&q, 0, sizeof(q));
	return 0;
}

/* A shipment of one range; its reference is given up as a drain gives it up. */
static void
append(uint64_t off, uint64_t len)
{
	static uint8_t bytes[64];
	struct shipment *s = shipment_new(1, len);

	assert_non_null(s);
	assert_true(len <= sizeof(bytes));
	shipment_add(s, WIRE_OP_COPY, off, len, bytes);
	shipqueue_append(&q, s, off);
	shipqueue_unref(&q, s);
}

static uint64_t
send(unsigned replica)
{
	uint64_t number = q.view[replica].unsent->number;

	shipqueue_sent(&q, replica);
	return number;
}

struct told {
	unsigned count;
	uint64_t off[8];
};

static void
tell(void *arg, uint64_t off, uint64_t len)
{
	struct told *t = arg;

	assert_true(len > 0);
	t->off[t->count++] = off;
}

static void
all_replicas_see_one_order_however_far_they_are(void **state)
{
	(void)state;
	shipqueue_open(&q, 0);
	append(1, 8);
	append(2, 8);
	shipqueue_open(&q, 2);
	append(3, 8);
	for (uint64_t n = 1; n <= 3; n++)
		assert_true(send(0) == n);
	assert_null(q.view[0].unsent);
	/* One that came later gets what is appended from then on. */
	assert_true(send(2) == 3);
	assert_null(q.view[2].unsent);
	for (int i = 0; i < 3; i++)
		shipqueue_acked(&q, 0);
	shipqueue_acked(&q, 2);
	assert_null(q.view[0].unacked);
	assert_null(q.tail);
	append(4, 8);
	assert_true(send(2) == 4 && send(0) == 4);
	shipqueue_close(&q, 0, NULL, NULL);
	shipqueue_close(&q, 2, NULL, NULL);
	assert_null(q.tail);
}

static void
shipment_lives_until_the_last_one_has_it(void **state)
{
	struct shipment *s = shipment_new(1, 8);

	(void)state;
	for (unsigned i = 0; i < REPLICAS; i++)
		shipqueue_open(&q, i);
	shipment_add(s, WIRE_OP_COPY, 0, 8, "12345678");
	shipqueue_append(&q, s, 1);
	assert_int_equal(s->refs, REPLICAS + 1);
	assert_int_equal(s->wanted, 7);
	for (unsigned i = 0; i < REPLICAS; i++) {
		(void)send(i);
		shipqueue_acked(&q, i);
		assert_int_equal(s->refs, REPLICAS - i);
	}
	assert_int_equal(s->acked, 7);
	shipqueue_unref(&q, s);
	assert_null(q.tail);
}

static void
lag_counts_what_is_not_acknowledged_with_its_overhead(void **state)
{
	(void)state;
	shipqueue_open(&q, 0);
	shipqueue_open(&q, 1);
	assert_true(shipqueue_lag_ns(&q, 0, 100) == 0);
	append(10, 8);
	append(20, 64);
	assert_true(q.view[0].weight >= 8 + 64 + 2 * SHIPMENT_OVERHEAD);
	assert_true(q.view[0].weight == q.view[1].weight);
	assert_true(shipqueue_lag_ns(&q, 0, 100) == 90);
	(void)send(0);
	/* Sent is not there. */
	assert_true(q.view[0].weight == q.view[1].weight);
	shipqueue_acked(&q, 0);
	assert_true(q.view[0].weight < q.view[1].weight && q.view[0].weight > 0);
	assert_true(shipqueue_lag_ns(&q, 0, 100) == 80);
	(void)send(0);
	shipqueue_acked(&q, 0);
	assert_true(q.view[0].weight == 0 && shipqueue_lag_ns(&q, 0, 100) == 0);
	shipqueue_close(&q, 1, NULL, NULL);
	assert_null(q.tail);
}

/* What was sent and not answered may be there or not: it is told, too. */
static void
lost_replica_is_told_all_that_it_may_lack(void **state)
{
	struct told told = {0};

	(void)state;
	shipqueue_open(&q, 0);
	shipqueue_open(&q, 1);
	for (uint64_t off = 1; off <= 4; off++)
		append(off, 8);
	(void)send(0);
	(void)send(0);
	shipqueue_acked(&q, 0);
	shipqueue_close(&q, 0, tell, &told);
	assert_int_equal(told.count, 3);
	assert_true(told.off[0] == 2 && told.off[1] == 3 && told.off[2] == 4);
	assert_true(q.view[0].weight == 0 && !q.view[0].open);
	/* The other one goes on, and nothing more is meant for the lost one. */
	append(5, 8);
	assert_int_equal(q.tail->wanted, 2);
	for (uint64_t n = 1; n <= 5; n++)
		assert_true(send(1) == n);
	told.count = 0;
	shipqueue_close(&q, 1, tell, &told);
	assert_int_equal(told.count, 5);
	assert_null(q.tail);
}

static void
pieces_keep_their_bytes_in_order(void **state)
{
	struct shipment *s = shipment_new(3, 10);

	(void)state;
	shipment_add(s, WIRE_OP_COPY, 100, 2, "ab");
	shipment_add(s, WIRE_OP_TRIM, 4096, 8192, NULL);
	shipment_add(s, WIRE_OP_ATOMIC8, 8, 8, "12345678");
	assert_int_equal(s->piece_count, 3);
	assert_int_equal(s->bytes, 10);
	assert_memory_equal(s->data, "ab12345678", 10);
	assert_int_equal(s->pieces[2].at, 2);
	shipqueue_unref(&q, s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_replicas_see_one_order_however_far_they_are, fresh),
		cmocka_unit_test_setup(shipment_lives_until_the_last_one_has_it, fresh),
		cmocka_unit_test_setup(lag_counts_what_is_not_acknowledged_with_its_overhead,
				       fresh),
		cmocka_unit_test_setup(lost_replica_is_told_all_that_it_may_lack, fresh),
		cmocka_unit_test_setup(pieces_keep_their_bytes_in_order, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
