/* SPDX-License-Identifier: BSD-3-Clause */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "dispatch.h"
#include "log.h"
#include "pmem.h"
#include "probe.h"
#include "state.h"

struct session {
	struct state state;
	struct line_buf lines;
	int in, out;
	int in_flags, out_flags; /* as they were, -1: not changed */
	int stop_fd;             /* SIGTERM and its kind, if the process blocks them */
	uint64_t heard_ns;       /* when the peer was last served */
	bool ended;
};

/* ---- descriptors ---- */

static int
fd_set_nonblock(int fd, int *flags, struct err *e)
{
	*flags = fcntl(fd, F_GETFL);
	if (*flags < 0 || fcntl(fd, F_SETFL, *flags | O_NONBLOCK))
		return err_errno(e, REPL_E_IO, errno, "descriptor %d of the control channel", fd);
	return REPL_OK;
}

static void
fd_restore(int fd, int flags)
{
	if (flags >= 0)
		(void)fcntl(fd, F_SETFL, flags);
}

static bool
errno_is_again(int errnum)
{
	return errnum == EAGAIN || errnum == EWOULDBLOCK || errnum == EINTR;
}

static int
stop_fd_new(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- answers ---- */

/* A peer that does not read must not hold the session and its locks for ever. */
static int
write_all(struct session *s, const char *data, size_t len, struct err *e)
{
	unsigned timeout_ms = s->state.conf->heartbeat_timeout_ms;
	uint64_t deadline = clock_deadline(timeout_ms);
	struct pollfd p = {.fd = s->out, .events = POLLOUT};

	while (len > 0) {
		ssize_t n = write(s->out, data, len);

		if (n >= 0) {
			data += n;
			len -= (size_t)n;
			continue;
		}
		if (!errno_is_again(errno))
			return err_errno(e, REPL_E_LOST, errno, "writing an answer");
		if (clock_left_ms(deadline) == 0)
			return err_set(e, REPL_E_TIMEOUT,
				       "the peer has not read its answers for %u ms", timeout_ms);
		(void)poll(&p, 1, clock_left_ms(deadline));
	}
	return REPL_OK;
}

/* Takes answer. */
static int
answer_write(struct session *s, struct json_object *answer, struct err *e)
{
	size_t len = 0;
	char *line = control_line(answer, &len);
	int rc;

	json_object_put(answer);
	if (!line)
		return err_set(e, REPL_E_NOMEM, "no memory for an answer, or it is too long");
	rc = write_all(s, line, len, e);
	free(line);
	return rc;
}

/* ---- requests ---- */

static int
serve_line(struct session *s, const char *line, size_t len, struct err *e)
{
	struct json_object *answer = NULL;
	struct err why;
	int rc, written = REPL_OK;

	err_clear(&why);
	rc = dispatch_line(&s->state, line, len, &answer, e);
	if (answer)
		written = answer_write(s, answer, rc ? &why : e);
	/* The time that a long request took is not silence of the peer. */
	s->heard_ns = clock_now_ns();
	if (s->state.ends)
		s->ended = true;
	return rc ? rc : written;
}

static int
serve_lines(struct session *s, struct err *e)
{
	const char *line;
	size_t len;
	int rc = REPL_OK;

	while (!rc && !s->ended && (line = line_buf_next(&s->lines, &len))) {
		rc = serve_line(s, line, len, e);
		state_publish(&s->state);
	}
	return rc;
}

/* The line is too long: say so before the session ends. */
static void
refuse_line(struct session *s, const struct err *e)
{
	struct json_object *answer;

	answer = control_error_new(NULL, CONTROL_PARSE_ERROR, e, "begin a new session");
	if (answer)
		(void)answer_write(s, answer, NULL);
}

static int
end_of_file(struct session *s, struct err *e)
{
	s->ended = true;
	if (s->state.pool && s->state.write)
		return err_set(e, REPL_E_LOST, "end of file before pool.close");
	return REPL_OK;
}

static int
read_some(struct session *s, struct err *e)
{
	char *space;
	size_t room;
	ssize_t n;
	int rc;

	rc = line_buf_space(&s->lines, &space, &room, e);
	if (rc) {
		refuse_line(s, e);
		return rc;
	}
	n = read(s->in, space, room);
	if (n < 0)
		return errno_is_again(errno) ? REPL_OK
					     : err_errno(e, REPL_E_LOST, errno, "reading requests");
	if (n == 0)
		return end_of_file(s, e);
	line_buf_filled(&s->lines, (size_t)n);
	return serve_lines(s, e);
}

/* ---- time ---- */

static unsigned
silence_limit_ms(const struct session *s)
{
	const struct conf *c = s->state.conf;

	return s->state.pool ? c->heartbeat_timeout_ms : c->idle_timeout_ms;
}

static uint64_t
silence_deadline(const struct session *s)
{
	return s->heard_ns + silence_limit_ms(s) * NS_PER_MS;
}

/* What had come at that moment was served. */
static int
check_silence(const struct session *s, uint64_t looked_ns, struct err *e)
{
	if (looked_ns < silence_deadline(s))
		return REPL_OK;
	return err_set(e, REPL_E_TIMEOUT, "the peer has been silent for %u ms",
		       silence_limit_ms(s));
}

/* Wait for something to serve; when it is time, do what can be put off meanwhile. */
static int
turn_wait(struct session *s, struct pollfd *p, nfds_t count)
{
	uint64_t until = silence_deadline(s);
	uint64_t publish = state_publish_at(&s->state);
	uint64_t tidy = state_tidy_at(&s->state);
	int n = poll(p, count, 0);

	if (n != 0 || (clock_now_ns() >= tidy && state_tidy(&s->state)))
		return n;
	/* What tidying has found to be nothing is nothing from now on. */
	tidy = state_tidy_at(&s->state);
	until = publish < until ? publish : until;
	return poll(p, count, clock_left_ms(tidy < until ? tidy : until));
}

/* One turn of the loop: wait, serve what has come, keep the times. */
static int
turn(struct session *s, struct err *e)
{
	struct pollfd p[2] = {{.fd = s->in, .events = POLLIN},
			      {.fd = s->stop_fd, .events = POLLIN}};
	/* Before the wait, and not now: what keeps the session itself is no silence. */
	uint64_t looked_ns = clock_now_ns();
	int n = turn_wait(s, p, 2);
	int rc = REPL_OK;

	if (n < 0 && errno != EINTR)
		return err_errno(e, REPL_E_IO, errno, "poll");
	if (p[1].revents)
		return err_set(e, REPL_E_LOST, "stopped by a signal");
	if (p[0].revents)
		rc = read_some(s, e);
	if (rc || s->ended)
		return rc;
	state_publish(&s->state);
	return check_silence(s, looked_ns, e);
}

static int
setup(struct session *s, const struct conf *c, int in, int out, struct err *e)
{
	memset(s, 0, sizeof(*s));
	state_init(&s->state, c);
	line_buf_init(&s->lines);
	s->in = in;
	s->out = out;
	s->in_flags = s->out_flags = -1;
	s->heard_ns = clock_now_ns();
	s->stop_fd = stop_fd_new();
	if (s->stop_fd < 0)
		return err_errno(e, err_from_errno(errno), errno, "signalfd");
	if (fd_set_nonblock(in, &s->in_flags, e))
		return e->code;
	return fd_set_nonblock(out, &s->out_flags, e);
}

static bool
caches_survive(const void *conf, int fd)
{
	return probe_caches_survive(conf, fd, "/sys");
}

int
session_run(const struct conf *c, int in, int out, struct err *e)
{
	struct session s;
	struct err local;
	int rc;

	if (!e)
		e = &local;
	err_clear(e);
	pmem_caches(caches_survive, c);
	rc = setup(&s, c, in, out, e);
	while (!rc && !s.ended)
		rc = turn(&s, e);
	state_fini(&s.state, rc ? e->text : s.state.ends ? s.state.ends : "end of file");
	/* In this order: in and out may be one open file. */
	fd_restore(out, s.out_flags);
	fd_restore(in, s.in_flags);
	line_buf_fini(&s.lines);
	if (s.stop_fd >= 0)
		(void)close(s.stop_fd);
	return rc;
}
