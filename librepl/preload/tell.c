/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A line to standard error, of which a program that says nothing there itself may not know
 * whether anybody reads it, nor that it is there: who has closed it gets its number for a file
 * of his own, or a connection. Behind a pipe whose reader is gone, or at the limit for the size of
 * files (RLIMIT_FSIZE), the kernel would end the program by a signal: the line is lost, and that is
 * all.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pools_impl.h"

#define ROOM_MS 100 /* for a reader that is only slow */

static struct stat first; /* what it was when the program began */
static bool was_open;     /* an unlinked file has no links, either */

void
tell_begin(void)
{
	was_open = fstat(STDERR_FILENO, &first) == 0;
}

/* What has taken its place is where words go, if it can't be read, as a log, or is a terminal. */
static bool
is_for_words(void)
{
	struct stat now;

	if (fstat(STDERR_FILENO, &now))
		return false;
	if (was_open && now.st_dev == first.st_dev && now.st_ino == first.st_ino)
		return true;
	return S_ISCHR(now.st_mode) ||
	       (!S_ISSOCK(now.st_mode) && (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY);
}

void
tell(const char *line, size_t len)
{
	struct pollfd to = {.fd = STDERR_FILENO, .events = POLLOUT};
	const struct timespec zero = {0, 0};
	sigset_t both, before, pending, own;
	int by;

	if (!is_for_words())
		return;
	(void)sigemptyset(&pending);
	(void)sigpending(&pending);
	(void)sigemptyset(&both);
	(void)sigaddset(&both, SIGPIPE);
	(void)sigaddset(&both, SIGXFSZ);
	(void)pthread_sigmask(SIG_BLOCK, &both, &before);
	/* Of a pipe it says that there is room for a page. */
	if (poll(&to, 1, ROOM_MS) == 1 && write(STDERR_FILENO, line, len) < 0 &&
	    (errno == EPIPE || errno == EFBIG)) {
		by = errno == EPIPE ? SIGPIPE : SIGXFSZ;
		(void)sigemptyset(&own);
		(void)sigaddset(&own, by);
		if (sigismember(&pending, by) != 1)
			(void)sigtimedwait(&own, NULL, &zero);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}
