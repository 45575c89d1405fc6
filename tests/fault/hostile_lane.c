/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile use of a lane that was connected by the book. */
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "clock.h"
#include "le.h"

#define FLOOD_DEPTH 250U
#define HEADER_SUM  24U

/* ---- a message and what is wrong with it ---- */

/* Before the checksum is put right: the fields are at the offsets of docs/PROTOCOL.md. */
struct damage {
	const char *what;
	unsigned at;    /* byte to change */
	unsigned width; /* in bytes, 0: nothing */
	uint64_t value;
	size_t len;     /* of the message; 0: as it should be */
	bool keep_sum;  /* leave the checksum wrong */
	bool no_answer; /* not even the sequence can be read */
	bool trim;      /* of 4096 bytes at 4096, and not a COPY */
};

#define OFF  WIRE_HEADER_SIZE
#define LEN  (WIRE_HEADER_SIZE + 8)
#define OP   (WIRE_HEADER_SIZE + 12)
#define PAD  (WIRE_HEADER_SIZE + 13)
#define SIZE HOSTILE_POOL_SIZE

static const struct damage damages[] = {
	{.what = "wrong checksum", .at = HEADER_SUM, .width = 8, .value = 1, .keep_sum = true},
	{.what = "flipped payload", .at = 48, .width = 1, .value = 'x', .keep_sum = true},
	{.what = "wrong magic", .at = 0, .width = 4, .value = 7, .no_answer = true},
	{.what = "other version", .at = 4, .width = 1, .value = 9, .no_answer = true},
	{.what = "an ACK", .at = 5, .width = 1, .value = WIRE_ACK, .no_answer = true},
	{.what = "a BARE with the checksum of a COMMIT", .at = 5, .width = 1, .value = WIRE_BARE},
	{.what = "unknown type", .at = 5, .width = 1, .value = 77, .no_answer = true},
	{.what = "more entries than bytes", .at = 6, .width = 2, .value = 200},
	{.what = "257 entries", .at = 6, .width = 2, .value = 257, .len = 32 + 257 * 16 + 8},
	{.what = "65535 entries", .at = 6, .width = 2, .value = 65535},
	{.what = "payload too long", .at = 16, .width = 4, .value = 9},
	{.what = "payload of 4 GiB", .at = 16, .width = 4, .value = 0xffffffff},
	{.what = "old epoch", .at = 20, .width = 4, .value = 0},
	{.what = "epoch to come", .at = 20, .width = 4, .value = 0xfffffff0},
	{.what = "offset at the end", .at = OFF, .width = 8, .value = SIZE},
	{.what = "offset just before the end", .at = OFF, .width = 8, .value = SIZE - 7},
	{.what = "offset that wraps", .at = OFF, .width = 8, .value = UINT64_MAX - 3},
	{.what = "offset of 2^63", .at = OFF, .width = 8, .value = 1ULL << 63},
	{.what = "length zero", .at = LEN, .width = 4, .value = 0},
	{.what = "length of 4 GiB", .at = LEN, .width = 4, .value = 0xffffffff},
	{.what = "length beyond the payload", .at = LEN, .width = 4, .value = 9},
	{.what = "operation 0", .at = OP, .width = 1, .value = 0},
	{.what = "operation 5", .at = OP, .width = 1, .value = 5},
	{.what = "TRIM with a payload", .at = OP, .width = 1, .value = WIRE_OP_TRIM},
	{.what = "TRIM from within a page", .at = OFF, .width = 8, .value = 100, .trim = true},
	{.what = "TRIM of part of a page", .at = LEN, .width = 4, .value = 4095, .trim = true},
	{.what = "TRIM behind the end", .at = OFF, .width = 8, .value = SIZE, .trim = true},
	{.what = "TRIM that wraps",
	 .at = OFF,
	 .width = 8,
	 .value = UINT64_MAX - 4095,
	 .trim = true},
	{.what = "TRIM of 4 GiB", .at = LEN, .width = 4, .value = 0xfffff000, .trim = true},
	{.what = "TRIM of nothing at an offset", .at = LEN, .width = 4, .value = 0, .trim = true},
	{.what = "TRIM of an old epoch", .at = 20, .width = 4, .value = 0, .trim = true},
	{.what = "BARRIER with a length", .at = OP, .width = 1, .value = WIRE_OP_BARRIER},
	{.what = "padding not zero", .at = PAD, .width = 1, .value = 1},
	{.what = "one byte too long", .len = 57},
	{.what = "one byte too short", .len = 55},
	{.what = "header only", .len = 32},
	{.what = "less than a header", .len = 31, .no_answer = true},
	{.what = "one byte", .len = 1, .no_answer = true},
};

static void
damage_put(uint8_t *msg, const struct damage *d)
{
	for (unsigned i = 0; i < d->width; i++)
		msg[d->at + i] = (uint8_t)(d->value >> (8 * i));
}

static void
message_sign(uint8_t *msg, size_t len)
{
	if (len >= WIRE_HEADER_SIZE)
		put_le64(msg + HEADER_SUM,
			 sum64_seeded(msg, HEADER_SUM,
				      sum64(msg + WIRE_HEADER_SIZE, len - WIRE_HEADER_SIZE)));
}

/* A COMMIT of 8 bytes at 4096, damaged; 56 bytes if it were whole. */
static size_t
message_build(const struct hostile *h, uint8_t *buf, size_t size, uint64_t seq,
	      const struct damage *d)
{
	struct wire_entry entry = {.off = 4096, .len = 8, .op = WIRE_OP_COPY};
	struct wire_commit c;
	size_t len;

	if (d->trim)
		entry = (struct wire_entry){.off = 4096, .len = 4096, .op = WIRE_OP_TRIM};
	memset(buf, 0, size);
	wire_commit_begin(&c, buf, size, 1);
	wire_commit_add(&c, &entry, "hostile!");
	len = wire_commit_end(&c, seq, h->epoch);
	if (d->len)
		len = d->len;
	damage_put(buf, d);
	if (!d->keep_sum)
		message_sign(buf, len);
	return len;
}

/* An ACK with an error where one is due, then the end of the lane. */
static void
expect_lane_ends(struct fab_lane *l, const char *what, bool answer)
{
	struct fab_event ev;
	struct wire_ack ack = {0};
	struct err e;

	hostile_await(l, HOSTILE_WAIT_MS, &ev);
	if (answer && (ev.type != FAB_RECV || wire_ack_decode(ev.data, ev.len, &ack, &e)))
		hostile_fail("%s: no ACK but event %d %s", what, ev.type, ev.text);
	if (answer && (ack.status >= 0 || ack.seq != 2))
		hostile_fail("%s: ACK of %llu with status %d", what, (unsigned long long)ack.seq,
			     ack.status);
	if (answer)
		hostile_await(l, HOSTILE_WAIT_MS, &ev);
	if (ev.type != FAB_CLOSED)
		hostile_fail("%s: the lane goes on, event %d", what, ev.type);
}

static void
pattern_fill(struct hostile *h, struct fab_lane *l, uint8_t *pool)
{
	uint64_t seq = 1;

	for (size_t i = 0; i < HOSTILE_POOL_SIZE; i++)
		pool[i] = (uint8_t)(i * 31 + i / 4096);
	for (size_t off = 0; off < HOSTILE_POOL_SIZE; off += 8192)
		hostile_commit(h, l, seq++, off, pool + off, 8192);
}

static void
pattern_check(struct fab_lane *l, const uint8_t *pool, uint8_t *seen, const char *what)
{
	hostile_read_pool(l, seen);
	for (size_t i = 0; i < HOSTILE_POOL_SIZE; i++)
		if (seen[i] != pool[i])
			hostile_lost("%s: byte %zu of the pool has changed", what, i);
}

/*
 * Two lanes: the first sends a good COMMIT and a bad one and ends, the second
 * goes on and sees the pool unchanged.
 */
static void
damage_try(struct hostile *h, const struct damage *d, const uint8_t *pool, uint8_t *seen)
{
	struct fab_lane *bad, *good;
	struct grant g;
	struct err e;
	uint8_t *buf;

	err_clear(&e);
	hostile_grant(h, 2, 4, &g);
	bad = hostile_lane(&g, 0);
	good = hostile_lane(&g, 1);
	hostile_commit(h, bad, 1, 0, pool, 8);
	buf = fab_lane_buf(bad);
	if (fab_lane_send(bad, message_build(h, buf, g.msg_size, 2, d), &e))
		hostile_fail("%s: %s", d->what, e.text);
	expect_lane_ends(bad, d->what, !d->no_answer);
	hostile_commit(h, good, 1, 8, pool + 8, 8);
	pattern_check(good, pool, seen, d->what);
	hostile_ping(h);
	fab_lane_free(bad);
	fab_lane_free(good);
	hostile_lanes_close(h);
}

static void
pool_prepare(struct hostile *h, uint8_t **pool, uint8_t **seen)
{
	struct fab_lane *l;
	struct grant g;

	*pool = malloc(HOSTILE_POOL_SIZE);
	*seen = malloc(HOSTILE_POOL_SIZE);
	if (!*pool || !*seen)
		hostile_fail("out of memory");
	hostile_grant(h, 1, 4, &g);
	l = hostile_lane(&g, 0);
	pattern_fill(h, l, *pool);
	fab_lane_free(l);
	hostile_lanes_close(h);
}

/* A message longer than the granted msg_size ends the lane. */
static void
oversized_try(struct hostile *h, const uint8_t *pool, uint8_t *seen)
{
	struct wire_entry entry = {.off = 0, .len = 60000, .op = WIRE_OP_COPY};
	struct fab_lane *bad, *good;
	struct wire_commit c;
	struct grant g;
	struct err e;

	hostile_grant(h, 2, 4, &g);
	if (hostile_connect(&g, g.tokens[0], 4, 4 * g.msg_size, g.key, &bad, &e))
		hostile_fail("oversized: %s", e.text);
	good = hostile_lane(&g, 1);
	wire_commit_begin(&c, fab_lane_buf(bad), 4 * g.msg_size, 1);
	wire_commit_add(&c, &entry, seen);
	if (fab_lane_send(bad, wire_commit_end(&c, 1, h->epoch), &e))
		hostile_fail("oversized: %s", e.text);
	expect_lane_ends(bad, "oversized message", false);
	hostile_commit(h, good, 1, 0, pool, 8);
	pattern_check(good, pool, seen, "oversized message");
	fab_lane_free(bad);
	fab_lane_free(good);
	hostile_lanes_close(h);
}

/*
 * A BARE is taken where it was granted, whatever has become of its payload; elsewhere it ends the
 * lane. Its bytes are those of the pool but for one, which is put right again.
 */
static void
bare_try(struct hostile *h, const uint8_t *pool, uint8_t *seen)
{
	struct wire_entry entry = {.off = 4096, .len = 8, .op = WIRE_OP_COPY};
	struct fab_lane *bare, *good;
	struct wire_commit c;
	struct wire_ack ack;
	struct fab_event ev;
	struct grant g;
	uint8_t *buf;
	struct err e;

	err_clear(&e);
	hostile_grant(h, 2, 4, &g);
	bare = hostile_lane(&g, 0);
	good = hostile_lane(&g, 1);
	hostile_commit(h, bare, 1, 0, pool, 8);
	buf = fab_lane_buf(bare);
	wire_commit_begin(&c, buf, g.msg_size, 1);
	wire_commit_add(&c, &entry, pool + 4096);
	(void)wire_bare_end(&c, 2, h->epoch);
	buf[48] ^= 1;
	if (fab_lane_send(bare, 56, &e))
		hostile_fail("a BARE: %s", e.text);
	if (g.bare) {
		hostile_await(bare, HOSTILE_WAIT_MS, &ev);
		if (ev.type != FAB_RECV || wire_ack_decode(ev.data, ev.len, &ack, &e) ||
		    ack.status != 0)
			hostile_fail("a BARE: event %d %s", ev.type, ev.text);
		hostile_read_pool(good, seen);
		if ((seen[4096] ^ 1) != pool[4096])
			hostile_lost("a BARE was acknowledged and not stored");
		hostile_commit(h, good, 1, 4096, pool + 4096, 8);
	} else {
		expect_lane_ends(bare, "a BARE that was not granted", true);
		hostile_commit(h, good, 1, 8, pool + 8, 8);
	}
	pattern_check(good, pool, seen, "a BARE");
	(void)printf("a BARE is %s\n", g.bare ? "taken" : "refused");
	fab_lane_free(bare);
	fab_lane_free(good);
	hostile_lanes_close(h);
}

/* Each bad message ends its lane and nothing else, and changes no byte. */
void
mode_commits(struct hostile *h)
{
	uint8_t *pool, *seen;

	hostile_open(h, true);
	pool_prepare(h, &pool, &seen);
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		damage_try(h, &damages[i], pool, seen);
	oversized_try(h, pool, seen);
	bare_try(h, pool, seen);
	(void)printf("%zu bad messages\n", sizeof(damages) / sizeof(damages[0]) + 1);
	free(pool);
	free(seen);
	hostile_close(h);
}

/* ---- RMA ---- */

struct rma_try {
	const char *what;
	uint64_t off;
	size_t len;
	uint64_t key_change;
	bool write;
};

static const struct rma_try rma_tries[] = {
	{"write across the end", SIZE - 8, 64, 0, true},
	{"write behind the end", SIZE, 64, 0, true},
	{"write at a wrapping offset", UINT64_MAX - 7, 64, 0, true},
	{"write far away", 1ULL << 46, 64, 0, true},
	{"write before the start", (uint64_t)-4096, 64, 0, true},
	{"write with a wrong key", 4096, 64, 1, true},
	{"read across the end", SIZE - 8, 64, 0, false},
	{"read at a wrapping offset", UINT64_MAX - 7, 64, 0, false},
	{"read with a wrong key", 4096, 64, 1ULL << 63 | 1U << 8, false},
};

/*
 * Lanes of the grant go by a lie from now on: the pool is elsewhere, with another
 * key. With a key of ours that is said when the lane is connected.
 */
static void
rma_lie(struct hostile *h, const struct rma_try *t, struct grant *g, struct regions *lie)
{
	struct regions_place place;
	struct err e;

	if (!g->regions)
		return;
	if (!regions_place(&h->regions, 0, &place))
		hostile_fail("%s: the pool is not registered", t->what);
	place.addr += t->off;
	place.key ^= t->key_change;
	if (regions_init(lie, HOSTILE_POOL_SIZE, HOSTILE_POOL_SIZE, &e) ||
	    regions_tell(lie, 0, &place, &e))
		hostile_fail("%s: %s", t->what, e.text);
	g->regions = lie;
}

static void
rma_expect_refused(struct fab_lane *l, const struct rma_try *t, bool lied)
{
	uint64_t off = lied ? 0 : t->off;
	uint8_t buf[64];
	struct fab_event ev;
	struct err e;
	int rc;

	memset(buf, 'r', sizeof(buf));
	rc = t->write ? fab_lane_write(l, buf, t->len, off, &e)
		      : fab_lane_read(l, buf, t->len, off, &e);
	if (rc && lied)
		hostile_fail("%s: %s", t->what, e.text);
	if (rc)
		return;
	hostile_await(l, HOSTILE_WAIT_MS, &ev);
	if (ev.type != FAB_CLOSED)
		hostile_fail("%s: event %d, not refused", t->what, ev.type);
}

static void
rma_attempt(struct hostile *h, const struct rma_try *t, const uint8_t *pool, uint8_t *seen)
{
	struct fab_lane *bad, *good;
	struct regions lie = {0};
	struct grant g;
	struct err e;

	hostile_grant(h, 2, 4, &g);
	good = hostile_lane(&g, 1);
	hostile_register(h, good, 1);
	rma_lie(h, t, &g, &lie);
	if (hostile_connect(&g, g.tokens[0], 4, g.msg_size, g.key ^ t->key_change, &bad, &e))
		hostile_fail("%s: %s", t->what, e.text);
	rma_expect_refused(bad, t, g.regions != NULL);
	pattern_check(good, pool, seen, t->what);
	hostile_ping(h);
	fab_lane_free(bad);
	fab_lane_free(good);
	hostile_lanes_close(h);
	regions_fini(&lie);
}

/* RMA outside the pool or without its key ends the lane and changes no byte. */
void
mode_rma(struct hostile *h)
{
	uint8_t *pool, *seen;

	hostile_open(h, true);
	pool_prepare(h, &pool, &seen);
	for (size_t i = 0; i < sizeof(rma_tries) / sizeof(rma_tries[0]); i++)
		rma_attempt(h, &rma_tries[i], pool, seen);
	free(pool);
	free(seen);
	hostile_close(h);
}

/* A pool that is open for reading is changed by neither COMMIT nor RMA. */
void
mode_readonly(struct hostile *h)
{
	static const struct damage none = {.what = "COMMIT to a pool opened for reading"};
	static const struct damage trim = {.what = "TRIM of one", .trim = true};
	static const struct rma_try write = {"RMA write to a pool opened for reading", 4096, 64, 0,
					     true};
	struct regions lie = {0};
	struct fab_lane *bad, *good;
	uint8_t *pool, *seen;
	struct grant g;
	struct err e;

	hostile_open(h, true);
	pool_prepare(h, &pool, &seen);
	hostile_close(h);
	hostile_open(h, false);
	hostile_grant(h, 4, 4, &g);
	good = hostile_lane(&g, 0);
	hostile_register(h, good, 1);
	bad = hostile_lane(&g, 1);
	hostile_register(h, bad, 1);
	if (fab_lane_send(bad, message_build(h, fab_lane_buf(bad), g.msg_size, 2, &none), &e))
		hostile_fail("%s: %s", none.what, e.text);
	expect_lane_ends(bad, none.what, true);
	pattern_check(good, pool, seen, none.what);
	fab_lane_free(bad);
	bad = hostile_lane(&g, 3);
	hostile_register(h, bad, 1);
	if (fab_lane_send(bad, message_build(h, fab_lane_buf(bad), g.msg_size, 2, &trim), &e))
		hostile_fail("%s: %s", trim.what, e.text);
	expect_lane_ends(bad, trim.what, true);
	pattern_check(good, pool, seen, trim.what);
	fab_lane_free(bad);
	rma_lie(h, &write, &g, &lie);
	bad = hostile_lane(&g, 2);
	rma_expect_refused(bad, &write, g.regions != NULL);
	pattern_check(good, pool, seen, write.what);
	hostile_ping(h);
	fab_lane_free(bad);
	fab_lane_free(good);
	regions_fini(&lie);
	free(pool);
	free(seen);
	hostile_close(h);
}

/* The window has the first bytes of the pool; the lane's regions lead there. */
static void
window_check(struct hostile *h, struct fab_lane *l, uint64_t seq, const uint8_t *pool)
{
	struct wire_entry first = {.off = 0, .len = 64, .op = WIRE_OP_FETCH};
	struct wire_ack ack = {0};
	struct wire_commit c;
	struct fab_event ev;
	uint8_t seen[64];
	struct err e;

	/* Each lane has a window of its own. */
	regions_fini(&h->regions);
	if (regions_init(&h->regions, HOSTILE_POOL_SIZE, HOSTILE_POOL_SIZE, &e))
		hostile_fail("%s", e.text);
	wire_commit_begin(&c, fab_lane_buf(l), wire_commit_size(1, 0), 1);
	wire_commit_add(&c, &first, NULL);
	hostile_send(h, l, &c, seq, &ack);
	if (ack.status || fab_lane_read(l, seen, sizeof(seen), 0, &e))
		hostile_fail("FETCH %llu: status %d", (unsigned long long)seq, ack.status);
	hostile_await(l, HOSTILE_WAIT_MS, &ev);
	if (ev.type != FAB_READ)
		hostile_fail("FETCH %llu: event %d", (unsigned long long)seq, ev.type);
	if (memcmp(seen, pool, sizeof(seen)) != 0)
		hostile_lost("FETCH %llu: other bytes", (unsigned long long)seq);
}

/*
 * By verbs a pool that is open for reading is read by windows: no RMA write goes
 * there, and no COMMIT changes the pool.
 */
void
mode_window(struct hostile *h)
{
	static const struct damage none = {.what = "COMMIT to a pool opened for reading"};
	static const struct rma_try write = {"RMA write to a window", 0, 64, 0, true};
	struct fab_lane *good, *bad;
	uint8_t *pool, *seen;
	struct grant g;
	struct err e;

	hostile_open(h, true);
	pool_prepare(h, &pool, &seen);
	hostile_close(h);
	hostile_open(h, false);
	hostile_grant(h, 3, 4, &g);
	good = hostile_lane(&g, 0);
	window_check(h, good, 1, pool);
	bad = hostile_lane(&g, 1);
	rma_expect_refused(bad, &write, true);
	fab_lane_free(bad);
	window_check(h, good, 2, pool);
	bad = hostile_lane(&g, 2);
	window_check(h, bad, 1, pool);
	if (fab_lane_send(bad, message_build(h, fab_lane_buf(bad), g.msg_size, 2, &none), &e))
		hostile_fail("%s: %s", none.what, e.text);
	expect_lane_ends(bad, none.what, true);
	fab_lane_free(bad);
	window_check(h, good, 3, pool);
	fab_lane_free(good);
	hostile_close(h);
	hostile_open(h, true);
	hostile_grant(h, 1, 4, &g);
	good = hostile_lane(&g, 0);
	hostile_register(h, good, 1);
	pattern_check(good, pool, seen, none.what);
	fab_lane_free(good);
	free(pool);
	free(seen);
	hostile_close(h);
}

/* ---- quantity ---- */

/* As many bytes asked for as fit into the lane's queue, and not one taken. */
static void
flood_reads(struct fab_lane *l)
{
	static uint8_t never_read[HOSTILE_POOL_SIZE];
	size_t most = fab_lane_rma_max(l);
	struct err e;

	while (fab_lane_rma_room(l) > 0)
		if (fab_lane_read(l, never_read,
				  most < sizeof(never_read) ? most : sizeof(never_read), 0, &e))
			hostile_fail("flood: %s", e.text);
}

/*
 * COMMITs far beyond the granted depth, not one ACK taken, and the socket full
 * of answers: the rest of the session goes on.
 */
void
mode_flood(struct hostile *h)
{
	static const struct damage none = {.what = "flood"};
	static uint8_t pool[HOSTILE_POOL_SIZE], seen[HOSTILE_POOL_SIZE];
	struct fab_lane *bad, *good;
	struct grant g;
	struct err e;
	unsigned sent = 0;

	hostile_open(h, true);
	hostile_grant(h, 2, 2, &g);
	if (hostile_connect(&g, g.tokens[0], FLOOD_DEPTH, g.msg_size, g.key, &bad, &e))
		hostile_fail("flood: %s", e.text);
	good = hostile_lane(&g, 1);
	hostile_commit(h, good, 1, 0, "before", 6);
	flood_reads(bad);
	while (sent < FLOOD_DEPTH) {
		size_t len = message_build(h, fab_lane_buf(bad), 256, sent + 1, &none);

		if (fab_lane_send(bad, len, &e))
			break;
		sent++;
		if (sent % 16 == 0)
			hostile_commit(h, good, sent / 16 + 1, 0, "beside", 6);
	}
	(void)printf("%u COMMITs sent without taking an ACK\n", sent);
	hostile_commit(h, good, sent / 16 + 2, 0, "after", 5);
	hostile_ping(h);
	fab_lane_free(bad);
	hostile_commit(h, good, sent / 16 + 3, 0, "at last", 7);
	memcpy(pool, "at last", 7);
	hostile_read_pool(good, seen);
	/* Of the flood all bytes of one or none. */
	if (seen[4096] != 0)
		memcpy(pool + 4096, "hostile!", 8);
	pattern_check(good, pool, seen, "flood");
	fab_lane_free(good);
	hostile_close(h);
}

/* As many lanes as are granted, up to 64 asked for: all of them work. */
void
mode_lanes(struct hostile *h)
{
	static uint8_t pool[HOSTILE_POOL_SIZE], seen[HOSTILE_POOL_SIZE];
	struct fab_lane *l[HOSTILE_LANES_MAX];
	struct grant g;

	hostile_open(h, true);
	hostile_grant(h, HOSTILE_LANES_MAX, 4, &g);
	for (unsigned i = 0; i < g.lanes; i++)
		l[i] = hostile_lane(&g, i);
	for (unsigned round = 1; round <= 8; round++)
		for (unsigned i = 0; i < g.lanes; i++)
			hostile_commit(h, l[i], round, i * 4096UL, "lane", 4);
	for (unsigned i = 0; i < g.lanes; i++)
		memcpy(pool + i * 4096UL, "lane", 4);
	pattern_check(l[0], pool, seen, "lanes");
	(void)printf("%u lanes\n", g.lanes);
	for (unsigned i = 0; i < g.lanes; i++)
		fab_lane_free(l[i]);
	hostile_close(h);
}
