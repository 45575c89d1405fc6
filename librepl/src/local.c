/* SPDX-License-Identifier: BSD-3-Clause */
#include "local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "boot.h"
#include "deadfd.h"
#include "fileclaim.h"
#include "holes.h"
#include "filewrite.h"
#include "forks.h"
#include "le.h"
#include "lineage.h"
#include "pagecache.h"
#include "poolname.h"
#include "procself.h"

void
local_init(struct local *l)
{
	memset(l, 0, sizeof(*l));
	l->fd = l->again = l->pool = -1;
}

static void
pool_close(struct local *l, bool forked)
{
	holes_close(l->pool);
	if (l->pool_ino)
		holes_end(l->pool_dev, l->pool_ino, forked);
	l->pool = -1;
}

void
local_fini(struct local *l)
{
	if (l->fd >= 0)
		(void)close(l->fd);
	if (l->again >= 0)
		(void)close(l->again);
	pool_close(l, false);
	free(l->path);
	local_init(l);
}

void
local_abandon(struct local *l)
{
	l->abandoned = true;
	if (l->fd >= 0)
		deadfd_put(l->fd);
	if (l->again >= 0)
		deadfd_put(l->again);
	pool_close(l, true);
}

void
local_look(struct local *l, const char *file, const void *mem)
{
	struct stat st;

	if (!file || stat(file, &st))
		return;
	l->pool_dev = st.st_dev;
	l->pool_ino = st.st_ino;
	l->pool = holes_open(file, mem);
}

int
local_again(struct local *l)
{
	char name[64];

	if (l->again < 0) {
		(void)snprintf(name, sizeof(name), PROCSELF "/fd/%d", l->fd);
		l->again = open(name, O_RDWR | O_CLOEXEC);
	}
	return l->again < 0 ? l->fd : l->again;
}

static int
local_lock(int fd, const char *path, struct err *e)
{
	return fileclaim_take(fd, LOCK_EX, path,
			      "locked: another program replicates, syncs or restores this pool", e);
}

/* What its path names is locked, not what had that name until the holder of the lock let it go. */
static int
local_claim(const struct local *l, struct err *e)
{
	struct stat own, named;
	int rc = local_lock(l->fd, l->path, e);

	if (rc || (fstat(l->fd, &own) == 0 && lstat(l->path, &named) == 0 &&
		   own.st_dev == named.st_dev && own.st_ino == named.st_ino))
		return rc;
	return err_set(e, REPL_E_BUSY,
		       "%s has just been replaced or removed: another program syncs or restores "
		       "this pool",
		       l->path);
}

static int
local_read(struct local *l, uint64_t size, struct err *e)
{
	bool repair;
	struct gen_id fresh;
	struct stat st;
	struct err why;
	int rc;

	err_clear(&why);
	if (fstat(l->fd, &st) || !S_ISREG(st.st_mode))
		return err_set(e, REPL_E_CORRUPT, "%s is no regular file", l->path);
	rc = sidecar_read(l->fd, &l->meta, &repair, &why);
	if (rc && why.errnum)
		return err_set(e, rc, "%s: %s; look at this machine's kernel log", l->path,
			       why.text);
	if (rc)
		return err_set(e, rc, "%s: %s%s", l->path, why.text,
			       rc == REPL_E_CORRUPT
				       ? "; it is the record of the local file, not of a replica: "
					 "remove it; a replica that differs from the file is then "
					 "left as it is until one of the two is chosen"
				       : "");
	if (sidecar_tells_nothing(&l->meta)) {
		memset(&l->meta, 0, sizeof(l->meta));
		return 0;
	}
	l->recorded = l->meta.pool_size;
	/* The program has let its file grow, and was cut off before that was recorded. */
	if (l->meta.pool_size < size)
		l->meta.pool_size = size;
	if (l->meta.pool_size != size)
		return err_set(
			e, REPL_E_CORRUPT,
			"%s is of a pool of %" PRIu64 " bytes, the pool has %" PRIu64
			", and no replica gets shorter; if the file was cut off, take the "
			"replica's data (replctl restore --force TARGET/POOL FILE); if it was "
			"made anew, remove %s and the replica (replctl remove TARGET/POOL)",
			l->path, l->meta.pool_size, size, l->path);
	/* A replica that is used where it is, before its own target has looked at it. */
	if (sidecar_holds(&l->meta))
		return err_set(e, REPL_E_REFUSED,
			       "%s holds a %s, which may hold updates that the pool lacks: run "
			       "'replctl probe TARGET/POOL' for it once, which brings them in",
			       l->path, sidecar_holds(&l->meta));
	rc = local_new_id(&fresh, e);
	if (rc)
		return rc;
	lineage_in_place(&l->meta, &fresh);
	/* Of what was never committed nothing is the pool's. */
	l->meta.journal_off = l->meta.journal_len = 0;
	/* Only its target looks how far its writer came. */
	l->meta.position_off = l->meta.position_len = 0;
	l->present = true;
	return 0;
}

#define TEMP_SUFFIX ".XXXXXX"

static int
local_check_name(const char *path, struct err *e)
{
	struct stat st;
	char *temp;
	int rc = 0;

	if (asprintf(&temp, "%s" TEMP_SUFFIX, path) < 0)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	if (lstat(temp, &st) && errno == ENAMETOOLONG)
		rc = err_errno(e, REPL_E_FAILED, errno, "the record of the local file, %s", temp);
	free(temp);
	return rc;
}

static int
local_check_directory(const char *path, struct err *e)
{
	char *copy = strdup(path);
	const char *dir, *unable;
	int rc = 0;

	if (!copy)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	dir = dirname(copy);
	unable = filewrite_unable(dir);
	if (unable) {
		(void)err_set(e, REPL_E_FAILED,
			      "no record can be kept beside the local file, as %s: %s takes no "
			      "write(2), only mappings; keep the pool on another file system, such "
			      "as a tmpfs that is mounted with huge=always",
			      path, unable);
		rc = err_because(e, REPL_REASON_LOCAL);
	} else if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) &&
		   (errno == EACCES || errno == EROFS)) {
		/* Whatever else it fails by may be for the question. */
		rc = err_errno(e, err_from_errno(errno), errno,
			       "the record of the local file, %s, can't be made in its directory",
			       path);
	}
	free(copy);
	return rc;
}

/* Before anything is copied that could not be recorded then. */
static int
local_check_absent(const char *path, struct err *e)
{
	int rc = local_check_name(path, e);

	return rc ? rc : local_check_directory(path, e);
}

int
local_open(struct local *l, const char *pool_file, uint64_t size, struct err *e)
{
	int rc;

	if (!pool_file)
		return 0;
	if (asprintf(&l->path, "%s%s", pool_file, SIDECAR_SUFFIX) < 0) {
		l->path = NULL;
		return err_set(e, REPL_E_NOMEM, "out of memory");
	}
	l->fd = open(l->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (l->fd < 0 && errno == ENOENT)
		return local_check_absent(l->path, e);
	if (l->fd < 0)
		return err_errno(e, err_from_errno(errno), errno, "%s", l->path);
	rc = local_claim(l, e);
	return rc ? rc : local_read(l, size, e);
}

/*
 * Not by msync(3), which replctl run takes for the program's, as it does fdatasync(3). A device has
 * nothing to be written back: EINVAL.
 */
static int
settle_part(const void *mem, uint64_t from, uint64_t to, const char *what, struct err *e)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = ((uintptr_t)mem + from) / page * page, end = (uintptr_t)mem + to;

	if (syscall(SYS_msync, at, end - at, MS_SYNC) == 0 || errno == EINVAL)
		return 0;
	return err_errno(e, err_from_errno(errno), errno, "syncing %s", what);
}

static int
agree_direct(struct pagecache *c, uint64_t *lost, struct err *e)
{
	int rc = pagecache_open(c->fd, &c->direct, e);

	if (rc || c->direct < 0)
		return rc;
	rc = pagecache_agree(c, lost, e);
	if (!rc && *lost > 0 && fsync(c->direct))
		rc = err_errno(e, err_from_errno(errno), errno, "sync");
	/* It may be kept. */
	(void)fcntl(c->direct, F_SETFL, 0);
	holes_close(c->direct);
	return rc;
}

int
local_agree(int fd, const void *mem, uint64_t size, enum pagecache_right right, uint64_t *lost,
	    struct err *e)
{
	struct pagecache c = {.fd = fd, .map = mem, .right = right};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char name[64];
	struct stat st;
	int rc;

	*lost = 0;
	/* Who has a lock on it that would go, or was given it by another user, does without. */
	(void)snprintf(name, sizeof(name), PROCSELF "/fd/%d", fd);
	if (fd < 0 || fstat(fd, &st) ||
	    (faccessat(AT_FDCWD, name, W_OK, AT_EACCESS) && errno == EACCES))
		return 0;
	c.size = (size + page - 1) / page * page;
	if (c.size > (uint64_t)st.st_size)
		c.size = (uint64_t)st.st_size;
	rc = agree_direct(&c, lost, e);
	/* It keeps nobody's replicas away. */
	if (rc && right == PAGECACHE_EITHER) {
		*lost += page;
		err_clear(e);
		return 0;
	}
	return rc ? err_prefix(e, "the local file, of which a sync may have lost something") : 0;
}

bool
local_in_doubt(const struct local *l)
{
	return !l->present || l->meta.writer_open;
}

void
local_doubt(struct local *l)
{
	uint64_t size;

	if (!l->present || local_check_whole(l, NULL))
		return;
	boot_none(&l->meta.boot);
	l->meta.writer_open = true;
	/* Nobody has recorded that the pool has grown. */
	size = l->meta.pool_size;
	if (l->recorded)
		l->meta.pool_size = l->recorded;
	(void)local_store(l, NULL);
	l->meta.pool_size = size;
}

int
local_settle(const void *mem, uint64_t size, struct err *e)
{
	return settle_part(mem, 0, size, "the local file", e);
}

int
local_settle_beside(const struct local *l, uint64_t size, struct err *e)
{
	if (l->pool < 0)
		return l->mem ? local_settle(l->mem, size, e) : 0;
	if (syscall(SYS_fdatasync, l->pool) == 0 || errno == EINVAL)
		return 0;
	return err_errno(e, err_from_errno(errno), errno, "syncing the local file");
}

/* A sync of the last page brings the length, and does not wait for all that is dirty before it. */
int
local_settle_size(const void *mem, uint64_t size, struct err *e)
{
	return settle_part(mem, size - 1, size, "the end of the local file", e);
}

static int
sync_directory(const char *path, struct err *e)
{
	char *copy = strdup(path);
	int fd, rc = 0;

	if (!copy)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		rc = err_errno(e, err_from_errno(errno), errno, "the directory of %s", path);
	else if (fsync(fd))
		rc = err_errno(e, REPL_E_IO, errno, "syncing the directory of %s", path);
	if (fd >= 0)
		(void)close(fd);
	free(copy);
	return rc;
}

/* One that came since local_open() belongs to somebody who has locked it. */
static int
local_place(const char *temp, const char *path, struct err *e)
{
	if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == EINVAL && link(temp, path) == 0) {
		(void)unlink(temp);
		return 0;
	}
	if (errno == EEXIST)
		return err_set(e, REPL_E_BUSY,
			       "%s has just come: another program replicates, syncs or restores "
			       "this pool",
			       path);
	return err_errno(e, err_from_errno(errno), errno, "%s", path);
}

/* The pool's program is to open it, too, when an administrator has made it. */
static void
local_give(const char *path, int fd)
{
	char *file = strndup(path, strlen(path) - strlen(SIDECAR_SUFFIX));
	struct stat st;

	/* Whoever may not give files away keeps them. */
	if (file && stat(file, &st) == 0 && st.st_uid != geteuid())
		(void)!fchown(fd, st.st_uid, st.st_gid);
	free(file);
}

static int
not_ours(const struct local *l, struct err *e)
{
	return err_set(e, REPL_E_LOST, "%s is kept by the process that has forked this one",
		       l->path);
}

static int
local_create(struct local *l, struct err *e)
{
	unsigned forks = forks_count();
	char *temp = NULL;
	int fd = -1, rc;

	if (asprintf(&temp, "%s" TEMP_SUFFIX, l->path) < 0)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0) {
		rc = err_errno(e, err_from_errno(errno), errno, "making %s", temp);
		goto out;
	}
	local_give(l->path, fd);
	rc = local_lock(fd, l->path, e);
	if (!rc)
		rc = sidecar_write(fd, &l->meta, e);
	/* A handler's child leaves it to its parent. */
	if (forks_count() != forks) {
		rc = not_ours(l, e);
		goto out;
	}
	if (!rc)
		rc = local_place(temp, l->path, e);
	if (rc) {
		(void)unlink(temp);
		goto out;
	}
	l->fd = fd;
	fd = -1;
	rc = sync_directory(l->path, e);
out:
	if (fd >= 0)
		(void)close(fd);
	free(temp);
	return rc;
}

int
local_check_whole(const struct local *l, struct err *e)
{
	const struct sidecar *m = &l->meta;

	if (!l->present || m->primary ||
	    (m->state != SIDECAR_INCONSISTENT && m->state != SIDECAR_OUTDATED))
		return 0;
	return err_set(
		e, REPL_E_REFUSED,
		"the local file is %s: as a replica it was not brought up to date; replctl "
		"newest tells which replica has all: take a copy of that (replctl restore), "
		"or, if it is this one or there is none, replctl promote --force where it is",
		sidecar_state_name(m->state));
}

int
local_store(struct local *l, struct err *e)
{
	int rc;

	if (!l->path)
		return 0;
	if (l->abandoned)
		return not_ours(l, e);
	diskclock_begin(&l->disk);
	rc = l->fd >= 0 ? sidecar_write(l->fd, &l->meta, e) : local_create(l, e);
	diskclock_end(&l->disk);
	if (rc)
		return err_prefix(e, "%s", l->path);
	l->present = true;
	return 0;
}

/* Of a line of /proc/self/maps: what of a file is mapped where. */
struct piece {
	uintptr_t from, to, off;
	uint64_t inode;
	bool is_private;
	bool gone;       /* no more by that name */
	char path[4096]; /* empty: none that is mapped shared */
};

/* An end of line in a name is told as \012, and so is what is called that way. */
static void
path_undo(struct piece *p)
{
	static const char told[] = "\\012";
	char *at = strstr(p->path, told);
	struct stat st;
	char name[sizeof(p->path)];

	if (!at || (stat(p->path, &st) == 0 && st.st_ino == p->inode))
		return;
	(void)strcpy(name, p->path);
	for (at = name; (at = strstr(at, told)); at++) {
		*at = '\n';
		memmove(at + 1, at + strlen(told), strlen(at + strlen(told)) + 1);
	}
	if (stat(name, &st) == 0 && st.st_ino == p->inode)
		(void)strcpy(p->path, name);
}

static bool
piece_parse(const char *line, struct piece *p)
{
	static const char gone[] = " (deleted)";
	char perms[5];
	int at = 0;
	size_t len;

	p->path[0] = '\0';
	p->gone = false;
	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNxPTR " %*s %" SCNu64 " %n", &p->from,
		   &p->to, perms, &p->off, &p->inode, &at) < 5)
		return false;
	p->is_private = perms[3] == 'p';
	if (at == 0 || line[at] != '/' || p->is_private)
		return true;
	len = strcspn(line + at, "\n");
	p->gone = len > strlen(gone) &&
		  strncmp(line + at + len - strlen(gone), gone, strlen(gone)) == 0;
	if (p->gone)
		len -= strlen(gone);
	/* What is longer can't be looked up as a whole either. */
	if (len >= sizeof(p->path))
		len = sizeof(p->path) - 1;
	memcpy(p->path, line + at, len);
	p->path[len] = '\0';
	path_undo(p);
	return true;
}

/* What of a range has been found: done bytes, which are those of what->path from what->off on. */
struct found {
	struct local_range *what;
	size_t done;
	uint64_t inode; /* of what->path */
	bool gone;      /* it has that name no more */
	bool begins;    /* something is mapped at its first byte */
};

/*
 * A range may be mapped in several pieces: by several calls, or because a part of it is protected
 * or advised otherwise. The first one tells file and place. False: no memory for it.
 */
static bool
piece_take(const struct piece *p, uintptr_t addr, size_t size, struct found *f)
{
	struct local_range *w = f->what;
	uintptr_t at = addr + f->done;

	if (p->from <= addr && addr < p->to)
		f->begins = true;
	if (p->is_private && p->from < addr + size && addr < p->to)
		w->is_private = true;
	if (!*p->path || p->from > at || at >= p->to)
		return true;
	if (!w->path) {
		w->path = strdup(p->path);
		w->off = p->off + (at - p->from);
		f->inode = p->inode;
		f->gone = p->gone;
	}
	if (w->path && strcmp(w->path, p->path) == 0 && f->gone == p->gone &&
	    p->off + (at - p->from) == w->off + f->done)
		f->done += p->to - at;
	return w->path != NULL;
}

static bool
maps_search(FILE *maps, uintptr_t addr, size_t size, struct found *f)
{
	char *line = NULL;
	bool told = true;
	size_t room = 0;
	struct piece p;

	while (told && f->done < size && getline(&line, &room, maps) > 0) {
		if (piece_parse(line, &p))
			told = piece_take(&p, addr, size, f);
	}
	free(line);
	/* Without memory for a line it is not the end of the file. */
	return told && (f->done >= size || feof(maps));
}

static int
maps_unread(int errnum, struct err *e)
{
	if (errnum == ENOENT || errnum == EACCES)
		return err_errno(
			e, REPL_E_FAILED, errnum,
			"can't tell which file is mapped, if any: mount /proc, or name the "
			"file by 'pool-file': " LOCAL_MAPS);
	return err_errno(e, err_from_errno(errnum), errnum,
			 "can't tell which file is mapped, if any: " LOCAL_MAPS);
}

/* f->what->path is to be freed, also behind an error. */
static int
maps_find(const void *addr, size_t size, struct found *f, struct err *e)
{
	FILE *maps = fopen(LOCAL_MAPS, "re");
	int rc = 0;

	*f->what = (struct local_range){0};
	if (!maps)
		return maps_unread(errno, e);
	if (!maps_search(maps, (uintptr_t)addr, size, f))
		rc = maps_unread(errno, e);
	else if (!f->begins)
		rc = err_set(e, REPL_E_FAILED,
			     "can't tell which file is mapped, name it by 'pool-file': nothing is "
			     "at %p in " LOCAL_MAPS,
			     addr);
	(void)fclose(maps);
	return rc;
}

/* The maps of older kernels (before 6.8) have the inode of the layer that the file is in. */
static bool
is_overlaid(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

static bool
has_its_name(const struct found *f, const struct stat *st)
{
	return st->st_ino == f->inode || is_overlaid(f->what->path);
}

/*
 * Whether it is a regular file. Its name may lead elsewhere by now, as in another root directory or
 * with other rights than when it was mapped: it is not memory of no file for that.
 */
static int
found_check(const struct found *f, bool *regular, struct err *e)
{
	const char *path = f->what->path;
	struct stat st;

	if (stat(path, &st))
		return err_errno(e, REPL_E_FAILED, errno,
				 "can't tell which file is mapped, name it by 'pool-file': %s",
				 path);
	if (!has_its_name(f, &st))
		return err_set(e, REPL_E_FAILED,
			       "can't tell which file is mapped, name it by 'pool-file': %s is "
			       "another one",
			       path);
	*regular = S_ISREG(st.st_mode);
	return 0;
}

int
local_find_range(const void *addr, size_t size, struct local_range *range, struct err *e)
{
	struct found f = {.what = range};
	bool regular = false;
	int rc = maps_find(addr, size, &f, e);

	if (!rc && range->path && !f.gone && f.done >= size)
		rc = found_check(&f, &regular, e);
	if (!regular) {
		free(range->path);
		range->path = NULL;
		range->off = 0;
	}
	return rc;
}

/* By the inode alone where there is no name: of device numbers some file systems give two. */
static bool
is_mapped(const struct found *f, const struct stat *file)
{
	struct stat st;

	if (f->gone || stat(f->what->path, &st) || !has_its_name(f, &st))
		return f->inode == file->st_ino;
	return st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

int
local_check_mapped(const void *addr, size_t size, const char *file, struct err *e)
{
	struct local_range range;
	struct found f = {.what = &range};
	struct stat st;
	struct err why;
	int rc;

	err_clear(&why);
	rc = maps_find(addr, size, &f, &why);
	/* Where nobody can tell, who has named it is believed. */
	if (rc == REPL_E_FAILED && file)
		rc = 0;
	else if (rc)
		(void)err_copy(e, &why);
	else if (!file && f.gone && poolname_has_record(range.path))
		file = range.path;
	/* An empty one holds a place; several files are the pool of none. */
	if (!rc && file && range.path && f.done >= size && stat(file, &st) == 0 &&
	    S_ISREG(st.st_mode) && st.st_size > 0 && !is_mapped(&f, &st))
		rc = err_set(e, REPL_E_INVAL,
			     "%s is not the file that is mapped: where it has replaced that since, "
			     "as replctl restore and resolve do, map it anew; where it is a copy "
			     "for a device, copy it there and remove it, not %s" SIDECAR_SUFFIX,
			     file, file);
	free(range.path);
	return rc;
}

int
local_find_file(const void *addr, size_t size, char **path, struct err *e)
{
	struct local_range range;
	int rc = local_find_range(addr, size, &range, e);

	*path = range.path;
	if (range.off > 0) {
		free(range.path);
		*path = NULL;
	}
	return rc;
}

static bool
piece_is_new(const struct piece *p)
{
	uint8_t header[PMDK_HEADER_SIZE];
	struct stat st;
	bool is;
	int fd;

	if (stat(p->path, &st) || st.st_ino != p->inode || !S_ISREG(st.st_mode) ||
	    (st.st_mode & 0777) != 0)
		return false;
	fd = open(p->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	is = pread(fd, header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	     all_zero(header, sizeof(header));
	(void)close(fd);
	return is;
}

bool
local_has_new(const void *addr, size_t size)
{
	FILE *maps = fopen(LOCAL_MAPS, "re");
	uintptr_t at = (uintptr_t)addr;
	char *line = NULL;
	bool has = false;
	size_t room = 0;
	struct piece p;

	/* Not of the first part: with its header it has lost what the range begins with. */
	while (maps && !has && getline(&line, &room, maps) > 0)
		has = piece_parse(line, &p) && p.from > at && p.from < at + size &&
		      piece_is_new(&p);
	free(line);
	if (maps)
		(void)fclose(maps);
	return has;
}

int
local_new_id(struct gen_id *id, struct err *e)
{
	if (getrandom(id->b, sizeof(id->b), 0) != (ssize_t)sizeof(id->b))
		return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	/* The marks of a random UUID (version 4); it also keeps it from being nil. */
	id->b[6] = (uint8_t)((id->b[6] & 0x0f) | 0x40);
	id->b[8] = (uint8_t)((id->b[8] & 0x3f) | 0x80);
	return 0;
}
