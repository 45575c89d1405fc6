/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target stores nothing behind a BARRIER before all in front of it is
 * durable, however the initiator cut its COMMITs.
 */
#include "unit.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "data.h"

#define POOL_SIZE    8192
#define MSG_SIZE     4096
#define MESSAGES_MAX 8
#define ANSWER       0x80000000U

/* ---- a pool that remembers what was done to it ---- */

struct pmem_map {
	char log[64]; /* a letter for each store, '|' for a flush */
	size_t log_len;
	int persist_rc;
};

static void
pool_log(struct pmem_map *m, char c)
{
	if (m->log_len + 1 < sizeof(m->log))
		m->log[m->log_len++] = c;
}

void *
pmem_map_addr(const struct pmem_map *m)
{
	(void)m;
	return NULL;
}

size_t
pmem_map_size(const struct pmem_map *m)
{
	(void)m;
	return POOL_SIZE;
}

int
pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e)
{
	(void)r;
	(void)count;
	pool_log(m, '|');
	return m->persist_rc ? err_set(e, m->persist_rc, "the device failed") : 0;
}

/* As for a page pool: a round takes all that has come. */
bool
pmem_map_groups(const struct pmem_map *m)
{
	(void)m;
	return true;
}

void
pmem_map_copy(struct pmem_map *m, uint64_t off, const void *src, size_t len)
{
	(void)off;
	(void)len;
	pool_log(m, *(const char *)src);
}

void
pmem_map_store8(struct pmem_map *m, uint64_t off, const void *src)
{
	pmem_map_copy(m, off, src, 8);
}

/* ---- no receive ring ---- */

const struct ring_geometry *
poolring_geometry(const struct poolring *r)
{
	(void)r;
	return NULL;
}

uint8_t *
poolring_slots(const struct poolring *r)
{
	(void)r;
	return NULL;
}

int
poolring_mark(struct poolring *r, uint32_t lane, uint64_t seq, struct err *e)
{
	(void)r;
	(void)lane;
	(void)seq;
	return err_set(e, REPL_E_FAILED, "not here");
}

int
poolring_destroy(struct poolring *r, uint32_t lane, uint32_t slot, struct err *e)
{
	return poolring_mark(r, lane, slot, e);
}

/* ---- a fabric on which all messages have arrived at once ---- */

struct fab_server {
	uint8_t msg[MESSAGES_MAX][MSG_SIZE];
	size_t len[MESSAGES_MAX];
	unsigned lane[MESSAGES_MAX];
	uint32_t imm[MESSAGES_MAX]; /* of a len of 0 */
	unsigned dropped;           /* a bit a lane */
	unsigned count, taken;
	int status[MESSAGES_MAX]; /* by sequence, from 1 */
	unsigned silent;          /* what is not answered but ends a lane */
	_Atomic unsigned answered;
};

static struct fab_server fabric;

int
fab_server_new(const struct fab_params *p, unsigned lanes, void *mem, size_t mem_len, bool write,
	       struct fab_server **out, struct err *e)
{
	(void)p;
	(void)lanes;
	(void)mem;
	(void)mem_len;
	(void)write;
	(void)e;
	*out = &fabric;
	return 0;
}

void
fab_server_free(struct fab_server *s)
{
	(void)s;
}

uint16_t
fab_server_port(const struct fab_server *s)
{
	(void)s;
	return 1;
}

bool
fab_server_immediates(const struct fab_server *s)
{
	(void)s;
	return true;
}

void
fab_server_close_port(struct fab_server *s)
{
	(void)s;
}

int
fab_server_accept(struct fab_server *s, unsigned lane, struct err *e)
{
	(void)s;
	(void)lane;
	return err_set(e, REPL_E_FAILED, "not here");
}

void
fab_server_reject(struct fab_server *s)
{
	(void)s;
}

void
fab_server_poll(struct fab_server *s, struct fab_event *ev)
{
	memset(ev, 0, sizeof(*ev));
	if (s->taken == s->count)
		return;
	ev->type = FAB_RECV;
	ev->lane = s->lane[s->taken];
	if (s->len[s->taken] == 0) {
		ev->type = FAB_IMM;
		ev->imm = s->imm[s->taken++];
		return;
	}
	ev->slot = s->taken;
	ev->data = s->msg[s->taken];
	ev->len = s->len[s->taken++];
}

/* Each poll is a look of its own. */
bool
fab_server_more(const struct fab_server *s)
{
	(void)s;
	return false;
}

void
fab_server_repost(struct fab_server *s, unsigned lane, unsigned slot)
{
	(void)lane;
	/* The provider may overwrite the buffer from now on. */
	memset(s->msg[slot], 0xee, MSG_SIZE);
}

int
fab_server_reply(struct fab_server *s, unsigned lane, const void *data, size_t len)
{
	struct wire_ack ack;

	(void)lane;
	assert_int_equal(wire_ack_decode(data, len, &ack, NULL), 0);
	assert_in_range(ack.seq, 1, MESSAGES_MAX);
	s->status[ack.seq - 1] = ack.status;
	atomic_fetch_add(&s->answered, 1);
	return 0;
}

void
fab_server_drop(struct fab_server *s, unsigned lane)
{
	s->dropped |= 1U << lane;
	/* Nothing more comes of it: the test waits for no answer. */
	atomic_fetch_add(&s->answered, s->silent);
}

void
fab_server_wait(struct fab_server *s, int wake_fd, uint64_t deadline_ns)
{
	struct pollfd pfd = {.fd = wake_fd, .events = POLLIN};

	(void)s;
	(void)deadline_ns;
	(void)poll(&pfd, 1, 100);
}

/* ---- messages ---- */

/* One entry a letter: '-' a BARRIER, else a COPY of 8 such letters. */
static void
arrive(unsigned lane, uint64_t seq, const char *entries)
{
	struct fab_server *s = &fabric;
	struct wire_commit c;

	wire_commit_begin(&c, s->msg[s->count], MSG_SIZE, (uint32_t)strlen(entries));
	for (; *entries; entries++) {
		struct wire_entry en = {.op = WIRE_OP_BARRIER};
		char payload[8];

		memset(payload, *entries, sizeof(payload));
		if (*entries != '-')
			en = (struct wire_entry){.off = 64, .len = 8, .op = WIRE_OP_COPY};
		wire_commit_add(&c, &en, payload);
	}
	s->lane[s->count] = lane;
	s->len[s->count++] = wire_commit_end(&c, seq, 7);
}

static void
arrive_imm(unsigned lane, uint32_t bits)
{
	fabric.lane[fabric.count] = lane;
	fabric.imm[fabric.count++] = bits;
}

/* Let the target take all that has arrived in one round. */
static void
serve_as(struct pmem_map *pool, bool write)
{
	struct data_params p = {.provider = "tcp",
				.address = "127.0.0.1",
				.lanes = 2,
				.depth = 4,
				.msg_size = MSG_SIZE,
				.map = pool,
				.write = write,
				.epoch = 7,
				.join_ms = 60000};
	struct data *d;

	assert_int_equal(data_new(&p, &d, NULL), 0);
	while (atomic_load(&fabric.answered) < fabric.count)
		(void)sched_yield();
	data_free(d);
}

static void
serve(struct pmem_map *pool)
{
	serve_as(pool, true);
}

static void
barrier_inside_a_commit(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-b");
	serve(&pool);
	assert_string_equal(pool.log, "a|b|");
}

static void
barrier_at_the_end_holds_the_next_commit(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-");
	arrive(0, 2, "b");
	serve(&pool);
	assert_string_equal(pool.log, "a|b|");
}

static void
barrier_at_the_start_holds_its_commit(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a");
	arrive(0, 2, "-b");
	serve(&pool);
	assert_string_equal(pool.log, "a|b|");
}

static void
barrier_holds_no_other_lane(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-");
	arrive(0, 2, "b");
	arrive(1, 1, "x");
	serve(&pool);
	assert_string_equal(pool.log, "ax|b|");
}

static void
failed_flush_holds_all_that_follows(void **state)
{
	struct pmem_map pool = {.log = "", .persist_rc = REPL_E_IO};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-b");
	arrive(0, 2, "c");
	serve(&pool);
	assert_string_equal(pool.log, "a|");
	assert_int_equal(fabric.status[0], REPL_E_IO);
	assert_int_equal(fabric.status[1], REPL_E_IO);
}

static void
immediates_share_the_flush_of_a_round(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive_imm(0, ANSWER);
	arrive(0, 2, "a");
	arrive_imm(0, ANSWER | 1);
	arrive(1, 1, "x");
	serve(&pool);
	assert_string_equal(pool.log, "ax|");
	assert_int_equal(fabric.status[2], 0);
	assert_int_equal(fabric.dropped, 0);
}

static void
immediate_waits_behind_a_barrier(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-");
	arrive_imm(0, ANSWER);
	serve(&pool);
	/* Its flush is one of its own. */
	assert_string_equal(pool.log, "a||");
}

static void
immediate_after_a_failed_flush_is_refused(void **state)
{
	struct pmem_map pool = {.log = "", .persist_rc = REPL_E_IO};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-");
	arrive_imm(0, ANSWER);
	serve(&pool);
	assert_string_equal(pool.log, "a|");
	assert_int_equal(fabric.status[1], REPL_E_IO);
}

static void
more_immediates_than_the_depth_end_the_lane(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	for (unsigned i = 0; i < 5; i++)
		arrive_imm(1, ANSWER | i);
	arrive(0, 1, "a");
	serve(&pool);
	assert_int_equal(fabric.dropped, 2);
	assert_int_equal(fabric.status[4], REPL_E_PROTOCOL);
	assert_string_equal(pool.log, "a|");
}

static void
sequences_without_a_gap_are_asked_for(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive_imm(0, ANSWER);
	arrive(0, 1, "a");
	serve(&pool);
	assert_int_equal(fabric.dropped, 1);
	assert_string_equal(pool.log, "|");
}

static void
immediate_to_a_pool_opened_for_reading_ends_the_lane(void **state)
{
	static const uint32_t bits[] = {0, ANSWER};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct pmem_map pool = {.log = ""};

		memset(&fabric, 0, sizeof(fabric));
		arrive_imm(0, bits[i]);
		serve_as(&pool, false);
		assert_int_equal(fabric.dropped, 1);
		assert_int_equal(fabric.status[0], REPL_E_REFUSED);
		assert_string_equal(pool.log, "");
	}
}

static void
immediate_of_an_unknown_lane_ends_all(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	fabric.silent = 1;
	arrive_imm(2, ANSWER);
	serve(&pool);
	assert_int_equal(fabric.dropped, 3);
	assert_string_equal(pool.log, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(barrier_inside_a_commit),
		cmocka_unit_test(barrier_at_the_end_holds_the_next_commit),
		cmocka_unit_test(barrier_at_the_start_holds_its_commit),
		cmocka_unit_test(barrier_holds_no_other_lane),
		cmocka_unit_test(failed_flush_holds_all_that_follows),
		cmocka_unit_test(immediates_share_the_flush_of_a_round),
		cmocka_unit_test(immediate_waits_behind_a_barrier),
		cmocka_unit_test(immediate_after_a_failed_flush_is_refused),
		cmocka_unit_test(more_immediates_than_the_depth_end_the_lane),
		cmocka_unit_test(sequences_without_a_gap_are_asked_for),
		cmocka_unit_test(immediate_to_a_pool_opened_for_reading_ends_the_lane),
		cmocka_unit_test(immediate_of_an_unknown_lane_ends_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
