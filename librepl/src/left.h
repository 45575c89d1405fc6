/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * left - threads of ours that wait for something without a deadline, as a resolver, an agent or a
 * command of ssh's config, and that their callers have left behind.
 *
 * Each attempt of a keeper would leave one more. What they wait for is counted for itself: that
 * another one hangs must not keep a replica away. A child of a fork has none of these threads.
 *
 * Any thread may call these.
 */
#ifndef LIBREPL_LEFT_H
#define LIBREPL_LEFT_H

#include <stdbool.h>

#define LEFT_MAX 16U /* that wait for one thing */

struct left {
	const char *what; /* waits for that; stays until left_remove() */
	struct left *next;
};

/* There are LEFT_MAX of them: not to be tried once more. */
bool left_is_full(const char *what);

/* l is the list's until left_remove(), which the thread calls at its end. */
void left_add(struct left *l);
void left_remove(const struct left *l);

#endif
