/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FILE.repl-missed (missedmark.h): bytes of the pool were made durable while another program, which
 * is none of the kin, had it open. Who can't open it sets the mark, and tries once more if there
 * was none. Who closes it looks for a mark behind that, and opens the pool once more, since that
 * makes the replicas equal to the file. So one of the two sees the other. Only who closes takes a
 * mark, though each opening does what it asks for: somebody else may be the one who has to see it.
 *
 * By system calls where a function may be one that is followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "missedmark.h"
#include "pools_impl.h"
#include "procself.h"

static bool
is_its(const struct pool *p, const char *name)
{
	struct stat st;

	return stat(name, &st) == 0 && st.st_dev == p->dev && st.st_ino == p->ino;
}

/* By its path, or, where that leads to another one already, by what it was opened as. */
static bool
name_find(const struct pool *p, int fd, char name[PATH_MAX])
{
	char link[64];
	ssize_t n;

	if (realpath(p->path, name) && is_its(p, name))
		return true;
	(void)snprintf(link, sizeof(link), PROCSELF "/fd/%d", fd);
	n = fd < 0 ? -1 : readlink(link, name, PATH_MAX - 1);
	name[n < 0 ? 0 : n] = '\0';
	return n > 0 && is_its(p, name);
}

void
mark_name(struct pool *p, int fd)
{
	unsigned now = atomic_load(&p->name_at), next = 1 - now;

	if (name_find(p, fd, p->names[next])) {
		if (strcmp(p->names[now], p->names[next]) != 0)
			atomic_store(&p->name_at, next);
	} else if (!is_its(p, p->names[now])) {
		p->names[next][0] = '\0';
		atomic_store(&p->name_at, next);
	}
}

const char *
mark_file(const struct pool *p)
{
	const char *name = p->names[atomic_load(&p->name_at)];

	return name[0] ? name : p->path;
}

bool
mark_is_near(struct pool *p)
{
	if (!is_its(p, mark_file(p)))
		mark_name(p, -1);
	return is_its(p, mark_file(p));
}

static void
mark_failed(struct pool *p, const char *file, int errnum)
{
	if (!atomic_exchange(&p->told_mark, true))
		report("%s" MISSEDMARK_SUFFIX
		       ": %s: what is made durable now may be missing on the "
		       "replicas "
		       "when the program that has the pool open closes it",
		       file, strerror(errnum));
}

bool
mark_set(struct pool *p)
{
	char name[PATH_MAX];
	const char *file = mark_file(p);
	int n = snprintf(name, sizeof(name), "%s" MISSEDMARK_SUFFIX, file), fd;

	if (n >= PATH_MAX) {
		mark_failed(p, file, ENAMETOOLONG);
		return false;
	}
	if (access(name, F_OK) == 0)
		return false;
	fd = (int)syscall(SYS_openat, AT_FDCWD, name,
			  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EEXIST)
		mark_failed(p, file, errno);
	if (fd >= 0)
		(void)syscall(SYS_close, fd);
	return fd >= 0;
}
