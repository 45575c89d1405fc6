/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target's side of tcpraw: find the rightful connection among all that
 * come, then obey it.
 */
#include "tcpraw.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "le.h"
#include "tcpraw_io.h"

#define GUESTS_MAX 16 /* connections that have not shown a whole token yet */
#define BACKLOG    64

struct guest {
	int fd;
	size_t have;
	uint8_t token[TCPRAW_TOKEN_SIZE];
};

/* Connections at the door, the one that has waited longest first. */
struct door {
	int listen_fd;
	unsigned count;
	struct guest guests[GUESTS_MAX];
};

static void
set_port(struct sockaddr *sa, uint16_t port)
{
	if (sa->sa_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)sa)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)(void *)sa)->sin_port = htons(port);
}

static int
bind_in_range(int fd, const struct addrinfo *ai, uint16_t first, uint16_t last, struct err *e)
{
	for (unsigned port = first; port <= last; port++) {
		set_port(ai->ai_addr, (uint16_t)port);
		/* That a port is taken may show only when it is listened to. */
		if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
			return 0;
		if (errno != EADDRINUSE)
			return err_errno(e, err_from_errno(errno), errno, "baseline: port %u",
					 port);
	}
	return err_set(e, REPL_E_LIMIT,
		       "baseline: no free port from %u to %u; widen data-ports in repld.conf",
		       first, last);
}

static int
bound_port(int fd, uint16_t *port, struct err *e)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);

	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		return err_errno(e, REPL_E_IO, errno, "baseline: getsockname");
	if (sa.ss_family == AF_INET6)
		*port = ntohs(((struct sockaddr_in6 *)&sa)->sin6_port);
	else
		*port = ntohs(((struct sockaddr_in *)&sa)->sin_port);
	return 0;
}

int
tcpraw_listen(const char *address, uint16_t first, uint16_t last, int *fd, uint16_t *port,
	      struct err *e)
{
	struct addrinfo *ai = NULL;
	int on = 1;
	int s = -1;
	int rc = tcpraw_resolve(address, first, &ai, e);

	*fd = -1;
	if (rc)
		return rc;
	s = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0) {
		rc = err_errno(e, err_from_errno(errno), errno, "baseline: socket");
		goto out;
	}
	rc = bind_in_range(s, ai, first, last < first ? first : last, e);
	if (!rc)
		rc = bound_port(s, port, e);
	if (rc)
		goto out;
	*fd = s;
	s = -1;
out:
	freeaddrinfo(ai);
	if (s >= 0)
		(void)close(s);
	return rc;
}

static void
door_drop(struct door *d, unsigned i)
{
	(void)close(d->guests[i].fd);
	d->count--;
	memmove(&d->guests[i], &d->guests[i + 1], (d->count - i) * sizeof(d->guests[0]));
}

/* In full, so that time says nothing about the token. */
static bool
token_equal(const uint8_t *a, const uint8_t *b)
{
	uint8_t diff = 0;

	for (size_t i = 0; i < TCPRAW_TOKEN_SIZE; i++)
		diff = (uint8_t)(diff | (a[i] ^ b[i]));
	return diff == 0;
}

enum verdict { GUEST_WAITS, GUEST_GONE, GUEST_RIGHT };

/* Read what has come of a guest's token. */
static enum verdict
guest_read(struct guest *g, const uint8_t *token)
{
	ssize_t n = recv(g->fd, g->token + g->have, sizeof(g->token) - g->have, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? GUEST_WAITS : GUEST_GONE;
	if (n == 0)
		return GUEST_GONE;
	g->have += (size_t)n;
	if (g->have < sizeof(g->token))
		return GUEST_WAITS;
	return token_equal(g->token, token) ? GUEST_RIGHT : GUEST_GONE;
}

/* Nobody is there, or a connection died on its way in: accept(2). */
static bool
accept_goes_on(int errnum)
{
	switch (errnum) {
	case EAGAIN:
	case EINTR:
	case ECONNABORTED:
	case EPERM:
	case EPROTO:
	case ENETDOWN:
	case ENETUNREACH:
	case EHOSTDOWN:
	case EHOSTUNREACH:
		return true;
	default:
		return false;
	}
}

/*
 * Let one in, if one is there. When all places are taken the one that has
 * waited longest goes: the rightful initiator sends its token with its first
 * segment, idlers are what is left.
 */
static int
door_accept(struct door *d, struct err *e)
{
	int fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (accept_goes_on(errno))
			return 0;
		return err_errno(e, err_from_errno(errno), errno, "baseline: accept");
	}
	if (d->count == GUESTS_MAX)
		door_drop(d, 0);
	d->guests[d->count++] = (struct guest){.fd = fd};
	return 0;
}

/* Look at every guest; the rightful one's descriptor or -1. */
static int
door_look(struct door *d, const uint8_t *token)
{
	int fd;

	for (unsigned i = d->count; i-- > 0;) {
		switch (guest_read(&d->guests[i], token)) {
		case GUEST_WAITS:
			break;
		case GUEST_GONE:
			door_drop(d, i);
			break;
		case GUEST_RIGHT:
			fd = d->guests[i].fd;
			d->guests[i].fd = -1;
			return fd;
		}
	}
	return -1;
}

static void
door_wait(const struct door *d, uint64_t deadline_ns)
{
	struct pollfd pfd[GUESTS_MAX + 1];

	pfd[0] = (struct pollfd){.fd = d->listen_fd, .events = POLLIN};
	for (unsigned i = 0; i < d->count; i++)
		pfd[i + 1] = (struct pollfd){.fd = d->guests[i].fd, .events = POLLIN};
	(void)poll(pfd, d->count + 1, clock_left_ms(deadline_ns));
}

int
tcpraw_accept(int listen_fd, const uint8_t token[TCPRAW_TOKEN_SIZE], uint64_t deadline_ns,
	      int *conn, struct err *e)
{
	struct door d = {.listen_fd = listen_fd};
	int fd = -1;
	int rc = 0;

	while (!rc && fd < 0) {
		if (clock_now_ns() >= deadline_ns) {
			rc = err_set(e, REPL_E_TIMEOUT, "baseline: nobody came with the token");
			break;
		}
		door_wait(&d, deadline_ns);
		rc = door_accept(&d, e);
		if (!rc)
			fd = door_look(&d, token);
	}
	for (unsigned i = 0; i < d.count; i++) {
		if (d.guests[i].fd >= 0)
			(void)close(d.guests[i].fd);
	}
	*conn = fd;
	return rc;
}

static int
serve_echo(struct tcpraw_io *io, uint32_t size, uint64_t count, struct err *e)
{
	int rc = 0;

	for (uint64_t i = 0; !rc && i < count; i++) {
		rc = tcpraw_recv(io, io->buf, size, e);
		if (!rc)
			rc = tcpraw_send(io, io->buf, size, e);
		if (!rc)
			rc = tcpraw_check_deadline(io, e);
	}
	return rc;
}

static int
serve_sink(struct tcpraw_io *io, uint32_t size, uint64_t bytes, struct err *e)
{
	uint8_t answer[8];
	int rc = tcpraw_drop(io, bytes, size, e);

	put_le64(answer, bytes);
	return rc ? rc : tcpraw_send(io, answer, sizeof(answer), e);
}

/* Obey one command; *end after END. */
static int
serve_command(struct tcpraw_io *io, bool *end, struct err *e)
{
	uint8_t buf[TCPRAW_COMMAND_SIZE];
	struct tcpraw_command c;
	int rc = tcpraw_recv(io, buf, sizeof(buf), e);

	if (!rc)
		rc = tcpraw_command_decode(buf, &c, e);
	if (rc)
		return rc;
	io->spin_us = c.spin_us;
	switch (c.op) {
	case TCPRAW_ECHO:
		return serve_echo(io, c.size, c.count, e);
	case TCPRAW_SINK:
		return serve_sink(io, c.size, c.count, e);
	case TCPRAW_SOURCE:
		return tcpraw_pour(io, c.count, c.size, e);
	default:
		*end = true;
		return 0;
	}
}

int
tcpraw_obey(int conn, uint64_t deadline_ns, struct err *e)
{
	struct tcpraw_io io = {.fd = -1};
	uint8_t magic[4];
	bool end = false;
	int rc = tcpraw_io_init(&io, conn, deadline_ns, e);

	if (rc)
		return rc;
	put_le32(magic, TCPRAW_MAGIC);
	rc = tcpraw_send(&io, magic, sizeof(magic), e);
	while (!rc && !end) {
		rc = serve_command(&io, &end, e);
		if (!rc)
			rc = tcpraw_check_deadline(&io, e);
	}
	io.fd = -1; /* the caller's */
	tcpraw_io_fini(&io);
	return rc;
}

int
tcpraw_serve(int fd, const uint8_t token[TCPRAW_TOKEN_SIZE], uint64_t deadline_ns, struct err *e)
{
	int conn = -1;
	int rc = tcpraw_accept(fd, token, deadline_ns, &conn, e);

	if (!rc)
		rc = tcpraw_obey(conn, deadline_ns, e);
	if (conn >= 0)
		(void)close(conn);
	return rc;
}
