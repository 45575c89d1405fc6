/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be loaded before others: when stat(2) has found a file of CUT bytes first, the file
 * has only the whole pages of them, as if another thread had just cut it, which stat(2) tells.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PAGE   4096

static atomic_bool done;

EXPORT int
stat(const char *restrict path, struct stat *restrict st)
{
	int (*real)(const char *, struct stat *) = dlsym(RTLD_NEXT, "stat");
	const char *cut = getenv("CUT");
	int rc = real(path, st);

	if (rc != 0 || !cut || strtol(cut, NULL, 10) != st->st_size || atomic_exchange(&done, 1))
		return rc;
	(void)syscall(SYS_truncate, path, st->st_size / PAGE * PAGE);
	return real(path, st);
}
