/* SPDX-License-Identifier: BSD-3-Clause */
/* What another hand, an administrator's, has done to the files of a pool. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "log.h"
#include "poolstore.h"

/*
 * What is left of the pool is of no generation, and no dirty map tells what it lacks, also when the
 * file has its size again. A primary is its own program's.
 */
static void
record(const struct pool_files *f, const char *name, const char *what, struct sidecar *meta)
{
	static const struct generation none;
	struct sidecar next = *meta;

	if (meta->primary ||
	    (meta->state == SIDECAR_INCONSISTENT && gen_id_is_nil(&meta->generation.current)))
		return;
	next.state = SIDECAR_INCONSISTENT;
	next.generation = none;
	next.position = 0;
	next.waited = false;
	if (sidecar_write(f->sidecar_fd, &next, NULL))
		return;
	*meta = next;
	log_error("pool '%s': its file was %s by another hand: it is inconsistent from now on, and "
		  "who fills it again compares all of it",
		  name, what);
}

void
pool_files_record_cut(const struct pool_files *f, const char *name, struct sidecar *meta)
{
	struct stat st;

	if (!f->parts && fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size < meta->pool_size)
		record(f, name, "cut", meta);
}

/* ---- an open pool ---- */

enum named { NAMED_SAME, NAMED_NOT, NAMED_OTHER };

/* What can't be looked at counts as the same; a link is a device's. */
static enum named
what_is_named(int dir, const char *leaf, int fd)
{
	struct stat named, file;

	if (fstatat(dir, leaf, &named, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? NAMED_NOT : NAMED_SAME;
	if (S_ISLNK(named.st_mode) || fstat(fd, &file) ||
	    (named.st_ino == file.st_ino && named.st_dev == file.st_dev))
		return NAMED_SAME;
	return NAMED_OTHER;
}

static int
check_named(struct pool *p, struct err *e)
{
	const struct pool_files *f = &p->files;
	const char *name = p->info.name;
	enum named sidecar = NAMED_NOT, file = NAMED_SAME;
	struct pool_place place;
	struct err why;

	err_clear(&why);
	if (pool_place_open(p->store->dirfd, name, false, &place, &why)) {
		if (why.code != REPL_E_NOT_FOUND)
			return 0;
	} else {
		sidecar = what_is_named(place.dir, place.sidecar, f->sidecar_fd);
		if (!f->parts)
			file = what_is_named(place.dir, place.leaf, f->fd);
		pool_place_close(&place);
	}
	if (sidecar == NAMED_SAME && file == NAMED_SAME)
		return 0;
	/* What our sidecar tells is not of the file that it lies beside now. */
	if (sidecar == NAMED_SAME && file == NAMED_OTHER)
		record(f, name, "replaced", &p->info.meta);
	return err_set(e, REPL_E_NOT_FOUND,
		       "pool '%s': its files were removed, renamed or replaced while it was open",
		       name);
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
	int rc = check_named(p, e);

	if (rc)
		return rc;
	if (!p->files.parts)
		rc = check_whole(p->files.fd, p->info.meta.pool_size, name, "its file", e);
	for (const struct poolparts *r = p->files.parts; r; r = r->next) {
		for (unsigned i = 0; !rc && i < r->there; i++)
			rc = check_whole(r->part[i].fd, r->part[i].file_size, name, r->part[i].name,
					 e);
	}
	if (rc)
		record(&p->files, name, "cut", &p->info.meta);
	return rc;
}
