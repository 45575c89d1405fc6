/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memroom - how much memory the machine and the control groups of this process leave. Where a
 * pool's space is memory no call fails beyond that: the kernel ends processes, those of other pools
 * among them.
 */
#ifndef COMMON_MEMROOM_H
#define COMMON_MEMROOM_H

#include <stdint.h>

/*
 * Bytes, UINT64_MAX if nothing bounds them that is known. Free swap that the groups may use is
 * among them: pools go there before anybody is ended. What processes need for themselves is not.
 */
uint64_t memroom_bytes(void);

/*
 * The same, by the files of these groups, as in /proc/self/cgroup, below root, on a machine with
 * that, as in /proc/meminfo, and so much swap that is free.
 */
uint64_t memroom_of(const char *groups, const char *root, const char *meminfo, uint64_t swap);

#endif
