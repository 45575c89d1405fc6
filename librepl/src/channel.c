/* SPDX-License-Identifier: BSD-3-Clause */
#include "channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "channel_ssh.h"

#include <libssh/server.h>

#include "channel_impl.h"
#include "clock.h"
#include "deadfd.h"
#include "dial.h"
#include "proxy.h"
#include "sshuse.h"
#include "text.h"

#define PENDING_MAX  (8U << 20) /* well above the window that libssh grants */
#define UNTAKEN_MAX  (1U << 20) /* well above the longest request */
#define EXIT_WAIT_MS 1000       /* for stderr and exit status after end of file */
#define WRITE_CHUNK  32768U
#define PACKET_MIN   256U /* that a server has to take: with 10 a write of libssh never ends */
#define STDERR_CHUNK 16384U
#define STDERR_TURNS 128U /* 2 MiB, more than the window that libssh grants */

/*
 * What a call into libssh may do to the calling thread. libssh sends to the
 * server with MSG_NOSIGNAL, but not to ssh-agent; and it takes its log level
 * from ssh's config.
 */
struct guard {
	sigset_t mask;
	bool pending; /* a SIGPIPE that is not ours */
	int log_level;
};

/* False: libssh may not be called any more, and there is nothing to leave. */
static bool
guard_enter(struct guard *g)
{
	sigset_t pipe_set, pending;

	if (!sshuse_enter())
		return false;
	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	(void)sigemptyset(&pending);
	(void)sigpending(&pending);
	g->pending = sigismember(&pending, SIGPIPE) == 1;
	(void)pthread_sigmask(SIG_BLOCK, &pipe_set, &g->mask);
	g->log_level = ssh_get_log_level();
	(void)ssh_set_log_level(SSH_LOG_NOLOG);
	return true;
}

static void
guard_leave(struct guard *g)
{
	const struct timespec zero = {0, 0};
	int saved = errno;
	sigset_t pipe_set;

	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	if (!g->pending)
		while (sigtimedwait(&pipe_set, NULL, &zero) < 0 && errno == EINTR)
			continue;
	(void)ssh_set_log_level(g->log_level);
	(void)pthread_sigmask(SIG_SETMASK, &g->mask, NULL);
	sshuse_leave();
	errno = saved;
}

static int
channel_program_ends(const char *name, struct err *e)
{
	return err_set(e, REPL_E_LOST, "%s: the program is ending, and OpenSSL was cleaned up",
		       name);
}

/* Text from the other side has one line, of what can be printed. */
static void
channel_tidy(char *text)
{
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
	text_clean(text);
}

const char *
channel_cause(struct channel *c)
{
	const char *text = ssh_get_error(c->session);

	(void)snprintf(c->cause, sizeof(c->cause), "%s",
		       text && *text ? text : "the server closed the connection");
	channel_tidy(c->cause);
	return c->cause;
}

/* What the server asks for on its own is refused; libssh would keep it for somebody to look at. */
static int
channel_refuse(ssh_session session, ssh_message message, void *arg)
{
	(void)session;
	(void)message;
	(void)arg;
	return 1;
}

/* libssh replies to whatever it is asked, and what the server does not take of that gathers. */
static bool
channel_untaken(struct channel *c)
{
	if (!(ssh_get_poll_flags(c->session) & SSH_WRITE_PENDING))
		c->taken = c->counter.out_bytes;
	return c->counter.out_bytes - c->taken > UNTAKEN_MAX;
}

int
channel_wait(struct channel *c, uint64_t deadline_ns, const char *what, struct err *e)
{
	struct pollfd p = {.fd = ssh_get_fd(c->session), .events = POLLIN};
	uint64_t until = c->until ? atomic_load(c->until) : 0;
	int left = clock_left_ms(until && until < deadline_ns ? until : deadline_ns);
	int status = dial_cancelled(c->cancel);

	if (status)
		return err_set(e, status, "%s: given up waiting for %s", c->name, what);
	if (sshuse_ended())
		return channel_program_ends(c->name, e);
	if (channel_untaken(c))
		return err_set(e, REPL_E_PROTOCOL,
			       "%s: the server asks for ever and takes no replies", c->name);
	if ((c->cancel || c->until) && left > CHANNEL_LOOK_MS)
		left = CHANNEL_LOOK_MS;
	if (left == 0)
		return err_set(e, REPL_E_TIMEOUT, "%s: timed out waiting for %s", c->name, what);
	if (ssh_get_poll_flags(c->session) & SSH_WRITE_PENDING)
		p.events |= POLLOUT;
	if (poll(&p, 1, left) < 0 && errno != EINTR)
		return err_errno(e, REPL_E_FAILED, errno, "%s: poll", c->name);
	return REPL_OK;
}

int
channel_no_passphrase(const char *prompt, char *buf, size_t len, int echo, int verify, void *arg)
{
	struct channel *c = arg;

	(void)prompt;
	(void)buf;
	(void)len;
	(void)echo;
	(void)verify;
	c->passphrase_wanted = true;
	return -1;
}

/* The first is told when ssh_connect() has the connection: it may end before that. */
static void
channel_taken(void *arg, float status)
{
	struct channel *c = arg;

	(void)status;
	c->lent = -1;
}

static int
channel_configure(struct channel *c, const struct channel_options *o, struct err *e)
{
	int rc = channel_set_options(c, o, e);

	if (rc)
		return rc;
	c->callbacks.auth_function = channel_no_passphrase;
	c->callbacks.connect_status_function = channel_taken;
	c->callbacks.userdata = c;
	ssh_callbacks_init(&c->callbacks);
	ssh_set_message_callback(c->session, channel_refuse, NULL);
	ssh_set_counters(c->session, NULL, &c->counter);
	if (ssh_set_callbacks(c->session, &c->callbacks) < 0)
		return err_set(e, REPL_E_FAILED, "%s: %s", c->name, channel_cause(c));
	ssh_set_blocking(c->session, 0);
	return REPL_OK;
}

static void
channel_note_peer(struct channel *c)
{
	struct sockaddr_storage a = {0};
	socklen_t len = sizeof(a);

	if (getpeername(c->fd, (struct sockaddr *)&a, &len) < 0)
		return;
	if (a.ss_family != AF_INET && a.ss_family != AF_INET6)
		return;
	if (getnameinfo((struct sockaddr *)&a, len, c->peer, sizeof(c->peer), NULL, 0,
			NI_NUMERICHOST) != 0)
		c->peer[0] = '\0';
}

static int
channel_proxy(struct channel *c, const char *name, unsigned port, const char *command,
	      struct err *e)
{
	struct proxy_words words = {.host = c->host, .name = name, .user = c->user, .port = port};

	channel_get(c, SSH_OPTIONS_USER, c->user, sizeof(c->user));
	if (!c->user[0] && ssh_options_set(c->session, SSH_OPTIONS_USER, NULL) == SSH_OK)
		channel_get(c, SSH_OPTIONS_USER, c->user, sizeof(c->user));
	return proxy_start(command, &words, &c->fd, &c->proxy, e);
}

void
channel_fds_tell(struct channel_fds *fds, int own, int lent)
{
	if (!fds)
		return;
	atomic_store(&fds->own, own);
	atomic_store(&fds->lent, lent);
}

/*
 * libssh closes what it was given when the connection breaks, and leaves it open when that is ended
 * in order: so what it gets is a number of its own, which channel_free() has it close in any case.
 * It is made by calls that the preload library keeps the program from, too. Of the number libssh
 * keeps 16 bits: of a larger one it would use, and close, somebody else's.
 */
static int
channel_lend(struct channel *c, struct err *e)
{
	c->lent = eventfd(0, EFD_CLOEXEC);
	if (c->lent < 0 || dup3(c->fd, c->lent, O_CLOEXEC) < 0)
		return err_errno(e, err_from_errno(errno), errno, "%s: a descriptor", c->name);
	if (c->lent > UINT16_MAX)
		return err_set(e, REPL_E_LIMIT,
			       "%s: the program has more than %d files open, and libssh takes no "
			       "descriptor beyond: open the replicas before the files",
			       c->name, UINT16_MAX);
	channel_fds_tell(c->told, c->fd, c->lent);
	return channel_set(c, SSH_OPTIONS_FD, &c->lent, e);
}

/* TCP, unless the config has a proxy command. */
static int
channel_dial(struct channel *c, const char *name, uint64_t deadline_ns, struct err *e)
{
	char *command = NULL;
	unsigned port = SSH_PORT;
	int rc;

	(void)ssh_options_get_port(c->session, &port);
	(void)ssh_options_get(c->session, SSH_OPTIONS_PROXYCOMMAND, &command);
	if (command && *command)
		rc = channel_proxy(c, name, port, command, e);
	else
		rc = dial_tcp(c->host, port, deadline_ns, c->cancel, &c->fd, e);
	ssh_string_free_char(command);
	if (rc)
		return rc;
	channel_fds_tell(c->told, c->fd, -1);
	channel_note_peer(c);
	return channel_lend(c, e);
}

static int
channel_connect(struct channel *c, const char *name, uint64_t deadline_ns, struct err *e)
{
	int rc = channel_dial(c, name, deadline_ns, e);

	if (rc)
		return rc;
	while ((rc = ssh_connect(c->session)) == SSH_AGAIN) {
		rc = channel_wait(c, deadline_ns, "the SSH server's greeting and key exchange", e);
		/* Its answer to that is the first large packet. */
		if (rc == REPL_E_TIMEOUT && ssh_get_serverbanner(c->session))
			return err_suffix(e, "; the greeting came: does the network in between "
					     "lose large packets (MTU)?");
		if (rc)
			return rc;
	}
	if (rc != SSH_OK)
		return err_set(
			e, REPL_E_UNREACHABLE,
			"%s: no SSH connection: %s; the log of the SSH server there may say why",
			c->name, channel_cause(c));
	channel_get(c, SSH_OPTIONS_USER, c->user, sizeof(c->user));
	return REPL_OK;
}

/* Keep the end of what the remote side has complained about. */
static void
channel_note_complaint(struct channel *c, const char *text, size_t len)
{
	size_t keep;

	if (len > STDERR_MAX - 1) {
		text += len - (STDERR_MAX - 1);
		len = STDERR_MAX - 1;
	}
	keep = STDERR_MAX - 1 - len;
	if (c->complaint_len > keep) {
		memmove(c->complaint, c->complaint + c->complaint_len - keep, keep);
		c->complaint_len = keep;
	}
	memcpy(c->complaint + c->complaint_len, text, len);
	c->complaint_len += len;
}

/*
 * Take what there is on the remote stderr. With nothing left of it libssh takes more from the
 * server, who may have more for ever: no more turns than for what fits its window. The rest is for
 * the caller's next turn, before which it looks at its deadline.
 */
static void
channel_take_stderr(struct channel *c)
{
	char buf[STDERR_CHUNK];
	int n = 1;

	for (unsigned i = 0; i < STDERR_TURNS && n > 0; i++) {
		n = ssh_channel_read_nonblocking(c->stream, buf, sizeof(buf), 1);
		if (n > 0)
			channel_note_complaint(c, buf, (size_t)n);
	}
}

static bool
channel_unread(struct channel *c, int is_stderr)
{
	int pending = ssh_channel_poll(c->stream, is_stderr);

	return pending > 0 && (unsigned)pending > PENDING_MAX;
}

/* A server that ignores the window must not fill the application's memory. */
static int
channel_check_flood(struct channel *c, struct err *e)
{
	bool floods = channel_unread(c, 0);

	channel_take_stderr(c);
	if (floods || channel_unread(c, 1))
		return err_set(e, REPL_E_PROTOCOL, "%s: more than %u bytes sent unasked", c->name,
			       PENDING_MAX);
	return REPL_OK;
}

static int
channel_request(struct channel *c, int (*request)(ssh_channel stream, const char *what),
		const char *arg, uint64_t deadline_ns, bool *granted, struct err *e)
{
	int rc;
	int wait;

	while ((rc = request(c->stream, arg)) == SSH_AGAIN) {
		wait = channel_wait(c, deadline_ns, "the start of the remote session", e);
		if (!wait)
			wait = channel_check_flood(c, e);
		if (wait)
			return wait;
	}
	*granted = rc == SSH_OK;
	if (rc != SSH_OK && !ssh_is_connected(c->session))
		return err_set(e, REPL_E_LOST, "%s: connection lost before the session began: %s",
			       c->name, channel_cause(c));
	return REPL_OK;
}

static int
channel_open_session(ssh_channel stream, const char *arg)
{
	(void)arg;
	return ssh_channel_open_session(stream);
}

static void
channel_hear(int priority, const char *function, const char *buffer, void *arg)
{
	static const char tells[] = "maxpacket : ";
	const char *text = strstr(buffer, tells);
	struct channel *c = arg;

	(void)priority;
	if (c && text && strcmp(function, "ssh_packet_channel_open_conf") == 0)
		c->packet_max = strtoul(text + sizeof(tells) - 1, NULL, 10);
}

/* What the server says of the size of packets libssh tells nowhere but in its log. */
static int
channel_open_stream(struct channel *c, uint64_t deadline_ns, bool *granted, struct err *e)
{
	ssh_logging_callback old = ssh_get_log_callback();
	void *old_arg = ssh_get_log_userdata();
	int rc;

	c->packet_max = ULONG_MAX;
	(void)ssh_set_log_userdata(c);
	(void)ssh_set_log_callback(channel_hear);
	(void)ssh_set_log_level(SSH_LOG_PROTOCOL);
	rc = channel_request(c, channel_open_session, NULL, deadline_ns, granted, e);
	(void)ssh_set_log_level(SSH_LOG_NOLOG);
	(void)ssh_set_log_callback(old ? old : channel_mute);
	(void)ssh_set_log_userdata(old_arg);
	if (!rc && *granted && c->packet_max < PACKET_MIN)
		rc = err_set(e, REPL_E_PROTOCOL,
			     "%s: the server takes packets of at most %lu bytes, which is too "
			     "little to send anything",
			     c->name, c->packet_max);
	return rc;
}

static int
channel_start(struct channel *c, uint64_t deadline_ns, struct err *e)
{
	bool granted = false;
	int rc;

	c->stream = ssh_channel_new(c->session);
	if (!c->stream)
		return err_set(e, REPL_E_NOMEM, "%s: %s", c->name, channel_cause(c));
	rc = channel_open_stream(c, deadline_ns, &granted, e);
	if (rc)
		return rc;
	if (!granted)
		return err_set(e, REPL_E_UNREACHABLE, "%s: no session channel: %s", c->name,
			       channel_cause(c));
	rc = channel_request(c, ssh_channel_request_subsystem, "repl", deadline_ns, &granted, e);
	if (rc || granted)
		return rc;
	rc = channel_request(c, ssh_channel_request_exec, c->command, deadline_ns, &granted, e);
	if (rc || granted)
		return rc;
	return err_set(e, REPL_E_UNREACHABLE,
		       "%s: the SSH server has no subsystem 'repl' and does not run '%s': install "
		       "repld on %s and allow one of them for user '%s'",
		       c->name, c->command, c->host, c->user);
}

int
channel_open_here(const struct channel_options *o, uint64_t deadline_ns, struct channel **out,
		  struct err *e)
{
	struct channel *c = calloc(1, sizeof(*c));
	struct guard g;
	int rc;

	*out = NULL;
	if (!c)
		return err_set(e, REPL_E_NOMEM, "out of memory for an SSH channel");
	c->fd = c->lent = -1;
	c->cancel = o->cancel;
	c->told = o->fds;
	if (!guard_enter(&g)) {
		free(c);
		return channel_program_ends(o->target->host, e);
	}
	c->session = ssh_new();
	if (!c->session) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory for an SSH session");
		goto out;
	}
	rc = channel_configure(c, o, e);
	if (!rc)
		rc = channel_connect(c, o->target->host, deadline_ns, e);
	if (!rc)
		rc = channel_check_host(c, e);
	if (!rc)
		rc = channel_authenticate(c, o->identity, deadline_ns, e);
	if (!rc)
		rc = channel_start(c, deadline_ns, e);
out:
	guard_leave(&g);
	if (rc)
		channel_free(c);
	else
		*out = c;
	return rc;
}

void
channel_bound(struct channel *c, const _Atomic uint64_t *until)
{
	c->until = until;
}

void
channel_attach(struct channel *c, const _Atomic int *cancel, struct channel_fds *fds)
{
	c->cancel = cancel;
	c->told = fds;
	channel_fds_tell(c->told, c->fd, ssh_get_fd(c->session));
}

void
channel_detach(struct channel *c)
{
	channel_fds_tell(c->told, -1, -1);
	c->told = NULL;
	c->cancel = NULL;
}

void
channel_free(struct channel *c)
{
	const socket_t none = SSH_INVALID_SOCKET;
	struct guard g;
	bool entered;

	if (!c)
		return;
	entered = guard_enter(&g);
	if (entered) {
		ssh_channel_free(c->stream);
		/* Refused as a value, and from then on libssh closes what it has. */
		if (c->session && c->fd >= 0)
			(void)ssh_options_set(c->session, SSH_OPTIONS_FD, &none);
		if (c->session)
			ssh_disconnect(c->session);
		ssh_free(c->session);
	}
	/* Told no more before the number may be another file's. */
	channel_detach(c);
	if (c->lent >= 0)
		(void)close(c->lent);
	if (c->fd >= 0)
		(void)close(c->fd);
	if (c->proxy.pid)
		proxy_stop(&c->proxy);
	if (entered)
		guard_leave(&g);
	free(c);
}

void
channel_abandon(struct channel *c)
{
	socket_t fd = c->session ? ssh_get_fd(c->session) : SSH_INVALID_SOCKET;

	if (fd != SSH_INVALID_SOCKET)
		deadfd_put(fd);
	if (c->fd >= 0)
		deadfd_put(c->fd);
}

static bool
is_same_file(int a, int b)
{
	struct stat first, second;

	return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

void
channel_fds_abandon(struct channel_fds *fds)
{
	int own = atomic_load(&fds->own), lent = atomic_load(&fds->lent);

	if (own < 0)
		return;
	/* libssh closes that by itself when the connection breaks: it may be another file's. */
	if (lent >= 0 && is_same_file(lent, own))
		deadfd_put(lent);
	deadfd_put(own);
}

/* repld(8) tells there also what went well: that would leave no room for why it ended. */
static size_t
channel_drop_news(char *text, size_t len)
{
	static const char news[] = "] info: ";
	size_t kept = 0, next;

	for (size_t at = 0; at < len; at = next) {
		const char *end = memchr(text + at, '\n', len - at);

		next = end ? (size_t)(end - text) + 1 : len;
		if (memmem(text + at, next - at, news, sizeof(news) - 1))
			continue;
		memmove(text + kept, text + at, next - at);
		kept += next - at;
	}
	return kept;
}

/* The remote stderr as one line of printable text. */
static void
channel_tidy_complaint(struct channel *c)
{
	size_t n = channel_drop_news(c->complaint, c->complaint_len);

	while (n > 0 && (c->complaint[n - 1] == '\n' || c->complaint[n - 1] == '\r'))
		n--;
	c->complaint[n] = '\0';
	channel_tidy(c->complaint);
}

int
channel_lost(struct channel *c, struct err *e)
{
	return err_set(e, REPL_E_LOST, "%s: SSH connection lost: %s", c->name, channel_cause(c));
}

/* What is wrong with repld there, and stays so until somebody mends it; 0: nothing of that kind. */
static int
channel_no_repld(const struct channel *c, int status, struct err *e)
{
	if (status == 127)
		return err_set(
			e, REPL_E_CONFIG,
			"%s: remote command failed with exit status 127%s%s: install repld on "
			"%s, or name its path with 'command'",
			c->name, c->complaint[0] ? ": " : "", c->complaint, c->host);
	/* What the shell there says of a file that it may not execute is not had of a subsystem. */
	if (status == 126)
		return err_set(
			e, REPL_E_CONFIG,
			"%s: remote command failed with exit status 126%s%s: see that the user "
			"there may execute repld on %s, and that it is a program for that machine",
			c->name, c->complaint[0] ? ": " : "", c->complaint, c->host);
	/* repld(8): its configuration is wrong. */
	if (status == 10 && c->complaint[0])
		return err_set(e, REPL_E_CONFIG, "%s: it refuses to start: %s", c->name,
			       c->complaint);
	/* That of repld serve goes to the server's standard error. */
	if (status == 10)
		return err_set(e, REPL_E_CONFIG,
			       "%s: it refuses to start, since its configuration is wrong or its "
			       "pool directory gone: the log of repld on %s says which key and why",
			       c->name, c->host);
	return 0;
}

/* What it has ended with tells of the target. */
static int
channel_said(int rc, struct err *e)
{
	if (e)
		e->by_target = true;
	return rc;
}

/* The stream has ended: say why, as far as the remote side tells within a second. */
static int
channel_ended(struct channel *c, uint64_t deadline_ns, struct err *e)
{
	uint64_t soon = clock_deadline(EXIT_WAIT_MS);
	int status, rc;

	if (soon > deadline_ns)
		soon = deadline_ns;
	/* Asking for the status is what makes libssh go on after end of file. */
	while ((status = ssh_channel_get_exit_status(c->stream)) == -1 &&
	       ssh_is_connected(c->session) && !ssh_channel_is_closed(c->stream)) {
		rc = channel_check_flood(c, e);
		if (rc)
			return rc;
		if (channel_wait(c, soon, "the end of the session", NULL))
			break;
	}
	channel_take_stderr(c);
	if (status == -1 && c->complaint_len == 0 && !ssh_channel_is_eof(c->stream))
		return channel_lost(c, e);
	channel_tidy_complaint(c);
	rc = channel_no_repld(c, status, e);
	if (rc)
		return channel_said(rc, e);
	/* By SIGBUS. */
	if (status == 11) {
		rc = err_set(e, REPL_E_LOST,
			     "%s: the session there could not read or write its pool, and has "
			     "ended: the disk is full, the pool's file was truncated, or "
			     "its device fails",
			     c->name);
		return channel_said(rc, e);
	}
	if (status > 0)
		rc = err_set(e, REPL_E_LOST, "%s: remote session ended with exit status %d%s%s",
			     c->name, status, c->complaint[0] ? ": " : "", c->complaint);
	else
		rc = err_set(e, REPL_E_LOST, "%s: remote session ended%s%s", c->name,
			     c->complaint[0] ? ": " : "", c->complaint);
	if (c->heard || c->complaint[0])
		return rc;
	return err_suffix(e,
			  " and has said nothing: was it repld? see the shell of user '%s' there, "
			  "and what its key or sshd has it run instead",
			  c->user);
}

static int
channel_send(struct channel *c, const char *data, size_t len, uint64_t deadline_ns, struct err *e)
{
	static const char what[] = "the remote side to take a request";
	size_t done = 0;
	int rc;

	/*
	 * Whatever makes libssh read comes before the attempt: a window that opens
	 * between a failed attempt and the wait would not end the wait.
	 */
	while (done < len) {
		size_t chunk = len - done < WRITE_CHUNK ? len - done : WRITE_CHUNK;
		int n;

		rc = channel_check_flood(c, e);
		if (rc)
			return rc;
		n = ssh_channel_write(c->stream, data + done, (uint32_t)chunk);
		/* What it has said before it ended is for who reads, and comes to that end, too. */
		if (n < 0 && n != SSH_AGAIN && ssh_channel_poll(c->stream, 0) > 0)
			return REPL_OK;
		if (n < 0 && n != SSH_AGAIN)
			return channel_ended(c, deadline_ns, e);
		if (n > 0)
			done += (size_t)n;
		else if ((rc = channel_wait(c, deadline_ns, what, e)) != REPL_OK)
			return rc;
	}
	/* libssh may still hold some of it. */
	while ((rc = ssh_blocking_flush(c->session, 0)) == SSH_AGAIN) {
		rc = channel_wait(c, deadline_ns, what, e);
		if (!rc)
			rc = channel_check_flood(c, e);
		if (rc)
			return rc;
	}
	return rc == SSH_OK ? REPL_OK : channel_lost(c, e);
}

int
channel_write(struct channel *c, const void *data, size_t len, uint64_t deadline_ns, struct err *e)
{
	struct guard g;
	int rc;

	if (!guard_enter(&g))
		return channel_program_ends(c->name, e);
	rc = channel_send(c, data, len, deadline_ns, e);
	guard_leave(&g);
	return rc;
}

static int
channel_receive(struct channel *c, void *buf, size_t size, uint64_t deadline_ns, size_t *got,
		struct err *e)
{
	uint32_t max = size < INT32_MAX ? (uint32_t)size : INT32_MAX;
	int rc;

	for (;;) {
		int n;

		/* This first: it may bring in what the wait would wait for. */
		rc = channel_check_flood(c, e);
		if (rc)
			return rc;
		n = ssh_channel_read_nonblocking(c->stream, buf, max, 0);
		if (n > 0) {
			*got = (size_t)n;
			c->heard = true;
			return REPL_OK;
		}
		if (n != 0 && n != SSH_AGAIN)
			return channel_ended(c, deadline_ns, e);
		if (ssh_channel_is_eof(c->stream) || !ssh_is_connected(c->session))
			return channel_ended(c, deadline_ns, e);
		rc = channel_wait(c, deadline_ns, "an answer", e);
		if (rc)
			return rc;
	}
}

int
channel_read(struct channel *c, void *buf, size_t size, uint64_t deadline_ns, size_t *got,
	     struct err *e)
{
	struct guard g;
	int rc;

	*got = 0;
	if (!guard_enter(&g))
		return channel_program_ends(c->name, e);
	rc = channel_receive(c, buf, size, deadline_ns, got, e);
	guard_leave(&g);
	return rc;
}

int
channel_random(const struct channel *c, void *to, size_t len, struct err *e)
{
	struct guard g;
	bool had;

	if (!guard_enter(&g))
		return channel_program_ends(c->name, e);
	had = ssh_get_random(to, (int)len, 1) == 1;
	guard_leave(&g);
	return had ? 0 : err_set(e, REPL_E_FAILED, "%s: libssh has no random bytes", c->name);
}

const char *
channel_peer(const struct channel *c)
{
	return c->peer;
}
