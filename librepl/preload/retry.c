/* SPDX-License-Identifier: BSD-3-Clause */
#include "retry.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "descriptors.h"
#include "pools_impl.h"
#include "thread.h"

#define PAUSE_NS 1000000L

enum retry_state {
	RETRY_NONE,
	RETRY_BEGINS,
	RETRY_THERE,
};

static _Atomic int state;
static bool (*attempt)(unsigned);
static sem_t bell;
static atomic_uint wanted;    /* a bit for each pool */
static atomic_uint elsewhere; /* ... of which try() has returned false */
static atomic_uint ended[POOLS_MAX];

static void
try_one(unsigned pool)
{
	if (attempt(pool))
		(void)atomic_fetch_and(&elsewhere, ~(1U << pool));
	else
		(void)atomic_fetch_or(&elsewhere, 1U << pool);
	(void)atomic_fetch_add(&ended[pool], 1);
}

static void *
retry_on(void *arg)
{
	unsigned todo;

	(void)arg;
	for (;;) {
		while (sem_wait(&bell))
			;
		todo = atomic_exchange(&wanted, 0);
		for (unsigned i = 0; i < pool_count; i++) {
			if (todo & 1U << i)
				try_one(i);
		}
	}
	return NULL;
}

void
retry_begin(bool (*try)(unsigned pool))
{
	int was = RETRY_NONE;

	if (!atomic_compare_exchange_strong(&state, &was, RETRY_BEGINS))
		return;
	attempt = try;
	atomic_store(&wanted, 0);
	/* It is none of the program's. */
	descriptors_begin();
	if (sem_init(&bell, 0, 0) == 0 && thread_start_detached(retry_on, NULL) == 0)
		atomic_store(&state, RETRY_THERE);
	else
		atomic_store(&state, RETRY_NONE);
}

bool
retry_ask(unsigned pool, bool *here)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	unsigned before = atomic_load(&ended[pool]);

	if (atomic_load(&state) != RETRY_THERE)
		return false;
	(void)atomic_fetch_or(&wanted, 1U << pool);
	(void)sem_post(&bell);
	while (atomic_load(&ended[pool]) == before) {
		/* In a child that a handler has made meanwhile there is none. */
		if (!pools_any() || atomic_load(&state) != RETRY_THERE)
			return false;
		(void)nanosleep(&pause, NULL);
	}
	*here = !(atomic_load(&elsewhere) & 1U << pool);
	return true;
}

void
retry_forked(void)
{
	atomic_store(&state, RETRY_NONE);
}
