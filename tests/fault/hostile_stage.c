/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile STAGEs, and journals out of place. */
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "le.h"
#include "stage.h"

#define LEN 64U /* of the range of a STAGE */

/* A STAGE with one of its bytes changed, sealed again. */
struct bad {
	const char *what;
	unsigned at, width;
	uint64_t value;
	bool keep_sum;
};

static const struct bad bads[] = {
	{"wrong epoch", 20, 4, 0xdead, false},
	{"sequence 3", 8, 8, 3, false},
	{"wrong checksum", 24, 8, 1, true},
	{"no entries", 6, 2, 0, false},
	{"257 entries", 6, 2, 257, false},
	{"overlong payload", 16, 4, 0xffffffffU, false},
	{"range behind the pool", 32, 8, HOSTILE_POOL_SIZE - LEN + 1, false},
	{"range that wraps", 32, 8, UINT64_MAX - 8, false},
	{"longer than its payload", 40, 4, LEN + 1, false},
	{"BARRIER", 44, 1, WIRE_OP_BARRIER, false},
	{"FLUSH", 44, 1, WIRE_OP_FLUSH, false},
	{"ATOMIC8", 44, 1, WIRE_OP_ATOMIC8, false},
	{"unknown operation", 44, 1, 200, false},
	{"reserved byte", 45, 1, 1, false},
};

static size_t
stage_build(const struct hostile *h, uint8_t *buf, uint64_t seq)
{
	static const uint8_t data[LEN] = {'h', 'o', 's', 't', 'i', 'l', 'e'};
	struct wire_entry en = {.off = 4096, .len = LEN, .op = WIRE_OP_COPY};
	struct wire_commit c;

	wire_commit_begin(&c, buf, 4096, 1);
	wire_commit_add(&c, &en, data);
	return wire_stage_end(&c, seq, h->epoch);
}

static void
stage_send(const struct hostile *h, struct fab_lane *l, uint64_t seq, const struct bad *b)
{
	uint8_t *buf = fab_lane_buf(l);
	size_t len = stage_build(h, buf, seq);
	struct err e;

	for (unsigned i = 0; b && i < b->width; i++)
		buf[b->at + i] = (uint8_t)(b->value >> (8 * i));
	if (b && !b->keep_sum)
		put_le64(buf + 24, sum64_seeded(buf, 24, sum64(buf + 32, len - 32)));
	err_clear(&e);
	if (fab_lane_send(l, len, &e))
		hostile_fail("STAGE: %s", e.text);
}

/* The lane's end, with an answer before it or without; another lane goes on. */
static void
expect_end(struct fab_lane *bad, const char *what)
{
	struct fab_event ev;
	unsigned answers = 0;

	do
		hostile_await(bad, HOSTILE_WAIT_MS, &ev);
	while (ev.type == FAB_RECV && ++answers < 3);
	if (ev.type != FAB_CLOSED)
		hostile_fail("%s: the lane goes on, event %d", what, ev.type);
}

static void
expect_call(struct hostile *h, const char *what, int rc, int want)
{
	if (rc != want)
		hostile_fail("%s: status %d, not %d", what, rc, want);
	hostile_ping(h);
}

/* Out of place: what the initiator's own side of the channel makes of that ends the session. */
static void
expect_refused(struct hostile *h, const char *what, int rc)
{
	if (rc != REPL_E_PROTOCOL)
		hostile_fail("%s: status %d", what, rc);
	hostile_close(h);
	hostile_open(h, true);
	hostile_ping(h);
}

static void
expect_bad(struct hostile *h, const struct bad *b)
{
	struct fab_lane *bad, *good;
	struct grant g;

	hostile_grant(h, 2, 4, &g);
	bad = hostile_lane(&g, 0);
	good = hostile_lane(&g, 1);
	stage_send(h, bad, 1, b);
	expect_end(bad, b->what);
	stage_send(h, good, 1, NULL);
	hostile_await_ack(good, 1, true, b->what);
	fab_lane_free(bad);
	fab_lane_free(good);
	hostile_lanes_close(h);
}

/* A message of a kind that is not to be sent now. */
static void
expect_kind(struct hostile *h, const char *what, bool stage)
{
	struct wire_entry en = {.off = 0, .len = 4, .op = WIRE_OP_COPY};
	struct wire_commit c;
	struct fab_lane *l;
	struct grant g;
	struct err e;

	hostile_grant(h, 1, 4, &g);
	l = hostile_lane(&g, 0);
	wire_commit_begin(&c, fab_lane_buf(l), 4096, 1);
	wire_commit_add(&c, &en, "evil");
	err_clear(&e);
	if (fab_lane_send(
		    l, stage ? wire_stage_end(&c, 1, h->epoch) : wire_commit_end(&c, 1, h->epoch),
		    &e))
		hostile_fail("%s: %s", what, e.text);
	expect_end(l, what);
	fab_lane_free(l);
	hostile_lanes_close(h);
}

/* More than was asked for: refused, then all of it, and it can't be committed. */
static void
expect_full(struct hostile *h)
{
	struct fab_lane *l;
	struct wire_ack ack;
	struct fab_event ev;
	struct grant g;
	struct err e;
	int status = 0;

	hostile_grant(h, 1, 4, &g);
	l = hostile_lane(&g, 0);
	for (uint64_t seq = 1; seq < 200; seq++) {
		stage_send(h, l, seq, NULL);
		hostile_await(l, HOSTILE_WAIT_MS, &ev);
		if (ev.type != FAB_RECV || wire_ack_decode(ev.data, ev.len, &ack, &e))
			hostile_fail("STAGE %d: event %d", (int)seq, ev.type);
		fab_lane_repost(l, ev.slot);
		if (status && ack.status != REPL_E_NOSPC)
			hostile_fail("STAGE %d behind a full journal: %d", (int)seq, ack.status);
		status = ack.status;
	}
	if (status != REPL_E_NOSPC)
		hostile_fail("the journal has room without an end");
	expect_call(h, "commit of a full journal",
		    remote_journal_commit(h->remote, SIDECAR_OUTDATED, NULL, 0, &e), REPL_E_NOSPC);
	fab_lane_free(l);
	hostile_lanes_close(h);
}

static int
ask_kept(struct hostile *h, struct err *e)
{
	static struct stage_kept kept[STAGE_KEPT_MAX];
	static const struct hash_key none;
	unsigned count;
	uint64_t bytes;
	int64_t id;
	bool more;
	int rc = remote_journal_kept_ask(h->remote, &none, &id, e);

	return rc ? rc
		  : remote_journal_kept(h->remote, id, HOSTILE_POOL_SIZE, kept, &count, &bytes,
					&more, e);
}

/* A STAGE that is malformed or out of place ends its lane and changes nothing. */
void
mode_stages(struct hostile *h)
{
	static uint8_t before[HOSTILE_POOL_SIZE], after[HOSTILE_POOL_SIZE];
	uint64_t done, total;
	struct fab_lane *l;
	struct grant g;
	struct err e;

	err_clear(&e);
	hostile_open(h, true);
	hostile_grant(h, 1, 4, &g);
	l = hostile_lane(&g, 0);
	hostile_commit(h, l, 1, 0, "good", 4);
	hostile_read_pool(l, before);
	fab_lane_free(l);
	hostile_lanes_close(h);

	expect_kind(h, "STAGE without a journal", true);
	expect_refused(h, "commit of none",
		       remote_journal_commit(h->remote, SIDECAR_UP_TO_DATE, NULL, 0, &e));
	expect_refused(h, "apply of none", remote_journal_apply(h->remote, 1, &done, &total, &e));
	expect_refused(h, "what none keeps", ask_kept(h, &e));
	expect_call(h, "drop of none", remote_journal_drop(h->remote, &e), 0);
	expect_call(h, "beyond journal-max", remote_journal_begin(h->remote, 1ULL << 40, &e),
		    REPL_E_REFUSED);
	expect_call(h, "begin", remote_journal_begin(h->remote, 0, &e), 0);
	expect_kind(h, "COMMIT with a journal", false);
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++)
		expect_bad(h, &bads[i]);
	expect_full(h);
	expect_refused(h, "what one that was begun keeps", ask_kept(h, &e));
	expect_refused(h, "apply before commit",
		       remote_journal_apply(h->remote, 1, &done, &total, &e));
	expect_call(h, "drop", remote_journal_drop(h->remote, &e), 0);

	hostile_grant(h, 1, 4, &g);
	l = hostile_lane(&g, 0);
	/* Before anything is written over what may have changed. */
	hostile_register(h, l, 1);
	hostile_read_pool(l, after);
	if (memcmp(before, after, HOSTILE_POOL_SIZE) != 0)
		hostile_lost("the pool has changed");
	hostile_commit(h, l, 2, 0, "good", 4);
	fab_lane_free(l);
	(void)printf("%zu bad STAGEs\n", sizeof(bads) / sizeof(bads[0]));
	hostile_close(h);
}
