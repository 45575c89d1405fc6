/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw_many.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spin.h"

#define SIZE_MAX_BYTES 65536U
#define ANSWER         48U /* as many as an acknowledgement has */

struct raw_many {
	unsigned count;
	uint64_t busy_poll_ns;
	uint32_t size;
	int fd[RAW_MANY_MAX];
	pid_t pid[RAW_MANY_MAX];
	struct spin spin;
	uint8_t buf[SIZE_MAX_BYTES];
};

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

static void
set_up(int fd)
{
	int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    fcntl(fd, F_SETFL, O_NONBLOCK))
		die("socket");
}

static void
wait_for(const int *fds, unsigned count, short events)
{
	struct pollfd p[RAW_MANY_MAX];

	for (unsigned i = 0; i < count; i++)
		p[i] = (struct pollfd){.fd = fds[i], .events = events};
	(void)poll(p, count, -1);
}

/* All of it; what is written is small beside a socket's buffer, or waits. */
static void
send_all(int fd, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			exit(1);
		if (n < 0) {
			wait_for(&fd, 1, POLLOUT);
			continue;
		}
		p += n;
		len -= (size_t)n;
	}
}

/* Whatever has come, at most len; 0 if nothing. */
static size_t
receive(int fd, void *buf, size_t len)
{
	ssize_t n = recv(fd, buf, len, 0);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		exit(n == 0 ? 0 : 1);
	return n > 0 ? (size_t)n : 0;
}

/* The first four bytes of a message say how long it is. */
static void
serve(int fd, uint64_t busy_poll_ns)
{
	static uint8_t buf[SIZE_MAX_BYTES];
	struct spin spin = {0};
	size_t have = 0;
	uint32_t size;

	for (;;) {
		size_t n = receive(fd, buf + have, sizeof(buf) - have);

		if (!n) {
			if (spin_again_for(&spin, busy_poll_ns))
				continue;
			wait_for(&fd, 1, POLLIN);
			spin_reset(&spin);
			continue;
		}
		spin_reset(&spin);
		have += n;
		memcpy(&size, buf, sizeof(size));
		if (have < size)
			continue;
		have = 0;
		send_all(fd, buf, ANSWER);
	}
}

struct raw_many *
raw_many_new(unsigned count, unsigned busy_poll_us)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr *sa = (struct sockaddr *)(void *)&at;
	struct raw_many *m = calloc(1, sizeof(*m));
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);

	if (!m || listener < 0 || bind(listener, sa, len) || listen(listener, RAW_MANY_MAX) ||
	    getsockname(listener, sa, &len))
		die("listen");
	m->count = count;
	m->busy_poll_ns = (uint64_t)busy_poll_us * 1000;
	for (unsigned i = 0; i < count; i++) {
		m->pid[i] = fork();
		if (m->pid[i] == 0) {
			int fd = accept(listener, NULL, NULL);

			/* Those of the servers before are the parent's. */
			for (unsigned k = 0; k < i; k++)
				(void)close(m->fd[k]);
			set_up(fd);
			serve(fd, m->busy_poll_ns);
		}
		m->fd[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (m->pid[i] < 0 || m->fd[i] < 0 || connect(m->fd[i], sa, len))
			die("server");
		set_up(m->fd[i]);
	}
	(void)close(listener);
	return m;
}

void
raw_many_free(struct raw_many *m)
{
	for (unsigned i = 0; i < m->count; i++) {
		(void)close(m->fd[i]);
		/* Servers that were forked later may have a copy of the descriptor. */
		(void)kill(m->pid[i], SIGKILL);
		(void)waitpid(m->pid[i], NULL, 0);
	}
	free(m);
}

void
raw_many_size(struct raw_many *m, uint32_t size)
{
	m->size = size;
	memcpy(m->buf, &size, sizeof(size));
}

int
raw_many_trip(void *arg, uint64_t i)
{
	struct raw_many *m = arg;
	size_t have[RAW_MANY_MAX] = {0};
	unsigned left = m->count;
	uint8_t answer[ANSWER];

	(void)i;
	spin_reset(&m->spin);
	for (unsigned k = 0; k < m->count; k++)
		send_all(m->fd[k], m->buf, m->size);
	while (left) {
		int waiting[RAW_MANY_MAX];
		unsigned n = 0;
		bool any = false;

		for (unsigned k = 0; k < m->count; k++) {
			size_t got =
				have[k] < ANSWER ? receive(m->fd[k], answer, ANSWER - have[k]) : 0;

			have[k] += got;
			any |= got > 0;
			left -= got > 0 && have[k] == ANSWER;
			if (have[k] < ANSWER)
				waiting[n++] = m->fd[k];
		}
		if (any)
			spin_reset(&m->spin);
		else if (!spin_again_for(&m->spin, m->busy_poll_ns))
			wait_for(waiting, n, POLLIN);
	}
	return 0;
}
