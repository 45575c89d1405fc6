/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread - a thread of the library's own in a program that is not ours. All signals are blocked in
 * it: they are the program's. Its stack is large enough for libssh, libfabric and the resolver,
 * whatever the program has made the default for its own threads. Of the thread that starts it it
 * has no real-time policy, and no binding to CPUs that is closer than that of the process's first
 * thread.
 */
#ifndef COMMON_THREAD_H
#define COMMON_THREAD_H

#include <pthread.h>

/* 0 or an errno. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/* One that nobody joins. */
int thread_start_detached(void *(*run)(void *), void *arg);

#endif
