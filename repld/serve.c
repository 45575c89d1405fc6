/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "authkeys.h"
#include "become.h"
#include "clock.h"
#include "connection.h"
#include "filestamp.h"
#include "log.h"

/*
 * Connections that have no session yet: so many at least, and a quarter of sessions-max, since as
 * many come back at once. When there are more one of the host that has the most goes: one host that
 * connects faster than a login from afar takes can't keep others out. It is one of the older half,
 * so who is silent is gone in the end; which one the lot decides: else none would get in where
 * more come during a login than there is room for.
 */
#define LOGINS_MIN      16U
#define LOGINS_QUOTIENT 4U

/* Sessions beyond sessions-max that may begin: what they are asked first they refuse, in words. */
#define TOLD_MAX 4U

#define STOP_MS     5000U
#define WARN_MAX    20U
#define WARN_NS     (10 * NS_PER_S)
#define BACKLOG     128
#define ADDRESS_MAX (INET6_ADDRSTRLEN + 32)

struct child {
	pid_t pid;
	int started_fd; /* readable when the session has begun; -1 after that */
	bool started;
	bool dropped; /* told to end */
	uint64_t source;
	unsigned beside; /* of its source, who wait: serve_drop_login() */
	char peer[ADDRESS_MAX];
};

struct server {
	const struct conf *conf;
	const char *self;
	struct hostkey *key;
	struct become user; /* whom the process runs as */
	int listener;
	int signals;
	bool stop;
	struct child *children; /* oldest first */
	struct child **waiting; /* for serve_drop_login() */
	struct pollfd *fds;     /* listener, signals, then one a child that is yet to begin */
	unsigned count, capacity;
	unsigned sessions_max;      /* as the file has it: serve_reread() */
	struct filestamp conf_seen; /* in which it was looked for */
	bool conf_wrong;
	struct filestamp keys; /* of which it was told what is skipped */
	unsigned warned;       /* connections since warned_ns: serve_is_quiet() */
	uint64_t warned_ns;
	int accept_errno; /* why none can be taken, which is told; 0: they can */
};

/* ---- setting up ---- */

/* "ADDRESS:PORT" of a socket address, an IPv6 address in brackets. */
static void
format_address(const struct sockaddr_storage *a, socklen_t len, char *out, size_t size)
{
	char host[NI_MAXHOST], port[8];

	if (getnameinfo((const struct sockaddr *)a, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		(void)snprintf(out, size, "unknown");
	else
		(void)snprintf(out, size, a->ss_family == AF_INET6 ? "[%.60s]:%s" : "%.60s:%s",
			       host, port);
}

/* What one host is known by: its IPv4 address, the network of an IPv6 address. */
static uint64_t
address_source(const struct sockaddr_storage *a)
{
	uint64_t source = 0;

	if (a->ss_family == AF_INET6)
		memcpy(&source, &((const struct sockaddr_in6 *)a)->sin6_addr, sizeof(source));
	else if (a->ss_family == AF_INET)
		source = ((const struct sockaddr_in *)a)->sin_addr.s_addr;
	return source;
}

static int
listen_resolve(const struct conf *c, struct addrinfo **list, struct err *e)
{
	const char *text = c->listen;
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
	};
	const char *colon = strrchr(text, ':');
	bool brackets = text[0] == '[' && colon && colon > text && colon[-1] == ']';
	char host[128];
	int rc;

	if (!colon || (size_t)(colon - text) >= sizeof(host))
		return err_set(e, REPL_E_CONFIG,
			       "%s: key 'listen': '%s' is not of the form ADDRESS:PORT",
			       conf_file(c), text);
	(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - text) - 2 * brackets,
		       text + brackets);
	rc = getaddrinfo(host, colon + 1, &hints, list);
	if (rc)
		return err_set(e, REPL_E_CONFIG, "%s: key 'listen': '%s': %s", conf_file(c), text,
			       gai_strerror(rc));
	return REPL_OK;
}

static int
serve_listen(struct server *s, struct err *e)
{
	struct addrinfo *a = NULL;
	const int one = 1;
	int rc = listen_resolve(s->conf, &a, e);

	if (rc)
		return rc;
	s->listener = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listener < 0 ||
	    setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    (a->ai_family == AF_INET6 &&
	     setsockopt(s->listener, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0) ||
	    bind(s->listener, a->ai_addr, a->ai_addrlen) < 0 || listen(s->listener, BACKLOG) < 0)
		rc = err_errno(e, err_from_errno(errno), errno, "%s: key 'listen': '%s'",
			       conf_file(s->conf), s->conf->listen);
	freeaddrinfo(a);
	return rc;
}

static void
serve_log_ready(const struct server *s)
{
	struct sockaddr_storage a = {0};
	socklen_t len = sizeof(a);
	char text[ADDRESS_MAX + 64];

	(void)getsockname(s->listener, (struct sockaddr *)&a, &len);
	format_address(&a, len, text, sizeof(text));
	log_info("host key %s %s, user %s", s->conf->host_key, hostkey_fingerprint(s->key),
		 s->user.name);
	log_info("listening on %s", text);
}

static int
serve_check_conf(const struct conf *c, struct err *e)
{
	const char *missing = NULL;

	if (!c->listen)
		missing = "listen";
	else if (!c->host_key)
		missing = "host-key";
	else if (!c->authorized_keys)
		missing = "authorized-keys";
	if (missing && !c->path)
		return err_set(e, REPL_E_CONFIG,
			       "there is no configuration: make /etc/repld.conf, or name a file by "
			       "--config; 'repld serve' needs its key '%s'",
			       missing);
	if (missing)
		return err_set(e, REPL_E_CONFIG, "%s: key '%s' is missing, 'repld serve' needs it",
			       c->path, missing);
	return REPL_OK;
}

static int
serve_take_signals(struct server *s, struct err *e)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGCHLD);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_errno(e, REPL_E_FAILED, errno, "sigprocmask");
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signals < 0)
		return err_errno(e, REPL_E_FAILED, errno, "signalfd");
	return REPL_OK;
}

/* A path that is wrong is to be corrected in the file; what this machine lacks is not. */
static int
serve_hostkey(struct server *s, struct err *e)
{
	int rc = hostkey_load(s->conf->host_key, s->user.uid, &s->key, e);

	if (!rc)
		return REPL_OK;
	if (rc == REPL_E_NOT_FOUND || rc == REPL_E_REFUSED || rc == REPL_E_INVAL)
		e->code = REPL_E_CONFIG;
	return err_prefix(e, "%s: key 'host-key'", conf_file(s->conf));
}

static unsigned
serve_sessions_max(const struct server *s)
{
	return s->sessions_max + TOLD_MAX;
}

static unsigned
serve_logins_max(const struct server *s)
{
	unsigned n = s->sessions_max / LOGINS_QUOTIENT;

	return n > LOGINS_MIN ? n : LOGINS_MIN;
}

/* What is there stays, in larger tables where it is a higher limit. */
static int
serve_set_sessions_max(struct server *s, unsigned sessions_max, struct err *e)
{
	unsigned before = s->sessions_max, capacity;
	struct child *children, **waiting;
	struct pollfd *fds;

	s->sessions_max = sessions_max;
	capacity = serve_sessions_max(s) + 2 * serve_logins_max(s);
	if (capacity <= s->capacity)
		return REPL_OK;
	children = reallocarray(s->children, capacity, sizeof(*children));
	if (children)
		s->children = children;
	waiting = reallocarray(s->waiting, capacity, sizeof(struct child *));
	if (waiting)
		s->waiting = waiting;
	fds = reallocarray(s->fds, capacity + 2, sizeof(*fds));
	if (fds)
		s->fds = fds;
	if (!children || !waiting || !fds) {
		s->sessions_max = before;
		return err_set(e, REPL_E_NOMEM, "out of memory for %u connections", capacity);
	}
	s->capacity = capacity;
	return REPL_OK;
}

static int
serve_init(struct server *s, struct err *e)
{
	int rc = serve_set_sessions_max(s, s->conf->sessions_max, e);

	if (rc)
		return rc;
	rc = serve_check_conf(s->conf, e);
	if (!rc)
		rc = become_whom(s->conf, &s->user, e);
	if (!rc)
		rc = serve_listen(s, e);
	if (!rc)
		rc = serve_hostkey(s, e);
	if (!rc)
		rc = become_for_good(&s->user, e);
	if (!rc)
		rc = serve_take_signals(s, e);
	return rc;
}

/* ---- children ---- */

static unsigned
serve_count(const struct server *s, bool started)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->count; i++)
		if (s->children[i].started == started && !s->children[i].dropped)
			n++;
	return n;
}

static void
child_drop(struct child *c, int signo)
{
	c->dropped = true;
	(void)kill(c->pid, signo);
}

static bool
child_waits(const struct child *c)
{
	return !c->started && !c->dropped;
}

/* Those who wait, oldest first, into waiting; how many each host has, into beside. */
static unsigned
serve_waiting(struct server *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->count; i++)
		if (child_waits(&s->children[i]))
			s->waiting[n++] = &s->children[i];
	for (unsigned i = 0; i < n; i++) {
		s->waiting[i]->beside = 0;
		for (unsigned j = 0; j < n; j++)
			s->waiting[i]->beside += s->waiting[i]->source == s->waiting[j]->source;
	}
	return n;
}

/*
 * Nobody needs a key to be told of: a host that connects all the time must not fill the disk.
 * So some are each while, and how many others there were. True: nothing is to be said now.
 */
static bool
serve_is_quiet(struct server *s)
{
	uint64_t now = clock_now_ns();

	if (s->warned == 0 || now - s->warned_ns >= WARN_NS) {
		if (s->warned > WARN_MAX)
			log_warning(
				"%u more connections dropped, refused or ended before a session",
				s->warned - WARN_MAX);
		s->warned = 0;
		s->warned_ns = now;
	}
	return s->warned >= WARN_MAX;
}

/* One more; true if something is to be said of it. */
static bool
serve_count_stranger(struct server *s)
{
	bool quiet = serve_is_quiet(s);

	s->warned++;
	return !quiet;
}

static void __attribute__((format(printf, 3, 4)))
serve_warn(struct server *s, const char *peer, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	if (!serve_count_stranger(s))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_warning("connection from %s %s", peer, text);
}

static void
serve_drop_login(struct server *s)
{
	unsigned n = serve_waiting(s), most = 0, of_most = 0, lot = 0;
	struct child *drop;

	for (unsigned i = 0; i < n; i++)
		if (s->waiting[i]->beside > most)
			most = s->waiting[i]->beside;
	for (unsigned i = 0; i < n; i++)
		if (s->waiting[i]->beside == most)
			s->waiting[of_most++] = s->waiting[i];
	if (of_most == 0)
		return;
	if (getrandom(&lot, sizeof(lot), GRND_NONBLOCK) != (ssize_t)sizeof(lot))
		lot = 0; /* the oldest */
	drop = s->waiting[lot % ((of_most + 1) / 2)];
	serve_warn(s, drop->peer, "dropped: no login yet, and %u others wait", serve_logins_max(s));
	child_drop(drop, SIGKILL);
}

/* Room for one more login; false if there is none. */
static bool
serve_make_room(struct server *s, const char *peer)
{
	if (serve_count(s, true) >= serve_sessions_max(s)) {
		serve_warn(s, peer, "refused: %u sessions, sessions-max is %u",
			   serve_sessions_max(s), s->sessions_max);
		return false;
	}
	if (s->count == s->capacity) {
		serve_warn(s, peer, "refused: too many at once");
		return false;
	}
	if (serve_count(s, false) >= serve_logins_max(s))
		serve_drop_login(s);
	return true;
}

/*
 * sessions-max counts here, too, from the next connection on: sessions that ask are let in by what
 * stands in the file. While that is wrong it is looked at each time, and told once.
 */
static void
serve_reread(struct server *s)
{
	const char *path = s->conf->path;
	bool changed = path && filestamp_changed(path, &s->conf_seen);
	unsigned before = s->sessions_max, sessions_max;
	struct err e;

	if (!changed && !s->conf_wrong)
		return;
	err_clear(&e);
	s->conf_wrong = conf_sessions_max(path, &sessions_max, &e) != 0 ||
			serve_set_sessions_max(s, sessions_max, &e) != 0;
	if (s->conf_wrong && changed)
		log_error("sessions-max stays %u: %s", before, e.text);
	else if (!s->conf_wrong && s->sessions_max != before)
		log_info("sessions-max is %u now, it was %u", s->sessions_max, before);
}

/* Lines of authorized-keys that are skipped: once for a file, and not for each stranger. */
static void
serve_tell_skipped(struct server *s)
{
	const char *path = s->conf->authorized_keys;
	struct authkeys *keys = NULL;
	struct err why; /* which the connection tells */

	err_clear(&why);
	if (filestamp_changed(path, &s->keys))
		(void)authkeys_read(path, true, &keys, &why);
	authkeys_free(keys);
}

/* It may be put right while this goes on: it is read for each login. */
static void
serve_tell_keys(struct server *s)
{
	struct authkeys *keys = NULL;
	struct err e;

	err_clear(&e);
	(void)filestamp_changed(s->conf->authorized_keys, &s->keys);
	if (authkeys_read(s->conf->authorized_keys, true, &keys, &e))
		log_error("no one can log in: %s", e.text);
	authkeys_free(keys);
}

/* In the child. The listener and what belongs to other children is closed. */
static _Noreturn void
serve_child(struct server *s, int fd, int started_fd, const char *peer, bool quiet)
{
	const struct connection_params params = {
		.conf = s->conf,
		.self = s->self,
		.key = s->key,
		.user = s->user.name,
		.fd = fd,
		.started_fd = started_fd,
		.quiet = quiet,
	};
	char context[ADDRESS_MAX + 16];
	sigset_t none;

	(void)close(s->listener);
	(void)close(s->signals);
	for (unsigned i = 0; i < s->count; i++)
		if (s->children[i].started_fd >= 0)
			(void)close(s->children[i].started_fd);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)snprintf(context, sizeof(context), "client %s", peer);
	log_set_context(context);
	_exit(connection_run(&params));
}

/* errno says why: this machine has no more, whoever it is that connects. */
static void
serve_fork_failed(struct server *s, const char *peer)
{
	int errnum = errno;

	if (serve_count_stranger(s))
		log_error("connection from %s refused: %s", peer, strerror(errnum));
	else
		log_debug("connection from %s refused: %s", peer, strerror(errnum));
}

static void
serve_fork(struct server *s, int fd, uint64_t source, const char *peer)
{
	bool quiet = serve_is_quiet(s);
	struct child *c;
	int pair[2];
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0) {
		serve_fork_failed(s, peer);
		return;
	}
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		serve_child(s, fd, pair[1], peer, quiet);
	}
	if (pid < 0) {
		serve_fork_failed(s, peer);
		(void)close(pair[0]);
		(void)close(pair[1]);
		return;
	}
	(void)close(pair[1]);
	c = &s->children[s->count++];
	*c = (struct child){.pid = pid, .started_fd = pair[0], .source = source};
	(void)snprintf(c->peer, sizeof(c->peer), "%s", peer);
	log_debug("connection from %s: process %ld", peer, (long)pid);
}

/* errno says why. The connection stays in the queue: no spinning until it can be taken. */
static void
serve_accept_failed(struct server *s)
{
	if (errno != s->accept_errno) {
		s->accept_errno = errno;
		if (serve_count_stranger(s))
			log_error("accept: %s", strerror(s->accept_errno));
	}
	(void)poll(NULL, 0, 100);
}

static void
serve_accept_works(struct server *s)
{
	if (s->accept_errno && !serve_is_quiet(s))
		log_info("accept: connections are taken again");
	s->accept_errno = 0;
}

static void
serve_accept(struct server *s)
{
	struct sockaddr_storage a = {0};
	socklen_t len = sizeof(a);
	const int one = 1;
	char peer[ADDRESS_MAX];
	int fd = accept4(s->listener, (struct sockaddr *)&a, &len, SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		serve_accept_failed(s);
		return;
	}
	serve_accept_works(s);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	format_address(&a, len, peer, sizeof(peer));
	serve_tell_skipped(s);
	serve_reread(s);
	if (serve_make_room(s, peer))
		serve_fork(s, fd, address_source(&a), peer);
	(void)close(fd);
}

/* The session has begun, or the child has ended before. */
static void
child_started(struct server *s, struct child *c)
{
	char byte;
	ssize_t n = read(c->started_fd, &byte, 1);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	(void)close(c->started_fd);
	c->started_fd = -1;
	if (n != 1 || c->dropped)
		return;
	if (serve_count(s, true) >= serve_sessions_max(s)) {
		log_warning("session of %s ended: %u sessions, sessions-max is %u", c->peer,
			    serve_sessions_max(s), s->sessions_max);
		child_drop(c, SIGTERM);
		return;
	}
	c->started = true;
	log_info("session of %s begins", c->peer);
}

static void
child_ended(struct server *s, unsigned i, int status)
{
	struct child *c = &s->children[i];

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		serve_warn(s, c->peer, "dropped: no session within %u s", CONNECTION_LOGIN_S);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
		log_warning("connection from %s dropped: the client takes no data", c->peer);
	else if (WIFSIGNALED(status) && !c->dropped)
		log_error("connection from %s ended by signal %d", c->peer, WTERMSIG(status));
	else if (c->started)
		log_info("session of %s has ended", c->peer);
	else if (!c->dropped)
		(void)serve_count_stranger(s); /* its own process has said why, or not */
	if (c->started_fd >= 0)
		(void)close(c->started_fd);
	memmove(c, c + 1, (s->count - i - 1) * sizeof(*c));
	s->count--;
}

static void
serve_reap(struct server *s)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < s->count; i++)
			if (s->children[i].pid == pid) {
				child_ended(s, i, status);
				break;
			}
}

static void
serve_signals(struct server *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			s->stop = true;
	serve_reap(s);
}

/* ---- the loop ---- */

/* More entries than there may be files are an error, those that are not looked at among them. */
static nfds_t
serve_poll_set(struct server *s)
{
	nfds_t n = 2;

	s->fds[0] = (struct pollfd){.fd = s->listener, .events = POLLIN};
	s->fds[1] = (struct pollfd){.fd = s->signals, .events = POLLIN};
	for (unsigned i = 0; i < s->count; i++)
		if (s->children[i].started_fd >= 0)
			s->fds[n++] =
				(struct pollfd){.fd = s->children[i].started_fd, .events = POLLIN};
	return n;
}

static void
serve_started(struct server *s)
{
	nfds_t n = 2;

	for (unsigned i = 0; i < s->count; i++)
		if (s->children[i].started_fd >= 0 && s->fds[n++].revents)
			child_started(s, &s->children[i]);
}

static void
serve_loop(struct server *s)
{
	while (!s->stop) {
		if (poll(s->fds, serve_poll_set(s), -1) < 0) {
			(void)poll(NULL, 0, 100);
			serve_signals(s);
			continue;
		}
		/* Children first, while the two tables run in step. */
		serve_started(s);
		if (s->fds[1].revents)
			serve_signals(s);
		if (s->fds[0].revents && !s->stop)
			serve_accept(s);
	}
}

/* Sessions get SIGTERM and time to end in order; then it is over. */
static void
serve_stop(struct server *s)
{
	uint64_t deadline = clock_deadline(STOP_MS);

	log_info("stopping, %u connections", s->count);
	for (unsigned i = 0; i < s->count; i++)
		child_drop(&s->children[i], SIGTERM);
	while (s->count > 0 && clock_left_ms(deadline) > 0) {
		struct pollfd p = {.fd = s->signals, .events = POLLIN};

		(void)poll(&p, 1, clock_left_ms(deadline));
		serve_signals(s);
	}
	for (unsigned i = 0; i < s->count; i++)
		child_drop(&s->children[i], SIGKILL);
}

int
serve_run(const struct conf *c, const char *self, struct err *e)
{
	struct server s = {.conf = c, .self = self, .listener = -1, .signals = -1};
	int rc = serve_init(&s, e);

	if (!rc) {
		serve_log_ready(&s);
		serve_tell_keys(&s);
		serve_loop(&s);
		(void)close(s.listener);
		s.listener = -1;
		serve_stop(&s);
	}
	if (s.listener >= 0)
		(void)close(s.listener);
	if (s.signals >= 0)
		(void)close(s.signals);
	hostkey_free(s.key);
	free(s.children);
	free(s.waiting);
	free(s.fds);
	return rc;
}
