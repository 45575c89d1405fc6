/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolstore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "filesystem.h"
#include "lock.h"
#include "log.h"
#include "pooldevice.h"

/* A reader that met an update looks again so often, so far apart. */
#define SETTLE_TRIES 5
#define SETTLE_MS    4

/* So many are there for who removes files, however many of those are kept. */
#define DESCRIPTORS_LEFT 16

#define GROWN_TRIES 100 /* each time the pool must have grown again */

static int
dir_error(const char *dir, int errnum, struct err *e)
{
	int rc = err_from_errno(errnum);

	if (rc == REPL_E_LIMIT || rc == REPL_E_IO)
		return err_errno(e, rc, errnum, "pool directory '%s'", dir);
	if (errnum == EACCES || errnum == EPERM)
		return err_errno(e, REPL_E_CONFIG, errnum, "pool directory '%s': " PATH_OWN_HINT,
				 dir);
	return err_errno(e, rc, errnum,
			 "pool directory '%s': make it with 'install -d -m 0700' and see that this "
			 "user may write it",
			 dir);
}

int
pool_store_new(const char *dir, struct pool_store **out, struct err *e)
{
	struct pool_store *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return err_set(e, REPL_E_NOMEM, "no memory for the pool store");
	s->dirfd = -1;
	s->dir = strdup(dir);
	if (!s->dir) {
		rc = err_set(e, REPL_E_NOMEM, "no memory for the pool store");
		goto out;
	}
	s->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dirfd < 0) {
		rc = dir_error(dir, errno, e);
		goto out;
	}
	pool_make_clean(s);
	*out = s;
	s = NULL;
out:
	pool_store_free(s);
	return rc;
}

void
pool_store_free(struct pool_store *s)
{
	if (!s)
		return;
	pool_list_forget(s);
	if (s->dirfd >= 0)
		(void)close(s->dirfd);
	free(s->dir);
	free(s);
}

int
pool_store_dirfd(const struct pool_store *s)
{
	return s->dirfd;
}

int
pool_store_lock(struct pool_store *s, const char *name, struct err *e)
{
	pool_list_forget(s);
	if (lock_take(s->dirfd, LOCK_NAMES_MS))
		return 0;
	if (errno != EWOULDBLOCK)
		return err_errno(e, err_from_errno(errno), errno, "lock of '%s'", s->dir);
	/* It is held for work on names, which is short: no other writer is in the way. */
	(void)err_set(
		e, REPL_E_TIMEOUT,
		"pool '%s': another session is making or removing a pool in '%s' and does not "
		"come to an end within %u s: mostly since the target's disk stalls",
		name, s->dir, LOCK_NAMES_MS / 1000);
	return err_because(e, REPL_REASON_TARGET_IO);
}

void
pool_store_unlock(struct pool_store *s)
{
	lock_drop(s->dirfd);
	while (s->late_count > 0)
		(void)close(s->late[--s->late_count]);
}

void
pool_store_close_late(struct pool_store *s, int fd)
{
	struct rlimit r;
	bool scarce =
		getrlimit(RLIMIT_NOFILE, &r) != 0 || (rlim_t)fd + DESCRIPTORS_LEFT > r.rlim_cur;

	if (scarce || s->late_count == POOL_LATE_MAX)
		(void)close(fd);
	else
		s->late[s->late_count++] = fd;
}

void
pool_files_close(struct pool_files *f)
{
	/* The lock ends here even if a child has inherited the descriptor. */
	if (f->sidecar_fd >= 0) {
		lock_drop(f->sidecar_fd);
		lock_entered(f->sidecar_fd);
		(void)close(f->sidecar_fd);
	}
	if (f->fd >= 0)
		(void)close(f->fd);
	poolparts_free(f->parts);
	f->parts = NULL;
	f->fd = f->sidecar_fd = -1;
}

/* Take the parts of the set that set_fd is; the sidecar is open. */
static int
files_open_set(struct pool_store *s, const char *name, int set_fd, int flags, struct pool_files *f,
	       struct err *e)
{
	struct sidecar meta;
	bool repair, known, kept;
	int rc;

	/* Being made or removed, or left so by a kill: there is no pool. */
	known = sidecar_read(f->sidecar_fd, &meta, &repair, NULL) == 0;
	if (known && meta.created_s == 0)
		return err_set(e, REPL_E_NOT_FOUND,
			       "pool '%s': not found: its set file is there, its parts are not",
			       name);
	rc = poolparts_read(s->dirfd, s->dir, set_fd, name, &f->parts, e);
	/* It was right when the pool was made: nothing that was asked for is wrong. */
	if (rc == REPL_E_INVAL && known && e)
		rc = e->code = REPL_E_CORRUPT;
	kept = known && !pmdk_attr_none(meta.attr);
	if (!rc && known && f->parts->linked && !kept)
		rc = err_set(
			e, REPL_E_CORRUPT,
			"pool '%s': its set file has REPLICA sections or directories and had none "
			"when the pool was made: take them out, or make the pool anew",
			name);
	if (!rc && known && poolparts_is_reordered(f->parts, meta.order))
		rc = err_set(e, REPL_E_CORRUPT,
			     "pool '%s': the lines of its set file are in another order than when "
			     "the pool was opened last, and its bytes are not: put them back into "
			     "that order",
			     name);
	if (!rc) {
		/* Also of a set file that has lost its last REPLICA. */
		f->parts->linked |= kept;
		rc = poolparts_open(f->parts, name, flags, e);
	}
	if (rc)
		return rc;
	f->fd = fcntl(f->parts->part[0].fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0 || fstat(f->fd, &f->st) != 0)
		return err_errno(e, err_from_errno(errno), errno, "pool '%s'", name);
	return 0;
}

/*
 * Directories are looked into one behind the other, beside a writer that makes files there or
 * removes some: what does not last is no damage.
 */
static int
files_open_settled(struct pool_store *s, const char *name, int set_fd, int flags,
		   struct pool_files *f, struct err *e)
{
	int rc = files_open_set(s, name, set_fd, flags, f, e);

	for (int i = 0; i < SETTLE_TRIES && rc == REPL_E_CORRUPT; i++) {
		if (!f->parts || f->parts->dir_count == 0)
			break;
		poolparts_free(f->parts);
		f->parts = NULL;
		err_clear(e);
		rc = files_open_set(s, name, set_fd, flags, f, e);
	}
	return rc;
}

int
pool_files_open(struct pool_store *s, const char *name, int flags, struct pool_files *f,
		struct err *e)
{
	char owner[TARGET_POOL_MAX + 1];
	struct pool_place place;
	struct stat st;
	const char *lost;
	bool device;
	int set_fd, rc;

	f->fd = f->sidecar_fd = -1;
	f->parts = NULL;
	f->write = (flags & O_ACCMODE) != O_RDONLY;
	rc = pool_place_open(s->dirfd, name, false, &place, e);
	if (rc)
		return rc;
	device = pooldevice_is(place.dir, place.leaf);
	rc = pool_set_peek(&place, name, &set_fd, e);
	lost = !rc && set_fd < 0 ? pool_set_lost(&place) : NULL;
	if (lost)
		rc = err_set(e, REPL_E_CORRUPT, POOL_SET_LOST, name, lost);
	else if (!rc && device)
		rc = pooldevice_open(place.dir, place.leaf, name, flags, false, &f->fd, &f->st, e);
	else if (!rc && set_fd < 0)
		rc = pool_file_open(&place, place.leaf, name, flags, &f->fd, &f->st, e);
	if (rc)
		goto out;
	rc = pool_file_open(&place, place.sidecar, name, flags, &f->sidecar_fd, &st, e);
	if (!rc && set_fd >= 0)
		rc = files_open_settled(s, name, set_fd, flags, f, e);
	else if (rc == REPL_E_NOT_FOUND && set_fd >= 0)
		rc = err_set(e, REPL_E_NOT_FOUND,
			     "pool '%s': not found: its set file is there, its parts are not",
			     name);
	else if (rc == REPL_E_NOT_FOUND && pool_place_is_beside(&place, name, owner))
		rc = err_set(e, REPL_E_NOT_FOUND,
			     "pool '%s': not found: the file of that name belongs to pool '%s'",
			     name, owner);
	else if (rc == REPL_E_NOT_FOUND && device)
		rc = err_set(e, REPL_E_NOT_FOUND,
			     "pool '%s': not found: its device is there, no pool was made on it",
			     name);
	else if (rc == REPL_E_NOT_FOUND)
		rc = err_set(
			e, REPL_E_CORRUPT,
			"pool '%s': its sidecar '%s' is missing; the pool's own file is not "
			"touched: copy it away, then remove the pool and make the replica anew",
			name, place.sidecar);
out:
	if (set_fd >= 0)
		(void)close(set_fd);
	if (rc)
		pool_files_close(f);
	pool_place_close(&place);
	return rc;
}

int
pool_files_again(struct pool_store *s, const char *name, struct pool_files *f, struct err *e)
{
	struct pool_files now;
	int rc;

	if (!f->parts || f->parts->dir_count == 0)
		return 0;
	/* They may be many, and are not to be open twice. */
	(void)close(f->fd);
	poolparts_free(f->parts);
	f->fd = -1;
	f->parts = NULL;
	rc = pool_files_open(s, name, O_RDWR, &now, e);
	if (rc)
		return rc;
	/* The lock is that of the first one. */
	(void)close(now.sidecar_fd);
	now.sidecar_fd = f->sidecar_fd;
	*f = now;
	return 0;
}

void
pool_info_init(struct pool_info *info, const char *name)
{
	memset(info, 0, sizeof(*info));
	(void)snprintf(info->name, sizeof(info->name), "%s", name);
}

/* What a set's headers say, for whoever asks for the pool. */
void
pool_info_add_set(const struct pool_files *f, struct pool_info *info)
{
	struct err e;

	if (!f->parts)
		return;
	err_clear(&e);
	info->parts = f->parts->count;
	info->header = f->parts->headers == POOLSET_NONE ? 0 : POOLSET_HEADER;
	for (const struct poolparts *r = f->parts->next; r; r = r->next)
		info->replicas++;
	if (info->header && poolparts_attr_get(f->parts, info->meta.attr, info->attr, &e))
		(void)snprintf(info->header_damage, sizeof(info->header_damage), "%.255s", e.text);
}

/* A pool that was removed, or removed and made again, between opening and locking. */
int
pool_check_present(const struct pool_files *f, const char *name, struct err *e)
{
	struct stat pool, sidecar;

	if (fstat(f->fd, &pool) != 0 || fstat(f->sidecar_fd, &sidecar) != 0)
		return err_errno(e, REPL_E_IO, errno, "pool '%s'", name);
	if (pool.st_nlink == 0 || sidecar.st_nlink == 0)
		return err_set(e, REPL_E_NOT_FOUND, "pool '%s': was just removed", name);
	return 0;
}

/* A reader has not opened the local replicas, which may be shorter for a moment. */
static uint64_t
held(const struct pool_files *f)
{
	return f->write ? poolparts_held(f->parts) : f->parts->size;
}

int
pool_check_size(const struct pool_files *f, const struct pool_info *info, struct err *e)
{
	uint64_t size = info->meta.pool_size;
	struct stat st;
	int rc;

	/* Looked at after the sidecar: a writer may have grown both in between. */
	if (fstat(f->fd, &st) != 0)
		return err_errno(e, REPL_E_IO, errno, "pool '%s'", info->name);
	if (f->parts && size > held(f) && !f->write)
		(void)poolparts_follow(f->parts, info->name, NULL);
	rc = f->parts ? poolparts_check_sizes(f->parts, info->name, e) : 0;
	if (rc)
		return rc;
	if (f->parts && size > held(f))
		return err_set(e, REPL_E_CORRUPT,
			       "pool '%s': its parts hold %llu bytes, its sidecar says %llu: the "
			       "set file is not the one that the pool was made by",
			       info->name, (unsigned long long)held(f), (unsigned long long)size);
	if (pooldevice_is_open(&st))
		return pooldevice_check(&st, info->name, size, e);
	if (f->parts || (uint64_t)st.st_size == size)
		return 0;
	/* It is about to grow, or its writer was killed over that; a primary's is its program's. */
	if ((uint64_t)st.st_size > size &&
	    (info->meta.primary || pool_rest_is_zero(f->fd, size, (uint64_t)st.st_size)))
		return 0;
	return err_set(
		e, REPL_E_CORRUPT,
		"pool '%s': the file has %llu bytes, its sidecar says %llu: the file was cut or "
		"grown by another hand; copy it away, then remove the pool and make the "
		"replica anew",
		info->name, (unsigned long long)st.st_size, (unsigned long long)size);
}

/* Without news from its writer an up-to-date pool may have missed something. */
void
pool_writer_lost(struct sidecar *meta)
{
	if (meta->state == SIDECAR_UP_TO_DATE)
		meta->state = SIDECAR_UNKNOWN;
	meta->writer_open = false;
}

void
pool_info_left(struct pool_info *info)
{
	if (info->meta.primary)
		info->power = boot_power(&info->meta);
	pool_writer_lost(&info->meta);
}

int
pool_meta_read(const struct pool_files *f, struct sidecar *meta, bool *repair, struct err *e)
{
	struct err why;
	int rc;

	err_clear(&why);
	rc = sidecar_read(f->sidecar_fd, meta, repair, &why);
	if (!rc)
		return 0;
	/* It may be as it was when the disk can be read again. */
	if (why.errnum)
		return err_set(e, REPL_E_IO, "its sidecar can't be read: %s", why.text);
	return err_set(e, rc, "%s%s", why.text,
		       rc == REPL_E_CORRUPT
			       ? "; the pool's own file is not touched: copy it away and check it "
				 "with the tools of its program, then remove the pool and make the "
				 "replica anew"
			       : "");
}

/*
 * Read beside a writer: its update shows as a damaged or older copy for a
 * moment, so what does not last is no damage.
 */
int
pool_read_settled(const struct pool_files *f, struct pool_info *info, struct err *e)
{
	const struct timespec pause = {.tv_nsec = SETTLE_MS * (long)NS_PER_MS};
	int rc;

	for (int i = 0;; i++) {
		rc = pool_meta_read(f, &info->meta, &info->sidecar_damaged, e);
		if ((!rc && !info->sidecar_damaged) || rc == REPL_E_VERSION || i == SETTLE_TRIES)
			break;
		(void)nanosleep(&pause, NULL);
	}
	if (!rc) {
		pool_files_look(f, &info->meta);
		info->meta.pool_size = pool_size_now(f, &info->meta);
	}
	return rc ? err_prefix(e, "pool '%s'", info->name) : 0;
}

/*
 * What a reader is told. A recorded writer without its lock was killed: looked at once more under
 * the lock, since it may have closed in between. So was one whose lock another has already that is
 * not on record yet, and as long as we look nobody comes to that.
 */
static int
read_meta(const struct pool_files *f, struct pool_info *info, struct err *e)
{
	int rc = pool_read_settled(f, info, e);
	const struct sidecar *meta = &info->meta;
	bool is_left, is_gone;

	if (rc || !(meta->writer_open || meta->log_len || meta->position_len))
		return rc;
	is_gone = !lock_look(f->sidecar_fd);
	is_left = lock_take_shared(f->sidecar_fd, 0);
	rc = pool_read_settled(f, info, e);
	if (is_left)
		lock_drop(f->sidecar_fd);
	lock_look_end(f->sidecar_fd);
	if (!rc && is_left)
		pool_rounds_look(f, &info->meta);
	if (!rc && (is_left || is_gone) && meta->writer_open)
		pool_info_left(info);
	return rc;
}

static bool
size_has_changed(const struct pool_files *f, const struct pool_info *info)
{
	struct sidecar now;
	bool repair;

	return sidecar_read(f->sidecar_fd, &now, &repair, NULL) == 0 &&
	       now.pool_size != info->meta.pool_size;
}

int
pool_read_info(const struct pool_files *f, struct pool_info *info, struct err *e)
{
	int rc = 0;

	filesystem_name(f->fd, info->filesystem, sizeof(info->filesystem));
	for (int i = 0; i < GROWN_TRIES; i++) {
		rc = read_meta(f, info, e);
		if (rc)
			break;
		rc = pool_check_size(f, info, e);
		/* Its writer may have let it grow, and written there, between the two. */
		if (rc != REPL_E_CORRUPT || !size_has_changed(f, info))
			break;
	}
	if (!rc)
		err_clear(e);
	return rc;
}

int
pool_info(struct pool_store *s, const char *name, struct pool_info *info, struct err *e)
{
	struct pool_files f;
	int rc;

	pool_info_init(info, name);
	rc = pool_files_open(s, name, O_RDONLY, &f, e);
	if (rc == REPL_E_NOT_FOUND)
		rc = pool_away(s, name, e);
	if (rc)
		return rc;
	rc = pool_read_info(&f, info, e);
	if (!rc && info->meta.ring_len)
		info->ring_messages = poolring_count(f.sidecar_fd, &info->meta);
	if (!rc)
		pool_info_add_set(&f, info);
	pool_files_close(&f);
	return rc;
}

int
pool_head(struct pool_store *s, const char *name, uint8_t *buf, size_t size, size_t *len,
	  struct err *e)
{
	struct pool_files f;
	ssize_t n;
	int rc = pool_files_open(s, name, O_RDONLY, &f, e);

	*len = 0;
	if (rc)
		return rc;
	if (pooldevice_is_open(&f.st) && pooldevice_head(f.fd, name, buf, size))
		n = (ssize_t)size;
	else
		n = pread(f.fd, buf, size, 0);
	if (n < 0)
		rc = err_errno(e, REPL_E_IO, errno, "reading pool '%s'", name);
	else
		*len = (size_t)n;
	pool_files_close(&f);
	return rc;
}
