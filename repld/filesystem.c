/* SPDX-License-Identifier: BSD-3-Clause */
#include "filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
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
