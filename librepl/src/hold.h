/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold - a moment in which no call is inside a handle: all lanes are borrowed and the
 * size stays as it is.
 *
 * It has its turn as calls have theirs: those that are inside when it comes are awaited, for as
 * long as a drain may take, and those that come meanwhile wait. The holder is told to hurry
 * when it has held for a quarter of op-timeout, or should have given up waiting, and a call has
 * waited for half of it, or one for seven eighths of it: the flag that it came with becomes
 * REPL_E_TIMEOUT, which ends its waits, so that no call fails because a target is slow.
 */
#ifndef LIBREPL_HOLD_H
#define LIBREPL_HOLD_H

#include "breath.h"
#include "repl_impl.h"

struct hold_wait {
	uint64_t deadline_ns;
	_Atomic int *flag; /* not 0 gives up with that status; the caller's until the release */
	struct breath breath;
};

/*
 * Take the hold by the deadline, at most three quarters of op-timeout from now, and mark in the
 * dirty map of the replica what is pending on the lanes. REPL_E_TIMEOUT: calls were in the way.
 */
int hold_take(struct repl *r, unsigned replica, const struct hold_wait *wait, struct err *e);

void hold_release(struct repl *r);

/* A call has waited for so long for who has the hold, or is about to have it. */
void hold_waited(struct repl *r, uint64_t waited_ns);

#endif
