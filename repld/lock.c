/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include "clock.h"

#define RETRY_MS 5U

/* A byte that no sidecar has: POOL-FORMAT.md, 1.2. */
#define ENTRY_OFF ((off_t)1 << 62)
#define LOOK_MS   20U

static bool
try_exclusive(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static bool
try_shared(int fd)
{
	return flock(fd, LOCK_SH | LOCK_NB) == 0;
}

static bool
lock_wait(int fd, bool (*try)(int fd), unsigned timeout_ms)
{
	const struct timespec pause = {.tv_nsec = RETRY_MS * (long)NS_PER_MS};
	uint64_t deadline = clock_deadline(timeout_ms);

	while (!try(fd)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return false;
		if (clock_left_ms(deadline) == 0) {
			errno = EWOULDBLOCK;
			return false;
		}
		(void)nanosleep(&pause, NULL);
	}
	return true;
}

bool
lock_take(int fd, unsigned timeout_ms)
{
	return lock_wait(fd, try_exclusive, timeout_ms);
}

bool
lock_take_shared(int fd, unsigned timeout_ms)
{
	return lock_wait(fd, try_shared, timeout_ms);
}

void
lock_drop(int fd)
{
	(void)flock(fd, LOCK_UN);
}

/* ---- entering ---- */

static bool
entry_lock(int fd, short type)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = ENTRY_OFF, .l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static bool
is_taken(void)
{
	return errno == EAGAIN || errno == EACCES;
}

/* Before the lock, so that nobody has that and is neither on record nor seen here. */
static bool
try_enter(int fd)
{
	bool seen = entry_lock(fd, F_WRLCK);
	int why;

	if (!seen && is_taken()) {
		errno = EWOULDBLOCK;
		return false;
	}
	if (try_exclusive(fd))
		return true;
	why = errno;
	if (seen)
		lock_entered(fd);
	errno = why;
	return false;
}

bool
lock_enter(int fd, unsigned timeout_ms)
{
	return lock_wait(fd, try_enter, timeout_ms);
}

void
lock_entered(int fd)
{
	(void)entry_lock(fd, F_UNLCK);
}

/* Who tries in vain for the lock is in the way for less than a moment. */
bool
lock_look(int fd)
{
	const struct timespec pause = {.tv_nsec = (long)NS_PER_MS};
	uint64_t deadline = clock_deadline(LOOK_MS);

	while (!entry_lock(fd, F_RDLCK)) {
		if (!is_taken())
			return true;
		if (clock_left_ms(deadline) == 0)
			return false;
		(void)nanosleep(&pause, NULL);
	}
	return true;
}

void
lock_look_end(int fd)
{
	lock_entered(fd);
}
