/* SPDX-License-Identifier: BSD-3-Clause */
#include "filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "pagecache.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

#define BCACHEFS_MAGIC 0xca451a4e

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
	{BCACHEFS_MAGIC, "bcachefs"},
};

static const char *
magic_name(unsigned long magic)
{
	for (size_t i = 0; i < sizeof(magic_rows) / sizeof(magic_rows[0]); i++)
		if (magic_rows[i].magic == magic)
			return magic_rows[i].name;
	return NULL;
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
	if (pagecache_is_dax(fd))
		dax = "-dax";
	magic = (unsigned long)fs.f_type & 0xffffffffUL;
	name = magic_name(magic);
	if (name)
		(void)snprintf(out, size, "%s%s", name, dax);
	else
		(void)snprintf(out, size, "0x%lx%s", magic, dax);
}

bool
filesystem_shares(int fd)
{
	struct statfs fs;
	unsigned long magic;

	if (fstatfs(fd, &fs) || pagecache_is_dax(fd))
		return false;
	magic = (unsigned long)fs.f_type & 0xffffffffUL;
	return magic == XFS_SUPER_MAGIC || magic == BTRFS_SUPER_MAGIC || magic == BCACHEFS_MAGIC;
}

int
filesystem_again(int fd, int flags)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return open(name, flags | O_CLOEXEC);
}

int
filesystem_agree(int fd, enum pagecache_right right, uint64_t *bytes, struct err *e)
{
	struct pagecache c = {.fd = fd, .right = right};
	struct stat st;
	void *map;
	int rc;

	if (fstat(fd, &st))
		return err_errno(e, REPL_E_IO, errno, "fstat");
	rc = pagecache_open(fd, &c.direct, e);
	if (rc || c.direct < 0)
		return rc;
	c.size = (uint64_t)st.st_size;
	map = mmap(NULL, (size_t)c.size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		rc = err_errno(e, err_from_errno(errno), errno, "mmap");
	} else {
		c.map = map;
		rc = pagecache_agree(&c, bytes, e);
		(void)munmap(map, (size_t)c.size);
	}
	(void)close(c.direct);
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
