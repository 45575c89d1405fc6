/* SPDX-License-Identifier: BSD-3-Clause */
#include "extents.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct range
extents_next(int fd, uint64_t off, uint64_t size)
{
	struct range all = {.off = off, .len = off < size ? size - off : 0};
	struct range none = {0};
	off_t data, hole;

	if (off >= size)
		return none;
	data = fd < 0 ? -1 : lseek(fd, (off_t)off, SEEK_DATA);
	if (data < 0)
		return fd >= 0 && errno == ENXIO ? none : all;
	if ((uint64_t)data >= size)
		return none;
	hole = lseek(fd, data, SEEK_HOLE);
	all.off = (uint64_t)data;
	all.len = (hole > data && (uint64_t)hole < size ? (uint64_t)hole : size) - all.off;
	return all;
}

void
extents_init(struct extents *x, int fd, uint64_t size)
{
	memset(x, 0, sizeof(*x));
	x->fd = fd;
	x->size = size;
}

bool
extents_hole(struct extents *x, uint64_t off, uint64_t len)
{
	bool passed = x->data.len && off >= x->data.off + x->data.len;

	if (x->fd < 0)
		return false;
	if (!x->known || off < x->from || passed) {
		x->data = extents_next(x->fd, off, x->size);
		x->from = off;
		x->known = true;
	}
	return x->data.len == 0 || off + len <= x->data.off;
}

void
extents_hash_zeros(uint64_t len, uint8_t hash[HASH128_SIZE])
{
	static uint8_t zeros[EXTENTS_ZEROS_MAX];

	hash128(zeros, len, hash);
}
