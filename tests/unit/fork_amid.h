/* SPDX-License-Identifier: BSD-3-Clause */
/* fork_amid - forked.c's part for tests of calls that a handler interrupts, and forks. */
#ifndef TESTS_FORK_AMID_H
#define TESTS_FORK_AMID_H

#include "unit.h"

#include <pthread.h>
#include <stdbool.h>

#include "../../librepl/preload/pools_impl.h"

/* A handler forks, and this is the child, which returns to its parent's call. */
static unsigned forks_played;

static inline void
fork_amid(struct pool *p)
{
	forks_played++;
	(void)pthread_rwlock_init(&p->lock, NULL);
	p->r = NULL;
	p->state = POOL_CLOSED;
}

unsigned
pools_forks(void)
{
	return forks_played;
}

bool
pool_unlock(struct pool *p, unsigned since)
{
	return forks_played == since && pthread_rwlock_unlock(&p->lock) == 0;
}

static unsigned locked_played;

void
pool_lock_write(struct pool *p)
{
	locked_played = forks_played;
	(void)pthread_rwlock_wrlock(&p->lock);
}

bool
pool_has_write(void)
{
	return forks_played == locked_played;
}

bool
pool_unlock_write(struct pool *p)
{
	return pool_unlock(p, locked_played);
}

/* Nobody has it, nor has it been let go by who had it not. */
static inline void
is_free(struct pool *p)
{
	assert_int_equal(pthread_rwlock_trywrlock(&p->lock), 0);
	assert_int_equal(pthread_rwlock_unlock(&p->lock), 0);
}

#endif
