/* SPDX-License-Identifier: BSD-3-Clause */
#include "missedmark.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool
name_of(const char *file, const char *suffix, char name[PATH_MAX])
{
	return snprintf(name, PATH_MAX, "%s%s", file, suffix) < PATH_MAX;
}

bool
missedmark_is(const char *file)
{
	char name[PATH_MAX];

	return name_of(file, MISSEDMARK_SUFFIX, name) && access(name, F_OK) == 0;
}

bool
missedmark_waits(const char *file)
{
	char taken[PATH_MAX];

	return missedmark_is(file) ||
	       (name_of(file, MISSEDMARK_TAKEN_SUFFIX, taken) && access(taken, F_OK) == 0);
}

/* One that was taken before and not answered becomes one with it. */
bool
missedmark_take(const char *file)
{
	char name[PATH_MAX], taken[PATH_MAX];

	if (!name_of(file, MISSEDMARK_SUFFIX, name) ||
	    !name_of(file, MISSEDMARK_TAKEN_SUFFIX, taken))
		return false;
	/* By a system call: librepl-preload.so has a rename() of its own. */
	(void)syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, taken, 0);
	return access(taken, F_OK) == 0 || access(name, F_OK) == 0;
}

void
missedmark_answered(const char *file)
{
	char taken[PATH_MAX];

	if (name_of(file, MISSEDMARK_TAKEN_SUFFIX, taken))
		(void)unlink(taken);
}
