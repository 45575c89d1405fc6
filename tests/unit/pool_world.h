/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool directory for one test, in memory or on disk, and what lies in its files when nobody has
 * them open.
 */
#ifndef UNIT_POOL_WORLD_H
#define UNIT_POOL_WORLD_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checksum.h"
#include "le.h"
#include "poolstore.h"
#include "tempdir.h"

static char dir[TEMPDIR_MAX];
static struct pool_store *store;
static struct pool_info info;
static struct err err;

/* With a pool "p" of size bytes, or without one if that is 0. */
static inline int
world_new(int on_disk, uint64_t size)
{
	err_clear(&err);
	assert_int_equal(tempdir_new(dir, on_disk), 0);
	assert_int_equal(pool_store_new(dir, &store, &err), 0);
	if (size && pool_create(store, "p", size, NULL, false, &info, &err))
		fail_msg("%s", err.text);
	return 0;
}

static inline int
world_free(void **state)
{
	(void)state;
	pool_store_free(store);
	store = NULL;
	tempdir_free(dir);
	return 0;
}

/* ---- files ---- */

static inline int
file_open(const char *name)
{
	int fd = openat(pool_store_dirfd(store), name, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fail_msg("%s/%s: %s", dir, name, strerror(errno));
	return fd;
}

/* From its begin, as much as there is. */
static inline size_t
file_get(const char *name, uint8_t *buf, size_t size)
{
	int fd = file_open(name);
	ssize_t n = pread(fd, buf, size, 0);

	assert_true(n >= 0);
	(void)close(fd);
	return (size_t)n;
}

/* All that it is then. */
static inline void
file_put(const char *name, const uint8_t *buf, size_t len)
{
	int fd = file_open(name);

	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	assert_int_equal(pwrite(fd, buf, len, 0), len);
	(void)close(fd);
}

static inline void
file_change(const char *name, uint64_t off, const void *bytes, size_t len)
{
	int fd = file_open(name);

	assert_int_equal(pwrite(fd, bytes, len, (off_t)off), len);
	(void)close(fd);
}

static inline void
file_read(const char *name, uint64_t off, void *buf, size_t len)
{
	int fd = file_open(name);

	assert_int_equal(pread(fd, buf, len, (off_t)off), len);
	(void)close(fd);
}

static inline uint8_t
file_byte(const char *name, uint64_t off)
{
	uint8_t b;

	file_read(name, off, &b, 1);
	return b;
}

static inline uint64_t
file_size(const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(pool_store_dirfd(store), name, &st, 0), 0);
	return (uint64_t)st.st_size;
}

/* As if a version to come had made this sidecar. */
static inline void
sidecar_made_newer(const char *name)
{
	uint8_t copies[SIDECAR_SIZE];

	assert_int_equal(file_get(name, copies, sizeof(copies)), sizeof(copies));
	for (unsigned i = 0; i < 2; i++) {
		uint8_t *slot = copies + i * SIDECAR_SLOT_SIZE;

		put_le16(slot + 8, 9);
		put_le64(slot + 16, 0);
		put_le64(slot + 16, sum64(slot, SIDECAR_SLOT_SIZE));
	}
	file_change(name, 0, copies, sizeof(copies));
}

/* ---- processes ---- */

/* A process that does this and is killed. */
static inline void
killed_after(void (*work)(const void *arg), const void *arg)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		work(arg);
		(void)raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

#endif
