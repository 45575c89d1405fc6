/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBSSH_LEGACY_0_4 1
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>

#include "authkeys.h"
#include "become.h"
#include "clock.h"
#include "log.h"

#define HOSTKEY_MAX  65536U
#define BUFFER_SIZE  32768U
#define PENDING_MAX  (8U << 20) /* well above the window that libssh grants */
#define DENIALS_MAX  20U
#define DENIALS_SAID 6U     /* as many keys as an agent offers, say */
#define FAREWELL_MS  2000U  /* for the client to take the end of the session */
#define ORPHAN_MS    10000U /* for a session to end by itself when its client is gone */
#define WRITE_CPU_S  2
#define LAST_MS      10000U /* for a client to take more of what an ended session has left */

struct hostkey {
	ssh_key key;
	char *fingerprint;
};

struct connection {
	const struct connection_params *p;
	struct authkeys *keys;
	ssh_bind bind;
	ssh_session ssh;
	ssh_event event;
	ssh_channel channel;
	struct ssh_server_callbacks_struct server_callbacks;
	struct ssh_channel_callbacks_struct channel_callbacks;
	struct ssh_counter_struct counter;
	uint64_t taken; /* of counter.out_bytes, when all of it had left us */
	unsigned denials;
	bool authenticated;
	bool subsystem;                       /* granted */
	char addresses[2 * (NI_MAXHOST + 8)]; /* for SSH_CONNECTION */
};

/* One direction's bytes between two ends of different speed. */
struct buffer {
	size_t off, len;
	char bytes[BUFFER_SIZE];
};

struct pump {
	struct connection *c;
	int sock; /* to the session */
	int signals;
	pid_t pid;
	bool exited;
	int status;     /* of waitpid */
	bool in_ended;  /* nothing more goes to the session */
	bool out_ended; /* nothing more comes from it */
	uint64_t last;  /* when it has exited: until when the client has to take more */
	struct buffer in, out;
};

/* ---- host key ---- */

/* errno says why; a link is refused to root alone. */
static int
hostkey_failed(const char *doing, const char *path, struct err *e)
{
	if (errno == ELOOP && geteuid() == 0)
		return err_set(e, REPL_E_REFUSED,
			       "host key '%s' is, or lies behind, a symbolic link, which root does "
			       "not follow: name it by its own path",
			       path);
	return err_errno(e, err_from_errno(errno), errno, "%shost key '%s'", doing, path);
}

static int
hostkey_check_file(int fd, const char *path, uid_t user, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return hostkey_failed("", path, e);
	if (!S_ISREG(st.st_mode))
		return err_set(e, REPL_E_REFUSED, "host key '%s' is no regular file", path);
	if (st.st_uid != 0 && st.st_uid != user)
		return err_set(e, REPL_E_REFUSED,
			       "host key '%s' belongs to uid %u: it must belong to root or to the "
			       "user of repld, uid %u",
			       path, (unsigned)st.st_uid, (unsigned)user);
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return err_set(e, REPL_E_REFUSED,
			       "host key '%s' has mode %03o, others may use it: chmod 600 '%s'",
			       path, (unsigned)st.st_mode & 0777U, path);
	return REPL_OK;
}

static int
hostkey_write(int fd, const char *text)
{
	size_t len = strlen(text);

	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0)
			return -1;
		text += n;
		len -= (size_t)n;
	}
	return fsync(fd);
}

/* A new one as text; NULL: it could not be made. */
static char *
hostkey_new(void)
{
	ssh_key key = NULL;
	char *text = NULL;

	if (ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &key) == SSH_OK &&
	    ssh_pki_export_privkey_base64(key, NULL, NULL, NULL, &text) != SSH_OK)
		text = NULL;
	ssh_key_free(key);
	return text;
}

static void
hostkey_text_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	ssh_string_free_char(text);
}

/* Under a name of its own first: the key is there whole or not at all. */
static int
hostkey_make(int dir, const char *name, const char *path, struct err *e)
{
	char temporary[4096];
	uint64_t number;
	char *text = NULL;
	int rc = REPL_OK;
	int fd;

	/* In containers all have the same process number, also who was killed and who is at it. */
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	if (snprintf(temporary, sizeof(temporary), "%s.%016" PRIx64 ".tmp", name, number) >=
	    (int)sizeof(temporary))
		return err_set(e, REPL_E_INVAL, "host key path '%s' is too long", path);
	fd = become_open(dir, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return hostkey_failed("making ", path, e);
	text = hostkey_new();
	if (!text)
		rc = err_set(e, REPL_E_IO, "making host key '%s' failed", path);
	/* link, not rename: who was first keeps the name. */
	else if (hostkey_write(fd, text) < 0 ||
		 (linkat(dir, temporary, dir, name, 0) < 0 && errno != EEXIST))
		rc = hostkey_failed("making ", path, e);
	else
		log_info("made host key %s", path);
	(void)unlinkat(dir, temporary, 0);
	(void)close(fd);
	hostkey_text_free(text);
	return rc;
}

static int
hostkey_read(int fd, const char *path, struct hostkey *k, struct err *e)
{
	char text[HOSTKEY_MAX] = "";
	unsigned char *hash = NULL;
	size_t len = 0;
	ssize_t n = 1;
	int rc = REPL_OK;

	while (n > 0 && len < sizeof(text) - 1) {
		n = read(fd, text + len, sizeof(text) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		rc = hostkey_failed("reading ", path, e);
	else if (ssh_pki_import_privkey_base64(text, NULL, NULL, NULL, &k->key) != SSH_OK)
		rc = err_set(e, REPL_E_CONFIG,
			     "host key '%s' is no private key without passphrase: remove it to "
			     "have a new one made",
			     path);
	explicit_bzero(text, sizeof(text));
	if (rc)
		return rc;
	if (ssh_get_publickey_hash(k->key, SSH_PUBLICKEY_HASH_SHA256, &hash, &len) == SSH_OK)
		k->fingerprint = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, len);
	ssh_clean_pubkey_hash(&hash);
	return REPL_OK;
}

/* Where it is absent it is made, and then read like any other. */
static int
hostkey_open(const char *path, int *fd, struct err *e)
{
	const char *name;
	int dir = become_dir(path, &name);
	int rc = REPL_OK;

	*fd = -1;
	if (dir == -1)
		return hostkey_failed("", path, e);
	*fd = become_open(dir, name, O_RDONLY, 0);
	if (*fd < 0 && errno == ENOENT) {
		rc = hostkey_make(dir, name, path, e);
		if (!rc)
			*fd = become_open(dir, name, O_RDONLY, 0);
	}
	if (!rc && *fd < 0)
		rc = hostkey_failed("", path, e);
	become_dir_close(dir);
	return rc;
}

int
hostkey_load(const char *path, uid_t user, struct hostkey **out, struct err *e)
{
	struct hostkey *k = calloc(1, sizeof(*k));
	int fd = -1;
	int rc;

	*out = NULL;
	if (!k)
		return err_set(e, REPL_E_NOMEM, "out of memory for the host key");
	rc = hostkey_open(path, &fd, e);
	if (!rc)
		rc = hostkey_check_file(fd, path, user, e);
	if (!rc)
		rc = hostkey_read(fd, path, k, e);
	if (fd >= 0)
		(void)close(fd);
	if (rc)
		hostkey_free(k);
	else
		*out = k;
	return rc;
}

void
hostkey_free(struct hostkey *k)
{
	if (!k)
		return;
	ssh_key_free(k->key);
	ssh_string_free_char(k->fingerprint);
	free(k);
}

const char *
hostkey_fingerprint(const struct hostkey *k)
{
	return k->fingerprint ? k->fingerprint : "unknown";
}

/* ---- login ---- */

/* Of who has no key, or has not shown one: not each. */
static void __attribute__((format(printf, 2, 3)))
stranger_log(const struct connection *c, const char *fmt, ...)
{
	char text[LOG_LINE_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (c->p->quiet && !c->authenticated)
		log_debug("%s", text);
	else
		log_info("%s", text);
}

static bool
connection_key_allowed(struct connection *c, ssh_key key)
{
	const char *type = ssh_key_type_to_char(ssh_key_type(key));
	char *base64 = NULL;
	bool allowed;

	if (ssh_key_type(key) == SSH_KEYTYPE_ECDSA_P256 ||
	    ssh_key_type(key) == SSH_KEYTYPE_ECDSA_P384 ||
	    ssh_key_type(key) == SSH_KEYTYPE_ECDSA_P521)
		type = ssh_pki_key_ecdsa_name(key);
	if (!type || ssh_pki_export_pubkey_base64(key, &base64) != SSH_OK)
		return false;
	allowed = authkeys_contain(c->keys, type, base64);
	ssh_string_free_char(base64);
	return allowed;
}

/* Called for a key on offer (NONE) and again with its signature checked (VALID). */
static int
connection_auth(ssh_session session, const char *user, struct ssh_key_struct *key, char state,
		void *arg)
{
	struct connection *c = arg;

	(void)session;
	if ((state == SSH_PUBLICKEY_STATE_NONE || state == SSH_PUBLICKEY_STATE_VALID) &&
	    strcmp(user, c->p->user) == 0 && connection_key_allowed(c, key)) {
		c->authenticated = state == SSH_PUBLICKEY_STATE_VALID;
		return SSH_AUTH_SUCCESS;
	}
	if (++c->denials <= DENIALS_SAID)
		stranger_log(c, "login as '%s' refused: %s", user,
			     strcmp(user, c->p->user) == 0 ? "key not authorized"
							   : "not the user of repld");
	return SSH_AUTH_DENIED;
}

static int
connection_grant_subsystem(ssh_session session, ssh_channel channel, const char *name, void *arg)
{
	struct connection *c = arg;

	(void)session;
	(void)channel;
	if (c->subsystem || strcmp(name, "repl") != 0) {
		c->denials++;
		log_info("subsystem '%s' refused", name);
		return 1;
	}
	c->subsystem = true;
	return 0;
}

/* One session channel. Requests without a callback are refused by libssh. */
static ssh_channel
connection_open_channel(ssh_session session, void *arg)
{
	struct connection *c = arg;

	if (c->channel || !c->authenticated)
		return NULL;
	c->channel = ssh_channel_new(session);
	if (!c->channel)
		return NULL;
	c->channel_callbacks.userdata = c;
	c->channel_callbacks.channel_subsystem_request_function = connection_grant_subsystem;
	ssh_callbacks_init(&c->channel_callbacks);
	(void)ssh_set_channel_callbacks(c->channel, &c->channel_callbacks);
	return c->channel;
}

/*
 * The socket becomes libssh's, which on a blocking one waits in send(2) for a client that reads
 * nothing: no end is noticed then, of the session or of the daemon.
 */
static bool
connection_accept(struct connection *c)
{
	const int no = 0;
	ssh_key key = ssh_key_dup(c->p->key->key);

	c->bind = ssh_bind_new();
	c->ssh = ssh_new();
	c->event = ssh_event_new();
	if (!c->bind || !c->ssh || !c->event || !key || fcntl(c->p->fd, F_SETFL, O_NONBLOCK) < 0)
		return false;
	/* No settings but ours: not those of /etc/ssh. */
	if (ssh_bind_options_set(c->bind, SSH_BIND_OPTIONS_PROCESS_CONFIG, &no) < 0 ||
	    ssh_bind_options_set(c->bind, SSH_BIND_OPTIONS_IMPORT_KEY, key) < 0)
		return false;
	c->server_callbacks.userdata = c;
	c->server_callbacks.auth_pubkey_function = connection_auth;
	c->server_callbacks.channel_open_request_session_function = connection_open_channel;
	ssh_callbacks_init(&c->server_callbacks);
	if (ssh_bind_accept_fd(c->bind, c->ssh, c->p->fd) != SSH_OK)
		return false;
	(void)ssh_set_server_callbacks(c->ssh, &c->server_callbacks);
	ssh_set_counters(c->ssh, NULL, &c->counter);
	ssh_set_auth_methods(c->ssh, SSH_AUTH_METHOD_PUBLICKEY);
	return ssh_handle_key_exchange(c->ssh) == SSH_OK &&
	       ssh_event_add_session(c->event, c->ssh) == SSH_OK;
}

static bool
connection_unread(ssh_channel channel, int is_stderr)
{
	int pending = ssh_channel_poll(channel, is_stderr);

	return pending > 0 && (unsigned)pending > PENDING_MAX;
}

/* Replies have no window: they gather in libssh while the client reads none. */
static bool
connection_untaken(struct connection *c)
{
	if (!(ssh_get_poll_flags(c->ssh) & SSH_WRITE_PENDING))
		c->taken = c->counter.out_bytes;
	return c->counter.out_bytes - c->taken > PENDING_MAX;
}

/* It takes more than it may: libssh has all that comes, whatever window it has granted. */
static bool
connection_floods(struct connection *c)
{
	const char *why = NULL;

	if (c->denials > DENIALS_MAX)
		why = "too much that it asked for was refused";
	else if (c->channel &&
		 (connection_unread(c->channel, 0) || connection_unread(c->channel, 1)))
		why = "client sends beyond its window";
	else if (connection_untaken(c))
		why = "client does not read its replies";
	if (why && c->authenticated)
		log_warning("%s", why);
	else if (why)
		stranger_log(c, "%s", why);
	return why != NULL;
}

/*
 * A client with keys to offer is told that they are too many, as by sshd: in place of the answer
 * to its next one, since behind a refusal it would see no more than that.
 */
static void
connection_tell_denials(struct connection *c)
{
	struct pollfd f = {.fd = ssh_get_fd(c->ssh), .events = POLLIN};
	char next[BUFFER_SIZE];

	if (c->authenticated || c->denials <= DENIALS_MAX)
		return;
	(void)poll(&f, 1, -1);
	/* Were it left unread the end would overtake what is told. */
	(void)!recv(f.fd, next, sizeof(next), MSG_DONTWAIT);
	/* libssh sends at its end what it knows that there is room for. */
	(void)ssh_event_dopoll(c->event, 0);
	(void)ssh_session_set_disconnect_message(c->ssh, "Too many authentication failures");
}

/* Until the subsystem is granted; the alarm bounds it. */
static bool
connection_login(struct connection *c)
{
	while (!c->subsystem) {
		if (ssh_event_dopoll(c->event, -1) == SSH_ERROR)
			return false;
		if (connection_floods(c)) {
			connection_tell_denials(c);
			return false;
		}
	}
	return true;
}

/* "client_ip client_port server_ip server_port" */
static bool
connection_note_addresses(struct connection *c)
{
	struct sockaddr_storage a = {0};
	char host[2][NI_MAXHOST], port[2][8];
	socklen_t len = sizeof(a);

	if (getpeername(c->p->fd, (struct sockaddr *)&a, &len) < 0 ||
	    getnameinfo((struct sockaddr *)&a, len, host[0], sizeof(host[0]), port[0],
			sizeof(port[0]), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return false;
	len = sizeof(a);
	if (getsockname(c->p->fd, (struct sockaddr *)&a, &len) < 0 ||
	    getnameinfo((struct sockaddr *)&a, len, host[1], sizeof(host[1]), port[1],
			sizeof(port[1]), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return false;
	return snprintf(c->addresses, sizeof(c->addresses), "%s %s %s %s", host[0], port[0],
			host[1], port[1]) < (int)sizeof(c->addresses);
}

/* ---- the session process ---- */

/* In the child: nothing of the SSH connection goes on to the session. */
static _Noreturn void
session_exec(const struct connection *c, int sock)
{
	const struct conf *conf = c->p->conf;
	char *argv[] = {(char *)(uintptr_t)c->p->self, (char *)(uintptr_t) "session", NULL, NULL,
			NULL};
	sigset_t none;

	if (conf->path) {
		argv[2] = (char *)(uintptr_t) "--config";
		argv[3] = conf->path;
	}
	/* Now, while there is a log to say it in. */
	if (access(c->p->self, X_OK) < 0)
		log_error("no session, %s: %s; install repld anew, or restart it", c->p->self,
			  strerror(errno));
	(void)sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
	if (dup2(sock, STDIN_FILENO) < 0 || dup2(sock, STDOUT_FILENO) < 0 ||
	    close_range(STDERR_FILENO + 1, ~0U, 0) < 0 ||
	    setenv("SSH_CONNECTION", c->addresses, 1) < 0 ||
	    sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		_exit(126);
	(void)execv(c->p->self, argv);
	_exit(127);
}

static bool
session_start(struct pump *p)
{
	sigset_t set;
	int pair[2];

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->signals < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	p->sock = pair[0];
	p->pid = fork();
	if (p->pid == 0)
		session_exec(p->c, pair[1]);
	(void)close(pair[1]);
	return p->pid > 0;
}

static void
session_signals(struct pump *p)
{
	struct signalfd_siginfo info;

	while (read(p->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD && !p->exited)
			(void)kill(p->pid, SIGTERM);
	if (!p->exited && waitpid(p->pid, &p->status, WNOHANG) == p->pid) {
		p->exited = true;
		p->last = clock_deadline(LAST_MS);
		/* Its client may tell nobody. What is done to it on purpose is no news. */
		if (WIFSIGNALED(p->status) && WTERMSIG(p->status) != SIGKILL &&
		    WTERMSIG(p->status) != SIGTERM)
			log_error("session %ld ended by signal %d", (long)p->pid,
				  WTERMSIG(p->status));
	}
}

/* The client is gone: the session sees the end of its input and should end. */
static void
session_reap(struct pump *p)
{
	uint64_t deadline = clock_deadline(ORPHAN_MS);
	bool asked = false;

	(void)close(p->sock);
	p->sock = -1;
	for (session_signals(p); !p->exited; session_signals(p)) {
		struct pollfd f = {.fd = p->signals, .events = POLLIN};

		(void)poll(&f, 1, asked ? -1 : clock_left_ms(deadline));
		if (!asked && clock_left_ms(deadline) == 0) {
			log_warning("session %ld does not end, terminating it", (long)p->pid);
			(void)kill(p->pid, SIGTERM);
			asked = true;
		}
	}
}

/* ---- the pump ---- */

/* Client to session. */
static void
pump_in(struct pump *p)
{
	struct buffer *b = &p->in;
	ssize_t n;

	if (b->len == 0 && !p->in_ended) {
		int got =
			ssh_channel_read_nonblocking(p->c->channel, b->bytes, sizeof(b->bytes), 0);

		b->off = 0;
		if (got > 0)
			b->len = (size_t)got;
		else if (ssh_channel_is_eof(p->c->channel)) {
			p->in_ended = true;
			(void)shutdown(p->sock, SHUT_WR);
		}
	}
	if (b->len == 0)
		return;
	n = send(p->sock, b->bytes + b->off, b->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0) {
		b->off += (size_t)n;
		b->len -= (size_t)n;
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		b->len = 0;
		p->in_ended = true;
	}
}

/* Whether the client takes bytes now: what it was sent has left us, its window is open. */
static bool
pump_client_takes(struct pump *p)
{
	return ssh_blocking_flush(p->c->ssh, 0) == SSH_OK &&
	       ssh_channel_window_size(p->c->channel) > 0;
}

static void
pump_fetch(struct pump *p)
{
	struct buffer *b = &p->out;
	ssize_t n = recv(p->sock, b->bytes, sizeof(b->bytes), MSG_DONTWAIT);

	b->off = 0;
	if (n > 0) {
		b->len = (size_t)n;
		return;
	}
	/* A grandchild may hold the other end when the session has exited. */
	if (n == 0 || (errno != EAGAIN && errno != EINTR) || (errno == EAGAIN && p->exited)) {
		p->out_ended = true;
		(void)ssh_channel_send_eof(p->c->channel);
	}
}

/*
 * To a client that takes packets of 10 bytes libssh sends empty ones, and its call does not return.
 * So this process ends when one takes so much of the processor's time: no other measure sees it.
 */
static int
pump_write(ssh_channel channel, const char *bytes, size_t len)
{
	const struct itimerval most = {.it_value = {.tv_sec = WRITE_CPU_S}}, none = {0};
	int n;

	(void)setitimer(ITIMER_PROF, &most, NULL);
	n = ssh_channel_write(channel, bytes, (uint32_t)len);
	(void)setitimer(ITIMER_PROF, &none, NULL);
	return n;
}

/* Session to client. */
static void
pump_out(struct pump *p)
{
	struct buffer *b = &p->out;
	int n;

	if (b->len == 0 && !p->out_ended)
		pump_fetch(p);
	if (b->len == 0 || !pump_client_takes(p))
		return;
	n = pump_write(p->c->channel, b->bytes + b->off, b->len);
	if (n > 0) {
		b->off += (size_t)n;
		b->len -= (size_t)n;
		p->last = clock_deadline(LAST_MS);
	}
}

/* Sleep until one end can go on. */
static void
pump_wait(struct pump *p)
{
	struct pollfd f[3] = {
		{.fd = ssh_get_fd(p->c->ssh), .events = POLLIN},
		{.fd = p->signals, .events = POLLIN},
		{.fd = p->sock},
	};
	int timeout = p->exited ? clock_left_ms(p->last) : -1;

	/* libssh may have read more while it wrote: then there is no event to come. */
	if (p->in.len == 0 && !p->in_ended && ssh_channel_poll(p->c->channel, 0) != 0)
		timeout = 0;
	if (p->out.len > 0 && ssh_channel_window_size(p->c->channel) > 0)
		f[0].events |= POLLOUT;
	if (ssh_get_poll_flags(p->c->ssh) & SSH_WRITE_PENDING)
		f[0].events |= POLLOUT;
	if (p->in.len > 0)
		f[2].events |= POLLOUT;
	if (p->out.len == 0 && !p->out_ended)
		f[2].events |= POLLIN;
	if (f[2].events == 0)
		f[2].fd = -1; /* or a hangup would keep us spinning */
	(void)poll(f, 3, timeout);
}

/* True when the session has ended and all it said was sent. */
static bool
pump_run(struct pump *p)
{
	for (;;) {
		if (ssh_event_dopoll(p->c->event, 0) == SSH_ERROR || !ssh_is_connected(p->c->ssh) ||
		    ssh_channel_is_closed(p->c->channel) || connection_floods(p->c))
			return false;
		session_signals(p);
		pump_in(p);
		pump_out(p);
		if (p->exited && p->out_ended && p->out.len == 0)
			return true;
		if (p->exited && clock_left_ms(p->last) == 0) {
			log_warning("client does not take the end of its session");
			return false;
		}
		pump_wait(p);
	}
}

/* The exit status, the end of the channel, and time for the client to take both. */
static void
pump_farewell(struct pump *p)
{
	uint64_t deadline = clock_deadline(FAREWELL_MS);
	ssh_channel channel = p->c->channel;

	if (WIFEXITED(p->status))
		(void)ssh_channel_request_send_exit_status(channel, WEXITSTATUS(p->status));
	else if (WIFSIGNALED(p->status))
		(void)ssh_channel_request_send_exit_signal(
			channel, sigabbrev_np(WTERMSIG(p->status)), 0, "session killed", "");
	(void)ssh_channel_close(channel);
	while (clock_left_ms(deadline) > 0 && ssh_is_connected(p->c->ssh))
		if (ssh_event_dopoll(p->c->event, clock_left_ms(deadline)) == SSH_ERROR ||
		    connection_floods(p->c))
			break;
}

static int
connection_pump(struct connection *c)
{
	struct pump *p = calloc(1, sizeof(*p));
	int rc = 1;

	if (!p)
		return 1;
	p->c = c;
	p->sock = p->signals = -1;
	if (!session_start(p)) {
		log_error("no session process: %s", strerror(errno));
		goto out;
	}
	(void)alarm(0);
	(void)!write(c->p->started_fd, "s", 1);
	ssh_set_blocking(c->ssh, 0);
	if (pump_run(p))
		pump_farewell(p);
	/* Before the session, which may take its time to end. */
	(void)shutdown(ssh_get_fd(c->ssh), SHUT_RDWR);
	session_reap(p);
	rc = 0;
out:
	if (p->sock >= 0)
		(void)close(p->sock);
	if (p->signals >= 0)
		(void)close(p->signals);
	free(p);
	return rc;
}

static void
connection_fini(struct connection *c)
{
	if (c->event)
		ssh_event_free(c->event);
	if (c->ssh)
		ssh_disconnect(c->ssh);
	ssh_free(c->ssh);
	ssh_bind_free(c->bind);
	authkeys_free(c->keys);
}

int
connection_run(const struct connection_params *params)
{
	struct connection c = {.p = params};
	struct err e = {0};
	int rc = 1;

	(void)signal(SIGALRM, SIG_DFL);
	(void)alarm(CONNECTION_LOGIN_S);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		log_error("connection not served: %s", strerror(errno));
	else if (!connection_note_addresses(&c))
		stranger_log(&c, "gone before it was served: %s", strerror(errno));
	else if (authkeys_read(params->conf->authorized_keys, false, &c.keys, &e))
		(params->quiet ? log_debug : log_error)("no one can log in: %s", e.text);
	else if (!connection_accept(&c) || !connection_login(&c))
		stranger_log(&c, "ended before a session: %s",
			     c.ssh ? ssh_get_error(c.ssh) : "no memory");
	else
		rc = connection_pump(&c);
	connection_fini(&c);
	return rc;
}
