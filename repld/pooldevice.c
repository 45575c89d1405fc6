/* SPDX-License-Identifier: BSD-3-Clause */
#include "pooldevice.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daxmap.h"
#include "pmem.h"
#include "probe_sysfs.h"

#define ZERO_CHUNK ((uint64_t)64 << 20)

uint64_t
pooldevice_size(const char *sysfs, dev_t number)
{
	char path[PATH_MAX];
	char line[32];

	if (!daxmap_is_device(sysfs, number))
		return 0;
	(void)snprintf(path, sizeof(path), "%s/dev/char/%u:%u/size", sysfs, major(number),
		       minor(number));
	return probe_read_line(path, line, sizeof(line)) ? strtoull(line, NULL, 0) : 0;
}

/*
 * The first one above it that has a UUID: of an NVDIMM's namespace what ndctl calls its "uuid",
 * which is made with it, of CXL memory that of its region.
 */
bool
pooldevice_identity(const char *sysfs, dev_t number, struct gen_id *id)
{
	char path[PATH_MAX], root[PATH_MAX], at[PATH_MAX], line[64];
	char *slash;

	(void)snprintf(path, sizeof(path), "%s/dev/char/%u:%u", sysfs, major(number),
		       minor(number));
	if (!daxmap_is_device(sysfs, number) || !realpath(sysfs, root) || !realpath(path, at))
		return false;
	while (strlen(at) > strlen(root)) {
		if (snprintf(path, sizeof(path), "%s/uuid", at) < (int)sizeof(path) &&
		    probe_read_line(path, line, sizeof(line)) && gen_id_parse(line, id) &&
		    !gen_id_is_nil(id))
			return true;
		slash = strrchr(at, '/');
		*slash = '\0';
	}
	return false;
}

bool
pooldevice_is_open(const struct stat *st)
{
	return S_ISCHR(st->st_mode);
}

/* A descriptor of what the link leads to that opens nothing, or -1. */
static int
device_find(int dir, const char *leaf, struct stat *st)
{
	int fd;

	if (fstatat(dir, leaf, st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISLNK(st->st_mode))
		return -1;
	fd = openat(dir, leaf, O_PATH | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISCHR(st->st_mode) ||
			pooldevice_size(POOLDEVICE_SYSFS, st->st_rdev) == 0)) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

bool
pooldevice_is(int dir, const char *leaf)
{
	struct stat st;
	int fd = device_find(dir, leaf, &st);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

bool
pooldevice_is_away(int dir, const char *leaf)
{
	struct stat st;

	if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISLNK(st.st_mode))
		return false;
	return fstatat(dir, leaf, &st, 0) != 0 &&
	       (errno == ENOENT || errno == ENXIO || errno == ENODEV);
}

/* Who may not open it yet is no refusal, which would be for a person to end. */
static int
open_status(int errnum, bool making)
{
	bool late = errnum == EACCES || errnum == EPERM;

	if (errnum == ENXIO || errnum == ENODEV || (late && !making))
		return REPL_E_IO;
	return err_from_errno(errnum);
}

int
pooldevice_open(int dir, const char *leaf, const char *name, int flags, bool making, int *fd,
		struct stat *st, struct err *e)
{
	char path[64];
	int at = device_find(dir, leaf, st);

	*fd = -1;
	if (at < 0)
		return err_set(e, pooldevice_is_away(dir, leaf) ? REPL_E_IO : REPL_E_REFUSED,
			       "pool '%s': '%s' no longer leads to a device-DAX device", name,
			       leaf);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	*fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
	if (*fd < 0) {
		int errnum = errno;

		(void)close(at);
		return err_errno(e, open_status(errnum, making), errnum,
				 "pool '%s': open its device; see that the user of repld may",
				 name);
	}
	(void)close(at);
	if (flock(*fd, (making ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
		(void)close(*fd);
		*fd = -1;
		return err_set(e, REPL_E_BUSY,
			       "pool '%s': its device is in use by another session, or another "
			       "pool is being made on it",
			       name);
	}
	return 0;
}

int
pooldevice_check(const struct stat *st, const char *name, uint64_t size, struct err *e)
{
	uint64_t room = pooldevice_size(POOLDEVICE_SYSFS, st->st_rdev);

	if (size <= room)
		return 0;
	return err_set(e, REPL_E_NOSPC, "pool '%s': %llu bytes are needed, its device has %llu",
		       name, (unsigned long long)size, (unsigned long long)room);
}

int
pooldevice_zero(int fd, const char *path, uint64_t size, struct err *e)
{
	struct pmem_map *map = NULL;
	int rc = pmem_map_new(fd, path, size, true, &map, e);

	for (uint64_t off = 0; !rc && off < size; off += ZERO_CHUNK) {
		struct range r = {.off = off, .len = size - off};

		if (r.len > ZERO_CHUNK)
			r.len = ZERO_CHUNK;
		(void)pmem_map_zero(map, r.off, r.len, false);
		rc = pmem_map_persist(map, &r, 1, e);
	}
	pmem_map_free(map);
	return rc;
}

int
pooldevice_settle(int fd, const char *path, uint64_t size, struct err *e)
{
	struct range all = {.off = 0, .len = size};
	struct pmem_map *map = NULL;
	int rc = pmem_map_new(fd, path, size, true, &map, e);

	if (!rc)
		rc = pmem_map_persist(map, &all, 1, e);
	pmem_map_free(map);
	return rc;
}

bool
pooldevice_head(int fd, const char *path, void *buf, size_t size)
{
	struct pmem_map *map = NULL;

	if (pmem_map_new(fd, path, size, false, &map, NULL))
		return false;
	memcpy(buf, pmem_map_addr(map), size);
	pmem_map_free(map);
	return true;
}
