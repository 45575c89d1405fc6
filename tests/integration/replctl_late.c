/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replctl_late - replctl, where a file that is renamed over another is used at once by a program
 * that beats replctl to it: the file LATE becomes the record beside it.
 */
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int
rename(const char *from, const char *to)
{
	const char *late = getenv("LATE");
	char record[PATH_MAX];

	if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0))
		return -1;
	(void)snprintf(record, sizeof(record), "%s.repl", to);
	if (late && link(late, record))
		abort();
	return 0;
}
