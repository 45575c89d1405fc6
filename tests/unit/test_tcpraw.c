/* SPDX-License-Identifier: BSD-3-Clause */
/* The bare TCP connection moves what it says, for its token only and by its deadline. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "le.h"
#include "tcpraw.h"

#define LOOPBACK   "127.0.0.1"
#define IDLERS     100
#define TIMEOUT_MS 5000
#define SHORT_MS   500  /* enough for a busy machine to begin */
#define VAIN_MS    100  /* where nothing has to begin */
#define LATE_MS    2000 /* a busy machine may be late, not hang */

static const uint8_t token[TCPRAW_TOKEN_SIZE] = "0123456789abcdef0123456789abcde";

struct server {
	pthread_t thread;
	int fd;
	uint16_t port;
	uint64_t deadline_ns, end_ns;
	int rc;
	struct err e;
};

static void *
server_main(void *arg)
{
	struct server *s = arg;

	s->rc = tcpraw_serve(s->fd, token, s->deadline_ns, &s->e);
	s->end_ns = clock_now_ns();
	return NULL;
}

static void
server_start(struct server *s, unsigned timeout_ms)
{
	struct err e;

	err_clear(&s->e);
	assert_int_equal(tcpraw_listen(LOOPBACK, 0, 0, &s->fd, &s->port, &e), 0);
	assert_int_not_equal(s->port, 0);
	s->deadline_ns = clock_deadline(timeout_ms);
	assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

/* What tcpraw_serve() returned. */
static int
server_join(struct server *s)
{
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	(void)close(s->fd);
	return s->rc;
}

static struct tcpraw *
must_connect(const struct server *s)
{
	struct tcpraw *c = NULL;
	struct err e;

	err_clear(&e);
	if (tcpraw_connect(LOOPBACK, s->port, token, clock_deadline(TIMEOUT_MS), &c, &e))
		fail_msg("%s", e.text);
	return c;
}

/* A connection by hand, for what tcpraw_connect() would not do. */
static int
plain_connect(uint16_t port)
{
	struct timeval patience = {.tv_sec = TIMEOUT_MS / 1000};
	struct sockaddr_in sa = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static void
plain_send(int fd, const void *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void
plain_expect(int fd, const void *data, size_t len)
{
	uint8_t got[64];

	assert_true(len <= sizeof(got));
	assert_int_equal(recv(fd, got, len, MSG_WAITALL), (ssize_t)len);
	assert_memory_equal(got, data, len);
}

static int
plain_enter(uint16_t port)
{
	int fd = plain_connect(port);

	plain_send(fd, token, sizeof(token));
	plain_expect(fd, "TRW1", 4);
	return fd;
}

static void
measures_both_ways_in_turn(void **state)
{
	static const unsigned spins[] = {0, 50};
	uint32_t ns[200];
	uint64_t out_ns = 0, in_ns = 0;
	struct server s;
	struct tcpraw *c;
	struct err e;

	(void)state;
	server_start(&s, TIMEOUT_MS);
	c = must_connect(&s);
	for (size_t i = 0; i < 2; i++) {
		tcpraw_set_spin(c, spins[i]);
		memset(ns, 0, sizeof(ns));
		assert_int_equal(tcpraw_pingpong(c, 64, 200, ns, &e), 0);
		for (size_t k = 0; k < 200; k++)
			assert_true(ns[k] > 0);
		assert_int_equal(tcpraw_stream_out(c, 3000001, 65536, &out_ns, &e), 0);
		assert_int_equal(tcpraw_stream_in(c, 3000001, 4096, &in_ns, &e), 0);
		assert_true(out_ns > 0 && in_ns > 0);
	}
	assert_int_equal(tcpraw_pingpong(c, TCPRAW_SIZE_MAX, 2, ns, &e), 0);
	tcpraw_free(c);
	assert_int_equal(server_join(&s), 0);
}

static void
golden_commands(void **state)
{
	static const uint8_t echo[] = {1, 0, 50, 0, 5, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t sink[] = {2, 0, 0, 0, 4, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t source[] = {3, 0, 0, 0, 4, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t end[] = {4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t nine[] = {9, 0, 0, 0, 0, 0, 0, 0};
	uint8_t stream[9];
	struct server s;
	int fd;

	(void)state;
	server_start(&s, TIMEOUT_MS);
	fd = plain_enter(s.port);
	plain_send(fd, echo, sizeof(echo));
	plain_send(fd, "hello", 5);
	plain_expect(fd, "hello", 5);
	plain_send(fd, "he", 2);
	plain_send(fd, "ya!", 3);
	plain_expect(fd, "heya!", 5);
	plain_send(fd, sink, sizeof(sink));
	plain_send(fd, "123456789", 9);
	plain_expect(fd, nine, sizeof(nine));
	plain_send(fd, source, sizeof(source));
	assert_int_equal(recv(fd, stream, sizeof(stream), MSG_WAITALL), 9);
	plain_send(fd, end, sizeof(end));
	assert_int_equal(server_join(&s), 0);
	assert_int_equal(recv(fd, stream, 1, 0), 0);
	(void)close(fd);
}

static void
wrong_token_is_refused_and_the_right_one_not(void **state)
{
	uint8_t wrong[TCPRAW_TOKEN_SIZE];
	struct tcpraw *c = NULL;
	struct server s;
	struct err e;

	(void)state;
	server_start(&s, TIMEOUT_MS);
	for (size_t bit = 0; bit < sizeof(wrong) * 8; bit += 51) {
		memcpy(wrong, token, sizeof(wrong));
		wrong[bit / 8] = (uint8_t)(wrong[bit / 8] ^ (1U << bit % 8));
		assert_int_equal(
			tcpraw_connect(LOOPBACK, s.port, wrong, clock_deadline(TIMEOUT_MS), &c, &e),
			REPL_E_AUTH);
		assert_null(c);
	}
	tcpraw_free(must_connect(&s));
	assert_int_equal(server_join(&s), 0);
}

static void
token_serves_one_connection(void **state)
{
	struct tcpraw *c, *second = NULL;
	struct server s;
	struct err e;

	(void)state;
	server_start(&s, TIMEOUT_MS);
	c = must_connect(&s);
	assert_int_equal(
		tcpraw_connect(LOOPBACK, s.port, token, clock_deadline(VAIN_MS), &second, &e),
		REPL_E_TIMEOUT);
	assert_null(second);
	tcpraw_free(c);
	assert_int_equal(server_join(&s), 0);
}

static void
idle_connections_keep_nobody_out(void **state)
{
	int idle[IDLERS];
	struct server s;

	(void)state;
	server_start(&s, TIMEOUT_MS);
	for (size_t i = 0; i < IDLERS; i++) {
		idle[i] = plain_connect(s.port);
		if (i % 2) /* half a token */
			(void)send(idle[i], token, sizeof(token) / 2, MSG_NOSIGNAL);
	}
	tcpraw_free(must_connect(&s));
	assert_int_equal(server_join(&s), 0);
	for (size_t i = 0; i < IDLERS; i++)
		(void)close(idle[i]);
}

static void
bad_commands_end_the_connection(void **state)
{
	static const struct {
		uint16_t op, spin_us;
		uint32_t size;
		uint64_t count;
	} bad[] = {
		{0, 0, 1, 1},
		{5, 0, 1, 1},
		{0xffff, 0xffff, UINT32_MAX, UINT64_MAX},
		{TCPRAW_ECHO, 0, 0, 1},
		{TCPRAW_ECHO, 0, 1, 0},
		{TCPRAW_ECHO, 0, TCPRAW_SIZE_MAX + 1, 1},
		{TCPRAW_ECHO, TCPRAW_SPIN_US_MAX + 1, 1, 1},
		{TCPRAW_SINK, 0, 0, UINT64_MAX},
		{TCPRAW_SOURCE, 0, UINT32_MAX, 1},
		{TCPRAW_END, 0, 0, 1},
		{TCPRAW_END, 0, 1, 0},
		{TCPRAW_END, 1, 0, 0},
	};
	uint8_t buf[TCPRAW_COMMAND_SIZE];
	struct server s;
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		server_start(&s, TIMEOUT_MS);
		fd = plain_enter(s.port);
		put_le16(buf, bad[i].op);
		put_le16(buf + 2, bad[i].spin_us);
		put_le32(buf + 4, bad[i].size);
		put_le64(buf + 8, bad[i].count);
		plain_send(fd, buf, sizeof(buf));
		assert_int_equal(server_join(&s), REPL_E_PROTOCOL);
		(void)close(fd);
	}
}

static void
peer_that_goes_is_lost(void **state)
{
	static const uint8_t echo[] = {1, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0};
	struct server s;
	int fd;

	(void)state;
	server_start(&s, TIMEOUT_MS);
	fd = plain_enter(s.port);
	plain_send(fd, echo, sizeof(echo));
	plain_send(fd, "hel", 3);
	(void)close(fd);
	assert_int_equal(server_join(&s), REPL_E_LOST);
}

/* Not before the deadline, and not long after. */
static void
expect_in_time(uint64_t end_ns, uint64_t deadline_ns)
{
	assert_true(end_ns >= deadline_ns);
	assert_true(end_ns - deadline_ns <= LATE_MS * NS_PER_MS);
}

static void
target_keeps_its_deadline(void **state)
{
	static const uint8_t source[] = {3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0};
	static const uint8_t sink[] = {2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0};
	enum { NOBODY, SILENT, TAKES_NOTHING, NEVER_STOPS, PEERS };
	struct server s[PEERS];
	int fd[PEERS];

	(void)state;
	for (unsigned i = 0; i < PEERS; i++) {
		server_start(&s[i], SHORT_MS);
		fd[i] = i == NOBODY ? -1 : plain_enter(s[i].port);
	}
	plain_send(fd[TAKES_NOTHING], source, sizeof(source));
	plain_send(fd[NEVER_STOPS], sink, sizeof(sink));
	while (send(fd[NEVER_STOPS], sink, 1, MSG_NOSIGNAL) == 1)
		;
	for (unsigned i = 0; i < PEERS; i++) {
		assert_int_equal(server_join(&s[i]), REPL_E_TIMEOUT);
		expect_in_time(s[i].end_ns, s[i].deadline_ns);
		if (fd[i] >= 0)
			(void)close(fd[i]);
	}
}

static void
initiator_keeps_its_deadline(void **state)
{
	uint64_t deadline_ns = clock_deadline(VAIN_MS);
	struct tcpraw *c = NULL;
	uint16_t port;
	struct err e;
	int fd;

	(void)state;
	assert_int_equal(tcpraw_listen(LOOPBACK, 0, 0, &fd, &port, &e), 0);
	assert_int_equal(tcpraw_connect(LOOPBACK, port, token, deadline_ns, &c, &e),
			 REPL_E_TIMEOUT);
	expect_in_time(clock_now_ns(), deadline_ns);
	(void)close(fd);
	assert_int_equal(tcpraw_connect(LOOPBACK, port, token, clock_deadline(SHORT_MS), &c, &e),
			 REPL_E_UNREACHABLE);
}

/* Lets a connection in and does nothing for it. */
static void *
mute_main(void *arg)
{
	struct server *s = arg;
	int *conn = malloc(sizeof(*conn));

	s->rc = tcpraw_accept(s->fd, token, s->deadline_ns, conn, &s->e);
	if (!s->rc)
		plain_send(*conn, "TRW1", 4);
	return conn;
}

static void
initiator_gives_up_a_target_that_hangs(void **state)
{
	struct server s = {.deadline_ns = clock_deadline(TIMEOUT_MS)};
	uint64_t ns, begin;
	uint32_t echo_ns[1];
	struct tcpraw *c;
	struct err e;
	void *conn;

	(void)state;
	assert_int_equal(tcpraw_listen(LOOPBACK, 0, 0, &s.fd, &s.port, &e), 0);
	assert_int_equal(pthread_create(&s.thread, NULL, mute_main, &s), 0);
	c = must_connect(&s);
	assert_int_equal(pthread_join(s.thread, &conn), 0);
	assert_int_equal(s.rc, 0);
	tcpraw_set_patience(c, VAIN_MS);
	begin = clock_now_ns();
	assert_int_equal(tcpraw_pingpong(c, 64, 1, echo_ns, &e), REPL_E_TIMEOUT);
	expect_in_time(clock_now_ns(), begin + VAIN_MS * NS_PER_MS);
	/* As much as the buffers take has moved before. */
	begin = clock_now_ns();
	assert_int_equal(tcpraw_stream_out(c, 1ULL << 40, 65536, &ns, &e), REPL_E_TIMEOUT);
	expect_in_time(clock_now_ns(), begin + VAIN_MS * NS_PER_MS);
	tcpraw_free(c);
	(void)close(*(int *)conn);
	(void)close(s.fd);
	free(conn);
}

static void
bad_arguments_are_named(void **state)
{
	struct tcpraw *c = NULL;
	struct server s;
	uint32_t ns[1];
	uint64_t stream_ns;
	uint16_t port;
	struct err e;
	int fd;

	(void)state;
	assert_int_equal(tcpraw_listen("localhost", 0, 0, &fd, &port, &e), REPL_E_INVAL);
	assert_non_null(strstr(e.text, "'localhost'"));
	assert_int_equal(fd, -1);
	assert_int_equal(tcpraw_connect("", 1, token, clock_deadline(SHORT_MS), &c, &e),
			 REPL_E_INVAL);

	server_start(&s, TIMEOUT_MS);
	assert_int_equal(tcpraw_listen(LOOPBACK, s.port, s.port, &fd, &port, &e), REPL_E_LIMIT);
	c = must_connect(&s);
	assert_int_equal(tcpraw_pingpong(c, 0, 1, ns, &e), REPL_E_INVAL);
	assert_int_equal(tcpraw_pingpong(c, TCPRAW_SIZE_MAX + 1, 1, ns, &e), REPL_E_INVAL);
	assert_int_equal(tcpraw_stream_out(c, 0, 1, &stream_ns, &e), REPL_E_INVAL);
	assert_int_equal(tcpraw_stream_in(c, 1, 0, &stream_ns, &e), REPL_E_INVAL);
	assert_int_equal(tcpraw_pingpong(c, 1, 1, ns, &e), 0);
	tcpraw_free(c);
	tcpraw_free(NULL);
	assert_int_equal(server_join(&s), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures_both_ways_in_turn),
		cmocka_unit_test(golden_commands),
		cmocka_unit_test(wrong_token_is_refused_and_the_right_one_not),
		cmocka_unit_test(token_serves_one_connection),
		cmocka_unit_test(idle_connections_keep_nobody_out),
		cmocka_unit_test(bad_commands_end_the_connection),
		cmocka_unit_test(peer_that_goes_is_lost),
		cmocka_unit_test(target_keeps_its_deadline),
		cmocka_unit_test(initiator_keeps_its_deadline),
		cmocka_unit_test(initiator_gives_up_a_target_that_hangs),
		cmocka_unit_test(bad_arguments_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
