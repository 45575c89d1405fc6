/* SPDX-License-Identifier: BSD-3-Clause */
#include "ownwait.h"

#include <time.h>

#include "clock.h"

#define LOOK_NS 100000000L

/* By the time of day: gcc's thread sanitizer does not know the waits that take another clock. */
static struct timespec
next_look(void)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_NS;
	if (until.tv_nsec >= (long)NS_PER_S) {
		until.tv_sec++;
		until.tv_nsec -= (long)NS_PER_S;
	}
	return until;
}

bool
ownwait_lock(pthread_mutex_t *lock, const _Atomic bool *abandoned)
{
	while (!atomic_load(abandoned)) {
		struct timespec until;

		if (pthread_mutex_trylock(lock) == 0)
			return true;
		until = next_look();
		if (pthread_mutex_timedlock(lock, &until) == 0)
			return true;
	}
	return false;
}

static bool
rwlock_wait(pthread_rwlock_t *lock, int (*try)(pthread_rwlock_t *),
	    int (*by)(pthread_rwlock_t *, const struct timespec *), const _Atomic bool *abandoned)
{
	while (!atomic_load(abandoned)) {
		struct timespec until;

		if (try(lock) == 0)
			return true;
		until = next_look();
		if (by(lock, &until) == 0)
			return true;
	}
	return false;
}

bool
ownwait_rdlock(pthread_rwlock_t *lock, const _Atomic bool *abandoned)
{
	return rwlock_wait(lock, pthread_rwlock_tryrdlock, pthread_rwlock_timedrdlock, abandoned);
}

bool
ownwait_wrlock(pthread_rwlock_t *lock, const _Atomic bool *abandoned)
{
	return rwlock_wait(lock, pthread_rwlock_trywrlock, pthread_rwlock_timedwrlock, abandoned);
}

bool
ownwait_cond(pthread_cond_t *cond, pthread_mutex_t *lock, const _Atomic bool *abandoned)
{
	struct timespec until = next_look();

	if (!atomic_load(abandoned))
		(void)pthread_cond_timedwait(cond, lock, &until);
	return !atomic_load(abandoned);
}

void
ownwait_lock_anew(pthread_mutex_t *lock)
{
	(void)pthread_mutex_init(lock, NULL);
}

bool
ownwait_sem(sem_t *sem, const _Atomic bool *abandoned)
{
	while (!atomic_load(abandoned)) {
		struct timespec until = next_look();

		if (sem_timedwait(sem, &until) == 0)
			return true;
	}
	return false;
}
