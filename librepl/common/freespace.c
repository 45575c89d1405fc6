/* SPDX-License-Identifier: BSD-3-Clause */
#include "freespace.h"

#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "memroom.h"

#define LITTLE (1U << 20)

bool
freespace_is_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static uint64_t
free_blocks(int fd)
{
	struct statvfs vfs;
	uint64_t bytes;

	/* A file system without a bound of its own says it has no blocks at all. */
	if (fstatvfs(fd, &vfs) != 0 || vfs.f_blocks == 0 ||
	    __builtin_mul_overflow((uint64_t)vfs.f_bavail, (uint64_t)vfs.f_frsize, &bytes))
		return UINT64_MAX;
	return bytes;
}

uint64_t
freespace_bytes(int fd, uint64_t wanted)
{
	uint64_t bytes = free_blocks(fd), room = bytes;

	if (wanted > LITTLE && freespace_is_memory(fd))
		room = memroom_bytes();
	return room < bytes ? room : bytes;
}
