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

/* Of one pool: none waits for what is done for another one. */
static struct retry {
	_Atomic int state;
	sem_t bell;
	atomic_bool wanted;
	_Atomic uint64_t since_ns; /* it loads; 0: it does not */
	atomic_bool elsewhere;     /* try() has returned false */
	atomic_uint ended;
	const char *(*load)(unsigned);
	bool (*try)(unsigned, const char *);
} retries[POOLS_MAX];

static void
try_one(struct retry *r)
{
	unsigned pool = (unsigned)(r - retries);
	const char *missing;

	atomic_store(&r->since_ns, now_ns());
	missing = r->load(pool);
	atomic_store(&r->since_ns, 0);
	atomic_store(&r->elsewhere, !r->try(pool, missing));
	(void)atomic_fetch_add(&r->ended, 1);
}

static void *
retry_on(void *arg)
{
	struct retry *r = arg;

	for (;;) {
		while (sem_wait(&r->bell))
			;
		if (atomic_exchange(&r->wanted, false))
			try_one(r);
	}
	return NULL;
}

void
retry_begin(unsigned pool, const char *(*load)(unsigned pool),
	    bool (*try)(unsigned pool, const char *missing))
{
	struct retry *r = &retries[pool];
	int was = RETRY_NONE;

	if (!atomic_compare_exchange_strong(&r->state, &was, RETRY_BEGINS))
		return;
	r->load = load;
	r->try = try;
	atomic_store(&r->since_ns, 0);
	atomic_store(&r->wanted, false);
	/* It is none of the program's. */
	descriptors_begin();
	if (sem_init(&r->bell, 0, 0) == 0 && thread_start_detached(retry_on, r) == 0)
		atomic_store(&r->state, RETRY_THERE);
	else
		atomic_store(&r->state, RETRY_NONE);
}

static bool
loads_for(const struct retry *r, uint64_t patience_ns)
{
	uint64_t since = atomic_load(&r->since_ns);

	return since && now_ns() - since >= patience_ns;
}

enum retry_asked
retry_ask(unsigned pool, uint64_t patience_ns, bool *here)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct retry *r = &retries[pool];
	unsigned before = atomic_load(&r->ended);

	if (atomic_load(&r->state) != RETRY_THERE)
		return RETRY_NOBODY;
	atomic_store(&r->wanted, true);
	(void)sem_post(&r->bell);
	while (atomic_load(&r->ended) == before) {
		/* In a child that a handler has made meanwhile there is none. */
		if (!pools_any() || atomic_load(&r->state) != RETRY_THERE)
			return RETRY_NOBODY;
		if (loads_for(r, patience_ns))
			return RETRY_LOADS;
		(void)nanosleep(&pause, NULL);
	}
	*here = !atomic_load(&r->elsewhere);
	return RETRY_TRIED;
}

void
retry_forked(void)
{
	for (unsigned i = 0; i < POOLS_MAX; i++)
		atomic_store(&retries[i].state, RETRY_NONE);
}
