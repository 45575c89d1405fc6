/* SPDX-License-Identifier: BSD-3-Clause */
#include "filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

struct magic_row {
	unsigned long magic;
	const char *name;
};

static const struct magic_row magic_rows[] = {
	{EXT4_SUPER_MAGIC, "ext4"},
	{XFS_SUPER_MAGIC, "xfs"},
	{BTRFS_SUPER_MAGIC, "btrfs"},
	{TMPFS_MAGIC, "tmpfs"},
	{RAMFS_MAGIC, "ramfs"},
	{F2FS_SUPER_MAGIC, "f2fs"},
	{OVERLAYFS_SUPER_MAGIC, "overlay"},
	{NFS_SUPER_MAGIC, "nfs"},
	{FUSE_SUPER_MAGIC, "fuse"},
	{V9FS_MAGIC, "9p"},
	{0x2fc12fc1, "zfs"},
	{0xca451a4e, "bcachefs"},
};

static const char *
magic_name(unsigned long magic)
{
	for (size_t i = 0; i < sizeof(magic_rows) / sizeof(magic_rows[0]); i++)
		if (magic_rows[i].magic == magic)
			return magic_rows[i].name;
	return NULL;
}

bool
filesystem_is_dax(int fd)
{
	struct statx stx;
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode))
		return true;
	return statx(fd, "", AT_EMPTY_PATH, 0, &stx) == 0 && (stx.stx_attributes & STATX_ATTR_DAX);
}

bool
filesystem_in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

void
filesystem_name(int fd, char *out, size_t size)
{
	const char *name, *dax = "";
	struct statfs fs;
	struct stat st;
	unsigned long magic;

	if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0) {
		(void)snprintf(out, size, "unknown");
		return;
	}
	/* A device file lies on devtmpfs, which says it is tmpfs. */
	if (S_ISCHR(st.st_mode)) {
		(void)snprintf(out, size, "devdax");
		return;
	}
	if (filesystem_is_dax(fd))
		dax = "-dax";
	magic = (unsigned long)fs.f_type & 0xffffffffUL;
	name = magic_name(magic);
	if (name)
		(void)snprintf(out, size, "%s%s", name, dax);
	else
		(void)snprintf(out, size, "0x%lx%s", magic, dax);
}

int
filesystem_again(int fd, int flags)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return open(name, flags | O_CLOEXEC);
}

/* ---- a page cache that differs from media ---- */

#define LOOK 4096U /* pages at once */
#define RUN  256U  /* pages read at once */

struct agree {
	int fd, direct;
	uint64_t size;
	const uint8_t *map;
	size_t page;
	uint8_t *buf; /* RUN pages */
	uint64_t bytes;
};

static int
agree_error(uint64_t off, ssize_t n, struct err *e)
{
	return err_errno(e, REPL_E_IO, n < 0 ? errno : EIO, "comparing memory with media, at %llu",
			 (unsigned long long)off);
}

/*
 * Written past the cache it is thrown out of that, mapped or not: by the bytes that are there. The
 * last one goes whole, too, behind which the file gets its length again: through the cache ext4
 * would take its block for written that is not, and what is stored from then on would be lost. Who
 * is killed in between leaves a file that was about to grow.
 */
static int
agree_write(struct agree *a, uint8_t *buf, uint64_t off, size_t len, struct err *e)
{
	bool cut = len < a->page;
	ssize_t n;

	if (cut)
		memset(buf + len, 0, a->page - len);
	n = pwrite(a->direct, buf, a->page, (off_t)off);
	if (n == (ssize_t)a->page && cut && (ftruncate(a->fd, (off_t)a->size) || fdatasync(a->fd)))
		n = -1;
	if (n != (ssize_t)a->page)
		return agree_error(off, n, e);
	a->bytes += len;
	return 0;
}

static int
agree_run(struct agree *a, uint64_t off, size_t pages, struct err *e)
{
	uint64_t left = a->size - off;
	size_t len = pages * a->page < left ? pages * a->page : (size_t)left;
	ssize_t n = pread(a->direct, a->buf, pages * a->page, (off_t)off);
	int rc = 0;

	if (n != (ssize_t)len)
		return agree_error(off, n, e);
	for (size_t at = 0, part; !rc && at < len; at += part) {
		part = len - at < a->page ? len - at : a->page;
		if (memcmp(a->buf + at, a->map + off + at, part) != 0)
			rc = agree_write(a, a->buf + at, off + at, part, e);
	}
	return rc;
}

/* Where a service's system calls are filtered it may not ask: all of it is read then. */
static int
agree_look(const struct agree *a, uint64_t off, size_t len, unsigned char *there, struct err *e)
{
	if (mincore((void *)(uintptr_t)(a->map + off), len, there) == 0)
		return 0;
	if (errno != EPERM && errno != ENOSYS)
		return err_errno(e, REPL_E_IO, errno, "mincore");
	memset(there, 1, (len + a->page - 1) / a->page);
	return 0;
}

static int
agree_all(struct agree *a, struct err *e)
{
	unsigned char there[LOOK];
	uint64_t step = LOOK * a->page;
	int rc = 0;

	for (uint64_t off = 0; !rc && off < a->size; off += step) {
		size_t len = a->size - off < step ? (size_t)(a->size - off) : (size_t)step;
		size_t pages = (len + a->page - 1) / a->page;

		rc = agree_look(a, off, len, there, e);
		for (size_t i = 0, n; !rc && i < pages; i += n ? n : 1) {
			for (n = 0; n < RUN && i + n < pages && (there[i + n] & 1); n++)
				;
			if (n > 0)
				rc = agree_run(a, off + i * a->page, n, e);
		}
	}
	return rc;
}

static bool
is_unable(int errnum)
{
	return errnum == EINVAL || errnum == EOPNOTSUPP;
}

/*
 * Not every file system knows it, nor all blocks of a device are that small: *able is false then.
 * Any other error says nothing of what is on media.
 */
static int
agree_open(struct agree *a, int fd, bool *able, struct err *e)
{
	a->direct = filesystem_again(fd, O_RDWR | O_DIRECT);
	*able = a->direct >= 0 || !is_unable(errno);
	if (a->direct >= 0)
		a->fd = filesystem_again(fd, O_RDWR);
	if (*able && a->fd < 0)
		return err_errno(e, err_from_errno(errno), errno,
				 "open it to compare memory with media");
	if (!*able || pread(a->direct, a->buf, a->page, 0) >= 0)
		return 0;
	*able = !is_unable(errno);
	return *able ? agree_error(0, -1, e) : 0;
}

int
filesystem_agree(int fd, uint64_t *bytes, struct err *e)
{
	struct agree a = {.fd = -1, .direct = -1, .page = (size_t)sysconf(_SC_PAGESIZE)};
	struct stat st;
	bool able = false;
	void *map;
	int rc;

	if (filesystem_is_dax(fd) || filesystem_in_memory(fd))
		return 0;
	if (fstat(fd, &st))
		return err_errno(e, REPL_E_IO, errno, "fstat");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return err_errno(e, err_from_errno(errno), errno, "mmap");
	a.map = map;
	a.size = (uint64_t)st.st_size;
	a.buf = aligned_alloc(a.page, RUN * a.page);
	if (!a.buf)
		rc = err_set(e, REPL_E_NOMEM, "no memory to compare memory with media");
	else
		rc = agree_open(&a, fd, &able, e);
	if (!rc && able)
		rc = agree_all(&a, e);
	*bytes += a.bytes;
	if (a.direct >= 0)
		(void)close(a.direct);
	if (a.fd >= 0)
		(void)close(a.fd);
	free(a.buf);
	(void)munmap(map, (size_t)st.st_size);
	return rc;
}

int
filesystem_sync(int fd)
{
	int own = filesystem_again(fd, O_RDONLY);
	int rc, errnum;

	if (own < 0)
		return fsync(fd);
	rc = fsync(own);
	errnum = errno;
	(void)close(own);
	errno = errnum;
	return rc;
}
