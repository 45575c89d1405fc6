/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolparts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "poolpath.h"

bool
poolparts_begins(int fd, const struct stat *st)
{
	char text[sizeof(POOLSET_SIGNATURE)];
	ssize_t n;

	if (st->st_size > POOLSET_FILE_MAX)
		return false;
	n = pread(fd, text, sizeof(text), 0);
	return n > 0 && poolset_begins(text, (size_t)n);
}

/* ---- names ---- */

/* What follows dir and its '/' in path, or NULL. */
static const char *
path_behind(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	while (len > 1 && dir[len - 1] == '/')
		len--;
	if (strncmp(path, dir, len) != 0 || path[len] != '/')
		return NULL;
	path += len;
	return path + strspn(path, "/");
}

static int
part_name(struct poolpart *part, const struct poolset_part *line, const char *dir, struct err *e)
{
	const char *path = line->path;
	char real[PATH_MAX];

	if (path[0] == '/') {
		path = path_behind(line->path, dir);
		if (!path && realpath(dir, real))
			path = path_behind(line->path, real);
	}
	if (!path)
		return err_set(e, REPL_E_REFUSED,
			       "line %u: '%.200s' is not beneath the pool directory '%s'",
			       line->line, line->path, dir);
	if (pool_name_check(path, e))
		return err_prefix(e, "line %u", line->line);
	(void)snprintf(part->name, sizeof(part->name), "%.*s", TARGET_POOL_MAX, path);
	return 0;
}

static int
names_check(const struct poolparts *p, const struct poolset *set, const char *name, struct err *e)
{
	for (unsigned i = 0; i < p->count; i++) {
		bool twice = strcmp(p->part[i].name, name) == 0;

		for (unsigned k = 0; k < i; k++)
			twice |= strcmp(p->part[i].name, p->part[k].name) == 0;
		if (twice)
			return err_set(e, REPL_E_INVAL,
				       "line %u: '%s' is there already, or the set file itself",
				       set->parts[i].line, p->part[i].name);
	}
	return 0;
}

static int
text_read(int fd, char *text, size_t size, size_t *len, struct err *e)
{
	*len = 0;
	while (*len < size) {
		ssize_t n = pread(fd, text + *len, size - *len, (off_t)*len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, REPL_E_IO, errno, "reading the set file");
		if (n == 0)
			break;
		*len += (size_t)n;
	}
	return 0;
}

static int
parts_take(struct poolparts *p, const struct poolset *set, const char *dir, const char *name,
	   struct err *e)
{
	int rc = 0;

	p->headers = set->headers;
	p->size = poolset_size(set);
	for (unsigned i = 0; !rc && i < set->count; i++) {
		struct poolpart *part = &p->part[p->count++];

		part->fd = -1;
		part->file_size = set->parts[i].size;
		part->off = poolset_part_off(set, i);
		part->len = poolset_part_len(set, i);
		rc = part_name(part, &set->parts[i], dir, e);
	}
	return rc ? rc : names_check(p, set, name, e);
}

int
poolparts_read(int dirfd, const char *dir, int fd, const char *name, struct poolparts **out,
	       struct err *e)
{
	struct poolparts *p = calloc(1, sizeof(*p));
	struct poolset *set = malloc(sizeof(*set));
	char *text = malloc(POOLSET_FILE_MAX + 1U);
	size_t len = 0;
	int rc;

	(void)dirfd;
	*out = NULL;
	if (!p || !set || !text) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
		goto out;
	}
	rc = text_read(fd, text, POOLSET_FILE_MAX + 1U, &len, e);
	if (!rc)
		rc = poolset_parse(text, len, set, e);
	if (!rc)
		rc = parts_take(p, set, dir, name, e);
out:
	free(text);
	free(set);
	if (rc) {
		poolparts_free(p);
		return err_prefix(e, "pool set '%s'", name);
	}
	*out = p;
	return 0;
}

void
poolparts_free(struct poolparts *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->count; i++) {
		if (p->part[i].fd >= 0)
			(void)close(p->part[i].fd);
	}
	free(p);
}

/* ---- files ---- */

static int
part_open(struct poolpart *part, int dirfd, const char *name, int flags, struct stat *st,
	  struct err *e)
{
	struct pool_place place;
	int rc = pool_place_open(dirfd, part->name, false, &place, e);

	if (!rc) {
		rc = pool_file_open(&place, place.leaf, part->name, flags, &part->fd, st, e);
		pool_place_close(&place);
	}
	if (rc == REPL_E_NOT_FOUND)
		return err_set(e, REPL_E_CORRUPT, "pool set '%s': its part '%s' is missing", name,
			       part->name);
	if (rc)
		return err_prefix(e, "pool set '%s'", name);
	if ((uint64_t)st->st_size != part->file_size)
		return err_set(e, REPL_E_CORRUPT,
			       "pool set '%s': its part '%s' has %llu bytes, the set file says "
			       "%llu",
			       name, part->name, (unsigned long long)st->st_size,
			       (unsigned long long)part->file_size);
	return 0;
}

int
poolparts_open(struct poolparts *p, int dirfd, const char *name, int flags, struct err *e)
{
	struct stat first, st;
	int rc = 0;

	for (unsigned i = 0; !rc && i < p->count; i++) {
		rc = part_open(&p->part[i], dirfd, name, flags, &st, e);
		if (i == 0)
			first = st;
		/* What is probed of the first part must hold for all. */
		else if (!rc && st.st_dev != first.st_dev)
			rc = err_set(e, REPL_E_REFUSED,
				     "pool set '%s': parts '%s' and '%s' are on different file "
				     "systems",
				     name, p->part[0].name, p->part[i].name);
	}
	return rc;
}

int
poolparts_absent(const struct poolparts *p, int dirfd, const char *name, struct err *e)
{
	for (unsigned i = 0; i < p->count; i++) {
		struct pool_place place;
		struct stat st;
		bool there;
		int rc = pool_place_open(dirfd, p->part[i].name, false, &place, e);

		if (rc == REPL_E_NOT_FOUND) {
			err_clear(e);
			continue;
		}
		if (rc)
			return err_prefix(e, "pool set '%s'", name);
		there = fstatat(place.dir, place.leaf, &st, AT_SYMLINK_NOFOLLOW) == 0;
		pool_place_close(&place);
		if (there)
			return err_set(e, REPL_E_EXISTS,
				       "pool set '%s': there is %s by the name of its part '%s'; "
				       "nothing is replaced: move it away",
				       name, file_kind(st.st_mode), p->part[i].name);
	}
	return 0;
}

static int
part_unlink(const struct poolpart *part, int dirfd, struct err *e)
{
	struct pool_place place;
	int rc = pool_place_open(dirfd, part->name, false, &place, e);

	if (rc == REPL_E_NOT_FOUND) {
		err_clear(e);
		return 0;
	}
	if (rc)
		return rc;
	if ((unlinkat(place.dir, place.leaf, 0) != 0 && errno != ENOENT) || fsync(place.dir) != 0)
		rc = err_errno(e, err_from_errno(errno), errno, "remove part '%s'", part->name);
	pool_place_close(&place);
	if (!rc)
		pool_place_prune(dirfd, part->name);
	return rc;
}

int
poolparts_remove(const struct poolparts *p, int dirfd, const char *name, struct err *e)
{
	int rc = 0;

	for (unsigned i = p->count; !rc && i > 0; i--)
		rc = part_unlink(&p->part[i - 1], dirfd, e);
	return rc ? err_prefix(e, "pool set '%s'", name) : 0;
}

int
poolparts_map(const struct poolparts *p, const char *path, uint64_t size, bool write,
	      struct pmem_map **out, struct err *e)
{
	const struct poolpart *part = &p->part[0];
	uint64_t left = size, len = part->len < left ? part->len : left;
	struct pmem_map *map = NULL;
	int rc = pmem_map_new_at(part->fd, path, part->off, len, size, write, &map, e);

	for (unsigned i = 1; !rc && (left -= len) > 0 && i < p->count; i++) {
		part = &p->part[i];
		len = part->len < left ? part->len : left;
		rc = pmem_map_extend(map, part->fd, part->off, len, e);
		if (!rc)
			pmem_map_set_size(map, pmem_map_size(map) + len);
	}
	if (rc)
		pmem_map_free(map);
	else
		*out = map;
	return rc;
}
