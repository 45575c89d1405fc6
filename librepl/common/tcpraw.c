/* SPDX-License-Identifier: BSD-3-Clause */
/* The initiator's side of tcpraw. */
#include "tcpraw.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "le.h"
#include "target.h"
#include "tcpraw_io.h"

struct tcpraw {
	struct tcpraw_io io;
};

/* Connect a non-blocking socket by the deadline. */
static int
connect_by(int fd, const struct addrinfo *ai, uint64_t deadline_ns, struct err *e)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	int fault = 0;
	socklen_t len = sizeof(fault);

	if (connect(fd, ai->ai_addr, ai->ai_addrlen) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return err_errno(e, REPL_E_UNREACHABLE, errno, "baseline: connect");
	while (poll(&pfd, 1, clock_left_ms(deadline_ns)) <= 0) {
		if (clock_now_ns() >= deadline_ns)
			return err_set(e, REPL_E_TIMEOUT, "baseline: connect: no answer");
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &len) < 0)
		fault = errno;
	if (fault)
		return err_errno(e, REPL_E_UNREACHABLE, fault, "baseline: connect");
	return 0;
}

/* Show the token; the target answers only to the right one. */
static int
present_token(struct tcpraw *c, const uint8_t token[TCPRAW_TOKEN_SIZE], struct err *e)
{
	uint8_t answer[4];
	int rc = tcpraw_send(&c->io, token, TCPRAW_TOKEN_SIZE, e);

	if (!rc)
		rc = tcpraw_recv(&c->io, answer, sizeof(answer), e);
	if (rc == REPL_E_LOST)
		return err_set(e, REPL_E_AUTH,
			       "baseline: the target closed the connection (wrong or used token)");
	if (rc)
		return rc;
	if (get_le32(answer) != TCPRAW_MAGIC)
		return err_set(e, REPL_E_PROTOCOL, "baseline: the peer is no repld (0x%08x)",
			       get_le32(answer));
	return 0;
}

int
tcpraw_connect(const char *host, uint16_t port, const uint8_t token[TCPRAW_TOKEN_SIZE],
	       uint64_t deadline_ns, struct tcpraw **out, struct err *e)
{
	struct addrinfo *ai = NULL;
	struct tcpraw *c = calloc(1, sizeof(*c));
	uint64_t connected_ns = clock_deadline(TCPRAW_CONNECT_MS);
	char address[TARGET_ADDRESS_MAX];
	int fd = -1;
	int rc;

	*out = NULL;
	if (!c)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	c->io.fd = -1;
	rc = tcpraw_resolve(host, port, &ai, e);
	if (rc)
		goto out;
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		rc = err_errno(e, err_from_errno(errno), errno, "baseline: socket");
		goto out;
	}
	rc = connect_by(fd, ai, connected_ns < deadline_ns ? connected_ns : deadline_ns, e);
	if (!rc)
		rc = tcpraw_io_init(&c->io, fd, deadline_ns, e);
	if (rc)
		goto out;
	fd = -1;
	tcpraw_set_patience(c, TCPRAW_CONNECT_MS);
	rc = present_token(c, token, e);
	if (rc)
		goto out;
	*out = c;
	c = NULL;
out:
	if (rc)
		(void)err_prefix(e, "%s", target_address(host, port, address));
	if (fd >= 0)
		(void)close(fd);
	if (ai)
		freeaddrinfo(ai);
	if (c)
		tcpraw_io_fini(&c->io);
	free(c);
	return rc;
}

void
tcpraw_free(struct tcpraw *c)
{
	struct tcpraw_command end = {.op = TCPRAW_END};
	uint8_t buf[TCPRAW_COMMAND_SIZE];

	if (!c)
		return;
	tcpraw_command_encode(buf, &end);
	(void)send(c->io.fd, buf, sizeof(buf), MSG_NOSIGNAL | MSG_DONTWAIT);
	tcpraw_io_fini(&c->io);
	free(c);
}

void
tcpraw_set_spin(struct tcpraw *c, unsigned spin_us)
{
	c->io.spin_us = spin_us < TCPRAW_SPIN_US_MAX ? spin_us : TCPRAW_SPIN_US_MAX;
}

void
tcpraw_set_patience(struct tcpraw *c, unsigned patience_ms)
{
	c->io.patience_ns = patience_ms * NS_PER_MS;
}

static int
send_command(struct tcpraw *c, enum tcpraw_op op, uint32_t size, uint64_t count, struct err *e)
{
	struct tcpraw_command cmd = {
		.op = (uint16_t)op,
		.spin_us = (uint16_t)c->io.spin_us,
		.size = size,
		.count = count,
	};
	uint8_t buf[TCPRAW_COMMAND_SIZE];

	if (size == 0 || size > TCPRAW_SIZE_MAX || count == 0)
		return err_set(e, REPL_E_INVAL, "baseline: size %u is not 1 to %u, or count is 0",
			       size, TCPRAW_SIZE_MAX);
	tcpraw_command_encode(buf, &cmd);
	return tcpraw_send(&c->io, buf, sizeof(buf), e);
}

int
tcpraw_pingpong(struct tcpraw *c, uint32_t size, uint32_t count, uint32_t *ns_out, struct err *e)
{
	uint64_t start, end;
	int rc = send_command(c, TCPRAW_ECHO, size, count, e);

	start = clock_now_ns();
	for (uint32_t i = 0; !rc && i < count; i++) {
		rc = tcpraw_send(&c->io, c->io.buf, size, e);
		if (!rc)
			rc = tcpraw_recv(&c->io, c->io.buf, size, e);
		end = clock_now_ns();
		ns_out[i] = end - start < UINT32_MAX ? (uint32_t)(end - start) : UINT32_MAX;
		start = end;
		if (!rc && end >= c->io.deadline_ns)
			rc = tcpraw_check_deadline(&c->io, e);
	}
	return rc;
}

int
tcpraw_stream_out(struct tcpraw *c, uint64_t bytes, uint32_t chunk, uint64_t *ns, struct err *e)
{
	uint64_t start = clock_now_ns();
	uint8_t answer[8];
	int rc = send_command(c, TCPRAW_SINK, chunk, bytes, e);

	if (!rc)
		rc = tcpraw_pour(&c->io, bytes, chunk, e);
	if (!rc)
		rc = tcpraw_recv(&c->io, answer, sizeof(answer), e);
	*ns = clock_now_ns() - start;
	if (!rc && get_le64(answer) != bytes)
		rc = err_set(e, REPL_E_PROTOCOL, "baseline: the peer says %llu bytes, not %llu",
			     (unsigned long long)get_le64(answer), (unsigned long long)bytes);
	return rc;
}

int
tcpraw_stream_in(struct tcpraw *c, uint64_t bytes, uint32_t chunk, uint64_t *ns, struct err *e)
{
	uint64_t start = clock_now_ns();
	int rc = send_command(c, TCPRAW_SOURCE, chunk, bytes, e);

	if (!rc)
		rc = tcpraw_drop(&c->io, bytes, chunk, e);
	*ns = clock_now_ns() - start;
	return rc;
}
