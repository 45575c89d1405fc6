/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api - librepl, loaded with the first pool that is opened: a process that
 * opens none bears neither the library nor those that it brings along.
 */
#ifndef PRELOAD_API_H
#define PRELOAD_API_H

#include <stdbool.h>
#include <time.h>

#include <librepl.h>

#include "repl_prepare.h"

/* X(name): what is used of librepl, of what it has for this library alone, and of librepl.h. */
#define API_PRIVATE(X)                                                                             \
	X(repl_prepare)                                                                            \
	X(repl_open_run)

#define API_PUBLIC(X)                                                                              \
	X(repl_errormsg)                                                                           \
	X(repl_config_new)                                                                         \
	X(repl_config_load)                                                                        \
	X(repl_config_free)                                                                        \
	X(repl_config_add_target)                                                                  \
	X(repl_config_set)                                                                         \
	X(repl_close)                                                                              \
	X(repl_abandon)                                                                            \
	X(repl_lanes)                                                                              \
	X(repl_replicas)                                                                           \
	X(repl_stat)                                                                               \
	X(repl_flush)                                                                              \
	X(repl_drain)                                                                              \
	X(repl_commit)                                                                             \
	X(repl_grow)

struct api {
#define API_MEMBER(name) __typeof__(&name) name;
	API_PRIVATE(API_MEMBER)
	API_PUBLIC(API_MEMBER)
#undef API_MEMBER
};

extern struct api api;

/*
 * There are pools, and no thread yet. OpenSSL, where the program has that, is not to clean itself
 * up at exit: librepl says so too late for one that uses it before.
 */
void api_begin(void);

/* Nothing is left to be loaded for an opening. */
bool api_loaded(void);

/*
 * NULL, or why librepl can't be used. alone: the program has no thread that loads a library
 * meanwhile, and what repl_open() loads it may load beside connecting. Else it is loaded now, and
 * no pool's lock is to be held: a library's constructor may wait for that, with the linker's.
 */
const char *api_load(bool alone);

/* A repl_open() has succeeded, and by that loaded the rest. */
void api_opened(void);

/* Around fork(2), in the parent: whether the load of another thread has ended by then. */
bool api_fork_begin(const struct timespec *end);
void api_fork_end(void);

/* In the child of a fork. */
void api_forked(void);

#endif
