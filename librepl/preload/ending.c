/* SPDX-License-Identifier: BSD-3-Clause */
#include "pools.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "pools_impl.h"

bool
pool_is_over(const struct pool *p)
{
	pid_t by = atomic_load(&p->over_by);

	return by && by != gettid();
}

static void
pools_close(void)
{
	for (unsigned i = 0; i < pool_count; i++) {
		pool_leave(&pools[i]);
		pool_lock_write(&pools[i]);
		pool_close_locked(&pools[i]);
		(void)pool_unlock_write(&pools[i]);
	}
}

/* What this thread has opened since; who else has opened one goes on with it until the end. */
static void
pools_close_own(void)
{
	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		if (!pool_trylock_write(p))
			continue;
		if (p->state == POOL_OPEN && p->opener == gettid())
			pool_close_locked(p);
		(void)pool_unlock_write(p);
	}
}

static void
pools_close_calmly(void)
{
	struct calm calm = calm_begin();

	pools_close();
	calm_end(calm);
	/* What a signal handler has flushed meanwhile has opened its pool once more. */
	calm = calm_begin();
	pools_close_own();
	calm_end(calm);
}

/* False: nothing may be done at exit. */
static bool
may_end(void)
{
	(void)pools_any();
	/* The parent goes on with the handles. */
	if (is_sharing())
		return false;
	if (!pools_busy())
		calm_end(calm_begin());
	return !pools_busy();
}

/*
 * A program that ends without unmapping closes its pools all the same. Not as a
 * destructor: librepl was loaded later and would be gone. Who unmaps in a
 * handler of its own that runs after this one opens the pool once more.
 */
static void
pools_end(void)
{
	if (may_end())
		pools_close_calmly();
	else if (!is_sharing())
		late_lost_all();
}

void
pools_end_openssl(void)
{
	if (may_end())
		pools_close_calmly();
}

/*
 * The last of all handlers, but for those of libraries that were there before this one. Behind it
 * the libraries that an opening needs take themselves apart, while other threads may go on: these
 * find the pools closed from here on.
 */
static void
pools_end_last(void)
{
	struct calm calm;

	if (!may_end())
		return;
	calm = calm_begin();
	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		pool_lock_write(p);
		if (p->state == POOL_OPEN)
			pool_close_locked(p);
		atomic_store(&p->over_by, gettid());
		(void)pool_unlock_write(p);
	}
	calm_end(calm);
}

/* Others may make more durable, and each opening compares the whole pool: none is closed yet. */
static void
pools_end_begins(void)
{
	struct calm calm;

	if (!may_end())
		return;
	calm = calm_begin();
	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		pool_leave(p);
		pool_lock_write(p);
		if (p->state == POOL_OPEN)
			pool_commit_last(p);
		(void)pool_unlock_write(p);
	}
	calm_end(calm);
}

void
register_end(void)
{
	(void)atexit(pools_end);
}

void
register_end_begins(void)
{
	(void)atexit(pools_end_begins);
}

void
ending_begin(void)
{
	(void)atexit(pools_end_last);
}
