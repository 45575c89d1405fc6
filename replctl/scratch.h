/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scratch - pools that a measurement makes on the target and takes away again.
 *
 * A name is noted before its pool is made, so that nothing stays behind an
 * answer that was lost. Making the pools is the caller's.
 */
#ifndef REPLCTL_SCRATCH_H
#define REPLCTL_SCRATCH_H

#include "ctl.h"

#define SCRATCH_MAX 32

struct scratch {
	char prefix[32]; /* "bench-" and 16 random digits */
	char *names[SCRATCH_MAX];
	unsigned count;
};

/* Choose the prefix. All zero needs no init to be cleared. */
int scratch_init(struct scratch *s, struct err *e);

/* The name PREFIX and suffix, which is the scratch's; noted for scratch_clear(). */
int scratch_name(struct scratch *s, const char *suffix, const char **name, struct err *e);

/*
 * Close the pool that c's session has open and remove all; by a new session
 * if this one can't. Keeps an error that c has; what can't be removed is named
 * with the command that does it.
 */
void scratch_clear(struct scratch *s, struct ctl *c);

#endif
