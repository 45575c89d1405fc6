/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile appends and registrations. */
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "le.h"

#define TAIL_OFF 4096U
#define PAYLOAD  64U

/* ---- what the lane survives ---- */

struct append_try {
	const char *what;
	uint64_t tail;
	uint64_t limit;
	int status;
};

static const struct append_try tries[] = {
	{"tail behind the pool", HOSTILE_POOL_SIZE + 1, HOSTILE_POOL_SIZE, REPL_E_CORRUPT},
	{"tail that wraps", UINT64_MAX - 8, HOSTILE_POOL_SIZE, REPL_E_CORRUPT},
	{"tail at its highest", UINT64_MAX, HOSTILE_POOL_SIZE, REPL_E_CORRUPT},
	{"tail of 2^63", 1ULL << 63, HOSTILE_POOL_SIZE, REPL_E_CORRUPT},
	{"tail at the end", HOSTILE_POOL_SIZE, HOSTILE_POOL_SIZE, REPL_E_NOSPC},
	{"one byte too many", HOSTILE_POOL_SIZE - PAYLOAD + 1, HOSTILE_POOL_SIZE, REPL_E_NOSPC},
	{"tail behind the limit", 9000, 8000, REPL_E_NOSPC},
	{"limit zero", 8192, 0, REPL_E_NOSPC},
	{"over the tail word", TAIL_OFF - 8, HOSTILE_POOL_SIZE, REPL_E_INVAL},
	{"at the tail word", TAIL_OFF, HOSTILE_POOL_SIZE, REPL_E_INVAL},
	{"good", 8192, HOSTILE_POOL_SIZE, 0},
	{"up to the end", HOSTILE_POOL_SIZE - PAYLOAD, HOSTILE_POOL_SIZE, 0},
};

static void
append_build(struct wire_commit *c, struct fab_lane *l, uint64_t limit)
{
	static const uint8_t data[PAYLOAD] = {'h', 'o', 's', 't', 'i', 'l', 'e'};
	struct wire_entry en = {.off = TAIL_OFF, .len = PAYLOAD, .op = WIRE_OP_APPEND};

	wire_commit_begin(c, fab_lane_buf(l), 4096, 1);
	wire_commit_add_append(c, &en, limit, data);
}

/* Two COMMITs of the lane: the tail word, and the append. */
static void
append_try(struct hostile *h, struct fab_lane *l, uint64_t *seq, const struct append_try *t)
{
	struct wire_ack ack = {0};
	struct wire_commit c;
	uint8_t word[8], *seen = malloc(HOSTILE_POOL_SIZE);
	uint64_t tail;

	if (!seen)
		hostile_fail("out of memory");
	put_le64(word, t->tail);
	hostile_commit(h, l, (*seq)++, TAIL_OFF, word, sizeof(word));
	append_build(&c, l, t->limit);
	hostile_send(h, l, &c, (*seq)++, &ack);
	if (ack.status != t->status || ack.has_place != !t->status ||
	    (ack.has_place && ack.place != t->tail))
		hostile_fail("%s: status %d, place %llu", t->what, ack.status,
			     (unsigned long long)ack.place);
	hostile_read_pool(l, seen);
	tail = get_le64(seen + TAIL_OFF);
	if (tail != (t->status ? t->tail : t->tail + PAYLOAD))
		hostile_lost("%s: the tail word is %llu", t->what, (unsigned long long)tail);
	free(seen);
}

/* Regions that are not there, with a number of any size: refused, and the lane goes on. */
static void
register_try(struct hostile *h, struct fab_lane *l, uint64_t *seq)
{
	static const uint64_t bad[] = {1, 16383, 16384, 1ULL << 32, 1ULL << 63, UINT64_MAX};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wire_entry en = {.off = bad[i], .op = WIRE_OP_REGISTER};
		struct wire_ack ack = {0};
		struct wire_commit c;

		wire_commit_begin(&c, fab_lane_buf(l), 4096, 1);
		wire_commit_add(&c, &en, NULL);
		hostile_send(h, l, &c, (*seq)++, &ack);
		if (ack.status != REPL_E_INVAL)
			hostile_fail("region %llu: status %d", (unsigned long long)bad[i],
				     ack.status);
	}
}

/* ---- what ends the lane ---- */

static void
expect_end(struct hostile *h, const char *what,
	   void (*send)(const struct hostile *, struct fab_lane *))
{
	struct fab_lane *bad, *good;
	struct fab_event ev;
	struct grant g;

	hostile_grant(h, 2, 4, &g);
	bad = hostile_lane(&g, 0);
	good = hostile_lane(&g, 1);
	send(h, bad);
	do
		hostile_await(bad, HOSTILE_WAIT_MS, &ev);
	while (ev.type == FAB_RECV || ev.type == FAB_WRITTEN);
	if (ev.type != FAB_CLOSED)
		hostile_fail("%s: the lane goes on, event %d", what, ev.type);
	hostile_commit(h, good, 1, 0, "good", 4);
	hostile_ping(h);
	fab_lane_free(bad);
	fab_lane_free(good);
	hostile_lanes_close(h);
}

static void
send_limit(const struct hostile *h, struct fab_lane *l)
{
	struct wire_commit c;
	struct err e;

	append_build(&c, l, HOSTILE_POOL_SIZE + 1);
	if (fab_lane_send(l, wire_commit_end(&c, 1, h->epoch), &e))
		hostile_fail("limit: %s", e.text);
}

/* No region is registered: none of the pool is to be had. */
static void
send_unregistered(const struct hostile *h, struct fab_lane *l)
{
	struct err e;

	(void)h;
	(void)fab_lane_write(l, "unregistered", 12, 0, &e);
}

/* An append that can't be done changes nothing; what is malformed ends its lane and no other. */
void
mode_appends(struct hostile *h)
{
	struct fab_lane *l;
	struct grant g;
	uint64_t seq = 1;

	hostile_open(h, true);
	expect_end(h, "RMA to a region that is not registered", send_unregistered);
	expect_end(h, "limit behind the pool", send_limit);
	hostile_grant(h, 1, 4, &g);
	l = hostile_lane(&g, 0);
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		append_try(h, l, &seq, &tries[i]);
	register_try(h, l, &seq);
	hostile_commit(h, l, seq, 0, "after", 5);
	fab_lane_free(l);
	(void)printf("%zu appends\n", sizeof(tries) / sizeof(tries[0]));
	hostile_close(h);
}
