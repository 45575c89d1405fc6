/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: to open the file $SLOW_OPEN for the first time takes until
 * the file $SLOW_UNTIL is there, 10 s at most. $SLOW_OPEN.slow is when it begins.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PAUSES 1000
#define PAUSE  10000U /* us */

typedef int open_fn(const char *, int, ...);

static open_fn *real;
static atomic_bool begun;

/* Not in a call: that may be while another thread loads a library. */
__attribute__((constructor)) static void
look_up(void)
{
	real = (open_fn *)dlsym(RTLD_NEXT, "open");
}

static void
be_slow(const char *path)
{
	const char *until = getenv("SLOW_UNTIL");
	char slow[4096];

	(void)snprintf(slow, sizeof(slow), "%s.slow", path);
	(void)close(real(slow, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	for (int i = 0; until && i < PAUSES && access(until, F_OK); i++)
		(void)usleep(PAUSE);
}

EXPORT int
open(const char *path, int flags, ...)
{
	const char *slow = getenv("SLOW_OPEN");
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (!real)
		look_up();
	if (slow && strcmp(path, slow) == 0 && !atomic_exchange(&begun, true))
		be_slow(path);
	return real(path, flags, mode);
}
