/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directories as parts of a pool set, as PMDK keeps them: files 000000.pmem, 000001.pmem, ... are
 * spread over the directories of a section in turn, and together are its parts.
 */
#include "poolparts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "poolpath.h"
#include "poolstore.h"

#define PAGE 4096U
/* By which PMDK lets a pool grow. A larger reservation has larger files, not more. */
#define FILE_UNIT     (128ULL << 20)
#define FILES_AIM     256U
#define FILE_ROUND    ((uint64_t)2 << 20)
#define FILE_FIRST    "000000.pmem"
#define FILE_NAME_MAX 32

/* Checked when the set file is read. */
#define DIR_MAX (TARGET_POOL_MAX - (int)sizeof(FILE_FIRST))

static void
file_name(unsigned number, char leaf[FILE_NAME_MAX])
{
	(void)snprintf(leaf, FILE_NAME_MAX, "%06u.pmem", number);
}

/* Whether PMDK, or we, would have given a file that name. */
static bool
file_number(const char *leaf, unsigned *number)
{
	char again[FILE_NAME_MAX];

	*number = (unsigned)strtoul(leaf, NULL, 10);
	file_name(*number, again);
	return strlen(leaf) == strlen(FILE_FIRST) && strcmp(leaf, again) == 0;
}

bool
poolparts_is_temp(const char *path, const char *leaf)
{
	int len = (int)(strlen(path) - strlen(leaf));
	char name[TARGET_POOL_MAX + FILE_NAME_MAX + 1], temp[POOL_TEMP_MAX], file[FILE_NAME_MAX];
	bool is = false;

	if (len > TARGET_POOL_MAX)
		return false;
	for (unsigned i = 0; !is && i < POOLPARTS_FILES_MAX; i++) {
		file_name(i, file);
		(void)snprintf(name, sizeof(name), "%.*s%s", len, path, file);
		pool_temp_name(temp, name, "");
		is = strcmp(temp, leaf) == 0;
	}
	return is;
}

static int
file_found(struct poolparts *p, const struct pooldir *dir, int fd, const char *leaf,
	   unsigned number, struct err *e)
{
	struct poolpart *part;
	struct stat st;

	if (fstatat(fd, leaf, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0
				       : err_errno(e, err_from_errno(errno), errno, "'%s'", leaf);
	if (p->count == POOLPARTS_FILES_MAX)
		return err_set(e, REPL_E_LIMIT, "more than %u files in its directories",
			       POOLPARTS_FILES_MAX);
	part = poolparts_add(p);
	if (!part)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	(void)snprintf(part->name, sizeof(part->name), "%.*s/%.11s", DIR_MAX, dir->name, leaf);
	part->number = number;
	part->file_size = (uint64_t)st.st_size;
	return 0;
}

static int
dir_scan(struct poolparts *p, const struct pooldir *dir, struct err *e)
{
	int fd = path_open(p->dirfd, dir->name, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned number;
	int rc = 0;

	if (!d) {
		rc = err_errno(e, err_from_errno(errno), errno, "directory '%s'", dir->name);
		if (fd >= 0)
			(void)close(fd);
		return rc;
	}
	while (!rc && (entry = readdir(d)) != NULL)
		if (file_number(entry->d_name, &number))
			rc = file_found(p, dir, dirfd(d), entry->d_name, number, e);
	(void)closedir(d);
	return rc;
}

static int
by_number(const void *a, const void *b)
{
	const struct poolpart *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

int
poolparts_scan(struct poolparts *p, struct err *e)
{
	uint64_t sum = 0;
	int rc = 0;

	for (unsigned i = 0; !rc && i < p->dir_count; i++)
		rc = dir_scan(p, &p->dir[i], e);
	if (rc)
		return rc;
	if (p->count)
		qsort(p->part, p->count, sizeof(p->part[0]), by_number);
	for (unsigned i = 0; i < p->count; i++) {
		struct poolpart *part = &p->part[i];

		if (part->file_size > INT64_MAX - sum)
			return err_set(e, REPL_E_CORRUPT, "its part '%s' has %llu bytes",
				       part->name, (unsigned long long)part->file_size);
		sum += part->file_size;
		part->off = poolset_part_off(p->headers, i);
		/* One that was cut has nothing; whoever opens the pool tells. */
		if (part->file_size >= POOLSET_PART_MIN)
			part->len = poolset_part_len(p->headers, i, part->file_size);
		p->size += part->len;
	}
	p->there = p->count;
	return 0;
}

int
poolparts_scan_again(const struct poolparts *p, struct poolparts *now, struct err *e)
{
	memset(now, 0, sizeof(*now));
	now->headers = p->headers;
	now->dirfd = p->dirfd;
	now->dir_count = p->dir_count;
	memcpy(now->dir, p->dir, sizeof(now->dir));
	return poolparts_scan(now, e);
}

/* ---- planning ---- */

struct plan {
	uint64_t reserved; /* given to the directories */
	uint64_t used;     /* of it, by files */
	uint64_t file;     /* the size of a file */
};

static struct plan
plan_begin(const struct poolparts *p)
{
	struct plan plan = {0};
	uint64_t units;

	for (unsigned i = 0; i < p->dir_count; i++)
		plan.reserved += p->dir[i].size;
	for (unsigned i = 0; i < p->count; i++)
		plan.used += p->part[i].file_size;
	units = plan.reserved / FILE_UNIT / FILES_AIM + 1;
	plan.file = units * FILE_UNIT;
	return plan;
}

/* The size of the next file where need bytes are still to be held; first: it only has to hold them.
 */
static uint64_t
plan_next(const struct plan *plan, uint64_t need, bool first)
{
	uint64_t left = plan->reserved > plan->used ? plan->reserved - plan->used : 0;
	uint64_t size = plan->file;

	if (first && need < size)
		size = (need + FILE_ROUND - 1) / FILE_ROUND * FILE_ROUND;
	size = size < left ? size : left / PAGE * PAGE;
	return size < POOLSET_PART_MIN ? 0 : size;
}

static int
section_plan(struct poolparts *p, uint64_t size, struct err *e)
{
	struct plan plan = plan_begin(p);
	bool first = p->count == 0;
	uint64_t held = p->size;

	while (held < size) {
		unsigned number = p->count;
		uint64_t off = poolset_part_off(p->headers, number);
		uint64_t file = plan_next(&plan, size - held + off, first);
		struct poolpart *part = NULL;
		char leaf[FILE_NAME_MAX];

		if (file == 0 || number == POOLPARTS_FILES_MAX)
			return err_set(
				e, REPL_E_REFUSED,
				"its directories are given %llu bytes, too few for a pool of "
				"%llu: raise their sizes in the set file",
				(unsigned long long)plan.reserved, (unsigned long long)size);
		part = poolparts_add(p);
		if (!part)
			return err_set(e, REPL_E_NOMEM, "out of memory");
		file_name(number, leaf);
		(void)snprintf(part->name, sizeof(part->name), "%.*s/%.11s", DIR_MAX,
			       p->dir[number % p->dir_count].name, leaf);
		part->number = number;
		part->file_size = file;
		part->off = off;
		part->len = poolset_part_len(p->headers, number, file);
		plan.used += file;
		held += part->len;
	}
	return 0;
}

static bool
same_dirs(const struct poolparts *a, const struct poolparts *b)
{
	bool same = a->headers == b->headers && a->dir_count == b->dir_count;

	for (unsigned i = 0; same && i < a->dir_count; i++)
		same = strcmp(a->dir[i].name, b->dir[i].name) == 0;
	return same;
}

void
poolparts_take_room(struct poolparts *p, const struct poolparts *now)
{
	const struct poolparts *a = p, *b = now;

	while (a && b && same_dirs(a, b)) {
		a = a->next;
		b = b->next;
	}
	/* Other lines are no business of who has the pool open. */
	if (a || b)
		return;
	for (; p; p = p->next, now = now->next)
		for (unsigned i = 0; i < p->dir_count; i++)
			p->dir[i].size = now->dir[i].size;
}

int
poolparts_plan(struct poolparts *p, uint64_t size, struct err *e)
{
	int rc = 0;

	for (struct poolparts *r = p; !rc && r; r = r->next)
		rc = r->dir_count ? section_plan(r, size, e) : 0;
	if (rc)
		poolparts_unplan(p);
	return rc;
}

void
poolparts_unplan(struct poolparts *p)
{
	for (; p; p = p->next) {
		while (p->count > p->there) {
			struct poolpart *part = &p->part[--p->count];

			if (part->fd >= 0)
				(void)close(part->fd);
		}
	}
}
