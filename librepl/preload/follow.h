/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * follow - what the interposed functions do beside the real ones.
 *
 * First local, then remote: what a replica has is in the local pool. A real function may call
 * others that are interposed; between follow_enter() and follow_leave() these calls of its own are
 * not followed, as it will be itself. A signal handler's are, that has interrupted it.
 */
#ifndef PRELOAD_FOLLOW_H
#define PRELOAD_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>

/* There is a pool to follow. */
bool follow_any(void);

/*
 * The range lies in a pool, or this thread has something to drain. Else the real function is
 * enough: programs flush much that is in no pool.
 */
bool follow_concerns(const void *addr, size_t len);

void follow_enter(void);
void follow_leave(void);

/* Where real is, real functions are: it's one of a library, or of this one. */
void follow_real(const void *real);

/* It is a real function's own call that returns to caller. One that ends with it returns to us. */
bool follow_inner(const void *caller);

void follow_flush(const void *addr, size_t len);
void follow_drain(void);

/*
 * The same as follow_flush() behind msync(2), also libpmem's or libpmem2's, which bears a mapping
 * that is longer than its file. pages: whole pages, as it syncs them.
 */
void follow_sync(const void *addr, size_t len, bool pages);

/* The same behind madvise(2), which has made whole pages holes. */
void follow_zeroed(const void *addr, size_t len);

/* After a copy with flags of libpmem's or libpmem2's, which are the same. */
void follow_copy(const void *addr, size_t len, unsigned flags);

#endif
