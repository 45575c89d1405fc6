/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wherever the power is cut while the target applies what lies in its receive ring, a replay of
 * the ring ends with all of it applied, in order; and what breaks the protocol is never applied.
 * What is trimmed becomes zero while others are answered.
 */
#include "unit.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data_impl.h"
#include "deposits.h"
#include "le.h"

#define POOL_SIZE    4096U
#define MSG_SIZE     4096U
#define LANES        3U
#define DEPTH        3U
#define EPOCH        7U
#define MESSAGES_MAX 16U
#define CUTS_MAX     256U
#define RING_SIZE    (8192U + LANES * FAB_SERVER_SLOTS(DEPTH) * 4096U)

/* ---- memory in front of media ---- */

struct pmem_map {
	uint8_t *cache;
	uint8_t *media;
	size_t size;
};

static uint8_t pool_cache[POOL_SIZE], pool_media[POOL_SIZE];
static uint8_t ring_cache[SIDECAR_SIZE + RING_SIZE], ring_media[SIDECAR_SIZE + RING_SIZE];
static struct pmem_map pool = {pool_cache, pool_media, POOL_SIZE};
static struct pmem_map ring = {ring_cache, ring_media, SIDECAR_SIZE + RING_SIZE};

/* What the media hold at a cut; evicted: the pool's caches were written back before. */
struct cut {
	uint8_t pool[POOL_SIZE], evicted[POOL_SIZE];
	uint8_t ring[RING_SIZE];
};

static struct {
	struct cut *cuts; /* NULL: none are taken */
	unsigned count;
	bool backwards; /* ranges that are flushed together reach the media in this order */
	int pool_rc;    /* of each flush of the pool */
	unsigned flushes;
} power;

static void
cut_here(void)
{
	struct cut *c = &power.cuts[power.count];

	if (!power.cuts)
		return;
	assert_true(power.count++ < CUTS_MAX);
	memcpy(c->pool, pool_media, POOL_SIZE);
	memcpy(c->evicted, pool_cache, POOL_SIZE);
	memcpy(c->ring, ring_media + SIDECAR_SIZE, RING_SIZE);
}

int
pmem_map_new(int fd, const char *path, size_t size, bool write, struct pmem_map **out,
	     struct err *e)
{
	(void)fd;
	(void)path;
	(void)write;
	(void)e;
	assert_int_equal(size, ring.size);
	*out = &ring;
	return 0;
}

void
pmem_map_free(struct pmem_map *m)
{
	(void)m;
}

void *
pmem_map_addr(const struct pmem_map *m)
{
	return m->cache;
}

size_t
pmem_map_size(const struct pmem_map *m)
{
	return m->size;
}

int
pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e)
{
	if (m == &pool && power.pool_rc)
		return err_set(e, power.pool_rc, "the device failed");
	power.flushes += m == &pool;
	cut_here();
	for (size_t i = 0; i < count; i++) {
		const struct range *one = &r[power.backwards ? count - 1 - i : i];

		assert_true(one->off <= m->size && one->len <= m->size - one->off);
		memcpy(m->media + one->off, m->cache + one->off, one->len);
		cut_here();
	}
	return 0;
}

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
	memcpy(m->cache + off, src, len);
}

bool
pmem_map_put(struct pmem_map *m, uint64_t off, const void *src, size_t len)
{
	pmem_map_copy(m, off, src, len);
	return true;
}

void
pmem_map_get(const struct pmem_map *m, uint64_t off, void *dst, size_t len)
{
	memcpy(dst, (const uint8_t *)pmem_map_addr(m) + off, len);
}

int
pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len, struct err *e)
{
	struct range r = {.off = off, .len = len};

	pmem_map_copy(m, off, src, len);
	return pmem_map_persist(m, &r, 1, e);
}

bool
pmem_map_zero(struct pmem_map *m, uint64_t off, size_t len, bool hole)
{
	(void)hole;
	memset(m->cache + off, 0, len);
	return true;
}

void
pmem_map_store8(struct pmem_map *m, uint64_t off, const void *src)
{
	pmem_map_copy(m, off, src, 8);
}

/* ---- a fabric on which all messages lie in their slots at once ---- */

struct message {
	unsigned lane, slot;
	unsigned behind; /* it arrives when so many are answered */
	size_t len;
	uint8_t bytes[256];
};

struct fab_server {
	struct message sent[MESSAGES_MAX];
	unsigned count, taken;
	unsigned lane_count[LANES]; /* sent on it */
	uint8_t *recv_mem;
	size_t stride;
	bool registered, rma_write;
	unsigned reposted;
	int status[MESSAGES_MAX]; /* in the order of the answers */
	unsigned dropped[LANES];
	_Atomic unsigned answered;
	void (*answering)(unsigned n); /* in the data thread, before the n-th answer */
};

static struct fab_server fabric;

/* As the provider stores it: into memory that is in the domain of persistence. */
static void
place(const struct message *m)
{
	uint8_t *slot =
		fabric.recv_mem + (m->lane * FAB_SERVER_SLOTS(DEPTH) + m->slot) * fabric.stride;

	memcpy(slot, m->bytes, m->len);
	memcpy(ring_media + (slot - ring_cache), m->bytes, m->len);
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
	(void)region;
	(void)mem;
	(void)len;
	(void)e;
	fabric.registered = true;
	fabric.rma_write = write;
	return 0;
}

int
fab_server_new(const struct fab_params *p, unsigned lanes, struct fab_server **out, struct err *e)
{
	(void)lanes;
	(void)e;
	fabric.recv_mem = p->recv_mem;
	fabric.stride = p->recv_stride;
	for (unsigned i = 0; i < fabric.count; i++)
		place(&fabric.sent[i]);
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
	const struct message *m = &s->sent[s->taken];

	memset(ev, 0, sizeof(*ev));
	if (s->taken == s->count || atomic_load(&s->answered) < m->behind)
		return;
	s->taken++;
	ev->type = FAB_RECV;
	ev->lane = m->lane;
	ev->slot = m->slot;
	ev->data = s->recv_mem + (m->lane * FAB_SERVER_SLOTS(DEPTH) + m->slot) * s->stride;
	ev->len = m->len;
}

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
	(void)slot;
	s->reposted++;
}

int
fab_server_reply(struct fab_server *s, unsigned lane, const void *data, size_t len)
{
	struct wire_ack ack;

	(void)lane;
	assert_int_equal(wire_ack_decode(data, len, &ack, NULL), 0);
	if (s->answering)
		s->answering(atomic_load(&s->answered));
	s->status[atomic_load(&s->answered)] = ack.status;
	atomic_fetch_add(&s->answered, 1);
	return 0;
}

void
fab_server_drop(struct fab_server *s, unsigned lane)
{
	s->dropped[lane]++;
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

struct header {
	uint64_t seq, stamp;
	uint32_t epoch;
};

/*
 * Entries: '-' a BARRIER; '+' registers the pool; a digit and a letter: the 8 bytes of that cell of
 * the pool become that letter, by one store if it is a capital. It lies in the lane's next slot.
 */
static struct message *
send_as(unsigned lane, const struct header *h, const char *entries)
{
	struct message *m = &fabric.sent[fabric.count++];
	struct wire_entry stamp = {.off = h->stamp, .op = WIRE_OP_STAMP};
	struct wire_commit c;

	assert_true(fabric.count <= MESSAGES_MAX);
	wire_commit_begin(&c, m->bytes, sizeof(m->bytes), (uint32_t)strlen(entries) + 1);
	wire_commit_add(&c, &stamp, NULL);
	for (; *entries; entries++) {
		struct wire_entry en = {.op = WIRE_OP_BARRIER};
		char payload[8];

		if (*entries == '+') {
			en.op = WIRE_OP_REGISTER;
		} else if (*entries != '-') {
			en.off = 64U * (unsigned)(*entries++ - '0');
			en.len = 8;
			en.op = *entries < 'a' ? WIRE_OP_ATOMIC8 : WIRE_OP_COPY;
			memset(payload, *entries, sizeof(payload));
		}
		wire_commit_add(&c, &en, payload);
	}
	m->lane = lane;
	m->slot = fabric.lane_count[lane]++ % FAB_SERVER_SLOTS(DEPTH);
	m->len = wire_deposit_end(&c, h->seq, h->epoch);
	return m;
}

/* The lane's next one as it should be. */
static struct message *
send(unsigned lane, const char *entries)
{
	struct header h = {
		.seq = fabric.lane_count[lane] + 1, .stamp = fabric.count + 1, .epoch = EPOCH};

	return send_as(lane, &h, entries);
}

static void
begin(void)
{
	memset(&fabric, 0, sizeof(fabric));
	memset(&power, 0, sizeof(power));
	memset(pool_cache, 0, sizeof(pool_cache));
	memset(pool_media, 0, sizeof(pool_media));
	memset(ring_cache, 0, sizeof(ring_cache));
	memset(ring_media, 0, sizeof(ring_media));
}

static const struct ring_geometry geometry = {
	.epoch = EPOCH, .lanes = LANES, .slots = FAB_SERVER_SLOTS(DEPTH), .slot_size = 4096};

static struct poolring *
ring_new(void)
{
	struct sidecar meta = {
		.sequence = 1, .pool_size = POOL_SIZE, .state = SIDECAR_UP_TO_DATE, .epoch = EPOCH};
	int fd = memfd_create("sidecar", MFD_CLOEXEC);
	struct poolring *r = NULL;

	assert_true(fd >= 0);
	assert_int_equal(sidecar_write(fd, &meta, NULL), 0);
	assert_int_equal(poolring_make(fd, "sidecar", &meta, &geometry, &r, NULL), 0);
	assert_true(meta.ring_off == SIDECAR_SIZE && meta.ring_len == RING_SIZE);
	(void)close(fd);
	return r;
}

/* Let the target take all that has arrived; answers is how many it gives. */
static void
serve_map(struct pmem_map *map, unsigned answers)
{
	struct data_params p = {.provider = "tcp",
				.address = "127.0.0.1",
				.lanes = LANES,
				.depth = DEPTH,
				.msg_size = MSG_SIZE,
				.map = map,
				.write = true,
				.rma = true,
				.epoch = EPOCH,
				.join_ms = 60000};
	struct cut *cuts = power.cuts;
	struct data *d;

	power.cuts = NULL;
	p.ring = ring_new();
	power.cuts = cuts;
	assert_int_equal(data_new(&p, &d, NULL), 0);
	while (atomic_load(&fabric.answered) < answers)
		(void)sched_yield();
	data_free(d);
	poolring_free(p.ring);
	assert_int_equal(atomic_load(&fabric.answered), answers);
}

static void
serve(unsigned answers)
{
	serve_map(&pool, answers);
}

/* Whether trims give space back, by lanes and by the ring, of a pool that may. */
static bool
gives_back(const char *provider, bool rma)
{
	struct data_params p = {.provider = provider,
				.address = "127.0.0.1",
				.lanes = LANES,
				.depth = DEPTH,
				.msg_size = MSG_SIZE,
				.map = &pool,
				.hole = true,
				.rma = rma,
				.join_ms = 60000};
	struct data *d;
	bool hole;

	memset(&fabric, 0, sizeof(fabric));
	p.ring = ring_new();
	assert_int_equal(data_new(&p, &d, NULL), 0);
	hole = d->params.hole;
	data_free(d);
	poolring_free(p.ring);
	return hole;
}

static void
no_space_is_given_back_that_an_rnic_has_registered(void **state)
{
	(void)state;
	assert_true(gives_back("tcp", true));
	assert_true(gives_back("verbs", false));
	assert_false(gives_back("verbs", true));
}

/* ---- trims ---- */

#define MIB       (1U << 20)
#define BIG       (9U * MIB)
#define TRIMMED   (8U * MIB) /* of it, from its beginning: pieces enough */
#define PAGE      4096U
#define STORED_AT (2U * MIB + 64) /* a place in there */
#define OTHER_AT  (TRIMMED + 64)

static struct pmem_map big = {.size = BIG};

/* What has been done when the messages are answered. */
static struct {
	char last[MESSAGES_MAX];   /* byte of what is trimmed */
	char beside[MESSAGES_MAX]; /* what is stored in there, in the same page */
	bool zero[MESSAGES_MAX];   /* all of it is, on the media, but for what is stored there */
} then;

static int
big_new(void **state)
{
	(void)state;
	begin();
	memset(&then, 0, sizeof(then));
	big.cache = malloc(BIG);
	big.media = malloc(BIG);
	assert_true(big.cache && big.media);
	memset(big.cache, 'x', BIG);
	memset(big.media, 'x', BIG);
	return 0;
}

static int
big_free(void **state)
{
	(void)state;
	free(big.cache);
	free(big.media);
	return 0;
}

static bool
trimmed_is_zero(const uint8_t *bytes)
{
	return all_zero(bytes, STORED_AT) &&
	       all_zero(bytes + STORED_AT + 8, TRIMMED - STORED_AT - 8);
}

static void
look(unsigned n)
{
	then.last[n] = (char)big.cache[TRIMMED - 1];
	then.beside[n] = (char)big.cache[STORED_AT - 1];
	then.zero[n] = trimmed_is_zero(big.media);
}

static void
send_entries(unsigned lane, const struct wire_entry *en, uint32_t count, unsigned behind)
{
	struct message *m = &fabric.sent[fabric.count++];
	struct wire_entry stamp = {.off = fabric.count, .op = WIRE_OP_STAMP};
	struct wire_commit c;

	assert_true(fabric.count <= MESSAGES_MAX);
	wire_commit_begin(&c, m->bytes, sizeof(m->bytes), count + 1);
	wire_commit_add(&c, &stamp, NULL);
	for (uint32_t i = 0; i < count; i++)
		wire_commit_add(&c, &en[i], "ssssssss");
	m->lane = lane;
	m->behind = behind;
	m->slot = fabric.lane_count[lane]++ % FAB_SERVER_SLOTS(DEPTH);
	m->len = wire_deposit_end(&c, fabric.lane_count[lane], EPOCH);
}

static const struct wire_entry trim_all = {.len = TRIMMED, .op = WIRE_OP_TRIM};
static const struct wire_entry trims_end = {.op = WIRE_OP_TRIM};

/* One that comes meanwhile, and one that stores in there, wait for what they have to. */
static void
no_deposit_waits_for_a_trim(void **state)
{
	static const struct wire_entry other = {.off = OTHER_AT, .len = 8, .op = WIRE_OP_COPY},
				       in = {.off = STORED_AT, .len = 8, .op = WIRE_OP_COPY};

	(void)state;
	send_entries(0, &trim_all, 1, 0);
	send_entries(1, &other, 1, 0);
	send_entries(2, &in, 1, 2);
	send_entries(1, &trims_end, 1, 3);
	fabric.answering = look;
	serve_map(&big, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fabric.status[i], 0);
	assert_int_equal(then.last[0], 'x');
	assert_int_equal(then.last[1], 'x');
	assert_int_equal(then.beside[2], 0);
	assert_true(then.zero[3]);
	assert_memory_equal(big.media + STORED_AT, "ssssssss", 8);
	assert_memory_equal(big.media + OTHER_AT, "ssssssss", 8);
	assert_int_equal(big.media[OTHER_AT - 1], 'x');
}

/* In one message, too, entries come to what they would in that order. */
static void
a_trim_is_in_order_with_what_is_beside_it(void **state)
{
	static const struct wire_entry en[] = {
		{.off = STORED_AT - 8, .len = 8, .op = WIRE_OP_COPY},
		{.len = TRIMMED, .op = WIRE_OP_TRIM},
		{.off = STORED_AT, .len = 8, .op = WIRE_OP_ATOMIC8},
		{.off = TRIMMED - PAGE, .len = PAGE, .op = WIRE_OP_FLUSH},
	};

	(void)state;
	send_entries(0, en, 4, 0);
	send_entries(1, &trims_end, 1, 1);
	fabric.answering = look;
	serve_map(&big, 2);
	assert_int_equal(fabric.status[0], 0);
	/* What is there from before a FLUSH counts as written. */
	assert_int_equal(then.last[0], 'x');
	assert_int_equal(then.beside[0], 0);
	assert_memory_equal(big.media + STORED_AT, "ssssssss", 8);
	for (unsigned i = 0; i < PAGE; i++)
		assert_int_equal(big.media[TRIMMED - PAGE + i], 'x');
	memset(big.media + TRIMMED - PAGE, 0, PAGE);
	assert_true(trimmed_is_zero(big.media));
}

/* ---- replay ---- */

/* Apply the first most messages of what a ring holds. */
static unsigned
replay(const uint8_t *region, uint8_t *bytes, unsigned most)
{
	static uint8_t media[POOL_SIZE];
	struct pmem_map map = {bytes, media, POOL_SIZE};
	struct ring_replay r;
	struct ring_message m;
	struct deposits d;
	unsigned n = 0;

	deposits_init(&d, &map);
	ring_replay_begin(&r, region, &geometry, POOL_SIZE);
	while (n < most && ring_replay_next(&r, &m)) {
		assert_int_equal(deposits_apply(&d, &m.view, NULL), 0);
		n++;
	}
	return n;
}

static unsigned
left_in_ring(void)
{
	uint8_t bytes[POOL_SIZE];

	return replay(ring_media + SIDECAR_SIZE, bytes, UINT32_MAX);
}

static char
cell(const uint8_t *bytes, unsigned i)
{
	for (unsigned k = 1; k < 8; k++)
		assert_int_equal(bytes[64 * i + k], bytes[64 * i]);
	return (char)bytes[64 * i];
}

/* A cut here, and in the middle of each replay, ends with what the whole of the messages say. */
static void
recovers(const struct cut *c, const uint8_t *pool_then, const uint8_t *want)
{
	uint8_t bytes[POOL_SIZE];
	unsigned n;

	memcpy(bytes, pool_then, POOL_SIZE);
	n = replay(c->ring, bytes, UINT32_MAX);
	assert_memory_equal(bytes, want, POOL_SIZE);
	for (unsigned most = 0; most <= n; most++) {
		memcpy(bytes, pool_then, POOL_SIZE);
		(void)replay(c->ring, bytes, most);
		(void)replay(c->ring, bytes, UINT32_MAX);
		assert_memory_equal(bytes, want, POOL_SIZE);
	}
}

static void
cut_anywhere(const char *script[][2], unsigned count, bool backwards)
{
	struct cut *cuts;

	begin();
	power.cuts = calloc(CUTS_MAX, sizeof(*power.cuts));
	assert_non_null(power.cuts);
	power.backwards = backwards;
	for (unsigned i = 0; i < count; i++)
		(void)send((unsigned)(script[i][0][0] - '0'), script[i][1]);
	serve(count);
	cut_here();
	assert_true(power.count > count);
	assert_int_equal(left_in_ring(), 0);
	assert_memory_equal(pool_media, pool_cache, POOL_SIZE);
	cuts = power.cuts;
	power.cuts = NULL;
	for (unsigned i = 0; i < power.count; i++) {
		recovers(&cuts[i], cuts[i].pool, pool_cache);
		recovers(&cuts[i], cuts[i].evicted, pool_cache);
	}
	free(cuts);
}

/* One cell that all lanes write in turn, each when the one before is in its slot. */
static void
cuts_lose_nothing_and_undo_nothing(void **state)
{
	static const char *turns[][2] = {{"0", "0a1a"}, {"1", "0b2b"}, {"0", "0c"},
					 {"2", "0d1d"}, {"1", "0e3e"}, {"0", "2f"}};
	static const char *pairs[][2] = {{"0", "0a-1A"}, {"1", "1B"},      {"1", "0c-"},
					 {"0", "1D-0d"}, {"2", "-0e-1E-"}, {"2", "2f"}};
	static const char *runs[][2] = {{"0", "0a"}, {"0", "0b"}, {"0", "0c"},
					{"1", "0d"}, {"1", "0e"}, {"0", "0f"}};

	(void)state;
	for (unsigned backwards = 0; backwards < 2; backwards++) {
		cut_anywhere(turns, 6, backwards);
		cut_anywhere(pairs, 6, backwards);
		cut_anywhere(runs, 6, backwards);
	}
}

/* Nothing behind a BARRIER is on the media without what is before it, on a path without cuts in
 * between: the flush before comes first.
 */
static void
barrier_waits_for_the_flush(void **state)
{
	(void)state;
	begin();
	power.cuts = calloc(CUTS_MAX, sizeof(*power.cuts));
	assert_non_null(power.cuts);
	(void)send(0, "0a-1b");
	(void)send(1, "2c");
	serve(2);
	for (unsigned i = 0; i < power.count; i++) {
		const struct cut *c = &power.cuts[i];

		if (cell(c->evicted, 1) == 'b')
			assert_int_equal(cell(c->pool, 0), 'a');
		/* And no later arrival overtakes it. */
		if (cell(c->evicted, 2) == 'c')
			assert_int_equal(cell(c->evicted, 1), 'b');
	}
	free(power.cuts);
	power.cuts = NULL;
}

static void
a_round_takes_one_flush(void **state)
{
	(void)state;
	begin();
	for (unsigned i = 0; i < LANES; i++) {
		(void)send(i, "0a1b");
		(void)send(i, "2c");
	}
	serve(2 * LANES);
	assert_int_equal(power.flushes, 1);
	assert_int_equal(fabric.reposted, 2 * LANES);
	assert_false(fabric.registered);
}

static void
pool_is_registered_for_reading_only(void **state)
{
	(void)state;
	begin();
	(void)send(0, "+0a");
	serve(1);
	assert_int_equal(fabric.status[0], 0);
	assert_true(fabric.registered && !fabric.rma_write);
}

/* ---- bad input ---- */

/* The second of three messages on lane 0 is broken; lane 1 goes on. */
static void
refused(int status, char want)
{
	(void)send(0, "0x");
	(void)send(1, "1d");
	serve(3);
	assert_int_equal(fabric.dropped[0], 1);
	assert_int_equal(fabric.dropped[1], 0);
	assert_int_equal(cell(pool_media, 0), want);
	assert_int_equal(cell(pool_media, 1), 'd');
	assert_int_equal(left_in_ring(), 0);
	assert_int_equal(fabric.status[0], status);
	/* Whatever the marks say: it can't be taken, nor what is behind it. */
	memset(ring_media + SIDECAR_SIZE + 4096, 0, 4096);
	assert_int_equal(left_in_ring(), 2);
}

static void
first(void)
{
	begin();
	(void)send(0, "0a");
}

static void
messages_out_of_order_end_the_lane(void **state)
{
	struct header gap = {.seq = 3, .stamp = 9, .epoch = EPOCH};
	struct header again = {.seq = 1, .stamp = 9, .epoch = EPOCH};
	struct header same_stamp = {.seq = 2, .stamp = 1, .epoch = EPOCH};
	struct header old_epoch = {.seq = 2, .stamp = 9, .epoch = EPOCH - 1};

	(void)state;
	first();
	(void)send_as(0, &gap, "0b");
	refused(REPL_E_PROTOCOL, 'a');
	first();
	(void)send_as(0, &again, "0b");
	refused(REPL_E_PROTOCOL, 'a');
	first();
	(void)send_as(0, &same_stamp, "0b");
	refused(REPL_E_PROTOCOL, 'a');
	first();
	(void)send_as(0, &old_epoch, "0b");
	refused(REPL_E_REFUSED, 'a');
}

static void
damaged_messages_end_the_lane(void **state)
{
	struct message *m;

	(void)state;
	first();
	m = send(0, "0b");
	m->bytes[WIRE_HEADER_SIZE] ^= 1;
	refused(REPL_E_PROTOCOL, 'a');
	/* A length that is not the message's, and no type of ours. */
	first();
	m = send(0, "0b");
	put_le32(m->bytes + 16, MSG_SIZE - 64);
	refused(REPL_E_PROTOCOL, 'a');
	first();
	m = send(0, "0b");
	m->bytes[5] = WIRE_COMMIT;
	refused(REPL_E_PROTOCOL, 'a');
}

/* The buffers were not used in their order: a replay would not find it. */
static void
a_message_in_another_slot_ends_the_lane(void **state)
{
	struct message *m;

	(void)state;
	first();
	m = send(0, "0b");
	m->slot = 3;
	(void)send(1, "1d");
	serve(3);
	assert_int_equal(fabric.dropped[0], 1);
	assert_int_equal(cell(pool_media, 0), 'a');
	assert_int_equal(left_in_ring(), 0);
}

static void
a_failed_flush_leaves_all_in_the_ring(void **state)
{
	(void)state;
	begin();
	power.pool_rc = REPL_E_IO;
	(void)send(0, "0a");
	(void)send(1, "0b-1b");
	(void)send(0, "0c");
	serve(3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(fabric.status[i], REPL_E_IO);
	assert_int_equal(fabric.reposted, 0);
	assert_int_equal(left_in_ring(), 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_lose_nothing_and_undo_nothing),
		cmocka_unit_test(barrier_waits_for_the_flush),
		cmocka_unit_test(a_round_takes_one_flush),
		cmocka_unit_test(pool_is_registered_for_reading_only),
		cmocka_unit_test(messages_out_of_order_end_the_lane),
		cmocka_unit_test(damaged_messages_end_the_lane),
		cmocka_unit_test(a_message_in_another_slot_ends_the_lane),
		cmocka_unit_test(a_failed_flush_leaves_all_in_the_ring),
		cmocka_unit_test(no_space_is_given_back_that_an_rnic_has_registered),
		cmocka_unit_test_setup_teardown(no_deposit_waits_for_a_trim, big_new, big_free),
		cmocka_unit_test_setup_teardown(a_trim_is_in_order_with_what_is_beside_it, big_new,
						big_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
