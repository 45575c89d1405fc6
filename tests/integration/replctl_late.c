/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replctl_late - replctl, where a new file is used at once by a program that beats replctl to it:
 * the file LATE becomes the record beside it.
 */
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int
renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	const char *late = getenv("LATE");
	char record[PATH_MAX];

	if (syscall(SYS_renameat2, from_at, from, to_at, to, flags))
		return -1;
	(void)snprintf(record, sizeof(record), "%s.repl", to);
	if (late && link(late, record))
		abort();
	return 0;
}
