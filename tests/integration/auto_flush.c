/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to be loaded before others: this machine flushes its caches when its power fails. */
#define EXPORT __attribute__((visibility("default")))

int pmem_has_auto_flush(void);

EXPORT int
pmem_has_auto_flush(void)
{
	return 1;
}
