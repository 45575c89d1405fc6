/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy - a ProxyCommand of ssh's config, or what a ProxyJump comes to (sshuse.c).
 *
 * Not left to libssh: it starts the command with the signal mask of the calling thread, where
 * SIGTERM is blocked, and then waits, at the end of the session, until the command has ended.
 */
#ifndef LIBREPL_PROXY_H
#define LIBREPL_PROXY_H

#include <stdint.h>
#include <sys/types.h>

#include "err.h"

/* What %h, %n, %p and %r stand for; see ssh_config(5). */
struct proxy_words {
	const char *host, *name, *user;
	unsigned port;
};

/* Its number alone is not it: the program may wait for all its children, and start others. */
struct proxy {
	pid_t pid;        /* 0: none */
	uint64_t started; /* in ticks since the machine's start, by /proc; 0: nobody could tell */
};

/* *fd is one end of a pair of sockets, non-blocking and closed on exec; *proxy is for proxy_stop().
 */
int proxy_start(const char *command, const struct proxy_words *words, int *fd, struct proxy *proxy,
		struct err *e);

/* After its descriptor was closed: it is told to end, and made to if it does not. */
void proxy_stop(const struct proxy *proxy);

#endif
