/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api - librepl, loaded with the first pool that is opened: a process that
 * opens none bears neither the library nor those that it brings along.
 */
#ifndef PRELOAD_API_H
#define PRELOAD_API_H

#include <librepl.h>

/* X(name): what is used of librepl.h. */
#define API_TABLE(X)                                                                               \
	X(repl_errormsg)                                                                           \
	X(repl_config_new)                                                                         \
	X(repl_config_load)                                                                        \
	X(repl_config_free)                                                                        \
	X(repl_config_add_target)                                                                  \
	X(repl_config_set)                                                                         \
	X(repl_open)                                                                               \
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
	API_TABLE(API_MEMBER)
#undef API_MEMBER
};

extern struct api api;

/*
 * There are pools, and no thread yet. OpenSSL, where the program has that, is not to clean itself
 * up at exit: librepl says so too late for one that uses it before.
 */
void api_begin(void);

/* NULL, or why librepl can't be used. */
const char *api_load(void);

#endif
