/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loading - whether a thread of the program's is loading a library, as by dlopen(3).
 *
 * The constructors of that run with the dynamic linker's lock held. To open a pool takes libraries,
 * which other threads load and who opens waits for: in a constructor it would wait for ever.
 */
#ifndef PRELOAD_LOADING_H
#define PRELOAD_LOADING_H

#include <stdbool.h>

/* Looks for some seconds at most. When it is over, pools are tried again that were not opened. */
bool loading_now(void);

/* In the child of a fork. */
void loading_forked(void);

#endif
