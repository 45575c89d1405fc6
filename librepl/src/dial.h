/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dial - a TCP connection by a deadline, and whether ssh-agent is alive.
 *
 * The resolver has no deadline of its own, so names are looked up by a helper
 * thread that is left behind when the deadline passes first.
 */
#ifndef LIBREPL_DIAL_H
#define LIBREPL_DIAL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/* How often waits look whether they are cancelled. */
#define DIAL_LOOK_MS 100

/* The status that *cancel gives waits an end with, or 0; cancel may be NULL. */
static inline int
dial_cancelled(const _Atomic int *cancel)
{
	return cancel ? atomic_load(cancel) : 0;
}

/*
 * Connect to host:port, trying its addresses in the resolver's order. The
 * descriptor is non-blocking and closed on exec. REPL_E_UNREACHABLE or
 * REPL_E_TIMEOUT name host, port and cause. Cancelled: that status.
 */
int dial_tcp(const char *host, unsigned port, uint64_t deadline_ns, const _Atomic int *cancel,
	     int *fd, struct err *e);

/*
 * The path of the agent at SSH_AUTH_SOCK if it does not tell its keys at once, else NULL. It need
 * not be the one that libssh asks, which ssh's config may name and libssh does not tell.
 */
const char *dial_silent_agent(void);

#endif
