/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ownwait - waiting for another thread of the process, in a call that a signal handler may
 * interrupt which forks. A child that abandons the handle and returns to the call would wait for
 * ever: whoever has the lock, or was to wake it, is not there.
 *
 * Each returns false in that child, soon and without what it was to wait for.
 */
#ifndef LIBREPL_OWNWAIT_H
#define LIBREPL_OWNWAIT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

bool ownwait_lock(pthread_mutex_t *lock, const _Atomic bool *abandoned);

bool ownwait_rdlock(pthread_rwlock_t *lock, const _Atomic bool *abandoned);
bool ownwait_wrlock(pthread_rwlock_t *lock, const _Atomic bool *abandoned);

/* Once, as pthread_cond_wait(): with the lock, also where it returns false. */
bool ownwait_cond(pthread_cond_t *cond, pthread_mutex_t *lock, const _Atomic bool *abandoned);

/*
 * In that child, when *abandoned is set: a wait for a condition that was interrupted has its lock
 * when it ends, and whoever of the parent's threads had it does not give it back. For a lock that
 * is neither given up nor taken there any more.
 */
void ownwait_lock_anew(pthread_mutex_t *lock);

bool ownwait_sem(sem_t *sem, const _Atomic bool *abandoned);

#endif
