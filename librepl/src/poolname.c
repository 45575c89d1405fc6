/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolname.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sidecar.h"
#include "text.h"

/* The type of what a link leads to; 0: it is none, or leads nowhere. */
static mode_t
link_type(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && stat(path, &st) == 0
		       ? st.st_mode & S_IFMT
		       : 0;
}

bool
poolname_has_record(const char *file)
{
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s" SIDECAR_SUFFIX, file);

	return n > 0 && n < (int)sizeof(path) && lstat(path, &st) == 0;
}

/* Left where it is it would be believed no more, and nobody would be told. */
static int
check_records(const char *link, const char *real, struct err *e)
{
	char from[PATH_MAX], to[PATH_MAX];

	if (!poolname_has_record(link))
		return 0;
	if (poolname_has_record(real))
		return err_set(e, REPL_E_REFUSED,
			       "pool-file %s is a link: there are both %s" SIDECAR_SUFFIX
			       " and %s" SIDECAR_SUFFIX
			       ": remove the one that is not the program's; the former is that "
			       "of an earlier version",
			       link, link, real);
	if (!text_quote(link, from, sizeof(from)) || !text_quote(real, to, sizeof(to)))
		return err_set(e, REPL_E_REFUSED, "pool-file %s: a name too long", link);
	return err_set(e, REPL_E_REFUSED,
		       "pool-file %s is a link: the record, which an earlier version has kept "
		       "beside that, belongs to its file: mv %s" SIDECAR_SUFFIX
		       " %s" SIDECAR_SUFFIX,
		       link, from, to);
}

int
poolname_resolve(char **file, struct err *e)
{
	char *real;
	int rc;

	if (!*file || link_type(*file) != S_IFREG)
		return 0;
	real = realpath(*file, NULL);
	if (!real)
		return err_errno(e, err_from_errno(errno), errno, "pool-file %s", *file);
	rc = check_records(*file, real, e);
	if (rc) {
		free(real);
		return rc;
	}
	free(*file);
	*file = real;
	return 0;
}

bool
poolname_is_device(const char *path)
{
	mode_t type = link_type(path);

	return type == S_IFCHR || type == S_IFBLK;
}
