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

static bool
is_there(const char *file, const char *suffix)
{
	char name[PATH_MAX];

	return name_of(file, suffix, name) && access(name, F_OK) == 0;
}

/* By a system call: librepl-preload.so has a rename() of its own. */
static void
becomes_taken(const char *file, const char *suffix)
{
	char name[PATH_MAX], taken[PATH_MAX];

	if (name_of(file, suffix, name) && name_of(file, MISSEDMARK_TAKEN_SUFFIX, taken))
		(void)syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, taken, 0);
}

bool
missedmark_is(const char *file)
{
	return is_there(file, MISSEDMARK_SUFFIX);
}

bool
missedmark_waits(const char *file)
{
	return missedmark_is(file) || is_there(file, MISSEDMARK_TAKEN_SUFFIX) ||
	       is_there(file, MISSEDMARK_TAKEN_BEFORE);
}

/* One that was taken before and not answered becomes one with it. */
bool
missedmark_take(const char *file)
{
	becomes_taken(file, MISSEDMARK_TAKEN_BEFORE);
	becomes_taken(file, MISSEDMARK_SUFFIX);
	return missedmark_waits(file);
}

void
missedmark_answered(const char *file)
{
	char taken[PATH_MAX];

	if (name_of(file, MISSEDMARK_TAKEN_SUFFIX, taken))
		(void)unlink(taken);
}
