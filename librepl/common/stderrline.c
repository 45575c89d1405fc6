/* SPDX-License-Identifier: BSD-3-Clause */
#include "stderrline.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROOM_MS 100 /* for a reader that is only slow */

static struct stat first; /* what it was when the program began */
static bool was_open;     /* an unlinked file has no links, either */

void
stderrline_begin(void)
{
	was_open = fstat(STDERR_FILENO, &first) == 0;
}

/* systemd says which socket is the journal's, in JOURNAL_STREAM. */
static bool
is_journal(const struct stat *now)
{
	const char *text = secure_getenv("JOURNAL_STREAM");
	char own[64];

	(void)snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)now->st_dev, (uintmax_t)now->st_ino);
	return text && S_ISSOCK(now->st_mode) && strcmp(text, own) == 0;
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
	if (is_journal(&now))
		return true;
	return S_ISCHR(now.st_mode) ||
	       (!S_ISSOCK(now.st_mode) && (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY);
}

/* Of a pipe it is that for a page. With an RLIMIT_NOFILE of 0 poll(2) does not work. */
static bool
has_room(void)
{
	struct pollfd one = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct timeval limit = {.tv_usec = ROOM_MS * 1000};
	int n = poll(&one, 1, ROOM_MS);
	fd_set all;

	if (n >= 0 || errno != EINVAL)
		return n == 1;
	FD_ZERO(&all);
	FD_SET(STDERR_FILENO, &all);
	return select(STDERR_FILENO + 1, NULL, &all, NULL, &limit) == 1;
}

void
stderrline_put(const char *line, size_t len)
{
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
	if (has_room() && write(STDERR_FILENO, line, len) < 0 &&
	    (errno == EPIPE || errno == EFBIG)) {
		by = errno == EPIPE ? SIGPIPE : SIGXFSZ;
		(void)sigemptyset(&own);
		(void)sigaddset(&own, by);
		if (sigismember(&pending, by) != 1)
			(void)sigtimedwait(&own, NULL, &zero);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}
