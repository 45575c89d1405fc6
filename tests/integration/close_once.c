/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: who closes a number that is not open is ended. With more
 * threads it could have been another one's file by then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int
close(int fd)
{
	static const char text[] = "closed what is not open\n";
	int rc = (int)syscall(SYS_close, fd);

	if (rc == 0 || errno != EBADF)
		return rc;
	(void)!write(STDERR_FILENO, text, strlen(text));
	abort();
}
