/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolbacking - what a pool lies in, as far as another can come in its place without a trace in
 * the sidecar, which is elsewhere: the device of a pool on device DAX, and the files of a set's
 * local replicas. docs/POOL-FORMAT.md, 1.10.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "checksum.h"
#include "le.h"
#include "pooldevice.h"
#include "poolstore.h"

_Static_assert(HASH128_SIZE == GEN_ID_SIZE, "a hash is an identifier");

/* Numbers of files are given again: the time at which it was made is a part of what a file is. */
static bool
file_add(struct gen_id *id, int fd, uint32_t replica, uint32_t number)
{
	uint8_t text[GEN_ID_SIZE + 4 + 4 + 8 + 8 + 4];
	struct statx x;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &x) != 0 ||
	    !(x.stx_mask & STATX_BTIME))
		return false;
	memcpy(text, id->b, GEN_ID_SIZE);
	put_le32(text + 16, replica);
	put_le32(text + 20, number);
	put_le64(text + 24, x.stx_ino);
	put_le64(text + 32, (uint64_t)x.stx_btime.tv_sec);
	put_le32(text + 40, x.stx_btime.tv_nsec);
	hash128(text, sizeof(text), id->b);
	return true;
}

struct gen_id
poolparts_backing(const struct poolparts *p)
{
	static const struct gen_id nil;
	struct gen_id id = nil;

	for (const struct poolparts *r = p->next; r; r = r->next)
		for (unsigned i = 0; i < r->count; i++)
			if (!file_add(&id, r->part[i].fd, r->replica, i))
				return nil;
	return id;
}

bool
pool_is_elsewhere(const struct pool_files *f, const struct sidecar *meta)
{
	struct gen_id now;

	return pooldevice_is_open(&f->st) && !meta->primary && !gen_id_is_nil(&meta->backing) &&
	       pooldevice_identity(POOLDEVICE_SYSFS, f->st.st_rdev, &now) &&
	       !gen_id_equal(&now, &meta->backing);
}

bool
pool_copies_are_known(const struct poolparts *p, const struct sidecar *meta)
{
	struct gen_id now = poolparts_backing(p);

	/* A header, where there is one, tells a new file from one that was the pool's. */
	if (gen_id_is_nil(&now) || gen_id_is_nil(&meta->backing))
		return p->linked;
	return gen_id_equal(&now, &meta->backing);
}

void
pool_backing_note(const struct pool_files *f, struct sidecar *meta)
{
	struct gen_id now;

	if (f->parts)
		meta->backing = poolparts_backing(f->parts);
	else if (pooldevice_is_open(&f->st) &&
		 pooldevice_identity(POOLDEVICE_SYSFS, f->st.st_rdev, &now))
		meta->backing = now;
}
