/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "extents.h"
#include "fileclaim.h"
#include "interrupt.h"
#include "out.h"
#include "poolname.h"
#include "poolset.h"

void
poolfile_init(struct poolfile *p)
{
	memset(p, 0, sizeof(*p));
	p->fd = -1;
}

void
poolfile_fini(struct poolfile *p)
{
	if (p->mem)
		(void)munmap(p->mem, p->size);
	if (p->fd >= 0)
		(void)close(p->fd);
	free(p->path);
	poolfile_init(p);
}

char *
poolfile_word(const char *path)
{
	struct stat st;
	bool link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && !poolname_is_device(path);
	char *real = link ? realpath(path, NULL) : NULL, *word = out_quote(real ? real : path);

	free(real);
	return word;
}

static int
poolfile_check(struct poolfile *p, struct err *e)
{
	if (fstat(p->fd, &p->opened))
		return err_errno(e, REPL_E_IO, errno, "%s", p->path);
	if (!S_ISREG(p->opened.st_mode))
		return err_set(e, REPL_E_INVAL, "%s is not a regular file", p->path);
	if (p->opened.st_size <= 0)
		return err_set(e, REPL_E_INVAL, "%s is empty; a pool has a byte at least", p->path);
	return 0;
}

/* Small as it is, a copy of it would be taken for one of what its parts hold. */
static int
check_no_set(int fd, uint64_t size, const char *path, struct err *e)
{
	char head[sizeof(POOLSET_SIGNATURE)];
	ssize_t n = size > POOLSET_FILE_MAX ? 0 : pread(fd, head, sizeof(head), 0);

	if (n <= 0 || !poolset_begins(head, (size_t)n))
		return 0;
	return err_set(e, REPL_E_INVAL,
		       "%s is a pool set file, not a pool: name its one part; of several, or "
		       "replicas, see librpmem(7)",
		       path);
}

int
poolfile_no_set(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY), rc = 0;
	struct stat st;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		rc = check_no_set(fd, (uint64_t)st.st_size, path, e);
	(void)close(fd);
	return rc;
}

static int
poolfile_written(const struct poolfile *p, struct err *e)
{
	return err_set(e, REPL_E_FAILED, "%s was written to while it was being read", p->path);
}

/* Where its record lies beside the link nothing beside the file itself would speak for it. */
static int
check_link(const char *path, struct err *e)
{
	char *name = strdup(path);
	int rc = name ? poolname_resolve(&name, e) : err_set(e, REPL_E_NOMEM, "out of memory");

	free(name);
	return rc;
}

int
poolfile_open(struct poolfile *p, const char *path, struct err *e)
{
	int rc = check_link(path, e);

	if (rc)
		return rc;
	p->path = realpath(path, NULL);
	if (p->path)
		p->fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (p->fd < 0)
		return err_errno(e, err_from_errno(errno), errno, "%s", path);
	rc = poolfile_check(p, e);
	if (rc)
		return rc;
	p->size = (size_t)p->opened.st_size;
	rc = check_no_set(p->fd, p->size, p->path, e);
	if (rc)
		return rc;
	p->mem = mmap(NULL, p->size, PROT_READ, MAP_SHARED, p->fd, 0);
	if (p->mem == MAP_FAILED) {
		p->mem = NULL;
		return err_errno(e, err_from_errno(errno), errno, "mapping %s", p->path);
	}
	interrupt_guard_mapping(p->path);
	return 0;
}

static int
poolfile_sync(struct poolfile *p, struct err *e)
{
	int rc = poolfile_check(p, e);

	if (rc)
		return rc;
	/* What is mapped is as long as it was before. */
	if ((size_t)p->opened.st_size != p->size)
		return poolfile_written(p, e);
	/*
	 * A generation must never be recorded for data that a crash can take back. The time of
	 * modification tells of the first store to a page that was clean, not of more: so what
	 * counts is the time before.
	 */
	if (fsync(p->fd))
		return err_errno(e, REPL_E_IO, errno, "syncing %s", p->path);
	return poolfile_unchanged(p, e);
}

int
poolfile_settle(struct poolfile *p, struct local *l, struct err *e)
{
	int rc = fileclaim_take(p->fd, LOCK_SH, p->path, "locked: a program has the pool open", e);

	if (!rc)
		rc = local_open(l, p->path, p->size, e);
	if (rc)
		return rc;
	rc = poolfile_sync(p, e);
	if (rc == REPL_E_IO)
		local_doubt(l);
	return rc;
}

int
poolfile_agree(struct poolfile *p, struct err *e)
{
	uint64_t lost;
	int rc = local_agree(p->fd, p->mem, p->size, PAGECACHE_EITHER, &lost, e);

	if (rc || lost == 0)
		return rc;
	/* A page that looks lost may be one that a program sets back after each sync. */
	rc = poolfile_unchanged(p, e);
	if (!rc)
		rc = local_agree(p->fd, p->mem, p->size, PAGECACHE_MEMORY, &lost, e);
	return !rc && lost > 0 ? poolfile_sync(p, e) : rc;
}

uint64_t
poolfile_data(const struct poolfile *p)
{
	struct range data = extents_next(p->fd, 0, p->size);
	uint64_t sum = 0;

	for (; data.len; data = extents_next(p->fd, data.off + data.len, p->size))
		sum += data.len;
	return sum;
}

static int
poolfile_look(const struct poolfile *p, struct stat *now, struct err *e)
{
	struct stat named;

	if (fstat(p->fd, now))
		return err_errno(e, REPL_E_IO, errno, "%s", p->path);
	if (stat(p->path, &named) || named.st_dev != now->st_dev || named.st_ino != now->st_ino)
		return err_set(e, REPL_E_FAILED, "%s was replaced while it was being read",
			       p->path);
	if (now->st_size < p->opened.st_size)
		return err_set(e, REPL_E_FAILED, "%s became shorter while it was being read",
			       p->path);
	return 0;
}

int
poolfile_same(const struct poolfile *p, struct err *e)
{
	struct stat now;

	return poolfile_look(p, &now, e);
}

int
poolfile_unchanged(const struct poolfile *p, struct err *e)
{
	struct stat now;
	int rc = poolfile_look(p, &now, e);

	if (rc)
		return rc;
	if (now.st_size == p->opened.st_size && now.st_mtim.tv_sec == p->opened.st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == p->opened.st_mtim.tv_nsec)
		return 0;
	return poolfile_written(p, e);
}
