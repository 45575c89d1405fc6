/* SPDX-License-Identifier: BSD-3-Clause */
#include "fileclaim.h"

#include <errno.h>
#include <sys/file.h>

int
fileclaim_take(int fd, int how, const char *path, const char *held, struct err *e)
{
	if (flock(fd, how | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return err_set(e, REPL_E_BUSY, "%s is %s", path, held);
	return err_errno(e, err_from_errno(errno), errno, "locking %s", path);
}
