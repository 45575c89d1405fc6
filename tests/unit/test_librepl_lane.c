/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane posts what was flushed whatever the target granted, and never more than fits. */
#include "unit.h"

#include <stdlib.h>

#include "lane.h"
#include "profile.h"
#include "remote.h"

#define POOL_SIZE (8U << 20)
#define RMA_ROOM  4U
#define DEPTH     8U

/*
 * A target that answers at once: COMMITs are checked and their entries noted.
 * RMA is complete when it is polled for.
 */
struct fab_lane {
	uint8_t buf[WIRE_MSG_SIZE_MAX];
	uint8_t ack[DEPTH][WIRE_ACK_SIZE];
	unsigned acks_head, acks_count;
	unsigned rma, reads;
	uint64_t copied; /* bytes */
};

uint8_t *
fab_lane_buf(struct fab_lane *l)
{
	return l->acks_count < DEPTH ? l->buf : NULL;
}

int
fab_lane_send(struct fab_lane *l, size_t len, struct err *e)
{
	struct wire_commit_view v;
	struct wire_ack ack;

	assert_int_equal(wire_commit_decode(l->buf, len, POOL_SIZE, &v, e), 0);
	for (uint32_t i = 0; i < v.entry_count; i++) {
		struct wire_entry en = wire_commit_entry(&v, i);

		l->copied += en.op == WIRE_OP_COPY ? en.len : 0;
	}
	ack = (struct wire_ack){.seq = v.seq, .epoch = v.epoch};
	wire_ack_encode(l->ack[(l->acks_head + l->acks_count++) % DEPTH], &ack);
	return 0;
}

int
fab_lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	(void)src;
	(void)len;
	(void)off;
	if (l->rma == RMA_ROOM)
		return err_set(e, REPL_E_BUSY, "no room");
	l->rma++;
	return 0;
}

int
fab_lane_read(struct fab_lane *l, void *dst, size_t len, uint64_t off, struct err *e)
{
	l->reads++;
	return fab_lane_write(l, dst, len, off, e);
}

unsigned
fab_lane_rma_room(const struct fab_lane *l)
{
	return RMA_ROOM - l->rma;
}

void
fab_lane_poll(struct fab_lane *l, struct fab_event *ev)
{
	memset(ev, 0, sizeof(*ev));
	if (l->acks_count) {
		ev->type = FAB_RECV;
		ev->data = l->ack[l->acks_head];
		ev->len = WIRE_ACK_SIZE;
		l->acks_head = (l->acks_head + 1) % DEPTH;
		l->acks_count--;
	} else if (l->rma) {
		ev->type = FAB_WRITTEN;
		l->rma--;
	}
}

bool
fab_lane_more(const struct fab_lane *l)
{
	(void)l;
	return false;
}

void
fab_lane_repost(struct fab_lane *l, unsigned slot)
{
	(void)l;
	(void)slot;
}

void
fab_lanes_wait(struct fab_lane **lanes, unsigned count, int wake_fd, uint64_t deadline_ns)
{
	(void)lanes;
	(void)count;
	(void)wake_fd;
	(void)deadline_ns;
}

/* Not called here, but they belong to what is replaced. */
int
fab_lane_connect(const struct fab_params *p, const uint8_t *hello, size_t hello_len,
		 uint64_t deadline_ns, struct fab_lane **out, struct err *e)
{
	(void)p;
	(void)hello;
	(void)hello_len;
	(void)deadline_ns;
	(void)out;
	return err_set(e, REPL_E_FAILED, "not here");
}

void
fab_lane_free(struct fab_lane *l)
{
	(void)l;
}

struct bench {
	struct fab_lane fab;
	struct profile profile;
	struct lane lane;
	uint8_t mem[POOL_SIZE];
};

static struct bench *
bench_new(bool rma, size_t msg_size)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct lane_setup setup = {.rma = rma, .depth = DEPTH, .msg_size = msg_size, .epoch = 1};

	assert_non_null(b);
	profile_init(&b->profile);
	profile_set(&b->profile, PROFILE_F_CLASS, PROFILE_CLASS_MEDIA, "test");
	setup.fab = &b->fab;
	setup.profile = &b->profile;
	lane_init(&b->lane, &setup);
	lane_bind(&b->lane, b->mem);
	return b;
}

static void
drain(struct bench *b)
{
	lane_begin(&b->lane, LANE_DRAIN, 0, 0);
	for (int i = 0; i < 100000 && !lane_done(&b->lane); i++)
		(void)lane_step(&b->lane);
	assert_true(lane_done(&b->lane));
	assert_int_equal(b->lane.status, 0);
}

/* Every size around what fits one message, for every size that may be granted. */
static void
small_messages_hold_every_range(void **state)
{
	static const size_t granted[] = {4096, 4104, 5000, 8192, 16384, 20000, 32768};

	(void)state;
	for (size_t g = 0; g < sizeof(granted) / sizeof(granted[0]); g++) {
		struct bench *b = bench_new(false, granted[g]);

		for (size_t len = granted[g] / 2 - 80; len < granted[g] + 80; len += 8) {
			b->fab.copied = 0;
			assert_int_equal(lane_flush(&b->lane, 0, len), 0);
			drain(b);
			assert_int_equal(b->fab.copied, len);
		}
		free(b);
	}
}

static void
small_messages_hold_many_ranges(void **state)
{
	static const size_t sizes[] = {8, 2000, 2024, 4040, 4048, 5000};

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		struct bench *b = bench_new(false, 4096);

		for (unsigned i = 0; i < RANGESET_MAX; i++)
			assert_int_equal(lane_flush(&b->lane, i * 8192UL, sizes[s]), 0);
		drain(b);
		assert_int_equal(b->fab.copied, RANGESET_MAX * sizes[s]);
		free(b);
	}
}

static void
a_full_lane_has_room_for_a_read_after_a_wait(void **state)
{
	struct bench *b = bench_new(true, 32768);
	struct lane *l = &b->lane;
	uint8_t byte;

	(void)state;
	for (unsigned i = 0; i < RMA_ROOM; i++)
		assert_int_equal(lane_flush(l, i * (1UL << 20), 65536), 0);
	assert_false(lane_has_room(l));
	lanes_run(&l, 1, lane_has_room, 0);
	assert_int_equal(lane_read(l, &byte, 0, 1), 0);
	lanes_run(&l, 1, lane_done, 0);
	assert_int_equal(l->status, 0);
	assert_int_equal(b->fab.reads, 1);
	drain(b);
	free(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_messages_hold_every_range),
		cmocka_unit_test(small_messages_hold_many_ranges),
		cmocka_unit_test(a_full_lane_has_room_for_a_read_after_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
