/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of one client of the status socket. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "statusd_impl.h"

void
statusclient_begin(struct statusclient *c, int fd, uint64_t idle_ns)
{
	c->fd = fd;
	c->follows = false;
	c->idle_ns = idle_ns;
	c->in_len = c->in_taken = c->out_len = 0;
	c->out = NULL;
}

void
statusclient_end(struct statusclient *c)
{
	int fd = c->fd;

	c->fd = -1;
	if (fd >= 0)
		(void)close(fd);
	free(c->out);
	c->out = NULL;
	c->out_len = 0;
}

void
statusclient_receive(struct statusclient *c)
{
	ssize_t n;

	if (c->in_taken) {
		memmove(c->in, c->in + c->in_taken, c->in_len - c->in_taken);
		c->in_len -= c->in_taken;
		c->in_taken = 0;
	}
	/* No request is that long. */
	if (c->in_len == sizeof(c->in)) {
		statusclient_end(c);
		return;
	}
	n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
	if (n > 0)
		c->in_len += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		statusclient_end(c);
}

const char *
statusclient_line(struct statusclient *c, size_t *len)
{
	char *line = c->in + c->in_taken;
	char *end = memchr(line, '\n', c->in_len - c->in_taken);

	if (!end)
		return NULL;
	*end = '\0';
	*len = (size_t)(end - line);
	c->in_taken += *len + 1;
	return line;
}

void
statusclient_flush(struct statusclient *c)
{
	ssize_t n = send(c->fd, c->out, c->out_len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		statusclient_end(c);
	} else if (n > 0) {
		memmove(c->out, c->out + n, c->out_len - (size_t)n);
		c->out_len -= (size_t)n;
	}
}

void
statusclient_send(struct statusclient *c, const char *bytes, size_t len)
{
	char *grown;

	/* One that does not read has no claim to our memory. */
	grown = c->out_len + len > STATUSD_OUT_MAX ? NULL : realloc(c->out, c->out_len + len);
	if (!grown) {
		statusclient_end(c);
		return;
	}
	memcpy(grown + c->out_len, bytes, len);
	c->out = grown;
	c->out_len += len;
	statusclient_flush(c);
}
