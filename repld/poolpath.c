/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolpath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "missedmark.h"
#include "pooldevice.h"

#define OPEN_FLAGS (O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY)
#define EAGAIN_MAX 16

static int
open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)(flags | OPEN_FLAGS),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	/* EAGAIN: something was renamed during the resolution. */
	for (int i = 0; i < EAGAIN_MAX; i++) {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return (int)fd;
}

/* One component. With O_DIRECTORY the kernel reports a link as ENOTDIR: tell it apart. */
static int
open_component(int dirfd, const char *name, int flags, mode_t mode)
{
	struct stat st;
	int fd;

	fd = openat(dirfd, name, flags | OPEN_FLAGS | O_NOFOLLOW, mode);
	if (fd < 0 && errno == ENOTDIR) {
		bool is_link =
			fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);

		errno = is_link ? ELOOP : ENOTDIR;
	}
	return fd;
}

/*
 * Copy the component in front of the next '/' to out and return what follows
 * it, or NULL when it is the last. out is "" for one that is empty or too long.
 */
static const char *
split(const char *path, char out[NAME_MAX + 1])
{
	const char *slash = strchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : strlen(path);

	if (len > NAME_MAX)
		len = 0;
	memcpy(out, path, len);
	out[len] = '\0';
	return slash ? slash + 1 : NULL;
}

static int
component_errno(const char *part)
{
	if (!part[0])
		return ENOENT;
	return strcmp(part, "..") == 0 ? EXDEV : 0;
}

int
path_open_by_hand(int dirfd, const char *path, int flags, mode_t mode)
{
	char part[NAME_MAX + 1];
	int at = dirfd;

	if (path[0] == '/') {
		errno = EXDEV;
		return -1;
	}
	while (path) {
		const char *rest = split(path, part);
		int errnum = component_errno(part);
		int fd = -1;

		if (!errnum) {
			fd = open_component(at, part, rest ? DIR_FLAGS : flags, mode);
			errnum = errno;
		}
		if (at != dirfd)
			(void)close(at);
		if (fd < 0) {
			errno = errnum;
			return -1;
		}
		at = fd;
		path = rest;
	}
	return at;
}

int
path_open(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = open_beneath(dirfd, path, flags, mode);

	/* Filters of system calls answer EPERM to what they do not know. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = path_open_by_hand(dirfd, path, flags, mode);
	return fd;
}

int
path_own_error(int errnum, const char *what, struct err *e)
{
	if (errnum == EACCES || errnum == EPERM)
		return err_errno(e, REPL_E_CONFIG, errnum, "%s: " PATH_OWN_HINT, what);
	return err_errno(e, err_from_errno(errnum), errnum, "%s", what);
}

static int
place_error(const char *name, const char *part, int errnum, struct err *e)
{
	switch (errnum) {
	case ENOENT:
		return err_set(e, REPL_E_NOT_FOUND, "pool '%s': not found", name);
	case ELOOP:
		return err_set(e, REPL_E_REFUSED,
			       "pool '%s': '%s' is a symbolic link, which is never followed", name,
			       part);
	case ENOTDIR:
		return err_set(e, REPL_E_REFUSED, "pool '%s': '%s' is not a directory", name, part);
	default:
		return err_errno(e, err_from_errno(errnum), errnum, "pool '%s': directory '%s'",
				 name, part);
	}
}

/* Open directory part of at, which takes its place. */
static int
descend(int *at, const char *part, bool make, const char *name, struct err *e)
{
	int next;

	if (make && mkdirat(*at, part, 0700) == 0) {
		if (fsync(*at) != 0)
			return err_errno(e, REPL_E_IO, errno, "pool '%s': sync of directory", name);
	} else if (make && errno != EEXIST) {
		return place_error(name, part, errno, e);
	}
	next = path_open(*at, part, DIR_FLAGS, 0);
	if (next < 0)
		return place_error(name, part, errno, e);
	(void)close(*at);
	*at = next;
	return 0;
}

void
pool_place_name(struct pool_place *p, const char *leaf)
{
	(void)snprintf(p->leaf, sizeof(p->leaf), "%.*s", TARGET_COMPONENT_MAX, leaf);
	(void)snprintf(p->sidecar, sizeof(p->sidecar), "%.*s" SIDECAR_SUFFIX, TARGET_COMPONENT_MAX,
		       leaf);
}

bool
pool_place_is_beside(const struct pool_place *p, const char *name, char owner[TARGET_POOL_MAX + 1])
{
	/* The last one is that of RECOVERY.md, by which a power cut is known. */
	static const char *const endings[] = {RESTORING_SUFFIX, MISSEDMARK_SUFFIX,
					      MISSEDMARK_TAKEN_SUFFIX, MISSEDMARK_TAKEN_BEFORE,
					      ".running"};
	struct pool_place base = {.dir = p->dir};
	char leaf[TARGET_COMPONENT_MAX + 1];
	struct stat st;

	if (fstatat(p->dir, p->sidecar, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return false;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t len = strlen(p->leaf), ending = strlen(endings[i]);

		if (len <= ending || strcmp(p->leaf + len - ending, endings[i]) != 0)
			continue;
		(void)snprintf(leaf, sizeof(leaf), "%.*s", (int)(len - ending), p->leaf);
		(void)snprintf(owner, TARGET_POOL_MAX + 1, "%.*s", (int)(strlen(name) - ending),
			       name);
		pool_place_name(&base, leaf);
		if (fstatat(base.dir, base.sidecar, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

int
pool_place_open(int dirfd, const char *name, bool make, struct pool_place *p, struct err *e)
{
	char part[NAME_MAX + 1];
	const char *rest;
	int rc;

	p->dir = -1;
	rc = pool_name_check(name, e);
	if (rc)
		return rc;
	p->dir = path_open(dirfd, ".", DIR_FLAGS, 0);
	if (p->dir < 0)
		return place_error(name, ".", errno, e);
	for (rest = split(name, part); rest && !rc; rest = split(rest, part))
		rc = descend(&p->dir, part, make, name, e);
	if (rc) {
		pool_place_close(p);
		return rc;
	}
	pool_place_name(p, part);
	return 0;
}

void
pool_place_close(struct pool_place *p)
{
	if (p->dir >= 0)
		(void)close(p->dir);
	p->dir = -1;
}

/* Remove directory path (beneath dirfd) if it is empty. */
static bool
remove_dir(int dirfd, const char *path)
{
	char parent_path[TARGET_POOL_MAX + 1] = ".";
	const char *slash = strrchr(path, '/');
	bool removed;
	int parent;

	if (slash)
		(void)snprintf(parent_path, sizeof(parent_path), "%.*s", (int)(slash - path), path);
	parent = path_open(dirfd, parent_path, DIR_FLAGS, 0);
	if (parent < 0)
		return false;
	removed = unlinkat(parent, slash ? slash + 1 : path, AT_REMOVEDIR) == 0;
	if (removed)
		(void)fsync(parent);
	(void)close(parent);
	return removed;
}

void
pool_place_prune(int dirfd, const char *name)
{
	char path[TARGET_POOL_MAX + 1];
	char *slash;

	(void)snprintf(path, sizeof(path), "%s", name);
	while ((slash = strrchr(path, '/')) != NULL) {
		*slash = '\0';
		if (!remove_dir(dirfd, path))
			return;
	}
}

const char *
file_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "a regular file";
	case S_IFDIR:
		return "a directory";
	case S_IFLNK:
		return "a symbolic link";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	default:
		return "a device";
	}
}

/* A link beside a sidecar, so one to a device, and nothing is there, as after a boot. */
static bool
device_is_away(const struct pool_place *p)
{
	struct stat st;

	return pooldevice_is_away(p->dir, p->leaf) &&
	       fstatat(p->dir, p->sidecar, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

int
pool_file_refuse(const struct pool_place *p, const char *leaf, const char *name, mode_t mode,
		 struct err *e)
{
	if (strcmp(leaf, p->leaf) == 0 && device_is_away(p))
		return err_set(
			e, REPL_E_IO,
			"pool '%s': the device that its link leads to is not there: look for "
			"it on the target, as by 'ndctl list' or 'daxctl list'",
			name);
	return err_set(e, REPL_E_REFUSED, "pool '%s': '%s' is %s, not a regular file", name, leaf,
		       file_kind(mode));
}

int
pool_file_open(const struct pool_place *p, const char *leaf, const char *name, int flags, int *fd,
	       struct stat *st, struct err *e)
{
	*fd = -1;
	/* Looked at before it is opened: opening a device can have effects. */
	if (fstatat(p->dir, leaf, st, AT_SYMLINK_NOFOLLOW) != 0) {
		if (errno == ENOENT)
			return err_set(e, REPL_E_NOT_FOUND, "pool '%s': not found", name);
		return err_errno(e, err_from_errno(errno), errno, "pool '%s': '%s'", name, leaf);
	}
	if (S_ISREG(st->st_mode)) {
		*fd = path_open(p->dir, leaf, flags, 0);
		/* As it is after a copy by another user. */
		if (*fd < 0 && errno == EACCES)
			return err_set(e, REPL_E_REFUSED,
				       "pool '%s': '%s' is user %u's with mode %04o, repld runs as "
				       "user %u: chown and chmod it on the target",
				       name, leaf, (unsigned)st->st_uid,
				       (unsigned)st->st_mode & 07777U, (unsigned)geteuid());
		if (*fd < 0 || fstat(*fd, st) != 0)
			return err_errno(e, err_from_errno(errno), errno, "pool '%s': open '%s'",
					 name, leaf);
	}
	if (S_ISREG(st->st_mode))
		return 0;
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	return pool_file_refuse(p, leaf, name, st->st_mode, e);
}

struct walk {
	pool_visit *visit;
	void *ctx;
	size_t len; /* of the directory's part of name, with its '/' */
	char name[TARGET_POOL_MAX + 1 + NAME_MAX + 1];
};

static int walk_dir(struct walk *w, int fd, struct err *e);

/* Most file systems have it in the directory, so that no inode is read. */
static unsigned char
entry_type(int dir, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type;
	if (fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return DT_UNKNOWN;
	return (unsigned char)IFTODT(st.st_mode);
}

static int
walk_entry(struct walk *w, int dir, const struct dirent *d, struct err *e)
{
	const char *leaf = d->d_name;
	size_t len = w->len, leaf_len = strlen(leaf);
	struct pool_place place = {.dir = dir};
	unsigned char type = entry_type(dir, d);
	int fd, rc;

	if (leaf_len > NAME_MAX || type == DT_UNKNOWN)
		return 0;
	memcpy(w->name + len, leaf, leaf_len + 1);
	pool_place_name(&place, leaf);
	if (type == DT_REG || pooldevice_is(dir, leaf) || device_is_away(&place))
		return w->visit(w->ctx, dir, leaf, w->name);
	/* No pool's name goes through a hidden directory, or one so deep. */
	if (type != DT_DIR || leaf[0] == '.' || len + leaf_len >= TARGET_POOL_MAX)
		return 0;
	fd = path_open(dir, leaf, DIR_FLAGS, 0);
	if (fd < 0)
		return 0;
	w->name[len + leaf_len] = '/';
	w->len = len + leaf_len + 1;
	rc = walk_dir(w, fd, e);
	w->len = len;
	return rc;
}

/* Takes fd. The depth is bounded by the length of a pool's name. */
static int
walk_dir(struct walk *w, int fd, struct err *e)
{
	struct dirent *d;
	DIR *dir;
	int rc = 0;

	dir = fdopendir(fd);
	if (!dir) {
		rc = err_errno(e, err_from_errno(errno), errno, "read pool directory");
		(void)close(fd);
		return rc;
	}
	while (!rc && (errno = 0, d = readdir(dir)) != NULL)
		rc = walk_entry(w, dirfd(dir), d, e);
	if (!rc && errno)
		rc = err_errno(e, REPL_E_IO, errno, "read pool directory");
	(void)closedir(dir);
	return rc;
}

int
pool_walk(int fd, pool_visit *visit, void *ctx, struct err *e)
{
	struct walk w = {.visit = visit, .ctx = ctx};
	int top = path_open(fd, ".", DIR_FLAGS, 0);

	if (top < 0)
		return err_errno(e, err_from_errno(errno), errno, "open pool directory");
	return walk_dir(&w, top, e);
}
