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
#include "le.h"

#define POOL_SIZE    8192
#define MSG_SIZE     4096
#define MESSAGES_MAX 8
#define TAIL         1024 /* where the tail word lies */
#define ANSWER       0x80000000U

/* ---- a pool that remembers what was done to it ---- */

struct pmem_map {
	char log[64]; /* a letter for each store, '|' for a flush */
	size_t log_len;
	int persist_rc;
	_Alignas(8) uint8_t mem[POOL_SIZE];
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
	return (void *)(uintptr_t)m->mem;
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

bool
pmem_map_back(struct pmem_map *m, uint64_t off, size_t len)
{
	(void)m;
	(void)off;
	(void)len;
	return true;
}

void
pmem_map_copy(struct pmem_map *m, uint64_t off, const void *src, size_t len)
{
	memcpy(m->mem + off, src, len);
	pool_log(m, *(const char *)src);
}

void
pmem_map_zero(struct pmem_map *m, uint64_t off, size_t len, bool hole)
{
	(void)off;
	(void)len;
	(void)hole;
	pool_log(m, '0');
}

void
pmem_map_store8(struct pmem_map *m, uint64_t off, const void *src)
{
	memcpy(m->mem + off, src, 8);
	pool_log(m, off == TAIL ? 'T' : *(const char *)src);
}

/* ---- a round log, of which the pool remembers what it got ---- */

struct roundlog {
	struct pmem_map *pool;
	int rc;
	unsigned messages;
	struct wire_entry entries[8]; /* of the last frame */
};

static struct roundlog round_log;

/* A frame: 'L' and the number of its messages; 'S' when they are stored. */
int
roundlog_write(struct roundlog *l, const struct wire_commit_view *const *messages, unsigned count,
	       struct err *e)
{
	unsigned n = 0;

	pool_log(l->pool, 'L');
	pool_log(l->pool, (char)('0' + count));
	for (unsigned i = 0; i < count; i++) {
		struct wire_commit_view v;
		size_t len;
		const uint8_t *msg = wire_commit_message(messages[i], &len);

		assert_int_equal(wire_commit_decode(msg, len, POOL_SIZE, &v, e), 0);
		assert_true(round_takes(&v));
		for (uint32_t k = 0; k < v.entry_count && n < 8; k++)
			l->entries[n++] = wire_commit_entry(&v, k);
	}
	l->messages += count;
	return l->rc ? err_set(e, l->rc, "the device failed") : 0;
}

/* All of it is stored by now. */
void
roundlog_stored(struct roundlog *l, const struct wire_commit_view *const *messages, unsigned count)
{
	(void)messages;
	(void)count;
	pool_log(l->pool, 'S');
}

int
roundlog_persist(struct roundlog *l, struct range *r, size_t count, struct err *e)
{
	return pmem_map_persist(l->pool, r, count, e);
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
	uint64_t place[2];        /* a lane's last */
	unsigned registered;      /* a bit a region */
	size_t registered_len;
	unsigned silent; /* what is not answered but ends a lane */
	_Atomic unsigned answered;
	_Atomic bool open; /* from now on what has arrived is seen */
	bool endless;      /* immediates that want no answer */
	_Atomic bool port_closed;
};

static struct fab_server fabric;

int
fab_server_new(const struct fab_params *p, unsigned lanes, struct fab_server **out, struct err *e)
{
	(void)p;
	(void)lanes;
	(void)e;
	*out = &fabric;
	return 0;
}

bool
fab_server_place(const struct fab_server *s, unsigned region, struct regions_place *out)
{
	(void)s;
	(void)region;
	(void)out;
	return false;
}

int
fab_server_can_pin(const struct fab_server *s, uint64_t len, struct err *e)
{
	(void)s;
	(void)len;
	(void)e;
	return 0;
}

bool
fab_server_window(struct fab_server *s, unsigned lane, uint8_t **mem, struct regions_place *out)
{
	(void)s;
	(void)lane;
	(void)mem;
	(void)out;
	return false;
}

int
fab_server_register(struct fab_server *s, unsigned region, void *mem, size_t len, bool write,
		    struct err *e)
{
	(void)s;
	(void)mem;
	(void)write;
	(void)e;
	s->registered |= 1U << region;
	s->registered_len += len;
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
	s->port_closed = true;
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
	if (s->endless && s->taken == s->count)
		ev->type = FAB_IMM;
	if (!atomic_load(&s->open) || s->taken == s->count)
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
	if (ack.has_place)
		s->place[lane] = ack.place;
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

static void
arrive_append(unsigned lane, uint64_t seq, uint64_t limit, uint32_t len, char letter)
{
	struct fab_server *s = &fabric;
	struct wire_entry en = {.off = TAIL, .len = len, .op = WIRE_OP_APPEND};
	struct wire_commit c;
	char data[512];

	memset(data, letter, sizeof(data));
	wire_commit_begin(&c, s->msg[s->count], MSG_SIZE, 1);
	wire_commit_add_append(&c, &en, limit, data);
	s->lane[s->count] = lane;
	s->len[s->count++] = wire_commit_end(&c, seq, 7);
}

static void
arrive_register(uint64_t seq, uint64_t region)
{
	struct fab_server *s = &fabric;
	struct wire_entry en = {.off = region, .op = WIRE_OP_REGISTER};
	struct wire_commit c;

	wire_commit_begin(&c, s->msg[s->count], MSG_SIZE, 1);
	wire_commit_add(&c, &en, NULL);
	s->len[s->count++] = wire_commit_end(&c, seq, 7);
}

/* A drain: a COPY, its POSITION, a BARRIER. */
static void
arrive_drain(uint64_t seq, char letter, uint64_t position)
{
	struct fab_server *s = &fabric;
	struct wire_commit c;

	wire_commit_begin(&c, s->msg[s->count], MSG_SIZE, 3);
	wire_commit_add(&c, &(struct wire_entry){.len = 1, .op = WIRE_OP_COPY}, &letter);
	wire_commit_add(&c, &(struct wire_entry){.off = position, .op = WIRE_OP_POSITION}, NULL);
	wire_commit_add(&c, &(struct wire_entry){.op = WIRE_OP_BARRIER}, NULL);
	s->len[s->count++] = wire_commit_end(&c, seq, 7);
}

static void
set_tail(struct pmem_map *m, uint64_t tail)
{
	put_le64(m->mem + TAIL, tail);
}

/* What the session's own thread does before the messages are seen. */
static int others_sync;
static uint64_t grow_to;
static uint64_t position; /* known at the end */

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
				.rma = true,
				.epoch = 7,
				.join_ms = fabric.endless ? 1 : 60000};
	struct data *d;

	if (round_log.pool)
		p.log = &round_log;
	assert_int_equal(data_new(&p, &d, NULL), 0);
	if (others_sync)
		data_fail(d, others_sync);
	if (grow_to)
		assert_int_equal(data_grow(d, grow_to, NULL), 0);
	atomic_store(&fabric.open, true);
	while (atomic_load(&fabric.answered) < fabric.count)
		(void)sched_yield();
	while (fabric.endless && !atomic_load(&fabric.port_closed))
		(void)sched_yield();
	data_stop(d);
	position = data_position(d);
	data_free(d);
}

static void
serve(struct pmem_map *pool)
{
	serve_as(pool, true);
}

/* The same with a round log. */
static void
serve_logged(struct pmem_map *pool, int rc)
{
	round_log = (struct roundlog){.pool = pool, .rc = rc};
	serve(pool);
	round_log.pool = NULL;
}

static void
log_takes_all_lanes_in_one_frame_before_anything_is_stored(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a-b");
	arrive(0, 2, "-c");
	arrive(1, 1, "x");
	arrive_drain(3, 'd', 9);
	serve_logged(&pool, 0);
	assert_string_equal(pool.log, "L4abcxdS");
	assert_int_equal(fabric.status[0] | fabric.status[1] | fabric.status[2], 0);
	assert_int_equal(position, 9);
}

static void
log_leaves_what_comes_by_rdma_and_all_behind_it(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a");
	arrive_imm(0, ANSWER);
	arrive(0, 3, "b");
	arrive(1, 1, "x");
	serve_logged(&pool, 0);
	assert_string_equal(pool.log, "L2axSb|");
}

static void
log_that_fails_stores_nothing(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a");
	arrive(1, 1, "x");
	serve_logged(&pool, REPL_E_IO);
	assert_string_equal(pool.log, "L2");
	assert_int_equal(fabric.status[0], REPL_E_IO);
}

/* Its bytes and the tail word, in one frame with the append behind it. */
static void
log_holds_an_append_as_what_it_came_to(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2048);
	arrive_append(0, 1, 4096, 100, 'a');
	arrive_append(1, 1, 4096, 50, 'x');
	serve_logged(&pool, 0);
	assert_string_equal(pool.log, "L2aTxTS");
	assert_true(fabric.place[0] == 2048 && fabric.place[1] == 2148);
	assert_int_equal(get_le64(pool.mem + TAIL), 2198);
	assert_true(round_log.entries[0].off == 2048 && round_log.entries[0].len == 100);
	assert_true(round_log.entries[1].off == TAIL && round_log.entries[1].op == WIRE_OP_ATOMIC8);
	assert_true(round_log.entries[2].off == 2148 && round_log.entries[2].len == 50);
}

/* The place follows from a word that is stored only after the frame. */
static void
log_has_no_append_in_the_frame_of_its_lanes_stores(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2048);
	arrive(0, 1, "a");
	arrive_append(0, 2, 4096, 100, 'b');
	serve_logged(&pool, 0);
	assert_string_equal(pool.log, "L1aSL1bTS");
}

static void
log_leaves_an_append_that_does_not_fit(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2048);
	arrive_append(0, 1, 2100, 100, 'a');
	serve_logged(&pool, 0);
	assert_string_equal(pool.log, "");
	assert_int_equal(fabric.status[0], REPL_E_NOSPC);
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
failed_sync_of_another_thread_holds_all_that_follows(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a");
	others_sync = REPL_E_IO;
	serve(&pool);
	others_sync = 0;
	assert_string_equal(pool.log, "");
	assert_int_equal(fabric.status[0], REPL_E_IO);
}

/* Its size may still turn out not to be recorded. */
static void
region_of_a_growth_that_is_under_way_is_refused(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive_register(1, 1);
	grow_to = 2UL * POOL_SIZE;
	serve(&pool);
	grow_to = 0;
	assert_int_equal(fabric.status[0], REPL_E_INVAL);
	assert_int_equal(fabric.registered, 0);
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

/* Two flushes for both: all bytes, then both tail words. */
static void
append_stores_its_tail_behind_a_flush(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2000);
	arrive_append(0, 1, 4096, 100, 'a');
	arrive_append(1, 1, 4096, 30, 'b');
	serve(&pool);
	assert_string_equal(pool.log, "ab|TT|");
	assert_int_equal(fabric.place[0], 2000);
	assert_int_equal(fabric.place[1], 2100);
	assert_int_equal(get_le64(pool.mem + TAIL), 2130);
	assert_true(pool.mem[2099] == 'a' && pool.mem[2100] == 'b' && pool.mem[2130] == 0);
}

/* The second takes its place when the first has its own and has not stored its tail. */
static void
append_behind_a_barrier_leaves_no_gap(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2000);
	arrive(1, 1, "x-");
	arrive_append(1, 2, 4096, 30, 'b');
	arrive_append(0, 1, 4096, 100, 'a');
	serve(&pool);
	assert_string_equal(pool.log, "xa|bT|T|");
	assert_int_equal(fabric.place[0], 2000);
	assert_int_equal(fabric.place[1], 2100);
	assert_int_equal(get_le64(pool.mem + TAIL), 2130);
}

static void
append_without_room_leaves_the_lane_alive(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 4000);
	arrive_append(0, 1, 4096, 97, 'a');
	arrive_append(0, 2, 4096, 96, 'b');
	arrive_append(0, 3, 4096, 1, 'c');
	serve(&pool);
	assert_int_equal(fabric.status[0], REPL_E_NOSPC);
	assert_int_equal(fabric.status[1], 0);
	assert_int_equal(fabric.place[0], 4000);
	assert_int_equal(fabric.status[2], REPL_E_NOSPC);
	assert_int_equal(get_le64(pool.mem + TAIL), 4096);
	assert_string_equal(pool.log, "b|T|");
}

/* The pool's bytes are the application's, and it may have been damaged or mean harm. */
static void
append_by_a_hostile_tail_word_is_refused(void **state)
{
	static const struct {
		uint64_t tail;
		int status;
	} rows[] = {
		{UINT64_MAX, REPL_E_CORRUPT},
		{UINT64_MAX - 50, REPL_E_CORRUPT},
		{POOL_SIZE + 1, REPL_E_CORRUPT},
		{POOL_SIZE, REPL_E_NOSPC},
		{TAIL, REPL_E_INVAL},
		{TAIL - 63, REPL_E_INVAL},
		{TAIL + 7, REPL_E_INVAL},
		{TAIL - 64, 0},
		{TAIL + 8, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pmem_map pool = {.log = ""};

		memset(&fabric, 0, sizeof(fabric));
		set_tail(&pool, rows[i].tail);
		arrive_append(0, 1, POOL_SIZE, 64, 'a');
		serve(&pool);
		assert_int_equal(fabric.status[0], rows[i].status);
		assert_int_equal(get_le64(pool.mem + TAIL),
				 rows[i].status ? rows[i].tail : rows[i].tail + 64);
	}
}

static void
failed_flush_gives_no_place(void **state)
{
	struct pmem_map pool = {.log = "", .persist_rc = REPL_E_IO};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	set_tail(&pool, 2000);
	arrive_append(0, 1, 4096, 100, 'a');
	serve(&pool);
	assert_string_equal(pool.log, "a|");
	assert_int_equal(fabric.status[0], REPL_E_IO);
	assert_int_equal(get_le64(pool.mem + TAIL), 2000);
}

static void
region_is_registered_when_it_is_asked_for(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive(0, 1, "a");
	serve(&pool);
	assert_int_equal(fabric.registered, 0);
	memset(&fabric, 0, sizeof(fabric));
	arrive_register(1, 1);
	arrive_register(2, 0);
	arrive_register(3, UINT64_MAX);
	serve_as(&pool, false);
	assert_int_equal(fabric.registered, 1);
	assert_int_equal(fabric.registered_len, POOL_SIZE);
	assert_int_equal(fabric.status[0], REPL_E_INVAL);
	assert_int_equal(fabric.status[1], 0);
	assert_int_equal(fabric.status[2], REPL_E_INVAL);
}

static void
position_is_the_highest_that_is_durable(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive_drain(1, 'a', 5);
	arrive_drain(2, 'b', 7);
	arrive_drain(3, 'c', 6);
	serve(&pool);
	assert_string_equal(pool.log, "a|b|c|");
	assert_int_equal(position, 7);
}

static void
failed_flush_gives_no_position(void **state)
{
	struct pmem_map pool = {.log = "", .persist_rc = REPL_E_IO};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	arrive_drain(1, 'a', 5);
	serve(&pool);
	assert_int_equal(fabric.status[0], REPL_E_IO);
	assert_int_equal(position, 0);
}

/* What comes without end delays no answer for ever, nor the end of the port and the lanes. */
static void
flood_of_events_is_left_in_between(void **state)
{
	struct pmem_map pool = {.log = ""};

	(void)state;
	memset(&fabric, 0, sizeof(fabric));
	fabric.endless = true;
	arrive(0, 1, "a");
	serve(&pool);
	assert_int_equal(fabric.status[0], 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_takes_all_lanes_in_one_frame_before_anything_is_stored),
		cmocka_unit_test(log_leaves_what_comes_by_rdma_and_all_behind_it),
		cmocka_unit_test(log_that_fails_stores_nothing),
		cmocka_unit_test(log_holds_an_append_as_what_it_came_to),
		cmocka_unit_test(log_has_no_append_in_the_frame_of_its_lanes_stores),
		cmocka_unit_test(log_leaves_an_append_that_does_not_fit),
		cmocka_unit_test(barrier_inside_a_commit),
		cmocka_unit_test(barrier_at_the_end_holds_the_next_commit),
		cmocka_unit_test(barrier_at_the_start_holds_its_commit),
		cmocka_unit_test(barrier_holds_no_other_lane),
		cmocka_unit_test(failed_flush_holds_all_that_follows),
		cmocka_unit_test(failed_sync_of_another_thread_holds_all_that_follows),
		cmocka_unit_test(region_of_a_growth_that_is_under_way_is_refused),
		cmocka_unit_test(append_stores_its_tail_behind_a_flush),
		cmocka_unit_test(append_behind_a_barrier_leaves_no_gap),
		cmocka_unit_test(append_without_room_leaves_the_lane_alive),
		cmocka_unit_test(append_by_a_hostile_tail_word_is_refused),
		cmocka_unit_test(failed_flush_gives_no_place),
		cmocka_unit_test(position_is_the_highest_that_is_durable),
		cmocka_unit_test(failed_flush_gives_no_position),
		cmocka_unit_test(region_is_registered_when_it_is_asked_for),
		cmocka_unit_test(immediates_share_the_flush_of_a_round),
		cmocka_unit_test(immediate_waits_behind_a_barrier),
		cmocka_unit_test(immediate_after_a_failed_flush_is_refused),
		cmocka_unit_test(more_immediates_than_the_depth_end_the_lane),
		cmocka_unit_test(sequences_without_a_gap_are_asked_for),
		cmocka_unit_test(immediate_to_a_pool_opened_for_reading_ends_the_lane),
		cmocka_unit_test(immediate_of_an_unknown_lane_ends_all),
		cmocka_unit_test(flood_of_events_is_left_in_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
