/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before libc: an allocator whose lock is taken before forks, as allocators
 * do, by what is registered when it is called first, or, LATE, from its constructor.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t size);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void
take(void)
{
	(void)pthread_mutex_lock(&lock);
}

static void
give(void)
{
	(void)pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void
begin(void)
{
	static atomic_bool begun;

	if (!atomic_exchange(&begun, true))
		(void)pthread_atfork(take, give, give);
}

EXPORT void *
malloc(size_t size)
{
	void *at;

#ifndef LATE
	begin();
#endif
	take();
	at = __libc_malloc(size);
	give();
	return at;
}
