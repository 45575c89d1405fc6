/* SPDX-License-Identifier: BSD-3-Clause */
/* full_disk - while disk_full is set nothing that is stored in a mapped file can be given space. */
#ifndef TESTS_FULL_DISK_H
#define TESTS_FULL_DISK_H

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool disk_full;

int madvise(void *addr, size_t len, int advice);

int
madvise(void *addr, size_t len, int advice)
{
	if (disk_full && advice == MADV_POPULATE_WRITE) {
		errno = EFAULT;
		return -1;
	}
	return (int)syscall(SYS_madvise, addr, len, advice);
}

#endif
