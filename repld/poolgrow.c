/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolgrow - a pool gets larger in the order of docs/POOL-FORMAT.md, section 3:
 * space first, the sidecar last. A file that is longer than its sidecar says
 * was on the way; what is behind is zeros, and the next writer cuts it off.
 */
#include "poolstore.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "extents.h"
#include "filesystem.h"
#include "pooldevice.h"
#include "space.h"

#define CHUNK 65536

static bool
chunk_is_zero(const uint8_t *p, size_t len)
{
	return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

bool
pool_rest_is_zero(int fd, uint64_t off, uint64_t size)
{
	uint8_t buf[CHUNK];
	uint64_t end = off;

	while (off < size) {
		uint64_t left;
		ssize_t n;

		/* Once a run: on tmpfs it takes time in proportion to what lies before its end. */
		if (off >= end) {
			struct range data = extents_next(fd, off, size);

			if (data.len == 0)
				return true;
			off = data.off;
			end = data.off + data.len;
		}
		left = size - off;
		n = pread(fd, buf, left < CHUNK ? left : CHUNK, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || !chunk_is_zero(buf, (size_t)n))
			return false;
		off += (uint64_t)n;
	}
	return true;
}

/* It may have been for what others have written. */
static int
grow_sync(struct pool *p, struct err *e)
{
	int errnum;

	if (filesystem_sync(p->files.fd) == 0)
		return 0;
	errnum = errno;
	p->sync_failed = true;
	return err_errno(e, err_from_errno(errnum), errnum,
			 "sync; no further update is accepted: close the pool and see to its "
			 "device");
}

bool
pool_sync_failed(const struct pool *p)
{
	return p->sync_failed;
}

void
pool_files_forget(const struct pool_files *f)
{
	for (const struct poolparts *r = f->parts; r; r = r->next)
		for (unsigned i = 0; i < r->count; i++)
			(void)posix_fadvise(r->part[i].fd, 0, 0, POSIX_FADV_DONTNEED);
	(void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
}

void
pool_forget(const struct pool *p)
{
	pool_files_forget(&p->files);
}

void
pool_flush_lost(struct pool *p)
{
	pool_forget(p);
	p->flush_lost = true;
}

/* Its program need not tell anybody, and what it has stored behind the old end stays. */
uint64_t
pool_size_now(const struct pool_files *f, const struct sidecar *meta)
{
	uint64_t size = meta->pool_size, now = 0;
	struct stat st;

	if (!meta->primary || pooldevice_is_open(&f->st))
		return size;
	if (f->parts)
		now = poolparts_added(f->parts, size) ? poolparts_held(f->parts) : 0;
	else if (fstat(f->fd, &st) == 0)
		now = (uint64_t)st.st_size;
	return now > size ? now : size;
}

int
pool_grow_undo(struct pool *p, struct err *e)
{
	uint64_t size = p->info.meta.pool_size;
	struct stat st;

	if (pooldevice_is_open(&p->files.st) || p->info.meta.primary)
		return 0;
	if (p->in_doubt)
		return err_set(e, REPL_E_IO,
			       "pool '%s': its sidecar could not be updated and may tell a larger "
			       "size than %llu bytes: close the pool and open it again",
			       p->info.name, (unsigned long long)size);
	/* Files have the sizes that the set file says. */
	if (p->files.parts)
		return poolparts_cut(p->files.parts, p->info.name, size, e);
	if (fstat(p->files.fd, &st) != 0)
		return err_errno(e, REPL_E_IO, errno, "pool '%s'", p->info.name);
	if ((uint64_t)st.st_size <= size)
		return 0;
	if (ftruncate(p->files.fd, (off_t)size) != 0)
		return err_errno(e, REPL_E_IO, errno, "pool '%s': cut to its size", p->info.name);
	return grow_sync(p, e) ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

/* What is made already and not used is zero, or somebody's hand was at work. */
static int
parts_rest_check(const struct pool *p, struct err *e)
{
	for (const struct poolparts *r = p->files.parts; r; r = r->next) {
		uint64_t begin = 0, size = p->info.meta.pool_size;

		for (unsigned i = 0; i < r->count; begin += r->part[i++].len) {
			const struct poolpart *part = &r->part[i];
			uint64_t from = size > begin ? size - begin : 0;

			if (from < part->len &&
			    !pool_rest_is_zero(part->fd, part->off + from, part->off + part->len))
				return err_set(e, REPL_E_CORRUPT,
					       "pool '%s': part '%s' is not zero behind the pool's "
					       "end: another hand was at work",
					       p->info.name, part->name);
		}
	}
	return 0;
}

/* All sections get their new files, or none does. */
static int
parts_make(struct pool *p, struct err *e)
{
	struct poolparts *parts = p->files.parts;
	struct poolparts_made *made = NULL;
	int rc = pool_store_lock(p->store, p->info.name, e);

	if (rc)
		return rc;
	rc = poolparts_make(parts, p->info.name, &made, e);
	pool_store_unlock(p->store);
	if (!rc)
		rc = poolparts_fill(made, e);
	if (!rc)
		rc = poolparts_sync(made, e);
	if (!rc && (rc = pool_store_lock(p->store, p->info.name, e)) == 0) {
		rc = poolparts_publish(made, e);
		pool_store_unlock(p->store);
	}
	poolparts_made_free(made);
	return rc;
}

static int
parts_grow(struct pool *p, uint64_t size, struct err *e)
{
	struct poolparts *parts = p->files.parts;
	int rc;

	if (size % POOLPARTS_ALIGN)
		return err_set(e, REPL_E_INVAL,
			       "pool '%s' lies in the files of a set, and %llu bytes are not a "
			       "multiple of %u: grow it by whole pages",
			       p->info.name, (unsigned long long)size, POOLPARTS_ALIGN);
	if (size > poolparts_held(parts) && parts->dir_count == 0)
		return err_set(
			e, REPL_E_REFUSED,
			"pool '%s' lies in the files of a set, which hold %llu bytes and do "
			"not grow: a set of directories does, or add to its set file and make "
			"it anew",
			p->info.name, (unsigned long long)poolparts_held(parts));
	/* Whoever was refused for want of room is told to raise it there. */
	pool_set_take_room(p->store, p->info.name, parts);
	rc = parts_rest_check(p, e);
	if (!rc)
		rc = poolparts_plan(parts, size, e);
	if (!rc && parts->dir_count)
		rc = parts_make(p, e);
	poolparts_unplan(parts);
	return rc ? err_prefix(e, "pool '%s'", p->info.name) : 0;
}

int
pool_map_for(const struct pool *p, uint64_t total, struct pmem_map **out, struct err *e)
{
	uint64_t size = p->info.meta.pool_size;

	if (p->files.parts)
		return poolparts_map(p->files.parts, p->path, size, total, true, out, e);
	return pmem_map_new_at(p->files.fd, p->path, 0, size, total, true, out, e);
}

int
pool_map_extend(const struct pool *p, struct pmem_map *map, uint64_t size, struct err *e)
{
	uint64_t now = pmem_map_size(map);

	if (p->files.parts)
		return poolparts_extend(p->files.parts, map, size, e);
	return pmem_map_extend(map, now, p->files.fd, now, size - now, e);
}

int
pool_grow_space(struct pool *p, uint64_t size, struct err *e)
{
	int fd = p->files.fd;
	int rc = pool_grow_undo(p, e);

	if (!rc)
		rc = pool_written(p, e);
	if (rc)
		return rc;
	if (p->files.parts)
		return parts_grow(p, size, e);
	if (pooldevice_is_open(&p->files.st))
		return err_set(e, REPL_E_REFUSED,
			       "pool '%s' lies on a device, where pools do not grow: make it anew "
			       "in the size that it is to have",
			       p->info.name);
	if (p->info.meta.sparse)
		rc = space_extend_sparse(fd, size, e);
	else
		rc = space_extend(fd, p->info.meta.pool_size, size, e);
	if (!rc)
		rc = grow_sync(p, e);
	if (!rc)
		return 0;
	/* An attempt may have got half way. */
	(void)pool_grow_undo(p, NULL);
	return err_prefix(e, "pool '%s'", p->info.name);
}

int
pool_grow_record(struct pool *p, uint64_t size, struct err *e)
{
	struct sidecar next = p->info.meta;
	int rc;

	next.pool_size = size;
	if (p->files.parts)
		next.layout = poolparts_layout(p->files.parts, size);
	rc = sidecar_write(p->files.sidecar_fd, &next, e);
	p->in_doubt = rc != 0;
	if (rc)
		return err_prefix(e, "pool '%s'", p->info.name);
	p->info.meta = next;
	return 0;
}
