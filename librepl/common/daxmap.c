/* SPDX-License-Identifier: BSD-3-Clause */
#include "daxmap.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

bool
daxmap_is_device(const char *sysfs, dev_t number)
{
	char path[PATH_MAX], real[PATH_MAX];
	const char *base;

	(void)snprintf(path, sizeof(path), "%s/dev/char/%u:%u/subsystem", sysfs, major(number),
		       minor(number));
	if (!realpath(path, real))
		return false;
	base = strrchr(real, '/');
	return base && strcmp(base, "/dax") == 0;
}

/* A line of the maps; path borrows it. */
struct mapping {
	uintptr_t from, to;
	bool shared;
	dev_t dev; /* and inode: of the file, be it the node of a device */
	ino_t ino;
	const char *path; /* "" if it has none */
};

static bool
mapping_parse(char *line, struct mapping *m)
{
	unsigned long long ino;
	unsigned dev_major, dev_minor;
	char perms[5];
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %x:%x %llu %n", &m->from, &m->to, perms,
		   &dev_major, &dev_minor, &ino, &at) < 6 ||
	    at == 0)
		return false;
	m->shared = strlen(perms) == 4 && perms[3] == 's';
	m->dev = makedev(dev_major, dev_minor);
	m->ino = (ino_t)ino;
	m->path = line + at;
	return true;
}

/*
 * The maps have the node's inode and not the number of its device, so the node is
 * looked up by its name: only if it is the one that was mapped does it tell the number.
 */
static int
mapping_check(const struct mapping *m, const char *sysfs, struct err *e)
{
	const char *name = m->path[0] ? m->path : "memory without a file";
	struct stat st;

	if (!m->shared || m->path[0] != '/')
		return err_set(e, REPL_E_REFUSED, "the pool's mapping is of %s", name);
	if (stat(m->path, &st))
		return err_errno(e, REPL_E_REFUSED, errno, "the pool's mapping is of %s", name);
	if (st.st_dev != m->dev || st.st_ino != m->ino)
		return err_set(e, REPL_E_REFUSED,
			       "the pool's mapping is of %s, which is another file now", name);
	if (!S_ISCHR(st.st_mode) || !daxmap_is_device(sysfs, st.st_rdev))
		return err_set(e, REPL_E_REFUSED,
			       "the pool's mapping is of %s, which is no device DAX", name);
	return 0;
}

int
daxmap_check(const struct daxmap_from *from, const void *mem, size_t len, struct err *e)
{
	uintptr_t at = (uintptr_t)mem, end = at + len;
	FILE *f = fopen(from->maps, "re");
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	if (!f)
		return err_errno(e, REPL_E_REFUSED, errno, "%s", from->maps);
	/* Mappings stand in the order of their addresses. */
	while (!rc && at < end && getline(&line, &room, f) > 0) {
		struct mapping m;

		if (!mapping_parse(line, &m) || m.to <= at)
			continue;
		if (m.from > at)
			break;
		rc = mapping_check(&m, from->sysfs, e);
		at = m.to;
	}
	if (!rc && (at < end || end < (uintptr_t)mem))
		rc = err_set(e, REPL_E_REFUSED, "not all of the pool is mapped");
	free(line);
	(void)fclose(f);
	return rc;
}
