/* SPDX-License-Identifier: BSD-3-Clause */
#include "filewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

/* The signal is for the thread that writes. */
struct guard {
	sigset_t mask;
	bool pending; /* one that is not ours */
};

static void
guard_enter(struct guard *g)
{
	sigset_t all, pending;

	(void)sigemptyset(&pending);
	(void)sigpending(&pending);
	g->pending = sigismember(&pending, SIGXFSZ) == 1;
	/* All wait: an allocation that is interrupted begins anew. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &g->mask);
}

static void
guard_leave(const struct guard *g, int errnum)
{
	const struct timespec zero = {0, 0};
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGXFSZ);
	if (errnum == EFBIG && !g->pending)
		(void)sigtimedwait(&set, NULL, &zero);
	(void)pthread_sigmask(SIG_SETMASK, &g->mask, NULL);
	errno = errnum;
}

int
filewrite_all(int fd, const void *buf, size_t len, off_t off)
{
	const uint8_t *p = buf;
	struct guard g;
	size_t done = 0;
	int errnum = 0;

	guard_enter(&g);
	while (done < len && !errnum) {
		ssize_t n = pwrite(fd, p + done, len - done, off + (off_t)done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			errnum = EIO;
		else if (errno != EINTR)
			errnum = errno;
	}
	guard_leave(&g, errnum);
	return errnum ? -1 : 0;
}

int
filewrite_allocate(int fd, off_t off, off_t len)
{
	struct guard g;
	int ret;

	guard_enter(&g);
	ret = posix_fallocate(fd, off, len);
	guard_leave(&g, ret);
	return ret;
}
