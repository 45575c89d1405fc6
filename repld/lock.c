/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock.h"

#include <errno.h>
#include <sys/file.h>
#include <time.h>

#include "clock.h"

#define RETRY_MS 5U

static bool
lock_wait(int fd, int kind, unsigned timeout_ms)
{
	const struct timespec pause = {.tv_nsec = RETRY_MS * (long)NS_PER_MS};
	uint64_t deadline = clock_deadline(timeout_ms);

	while (flock(fd, kind | LOCK_NB) != 0) {
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
	return lock_wait(fd, LOCK_EX, timeout_ms);
}

bool
lock_take_shared(int fd, unsigned timeout_ms)
{
	return lock_wait(fd, LOCK_SH, timeout_ms);
}

void
lock_drop(int fd)
{
	(void)flock(fd, LOCK_UN);
}
