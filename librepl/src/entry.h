/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * entry - a public call is whole: it is no cancellation point, since a thread that ended in it
 * would leave its lane taken, locks held and others waiting for it.
 *
 * ENTRY_WHOLE() stands before the first statement of each such function, and of those that
 * librpmem calls; one may call another.
 */
#ifndef LIBREPL_ENTRY_H
#define LIBREPL_ENTRY_H

#include <pthread.h>

static inline int
entry_begin(void)
{
	int state = PTHREAD_CANCEL_ENABLE;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void
entry_end(const int *state)
{
	(void)pthread_setcancelstate(*state, NULL);
}

#define ENTRY_WHOLE()                                                                              \
	const int entry_state __attribute__((cleanup(entry_end), unused)) = entry_begin()

#endif
