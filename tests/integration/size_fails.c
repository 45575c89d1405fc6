/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: ftruncate(2) and truncate(2) to SIZE_FAILS bytes fail by an
 * error of the device when the file has that size, if they are called by syscall(2).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define ARGS   6

EXPORT long
syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	const char *size = getenv("SIZE_FAILS");
	long arg[ARGS], rc;
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < ARGS; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	rc = real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (rc != 0 || (number != SYS_ftruncate && number != SYS_truncate) || !size ||
	    strtol(size, NULL, 10) != arg[1])
		return rc;
	errno = EIO;
	return -1;
}
