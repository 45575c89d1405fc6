/* SPDX-License-Identifier: BSD-3-Clause */
/* What syncs a file by its descriptor, in repld-media: the linker puts it in the calls' place. */
#include <errno.h>

#include "media_survival.h"

int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);

static int
synced(int fd, int rc)
{
	int was = errno;

	if (rc == 0)
		media_synced(fd);
	errno = was;
	return rc;
}

int
__wrap_fsync(int fd)
{
	return synced(fd, __real_fsync(fd));
}

int
__wrap_fdatasync(int fd)
{
	return synced(fd, __real_fdatasync(fd));
}
