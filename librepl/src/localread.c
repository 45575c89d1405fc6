/* SPDX-License-Identifier: BSD-3-Clause */
#include "localread.h"

#include <errno.h>
#include <unistd.h>

int
localread(int fd, void *to, size_t len, uint64_t off, size_t *got, struct err *e)
{
	*got = 0;
	while (*got < len) {
		ssize_t n = pread(fd, (uint8_t *)to + *got, len - *got, (off_t)(off + *got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			(void)err_errno(e, REPL_E_IO, errno, "reading the local file");
			/* By the status alone it would be the target's media. */
			return err_because(e, REPL_REASON_LOCAL);
		}
		if (n == 0)
			break;
		*got += (size_t)n;
	}
	return 0;
}

int
localread_short(struct err *e)
{
	(void)err_set(e, REPL_E_IO, "the local file became shorter");
	return err_because(e, REPL_REASON_LOCAL);
}
