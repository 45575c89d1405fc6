/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is staged goes over one lane to a target that is near; over a long way over all lanes of the
 * session by turns, over those alone that have room. It is all there when it is settled; one lane
 * that is lost ends it at once, whatever the others do; a target that has no room for it ends it
 * too, and leaves the lanes for what goes another way.
 */
#include "unit.h"

#include <time.h>

#include "clock.h"
#include "fabric.h"
#include "remote_impl.h"
#include "stage.h"
#include "wire.h"

#define LANES   3U
#define DEPTH   2U
#define MESSAGE (4U * 4096U + WIRE_HEADER_SIZE + WIRE_ENTRY_SIZE)
#define EPOCH   7U
#define PAYLOAD (4U * 4096U) /* of a message of one range */
#define SIZE    (64U * PAYLOAD)
#define LOG_MAX 40
#define NEAR_NS 10000U /* that an answer takes */
#define LONG_NS 2000000U

/* A lane of the target: what it has taken, and how much of that it may answer. */
struct fab_lane {
	uint8_t buf[MESSAGE], ack[WIRE_ACK_SIZE];
	uint64_t taken, answered, may;
	int status; /* of its ACKs */
	bool lost;
	char log[LOG_MAX]; /* of the first: a letter a message, by which lane it came */
};

#include "fab_lane_stubs.h"

static struct fab_lane fab[REPL_LANES_MAX];
static struct lane lanes[REPL_LANES_MAX];
static struct remote session;
static struct stage *stage;
static uint8_t mem[SIZE], journal[SIZE];
static const struct fill_source source = {.mem = mem, .fd = -1};
static char *const order = fab[0].log;
static unsigned slept_on, breaths, stall_ms = 100000;
static uint32_t msg_size = MESSAGE;
static uint64_t sent_bytes;                  /* bytes of messages */
static void (*on_sleep)(void);               /* what happens then; NULL: nothing */
static uint64_t now_ns = NS_PER_S, sleep_ns; /* ... and how long it takes */
static struct err err;

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	*ts = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_S),
				.tv_nsec = (long)(now_ns % NS_PER_S)};
	return 0;
}

uint8_t *
fab_lane_buf(struct fab_lane *l)
{
	return l->taken - l->answered < DEPTH ? l->buf : NULL;
}

int
fab_lane_send(struct fab_lane *l, size_t len, struct err *e)
{
	struct wire_commit_view v;
	const uint8_t *from;

	assert_true(len <= msg_size);
	sent_bytes += len;
	assert_int_equal(wire_stage_decode(l->buf, len, SIZE, &v, e), 0);
	assert_int_equal(v.seq, ++l->taken);
	assert_int_equal(v.epoch, EPOCH);
	from = v.payload;
	for (uint32_t i = 0; i < v.entry_count; i++) {
		struct wire_entry en = wire_commit_entry(&v, i);

		memcpy(journal + en.off, from, en.len);
		from += en.len;
	}
	log_put(&fab[0], (char)('a' + (l - fab)));
	return 0;
}

int
fab_lane_send_delivered(struct fab_lane *l, size_t len, struct err *e)
{
	(void)l;
	(void)len;
	return err_set(e, REPL_E_FAILED, "not here");
}

int
fab_lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	(void)src;
	(void)off;
	return fab_lane_send_delivered(l, len, e);
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
	return fab_lane_write(l, dst, len, off, e);
}

bool
fab_lane_turn(const struct fab_lane *l)
{
	return l->taken - l->answered < DEPTH;
}

unsigned
fab_lane_rma_room(const struct fab_lane *l)
{
	(void)l;
	return 0;
}

void
fab_lane_poll(struct fab_lane *l, struct fab_event *ev)
{
	struct wire_ack ack = {.epoch = EPOCH, .status = l->status};

	memset(ev, 0, sizeof(*ev));
	if (l->lost) {
		ev->type = FAB_CLOSED;
		strcpy(ev->text, "cut");
	} else if (l->answered < l->taken && l->answered < l->may) {
		ack.seq = ++l->answered;
		wire_ack_encode(l->ack, &ack);
		ev->type = FAB_RECV;
		ev->data = l->ack;
		ev->len = WIRE_ACK_SIZE;
	}
}

void
fab_lanes_wait(struct fab_lane **some, unsigned count, int wake_fd, uint64_t deadline_ns)
{
	(void)some;
	(void)wake_fd;
	(void)deadline_ns;
	slept_on = count;
	now_ns += sleep_ns;
	if (on_sleep)
		on_sleep();
}

/* Nobody waits for ever. */
static int
breathe(void *arg, struct err *e)
{
	(void)arg;
	return ++breaths == 10 ? err_set(e, REPL_E_FAILED, "enough") : 0;
}

static int
begin(unsigned count)
{
	const struct breath breath = {.take = breathe};
	struct profile profile;

	profile_init(&profile);
	memset(fab, 0, sizeof(fab));
	memset(journal, 0, sizeof(journal));
	for (unsigned i = 0; i < SIZE; i++)
		mem[i] = (uint8_t)(i / PAYLOAD + i);
	for (unsigned i = 0; i < count; i++) {
		const struct lane_setup setup = {.fab = &fab[i],
						 .profile = &profile,
						 .depth = DEPTH,
						 .msg_size = msg_size,
						 .epoch = EPOCH};

		lane_init(&lanes[i], &setup);
	}
	session.terms.lanes = count;
	session.terms.msg_size = msg_size;
	session.lanes = lanes;
	session.op_timeout_ms = stall_ms;
	on_sleep = NULL;
	sleep_ns = NEAR_NS;
	slept_on = breaths = 0;
	sent_bytes = 0;
	err_clear(&err);
	return stage_begin(&session, &source, breath, &stage, &err);
}

/* Of so many messages: the last one has an entry a page that is not used. */
static uint64_t
bytes_of(unsigned count)
{
	return (uint64_t)count * PAYLOAD - PAYLOAD / 4096 * WIRE_ENTRY_SIZE;
}

/* The last of them waits for what may follow. */
static int
messages(unsigned from, unsigned count)
{
	return stage_range(stage, (uint64_t)from * PAYLOAD, bytes_of(count), &err);
}

static void
assert_staged(unsigned from, unsigned count)
{
	assert_memory_equal(journal + (size_t)from * PAYLOAD, mem + (size_t)from * PAYLOAD,
			    bytes_of(count));
}

static void
all_may_answer(void)
{
	for (unsigned i = 0; i < REPL_LANES_MAX; i++)
		fab[i].may = UINT64_MAX;
}

static void
all_answer(void)
{
	for (unsigned i = 0; i < REPL_LANES_MAX; i++)
		fab[i].may = fab[i].taken;
}

/* Over a way that has proved long: all lanes are used, and the first one is next. */
static void
begin_far(unsigned count)
{
	bool was_last = false;

	assert_int_equal(begin(count), 0);
	on_sleep = all_answer;
	sleep_ns = LONG_NS;
	while (fab[count - 1].taken == 0)
		assert_int_equal(messages(0, 1), 0);
	while (!was_last) {
		uint64_t taken = fab[count - 1].taken;

		assert_int_equal(messages(0, 1), 0);
		assert_int_equal(stage_settle(stage, &err), 0);
		was_last = fab[count - 1].taken > taken;
	}
	on_sleep = NULL;
	sleep_ns = NEAR_NS;
	slept_on = breaths = 0;
	memset(journal, 0, sizeof(journal));
	memset(order, 0, LOG_MAX);
}

static void
one_lane_where_it_is_near(void **state)
{
	(void)state;
	assert_int_equal(begin(LANES), 0);
	on_sleep = all_answer;
	assert_int_equal(messages(0, 20), 0);
	assert_string_equal(order, "aaaaaaaaaaaaaaaaaaa");
	assert_int_equal(slept_on, 1);
	sleep_ns = LONG_NS;
	assert_int_equal(messages(20, 20), 0);
	assert_true(fab[1].taken > 0 && fab[2].taken > 0);
	assert_int_equal(stage_settle(stage, &err), 0);
	assert_staged(0, 20);
	assert_staged(20, 20);
	stage_end(stage);
}

static void
by_turns(void **state)
{
	(void)state;
	begin_far(LANES);
	assert_int_equal(messages(0, 6), 0);
	assert_string_equal(order, "abcab");
	/* The last one waits for what may follow, and none for answers. */
	assert_int_equal(slept_on, 0);
	all_may_answer();
	assert_int_equal(stage_settle(stage, &err), 0);
	assert_string_equal(order, "abcabc");
	assert_staged(0, 6);
	stage_end(stage);
}

static void
c_answers_one(void)
{
	fab[2].may++;
}

/* Whoever has room is next; for room all are slept on, and each of them will do. */
static void
those_without_room_are_passed_over(void **state)
{
	(void)state;
	begin_far(LANES);
	on_sleep = c_answers_one;
	assert_int_equal(messages(0, 10), 0);
	assert_int_equal(slept_on, LANES);
	assert_string_equal(order, "abcabcccc");
	fab[1].may++;
	assert_int_equal(messages(10, 1), 0);
	assert_string_equal(order, "abcabccccc");
	assert_int_equal(messages(11, 2), 0);
	all_may_answer();
	assert_int_equal(stage_settle(stage, &err), 0);
	assert_staged(0, 10);
	assert_staged(10, 1);
	assert_staged(11, 2);
	assert_non_null(strchr(order + 10, 'b'));
	stage_end(stage);
}

/* The next answer, the last lane first, whenever somebody sleeps. */
static void
one_answers(void)
{
	for (unsigned i = session.terms.lanes; i > 0; i--) {
		if (fab[i - 1].may == fab[i - 1].taken)
			continue;
		fab[i - 1].may++;
		return;
	}
}

static void
settled_is_answered_on_each(void **state)
{
	(void)state;
	for (unsigned n = 1; n < 3 * LANES; n++) {
		uint64_t bytes = 0;

		begin_far(LANES);
		for (unsigned i = 0; i < LANES; i++)
			bytes -= atomic_load(&lanes[i].counters.bytes);
		on_sleep = one_answers;
		assert_int_equal(messages(0, n), 0);
		assert_int_equal(stage_settle(stage, &err), 0);
		for (unsigned i = 0; i < LANES; i++) {
			assert_int_equal(fab[i].answered, fab[i].taken);
			assert_int_equal(lanes[i].seq_acked, fab[i].taken);
			assert_int_equal(lanes[i].unanswered, 0);
			assert_true(lane_only_answers(&lanes[i]));
			bytes += atomic_load(&lanes[i].counters.bytes);
		}
		assert_int_equal(bytes, bytes_of(n));
		assert_staged(0, n);
		/* Again, with nothing to do. */
		on_sleep = NULL;
		assert_int_equal(stage_settle(stage, &err), 0);
		stage_end(stage);
	}
}

static void
b_is_lost(void)
{
	fab[1].lost = true;
}

static void
b_fails(void)
{
	fab[1].status = REPL_E_IO;
	fab[1].may++;
}

/* In front of a wait for room, or in one, or in the wait for all: the others never answer. */
static void
one_that_is_lost_ends_it(void **state)
{
	static const struct {
		void (*what)(void);
		unsigned count;
		bool settles;
		int rc;
		unsigned awaited; /* lanes */
	} rows[] = {
		{b_is_lost, 7, false, REPL_E_LOST, 3}, {b_is_lost, 6, true, REPL_E_LOST, 3},
		{b_is_lost, 2, true, REPL_E_LOST, 2},  {b_fails, 7, false, REPL_E_IO, 3},
		{b_fails, 4, true, REPL_E_IO, 3},
	};

	(void)state;
	for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		int rc;

		begin_far(LANES);
		on_sleep = rows[r].what;
		rc = messages(0, rows[r].count);
		assert_int_equal(rc, rows[r].settles ? 0 : rows[r].rc);
		if (!rc)
			rc = stage_settle(stage, &err);
		assert_int_equal(rc, rows[r].rc);
		assert_int_equal(err.code, rows[r].rc);
		assert_int_equal(slept_on, rows[r].awaited);
		assert_int_equal(breaths, 0);
		for (unsigned i = 0; i < LANES; i++)
			assert_int_equal(lanes[i].status, rows[r].rc);
		/* And nothing goes any more. */
		memset(order, 0, LOG_MAX);
		assert_int_equal(messages(0, 1), rows[r].rc);
		assert_int_equal(stage_settle(stage, &err), rows[r].rc);
		assert_string_equal(order, "");
		stage_end(stage);
	}
}

static void
all_refuse(void)
{
	for (unsigned i = 0; i < REPL_LANES_MAX; i++)
		fab[i].status = REPL_E_NOSPC;
	one_answers();
}

/*
 * In front of a wait for room, or in the wait for all, or with a message half full: nothing more is
 * sent, and when all is answered the lanes are as good as before, for another stage too.
 */
static void
a_full_target_leaves_the_lanes(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= 9; count++) {
		char before[LOG_MAX];

		begin_far(LANES);
		on_sleep = all_refuse;
		assert_int_equal(messages(0, count), count > LANES * DEPTH ? REPL_E_NOSPC : 0);
		assert_int_equal(stage_settle(stage, &err), REPL_E_NOSPC);
		assert_int_equal(err.code, REPL_E_NOSPC);
		memcpy(before, order, LOG_MAX);
		assert_int_equal(messages(20, 4), REPL_E_NOSPC);
		assert_int_equal(stage_settle(stage, &err), REPL_E_NOSPC);
		assert_memory_equal(before, order, LOG_MAX);
		stage_end(stage);
		for (unsigned i = 0; i < LANES; i++) {
			assert_int_equal(lanes[i].status, 0);
			assert_int_equal(fab[i].answered, fab[i].taken);
			assert_int_equal(lanes[i].seq_acked, fab[i].taken);
			assert_true(lane_only_answers(&lanes[i]));
			fab[i].status = 0;
		}
		err_clear(&err);
		assert_int_equal(stage_begin(&session, &source, (struct breath){0}, &stage, &err),
				 0);
		all_may_answer();
		assert_int_equal(messages(20, 4), 0);
		assert_int_equal(stage_settle(stage, &err), 0);
		assert_staged(20, 4);
		stage_end(stage);
	}
}

/* What is no STAGE is not refused like one. */
static void
a_lane_that_stages_nothing_is_lost(void **state)
{
	(void)state;
	begin_far(1);
	assert_int_equal(messages(0, 2), 0);
	stage_end(stage);
	all_refuse();
	assert_true(lane_step(&lanes[0]));
	assert_int_equal(lanes[0].status, REPL_E_NOSPC);
}

/* Of lanes that are as they were when that ends the wait. */
static void
a_wait_breathes(void **state)
{
	(void)state;
	begin_far(LANES);
	assert_int_equal(messages(0, 7), REPL_E_FAILED);
	assert_string_equal(err.text, "enough");
	for (unsigned i = 0; i < LANES; i++)
		assert_int_equal(lanes[i].status, 0);
	all_may_answer();
	assert_int_equal(stage_settle(stage, &err), 0);
	stage_end(stage);
}

static void
a_target_that_stands_still_is_given_up(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t since_ns;

		stall_ms = 30;
		begin_far(LANES);
		since_ns = now_ns;
		assert_int_equal(messages(0, 6 + i), i ? REPL_E_TIMEOUT : 0);
		assert_int_equal(stage_settle(stage, &err), REPL_E_TIMEOUT);
		assert_in_range(now_ns - since_ns, LANES * 30 * NS_PER_MS, LANES * 60 * NS_PER_MS);
		for (unsigned k = 0; k < LANES; k++)
			assert_int_equal(lanes[k].status, REPL_E_TIMEOUT);
		stage_end(stage);
	}
	stall_ms = 100000;
}

static void
all_must_be_free(void **state)
{
	(void)state;
	assert_int_equal(begin(LANES), 0);
	stage_end(stage);
	lanes[2].phase = LANE_AWAIT;
	assert_int_equal(stage_begin(&session, &source, (struct breath){0}, &stage, &err),
			 REPL_E_REFUSED);
	assert_null(stage);
	lanes[2].phase = LANE_IDLE;
	lanes[1].ring = true;
	assert_int_equal(stage_begin(&session, &source, (struct breath){0}, &stage, &err),
			 REPL_E_REFUSED);
	lanes[1].ring = false;
	lane_fail(&lanes[1], REPL_E_LOST, "before");
	assert_int_equal(stage_begin(&session, &source, (struct breath){0}, &stage, &err),
			 REPL_E_LOST);
	assert_null(stage);
}

/* As many as there can be, and more than there are replicas. */
static void
many_lanes(void **state)
{
	unsigned most = REPL_LANES_MAX * DEPTH;

	(void)state;
	begin_far(REPL_LANES_MAX);
	on_sleep = one_answers;
	for (unsigned sent = 0; sent <= most; sent += 60)
		assert_int_equal(messages(0, 60), 0);
	assert_int_equal(slept_on, REPL_LANES_MAX);
	assert_int_equal(stage_settle(stage, &err), 0);
	for (unsigned i = 0; i < REPL_LANES_MAX; i++) {
		assert_true(fab[i].taken >= DEPTH);
		assert_int_equal(fab[i].answered, fab[i].taken);
	}
	stage_end(stage);
}

/* Of runs of pages apart from each other, whatever a message may have. */
static void
journal_has_room_for_it(void **state)
{
	static const uint32_t sizes[] = {4096, 4100, 4143, 4144, 4159,  4160,
					 5000, 8191, 8192, 8240, 12288, MESSAGE};

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]) * 4; i++) {
		uint64_t run = 4096 * (i % 4 + 1), bytes = 0;

		msg_size = sizes[i / 4];
		assert_int_equal(begin(1), 0);
		all_may_answer();
		for (unsigned again = 0; again < 10; again++)
			for (uint64_t off = 0; off + run <= SIZE; off += run + 4096, bytes += run)
				assert_int_equal(stage_range(stage, off, run, &err), 0);
		assert_int_equal(stage_settle(stage, &err), 0);
		if (sent_bytes > remote_journal_room(&session, bytes))
			fail_msg("messages of %u: %llu bytes for %llu in runs of %llu", msg_size,
				 (unsigned long long)sent_bytes, (unsigned long long)bytes,
				 (unsigned long long)run);
		stage_end(stage);
	}
	msg_size = MESSAGE;
}

/* All of it, but for a page, may be asked for, and no more. */
static void
journal_takes_what_it_has_room_for(void **state)
{
	(void)state;
	for (uint64_t max = 0; max < (1ULL << 62); max = max * 5 / 3 + 4097) {
		uint64_t takes;

		session.terms.msg_size = max % 2 ? 4096 : MESSAGE;
		session.journal_max = max;
		takes = remote_journal_takes(&session);
		assert_true(takes == 0 || remote_journal_room(&session, takes) <= max);
		assert_true(remote_journal_room(&session, takes + 4096) > max);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_lane_where_it_is_near),
		cmocka_unit_test(by_turns),
		cmocka_unit_test(those_without_room_are_passed_over),
		cmocka_unit_test(settled_is_answered_on_each),
		cmocka_unit_test(one_that_is_lost_ends_it),
		cmocka_unit_test(a_full_target_leaves_the_lanes),
		cmocka_unit_test(a_lane_that_stages_nothing_is_lost),
		cmocka_unit_test(a_wait_breathes),
		cmocka_unit_test(a_target_that_stands_still_is_given_up),
		cmocka_unit_test(all_must_be_free),
		cmocka_unit_test(many_lanes),
		cmocka_unit_test(journal_has_room_for_it),
		cmocka_unit_test(journal_takes_what_it_has_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
