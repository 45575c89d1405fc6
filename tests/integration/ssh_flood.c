/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ssh_flood - a client with a good key that gives repld serve more than it may.
 *
 * usage: ssh_flood data|extended|late|requests|replies HOST PORT USER KEY
 *   data, extended  bytes, of that kind, beyond the channel's window
 *   late            bytes, when the session has ended with status 0
 *   requests        for a subsystem that is not there, with the right one granted
 *   replies         requests for channels, without waiting for what is said to them
 * It ends with 0 when the connection is cut, with 1 when all was taken.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libssh/libssh.h>

#define CHUNK    32768U
#define FLOOD    (160U << 20)
#define REQUESTS 1000U
#define CHANNELS 2000000U
#define WINDOW   0x7fffffffU
#define SLOW_MS  60000 /* for a busy machine to take some of what it was sent */

/* As libssh has it, which keeps a client to its window. */
struct channel_head {
	void *session;
	uint32_t local_channel, local_window;
	int local_eof;
	uint32_t local_maxpacket, remote_channel, remote_window;
	int remote_eof;
	uint32_t remote_maxpacket;
	int state, delayed_close;
};

static bool
login(ssh_session s, char **argv)
{
	int port = atoi(argv[3]);
	ssh_key key = NULL;
	bool in = ssh_options_set(s, SSH_OPTIONS_HOST, argv[2]) == 0 &&
		  ssh_options_set(s, SSH_OPTIONS_PORT, &port) == 0 &&
		  ssh_options_set(s, SSH_OPTIONS_USER, argv[4]) == 0 && ssh_connect(s) == SSH_OK &&
		  ssh_pki_import_privkey_file(argv[5], NULL, NULL, NULL, &key) == SSH_OK &&
		  ssh_userauth_publickey(s, NULL, key) == SSH_AUTH_SUCCESS;

	ssh_key_free(key);
	return in;
}

static void
check(bool same)
{
	if (same)
		return;
	(void)fputs("another libssh\n", stderr);
	exit(77);
}

/* True if it was cut. */
static bool
flood(ssh_channel c, bool extended)
{
	static const char bytes[CHUNK];
	struct channel_head *head = (void *)c;

	for (unsigned done = 0; done < FLOOD; done += CHUNK) {
		int n;

		head->remote_window = WINDOW;
		check(ssh_channel_window_size(c) == WINDOW);
		n = extended ? ssh_channel_write_stderr(c, bytes, CHUNK)
			     : ssh_channel_write(c, bytes, CHUNK);
		if (n != (int)CHUNK || ssh_channel_is_closed(c))
			return true;
	}
	return false;
}

/* libssh would send nothing on a channel that the server has closed. */
static bool
flood_late(ssh_session s, ssh_channel c)
{
	static const char bytes[CHUNK];
	struct channel_head *head = (void *)c;
	int open = head->state;

	head->state = open + 1;
	check(ssh_channel_is_open(c) == 0);
	head->state = open;
	check(ssh_channel_is_open(c) == 1);
	if (ssh_channel_get_exit_status(c) != 0)
		return false;
	for (unsigned done = 0; done < FLOOD && ssh_is_connected(s); done += CHUNK) {
		head->state = open;
		head->delayed_close = 0;
		head->remote_window = WINDOW;
		(void)ssh_channel_write(c, bytes, CHUNK);
	}
	return !ssh_is_connected(s);
}

static bool
ask(ssh_session s, ssh_channel c)
{
	for (unsigned i = 0; i < REQUESTS; i++)
		if (ssh_channel_request_subsystem(c, "other") == SSH_OK || !ssh_is_connected(s))
			return true;
	return false;
}

/* The other end of a relay that brings no replies. */
static bool
ask_deaf(ssh_session s)
{
	struct pollfd p = {.fd = ssh_get_fd(s), .events = POLLOUT};

	ssh_set_blocking(s, 0);
	for (unsigned i = 0; i < CHANNELS; i++) {
		ssh_channel c = ssh_channel_new(s);
		bool cut;

		if (!c || poll(&p, 1, SLOW_MS) != 1)
			return false;
		/* The first replies come through, and may be a refusal of this one. */
		(void)ssh_channel_open_session(c);
		cut = (p.revents & (POLLERR | POLLHUP)) || !ssh_is_connected(s);
		ssh_channel_free(c);
		if (cut)
			return true;
	}
	return false;
}

int
main(int argc, char **argv)
{
	ssh_session s = ssh_new();
	ssh_channel c;
	bool cut;

	if (argc != 6 || !s || !login(s, argv) || !(c = ssh_channel_new(s)) ||
	    ssh_channel_open_session(c) != SSH_OK ||
	    ssh_channel_request_subsystem(c, "repl") != SSH_OK) {
		(void)fprintf(stderr, "no session: %s\n", s ? ssh_get_error(s) : "");
		return 2;
	}
	if (strcmp(argv[1], "requests") == 0)
		cut = ask(s, c);
	else if (strcmp(argv[1], "replies") == 0)
		cut = ask_deaf(s);
	else if (strcmp(argv[1], "late") == 0)
		cut = flood_late(s, c);
	else
		cut = flood(c, strcmp(argv[1], "extended") == 0);
	/* Its channels go with it. */
	ssh_free(s);
	return cut ? 0 : 1;
}
