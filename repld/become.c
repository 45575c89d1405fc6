/* SPDX-License-Identifier: BSD-3-Clause */
#include "become.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "poolpath.h"

/* ---- files ---- */

int
become_dir(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char way[PATH_MAX];
	int root, dir, errnum;

	*name = path;
	if (geteuid() != 0 || !slash)
		return AT_FDCWD;
	*name = slash + 1;
	while (*path == '/')
		path++;
	if (slash < path)
		slash = path;
	if (snprintf(way, sizeof(way), "%.*s", (int)(slash - path), path) >= (int)sizeof(way)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	dir = path_open(root, way[0] ? way : ".", O_RDONLY | O_DIRECTORY, 0);
	errnum = errno;
	(void)close(root);
	errno = errnum;
	return dir;
}

void
become_dir_close(int dir)
{
	if (dir >= 0)
		(void)close(dir);
}

int
become_open(int dir, const char *name, int flags, mode_t mode)
{
	if (geteuid() == 0)
		return path_open(dir, name, flags, mode);
	return openat(dir, name, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, mode);
}

/* ---- the user ---- */

int
become_whom(const struct conf *c, struct become *b, struct err *e)
{
	const struct passwd *pw = c->user ? getpwnam(c->user) : getpwuid(geteuid());

	if (!pw && c->user)
		return err_set(e, REPL_E_CONFIG, "%s: key 'user': '%s': there is no such user",
			       conf_file(c), c->user);
	b->uid = pw ? pw->pw_uid : geteuid();
	b->gid = pw ? pw->pw_gid : getegid();
	if (pw)
		(void)snprintf(b->name, sizeof(b->name), "%s", pw->pw_name);
	else
		(void)snprintf(b->name, sizeof(b->name), "%u", (unsigned)b->uid);
	if (geteuid() == 0 && b->uid == 0)
		return err_set(
			e, REPL_E_CONFIG,
			"repld serve does not serve as root: set 'user' in %s to the account "
			"that owns %s, or start it as that account",
			conf_file(c), c->pool_dir ? c->pool_dir : "the pool directory");
	if (geteuid() != 0 && b->uid != geteuid())
		return err_set(e, REPL_E_CONFIG,
			       "%s: key 'user': '%s': only root can become another user, this is "
			       "uid %u",
			       conf_file(c), c->user, (unsigned)geteuid());
	return 0;
}

static int
become_failed(const struct become *b, struct err *e)
{
	return err_errno(e, REPL_E_FAILED, errno, "becoming user '%s'", b->name);
}

int
become_for_good(const struct become *b, struct err *e)
{
	if (geteuid() != 0)
		return 0;
	if (initgroups(b->name, b->gid) < 0 || setresgid(b->gid, b->gid, b->gid) < 0 ||
	    setresuid(b->uid, b->uid, b->uid) < 0 || setuid(0) == 0)
		return become_failed(b, e);
	return 0;
}

/* ---- the log ---- */

/*
 * Sessions open it again, as the user. What root has no directory of its own for is the user's to
 * make: log_open() says what is wrong. *errnum is what root has failed to make it by, or 0.
 */
static int
log_give(const struct conf *c, const struct become *b, int *errnum, struct err *e)
{
	const char *name;
	struct stat st;
	int dir = become_dir(c->log_file, &name), fd = -1;
	int rc = 0;

	if (dir >= 0 && fstat(dir, &st) == 0 && st.st_uid == 0 &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH))) {
		fd = become_open(dir, name, O_WRONLY | O_CREAT, 0600);
		*errnum = fd < 0 ? errno : 0;
	}
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == 0 &&
	    st.st_nlink == 1 && fchown(fd, b->uid, b->gid) < 0)
		rc = err_errno(e, REPL_E_CONFIG, errno, "%s: key 'log': giving '%s' to user '%s'",
			       conf_file(c), c->log_file, b->name);
	if (fd >= 0)
		(void)close(fd);
	become_dir_close(dir);
	return rc;
}

/* For want of rights the user does not even come to that. */
static int
log_not_made(const struct conf *c, int errnum, struct err *e)
{
	int rc = log_status(errnum);

	return err_errno(e, rc, errnum, "%s: key 'log': making '%s'%s", conf_file(c), c->log_file,
			 rc == REPL_E_NOSPC ? " (make room there, or name another file)" : "");
}

int
become_log(const struct conf *c, struct err *e)
{
	struct become b;
	int rc, errnum = 0;

	if (geteuid() != 0 || c->log != CONF_LOG_FILE)
		return log_open(c, e);
	rc = become_whom(c, &b, e);
	if (!rc)
		rc = log_give(c, &b, &errnum, e);
	if (rc)
		return rc;
	/* The groups are root's own no more: it needs none. */
	if (initgroups(b.name, b.gid) < 0 || setegid(b.gid) < 0 || seteuid(b.uid) < 0)
		return become_failed(&b, e);
	rc = log_open(c, e);
	if (rc && errnum && log_status(errnum) != REPL_E_CONFIG)
		rc = log_not_made(c, errnum, e);
	if (seteuid(0) < 0 || setegid(0) < 0)
		return become_failed(&b, e);
	return rc;
}
