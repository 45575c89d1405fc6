/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile use of lanes whose messages lie in the pool's receive ring. */
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "le.h"

#define DEPTH       4U
#define FLOOD_DEPTH 64U
#define MESSAGE_LEN (WIRE_HEADER_SIZE + 2 * WIRE_ENTRY_SIZE + 8)

/* A DEPOSIT of 8 bytes, and what is wrong with it; the fields are where docs/PROTOCOL.md puts them.
 */
struct bad {
	const char *what;
	uint64_t seq, stamp; /* 0: as it should be */
	unsigned at, width;  /* a change of the bytes before the checksum is put right */
	uint64_t value;
	size_t len;     /* 0: as it should be */
	bool keep_sum;  /* leave the checksum wrong */
	bool no_answer; /* not even the sequence can be read */
};

#define SECOND (WIRE_HEADER_SIZE + WIRE_ENTRY_SIZE)

static const struct bad bads[] = {
	{.what = "a number left out", .seq = 3},
	{.what = "the one before again", .seq = 1},
	{.what = "number 0", .at = 8, .width = 8},
	{.what = "a stamp that does not rise", .stamp = 10},
	{.what = "a stamp that falls", .stamp = 1},
	{.what = "stamp 0", .at = WIRE_HEADER_SIZE, .width = 8},
	{.what = "no stamp", .at = WIRE_HEADER_SIZE + 12, .width = 1, .value = WIRE_OP_BARRIER},
	{.what = "a second stamp", .at = SECOND + 12, .width = 1, .value = WIRE_OP_STAMP},
	{.what = "a COMMIT", .at = 5, .width = 1, .value = WIRE_COMMIT},
	{.what = "an ACK", .at = 5, .width = 1, .value = WIRE_ACK, .no_answer = true},
	{.what = "old epoch", .at = 20, .width = 4},
	{.what = "torn in its payload", .at = SECOND + 16, .width = 1, .keep_sum = true},
	{.what = "torn in its header", .at = 6, .width = 1, .value = 1, .keep_sum = true},
	{.what = "a length beyond the slot", .at = 16, .width = 4, .value = 0xffffff00},
	{.what = "a length within the slot", .at = 16, .width = 4, .value = 4000},
	{.what = "more entries than bytes", .at = 6, .width = 2, .value = 256},
	{.what = "offset at the end", .at = SECOND, .width = 8, .value = HOSTILE_POOL_SIZE},
	{.what = "offset that wraps", .at = SECOND, .width = 8, .value = UINT64_MAX - 3},
	{.what = "length of 4 GiB", .at = SECOND + 8, .width = 4, .value = UINT32_MAX},
	{.what = "an APPEND", .at = SECOND + 12, .width = 1, .value = WIRE_OP_APPEND},
	{.what = "less than a header", .len = 31, .no_answer = true},
};

static size_t
deposit_build(const struct hostile *h, uint8_t *buf, uint64_t seq, uint64_t stamp, uint64_t off,
	      const char *text)
{
	struct wire_entry first = {.off = stamp, .op = WIRE_OP_STAMP};
	struct wire_entry copy = {.off = off, .len = 8, .op = WIRE_OP_COPY};
	struct wire_commit c;

	wire_commit_begin(&c, buf, MESSAGE_LEN, 2);
	wire_commit_add(&c, &first, NULL);
	wire_commit_add(&c, &copy, text);
	return wire_deposit_end(&c, seq, h->epoch);
}

static void
deposit_send(const struct hostile *h, struct fab_lane *l, uint64_t seq, uint64_t stamp,
	     uint64_t off, const char *text)
{
	struct err e;

	err_clear(&e);
	if (fab_lane_send(l, deposit_build(h, fab_lane_buf(l), seq, stamp, off, text), &e))
		hostile_fail("DEPOSIT %llu: %s", (unsigned long long)seq, e.text);
}

static size_t
bad_build(const struct hostile *h, uint8_t *buf, const struct bad *b)
{
	size_t len = deposit_build(h, buf, b->seq ? b->seq : 2, b->stamp ? b->stamp : 20, 4096,
				   "hostile!");

	for (unsigned i = 0; i < b->width; i++)
		buf[b->at + i] = (uint8_t)(b->value >> (8 * i));
	if (!b->keep_sum)
		put_le64(buf + 24, sum64_seeded(buf, 24, sum64(buf + 32, len - 32)));
	return b->len ? b->len : len;
}

/* An ACK with an error where one is due, then the end of the lane. */
static void
expect_end(struct fab_lane *l, const char *what, bool answer)
{
	struct wire_ack ack = {0};
	struct fab_event ev;
	struct err e;

	err_clear(&e);
	hostile_await(l, HOSTILE_WAIT_MS, &ev);
	if (answer &&
	    (ev.type != FAB_RECV || wire_ack_decode(ev.data, ev.len, &ack, &e) || ack.status >= 0))
		hostile_fail("%s: event %d %s, status %d", what, ev.type, ev.text, ack.status);
	if (answer)
		hostile_await(l, HOSTILE_WAIT_MS, &ev);
	if (ev.type != FAB_CLOSED)
		hostile_fail("%s: the lane goes on, event %d", what, ev.type);
}

/* Lanes without a ring, on which RMA works: what is in the pool now. */
static const uint8_t *
pool_read(struct hostile *h)
{
	static uint8_t seen[HOSTILE_POOL_SIZE];
	struct fab_lane *l;
	struct grant g;

	hostile_grant(h, 1, DEPTH, &g);
	l = hostile_lane(&g, 0);
	hostile_register(h, l, 1);
	hostile_read_pool(l, seen);
	fab_lane_free(l);
	hostile_lanes_close(h);
	return seen;
}

static void
pool_check(struct hostile *h, const char *what, const char *first)
{
	const uint8_t *seen = pool_read(h);

	if (memcmp(seen, first, 8) != 0)
		hostile_lost("%s: what was acknowledged is not there", what);
	for (unsigned i = 4096; i < 4104; i++)
		if (seen[i] != 0)
			hostile_lost("%s: it was applied", what);
}

/*
 * The first lane sends a good one, a bad one and a good one behind it; the second
 * goes on. Neither the target nor the replay when the lanes close may take
 * the bad one, nor what is behind it.
 */
static void
bad_try(struct hostile *h, const struct bad *b)
{
	struct fab_lane *bad, *good;
	struct grant g;
	struct err e;

	err_clear(&e);
	hostile_grant_ring(h, 2, DEPTH, &g);
	bad = hostile_lane(&g, 0);
	good = hostile_lane(&g, 1);
	deposit_send(h, bad, 1, 10, 0, "earlier.");
	hostile_await_ack(bad, 1, true, b->what);
	if (fab_lane_send(bad, bad_build(h, fab_lane_buf(bad), b), &e))
		hostile_fail("%s: %s", b->what, e.text);
	/* The lane may be gone by now. */
	(void)fab_lane_send(bad, deposit_build(h, fab_lane_buf(bad), 3, 30, 4096, "behind!!"), &e);
	expect_end(bad, b->what, !b->no_answer);
	deposit_send(h, good, 1, 40, 0, "goes on.");
	hostile_await_ack(good, 1, true, b->what);
	hostile_ping(h);
	fab_lane_free(bad);
	fab_lane_free(good);
	hostile_lanes_close(h);
	pool_check(h, b->what, "goes on.");
}

/* Nothing but DEPOSITs: an RMA write ends the lane and changes nothing. */
static void
rma_try(struct hostile *h)
{
	struct wire_entry entries[] = {{.off = 1, .op = WIRE_OP_STAMP},
				       {.off = 0, .op = WIRE_OP_REGISTER}};
	struct fab_event ev;
	struct fab_lane *l;
	struct wire_commit c;
	struct grant g;
	struct err e;

	err_clear(&e);
	hostile_grant_ring(h, 1, DEPTH, &g);
	l = hostile_lane(&g, 0);
	wire_commit_begin(&c, fab_lane_buf(l), MESSAGE_LEN, 2);
	wire_commit_add(&c, &entries[0], NULL);
	wire_commit_add(&c, &entries[1], NULL);
	if (fab_lane_send(l, wire_deposit_end(&c, 1, h->epoch), &e))
		hostile_fail("registering: %s", e.text);
	hostile_await_ack(l, 1, true, "registering");
	if (fab_lane_write(l, "hostile!", 8, 4096, &e) == 0) {
		hostile_await(l, HOSTILE_WAIT_MS, &ev);
		if (ev.type != FAB_CLOSED)
			hostile_fail("RMA write beside a ring: event %d", ev.type);
	}
	hostile_ping(h);
	fab_lane_free(l);
	hostile_lanes_close(h);
	pool_check(h, "RMA write beside a ring", "goes on.");
}

static void
deposit_without_ring(struct hostile *h)
{
	struct fab_lane *l;
	struct grant g;

	hostile_grant(h, 1, DEPTH, &g);
	l = hostile_lane(&g, 0);
	deposit_send(h, l, 1, 1, 4096, "hostile!");
	expect_end(l, "a DEPOSIT without a ring", true);
	hostile_ping(h);
	fab_lane_free(l);
	hostile_lanes_close(h);
	pool_check(h, "a DEPOSIT without a ring", "goes on.");
}

/* What went beside it is there, and of what was sent without end all bytes of one or none. */
static void
flood_check(struct hostile *h)
{
	static const uint8_t none[8];
	const uint8_t *seen;

	pool_check(h, "flood", "goes on.");
	seen = pool_read(h);
	if (memcmp(seen + 64, "beside..", 8) != 0)
		hostile_lost("flood: what was acknowledged beside it is not there");
	if (memcmp(seen + 128, "flooded.", 8) != 0 && memcmp(seen + 128, none, 8) != 0)
		hostile_lost("flood: a part of a DEPOSIT is there");
}

/* Far beyond the depth, not one ACK taken: no slot is overrun, the other lane goes on. */
static void
flood(struct hostile *h)
{
	struct fab_lane *bad, *good;
	struct grant g;
	struct err e;

	err_clear(&e);
	hostile_grant_ring(h, 2, 2, &g);
	if (hostile_connect(&g, g.tokens[0], FLOOD_DEPTH, g.msg_size, g.key, &bad, &e))
		hostile_fail("flood: %s", e.text);
	good = hostile_lane(&g, 1);
	for (unsigned i = 1; i <= FLOOD_DEPTH; i++) {
		if (fab_lane_send(bad, deposit_build(h, fab_lane_buf(bad), i, i, 128, "flooded."),
				  &e))
			break;
	}
	deposit_send(h, good, 1, 1, 64, "beside..");
	hostile_await_ack(good, 1, true, "beside a flood");
	hostile_ping(h);
	fab_lane_free(bad);
	deposit_send(h, good, 2, FLOOD_DEPTH + 1, 0, "goes on.");
	hostile_await_ack(good, 2, true, "after a flood");
	fab_lane_free(good);
	hostile_lanes_close(h);
	flood_check(h);
}

/* Each bad message ends its lane and nothing else, and is in no replay. */
void
mode_ring(struct hostile *h)
{
	hostile_open(h, true);
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++)
		bad_try(h, &bads[i]);
	rma_try(h);
	deposit_without_ring(h);
	flood(h);
	(void)printf("%zu bad messages\n", sizeof(bads) / sizeof(bads[0]));
	hostile_close(h);
}
