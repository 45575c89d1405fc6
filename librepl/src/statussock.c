/* SPDX-License-Identifier: BSD-3-Clause */
#include "statussock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "local.h"
#include "procself.h"

#define BACKLOG       16
#define TEMP_NAME_MAX 64

void
statussock_init(struct statussock *s)
{
	memset(s, 0, sizeof(*s));
	s->fd = s->dir = -1;
}

static void
close_fd(int *fd)
{
	int old = *fd;

	*fd = -1;
	if (old >= 0)
		(void)close(old);
}

void
statussock_abandon(struct statussock *s)
{
	close_fd(&s->fd);
	close_fd(&s->dir);
}

static void
place_close(struct statussock *s)
{
	statussock_abandon(s);
	free(s->name);
	s->name = NULL;
}

void
statussock_close(struct statussock *s)
{
	struct stat st;

	if (s->dir >= 0 && s->fd >= 0 && s->name &&
	    fstatat(s->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == s->dev &&
	    st.st_ino == s->ino)
		(void)unlinkat(s->dir, s->name, 0);
	place_close(s);
}

/* An address by a descriptor: shorter than sun_path, however long the path is. */
static void
address_of(int fd, const char *name, struct sockaddr_un *a)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	(void)snprintf(a->sun_path, sizeof(a->sun_path), PROCSELF "/fd/%d%s%s", fd, name ? "/" : "",
		       name ? name : "");
}

/* 0, or an errno; *out is the connection. */
static int
connect_at(int dir, const char *path, int *out)
{
	int at = openat(dir, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct sockaddr_un a;
	int fd, rc = 0;

	if (at < 0)
		return errno;
	address_of(at, NULL, &a);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)))
		rc = errno;
	(void)close(at);
	if (rc)
		close_fd(&fd);
	*out = fd;
	return rc;
}

int
statussock_connect(const char *path, struct err *e)
{
	int fd = -1, errnum = connect_at(AT_FDCWD, path, &fd);

	if (errnum == 0)
		return fd;
	if (errnum == ENOENT || errnum == ECONNREFUSED)
		return err_set(e, REPL_E_NOT_FOUND,
			       "%s: no program has the pool open, or its status-socket is another",
			       path);
	if (errnum == EAGAIN)
		return err_set(e, REPL_E_BUSY, "%s: too many are asking", path);
	return err_errno(e, err_from_errno(errnum), errnum, "%s", path);
}

/* What is at the place may be replaced. */
static int
place_check(int dir, const char *name, const char *path, struct err *e)
{
	struct stat st;
	int fd = -1, errnum;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0
				       : err_errno(e, err_from_errno(errno), errno,
						   "status-socket %s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, REPL_E_EXISTS, "status-socket %s: this is there and no socket",
			       path);
	errnum = connect_at(dir, name, &fd);
	close_fd(&fd);
	if (errnum == 0 || errnum == EAGAIN)
		return err_set(e, REPL_E_BUSY, "status-socket %s is in use by another handle",
			       path);
	return 0;
}

static int
temp_name(char out[TEMP_NAME_MAX], struct err *e)
{
	char text[GEN_TEXT_SIZE];
	struct gen_id id;
	int rc = local_new_id(&id, e);

	if (rc)
		return rc;
	gen_id_format(&id, text);
	(void)snprintf(out, TEMP_NAME_MAX, ".%s.tmp", text);
	return 0;
}

static int
listen_at(struct statussock *s, const char *temp)
{
	struct sockaddr_un a;
	struct stat st;

	address_of(s->dir, temp, &a);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0 || bind(s->fd, (const struct sockaddr *)&a, sizeof(a)))
		return errno;
	/* Before it listens: whoever may not connect never could. */
	if (fchmodat(s->dir, temp, 0600, 0) || listen(s->fd, BACKLOG) ||
	    fstatat(s->dir, temp, &st, AT_SYMLINK_NOFOLLOW) ||
	    renameat(s->dir, temp, s->dir, s->name)) {
		int errnum = errno;

		(void)unlinkat(s->dir, temp, 0);
		return errnum;
	}
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return 0;
}

/* Split path: the directory opened, the name in it kept. */
static int
place_open(struct statussock *s, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");

	s->name = strdup(slash ? slash + 1 : path);
	if (dir)
		s->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(dir);
	if (!s->name)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	if (s->dir < 0)
		return err_errno(e, err_from_errno(errno), errno, "status-socket %s", path);
	return 0;
}

int
statussock_open(struct statussock *s, const char *path, struct err *e)
{
	char temp[TEMP_NAME_MAX];
	int errnum, rc = place_open(s, path, e);

	if (!rc)
		rc = place_check(s->dir, s->name, path, e);
	if (!rc)
		rc = temp_name(temp, e);
	if (!rc) {
		errnum = listen_at(s, temp);
		if (errnum)
			rc = err_errno(e, err_from_errno(errnum), errnum, "status-socket %s", path);
	}
	if (rc)
		place_close(s);
	return rc;
}
