/* SPDX-License-Identifier: BSD-3-Clause */
#include "extents.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAGE 4096U

static bool
is_cached(const struct statfs *fs)
{
	switch (fs->f_type) {
	case TMPFS_MAGIC:
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

bool
extents_cached(int fd)
{
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && is_cached(&fs);
}

/*
 * Whether what was stored in a hole of a mapping a moment ago is no hole any more. Over FUSE those
 * are the server's, who has none of it before it is written back. NFS writes it back when it is
 * asked.
 */
static bool
holes_known(int fd)
{
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 &&
	       (is_cached(&fs) || fs.f_type == F2FS_SUPER_MAGIC || fs.f_type == NFS_SUPER_MAGIC);
}

/* The first byte of data at or behind off, below size; size if there is none. */
static uint64_t
next_data(int fd, uint64_t off, uint64_t size)
{
	off_t data;

	if (off >= size)
		return size;
	data = fd < 0 ? -1 : lseek(fd, (off_t)off, SEEK_DATA);
	if (data < 0)
		return fd >= 0 && errno == ENXIO ? size : off;
	return (uint64_t)data < size ? (uint64_t)data : size;
}

struct range
extents_next(int fd, uint64_t off, uint64_t size)
{
	struct range r = {0};
	off_t hole;

	if (!holes_known(fd))
		fd = -1;
	r.off = next_data(fd, off, size);
	if (r.off >= size)
		return (struct range){0};
	hole = fd < 0 ? -1 : lseek(fd, (off_t)r.off, SEEK_HOLE);
	r.len = (hole > (off_t)r.off && (uint64_t)hole < size ? (uint64_t)hole : size) - r.off;
	return r;
}

bool
extents_fill(int fd)
{
	struct statfs fs;
	struct stat st;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
	       fstat(fd, &st) == 0 && st.st_blocks * 512 < st.st_size;
}

bool
extents_touch(const void *addr, size_t len)
{
	uintptr_t from = (uintptr_t)addr / PAGE * PAGE;

	/* Older kernels (before 5.14) don't know it. */
	return len == 0 ||
	       madvise((void *)from, (uintptr_t)addr + len - from, MADV_POPULATE_READ) == 0 ||
	       errno != EFAULT;
}

void
extents_init(struct extents *x, int fd, uint64_t size)
{
	memset(x, 0, sizeof(*x));
	x->fd = holes_known(fd) ? fd : -1;
	x->size = size;
}

bool
extents_hole(struct extents *x, uint64_t off, uint64_t len)
{
	if (x->fd < 0)
		return false;
	if (off < x->from || off >= x->data) {
		x->from = off;
		x->data = next_data(x->fd, off, x->size);
	}
	return off + len <= x->data;
}

void
extents_hash_zeros(struct extents *x, const struct hash_key *k, uint64_t len,
		   uint8_t hash[HASH128_SIZE])
{
	static uint8_t zeros[EXTENTS_ZEROS_MAX];

	if (x->zeros != len)
		hash128_keyed(k, zeros, len, x->zeros_hash);
	x->zeros = len;
	memcpy(hash, x->zeros_hash, HASH128_SIZE);
}
