/* SPDX-License-Identifier: BSD-3-Clause */
#include "resize.h"

#include <errno.h>
#include <stdint.h>

#include "pools.h"

int
resize_by(const struct stat *before, off_t len, int (*call)(const void *), const void *arg)
{
	if (len >= 0 && len < before->st_size)
		return pools_shrink(before, (uint64_t)len, call, arg);
	return call(arg);
}

void
resized(const struct stat *before, off_t len)
{
	struct stat now = *before;
	off_t was = before->st_size;

	now.st_size = len;
	if (was != len && pools_any()) {
		pools_resized(&now);
		pools_changed(before, (uint64_t)(was < len ? was : len),
			      (uint64_t)(was < len ? len : was));
	}
}

off_t
resize_left(const struct stat *before, int fd, int dir, const char *path)
{
	int saved_errno = errno;
	struct stat now;
	int rc = fd < 0 ? fstatat(dir, path, &now, 0) : fstat(fd, &now);

	errno = saved_errno;
	if (rc || now.st_ino != before->st_ino || now.st_dev != before->st_dev)
		return before->st_size;
	return now.st_size;
}
