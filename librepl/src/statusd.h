/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * statusd - the status server of a handle: one thread, one unix socket, at most
 * STATUSD_CLIENTS_MAX clients, who speak lines of JSON-RPC (docs/PROTOCOL.md, The
 * status socket). It never waits for a client and takes no lock that is held
 * across calls, so that nobody who asks can slow the program.
 *
 * Lock order: statusd.lock, then repl.reason_lock.
 */
#ifndef LIBREPL_STATUSD_H
#define LIBREPL_STATUSD_H

#include "err.h"

#define STATUSD_CLIENTS_MAX   16
#define STATUSD_FOLLOWERS_MAX 12 /* of them; for who asks once there is room beside */

struct repl;
struct statusd;

/*
 * Make what the configuration of r asks for: *out is NULL when that is nothing.
 * The socket beside the pool file that "auto" wants is made if it can be; one
 * that is named by its path must be had.
 */
int statusd_new(struct repl *r, struct statusd **out, struct err *e);

/* Start to serve, when r has its keepers. NULL is allowed. */
int statusd_start(struct statusd *s, struct err *e);

/* Ends the thread; the socket and the metrics file are gone. NULL is allowed. */
void statusd_stop(struct statusd *s);

/* In the child of a fork: close the child's descriptors. NULL is allowed. */
void statusd_abandon(struct statusd *s);

/*
 * A replica's state may have changed: those who follow events hear of it, each
 * change in its order. Any thread, without repl.reason_lock; no I/O. NULL is
 * allowed.
 */
void statusd_changed(struct statusd *s, unsigned replica);

#endif
