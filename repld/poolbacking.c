/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolbacking - what a pool lies in, as far as another can come in its place without a trace in
 * the sidecar, which is elsewhere: the device of a pool on device DAX, and the files of a set's
 * local replicas. docs/POOL-FORMAT.md, 1.10.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checksum.h"
#include "le.h"
#include "pooldevice.h"
#include "poolstore.h"

_Static_assert(HASH128_SIZE == GEN_ID_SIZE, "a hash is an identifier");

/* Numbers of files are given again: the time at which it was made is a part of what a file is. */
static bool
file_add(struct gen_id *id, const struct poolpart *part, uint32_t replica, uint32_t number)
{
	uint8_t text[GEN_ID_SIZE + 4 + 4 + 8 + 8 + 4 + 8];
	struct statx x;

	if (part->fd < 0 || statx(part->fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &x) != 0)
		return false;
	/* Not every file system tells it; a number alone finds most new files. */
	if (!(x.stx_mask & STATX_BTIME))
		memset(&x.stx_btime, 0, sizeof(x.stx_btime));
	memcpy(text, id->b, GEN_ID_SIZE);
	put_le32(text + 16, replica);
	put_le32(text + 20, number);
	put_le64(text + 24, x.stx_ino);
	put_le64(text + 32, (uint64_t)x.stx_btime.tv_sec);
	put_le32(text + 40, x.stx_btime.tv_nsec);
	put_le64(text + 44, part->file_size);
	hash128(text, sizeof(text), id->b);
	return true;
}

struct gen_id
poolparts_backing(const struct poolparts *p)
{
	static const struct gen_id nil;
	struct gen_id id = nil;

	for (const struct poolparts *r = p->next; r; r = r->next)
		for (unsigned i = 0; i < r->count; i++)
			if (!file_add(&id, &r->part[i], r->replica, i))
				return nil;
	return id;
}

uint64_t
poolparts_layout(const struct poolparts *p, uint64_t size)
{
	uint64_t sum = 0, left = size;
	uint8_t text[3 * 8];

	for (unsigned i = 0; left > 0 && i < p->count; i++) {
		uint64_t len = p->part[i].len < left ? p->part[i].len : left;

		put_le64(text, sum);
		put_le64(text + 8, p->part[i].off);
		put_le64(text + 16, len);
		sum = sum64(text, sizeof(text));
		left -= len;
	}
	return sum;
}

uint64_t
poolparts_layout_now(const struct poolparts *p, uint64_t size)
{
	struct poolparts now;
	uint64_t sum = 0;

	if (p->dir_count == 0)
		return poolparts_layout(p, size);
	if (poolparts_scan_again(p, &now, NULL) == 0)
		sum = poolparts_layout(&now, size);
	free(now.part);
	return sum;
}

/* What a name adds to the order: at its place, and wherever it is. */
static void
order_add(const char *name, uint32_t replica, uint32_t at, uint64_t *placed, uint64_t *any)
{
	uint8_t text[8 + TARGET_POOL_MAX];
	size_t len = strlen(name);

	put_le32(text, replica);
	put_le32(text + 4, at);
	memcpy(text + 8, name, len);
	*placed += sum64(text, 8 + len);
	*any += sum64(name, len);
}

/* Names: of files that were copied inodes are others. Of those in directories the numbers tell. */
uint64_t
poolparts_order(const struct poolparts *p)
{
	uint64_t placed = 0, any = 0;

	for (; p; p = p->next) {
		for (unsigned i = 0; i < p->dir_count; i++)
			order_add(p->dir[i].name, p->replica, 0, &placed, &any);
		for (unsigned i = 0; p->dir_count == 0 && i < p->count; i++)
			order_add(p->part[i].name, p->replica, i, &placed, &any);
	}
	return any << 32 | (placed & UINT32_MAX);
}

bool
poolparts_is_reordered(const struct poolparts *p, uint64_t noted)
{
	uint64_t now = poolparts_order(p);

	return noted && now != noted && now >> 32 == noted >> 32;
}

struct device_search {
	const char *name; /* of the pool that asks */
	dev_t number;
	struct gen_id id; /* nil: nothing tells it from another one */
	char other[TARGET_POOL_MAX + 1];
};

/* By its sidecar a pool lay in that device, wherever its link leads now. */
static bool
sidecar_is_of(const struct device_search *q, int dir, const char *sidecar)
{
	int fd = gen_id_is_nil(&q->id) ? -1
				       : openat(dir, sidecar, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct sidecar meta;
	bool repair, is = false;

	if (fd < 0)
		return false;
	is = sidecar_read(fd, &meta, &repair, NULL) == 0 && gen_id_equal(&meta.backing, &q->id);
	(void)close(fd);
	return is;
}

/* Another link to the same device that has a sidecar is another pool. */
static int
device_search_visit(void *ctx, int dir, const char *leaf, const char *name)
{
	struct device_search *q = ctx;
	char sidecar[NAME_MAX + sizeof(SIDECAR_SUFFIX)];
	struct stat st;
	bool linked;

	if (strcmp(name, q->name) == 0 || !pooldevice_is(dir, leaf))
		return 0;
	linked = fstatat(dir, leaf, &st, 0) == 0 && st.st_rdev == q->number;
	(void)snprintf(sidecar, sizeof(sidecar), "%s" SIDECAR_SUFFIX, leaf);
	if (fstatat(dir, sidecar, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    !(linked || sidecar_is_of(q, dir, sidecar)))
		return 0;
	(void)snprintf(q->other, sizeof(q->other), "%s", name);
	return 1;
}

int
pool_device_is_free(struct pool_store *s, const char *name, dev_t number, struct err *e)
{
	struct device_search q = {.name = name, .number = number};
	int rc;

	(void)pooldevice_identity(POOLDEVICE_SYSFS, number, &q.id);
	rc = pool_walk(s->dirfd, device_search_visit, &q, e);
	if (rc != 1)
		return rc;
	return err_set(e, REPL_E_REFUSED,
		       "pool '%s': the device that its link leads to holds pool '%s': correct the "
		       "link, or remove that one first",
		       name, q.other);
}

bool
pool_is_elsewhere(const struct pool_files *f, const struct sidecar *meta)
{
	struct gen_id now;

	return pooldevice_is_open(&f->st) && !meta->primary && !gen_id_is_nil(&meta->backing) &&
	       pooldevice_identity(POOLDEVICE_SYSFS, f->st.st_rdev, &now) &&
	       !gen_id_equal(&now, &meta->backing);
}

bool
pool_copies_are_known(const struct poolparts *p, const struct sidecar *meta)
{
	struct gen_id now = poolparts_backing(p);

	/* A header, where there is one, tells a new file from one that was the pool's. */
	if (gen_id_is_nil(&now) || gen_id_is_nil(&meta->backing))
		return p->linked;
	return gen_id_equal(&now, &meta->backing);
}

void
pool_backing_note(const struct pool_files *f, struct sidecar *meta)
{
	struct gen_id now;

	if (f->parts) {
		meta->backing = poolparts_backing(f->parts);
		meta->layout = poolparts_layout(f->parts, meta->pool_size);
		meta->order = poolparts_order(f->parts);
	} else if (pooldevice_is_open(&f->st) &&
		   pooldevice_identity(POOLDEVICE_SYSFS, f->st.st_rdev, &now)) {
		meta->backing = now;
	}
}
