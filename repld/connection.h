/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connection - one SSH connection of the embedded server, in a process of its
 * own: login by public key, subsystem "repl", then bytes between the client
 * and a "repld session" on a socket pair. The only file in front of libssh on
 * this side; serve.c listens, forks and counts.
 */
#ifndef REPLD_CONNECTION_H
#define REPLD_CONNECTION_H

#include <stdbool.h>
#include <sys/types.h>

#include "conf.h"
#include "err.h"

/* From accept to the start of the session; then SIGALRM ends the process. */
#define CONNECTION_LOGIN_S 20U

struct hostkey;

/*
 * Read the private host key, or make an ed25519 key with mode 0600 if there is
 * no such file. An existing file that others may read is REPL_E_REFUSED, and so
 * is one that belongs neither to root nor to user, and what root gets to by a link.
 */
int hostkey_load(const char *path, uid_t user, struct hostkey **out, struct err *e);
void hostkey_free(struct hostkey *k);

/* "SHA256:..." */
const char *hostkey_fingerprint(const struct hostkey *k);

struct connection_params {
	const struct conf *conf;
	const char *self; /* program for the session: SELF session [--config PATH] */
	struct hostkey *key;
	const char *user; /* the only name that may log in */
	int fd;           /* accepted socket; taken */
	int started_fd;   /* gets one byte when the session has begun; taken */
	bool quiet;       /* too many others have ended without a session: no line says why */
};

/* Runs until the connection has ended and the session was reaped; an exit status. */
int connection_run(const struct connection_params *p);

#endif
