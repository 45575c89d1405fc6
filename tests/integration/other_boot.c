/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: while the file $OTHER_BOOT is there it is the kernel's UUID
 * of this run of the machine, as if that had been started anew.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef int open_fn(const char *, int, ...);

EXPORT int
open(const char *path, int flags, ...)
{
	open_fn *real = (open_fn *)dlsym(RTLD_NEXT, "open");
	const char *other = getenv("OTHER_BOOT");
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (other && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0 &&
	    access(other, F_OK) == 0)
		path = other;
	return real(path, flags, mode);
}
