/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile connections to the data port. */
#include "hostile.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

#define PROMPT_S        5U /* a refusal that comes is no timeout, in emulation neither */
#define IDLE_COUNT      1000U
#define IDLE_BOUND_MS   2000U
#define GARBAGE_ROUNDS  64U
#define CONNECT_HEADER  32U
#define CONNECT_REQUEST 0

static void
expect_refused(const struct grant *g, const uint8_t *token, const char *what)
{
	uint64_t start = clock_now_ns();
	struct fab_lane *l;
	struct err e;
	int rc = hostile_connect(g, token, g->depth, g->msg_size, g->key, &l, &e);

	if (rc == 0)
		hostile_fail("%s: the lane was accepted", what);
	if (rc != REPL_E_UNREACHABLE || !strstr(e.text, "refused the lane"))
		hostile_fail("%s: %s, not refused", what, e.text);
	if (clock_now_ns() - start > PROMPT_S * NS_PER_S)
		hostile_fail("%s: refused only after %llu ms", what,
			     (unsigned long long)((clock_now_ns() - start) / NS_PER_MS));
}

/* A wrong, a used, and after the last lane any token is refused at once. */
void
mode_tokens(struct hostile *h)
{
	struct fab_lane *l[2];
	struct grant g;
	uint8_t wrong[WIRE_TOKEN_SIZE];

	hostile_open(h, true);
	hostile_grant(h, 2, 4, &g);
	memcpy(wrong, g.tokens[0], sizeof(wrong));
	wrong[WIRE_TOKEN_SIZE - 1] ^= 1;
	expect_refused(&g, wrong, "a wrong token");
	memset(wrong, 0, sizeof(wrong));
	expect_refused(&g, wrong, "a token of zeros");
	l[0] = hostile_lane(&g, 0);
	expect_refused(&g, g.tokens[0], "a used token");
	hostile_commit(h, l[0], 1, 0, "first", 5);
	l[1] = hostile_lane(&g, 1);
	hostile_commit(h, l[1], 1, 4096, "second", 6);
	expect_refused(&g, g.tokens[1], "a token after the port has closed");
	hostile_commit(h, l[0], 2, 0, "third", 5);
	fab_lane_free(l[0]);
	fab_lane_free(l[1]);
	hostile_close(h);
}

/* A good token is refused when deadline_ms have passed; lanes that came in time go on. */
void
mode_late(struct hostile *h)
{
	struct fab_lane *l;
	struct grant g;
	uint64_t end;

	hostile_open(h, true);
	hostile_grant(h, 2, 4, &g);
	l = hostile_lane(&g, 0);
	end = clock_deadline((unsigned)g.deadline_ms + 200);
	while (clock_left_ms(end) > 0) {
		(void)poll(NULL, 0, 200);
		hostile_ping(h);
	}
	expect_refused(&g, g.tokens[1], "a late token");
	hostile_commit(h, l, 1, 0, "in time", 7);
	fab_lane_free(l);
	hostile_close(h);
}

static void
send_bytes(int fd, const void *data, size_t len)
{
	(void)!send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * What fi_connect() of the tcp provider sends before its connect data, of which
 * it claims so many bytes. Returns its length; the data follow in out.
 */
static size_t
connect_message(uint8_t *out, uint8_t type, uint16_t claimed)
{
	memset(out, 0, 512);
	out[0] = 3; /* version */
	out[1] = type;
	out[2] = (uint8_t)(claimed >> 8);
	out[3] = (uint8_t)claimed;
	out[CONNECT_HEADER - 8] = 1; /* byte order */
	return CONNECT_HEADER;
}

static void
garbage_send(const struct grant *g, unsigned round, int fd)
{
	uint8_t buf[8192];
	size_t len = 1U + (unsigned)rand() % sizeof(buf);

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)rand();
	if (round % 4 == 1)
		len = connect_message(buf, CONNECT_REQUEST, 0xffff) + 300;
	else if (round % 4 == 2)
		len = connect_message(buf, (uint8_t)round, 36) + 36;
	else if (round % 4 == 3)
		len = connect_message(buf, CONNECT_REQUEST, 256) + 256;
	send_bytes(fd, buf, len);
	(void)g;
}

/* Bytes that are no connection request never reach a lane and harm none. */
void
mode_garbage(struct hostile *h)
{
	int fds[GARBAGE_ROUNDS];
	struct fab_lane *l;
	struct grant g;

	srand(1);
	hostile_open(h, true);
	hostile_grant(h, 2, 4, &g);
	l = hostile_lane(&g, 0);
	for (unsigned i = 0; i < GARBAGE_ROUNDS; i++) {
		fds[i] = hostile_tcp(&g);
		garbage_send(&g, i, fds[i]);
		hostile_commit(h, l, i + 1, 0, "between", 7);
		if (i % 2)
			(void)close(fds[i]);
	}
	fab_lane_free(l);
	l = hostile_lane(&g, 1);
	hostile_commit(h, l, 1, 0, "after", 5);
	for (unsigned i = 0; i < GARBAGE_ROUNDS; i += 2)
		(void)close(fds[i]);
	hostile_ping(h);
	fab_lane_free(l);
	hostile_close(h);
}

/* Half a connection request, then silence, does not keep the rightful one waiting. */
void
mode_half(struct hostile *h)
{
	struct fab_lane *l[2];
	struct grant g;
	uint8_t buf[512];
	uint64_t start;
	int fds[3];

	hostile_open(h, true);
	hostile_grant(h, 2, 4, &g);
	l[0] = hostile_lane(&g, 0);
	(void)connect_message(buf, CONNECT_REQUEST, 36);
	for (unsigned i = 0; i < 3; i++) {
		static const size_t lens[] = {1, 31, 40};

		fds[i] = hostile_tcp(&g);
		send_bytes(fds[i], buf, lens[i]);
	}
	(void)poll(NULL, 0, 200);
	start = clock_now_ns();
	hostile_commit(h, l[0], 1, 0, "meanwhile", 9);
	l[1] = hostile_lane(&g, 1);
	hostile_commit(h, l[1], 1, 0, "beside", 6);
	if (clock_now_ns() - start > IDLE_BOUND_MS * NS_PER_MS)
		hostile_fail("the rightful initiator waited %llu ms",
			     (unsigned long long)((clock_now_ns() - start) / NS_PER_MS));
	for (unsigned i = 0; i < 3; i++)
		(void)close(fds[i]);
	fab_lane_free(l[0]);
	fab_lane_free(l[1]);
	hostile_close(h);
}

static unsigned
idle_count(void)
{
	const char *text = getenv("HOSTILE_IDLE");

	return text ? (unsigned)strtoul(text, NULL, 10) : IDLE_COUNT;
}

/* A thousand connections that say nothing: the rightful lanes connect within 2 s. */
void
mode_idle(struct hostile *h)
{
	unsigned count = idle_count();
	int *fds = calloc(count, sizeof(*fds));
	struct fab_lane *l[4];
	struct grant g;
	uint64_t start, took_ms;

	hostile_raise_nofile();
	hostile_open(h, true);
	hostile_grant(h, 4, 4, &g);
	for (unsigned i = 0; fds && i < count; i++)
		fds[i] = hostile_tcp(&g);
	start = clock_now_ns();
	for (unsigned i = 0; i < 4; i++) {
		l[i] = hostile_lane(&g, i);
		hostile_commit(h, l[i], 1, i * 4096UL, "lane", 4);
	}
	took_ms = (clock_now_ns() - start) / NS_PER_MS;
	(void)printf("4 lanes beside %u idle connections: %llu ms\n", count,
		     (unsigned long long)took_ms);
	if (took_ms > IDLE_BOUND_MS)
		hostile_fail("more than %u ms", IDLE_BOUND_MS);
	for (unsigned i = 0; fds && i < count; i++)
		(void)close(fds[i]);
	free(fds);
	for (unsigned i = 0; i < 4; i++) {
		hostile_commit(h, l[i], 2, i * 4096UL, "LANE", 4);
		fab_lane_free(l[i]);
	}
	hostile_close(h);
}

/* Connections left over from before the port closed say something after it. */
void
mode_linger(struct hostile *h)
{
	struct fab_lane *l;
	struct grant g;
	uint8_t buf[512];
	int fds[64];

	hostile_open(h, true);
	hostile_grant(h, 1, 4, &g);
	for (unsigned i = 0; i < 64; i++)
		fds[i] = hostile_tcp(&g);
	(void)poll(NULL, 0, 100);
	l = hostile_lane(&g, 0);
	hostile_commit(h, l, 1, 0, "joined", 6);
	(void)poll(NULL, 0, 100);
	for (unsigned i = 0; i < 64; i++) {
		send_bytes(fds[i], buf, connect_message(buf, CONNECT_REQUEST, 36) + 36);
		hostile_commit(h, l, i + 2, 0, "goes on", 7);
		if (i % 2)
			(void)close(fds[i]);
	}
	hostile_ping(h);
	for (unsigned i = 0; i < 64; i += 2)
		(void)close(fds[i]);
	hostile_commit(h, l, 66, 0, "still", 5);
	fab_lane_free(l);
	hostile_close(h);
}
