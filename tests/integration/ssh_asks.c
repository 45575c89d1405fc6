/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ssh_asks - a hostile SSH server: it lets everybody in, grants a subsystem, and then goes on
 * without end. One connection.
 *
 * usage: ssh_asks channels|complaints|data PORT HOST-KEY
 *   channels    it asks the client for them
 *   complaints  on the standard error, byte by byte, whatever window the client has left
 *   data        behind the end of it, whatever window the client has left
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBSSH_LEGACY_0_4 1
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>

#define LIFE_S  120U
#define SLOW_MS 60000 /* for a busy machine to take some of what it was sent */

#define WINDOW        0x7fffffffU
#define BATCH         128U
#define CHUNK         32768U
#define PACKET_OF_ONE 11U

/* As libssh has it, which keeps a server to the client's window. */
struct channel_head {
	void *session;
	uint32_t local_channel, local_window;
	int local_eof;
	uint32_t local_maxpacket, remote_channel, remote_window;
	int remote_eof;
	uint32_t remote_maxpacket;
};

static struct ssh_channel_callbacks_struct channel_callbacks;
static ssh_channel opened;
static bool granted;

static int
let_in(ssh_session s, const char *user, struct ssh_key_struct *key, char state, void *arg)
{
	(void)s;
	(void)user;
	(void)key;
	(void)state;
	(void)arg;
	return SSH_AUTH_SUCCESS;
}

static int
grant(ssh_session s, ssh_channel c, const char *name, void *arg)
{
	(void)s;
	(void)c;
	(void)name;
	(void)arg;
	granted = true;
	return 0;
}

static ssh_channel
open_channel(ssh_session s, void *arg)
{
	ssh_channel c = ssh_channel_new(s);

	(void)arg;
	if (c && ssh_set_channel_callbacks(c, &channel_callbacks) != SSH_OK)
		return NULL;
	opened = c;
	return c;
}

static bool
serve_one(ssh_session s, const char *port, const char *key)
{
	static struct ssh_server_callbacks_struct callbacks;
	static ssh_event e;
	static ssh_bind b;

	/* To the program's end. */
	b = ssh_bind_new();
	e = ssh_event_new();
	callbacks.auth_pubkey_function = let_in;
	callbacks.channel_open_request_session_function = open_channel;
	channel_callbacks.channel_subsystem_request_function = grant;
	ssh_callbacks_init(&callbacks);
	ssh_callbacks_init(&channel_callbacks);
	if (!b || !e || ssh_bind_options_set(b, SSH_BIND_OPTIONS_BINDADDR, "127.0.0.1") < 0 ||
	    ssh_bind_options_set(b, SSH_BIND_OPTIONS_BINDPORT_STR, port) < 0 ||
	    ssh_bind_options_set(b, SSH_BIND_OPTIONS_HOSTKEY, key) < 0 || ssh_bind_listen(b) < 0)
		return false;
	(void)puts("listening");
	(void)fflush(stdout);
	if (ssh_bind_accept(b, s) != SSH_OK || ssh_set_server_callbacks(s, &callbacks) != SSH_OK)
		return false;
	ssh_set_auth_methods(s, SSH_AUTH_METHOD_PUBLICKEY);
	if (ssh_handle_key_exchange(s) != SSH_OK || ssh_event_add_session(e, s) != SSH_OK)
		return false;
	while (!granted)
		if (ssh_event_dopoll(e, -1) == SSH_ERROR)
			return false;
	return true;
}

static void
ask_channel(ssh_session s)
{
	ssh_channel c = ssh_channel_new(s);

	(void)ssh_channel_open_auth_agent(c);
	ssh_channel_free(c);
}

/* In packets of a byte each, many at once: they come faster than they are taken. */
static bool
complain(void)
{
	static const char text[BATCH];
	struct channel_head *head = (void *)opened;

	head->remote_window = WINDOW;
	head->remote_maxpacket = PACKET_OF_ONE;
	if (ssh_channel_window_size(opened) != WINDOW) {
		(void)fputs("another libssh\n", stderr);
		return false;
	}
	return ssh_channel_write_stderr(opened, text, sizeof(text)) == (int)sizeof(text);
}

/* The end is told once: libssh would send nothing behind it. */
static bool
send_on(void)
{
	static const char bytes[CHUNK];
	struct channel_head *head = (void *)opened;

	if (!head->local_eof && ssh_channel_send_eof(opened) != SSH_OK)
		return true;
	if (!head->local_eof)
		return false;
	head->local_eof = 0;
	head->remote_window = WINDOW;
	if (ssh_channel_window_size(opened) != WINDOW) {
		(void)fputs("another libssh\n", stderr);
		return false;
	}
	(void)ssh_channel_write(opened, bytes, sizeof(bytes));
	head->local_eof = 1;
	return true;
}

int
main(int argc, char **argv)
{
	ssh_session s = ssh_new();
	struct pollfd p = {.events = POLLOUT};
	bool complains = argc == 4 && strcmp(argv[1], "complaints") == 0;
	bool sends = argc == 4 && strcmp(argv[1], "data") == 0;

	(void)alarm(LIFE_S);
	if (argc != 4 || !s || !serve_one(s, argv[2], argv[3])) {
		(void)fprintf(stderr, "no session: %s\n", s ? ssh_get_error(s) : "");
		return 2;
	}
	ssh_set_blocking(s, 0);
	p.fd = ssh_get_fd(s);
	while (poll(&p, 1, SLOW_MS) == 1 && !(p.revents & (POLLERR | POLLHUP)) &&
	       ssh_is_connected(s)) {
		if (complains ? !complain() : sends && !send_on())
			return 77;
		if (!complains && !sends)
			ask_channel(s);
	}
	return 0;
}
