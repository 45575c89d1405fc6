/* SPDX-License-Identifier: BSD-3-Clause */
#include "restoring.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fileclaim.h"
#include "freespace.h"
#include "interrupt.h"
#include "out.h"
#include "sidecar.h"

#define COPY_STEP (64U << 20)

int
restoring_init(struct restoring *r, const char *file, struct err *e)
{
	size_t len = strlen(file);
	char *copy;

	memset(r, 0, sizeof(*r));
	r->dirfd = r->fd = r->old_fd = -1;
	r->file = file;
	if (len == 0 || file[len - 1] == '/')
		return err_set(e, REPL_E_INVAL, "'%s' is not the name of a file", file);
	copy = strdup(file);
	r->dir_path = copy ? strdup(dirname(copy)) : NULL;
	free(copy);
	if (asprintf(&r->path, "%s%s", file, RESTORING_SUFFIX) < 0)
		r->path = NULL;
	if (asprintf(&r->sidecar_path, "%s%s", file, SIDECAR_SUFFIX) < 0)
		r->sidecar_path = NULL;
	if (!r->dir_path || !r->path || !r->sidecar_path)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	r->dirfd = open(r->dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dirfd < 0)
		return err_errno(e, err_from_errno(errno), errno, "directory %s", r->dir_path);
	return 0;
}

static void
close_fd(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

void
restoring_fini(struct restoring *r)
{
	if (!r->file)
		return;
	close_fd(r->fd);
	close_fd(r->old_fd);
	close_fd(r->dirfd);
	free(r->path);
	free(r->sidecar_path);
	free(r->dir_path);
	memset(r, 0, sizeof(*r));
}

int
restoring_look(struct restoring *r, struct err *e)
{
	r->has_sidecar = lstat(r->sidecar_path, &r->sidecar) == 0;
	if (lstat(r->file, &r->old)) {
		if (errno == ENOENT)
			return 0;
		return err_errno(e, err_from_errno(errno), errno, "%s", r->file);
	}
	if (S_ISLNK(r->old.st_mode))
		return err_set(e, REPL_E_REFUSED,
			       "%s is a link, not a regular file, and is not replaced", r->file);
	if (!S_ISREG(r->old.st_mode))
		return err_set(e, REPL_E_REFUSED,
			       "%s is not a regular file and is not replaced; name another file",
			       r->file);
	r->replaces = true;
	return 0;
}

int
restoring_lock_replaced(struct restoring *r, struct err *e)
{
	if (!r->replaces)
		return 0;
	r->old_fd = open(r->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (r->old_fd < 0 || fstat(r->old_fd, &r->old))
		return err_errno(e, err_from_errno(errno), errno, "%s", r->file);
	return fileclaim_take(r->old_fd, LOCK_EX, r->file, "locked: a program has the pool open",
			      e);
}

static int
check_space(const struct restoring *r, uint64_t size, struct err *e)
{
	char wanted[OUT_NUMBER_MAX], available[OUT_NUMBER_MAX];
	uint64_t have = 0, room;
	struct stat st;

	if (r->sparse)
		return 0;
	if (lstat(r->path, &st) == 0 && S_ISREG(st.st_mode))
		have = (uint64_t)st.st_blocks * 512;
	if (size <= have)
		return 0;
	/* Where it is not known the allocation will tell; but of memory no call does. */
	room = freespace_bytes(r->dirfd, size - have);
	if (size - have <= room)
		return 0;
	out_size(size - have, wanted);
	out_size(room, available);
	return err_set(e, REPL_E_NOSPC, "%s: %s (%" PRIu64 " bytes) wanted, %s (%" PRIu64 ") free",
		       r->dir_path, wanted, size - have, available, room);
}

/* The lock is on the file that the path still names, not on one that was renamed meanwhile. */
static int
restoring_lock(struct restoring *r, struct stat *st, struct err *e)
{
	static const char held[] = "in use: another restore is at work";
	struct stat now;
	bool own;
	int rc = fileclaim_take(r->fd, LOCK_EX, r->path, held, e);

	if (rc)
		return rc;
	if (fstat(r->fd, st) || lstat(r->path, &now) || now.st_ino != st->st_ino ||
	    now.st_dev != st->st_dev)
		return err_set(e, REPL_E_BUSY, "%s is %s", r->path, held);
	/* The replaced file's owner may have got it by then, and in the end has it in any case. */
	own = st->st_uid == geteuid() || (r->replaces && st->st_uid == r->old.st_uid);
	if (!S_ISREG(st->st_mode) || !own || st->st_nlink != 1)
		return err_set(e, REPL_E_REFUSED,
			       "%s is not of an earlier restore of yours; remove it first",
			       r->path);
	return 0;
}

/* Before anything is copied that could not be given its name then. */
static int
check_directory(const struct restoring *r, struct err *e)
{
	/* Whatever else it fails by may be for the question. */
	if (faccessat(r->dirfd, ".", W_OK | X_OK, AT_EACCESS) &&
	    (errno == EACCES || errno == EROFS))
		return err_errno(e, err_from_errno(errno), errno, "directory %s", r->dir_path);
	return 0;
}

/* create: 0, where it is only looked whether it could be had, or O_CREAT. */
static int
restoring_take(struct restoring *r, int create, uint64_t size, struct stat *st, struct err *e)
{
	int rc = check_space(r, size, e);

	if (!rc)
		rc = check_directory(r, e);
	if (rc)
		return rc;
	r->fd = open(r->path, O_RDWR | create | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (r->fd < 0 && errno == ENOENT && !create)
		return 0;
	if (r->fd < 0)
		return err_errno(e, err_from_errno(errno), errno, "%s", r->path);
	return restoring_lock(r, st, e);
}

int
restoring_check(struct restoring *r, uint64_t size, struct err *e)
{
	struct stat st;

	return restoring_take(r, 0, size, &st, e);
}

/* Only a head start: where it fails, more comes over the network. */
static void
copy_replaced(const struct restoring *r, uint64_t size)
{
	uint64_t left = (uint64_t)r->old.st_size < size ? (uint64_t)r->old.st_size : size;
	ssize_t n = 1;

	if (ioctl(r->fd, FICLONE, r->old_fd) == 0)
		return;
	for (; left > 0 && n > 0 && !interrupt_seen(); left -= (uint64_t)n) {
		n = copy_file_range(r->old_fd, NULL, r->fd, NULL,
				    left < COPY_STEP ? left : COPY_STEP, 0);
		if (n < 0)
			n = 0;
	}
}

int
restoring_open(struct restoring *r, uint64_t size, struct err *e)
{
	struct stat st;
	int rc = restoring_take(r, O_CREAT, size, &st, e);

	if (rc)
		return rc;
	if (fchmod(r->fd, 0600))
		return err_errno(e, err_from_errno(errno), errno, "%s", r->path);
	if (st.st_size == 0 && r->replaces && !r->sparse)
		copy_replaced(r, size);
	/* Space comes with the data: taken before them it would be one more walk over all pages. */
	r->size = size;
	if (ftruncate(r->fd, (off_t)size))
		return err_errno(e, err_from_errno(errno), errno, "%s", r->path);
	return 0;
}

int
restoring_allocate(const struct restoring *r, struct err *e)
{
	if (r->sparse || fallocate(r->fd, 0, 0, (off_t)r->size) == 0 || errno == EOPNOTSUPP)
		return 0;
	if (errno == EINTR)
		return err_set(e, REPL_E_FAILED, "interrupted");
	return err_errno(e, err_from_errno(errno), errno, "%s: %" PRIu64 " bytes wanted", r->path,
			 r->size);
}

static int
rename_new(const struct restoring *r, struct err *e)
{
	if (renameat2(AT_FDCWD, r->path, AT_FDCWD, r->file, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == EINVAL && link(r->path, r->file) == 0) {
		(void)unlink(r->path);
		return 0;
	}
	if (errno == EEXIST)
		return err_set(e, REPL_E_EXISTS,
			       "%s came while it was being restored; the restored data are in %s",
			       r->file, r->path);
	return err_errno(e, err_from_errno(errno), errno, "renaming %s to %s", r->path, r->file);
}

static int
rename_over(const struct restoring *r, struct err *e)
{
	/* Whoever may not give files away keeps them. */
	if (fchown(r->fd, r->old.st_uid, r->old.st_gid) == 0)
		(void)fchmod(r->fd, r->old.st_mode & 0777);
	if (rename(r->path, r->file))
		return err_errno(e, err_from_errno(errno), errno, "renaming %s to %s", r->path,
				 r->file);
	return 0;
}

static bool
is_same(const char *path, bool was_there, const struct stat *was)
{
	struct stat now;

	if (lstat(path, &now))
		return errno == ENOENT && !was_there;
	return was_there && now.st_dev == was->st_dev && now.st_ino == was->st_ino;
}

/*
 * What stands under both names is what was looked at, and locked where it can be: another
 * file or record came meanwhile and is somebody's. Numbers of inodes that are held open are not
 * used again.
 */
static int
check_places(const struct restoring *r, struct err *e)
{
	const char *other = NULL;

	if (!is_same(r->file, r->replaces, &r->old))
		other = r->file;
	else if (!is_same(r->sidecar_path, r->has_sidecar, &r->sidecar))
		other = r->sidecar_path;
	if (!other)
		return 0;
	return err_set(e, REPL_E_EXISTS,
		       "%s came or went while %s was being restored; the restored data are in %s",
		       other, r->file, r->path);
}

/*
 * After a failure pages that did not reach the device count as clean: they would be read back,
 * found equal and never be written again. So nothing of it is taken up by the next restore.
 */
static int
sync_data(struct restoring *r, struct err *e)
{
	int errnum;

	if (fsync(r->fd) == 0)
		return 0;
	errnum = errno;
	r->removed = unlink(r->path) == 0;
	return err_errno(e, REPL_E_IO, errnum, "syncing %s, which is removed", r->path);
}

int
restoring_settle(struct restoring *r, struct err *e)
{
	int rc = sync_data(r, e);

	return rc ? rc : check_places(r, e);
}

int
restoring_place(struct restoring *r, struct err *e)
{
	int rc = r->replaces ? rename_over(r, e) : rename_new(r, e);

	r->placed = rc == 0;
	if (!rc && fsync(r->dirfd))
		rc = err_errno(e, REPL_E_IO, errno, "syncing %s", r->dir_path);
	return rc;
}

int
restoring_forget(const struct restoring *r, struct err *e)
{
	if (unlink(r->sidecar_path) && errno != ENOENT)
		return err_errno(e, err_from_errno(errno), errno, "removing %s", r->sidecar_path);
	return 0;
}
