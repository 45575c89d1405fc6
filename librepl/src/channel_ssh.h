/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A channel and its waits, as those see them who call libssh: channel.c, channel_options.c and
 * channel_login.c.
 */
#ifndef LIBREPL_CHANNEL_SSH_H
#define LIBREPL_CHANNEL_SSH_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

/* Keeps libssh's old names out, some of which are ours: channel_free(), ... */
#define LIBSSH_LEGACY_0_4 1
#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include "channel.h"
#include "proxy.h"

#define STDERR_MAX 512
#define SSH_PORT   22

struct channel {
	const _Atomic int *cancel;     /* or NULL */
	const _Atomic uint64_t *until; /* or NULL */
	struct channel_fds *told;      /* or NULL */
	int fd;                        /* TCP or the proxy's; libssh has another number of it */
	int lent;                      /* that number until libssh has taken it, else -1 */
	struct proxy proxy;
	ssh_session session;
	ssh_channel stream;
	struct ssh_callbacks_struct callbacks;
	struct ssh_counter_struct counter;
	uint64_t taken;           /* of counter.out_bytes, when all of it had left us */
	unsigned long packet_max; /* bytes of one that the server takes, as far as that is known */
	bool passphrase_wanted;
	bool offered; /* keys, one after the other as libssh finds them */
	bool heard;   /* of the session, on its standard output */
	char host[TARGET_HOST_MAX];
	char name[TARGET_ADDRESS_MAX]; /* for texts */
	char user[TARGET_USER_MAX];
	char command[256];
	char peer[INET6_ADDRSTRLEN + 32];
	char complaint[STDERR_MAX]; /* the last of the remote stderr */
	size_t complaint_len;
	char cause[256];
};

/* libssh's text, which may quote what the server sent, made fit to print. */
const char *channel_cause(struct channel *c);

/* REPL_E_LOST, with that. */
int channel_lost(struct channel *c, struct err *e);

/* Wait until libssh has something to do. */
int channel_wait(struct channel *c, uint64_t deadline_ns, const char *what, struct err *e);

/* An ssh_auth_callback that has none, and notes that one was wanted. */
int channel_no_passphrase(const char *prompt, char *buf, size_t len, int echo, int verify,
			  void *arg);

/* ---- options ---- */

/* A log callback of libssh's that says nothing. */
void channel_mute(int priority, const char *function, const char *buffer, void *arg);

/* All of a session that is new, with the names of its host. */
int channel_set_options(struct channel *c, const struct channel_options *o, struct err *e);

int channel_set(struct channel *c, enum ssh_options_e option, const void *value, struct err *e);

/* An option's value; out is as it was where there is none. */
void channel_get(struct channel *c, enum ssh_options_e option, char *out, size_t size);

/* ---- logging in ---- */

/* Whether known_hosts has the host's key, and none says that it is revoked. */
int channel_check_host(struct channel *c, struct err *e);

/* By the key of the file identity, or by the agent's and ssh's own (NULL). */
int channel_authenticate(struct channel *c, const char *identity, uint64_t deadline_ns,
			 struct err *e);

#endif
