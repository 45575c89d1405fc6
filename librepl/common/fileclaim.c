/* SPDX-License-Identifier: BSD-3-Clause */
#include "fileclaim.h"

#include <errno.h>
#include <sys/file.h>
#include <time.h>

#define LOOKS   4
#define LOOK_NS 5000000 /* between them */

int
fileclaim_take(int fd, int how, const char *path, const char *held, struct err *e)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};

	/* Who only looks whether it is held has it for a moment, too. */
	for (unsigned i = 0; i < LOOKS; i++) {
		if (flock(fd, how | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			break;
		if (i + 1 < LOOKS)
			(void)nanosleep(&pause, NULL);
		errno = EWOULDBLOCK;
	}
	if (errno == EWOULDBLOCK)
		return err_set(e, REPL_E_BUSY, "%s is %s", path, held);
	return err_errno(e, err_from_errno(errno), errno, "locking %s", path);
}
