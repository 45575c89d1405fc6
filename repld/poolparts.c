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
#include "poolstore.h"

int
poolparts_begins(int fd, const struct stat *st, const char *name, bool *begins, struct err *e)
{
	char text[sizeof(POOLSET_SIGNATURE)];
	ssize_t n;

	*begins = false;
	if (st->st_size > POOLSET_FILE_MAX)
		return 0;
	do
		n = pread(fd, text, sizeof(text), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_errno(e, REPL_E_IO, errno, "reading '%s'", name);
	*begins = n > 0 && poolset_begins(text, (size_t)n);
	return 0;
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
part_name(char name[TARGET_POOL_MAX + 1], const struct poolset_part *line, const char *dir,
	  struct err *e)
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
	(void)snprintf(name, TARGET_POOL_MAX + 1, "%.*s", TARGET_POOL_MAX, path);
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

struct poolpart *
poolparts_add(struct poolparts *p)
{
	struct poolpart *part;

	if (p->count == p->room) {
		unsigned room = p->room ? 2 * p->room : 8;
		struct poolpart *grown = reallocarray(p->part, room, sizeof(*grown));

		if (!grown)
			return NULL;
		p->part = grown;
		p->room = room;
	}
	part = &p->part[p->count++];
	memset(part, 0, sizeof(*part));
	part->fd = -1;
	return part;
}

/* What there is by that name; 0: nothing. */
static int
kind_look(int dirfd, const char *name, mode_t *mode, struct err *e)
{
	struct pool_place place;
	struct stat st;
	int rc = pool_place_open(dirfd, name, false, &place, e);

	*mode = 0;
	if (rc == REPL_E_NOT_FOUND) {
		err_clear(e);
		return 0;
	}
	if (rc)
		return rc;
	if (fstatat(place.dir, place.leaf, &st, AT_SYMLINK_NOFOLLOW) == 0)
		*mode = st.st_mode;
	pool_place_close(&place);
	return 0;
}

/*
 * The one place where a part's size may come from a device. poolset(5) has AUTO for device DAX
 * alone.
 */
static int
auto_size(const struct poolset_part *line, const char *name, mode_t mode, uint64_t *size,
	  struct err *e)
{
	*size = 0;
	return err_set(
		e, REPL_E_INVAL,
		"line %u: AUTO is for device DAX, which a target does not put into sets, and "
		"'%s' is %s: give a size",
		line->line, name, mode ? file_kind(mode) : "not there");
}

static int
part_take(struct poolparts *p, const struct poolset_part *line, const char *name, mode_t mode,
	  struct err *e)
{
	char first[TARGET_POOL_MAX + 1];
	struct poolpart *part;
	uint64_t size = line->size;
	int n;

	if (size == 0 && auto_size(line, name, mode, &size, e))
		return e->code;
	if (line->index > 0 && S_ISDIR(mode) != (p->dir_count > 0))
		return err_set(e, REPL_E_INVAL,
			       "line %u: '%s' is %s: directories and files can't be mixed in a set",
			       line->line, name, S_ISDIR(mode) ? "a directory" : "no directory");
	if (S_ISDIR(mode)) {
		n = snprintf(first, sizeof(first), "%s/000000.pmem", name);
		if (n >= (int)sizeof(first))
			return err_set(e, REPL_E_INVAL, "line %u: '%s' is too long", line->line,
				       name);
		(void)snprintf(p->dir[p->dir_count].name, sizeof(p->dir[0].name), "%s", name);
		p->dir[p->dir_count++].size = size;
		return 0;
	}
	part = poolparts_add(p);
	if (!part)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	(void)snprintf(part->name, sizeof(part->name), "%s", name);
	part->file_size = size;
	part->off = poolset_part_off(p->headers, line->index);
	part->len = poolset_part_len(p->headers, line->index, size);
	p->size += part->len;
	p->there = p->count;
	return 0;
}

/* Whether a section has a part of that name. */
static bool
named(const struct poolparts *p, const char *name)
{
	for (; p; p = p->next) {
		for (unsigned i = 0; i < p->dir_count; i++)
			if (strcmp(p->dir[i].name, name) == 0)
				return true;
		for (unsigned i = 0; i < p->count; i++)
			if (strcmp(p->part[i].name, name) == 0)
				return true;
	}
	return false;
}

static int
line_take(const struct poolparts *all, struct poolparts *p, const struct poolset_part *line,
	  const char *dir, const char *set, struct err *e)
{
	char name[TARGET_POOL_MAX + 1];
	mode_t mode;
	int rc = part_name(name, line, dir, e);

	if (!rc && (strcmp(name, set) == 0 || named(all, name)))
		rc = err_set(e, REPL_E_INVAL,
			     "line %u: '%s' is there already, or the set file itself", line->line,
			     name);
	if (!rc)
		rc = kind_look(p->dirfd, name, &mode, e);
	return rc ? rc : part_take(p, line, name, mode, e);
}

/* PMDK takes a directory for the file of a part unless only the first one has a header. */
static int
dirs_check(const struct poolparts *p, struct err *e)
{
	const struct poolparts *r = p;

	for (; r; r = r->next) {
		if ((r->dir_count > 0) != (p->dir_count > 0))
			return err_set(
				e, REPL_E_INVAL,
				"directories and files can't be mixed in a set: all sections "
				"have either");
		if (r->dir_count && r->headers == POOLSET_EACH)
			return err_set(e, REPL_E_INVAL,
				       "'%s' is a directory: a set of those needs OPTION SINGLEHDR",
				       r->dir[0].name);
	}
	return 0;
}

/* One struct a section; *out is to be freed also after an error. */
static int
sections_take(const struct poolset *set, int dirfd, const char *dir, const char *name,
	      struct poolparts **out, struct err *e)
{
	struct poolparts **at = out, *p = NULL;
	int rc = 0;

	for (unsigned i = 0; !rc && i < set->count; i++) {
		if (set->parts[i].index == 0) {
			if (p)
				at = &p->next;
			p = *at = calloc(1, sizeof(*p));
			if (!p)
				return err_set(e, REPL_E_NOMEM, "out of memory");
			p->headers = set->headers;
			p->replica = set->parts[i].replica;
			p->dirfd = dirfd;
		}
		rc = line_take(*out, p, &set->parts[i], dir, name, e);
	}
	if (!rc)
		rc = dirs_check(*out, e);
	if (!rc)
		(*out)->linked =
			set->headers != POOLSET_NONE && ((*out)->dir_count || (*out)->next);
	for (p = *out; !rc && p; p = p->next)
		rc = p->dir_count ? poolparts_scan(p, e) : 0;
	return rc;
}

int
poolparts_read(int dirfd, const char *dir, int fd, const char *name, struct poolparts **out,
	       struct err *e)
{
	struct poolset *set = malloc(sizeof(*set));
	char *text = malloc(POOLSET_FILE_MAX + 1U);
	size_t len = 0;
	int rc;

	*out = NULL;
	if (!set || !text) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
		goto out;
	}
	rc = text_read(fd, text, POOLSET_FILE_MAX + 1U, &len, e);
	if (!rc)
		rc = poolset_parse(text, len, set, e);
	if (!rc)
		rc = sections_take(set, dirfd, dir, name, out, e);
out:
	free(text);
	free(set);
	if (!rc)
		return 0;
	poolparts_free(*out);
	*out = NULL;
	return err_prefix(e, "pool set '%s'", name);
}

void
poolparts_free(struct poolparts *p)
{
	while (p) {
		struct poolparts *next = p->next;

		for (unsigned i = 0; i < p->count; i++) {
			if (p->part[i].fd >= 0)
				(void)close(p->part[i].fd);
		}
		free(p->part);
		free(p);
		p = next;
	}
}

/* ---- what they hold ---- */

/* Of a section, with what its directories are given. */
static uint64_t
section_room(const struct poolparts *p)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < p->dir_count; i++)
		sum += p->dir[i].size;
	return p->dir_count ? poolset_part_len(p->headers, 0, sum) : p->size;
}

uint64_t
poolparts_room(const struct poolparts *p)
{
	uint64_t least = section_room(p);

	for (p = p->next; p; p = p->next)
		least = section_room(p) < least ? section_room(p) : least;
	return least;
}

uint64_t
poolparts_held(const struct poolparts *p)
{
	uint64_t least = p->size;

	for (p = p->next; p; p = p->next)
		least = p->size < least ? p->size : least;
	return least;
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
	return rc ? err_prefix(e, "pool set '%s'", name) : 0;
}

static int
part_check_size(const struct poolpart *part, const struct stat *st, const char *name, struct err *e)
{
	if ((uint64_t)st->st_size != part->file_size)
		return err_set(e, REPL_E_CORRUPT,
			       "pool set '%s': its part '%s' has %llu bytes, the set file says "
			       "%llu",
			       name, part->name, (unsigned long long)st->st_size,
			       (unsigned long long)part->file_size);
	if (part->file_size < POOLSET_PART_MIN)
		return err_set(e, REPL_E_CORRUPT, "pool set '%s': its part '%s' has %llu bytes",
			       name, part->name, (unsigned long long)part->file_size);
	return 0;
}

static int
section_open(struct poolparts *p, const char *name, int flags, struct err *e)
{
	struct stat first, st;
	int rc = 0;

	for (unsigned i = 0; !rc && i < p->count; i++) {
		if (p->dir_count && p->part[i].number != i)
			return err_set(e, REPL_E_CORRUPT,
				       "pool set '%s': file %06u.pmem is missing in its "
				       "directories, or is there twice",
				       name, i);
		if (p->part[i].fd >= 0)
			rc = fstat(p->part[i].fd, &st) == 0
				     ? 0
				     : err_errno(e, REPL_E_IO, errno, "pool set '%s'", name);
		else
			rc = part_open(&p->part[i], p->dirfd, name, flags, &st, e);
		if (!rc && p->replica)
			rc = part_check_size(&p->part[i], &st, name, e);
		if (i == 0)
			first = st;
		/* What is probed of the first part must hold for all. */
		else if (!rc && st.st_dev != first.st_dev)
			rc = err_set(e, REPL_E_REFUSED,
				     "pool set '%s': parts '%s' and '%s' are on different file "
				     "systems",
				     name, p->part[0].name, p->part[i].name);
	}
	if (!rc && p->count == 0)
		rc = err_set(e, REPL_E_CORRUPT, "pool set '%s': no file is in '%s'", name,
			     p->dir[0].name);
	return rc;
}

int
poolparts_open(struct poolparts *p, const char *name, int flags, struct err *e)
{
	int rc = section_open(p, name, flags, e);

	if ((flags & O_ACCMODE) == O_RDONLY)
		return rc;
	for (p = p->next; !rc && p; p = p->next) {
		rc = section_open(p, name, flags, e);
		if (rc)
			rc = err_prefix(e,
					p->headers == POOLSET_NONE
						? "local replica %u, which is filled from the pool "
						  "when the user of repld has made its file anew, "
						  "'fallocate -l SIZE FILE'"
						: "local replica %u, which 'pmempool sync' of the "
						  "set file makes anew at the target",
					p->replica);
	}
	return rc;
}

int
poolparts_check_sizes(const struct poolparts *p, const char *name, struct err *e)
{
	struct stat st;
	int rc = 0;

	for (unsigned i = 0; !rc && i < p->count; i++)
		rc = fstat(p->part[i].fd, &st) == 0
			     ? part_check_size(&p->part[i], &st, name, e)
			     : err_errno(e, REPL_E_IO, errno, "pool set '%s'", name);
	return rc;
}

int
poolparts_follow(struct poolparts *p, const char *name, struct err *e)
{
	unsigned before = p->count;
	struct poolparts now;
	int rc;

	if (p->dir_count == 0)
		return 0;
	rc = poolparts_scan_again(p, &now, e);
	for (unsigned i = before; !rc && i < now.count; i++) {
		struct poolpart *part = poolparts_add(p);

		if (part)
			*part = now.part[i];
		else
			rc = err_set(e, REPL_E_NOMEM, "out of memory");
	}
	free(now.part);
	if (!rc)
		rc = section_open(p, name, O_RDONLY, e);
	if (rc) {
		p->there = before;
		poolparts_unplan(p);
		return rc;
	}
	p->there = p->count;
	p->size = now.size;
	return 0;
}

int
poolparts_absent(const struct poolparts *p, const char *name, struct err *e)
{
	for (; p; p = p->next) {
		if (p->dir_count && p->there)
			return err_set(e, REPL_E_EXISTS,
				       "pool set '%s': its directories hold '%s': nothing is "
				       "replaced: move it away",
				       name, p->part[0].name);
		for (unsigned i = 0; i < p->count; i++) {
			mode_t mode;
			int rc = kind_look(p->dirfd, p->part[i].name, &mode, e);

			if (rc)
				return err_prefix(e, "pool set '%s'", name);
			if (mode)
				return err_set(e, REPL_E_EXISTS,
					       "pool set '%s': there is %s by the name of its part "
					       "'%s'; nothing is replaced: move it away",
					       name, file_kind(mode), p->part[i].name);
		}
	}
	return 0;
}

unsigned
poolparts_there(const struct poolparts *p)
{
	unsigned there = 0;
	mode_t mode;

	for (; p; p = p->next)
		for (unsigned i = 0; i < p->count; i++)
			there += kind_look(p->dirfd, p->part[i].name, &mode, NULL) == 0 && mode;
	return there;
}

/* A directory that the administrator has named stays, empty or not. */
static int
part_unlink(const struct poolparts *p, const struct poolpart *part, struct err *e)
{
	struct pool_place place;
	int rc = pool_place_open(p->dirfd, part->name, false, &place, e);

	if (rc == REPL_E_NOT_FOUND) {
		err_clear(e);
		return 0;
	}
	if (rc)
		return rc;
	if ((unlinkat(place.dir, place.leaf, 0) != 0 && errno != ENOENT) || fsync(place.dir) != 0)
		rc = err_errno(e, err_from_errno(errno), errno, "remove part '%s'", part->name);
	pool_place_close(&place);
	if (!rc && p->dir_count == 0)
		pool_place_prune(p->dirfd, part->name);
	return rc;
}

int
poolparts_remove(const struct poolparts *p, const char *name, struct err *e)
{
	int rc = 0;

	if (p->next)
		rc = poolparts_remove(p->next, name, e);
	for (unsigned i = p->count; !rc && i > 0; i--)
		rc = part_unlink(p, &p->part[i - 1], e);
	return rc ? err_prefix(e, "pool set '%s'", name) : 0;
}

bool
poolparts_added(const struct poolparts *p, uint64_t size)
{
	return p->dir_count && p->count > 1 && p->size - p->part[p->count - 1].len >= size;
}

int
poolparts_cut(struct poolparts *p, const char *name, uint64_t size, struct err *e)
{
	int rc = 0;

	for (; !rc && p; p = p->next) {
		while (!rc && poolparts_added(p, size)) {
			struct poolpart *part = &p->part[p->count - 1];

			if (!pool_rest_is_zero(part->fd, 0, part->file_size))
				return err_set(e, REPL_E_CORRUPT,
					       "pool set '%s': its files hold more than the %llu "
					       "bytes that its sidecar says, '%s' is not zero: "
					       "another hand, or its own program as a primary, has "
					       "let it grow",
					       name, (unsigned long long)size, part->name);
			rc = part_unlink(p, part, e);
			if (rc)
				return rc;
			(void)close(part->fd);
			p->size -= part->len;
			p->there = --p->count;
		}
	}
	return rc;
}

/* ---- mapping ---- */

static int
section_map(const struct poolparts *p, const char *path, uint64_t size, uint64_t total, bool write,
	    struct pmem_map **out, struct err *e)
{
	const struct poolpart *part = &p->part[0];
	uint64_t left = size, len = part->len < left ? part->len : left;
	struct pmem_map *map = NULL;
	int rc = pmem_map_new_at(part->fd, path, part->off, len, total, write, &map, e);

	for (unsigned i = 1; !rc && (left -= len) > 0 && i < p->count; i++) {
		part = &p->part[i];
		len = part->len < left ? part->len : left;
		rc = pmem_map_extend(map, pmem_map_size(map), part->fd, part->off, len, e);
		if (!rc)
			pmem_map_set_size(map, pmem_map_size(map) + len);
	}
	if (rc)
		pmem_map_free(map);
	else
		*out = map;
	return rc;
}

int
poolparts_map(const struct poolparts *p, const char *path, uint64_t size, uint64_t total,
	      bool write, struct pmem_map **out, struct err *e)
{
	struct pmem_map *map = NULL, *copy = NULL;
	int rc = section_map(p, path, size, total, write, &map, e);

	for (p = p->next; !rc && write && p; p = p->next) {
		rc = section_map(p, path, size, total, write, &copy, e);
		if (!rc)
			rc = pmem_map_add_copy(map, copy, e);
	}
	if (rc)
		pmem_map_free(map);
	else
		*out = map;
	return rc;
}

static int
section_extend(const struct poolparts *p, struct pmem_map *map, uint64_t size, struct err *e)
{
	uint64_t at = pmem_map_size(map), begin = 0;
	int rc = 0;

	for (unsigned i = 0; !rc && at < size && i < p->count; i++) {
		const struct poolpart *part = &p->part[i];
		uint64_t end = begin + part->len < size ? begin + part->len : size;

		if (end > at) {
			rc = pmem_map_extend(map, at, part->fd, part->off + at - begin, end - at,
					     e);
			at = end;
		}
		begin += part->len;
	}
	return rc;
}

int
poolparts_extend(const struct poolparts *p, struct pmem_map *map, uint64_t size, struct err *e)
{
	int rc = 0;

	for (; !rc && p && map; p = p->next, map = pmem_map_copy_of(map))
		rc = section_extend(p, map, size, e);
	return rc;
}
