/* SPDX-License-Identifier: BSD-3-Clause */
/* What another hand, an administrator's, has done to the files of a pool. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "log.h"
#include "pooldevice.h"
#include "poolstore.h"

static void
forget(struct sidecar *meta)
{
	static const struct generation none;

	meta->state = SIDECAR_INCONSISTENT;
	meta->generation = none;
	meta->position = 0;
	meta->waited = false;
	meta->settled = false;
}

/*
 * What is left of the pool is of no generation, and no dirty map tells what it lacks, also when the
 * file has its size again. A primary is its own program's. What can't be recorded is known here:
 * whatever is written to the sidecar next says it.
 */
static int
record(const struct pool_files *f, const char *name, const char *what, struct sidecar *meta,
       struct err *e)
{
	int rc;

	if (meta->primary ||
	    (meta->state == SIDECAR_INCONSISTENT && gen_id_is_nil(&meta->generation.current)))
		return 0;
	forget(meta);
	rc = sidecar_write(f->sidecar_fd, meta, e);
	if (rc)
		return rc;
	log_error("pool '%s': %s: it is inconsistent from now on, and "
		  "who fills it again compares all of it",
		  name, what);
	return 0;
}

/* What we have seen of its directories may be from before it has grown. */
static bool
parts_are_others(const struct pool_files *f, const struct sidecar *meta)
{
	uint64_t now;

	if (!f->parts || !meta->layout || meta->primary ||
	    poolparts_layout(f->parts, meta->pool_size) == meta->layout)
		return false;
	now = poolparts_layout_now(f->parts, meta->pool_size);
	return now && now != meta->layout;
}

/* Whether one has not all that the set file says is in it: of files, that may have been changed. */
static bool
parts_are_cut(const struct pool_files *f, const struct sidecar *meta)
{
	const struct poolparts *p = f->parts;
	uint64_t left = meta->pool_size;
	struct stat st;

	if (p->dir_count)
		return parts_are_others(f, meta);
	if (poolparts_layout(p, meta->pool_size) != meta->layout)
		return false;
	for (unsigned i = 0; left > 0 && i < p->count; i++) {
		uint64_t len = p->part[i].len < left ? p->part[i].len : left;

		if (fstat(p->part[i].fd, &st) == 0 && (uint64_t)st.st_size < p->part[i].off + len)
			return true;
		left -= len;
	}
	return false;
}

/* Its local replicas are what it was: they have to be compared, as if its writer had not closed. */
static int
record_parts(const struct pool_files *f, const char *name, const char *what, struct sidecar *meta,
	     struct err *e)
{
	meta->writer_open = true;
	return record(f, name, what, meta, e);
}

void
pool_files_record_cut(const struct pool_files *f, const char *name, struct sidecar *meta)
{
	struct stat st;

	if (f->parts && !meta->primary && parts_are_cut(f, meta))
		(void)record_parts(f, name, "its file was cut by another hand", meta, NULL);
	if (!f->parts && fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size < meta->pool_size)
		(void)record(f, name, "its file was cut by another hand", meta, NULL);
}

int
pool_files_record_moved(struct pool_store *s, const struct pool_files *f, const char *name,
			struct sidecar *meta, struct err *e)
{
	int rc;

	if (parts_are_others(f, meta))
		return record_parts(f, name, "its files were cut or grown by another hand", meta,
				    e);
	if (!pool_is_elsewhere(f, meta))
		return 0;
	rc = pool_device_is_free(s, name, f->st.st_rdev, e);
	if (!rc)
		rc = record(f, name, "its device is another one than it was made or last opened on",
			    meta, e);
	meta->settled = false;
	return rc;
}

void
pool_files_look(const struct pool_files *f, struct sidecar *meta)
{
	if (pool_is_elsewhere(f, meta) || parts_are_others(f, meta))
		forget(meta);
}

/* ---- an open pool ---- */

enum named { NAMED_SAME, NAMED_NOT, NAMED_OTHER }; /* from good to bad */

/*
 * What can't be looked at, as on a disk that fails or for want of a descriptor, counts as the same.
 * But nothing of the pool is behind what is no way for one: a link, or what is closed to us.
 */
static enum named
unseen(int status)
{
	return status == REPL_E_NOT_FOUND || status == REPL_E_REFUSED ? NAMED_NOT : NAMED_SAME;
}

static bool
same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* A link is a device's, or leads to what is not opened by this name again. */
static enum named
what_is_named(int dir, const char *leaf, int fd)
{
	struct stat named, file;

	if (fstatat(dir, leaf, &named, AT_SYMLINK_NOFOLLOW))
		return unseen(err_from_errno(errno));
	if (fstat(fd, &file) ||
	    (S_ISLNK(named.st_mode) ? pooldevice_is_open(&file) : same_file(&named, &file)))
		return NAMED_SAME;
	return NAMED_OTHER;
}

static enum named
what_part_is_named(const struct poolparts *r, const struct poolpart *part)
{
	struct pool_place place;
	enum named found;
	struct err why;

	err_clear(&why);
	if (pool_place_open(r->dirfd, part->name, false, &place, &why))
		return unseen(why.code);
	found = what_is_named(place.dir, place.leaf, part->fd);
	pool_place_close(&place);
	return found;
}

/* The worst of a section's parts. */
static enum named
what_parts_are_named(const struct poolparts *r)
{
	enum named worst = NAMED_SAME;

	for (unsigned i = 0; i < r->there; i++) {
		enum named found = what_part_is_named(r, &r->part[i]);

		worst = found > worst ? found : worst;
	}
	return worst;
}

/* Of a local replica what lies there now is compared when the pool is opened next. */
static bool
copies_are_named(struct pool *p)
{
	const struct poolparts *r = p->files.parts ? p->files.parts->next : NULL;

	while (r && what_parts_are_named(r) == NAMED_SAME)
		r = r->next;
	if (r)
		(void)pool_written(p, NULL);
	return !r;
}

/*
 * Another one may have come over it, as where its disk is mounted late. The way to it need not be
 * open to us: it may have been opened with more rights than we have now.
 */
static bool
store_is_named(const struct pool_store *s)
{
	struct stat named, dir;

	if (stat(s->dir, &named))
		return errno != ENOENT && errno != ENOTDIR;
	return fstat(s->dirfd, &dir) || same_file(&named, &dir);
}

static int
gone(const char *name, struct err *e)
{
	return err_set(e, REPL_E_NOT_FOUND,
		       "pool '%s': its files were removed, renamed or replaced while it was open",
		       name);
}

int
pool_check_named(struct pool *p, struct err *e)
{
	const struct pool_files *f = &p->files;
	const char *name = p->info.name;
	enum named sidecar = NAMED_NOT, file = NAMED_SAME;
	struct pool_place place;
	struct err why;

	err_clear(&why);
	if (!store_is_named(p->store))
		return gone(name, e);
	if (pool_place_open(p->store->dirfd, name, false, &place, &why)) {
		if (unseen(why.code) == NAMED_SAME)
			return 0;
	} else {
		sidecar = what_is_named(place.dir, place.sidecar, f->sidecar_fd);
		file = f->parts ? what_parts_are_named(f->parts)
				: what_is_named(place.dir, place.leaf, f->fd);
		pool_place_close(&place);
	}
	if (sidecar == NAMED_SAME && file == NAMED_SAME && copies_are_named(p))
		return 0;
	/* What our sidecar tells is not of the file that it lies beside now. */
	if (sidecar == NAMED_SAME && file == NAMED_OTHER)
		(void)record(f, name, "its file was replaced by another hand", &p->info.meta, NULL);
	return gone(name, e);
}

static int
check_whole(int fd, uint64_t size, const char *name, const char *what, struct err *e)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size >= size)
		return 0;
	return err_set(e, REPL_E_CORRUPT,
		       "pool '%s': %s was cut to %" PRIu64 " bytes of %" PRIu64
		       " while it was open: its bytes are lost",
		       name, what, (uint64_t)st.st_size, size);
}

int
pool_check_files(struct pool *p, struct err *e)
{
	const char *name = p->info.name;
	int rc = pool_check_named(p, e);

	if (rc)
		return rc;
	if (!p->files.parts)
		rc = check_whole(p->files.fd, p->info.meta.pool_size, name, "its file", e);
	for (const struct poolparts *r = p->files.parts; !rc && r; r = r->next) {
		for (unsigned i = 0; !rc && i < r->there; i++)
			rc = check_whole(r->part[i].fd, r->part[i].file_size, name, r->part[i].name,
					 e);
		/* The pool itself is whole. */
		if (rc && r->replica) {
			(void)pool_written(p, NULL);
			return rc;
		}
	}
	if (rc)
		(void)record(&p->files, name, "its file was cut by another hand", &p->info.meta,
			     NULL);
	return rc;
}
