/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot - the run of this machine, and whether a pool may have lost something since its program
 * opened it: while the machine runs the kernel has all that a killed program has stored.
 */
#ifndef COMMON_BOOT_H
#define COMMON_BOOT_H

#include "generation.h"
#include "sidecar.h"

/* Whether a pool that its program has not closed may lack some of what that has stored. */
enum boot_power {
	BOOT_KEPT,
	BOOT_UNTOLD, /* who opened it recorded no run, or this machine tells none */
	BOOT_CUT,    /* this run of the machine is another one, or a sync has failed */
};

/* The run of this machine, by the kernel; nil if it does not tell. */
void boot_now(struct gen_id *id);

/* No run at all: a sync of the pool has failed, and the kernel may have lost what it could not
 * write. */
void boot_none(struct gen_id *id);

/* Of a pool of this machine, that s tells of. */
enum boot_power boot_power(const struct sidecar *s);

const char *boot_power_name(enum boot_power p); /* "kept", "untold", "cut" */

/* Of an unknown word as if nothing was told. */
enum boot_power boot_power_by_name(const char *name);

#endif
