/* SPDX-License-Identifier: BSD-3-Clause */
/* Our own view of a pool's file, and the file itself by its name: what of the two can be read. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "filelock.h"
#include "pools_impl.h"
#include "procself.h"
#include "real.h"

#define PAGE 4096U
/* Addresses behind a view, for the file to grow: so many times its size, at least and at most. */
#define ROOM_SHARE 16U
#define ROOM_MIN   (64UL << 20)
#define ROOM_MAX   (1UL << 40)

int
view_again(int fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), PROCSELF "/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Limits of addresses that the program sets itself count it. Beyond it the pool is opened anew. */
static size_t
growth_room(size_t size)
{
	if (size >= ROOM_MAX / ROOM_SHARE)
		return ROOM_MAX;
	return size < ROOM_MIN / ROOM_SHARE ? ROOM_MIN : size * ROOM_SHARE;
}

static int
view_at(struct pool *p, int fd)
{
	size_t size = p->file_size > 0 ? p->file_size : PAGE;
	void *addr;

	p->room = size + growth_room(size);
	addr = real_mmap(NULL, p->room, PROT_READ, MAP_SHARED, fd, 0);
	if (addr == MAP_FAILED) {
		p->room = size;
		addr = real_mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	}
	p->view = addr == MAP_FAILED ? NULL : addr;
	return p->view ? 0 : -1;
}

/*
 * A description of its own: with a duplicate, the program's lock on the file by flock(2)
 * would outlive its closing it. But not where closing that would take a lock by
 * fcntl(2) away. No other descriptor is kept: the program may close any.
 */
int
view_map(struct pool *p, int fd)
{
	int own = filelock_seen(fd) ? -1 : view_again(fd);

	/* It is for looking only, perhaps. */
	if (view_at(p, own < 0 ? fd : own) && own < 0) {
		own = view_again(fd);
		(void)view_at(p, own);
	}
	filelock_close(own);
	return p->view ? 0 : -1;
}

void
view_unmap(struct pool *p)
{
	if (p->view)
		(void)real_munmap(p->view, p->room);
	p->view = NULL;
}

/*
 * Without a copy of it. What can't be looked at for another reason counts as there; of a kernel
 * that can't be asked for all (before 5.14) the last byte is.
 */
static bool
view_is_there(const struct pool *p, uint64_t from, uint64_t end)
{
	uint64_t page = from - from % PAGE;
	uint8_t byte;
	struct iovec to = {.iov_base = &byte, .iov_len = 1};
	struct iovec last = {.iov_base = p->view + end - 1, .iov_len = 1};

	if (syscall(SYS_madvise, p->view + page, end - page, MADV_POPULATE_READ) == 0)
		return true;
	if (errno == EFAULT || errno == EHWPOISON)
		return false;
	return process_vm_readv(gettid(), &to, 1, &last, 1, 0) == 1 || errno != EFAULT;
}

size_t
view_has(const struct pool *p, uint64_t off, size_t len)
{
	uint64_t from = off, end = off + len;

	if (len == 0 || view_is_there(p, off, end))
		return len;
	while (from < end) {
		uint64_t at = from + (end - from) / 2;

		at -= at % PAGE;
		if (at < from)
			at = from;
		if (view_is_there(p, from, at + 1))
			from = at + PAGE - at % PAGE;
		else
			end = at;
	}
	return (size_t)(end - off);
}

/* Likewise, to look at it only, whose end takes no lock away. */
static int
file_named(const struct pool *p, struct stat *st)
{
	int fd = open(p->path, O_PATH | O_CLOEXEC);

	if (fd >= 0 && fstat(fd, st) == 0 && st->st_dev == p->dev && st->st_ino == p->ino)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

int
view_open(struct pool *p)
{
	struct stat st;
	int fd = file_named(p, &st);

	if (fd >= 0) {
		p->file_size = (size_t)st.st_size;
		view_ends_at(p, p->file_size);
	}
	return fd;
}

bool
view_ends(const struct pool *p, uint64_t *end)
{
	struct stat st;
	int fd = file_named(p, &st);

	if (fd < 0)
		return false;
	(void)close(fd);
	*end = (uint64_t)st.st_size;
	return true;
}

void
view_ends_at(struct pool *p, uint64_t end)
{
	atomic_store(&p->end, end);
	kin_resized((unsigned)(p - pools), end);
}

uint64_t
view_ended(const struct pool *p)
{
	uint64_t end = kin_size((unsigned)(p - pools), atomic_load(&p->end));
	uint64_t behind = (end + PAGE - 1) / PAGE * PAGE;

	return behind < p->room && view_has(p, behind, 1) == 1 ? UINT64_MAX : end;
}

int
view_holes(const struct pool *p, uint64_t *end)
{
	struct statfs fs;
	struct stat st;
	int fd = file_named(p, &st), data = -1;

	if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC && !filelock_seen(fd))
		data = view_again(fd);
	if (data >= 0)
		*end = ((uint64_t)st.st_size + PAGE - 1) / PAGE * PAGE;
	if (fd >= 0)
		(void)close(fd);
	return data;
}

/* By the pages that are in memory: a hole is none. */
bool
view_is_stored(const struct pool *p, uint64_t off, size_t len)
{
	unsigned char in[LANE_BYTES / PAGE + 1];
	uint64_t page = off - off % PAGE;
	size_t n = (off + len - page + PAGE - 1) / PAGE, i = 0;

	if (n > sizeof(in) || mincore(p->view + page, n * PAGE, in))
		return false;
	while (i < n && in[i] & 1)
		i++;
	return i == n;
}

size_t
view_data(int fd, size_t off, size_t to)
{
	off_t at = fd < 0 ? (off_t)off : lseek(fd, (off_t)off, SEEK_DATA);

	if (at < 0)
		return errno == ENXIO ? to : off;
	return (size_t)at < to ? (size_t)at : to;
}

size_t
view_data_end(int fd, size_t off, size_t to)
{
	off_t end = fd < 0 ? -1 : lseek(fd, (off_t)off, SEEK_HOLE);

	return end < 0 || (size_t)end > to ? to : (size_t)end;
}
