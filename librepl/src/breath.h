/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * breath - what whoever waits for a replica for long does in between: it looks whether to go on,
 * and lets the target hear from it, which does not bear silence.
 */
#ifndef LIBREPL_BREATH_H
#define LIBREPL_BREATH_H

#include <stdint.h>

#include "err.h"

#define BREATH_NS 20000000ULL /* from one to the next, about */

struct breath {
	int (*take)(void *arg,
		    struct err *e); /* an error ends the wait; NULL: there is nothing to do */
	void *arg;
};

static inline int
breath_take(const struct breath *b, struct err *e)
{
	return b->take ? b->take(b->arg, e) : 0;
}

#endif
