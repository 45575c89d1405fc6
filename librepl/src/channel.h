/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel - the byte stream to a session process, over SSH (libssh).
 *
 * The host key is always checked against known_hosts; an unknown, changed or revoked
 * one is REPL_E_AUTH with the fingerprint and what to do. Authentication is by
 * agent and key files, as ~/.ssh/config says. First the subsystem "repl" is
 * asked for; where the server has none, the command is executed. One thread
 * at a time uses a channel.
 *
 * Deadlines bound every wait. Where libssh waits inside, for an agent that asks a
 * person to confirm the use of a key, or for what a "Match exec" of ssh's config
 * runs, a thread is left behind that does so (channel_open.c).
 */
#ifndef LIBREPL_CHANNEL_H
#define LIBREPL_CHANNEL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "target.h"

struct channel;

/* Of one connection, which has two numbers: libssh has one of its own. -1 while there is none. */
struct channel_fds {
	_Atomic int own, lent;
};

/* NULL is allowed. */
void channel_fds_tell(struct channel_fds *fds, int own, int lent);

struct channel_options {
	const struct target *target;
	const char *identity;    /* or NULL */
	const char *known_hosts; /* or NULL */
	const char *command;     /* "repld session" */
	/*
	 * Borrowed, or NULL. When *cancel is not 0 any more waits end with that
	 * status within CHANNEL_LOOK_MS.
	 */
	const _Atomic int *cancel;
	struct channel_fds *fds; /* borrowed, or NULL: told there */
};

#define CHANNEL_LOOK_MS 100

int channel_open(const struct channel_options *o, uint64_t deadline_ns, struct channel **out,
		 struct err *e);

/* Waits end by *until too, once that is not 0, within CHANNEL_LOOK_MS; borrowed. NULL: no more. */
void channel_bound(struct channel *c, const _Atomic uint64_t *until);

/* From now on nobody cancels, and the descriptors are told to nobody; no call is under way. */
void channel_detach(struct channel *c);

/* Closes at once; waits for nothing. NULL is allowed. */
void channel_free(struct channel *c);

/*
 * In the child of a fork: its descriptors are given up; the parent's is not touched. A call that it
 * returns to ends soon.
 */
void channel_abandon(struct channel *c);

/* The same of one whose descriptors were told, whatever the parent was about to do with it. */
void channel_fds_abandon(struct channel_fds *fds);

/* All bytes written by the deadline, or an error (TIMEOUT, LOST). */
int channel_write(struct channel *c, const void *data, size_t len, uint64_t deadline_ns,
		  struct err *e);

/*
 * At least one byte. At the end of the stream REPL_E_LOST, with what the
 * remote side wrote to its stderr and its exit status in the text (so "repld:
 * command not found" reaches the user).
 */
int channel_read(struct channel *c, void *buf, size_t size, uint64_t deadline_ns, size_t *got,
		 struct err *e);

/*
 * Bytes that nobody knows, as its own keys are made of: also where the system gives us none
 * ourselves, as behind a filter of system calls. Any thread.
 */
int channel_random(const struct channel *c, void *to, size_t len, struct err *e);

/* The numeric address of the peer (for the data lanes' default); never NULL. */
const char *channel_peer(const struct channel *c);

#endif
