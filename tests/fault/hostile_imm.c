/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile use of RMA writes with an immediate. */
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMM_ANSWER (1U << 31)
#define IMM_UNITS  (HOSTILE_POOL_SIZE / 64) /* of this pool */
#define IMM_FLOOD  200U

/* The fields are where docs/PROTOCOL.md puts them. */
static uint32_t
imm_bits(uint32_t first, uint32_t units)
{
	return IMM_ANSWER | (units - 1) << 20 | first;
}

static int
imm_write(struct fab_lane *l, uint64_t off, const void *data, size_t len, uint32_t bits)
{
	const struct fab_imm imm = {.bits = bits, .answered = bits & IMM_ANSWER};
	struct err e;

	err_clear(&e);
	return fab_lane_write_imm(l, data, len, off, &imm, &e);
}

/* Answered with seq; the bytes are there. */
static void
imm_good(struct fab_lane *l, uint64_t seq, uint64_t off, const char *text)
{
	size_t len = strlen(text);
	uint32_t first = (uint32_t)(off / 64);

	if (imm_write(l, off, text, len,
		      imm_bits(first, (uint32_t)((off + len - 1) / 64 - first + 1))))
		hostile_fail("immediate %llu", (unsigned long long)seq);
	hostile_await_ack(l, seq, true, "immediate");
}

static void
expect_closed(struct fab_lane *l, const char *what)
{
	struct fab_event ev;

	do
		hostile_await(l, HOSTILE_WAIT_MS, &ev);
	while (ev.type == FAB_WRITTEN);
	if (ev.type != FAB_CLOSED)
		hostile_fail("%s: the lane goes on, event %d", what, ev.type);
}

/* Immediates and COMMITs of a lane are numbered together, whichever comes first. */
static void
imm_mixed(struct hostile *h)
{
	struct fab_lane *l;
	struct grant g;
	uint8_t *seen = malloc(HOSTILE_POOL_SIZE);

	hostile_grant(h, 2, 4, &g);
	hostile_register_once(h, &g);
	if (g.imm_unit != 64 || !seen)
		hostile_fail("unit of %llu bytes", (unsigned long long)g.imm_unit);
	l = hostile_lane(&g, 0);
	imm_good(l, 1, 4000, "before any COMMIT");
	hostile_commit(h, l, 2, 0, "commit", 6);
	imm_good(l, 3, 8191, "between");
	/* Not answered, so not counted, whatever it names. */
	if (imm_write(l, 20000, "silent", 6, 0x7fffffff))
		hostile_fail("immediate without answer");
	hostile_commit(h, l, 4, 8, "commit", 6);
	imm_good(l, 5, HOSTILE_POOL_SIZE - 4, "last");
	hostile_read_pool(l, seen);
	if (memcmp(seen + 4000, "before any COMMIT", 17) != 0 ||
	    memcmp(seen + 8191, "between", 7) != 0 || memcmp(seen + 20000, "silent", 6) != 0 ||
	    memcmp(seen + HOSTILE_POOL_SIZE - 4, "last", 4) != 0)
		hostile_lost("immediates: other bytes than written");
	fab_lane_free(l);
	free(seen);
	hostile_lanes_close(h);
}

/* One that names what is not there ends its lane and no other. */
static void
imm_outside(struct hostile *h)
{
	static const struct {
		const char *what;
		uint32_t bits;
	} bad[] = {
		{"first unit behind the end", IMM_ANSWER | IMM_UNITS},
		{"last unit behind the end", IMM_ANSWER | 1U << 20 | (IMM_UNITS - 1)},
		{"all bits", 0xffffffff},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fab_lane *l[2];
		struct grant g;

		hostile_grant(h, 3, 4, &g);
		hostile_register_once(h, &g);
		l[0] = hostile_lane(&g, 0);
		l[1] = hostile_lane(&g, 1);
		hostile_commit(h, l[1], 1, 0, "before", 6);
		if (imm_write(l[1], 0, "x", 1, bad[i].bits))
			hostile_fail("%s", bad[i].what);
		hostile_await_ack(l[1], 2, false, bad[i].what);
		expect_closed(l[1], bad[i].what);
		imm_good(l[0], 1, 0, "goes on");
		hostile_ping(h);
		fab_lane_free(l[0]);
		fab_lane_free(l[1]);
		hostile_lanes_close(h);
	}
}

/* With bytes or without. */
static void
imm_readonly(struct hostile *h)
{
	static const size_t lens[] = {0, 8};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct fab_lane *bad, *good;
		uint8_t *seen = malloc(HOSTILE_POOL_SIZE);
		struct grant g;

		hostile_grant(h, 3, 4, &g);
		hostile_register_once(h, &g);
		bad = hostile_lane(&g, 0);
		good = hostile_lane(&g, 1);
		if (imm_write(bad, 0, "readonly", lens[i], imm_bits(0, 1)))
			hostile_fail("immediate to a pool opened for reading");
		expect_closed(bad, "pool opened for reading");
		hostile_read_pool(good, seen);
		if (memcmp(seen, "readonly", 8) == 0)
			hostile_lost("a pool opened for reading was written");
		fab_lane_free(bad);
		fab_lane_free(good);
		free(seen);
		hostile_lanes_close(h);
	}
}

/* Far beyond the depth without waiting: the lane may end, the session goes on. */
static void
imm_flood(struct hostile *h)
{
	struct fab_lane *bad, *good;
	struct fab_event ev;
	struct grant g;
	struct err e;
	unsigned sent = 0;

	hostile_grant(h, 3, 2, &g);
	hostile_register_once(h, &g);
	if (hostile_connect(&g, g.tokens[0], IMM_FLOOD + 2, g.msg_size, g.key, &bad, &e))
		hostile_fail("flood: %s", e.text);
	good = hostile_lane(&g, 1);
	while (sent < IMM_FLOOD) {
		while (fab_lane_rma_room(bad) == 0) {
			hostile_await(bad, HOSTILE_WAIT_MS, &ev);
			if (ev.type == FAB_CLOSED || ev.type == FAB_NONE)
				break;
		}
		if (imm_write(bad, 0, "flood", 5, imm_bits(0, 1)))
			break;
		sent++;
	}
	(void)printf("%u immediates sent without waiting\n", sent);
	imm_good(good, 1, 0, "beside");
	hostile_ping(h);
	fab_lane_free(bad);
	hostile_commit(h, good, 2, 0, "at last", 7);
	fab_lane_free(good);
	hostile_lanes_close(h);
}

/* It can't be told which lane lies about its number: all of them end, the session does not. */
static void
imm_lie(struct hostile *h)
{
	struct fab_lane *l[2];
	struct grant g;

	hostile_grant(h, 3, 4, &g);
	hostile_register_once(h, &g);
	l[0] = hostile_lane(&g, 0);
	g.lane_lie = 77;
	l[1] = hostile_lane(&g, 1);
	if (imm_write(l[1], 0, "x", 1, imm_bits(0, 1)))
		hostile_fail("a lane's number that is not there");
	expect_closed(l[0], "another lane's number that is not there");
	expect_closed(l[1], "a lane's number that is not there");
	hostile_ping(h);
	fab_lane_free(l[0]);
	fab_lane_free(l[1]);
	hostile_lanes_close(h);
}

/* Immediates are numbered with the COMMITs; a bad one ends its lane and nothing else. */
void
mode_immediates(struct hostile *h)
{
	hostile_open(h, true);
	imm_mixed(h);
	imm_outside(h);
	imm_flood(h);
	imm_lie(h);
	imm_mixed(h);
	hostile_close(h);
	hostile_open(h, false);
	imm_readonly(h);
	hostile_close(h);
}
