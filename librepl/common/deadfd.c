/* SPDX-License-Identifier: BSD-3-Clause */
#include "deadfd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

void
deadfd_put(int fd)
{
	int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (dead < 0 || dup3(dead, fd, O_CLOEXEC) < 0)
		(void)close(fd);
	if (dead >= 0)
		(void)close(dead);
}
