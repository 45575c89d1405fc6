/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool directory with the pool "s" of a set file, whose lines a test writes, and what hands do to
 * its files.
 */
#ifndef UNIT_POOL_SET_WORLD_H
#define UNIT_POOL_SET_WORLD_H

#include "pool_world.h"

#define MB ((uint64_t)1 << 20)

static uint8_t attr[PMDK_ATTR_SIZE];

static inline int
set_world_new(void **state)
{
	(void)state;
	memset(attr, 7, sizeof(attr));
	memcpy(attr, "PMEMOBJ", 8);
	memset(attr + 8, 0, 16);
	attr[8] = 6;
	attr[16] = PMDK_CKSUM_2K | PMDK_SDS;
	return world_new(0, 0);
}

static inline const char *
path_of(const char *name)
{
	static char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static inline void
write_set(const char *name, const char *lines)
{
	FILE *f = fopen(path_of(name), "w");

	assert_non_null(f);
	(void)fprintf(f, "PMEMPOOLSET\n%s", lines);
	assert_int_equal(fclose(f), 0);
}

static inline void
make_dir(const char *name)
{
	assert_int_equal(mkdir(path_of(name), 0700), 0);
}

static inline bool
there(const char *name)
{
	return access(path_of(name), F_OK) == 0;
}

static inline int
create(const char *name, uint64_t size)
{
	err_clear(&err);
	memset(&info, 0, sizeof(info));
	return pool_set_create(store, name, size, NULL, attr, false, &info, &err);
}

static inline struct pool *
open_write(void)
{
	struct pool *pool = NULL;

	err_clear(&err);
	assert_int_equal(pool_open(store, "s", POOL_WRITE, "w", &pool, &err), 0);
	return pool;
}

static inline void
move(const char *from, const char *to)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, from);
	assert_int_equal(rename(path, path_of(to)), 0);
}

static inline void
cut(const char *name, off_t size)
{
	assert_int_equal(truncate(path_of(name), size), 0);
}

static const struct generation written = {.current.b = {1}};

static inline void
write_whole(void)
{
	struct pool *pool = open_write();

	assert_int_equal(pool_mark(pool, SIDECAR_UP_TO_DATE, &written, 0, &err), 0);
	assert_int_equal(pool_close(pool, true, &err), 0);
}

static inline void
whole(void)
{
	assert_int_equal(pool_info(store, "s", &info, &err), 0);
	assert_int_equal(info.meta.state, SIDECAR_UP_TO_DATE);
	write_whole();
}

#endif
