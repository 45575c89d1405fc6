/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daxmap - which devices are device DAX, and whether a range of memory is all
 * mapped from such: its pages are the device's for as long as they are mapped,
 * since it has no holes to be punched, nothing to be truncated and no cache to
 * be written back.
 */
#ifndef COMMON_DAXMAP_H
#define COMMON_DAXMAP_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"
#include "procself.h"

/* Where the kernel tells: DAXMAP_SELF, or a copy of it in a test. */
struct daxmap_from {
	const char *maps;  /* as /proc/thread-self/maps */
	const char *sysfs; /* as /sys */
};

#define DAXMAP_SELF ((struct daxmap_from){.maps = PROCSELF "/maps", .sysfs = "/sys"})

/* Whether the character device of that number is one of device DAX. */
bool daxmap_is_device(const char *sysfs, dev_t number);

/*
 * 0 if each byte of the range lies in a shared mapping of a device-DAX device, as of
 * this moment; else REPL_E_REFUSED, and the text says what was found. No assumption
 * is made of a device whose name leads elsewhere now.
 */
int daxmap_check(const struct daxmap_from *from, const void *mem, size_t len, struct err *e);

#endif
