/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcpraw_io.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "le.h"
#include "spin.h"

void
tcpraw_command_encode(uint8_t *buf, const struct tcpraw_command *c)
{
	put_le16(buf, c->op);
	put_le16(buf + 2, c->spin_us);
	put_le32(buf + 4, c->size);
	put_le64(buf + 8, c->count);
}

int
tcpraw_command_decode(const uint8_t *buf, struct tcpraw_command *c, struct err *e)
{
	struct tcpraw_command in = {
		.op = get_le16(buf),
		.spin_us = get_le16(buf + 2),
		.size = get_le32(buf + 4),
		.count = get_le64(buf + 8),
	};

	if (in.op < TCPRAW_ECHO || in.op > TCPRAW_END)
		return err_set(e, REPL_E_PROTOCOL, "baseline: unknown operation %u", in.op);
	if (in.op == TCPRAW_END) {
		if (in.spin_us != 0 || in.size != 0 || in.count != 0)
			return err_set(e, REPL_E_PROTOCOL, "baseline: END with other fields set");
	} else if (in.spin_us > TCPRAW_SPIN_US_MAX) {
		return err_set(e, REPL_E_PROTOCOL, "baseline: spin of %u us, more than %u",
			       in.spin_us, TCPRAW_SPIN_US_MAX);
	} else if (in.size == 0 || in.size > TCPRAW_SIZE_MAX) {
		return err_set(e, REPL_E_PROTOCOL, "baseline: message of %u bytes, not 1 to %u",
			       in.size, TCPRAW_SIZE_MAX);
	} else if (in.count == 0) {
		return err_set(e, REPL_E_PROTOCOL, "baseline: count 0");
	}
	*c = in;
	return 0;
}

int
tcpraw_resolve(const char *address, uint16_t port, struct addrinfo **out, struct err *e)
{
	struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	char service[8];
	int rc;

	(void)snprintf(service, sizeof(service), "%u", port);
	rc = getaddrinfo(address, service, &hints, out);
	if (rc)
		return err_set(e, REPL_E_INVAL, "baseline: '%s' is not a numeric address: %s",
			       address, gai_strerror(rc));
	return 0;
}

int
tcpraw_io_init(struct tcpraw_io *io, int fd, uint64_t deadline_ns, struct err *e)
{
	int on = 1;
	int flags = fcntl(fd, F_GETFL);
	uint8_t *buf;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return err_errno(e, REPL_E_IO, errno, "baseline: socket");
	buf = malloc(TCPRAW_SIZE_MAX);
	if (!buf)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	/* Pages of its own: reading the shared zero page would flatter a stream. */
	memset(buf, 0xa5, TCPRAW_SIZE_MAX);
	*io = (struct tcpraw_io){
		.fd = fd,
		.spin_us = SPIN_NS / 1000,
		.deadline_ns = deadline_ns,
		.buf = buf,
	};
	return 0;
}

void
tcpraw_io_fini(struct tcpraw_io *io)
{
	if (io->fd >= 0)
		(void)close(io->fd);
	free(io->buf);
	io->fd = -1;
	io->buf = NULL;
}

int
tcpraw_check_deadline(const struct tcpraw_io *io, struct err *e)
{
	if (clock_now_ns() < io->deadline_ns)
		return 0;
	return err_set(e, REPL_E_TIMEOUT, "baseline: not done by its deadline");
}

static void
io_moved(struct tcpraw_io *io)
{
	spin_reset(&io->spin);
	io->quiet_ns = 0;
}

static int
check_patience(struct tcpraw_io *io, uint64_t *until_ns, struct err *e)
{
	uint64_t now = clock_now_ns();

	*until_ns = io->deadline_ns;
	if (io->patience_ns == 0)
		return 0;
	if (io->quiet_ns == 0)
		io->quiet_ns = now;
	if (now >= io->quiet_ns + io->patience_ns)
		return err_set(e, REPL_E_TIMEOUT, "baseline: nothing has moved for %llu ms",
			       (unsigned long long)(io->patience_ns / NS_PER_MS));
	if (io->quiet_ns + io->patience_ns < *until_ns)
		*until_ns = io->quiet_ns + io->patience_ns;
	return 0;
}

/* Nothing to do on the socket now: poll again, or sleep until there may be. */
static int
io_wait(struct tcpraw_io *io, short events, struct err *e)
{
	struct pollfd pfd = {.fd = io->fd, .events = events};
	uint64_t until_ns;

	if (io->spin_us > 0 && spin_again_for(&io->spin, (uint64_t)io->spin_us * 1000))
		return 0;
	if (tcpraw_check_deadline(io, e) || check_patience(io, &until_ns, e))
		return REPL_E_TIMEOUT;
	if (poll(&pfd, 1, clock_left_ms(until_ns)) < 0 && errno != EINTR)
		return err_errno(e, REPL_E_IO, errno, "baseline: poll");
	return 0;
}

int
tcpraw_recv(struct tcpraw_io *io, void *buf, size_t len, struct err *e)
{
	uint8_t *p = buf;
	ssize_t n;
	int rc = 0;

	io_moved(io);
	while (!rc && len > 0) {
		n = recv(io->fd, p, len, 0);
		if (n > 0) {
			p += n;
			len -= (size_t)n;
			io_moved(io);
			rc = len > 0 ? tcpraw_check_deadline(io, e) : 0;
		} else if (n == 0) {
			rc = err_set(e, REPL_E_LOST, "baseline: the peer closed the connection");
		} else if (errno == EAGAIN) {
			rc = io_wait(io, POLLIN, e);
		} else if (errno != EINTR) {
			rc = err_errno(e, REPL_E_LOST, errno, "baseline: recv");
		}
	}
	return rc;
}

int
tcpraw_send(struct tcpraw_io *io, const void *buf, size_t len, struct err *e)
{
	const uint8_t *p = buf;
	ssize_t n;
	int rc = 0;

	io_moved(io);
	while (!rc && len > 0) {
		n = send(io->fd, p, len, MSG_NOSIGNAL);
		if (n >= 0) {
			p += n;
			len -= (size_t)n;
			io_moved(io);
			rc = len > 0 ? tcpraw_check_deadline(io, e) : 0;
		} else if (errno == EAGAIN) {
			rc = io_wait(io, POLLOUT, e);
		} else if (errno != EINTR) {
			rc = err_errno(e, REPL_E_LOST, errno, "baseline: send");
		}
	}
	return rc;
}

int
tcpraw_drop(struct tcpraw_io *io, uint64_t bytes, uint32_t size, struct err *e)
{
	int rc = 0;

	while (!rc && bytes > 0) {
		size_t n = bytes < size ? (size_t)bytes : size;

		rc = tcpraw_recv(io, io->buf, n, e);
		if (!rc)
			rc = tcpraw_check_deadline(io, e);
		bytes -= n;
	}
	return rc;
}

int
tcpraw_pour(struct tcpraw_io *io, uint64_t bytes, uint32_t size, struct err *e)
{
	int rc = 0;

	while (!rc && bytes > 0) {
		size_t n = bytes < size ? (size_t)bytes : size;

		rc = tcpraw_send(io, io->buf, n, e);
		if (!rc)
			rc = tcpraw_check_deadline(io, e);
		bytes -= n;
	}
	return rc;
}
