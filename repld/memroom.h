/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memroom - how much memory the control groups of this process leave. Where a pool's space is
 * memory no call fails beyond that: the kernel ends processes, those of other pools among them.
 */
#ifndef REPLD_MEMROOM_H
#define REPLD_MEMROOM_H

#include <stdint.h>

/*
 * Bytes, UINT64_MAX if nothing bounds them that is known; also where there is swap, to which pools
 * go before anybody is ended. What processes need for themselves is not in it.
 */
uint64_t memroom_bytes(void);

/* The same, by the files of these groups, as in /proc/self/cgroup, below root. */
uint64_t memroom_of(const char *groups, const char *root);

#endif
