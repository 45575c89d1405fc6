/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane posts what was flushed by the method that is asked for, whatever the
 * target granted, never more than fits, and nothing of a pair's second too soon.
 */
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "fill.h"
#include "lane.h"
#include "lane_ship.h"
#include "profile.h"
#include "remote.h"
#include "words.h"

#define POOL_SIZE (8U << 20)
#define RMA_ROOM  4U
#define DEPTH     8U
#define IMM_UNIT  64U
#define LOG_MAX   400

/*
 * A target that answers at once: COMMITs are checked and their entries noted.
 * RMA is complete when it is polled for. The log has what was posted:
 *
 *   W write, w covered write, i with an immediate to be answered, j with another, r read
 *   (fca-n) a COMMIT and its entries: FLUSH, COPY, ATOMIC8, BARRIER, POSITION; (b...) a BARE
 *   | before what was posted when nothing was outstanding any more
 */
struct fab_lane {
	uint8_t buf[WIRE_MSG_SIZE_MAX];
	uint8_t ack[DEPTH][WIRE_ACK_SIZE];
	unsigned acks_head, acks_count;
	unsigned rma, reads;
	uint64_t copied; /* bytes */
	unsigned amid;   /* of what copied them, how many begin amid a word */
	uint64_t seq;    /* of the last COMMIT or answered immediate */
	uint64_t named;  /* bytes, by immediates */
	bool silent;     /* until somebody sleeps on it */
	bool deaf;       /* ... and then as well */
	char log[LOG_MAX];
};

static unsigned polls;
static uint64_t page_stall_ns;   /* that the next one written waits for a page of the pool */
static uint64_t sleep_stall_ns;  /* that the next sleep takes beyond its time */
static uint64_t answers_at_ns;   /* nobody does before */
static unsigned slept_on;        /* lanes, the last time */
static struct fab_lane *earlier; /* one that has answered when somebody wakes, or NULL */

#include "fab_lane_stubs.h"

static void
log_post(struct fab_lane *l, char c)
{
	if (l->log[0] && l->acks_count == 0 && l->rma == 0)
		log_put(l, '|');
	log_put(l, c);
}

static void
answer(struct fab_lane *l, uint64_t seq)
{
	struct wire_ack ack = {.seq = seq, .epoch = 1};

	assert_int_equal(seq, ++l->seq);
	assert_true(l->acks_count < DEPTH);
	wire_ack_encode(l->ack[(l->acks_head + l->acks_count++) % DEPTH], &ack);
}

uint8_t *
fab_lane_buf(struct fab_lane *l)
{
	return l->acks_count < DEPTH ? l->buf : NULL;
}

int
fab_lane_send(struct fab_lane *l, size_t len, struct err *e)
{
	static const char letters[] = "?fca-????n?";
	struct wire_commit_view v;

	log_post(l, '(');
	if (wire_bare_is(l->buf, len)) {
		log_put(l, 'b');
		assert_int_equal(wire_bare_decode(l->buf, len, POOL_SIZE, &v, e), 0);
	} else {
		assert_int_equal(wire_commit_decode(l->buf, len, POOL_SIZE, &v, e), 0);
	}
	for (uint32_t i = 0; i < v.entry_count; i++) {
		struct wire_entry en = wire_commit_entry(&v, i);

		l->copied += en.op == WIRE_OP_COPY ? en.len : 0;
		l->amid += en.op == WIRE_OP_COPY && en.off % WORDS_SIZE != 0;
		log_put(l, letters[en.op]);
	}
	log_put(l, ')');
	answer(l, v.seq);
	return 0;
}

int
fab_lane_send_delivered(struct fab_lane *l, size_t len, struct err *e)
{
	(void)l;
	(void)len;
	return err_set(e, REPL_E_FAILED, "not here");
}

/* The target has had nothing to answer meanwhile, and does so a moment later. */
static void
this_machine_stalls(uint64_t *ns)
{
	if (*ns == 0)
		return;
	(void)usleep((unsigned)(*ns / 1000));
	*ns = 0;
	answers_at_ns = clock_deadline(20);
}

static int
post_rma(struct fab_lane *l, char letter, struct err *e)
{
	if (l->rma == RMA_ROOM)
		return err_set(e, REPL_E_BUSY, "no room");
	this_machine_stalls(&page_stall_ns);
	log_post(l, letter);
	l->rma++;
	return 0;
}

int
fab_lane_write(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	(void)src;
	(void)len;
	(void)off;
	return post_rma(l, 'W', e);
}

int
fab_lane_write_covered(struct fab_lane *l, const void *src, size_t len, uint64_t off, struct err *e)
{
	(void)src;
	(void)len;
	(void)off;
	return post_rma(l, 'w', e);
}

int
fab_lane_write_committed(struct fab_lane *l, const void *src, size_t len, uint64_t off,
			 struct err *e)
{
	(void)src;
	(void)len;
	(void)off;
	return post_rma(l, 'n', e);
}

bool
fab_lane_turn(const struct fab_lane *l)
{
	return l->acks_count < DEPTH;
}

int
fab_lane_write_imm(struct fab_lane *l, const void *src, size_t len, uint64_t off,
		   const struct fab_imm *imm, struct err *e)
{
	struct wire_imm named;

	(void)src;
	assert_int_equal(wire_imm_decode(imm->bits, IMM_UNIT, POOL_SIZE, &named, e), 0);
	assert_int_equal(named.answer, imm->answered);
	assert_true(named.off <= off && off + len <= named.off + named.len);
	l->named += named.len;
	if (post_rma(l, imm->answered ? 'i' : 'j', e))
		return e->code;
	if (imm->answered)
		answer(l, l->seq + 1);
	return 0;
}

int
fab_lane_read(struct fab_lane *l, void *dst, size_t len, uint64_t off, struct err *e)
{
	(void)dst;
	(void)len;
	(void)off;
	l->reads++;
	return post_rma(l, 'r', e);
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
	polls++;
	if (l->silent || l->deaf || (answers_at_ns && clock_now_ns() < answers_at_ns))
		return;
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

void
fab_lanes_wait(struct fab_lane **lanes, unsigned count, int wake_fd, uint64_t deadline_ns)
{
	(void)wake_fd;
	slept_on = count;
	this_machine_stalls(&sleep_stall_ns);
	if (count == 1 && lanes[0]->deaf && deadline_ns > clock_now_ns())
		(void)usleep((unsigned)((deadline_ns - clock_now_ns()) / 1000));
	for (unsigned i = 0; i < count; i++)
		lanes[i]->silent = false;
	if (earlier)
		earlier->silent = false;
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
	struct lane_setup setup = {
		.rma = rma, .depth = DEPTH, .msg_size = msg_size, .epoch = 1, .imm_unit = IMM_UNIT};

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
job(struct bench *b, enum lane_kind kind, uint64_t off, uint64_t len)
{
	lane_begin(&b->lane, kind, off, len);
	for (int i = 0; i < 100000 && !lane_done(&b->lane); i++)
		(void)lane_step(&b->lane);
	assert_true(lane_done(&b->lane));
	assert_int_equal(b->lane.status, 0);
}

static void
drain(struct bench *b)
{
	job(b, LANE_DRAIN, 0, 0);
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
	l->limits.force = PLAN_BIT(PLAN_GENERAL);
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

/* What is stored once a loss is recorded must not get there, however long the target answers. */
static void
who_is_given_up_gets_nothing_more(void **state)
{
	struct bench *b = bench_new(true, 4096);
	struct lane *l = &b->lane;
	_Atomic int gone = 0;
	uint64_t copied;

	(void)state;
	lane_watch(l, &gone);
	l->limits.force = PLAN_BIT(PLAN_MESSAGE);
	for (unsigned i = 0; i < RANGESET_MAX; i++)
		assert_int_equal(lane_flush(l, i * 8192UL, 4040), 0);
	lane_begin(l, LANE_DRAIN, 0, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_true(lane_step(l));
	copied = b->fab.copied;
	assert_true(copied < RANGESET_MAX * 4040UL);
	atomic_store(&gone, REPL_E_TIMEOUT);
	lanes_run(&l, 1, lane_done, clock_deadline(10000));
	assert_int_equal(l->status, REPL_E_TIMEOUT);
	assert_int_equal(b->fab.copied, copied);
	free(b);
}

/* ---- methods ---- */

/* A target's facts, all known. */
struct facts {
	enum profile_domain domain;
	enum profile_ddio ddio;
};

static const struct facts dmp = {PROFILE_DMP, PROFILE_DDIO_ON};
static const struct facts dmp_no_ddio = {PROFILE_DMP, PROFILE_DDIO_OFF};
static const struct facts mhp = {PROFILE_MHP, PROFILE_DDIO_ON};
static const struct facts wsp = {PROFILE_WSP, PROFILE_DDIO_ON};

/* A lane to a target of InfiniBand that is to use that method. */
static struct bench *
bench_forced(const struct facts *f, enum plan_method m)
{
	struct bench *b = bench_new(true, 32768);

	profile_set(&b->profile, PROFILE_F_DOMAIN, (int)f->domain, "test");
	profile_set(&b->profile, PROFILE_F_DDIO, (int)f->ddio, "test");
	profile_set(&b->profile, PROFILE_F_PROVIDER, PROFILE_PROVIDER_IB, "test");
	profile_set(&b->profile, PROFILE_F_FLUSH, PROFILE_FLUSH_YES, "test");
	b->lane.limits.force = PLAN_BIT(m);
	b->lane.limits.can |= PLAN_BIT(m);
	return b;
}

static const struct method_case {
	const struct facts *facts;
	enum plan_method method;
	const char *one, *pair, *atomic;
} method_cases[] = {
	{&dmp, PLAN_MESSAGE, "(c)", "(c-c)", "(c-a)"},
	{&dmp, PLAN_GENERAL, "w(f)", "w(f)|w(f)", "w(f-a)"},
	{&mhp, PLAN_GENERAL, "w(f)", "w(f)|w(f)", "w(f-a)"},
	{&dmp_no_ddio, PLAN_APPLIANCE, "wr", "wr|wr", "wr|(a)"},
	{&mhp, PLAN_APPLIANCE, "wr", "wwr", "wr|(a)"},
	{&wsp, PLAN_APPLIANCE, "wr", "wwr", "wr|(a)"},
	{&wsp, PLAN_COMPLETION, "W", "WW", "W|(a)"},
	{&dmp_no_ddio, PLAN_NATIVE_FLUSH, "n", "n|n", "n|(a)"},
	{&mhp, PLAN_NATIVE_FLUSH, "n", "nn", "n|(a)"},
	{&dmp, PLAN_WRITE_IMM, "i", "i|i", "i(-a)"},
	{&wsp, PLAN_WRITE_IMM, "i", "i|i", "i(-a)"},
	{&dmp_no_ddio, PLAN_WRITE_IMM_READ, "jr", "jr|jr", "jr|(a)"},
	{&mhp, PLAN_WRITE_IMM_READ, "jr", "jjr", "jr|(a)"},
};

static void
every_method_posts_its_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(method_cases) / sizeof(method_cases[0]); i++) {
		const struct method_case *c = &method_cases[i];
		struct bench *b = bench_forced(c->facts, c->method);

		assert_int_equal(lane_flush(&b->lane, 4096, 100), 0);
		drain(b);
		assert_string_equal(b->fab.log, c->one);
		memset(b->fab.log, 0, LOG_MAX);
		assert_int_equal(lane_flush(&b->lane, 4096, 100), 0);
		job(b, LANE_PAIR, 8192, 16);
		assert_string_equal(b->fab.log, c->pair);
		memset(b->fab.log, 0, LOG_MAX);
		assert_int_equal(lane_flush(&b->lane, 4096, 100), 0);
		job(b, LANE_ATOMIC8, 8192, 8);
		assert_string_equal(b->fab.log, c->atomic);
		free(b);
	}
}

/* Nothing was flushed before the second: it need not wait. */
static void
a_second_without_a_first_waits_for_nothing(void **state)
{
	struct bench *b = bench_forced(&dmp, PLAN_WRITE_IMM);

	(void)state;
	job(b, LANE_PAIR, 0, 64);
	assert_string_equal(b->fab.log, "i");
	free(b);
}

/* What alone would be one write is, as the first of a pair that fits, part of its message. */
static void
a_pair_that_fits_a_message_is_one(void **state)
{
	struct bench *b = bench_forced(&wsp, PLAN_COMPLETION);

	(void)state;
	b->lane.limits.force = 0;
	assert_int_equal(lane_flush_first(&b->lane, 0, 8192, 0), 0);
	drain(b);
	assert_string_equal(b->fab.log, "W");
	memset(b->fab.log, 0, LOG_MAX);
	assert_int_equal(lane_flush_first(&b->lane, 0, 8192, 8), 0);
	job(b, LANE_PAIR, 65536, 8);
	assert_string_equal(b->fab.log, "(c-c)");
	memset(b->fab.log, 0, LOG_MAX);
	assert_int_equal(lane_flush_first(&b->lane, 0, 65536, 8), 0);
	job(b, LANE_PAIR, 65536, 8);
	assert_string_equal(b->fab.log, "W|(c)");
	free(b);
}

/* What small ranges of a job go by where the choice is free. */
static void
check_small(struct bench *b, unsigned count, uint64_t len, enum lane_kind kind, const char *log)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(lane_flush(&b->lane, i * 65536UL, len), 0);
	assert_string_equal(b->fab.log, "");
	job(b, kind, POOL_SIZE - 8, kind == LANE_DRAIN ? 0 : 8);
	assert_string_equal(b->fab.log, log);
	memset(b->fab.log, 0, LOG_MAX);
}

/* One write is for a range alone: others, and what is ordered behind it, share its message. */
static void
a_small_range_is_a_write_if_it_is_alone(void **state)
{
	struct bench *b = bench_forced(&wsp, PLAN_COMPLETION);

	(void)state;
	b->lane.limits.force = 0;
	check_small(b, 1, 128, LANE_DRAIN, "(c)");
	check_small(b, 1, 129, LANE_DRAIN, "W");
	check_small(b, 1, 2048, LANE_DRAIN, "W");
	check_small(b, 2, 2048, LANE_DRAIN, "(cc)");
	check_small(b, 1, 2048, LANE_ATOMIC8, "(c-a)");
	assert_int_equal(lane_flush(&b->lane, 0, 2049), 0);
	assert_string_equal(b->fab.log, "W");
	drain(b);
	free(b);
}

/* The target would flush all of a unit for what is a part of it. */
static void
an_immediate_has_units_no_longer_than_the_range(void **state)
{
	struct bench *b = bench_new(true, 32768);

	(void)state;
	profile_set(&b->profile, PROFILE_F_PROVIDER, PROFILE_PROVIDER_SOFTWARE, "test");
	b->lane.imm_unit = 8 * IMM_UNIT;
	check_small(b, 1, 8 * IMM_UNIT - 1, LANE_DRAIN, "(c)");
	b->lane.imm_unit = IMM_UNIT;
	check_small(b, 1, 8 * IMM_UNIT - 1, LANE_DRAIN, "i");
	free(b);
}

/* Of two methods neither orders the other's writes. */
static void
a_second_by_another_method_waits(void **state)
{
	struct bench *b = bench_forced(&mhp, PLAN_APPLIANCE);

	(void)state;
	assert_int_equal(lane_flush(&b->lane, 0, 64), 0);
	b->lane.limits.force = PLAN_BIT(PLAN_MESSAGE);
	assert_int_equal(lane_flush(&b->lane, 4096, 64), 0);
	b->lane.limits.force = PLAN_BIT(PLAN_APPLIANCE);
	job(b, LANE_PAIR, 8192, 64);
	assert_string_equal(b->fab.log, "wwwr");
	memset(b->fab.log, 0, LOG_MAX);
	b->lane.limits.force = PLAN_BIT(PLAN_MESSAGE);
	assert_int_equal(lane_flush(&b->lane, 4096, 64), 0);
	b->lane.limits.force = PLAN_BIT(PLAN_APPLIANCE);
	assert_int_equal(lane_flush(&b->lane, 0, 64), 0);
	b->lane.limits.force = PLAN_BIT(PLAN_MESSAGE);
	job(b, LANE_PAIR, 8192, 64);
	/* The read behind the write is due before the message may follow. */
	assert_string_equal(b->fab.log, "wr(c)|(c)");
	free(b);
}

/* A range that one immediate can't name goes by several, no more than depth unanswered. */
static void
a_long_range_goes_by_several_immediates(void **state)
{
	static const char due[] = "iiiiiiii";
	struct bench *b = bench_forced(&dmp, PLAN_WRITE_IMM);

	(void)state;
	assert_int_equal(lane_flush(&b->lane, 100, 8U * 2048 * IMM_UNIT - 100), 0);
	drain(b);
	for (const char *c = b->fab.log, *d = due; *c; c++)
		assert_true(*c == '|' || *c == *d++);
	assert_int_equal(b->fab.named, 8U * 2048 * IMM_UNIT - IMM_UNIT);
	assert_int_equal(b->fab.seq, 8);
	free(b);
}

/* Where the choice is free, several ranges are asked for by one message, one by itself. */
static void
immediates_are_for_a_range_alone(void **state)
{
	struct bench *b = bench_new(true, 32768);

	(void)state;
	profile_set(&b->profile, PROFILE_F_PROVIDER, PROFILE_PROVIDER_SOFTWARE, "test");
	assert_int_equal(lane_flush(&b->lane, 0, 65536), 0);
	drain(b);
	assert_string_equal(b->fab.log, "i");
	memset(b->fab.log, 0, LOG_MAX);
	assert_int_equal(lane_flush(&b->lane, 0, 65536), 0);
	assert_int_equal(lane_flush(&b->lane, 1 << 20, 65536), 0);
	drain(b);
	assert_string_equal(b->fab.log, "ww(ff)");
	memset(b->fab.log, 0, LOG_MAX);
	assert_int_equal(lane_flush(&b->lane, 1, 2048 * IMM_UNIT), 0);
	drain(b);
	assert_string_equal(b->fab.log, "w(f)");
	free(b);
}

/* A COMMIT in the making has its number before the immediate behind it. */
static void
immediates_and_messages_are_numbered_together(void **state)
{
	struct bench *b = bench_forced(&dmp, PLAN_WRITE_IMM);

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		/* Beyond what an immediate can name of this pool. */
		b->lane.imm_unit = i % 3 ? IMM_UNIT : 0;
		assert_int_equal(lane_flush(&b->lane, i * 4096UL, 64), 0);
		if (i % 5 == 4)
			drain(b);
	}
	b->lane.imm_unit = IMM_UNIT;
	drain(b);
	free(b);
}

/* ---- several lanes ---- */

static unsigned
sleep_of_three(uint64_t len)
{
	struct bench *b[3];
	struct lane *lanes[3];

	for (unsigned i = 0; i < 3; i++) {
		b[i] = bench_new(true, 32768);
		b[i]->fab.silent = i > 0;
		lanes[i] = &b[i]->lane;
		assert_int_equal(lane_flush(lanes[i], 0, len), 0);
		lane_begin(lanes[i], LANE_DRAIN, 0, 0);
	}
	lanes_run(lanes, 3, lane_done, clock_deadline(10000));
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(lanes[i]->status, 0);
		free(b[i]);
	}
	return slept_on;
}

/* ... and one that may have to be moved on is never left alone. */
static void
answers_of_all_cost_one_sleep(void **state)
{
	struct bench *b[2];
	struct lane *lanes[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		b[i] = bench_new(false, 32768);
		lanes[i] = &b[i]->lane;
		assert_int_equal(lane_flush(lanes[i], 0, 64), 0);
		lane_begin(lanes[i], LANE_DRAIN, 0, 0);
		assert_true(lane_only_answers(lanes[i]));
	}
	b[0]->fab.silent = b[1]->fab.silent = true;
	earlier = &b[0]->fab;
	slept_on = 0;
	lanes_run(lanes, 2, lane_done, clock_deadline(10000));
	earlier = NULL;
	assert_int_equal(slept_on, 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(lanes[i]->status, 0);
		assert_true(lane_done(lanes[i]));
		free(b[i]);
	}
	assert_int_equal(sleep_of_three(65536), 2);
	assert_int_equal(sleep_of_three(16000), 2);
}

/* How often a lane is looked at that does not answer before somebody sleeps on it. */
static unsigned
polls_before_sleep(uint64_t busy_poll_ns)
{
	struct bench *b = bench_new(false, 32768);
	struct lane *l = &b->lane;

	l->busy_poll_ns = busy_poll_ns;
	assert_int_equal(lane_flush(l, 0, 64), 0);
	lane_begin(l, LANE_DRAIN, 0, 0);
	b->fab.silent = true;
	polls = 0;
	lanes_run(&l, 1, lane_done, clock_deadline(10000));
	assert_int_equal(l->status, 0);
	free(b);
	return polls;
}

static void
busy_poll_is_how_long_it_polls(void **state)
{
	(void)state;
	assert_in_range(polls_before_sleep(0), 1, 4);
	assert_true(polls_before_sleep(1000000) >= 64);
}

struct breather {
	struct bench *b;
	unsigned taken, answer_at, fail_at;
};

static int
breather_take(void *arg, struct err *e)
{
	struct breather *br = arg;

	br->taken++;
	if (br->taken == br->answer_at)
		br->b->fab.deaf = false;
	return br->taken == br->fail_at ? err_set(e, REPL_E_FAILED, "enough") : 0;
}

/*
 * However long it takes somebody looks at the world meanwhile, and may end it. As long as bytes
 * move it is not given up.
 */
static void
a_long_wait_breathes(void **state)
{
	static const struct {
		unsigned answer_at, fail_at, stall_ms;
		uint64_t moved_by;
		int rc, status;
	} rows[] = {
		{3, 0, 1000, 0, 0, 0},
		{0, 2, 1000, 0, REPL_E_FAILED, 0},
		{0, 0, 80, 0, 0, REPL_E_TIMEOUT},
		{20, 0, 80, 1, 0, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bench *b = bench_new(false, 32768);
		struct breather br = {
			.b = b, .answer_at = rows[i].answer_at, .fail_at = rows[i].fail_at};
		const struct breath breath = {.take = breather_take, .arg = &br};
		struct err e;

		err_clear(&e);
		assert_int_equal(lane_flush(&b->lane, 0, 64), 0);
		lane_begin(&b->lane, LANE_DRAIN, 0, 0);
		b->fab.deaf = true;
		moved_by = rows[i].moved_by;
		assert_int_equal(lane_run_while_moving(&b->lane, lane_done,
						       rows[i].stall_ms * NS_PER_MS, &breath, &e),
				 rows[i].rc);
		assert_int_equal(b->lane.status, rows[i].status);
		assert_in_range(br.taken, 2, moved_by ? 20 : 4);
		moved_by = 0;
		free(b);
	}
}

static bool
lane_never(const struct lane *l)
{
	return l->status != 0;
}

/* More than fits on its way at once, of which the page that is written behind that is not there. */
static void
what_this_machine_takes_is_no_time_of_the_targets(void **state)
{
	static const struct {
		uint64_t page_ms, sleep_ms;
		bool deaf;
	} rows[] = {{600, 0, false}, {0, 600, false}, {600, 600, false}, {300, 0, true}};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bench *b = bench_new(true, 32768);
		struct lane *l = &b->lane;

		assert_int_equal(lane_flush(l, 0, POOL_SIZE), 0);
		lane_begin(l, LANE_DRAIN, 0, 0);
		assert_false(lane_posted(l));
		page_stall_ns = rows[i].page_ms * NS_PER_MS;
		sleep_stall_ns = rows[i].sleep_ms * NS_PER_MS;
		answers_at_ns = clock_deadline(20);
		/* One that hangs is given up all the same. */
		lanes_run(&l, 1, rows[i].deaf ? lane_never : lane_done, clock_deadline(400));
		assert_int_equal(page_stall_ns + sleep_stall_ns, 0);
		assert_int_equal(l->status, rows[i].deaf ? REPL_E_TIMEOUT : 0);
		answers_at_ns = 0;
		free(b);
	}
}

/* ---- shipments ---- */

static struct shipment *
ship(struct bench *b, uint64_t off, size_t len, struct ship_at *at)
{
	static uint64_t number;
	struct shipment *s = shipment_new(1, len);

	assert_non_null(s);
	shipment_add(s, WIRE_OP_COPY, off, len, b->mem + off);
	s->number = ++number;
	assert_true(lane_ship(&b->lane, s, 0, at));
	lane_ship_send(&b->lane);
	return s;
}

static void
answers(struct bench *b)
{
	while (!lane_ship_quiet(&b->lane))
		(void)lane_step(&b->lane);
	assert_int_equal(b->lane.status, 0);
	memset(b->fab.log, 0, LOG_MAX);
}

/*
 * Of two messages a replica may get one: no word is divided between them, whatever size is granted
 * and wherever the range begins.
 */
static void
messages_divide_no_word(void **state)
{
	static const size_t granted[] = {4096, 4097, 5000, 8191, 32767};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(granted) / sizeof(granted[0]); i++) {
		struct bench *b = bench_new(false, granted[i / 2]);
		uint64_t off = i % 2 ? 4 : 0;
		struct ship_at at = {0};

		assert_int_equal(lane_flush(&b->lane, off, 100000), 0);
		drain(b);
		assert_int_equal(b->fab.copied, 100000);
		assert_int_equal(b->fab.amid, i % 2);
		b->fab.amid = 0;
		free(ship(b, off, 3 * granted[i / 2], &at));
		assert_int_equal(b->fab.copied, 100000 + 3 * granted[i / 2]);
		assert_int_equal(b->fab.amid, i % 2);
		free(b);
	}
}

/* Nor by what copies a replica. */
static void
copies_divide_no_word(void **state)
{
	static uint8_t buf[32768];
	struct fill f = {0};
	uint64_t word = 0;
	size_t room;

	(void)state;
	for (size_t granted = 4096; granted < sizeof(buf); granted += 61) {
		for (uint64_t off = 0; off < 16; off++) {
			for (size_t before = 0; before < 3; before++) {
				struct wire_entry en = {.len = (uint32_t)before,
							.op = WIRE_OP_COPY};

				wire_commit_begin(&f.message, buf, granted, 4);
				if (before > 0)
					wire_commit_add(&f.message, &en, &word);
				room = fill_room(&f, off, 1U << 20);
				assert_true(room > 0 || before > 0);
				assert_true(room == 0 || (off + room) % WORDS_SIZE == 0);
			}
		}
	}
}

/* Its bytes may be in the pool before the BARRIER of what is on its way. */
static void
shipments_go_by_rma_behind_nothing(void **state)
{
	struct bench *b = bench_new(true, 32768);
	struct ship_at at = {0};

	(void)state;
	free(ship(b, 0, 65536, &at));
	assert_string_equal(b->fab.log, "w(fn-)");
	assert_true(at.writes);
	/* Unanswered. */
	free(ship(b, 0, 40000, &at));
	assert_string_equal(b->fab.log, "w(fn-)(c)(cn-)");
	assert_false(at.writes);
	answers(b);
	free(ship(b, 0, 64, &at));
	assert_string_equal(b->fab.log, "(cn-)");
	assert_false(at.writes);
	answers(b);
	free(ship(b, 0, 65536, &at));
	assert_string_equal(b->fab.log, "w(fn-)");
	answers(b);
	free(b);
	b = bench_new(false, 32768);
	free(ship(b, 0, 40000, &at));
	assert_string_equal(b->fab.log, "(c)(cn-)");
	free(b);
}

static void
shipments_wait_for_rma_where_it_may_be(void **state)
{
	struct bench *b = bench_new(true, 32768);
	struct shipment *large = shipment_new(1, 65536), *small = shipment_new(1, 64);
	struct ship_at at = {0};

	(void)state;
	assert_non_null(large);
	assert_non_null(small);
	shipment_add(large, WIRE_OP_COPY, 0, 65536, b->mem);
	shipment_add(small, WIRE_OP_COPY, 0, 64, b->mem);
	assert_false(lane_ship_pays_to_wait(&b->lane, large, &at));
	free(ship(b, 0, 64, &at));
	assert_true(lane_ship_pays_to_wait(&b->lane, large, &at));
	assert_false(lane_ship_pays_to_wait(&b->lane, small, &at));
	at.begun = true;
	assert_false(lane_ship_pays_to_wait(&b->lane, large, &at));
	at.begun = false;
	answers(b);
	assert_false(lane_ship_pays_to_wait(&b->lane, large, &at));
	b->lane.limits.rma = false;
	free(ship(b, 0, 64, &at));
	assert_false(lane_ship_pays_to_wait(&b->lane, large, &at));
	free(large);
	free(small);
	free(b);
}

/* As long as a write would be: what is shorter has a checksum in any case. */
static void
long_payloads_go_bare_where_they_may(void **state)
{
	static const char *const logs[2][2] = {{"(c-c)", "(c-c)"}, {"(c-c)", "(bc-c)"}};

	(void)state;
	for (int bare = 0; bare < 2; bare++) {
		for (int large = 0; large < 2; large++) {
			struct bench *b = bench_new(false, 16384);

			b->lane.bare = bare;
			assert_int_equal(lane_flush(&b->lane, 0, large ? 233 : 232), 0);
			job(b, LANE_PAIR, 4096, 8);
			assert_string_equal(b->fab.log, logs[bare][large]);
			free(b);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_messages_hold_every_range),
		cmocka_unit_test(small_messages_hold_many_ranges),
		cmocka_unit_test(a_full_lane_has_room_for_a_read_after_a_wait),
		cmocka_unit_test(who_is_given_up_gets_nothing_more),
		cmocka_unit_test(every_method_posts_its_steps),
		cmocka_unit_test(a_second_without_a_first_waits_for_nothing),
		cmocka_unit_test(a_pair_that_fits_a_message_is_one),
		cmocka_unit_test(a_small_range_is_a_write_if_it_is_alone),
		cmocka_unit_test(long_payloads_go_bare_where_they_may),
		cmocka_unit_test(an_immediate_has_units_no_longer_than_the_range),
		cmocka_unit_test(a_second_by_another_method_waits),
		cmocka_unit_test(a_long_range_goes_by_several_immediates),
		cmocka_unit_test(immediates_are_for_a_range_alone),
		cmocka_unit_test(immediates_and_messages_are_numbered_together),
		cmocka_unit_test(answers_of_all_cost_one_sleep),
		cmocka_unit_test(busy_poll_is_how_long_it_polls),
		cmocka_unit_test(a_long_wait_breathes),
		cmocka_unit_test(what_this_machine_takes_is_no_time_of_the_targets),
		cmocka_unit_test(messages_divide_no_word),
		cmocka_unit_test(copies_divide_no_word),
		cmocka_unit_test(shipments_go_by_rma_behind_nothing),
		cmocka_unit_test(shipments_wait_for_rma_where_it_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
