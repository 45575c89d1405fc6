/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retry - a pool that could not be opened is tried again by a thread of our own.
 *
 * To open takes memory, and the one who flushes may be a signal handler that has interrupted
 * malloc(3): it would wait for its own thread. So an opening that fails begins a thread for the
 * next ones, and who flushes when one is due asks for it and waits.
 */
#ifndef PRELOAD_RETRY_H
#define PRELOAD_RETRY_H

#include <stdbool.h>

/* The thread is there, if it can be. try: false as of pool_ready(). */
void retry_begin(bool (*try)(unsigned pool));

/*
 * It has tried; *here is what try() has returned. False: there is no such thread, the caller has to
 * do it. Any signal handler may ask.
 */
bool retry_ask(unsigned pool, bool *here);

/* In the child of a fork. */
void retry_forked(void);

#endif
