/* SPDX-License-Identifier: BSD-3-Clause */
#include "forks.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint forks;

static void
fork_child(void)
{
	(void)atomic_fetch_add(&forks, 1);
}

static void
begin(void)
{
	(void)pthread_atfork(NULL, NULL, fork_child);
}

unsigned
forks_count(void)
{
	(void)pthread_once(&once, begin);
	return atomic_load_explicit(&forks, memory_order_relaxed);
}
