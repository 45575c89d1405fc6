/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold - a moment in which no call is inside a handle: all lanes are borrowed and the
 * size stays as it is.
 *
 * Calls that come meanwhile wait. When one of them has waited for half of op-timeout
 * the holder is told to hurry: the flag that it came with becomes REPL_E_TIMEOUT,
 * which ends its waits, so that no call fails because a target is slow.
 */
#ifndef LIBREPL_HOLD_H
#define LIBREPL_HOLD_H

#include "repl_impl.h"

/*
 * Take the hold by the deadline, at most a quarter of op-timeout from now, and mark in the
 * dirty map of the replica what is pending on the lanes. *flag not 0 gives up with that
 * status; it is the caller's until the release. REPL_E_TIMEOUT: calls were in the way.
 */
int hold_take(struct repl *r, unsigned replica, uint64_t deadline_ns, _Atomic int *flag,
	      struct err *e);

void hold_release(struct repl *r);

/* Somebody has waited for long: whoever has the hold should end it. */
void hold_hurry(struct repl *r);

#endif
