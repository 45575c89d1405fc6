/* SPDX-License-Identifier: BSD-3-Clause */
#include "filewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* The signals are for the thread that writes. */
struct guard {
	sigset_t mask;
	sigset_t pending; /* those are not ours */
};

static void
guard_enter(struct guard *g)
{
	sigset_t all;

	(void)sigemptyset(&g->pending);
	(void)sigpending(&g->pending);
	/* All wait: an allocation that is interrupted begins anew. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &g->mask);
}

static void
guard_leave(const struct guard *g, int errnum)
{
	const struct timespec zero = {0, 0};
	int by = errnum == EPIPE ? SIGPIPE : SIGXFSZ;
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, by);
	if ((errnum == EFBIG || errnum == EPIPE) && sigismember(&g->pending, by) != 1)
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

const char *
filewrite_unable(const char *dir)
{
	struct statfs fs;

	return statfs(dir, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC ? "hugetlbfs" : NULL;
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

void
filewrite_line(int fd, const char *line, size_t len)
{
	struct guard g;

	guard_enter(&g);
	guard_leave(&g, write(fd, line, len) < 0 ? errno : 0);
}
