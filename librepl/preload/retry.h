/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retry - a pool that could not be opened is tried again by a thread of our own, one for each.
 *
 * To open takes memory, and the one who flushes may be a signal handler that has interrupted
 * malloc(3): it would wait for its own thread. So an opening that fails begins a thread for the
 * next ones, and who flushes when one is due asks for it and waits.
 *
 * To load what an opening needs waits for who loads another library, and the constructor of that
 * may be the one who flushes. So nobody waits for that without an end.
 */
#ifndef PRELOAD_RETRY_H
#define PRELOAD_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The thread is there, if it can be. It calls load(), and then try() with what that has returned,
 * which is false as of pool_ready().
 */
void retry_begin(unsigned pool, const char *(*load)(unsigned pool),
		 bool (*try)(unsigned pool, const char *missing));

enum retry_asked {
	RETRY_TRIED,  /* *here is what try() has returned */
	RETRY_LOADS,  /* it has not come to that for so long: load() waits for who asks, perhaps */
	RETRY_NOBODY, /* there is no such thread, the caller has to do it */
};

/* It tries that pool. Any signal handler may ask. */
enum retry_asked retry_ask(unsigned pool, uint64_t patience_ns, bool *here);

/* In the child of a fork. */
void retry_forked(void);

#endif
