/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a pool set come into being. */
#include "poolparts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lock.h"
#include "poolpath.h"
#include "poolstore.h"
#include "space.h"

struct part_made {
	const struct poolparts *section;
	struct poolpart *part; /* borrowed; its fd is set */
	dev_t device;
	struct pool_place place;
	char temp[POOL_TEMP_MAX]; /* "" when it has its name, or is not made */
};

struct poolparts_made {
	struct poolparts *parts; /* borrowed */
	const char *name;
	int dirfd;
	unsigned count, published;
	struct part_made *part;
};

/* What is probed of the first part must hold for all: whoever opens the pool demands it. */
static int
device_note(struct part_made *made, struct err *e)
{
	const struct poolpart *first = &made->section->part[0];
	struct stat here, there;

	if (fstat(made->part->fd, &here) != 0 || fstat(first->fd, &there) != 0)
		return err_errno(e, REPL_E_IO, errno, "part '%s'", made->part->name);
	made->device = here.st_dev;
	if (here.st_dev == there.st_dev)
		return 0;
	return err_set(e, REPL_E_REFUSED,
		       "parts '%s' and '%s' would be on different file systems: a section "
		       "of a set file has to be on one",
		       first->name, made->part->name);
}

static int
part_make(struct poolparts_made *m, unsigned i, struct err *e)
{
	struct part_made *made = &m->part[i];
	struct poolpart *part = made->part;
	int rc = pool_place_open(m->dirfd, part->name, true, &made->place, e);

	if (rc)
		return rc;
	pool_temp_name(made->temp, part->name, "");
	rc = pool_temp_open(&made->place, made->temp, &part->fd, e);
	if (part->fd < 0)
		made->temp[0] = '\0';
	return rc ? err_prefix(e, "part '%s'", part->name) : device_note(made, e);
}

/* Of directories those that are there are kept. */
static unsigned
first_to_make(const struct poolparts *p)
{
	return p->dir_count ? p->there : 0;
}

int
poolparts_make(struct poolparts *p, const char *name, struct poolparts_made **out, struct err *e)
{
	struct poolparts_made *m = calloc(1, sizeof(*m));
	unsigned count = 0;
	int rc = 0;

	*out = m;
	if (!m)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	m->parts = p;
	m->name = name;
	m->dirfd = p->dirfd;
	for (const struct poolparts *r = p; r; r = r->next)
		count += r->count - first_to_make(r);
	m->part = calloc(count ? count : 1, sizeof(m->part[0]));
	if (!m->part)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	for (struct poolparts *r = p; r; r = r->next)
		for (unsigned i = first_to_make(r); i < r->count; i++) {
			struct part_made *made = &m->part[m->count++];

			made->part = &r->part[i];
			made->section = r;
			made->place.dir = -1;
		}
	for (unsigned i = 0; !rc && i < m->count; i++)
		rc = part_make(m, i, e);
	return rc ? err_prefix(e, "pool set '%s'", name) : 0;
}

/* What the file system of that part is to give to all that are on it; 0: told of one before. */
static uint64_t
space_due(const struct poolparts_made *m, unsigned first)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < m->count; i++) {
		if (m->part[i].device != m->part[first].device)
			continue;
		if (i < first)
			return 0;
		if (__builtin_add_overflow(sum, m->part[i].part->file_size, &sum))
			return UINT64_MAX;
	}
	return sum;
}

int
poolparts_fill(struct poolparts_made *m, struct err *e)
{
	/* Of all together, before the first one takes what others are in need of. */
	for (unsigned i = 0; i < m->count; i++) {
		uint64_t due = space_due(m, i);

		if (space_is_free(m->part[i].part->fd, due, due, e))
			return err_prefix(e, "pool set '%s'", m->name);
	}
	for (unsigned i = 0; i < m->count; i++) {
		struct poolpart *part = m->part[i].part;

		if (space_allocate(part->fd, part->file_size, e))
			return err_prefix(e, "pool set '%s': part '%s'", m->name, part->name);
	}
	return 0;
}

int
poolparts_sync(struct poolparts_made *m, struct err *e)
{
	for (unsigned i = 0; i < m->count; i++) {
		if (fsync(m->part[i].part->fd) != 0)
			return err_errno(e, err_from_errno(errno), errno,
					 "pool set '%s': sync part '%s'", m->name,
					 m->part[i].part->name);
	}
	return 0;
}

static int
part_publish(struct poolparts_made *m, unsigned i, struct err *e)
{
	struct part_made *made = &m->part[i];

	if (pool_rename_new(made->place.dir, made->temp, made->place.leaf) != 0)
		return err_errno(e, err_from_errno(errno), errno, "rename part '%s'",
				 made->part->name);
	made->temp[0] = '\0';
	m->published = i + 1;
	if (fsync(made->place.dir) != 0)
		return err_errno(e, REPL_E_IO, errno, "sync the directory of part '%s'",
				 made->part->name);
	return 0;
}

int
poolparts_publish(struct poolparts_made *m, struct err *e)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < m->count; i++)
		rc = part_publish(m, i, e);
	/* The last one first: what is left by a kill has no gap. */
	for (unsigned i = m->published; rc && i > 0; i--)
		(void)unlinkat(m->part[i - 1].place.dir, m->part[i - 1].place.leaf, 0);
	for (struct poolparts *r = m->parts; !rc && r; r = r->next) {
		for (; r->dir_count && r->there < r->count; r->there++)
			r->size += r->part[r->there].len;
	}
	return rc ? err_prefix(e, "pool set '%s'", m->name) : 0;
}

void
poolparts_made_free(struct poolparts_made *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->count; i++) {
		struct part_made *made = &m->part[i];
		bool begun = made->place.dir >= 0 && i >= m->published &&
			     made->section->dir_count == 0; /* else they are an administrator's */

		if (made->temp[0])
			(void)unlinkat(made->place.dir, made->temp, 0);
		if (made->part->fd >= 0)
			lock_drop(made->part->fd);
		pool_place_close(&made->place);
		/* Directories that were made for it, too. */
		if (begun && lock_take(m->dirfd, LOCK_NAMES_MS)) {
			pool_place_prune(m->dirfd, made->part->name);
			lock_drop(m->dirfd);
		}
	}
	free(m->part);
	free(m);
}
