/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target's data thread between a pool that remembers what was done to it and a fabric on which
 * all messages have arrived at once.
 */
#ifndef UNIT_DATA_WORLD_H
#define UNIT_DATA_WORLD_H

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "data.h"
#include "le.h"
#include "regions.h"

#define POOL_SIZE    8192
#define MSG_SIZE     4096
#define WINDOW       256
#define MESSAGES_MAX 8
#define TAIL         1024 /* where the tail word lies */
#define ANSWER       0x80000000U

/* ---- a pool that remembers what was done to it ---- */

struct pmem_map {
	char log[64]; /* a letter for each store, '|' for a flush */
	size_t log_len;
	int persist_rc;
	bool full; /* no hole gets space */
	_Alignas(8) uint8_t mem[POOL_SIZE];
};

static inline void
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
	(void)off;
	(void)len;
	return !m->full;
}

void
pmem_map_copy(struct pmem_map *m, uint64_t off, const void *src, size_t len)
{
	memcpy(m->mem + off, src, len);
	pool_log(m, *(const char *)src);
}

/* 'p' and its first byte. */
bool
pmem_map_put(struct pmem_map *m, uint64_t off, const void *src, size_t len)
{
	if (m->full)
		return false;
	pool_log(m, 'p');
	pmem_map_copy(m, off, src, len);
	return true;
}

void
pmem_map_get(const struct pmem_map *m, uint64_t off, void *dst, size_t len)
{
	memcpy(dst, m->mem + off, len);
}

static _Atomic unsigned zeroed; /* pieces */

bool
pmem_map_zero(struct pmem_map *m, uint64_t off, size_t len, bool hole)
{
	(void)off;
	(void)len;
	(void)hole;
	pool_log(m, '0');
	atomic_fetch_add(&zeroed, 1);
	return true;
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

/* 'P' and its last digit. */
int
roundlog_position(struct roundlog *l, uint64_t told, struct err *e)
{
	pool_log(l->pool, 'P');
	pool_log(l->pool, (char)('0' + told % 10));
	return l->rc ? err_set(e, l->rc, "the device failed") : 0;
}

/* A position record, which the pool remembers as it does the log. */
struct poolposition {
	struct pmem_map *pool;
	int rc;
};

static struct poolposition position_record;

int
poolposition_tell(struct poolposition *p, uint64_t told, struct err *e)
{
	pool_log(p->pool, 'R');
	pool_log(p->pool, (char)('0' + told % 10));
	return p->rc ? err_set(e, p->rc, "the device failed") : 0;
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
roundlog_flush(struct roundlog *l, struct range *r, size_t count, struct err *e)
{
	return pmem_map_persist(l->pool, r, count, e);
}

/* '!': it may wait for all that frames bring. */
int
roundlog_persist(struct roundlog *l, struct range *r, size_t count, struct err *e)
{
	pool_log(l->pool, '!');
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
	unsigned keys;            /* told, each that of its lane's window */
	unsigned registered;      /* a bit a region */
	size_t registered_len;
	unsigned silent; /* what is not answered but ends a lane */
	_Atomic unsigned answered;
	_Atomic bool open; /* from now on what has arrived is seen */
	uint8_t window[2][WINDOW];
	bool endless; /* immediates that want no answer */
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

static uint64_t pin_max; /* besides what is registered; 0: any */

int
fab_server_can_pin(const struct fab_server *s, uint64_t len, struct err *e)
{
	(void)s;
	return pin_max && len > pin_max ? err_set(e, REPL_E_LIMIT, "too much is locked") : 0;
}

bool
fab_server_window(struct fab_server *s, unsigned lane, uint8_t **mem, struct regions_place *out)
{
	*mem = s->window[lane];
	*out = (struct regions_place){.addr = lane * WINDOW, .key = 9};
	return true;
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
	s->keys += ack.has_key && ack.key == 9 && ack.addr == lane * WINDOW;
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
static inline void
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

static inline void
arrive_imm(unsigned lane, uint32_t bits)
{
	fabric.lane[fabric.count] = lane;
	fabric.imm[fabric.count++] = bits;
}

static inline void
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

/* A drain: a COPY, its POSITION, a BARRIER. */
static inline void
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

static inline void
set_tail(struct pmem_map *m, uint64_t tail)
{
	put_le64(m->mem + TAIL, tail);
}

/* A message of one letter, a STAGE or a PUT. */
static inline void
arrive_letter(unsigned lane, uint64_t seq, char letter,
	      size_t (*end)(struct wire_commit *c, uint64_t seq, uint32_t epoch))
{
	struct fab_server *s = &fabric;
	struct wire_entry en = {.off = 64, .len = 1, .op = WIRE_OP_COPY};
	struct wire_commit c;

	s->lane[s->count] = lane;
	wire_commit_begin(&c, s->msg[s->count], MSG_SIZE, 1);
	wire_commit_add(&c, &en, &letter);
	s->len[s->count++] = end(&c, seq, 7);
}

static inline void
arrive_stage(unsigned lane, uint64_t seq, char letter)
{
	arrive_letter(lane, seq, letter, wire_stage_end);
}

static inline void
arrive_put(unsigned lane, uint64_t seq, char letter)
{
	arrive_letter(lane, seq, letter, wire_put_end);
}

/* One entry without bytes. */
static inline void
arrive_entry(uint64_t seq, enum wire_op op, uint64_t off, uint32_t len)
{
	struct fab_server *s = &fabric;
	struct wire_entry en = {.off = off, .len = len, .op = (uint8_t)op};
	struct wire_commit c;

	wire_commit_begin(&c, s->msg[s->count], MSG_SIZE, 1);
	wire_commit_add(&c, &en, NULL);
	s->len[s->count++] = wire_commit_end(&c, seq, 7);
}

static inline void
arrive_register(uint64_t seq, uint64_t region)
{
	arrive_entry(seq, WIRE_OP_REGISTER, region, 0);
}

/* What the session's own thread does before the messages are seen. */
static int others_sync;
static uint64_t grow_to;
static uint64_t grow_ask; /* when all was taken, and what is said to it */
static int grow_answer;
static uint64_t position; /* known at the end */
static struct pooljournal *the_journal;
static bool pool_is_sparse;
static bool put_granted;       /* may come */
static bool awaits_zero;       /* a piece, for some time */
static unsigned zeroed_served; /* pieces, before the end */

/* Let the target take all that has arrived in one round. */
static inline void
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
				.put = put_granted,
				.window = WINDOW,
				.journal = the_journal,
				.sparse = pool_is_sparse,
				.hole = pool_is_sparse,
				.epoch = 7,
				.join_ms = fabric.endless ? 1 : 60000};
	struct data *d;

	if (round_log.pool)
		p.log = &round_log;
	if (position_record.pool)
		p.record = &position_record;
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
	for (unsigned i = 0; awaits_zero && !atomic_load(&zeroed) && i < 20000; i++)
		(void)usleep(500);
	zeroed_served = atomic_load(&zeroed);
	if (grow_ask)
		grow_answer = data_grow_check(d, grow_ask, NULL);
	data_stop(d);
	position = data_position(d);
	data_free(d);
}

static inline void
serve(struct pmem_map *pool)
{
	serve_as(pool, true);
}

/* The same with a round log. */
static inline void
serve_logged(struct pmem_map *pool, int rc)
{
	round_log = (struct roundlog){.pool = pool, .rc = rc};
	serve(pool);
	round_log.pool = NULL;
}

#endif
