/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On a lane with a receive ring everything goes by DEPOSITs, a drain waits for what completes them
 * and not for their ACKs, and the slots of the ring are never overrun.
 */
#include "unit.h"

#include <stdlib.h>

#include "lane.h"
#include "profile.h"

#define POOL_SIZE (1U << 20)
#define MSG_SIZE  4096U
#define DEPTH     4U
#define RMA_ROOM  8U
#define LOG_MAX   400

/*
 * A target whose ACKs come when they are let go; reads and sends complete when they are polled for
 * unless they are held. The log: (scaf-t) a DEPOSIT and its entries, STAMP, COPY, ATOMIC8, FLUSH,
 * BARRIER, TRIM; r a read.
 */
struct fab_lane {
	uint8_t buf[2 * MSG_SIZE];
	uint8_t ack[WIRE_ACK_SIZE];
	unsigned unanswered, let_go;
	unsigned reads, sends; /* outstanding */
	bool hold;
	int status; /* of the next ACK */
	uint64_t seq, acked, stamp;
	uint64_t copied;
	char log[LOG_MAX];
};

#include "fab_lane_stubs.h"

uint8_t *
fab_lane_buf(struct fab_lane *l)
{
	return l->unanswered < DEPTH ? l->buf : NULL;
}

bool
fab_lane_turn(const struct fab_lane *l)
{
	return l->unanswered < DEPTH;
}

int
fab_lane_send(struct fab_lane *l, size_t len, struct err *e)
{
	static const char letters[] = "?fca-st";
	struct wire_commit_view v;

	assert_true(l->unanswered < DEPTH);
	assert_int_equal(wire_deposit_decode(l->buf, len, POOL_SIZE, &v, e), 0);
	assert_int_equal(v.seq, ++l->seq);
	assert_true(v.stamp > l->stamp);
	l->stamp = v.stamp;
	l->unanswered++;
	log_put(l, '(');
	for (uint32_t i = 0; i < v.entry_count; i++) {
		struct wire_entry en = wire_commit_entry(&v, i);

		log_put(l, letters[en.op]);
		l->copied += en.op == WIRE_OP_COPY ? en.len : 0;
	}
	log_put(l, ')');
	return 0;
}

int
fab_lane_send_delivered(struct fab_lane *l, size_t len, struct err *e)
{
	assert_true(l->reads + l->sends < RMA_ROOM);
	l->sends++;
	return fab_lane_send(l, len, e);
}

int
fab_lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	(void)l;
	(void)src;
	(void)len;
	(void)off;
	fail_msg("an RMA write");
	return err_set(e, REPL_E_FAILED, "not here");
}

int
fab_lane_write_covered(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	return fab_lane_write(l, src, len, off, e);
}

int
fab_lane_write_committed(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			 struct err *e)
{
	return fab_lane_write(l, src, len, off, e);
}

int
fab_lane_write_imm(struct fab_lane *l, const void *src, size_t len, uint64_t off,
		   const struct fab_imm *imm, struct err *e)
{
	(void)imm;
	return fab_lane_write(l, src, len, off, e);
}

int
fab_lane_read(struct fab_lane *l, void *dst, size_t len, uint64_t off, struct err *e)
{
	(void)dst;
	(void)len;
	(void)off;
	(void)e;
	assert_true(l->reads + l->sends < RMA_ROOM);
	l->reads++;
	log_put(l, 'r');
	return 0;
}

unsigned
fab_lane_rma_room(const struct fab_lane *l)
{
	return RMA_ROOM - l->reads - l->sends;
}

void
fab_lane_poll(struct fab_lane *l, struct fab_event *ev)
{
	memset(ev, 0, sizeof(*ev));
	if (l->let_go > 0 && l->unanswered > 0) {
		struct wire_ack ack = {.seq = ++l->acked, .epoch = 1, .status = l->status};

		wire_ack_encode(l->ack, &ack);
		l->let_go--;
		l->unanswered--;
		ev->type = FAB_RECV;
		ev->data = l->ack;
		ev->len = sizeof(l->ack);
	} else if (l->sends && !l->hold) {
		l->sends--;
		ev->type = FAB_SENT;
	} else if (l->reads && !l->hold) {
		l->reads--;
		ev->type = FAB_READ;
	}
}

void
fab_lanes_wait(struct fab_lane **lanes, unsigned count, int wake_fd, uint64_t deadline_ns)
{
	(void)lanes;
	(void)count;
	(void)wake_fd;
	(void)deadline_ns;
}

/* ---- lanes ---- */

struct bench {
	struct fab_lane fab;
	struct lane lane;
	struct profile profile;
	uint8_t mem[POOL_SIZE];
};

static _Atomic uint64_t stamps;

static struct bench *
bench_new(enum plan_method m, size_t msg_size)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct lane_setup setup = {.rma = true,
				   .imm_unit = 64,
				   .depth = DEPTH,
				   .msg_size = msg_size,
				   .epoch = 1,
				   .force = PLAN_BIT(m),
				   .stamp = &stamps};

	assert_non_null(b);
	profile_init(&b->profile);
	profile_set(&b->profile, PROFILE_F_CLASS, PROFILE_CLASS_MEDIA, "test");
	profile_set(&b->profile, PROFILE_F_DOMAIN, PROFILE_WSP, "test");
	profile_set(&b->profile, PROFILE_F_DDIO, PROFILE_DDIO_ON, "test");
	profile_set(&b->profile, PROFILE_F_RQWRB, PROFILE_RQWRB_PM, "test");
	profile_set(&b->profile, PROFILE_F_PROVIDER, PROFILE_PROVIDER_IB, "test");
	setup.fab = &b->fab;
	setup.profile = &b->profile;
	lane_init(&b->lane, &setup);
	lane_bind(&b->lane, b->mem);
	return b;
}

static void
steps(struct bench *b)
{
	for (int i = 0; i < 1000 && !lane_done(&b->lane); i++)
		(void)lane_step(&b->lane);
}

static void
flush(struct bench *b, uint64_t off, uint64_t len)
{
	assert_int_equal(lane_flush(&b->lane, off, len), 0);
}

static void
done(struct bench *b)
{
	steps(b);
	assert_true(lane_done(&b->lane));
	assert_int_equal(b->lane.status, 0);
}

static void
job(struct bench *b, enum lane_kind kind, uint64_t off, uint64_t len)
{
	lane_begin(&b->lane, kind, off, len);
	done(b);
}

static void
everything_goes_by_deposits(void **state)
{
	struct bench *b = bench_new(PLAN_DEPOSIT, MSG_SIZE);

	(void)state;
	flush(b, 0, 64);
	flush(b, 4096, 64);
	job(b, LANE_DRAIN, 0, 0);
	job(b, LANE_ATOMIC8, 8, 8);
	flush(b, 0, 64);
	job(b, LANE_PAIR, 4096, 64);
	b->fab.let_go = DEPTH;
	flush(b, 0, 64);
	job(b, LANE_ATOMIC8, 4096, 8);
	job(b, LANE_DRAIN, 0, 0);
	assert_string_equal(b->fab.log, "(scc)r(sa)r(sc-c)r(sc-a)r");
	free(b);
}

static void
a_drain_is_done_when_the_read_is_in(void **state)
{
	struct bench *b = bench_new(PLAN_DEPOSIT, MSG_SIZE);

	(void)state;
	b->fab.hold = true;
	flush(b, 0, 64);
	lane_begin(&b->lane, LANE_DRAIN, 0, 0);
	steps(b);
	assert_false(lane_done(&b->lane));
	/* An ACK alone does not do: the read is what it waits for. */
	b->fab.let_go = 1;
	steps(b);
	assert_false(lane_done(&b->lane));
	b->fab.hold = false;
	done(b);
	free(b);
}

static void
by_its_completion_without_a_read(void **state)
{
	struct bench *b = bench_new(PLAN_DEPOSIT_COMPLETION, MSG_SIZE);

	(void)state;
	b->fab.hold = true;
	flush(b, 0, 64);
	lane_begin(&b->lane, LANE_DRAIN, 0, 0);
	steps(b);
	assert_false(lane_done(&b->lane));
	assert_int_equal(b->fab.sends, 1);
	b->fab.hold = false;
	done(b);
	assert_string_equal(b->fab.log, "(sc)");
	free(b);
}

static void
used_up_slots_are_waited_for(void **state)
{
	static const enum plan_method methods[] = {PLAN_DEPOSIT, PLAN_DEPOSIT_COMPLETION};

	(void)state;
	for (unsigned m = 0; m < 2; m++) {
		struct bench *b = bench_new(methods[m], MSG_SIZE);

		for (unsigned i = 0; i < DEPTH; i++) {
			flush(b, 0, 64);
			job(b, LANE_DRAIN, 0, 0);
		}
		flush(b, 0, 64);
		lane_begin(&b->lane, LANE_DRAIN, 0, 0);
		steps(b);
		assert_false(lane_done(&b->lane));
		assert_int_equal(b->fab.seq, DEPTH);
		b->fab.let_go = 1;
		done(b);
		assert_int_equal(b->fab.seq, DEPTH + 1);
		free(b);
	}
}

/* Every size around what fits one message, for the least sizes that may be granted. */
static void
large_ranges_are_split(void **state)
{
	static const size_t granted[] = {4096, 4104, 5000, 8192};

	(void)state;
	for (size_t g = 0; g < sizeof(granted) / sizeof(granted[0]); g++) {
		struct bench *b = bench_new(PLAN_DEPOSIT, granted[g]);

		for (size_t len = 2000; len < 3 * MSG_SIZE; len += 8) {
			b->fab.copied = 0;
			b->fab.let_go = 1000;
			flush(b, 0, len);
			job(b, LANE_DRAIN, 0, 0);
			assert_int_equal(b->fab.copied, len);
		}
		for (unsigned i = 0; i < RANGESET_MAX; i++)
			flush(b, i * 4096UL, 2024);
		b->fab.copied = 0;
		b->fab.let_go = 1000;
		job(b, LANE_DRAIN, 0, 0);
		assert_int_equal(b->fab.copied, RANGESET_MAX * 2024);
		free(b);
	}
}

/* Behind many messages one read. */
static void
a_split_pair_is_read_once(void **state)
{
	struct bench *b = bench_new(PLAN_DEPOSIT, MSG_SIZE);

	(void)state;
	flush(b, 0, 4096);
	job(b, LANE_PAIR, 65536, 64);
	assert_string_equal(b->fab.log, "(sc)(scc-)(sc)r");
	free(b);
}

static void
settling_waits_for_the_acknowledgement(void **state)
{
	struct bench *b = bench_new(PLAN_DEPOSIT, MSG_SIZE);

	(void)state;
	flush(b, 0, 64);
	job(b, LANE_DRAIN, 0, 0);
	lane_begin(&b->lane, LANE_SETTLE, 0, 0);
	steps(b);
	assert_false(lane_done(&b->lane));
	/* Its own, which speaks for what other lanes have completed. */
	assert_string_equal(b->fab.log, "(sc)r(s)r");
	b->fab.let_go = 1;
	steps(b);
	assert_false(lane_done(&b->lane));
	b->fab.let_go = 1;
	done(b);
	/* With something to post none of its own is needed. */
	flush(b, 0, 64);
	b->fab.let_go = 1;
	job(b, LANE_SETTLE, 0, 0);
	assert_string_equal(b->fab.log, "(sc)r(s)r(sc)r");
	free(b);
}

/* Which has its turn among what others have on their way when it is drained. */
static void
what_is_not_drained_does_not_go_with_it(void **state)
{
	struct bench *b = bench_new(PLAN_DEPOSIT, MSG_SIZE);

	(void)state;
	flush(b, 0, 64);
	b->fab.let_go = 1;
	job(b, LANE_WRITTEN, 0, 0);
	assert_string_equal(b->fab.log, "(s)r");
	assert_int_equal(b->lane.todo.count, 1);
	/* It is settled by that all the same. */
	lane_begin(&b->lane, LANE_WRITTEN, 0, 0);
	steps(b);
	assert_false(lane_done(&b->lane));
	b->fab.let_go = 1;
	done(b);
	job(b, LANE_DRAIN, 0, 0);
	assert_string_equal(b->fab.log, "(s)r(s)r(sc)r");
	free(b);
}

/* What is in the ring is not zero yet, and will not be if the target dies now. */
static void
trims_are_finished_when_that_is_acknowledged(void **state)
{
	struct bench *b = bench_new(PLAN_DEPOSIT, MSG_SIZE);

	(void)state;
	job(b, LANE_TRIM, 8192, 4096);
	lane_begin(&b->lane, LANE_TRIM, 0, 0);
	steps(b);
	assert_false(lane_done(&b->lane));
	b->fab.let_go = 1;
	steps(b);
	assert_false(lane_done(&b->lane));
	b->fab.let_go = 1;
	done(b);
	assert_string_equal(b->fab.log, "(st)r(st)r");
	free(b);
}

static void
a_late_refusal_loses_the_lane(void **state)
{
	struct bench *b = bench_new(PLAN_DEPOSIT, MSG_SIZE);

	(void)state;
	flush(b, 0, 64);
	job(b, LANE_DRAIN, 0, 0);
	b->fab.status = REPL_E_IO;
	b->fab.let_go = 1;
	flush(b, 0, 64);
	lane_begin(&b->lane, LANE_DRAIN, 0, 0);
	steps(b);
	assert_int_equal(b->lane.status, REPL_E_IO);
	free(b);
}

/* Of one counter: what is begun later is stamped higher, on whatever lane. */
static void
lanes_share_their_stamps(void **state)
{
	struct bench *a = bench_new(PLAN_DEPOSIT, MSG_SIZE), *b = bench_new(PLAN_DEPOSIT, MSG_SIZE);
	uint64_t last = atomic_load(&stamps);

	(void)state;
	for (unsigned i = 0; i < DEPTH; i++) {
		flush(a, 0, 64);
		job(a, LANE_DRAIN, 0, 0);
		assert_true(a->fab.stamp > last);
		flush(b, 0, 64);
		job(b, LANE_DRAIN, 0, 0);
		assert_true(b->fab.stamp > a->fab.stamp);
		last = b->fab.stamp;
	}
	free(a);
	free(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_goes_by_deposits),
		cmocka_unit_test(a_drain_is_done_when_the_read_is_in),
		cmocka_unit_test(by_its_completion_without_a_read),
		cmocka_unit_test(used_up_slots_are_waited_for),
		cmocka_unit_test(large_ranges_are_split),
		cmocka_unit_test(a_split_pair_is_read_once),
		cmocka_unit_test(settling_waits_for_the_acknowledgement),
		cmocka_unit_test(what_is_not_drained_does_not_go_with_it),
		cmocka_unit_test(trims_are_finished_when_that_is_acknowledged),
		cmocka_unit_test(a_late_refusal_loses_the_lane),
		cmocka_unit_test(lanes_share_their_stamps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
