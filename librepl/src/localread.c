/* SPDX-License-Identifier: BSD-3-Clause */
#include "localread.h"

#include <errno.h>
#include <unistd.h>

int
localread(int fd, void *to, size_t len, uint64_t off, struct err *e)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, (uint8_t *)to + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			(void)err_errno(e, REPL_E_IO, errno, "reading the local file");
		if (n == 0)
			(void)err_set(e, REPL_E_IO, "the local file became shorter");
		/* By the status alone it would be the target's media. */
		if (n <= 0)
			return err_because(e, REPL_REASON_LOCAL);
		done += (size_t)n;
	}
	return 0;
}
