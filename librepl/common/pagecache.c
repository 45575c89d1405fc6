/* SPDX-License-Identifier: BSD-3-Clause */
#include "pagecache.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "filewrite.h"
#include "procself.h"

bool
pagecache_is_dax(int fd)
{
	struct statx stx;
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode))
		return true;
	return statx(fd, "", AT_EMPTY_PATH, 0, &stx) == 0 && (stx.stx_attributes & STATX_ATTR_DAX);
}

bool
pagecache_in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

#define LOOK  4096U /* pages at once */
#define FOLIO 2048U /* pages, at most */
#define SYNCS 64U   /* of a file that is stored to: no more of it is looked at then */

struct agree {
	const struct pagecache *c;
	uint64_t length; /* of the file */
	size_t page;
	size_t run;                       /* pages read at once */
	uint8_t *media, *memory, *before; /* so many each */
	uint8_t *now;                     /* a page */
	bool counts;                      /* the kernel tells how many pages are cached */
	uint64_t bytes;
	unsigned syncs;
};

static int
agree_error(uint64_t off, ssize_t n, struct err *e)
{
	int errnum = n < 0 ? errno : EIO;

	return err_errno(e, err_from_errno(errnum), errnum, "comparing memory with media, at %llu",
			 (unsigned long long)off);
}

/*
 * Written past the cache it is thrown out of that, mapped or not. To mark the page dirty again is
 * not enough: ext4 writes it to blocks that it goes on to call unwritten. The last one goes whole,
 * too, behind which the file gets its length again: through the cache its block would be taken for
 * written likewise. Who is killed in between leaves a file that was about to grow. Not by
 * ftruncate(3), which replctl run takes for the program's.
 */
static int
agree_write(struct agree *a, uint8_t *buf, uint64_t off, size_t len, struct err *e)
{
	bool cut = len < a->page;
	struct stat st;
	int rc;

	if (cut)
		memset(buf + len, 0, a->page - len);
	rc = filewrite_all(a->c->direct, buf, a->page, (off_t)off);
	/* Unless another hand has let it grow by more. */
	if (!rc && cut && fstat(a->c->direct, &st) == 0 && (uint64_t)st.st_size == off + a->page)
		rc = (int)syscall(SYS_ftruncate, a->c->direct, (off_t)a->length);
	if (rc)
		return agree_error(off, -1, e);
	a->bytes += len;
	return 0;
}

static int
agree_read(struct agree *a, uint64_t off, size_t pages, size_t len, struct err *e)
{
	ssize_t n = pread(a->c->direct, a->media, pages * a->page, (off_t)off);

	if (n == (ssize_t)len)
		n = pread(a->c->fd, a->memory, len, (off_t)off);
	return n == (ssize_t)len ? 0 : agree_error(off, n, e);
}

/*
 * A page that somebody stores to differs as well, and is dirty: to write what it had a moment ago
 * would take back what was stored since. Lost is what a sync does not write, and nobody changes.
 */
static int
agree_again(struct agree *a, uint64_t off, size_t pages, size_t len, struct err *e)
{
	uint8_t *swap = a->before;

	a->before = a->memory;
	a->memory = swap;
	a->syncs++;
	if (fdatasync(a->c->direct))
		return agree_error(off, -1, e);
	return agree_read(a, off, pages, len, e);
}

static size_t
page_of(const struct agree *a, size_t at, size_t len)
{
	return len - at < a->page ? len - at : a->page;
}

static bool
differs(const struct agree *a, size_t at, size_t part)
{
	return memcmp(a->media + at, a->memory + at, part) != 0;
}

static bool
is_lost(const struct agree *a, size_t at, size_t part)
{
	return differs(a, at, part) && memcmp(a->before + at, a->memory + at, part) == 0;
}

/* Since it was read: what is thrown out meanwhile is as media have it. */
static bool
is_stored_to(const struct agree *a, uint64_t off, size_t at, size_t part)
{
	ssize_t n = pread(a->c->fd, a->now, part, (off_t)(off + at));

	return n == (ssize_t)part && memcmp(a->now, a->memory + at, part) != 0 &&
	       memcmp(a->now, a->media + at, part) != 0;
}

/* What is lost from at on is dirty in the cache. What of it can't be does not keep the rest. */
static int
agree_dirty(struct agree *a, uint64_t off, size_t at, size_t len)
{
	int fd = a->c->direct, errnum = fcntl(fd, F_SETFL, 0) ? errno : 0;

	for (size_t part; at < len; at += part) {
		part = page_of(a, at, len);
		if (is_lost(a, at, part) && !is_stored_to(a, off, at, part) &&
		    filewrite_all(fd, a->memory + at, part, (off_t)(off + at)))
			errnum = errno;
	}
	if (fcntl(fd, F_SETFL, O_DIRECT))
		errnum = errno;
	errno = errnum;
	return errnum ? -1 : 0;
}

static int
agree_check(const struct agree *a, uint64_t off, size_t at, size_t part, struct err *e)
{
	if (!is_stored_to(a, off, at, part))
		return 0;
	return err_set(e, REPL_E_FAILED, "a program stores to it, at %llu",
		       (unsigned long long)(off + at));
}

/* What is refused is put back, and so is what was thrown out with what was put before it. */
static int
agree_put(struct agree *a, uint64_t off, size_t at, size_t len, struct err *e)
{
	size_t part = page_of(a, at, len);
	int rc = agree_check(a, off, at, part, e);

	if (!rc)
		rc = agree_write(a, a->memory + at, off + at, part, e);
	if (rc)
		(void)agree_dirty(a, off, at, len);
	return rc;
}

static size_t
next_lost(const struct agree *a, size_t at, size_t len)
{
	while (at < len && !is_lost(a, at, page_of(a, at, len)))
		at += a->page;
	return at;
}

/*
 * A write past the cache throws out what the cache has before it is known whether the device takes
 * it, and this is the only one that has it. So the device has to take it from the cache first,
 * which keeps what it has if that fails, or there is no space. If what is refused behind that can't
 * even be put back the device has it from the sync, but for ext4's unwritten blocks. The sync takes
 * its time: what is stored to one of these pages meanwhile is seen before the first of them goes.
 */
static int
agree_memory(struct agree *a, uint64_t off, size_t len, struct err *e)
{
	size_t first = next_lost(a, 0, len);
	int rc = 0;

	if (first < len && (agree_dirty(a, off, first, len) || fdatasync(a->c->direct)))
		return agree_error(off, -1, e);
	for (size_t at = first; !rc && at < len; at = next_lost(a, at + a->page, len))
		rc = agree_check(a, off, at, page_of(a, at, len), e);
	for (size_t at = first; !rc && at < len; at = next_lost(a, at + a->page, len))
		rc = agree_put(a, off, at, len, e);
	return rc;
}

static int
agree_run(struct agree *a, uint64_t off, size_t pages, struct err *e)
{
	enum pagecache_right right = a->c->right;
	uint64_t left = a->c->size - off;
	size_t len = pages * a->page < left ? pages * a->page : (size_t)left;
	int rc = agree_read(a, off, pages, len, e);

	if (rc || memcmp(a->media, a->memory, len) == 0)
		return rc;
	if (right != PAGECACHE_MEDIA)
		rc = agree_again(a, off, pages, len, e);
	if (!rc && right == PAGECACHE_MEMORY)
		return agree_memory(a, off, len, e);
	for (size_t at = 0, part; !rc && at < len; at += part) {
		part = page_of(a, at, len);
		if (right == PAGECACHE_EITHER)
			a->bytes += is_lost(a, at, part) ? part : 0;
		else if (differs(a, at, part))
			rc = agree_write(a, a->media + at, off + at, part, e);
	}
	return rc;
}

/* Where a service's system calls are filtered it may not ask: all of it is read then. */
static int
agree_look(const struct agree *a, uint64_t off, size_t len, unsigned char *there, struct err *e)
{
	const uint8_t *map = a->c->map;

	if (mincore((void *)(uintptr_t)(map + off), len, there) == 0)
		return 0;
	if (errno != EPERM && errno != ENOSYS)
		return err_errno(e, REPL_E_IO, errno, "mincore");
	memset(there, 1, (len + a->page - 1) / a->page);
	return 0;
}

/* cachestat(2), of Linux 6.5, which libc has no name for. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

static bool
any_cached(const struct agree *a, uint64_t off, uint64_t len)
{
	struct {
		uint64_t off, len;
	} range = {off, len};
	struct {
		uint64_t cached, dirty, writeback, evicted, evicted_of_late;
	} stat = {0};

	return syscall(SYS_cachestat, a->c->fd, &range, &stat, 0) == 0 && stat.cached > 0;
}

/*
 * To look at each page of a TiB takes seconds, of which next to nothing may be cached. A file
 * system that is stacked on another one has nothing in a cache of its own.
 */
static bool
agree_counts(const struct agree *a)
{
	uint8_t first;

	return pread(a->c->fd, &first, 1, 0) == 1 && any_cached(a, 0, a->page);
}

static bool
agree_ends(const struct agree *a)
{
	return a->c->right == PAGECACHE_EITHER && a->syncs >= SYNCS;
}

/*
 * The cache has pages in folios, and a write past it throws out whole ones: they are read before,
 * lest it is what media have of the rest that is compared with media. A folio is aligned, no larger
 * than what a page table maps, and of 2048 pages at most.
 */
static size_t
folio_pages(size_t page)
{
	size_t table = page / sizeof(uint64_t);

	return table < FOLIO ? table : FOLIO;
}

static int
agree_all(struct agree *a, struct err *e)
{
	unsigned char there[LOOK];
	uint64_t step = LOOK * a->page, size = a->c->size;
	int rc = 0;

	for (uint64_t off = 0; !rc && off < size && !agree_ends(a); off += step) {
		size_t len = size - off < step ? (size_t)(size - off) : (size_t)step;
		size_t pages = (len + a->page - 1) / a->page;

		if (a->counts && !any_cached(a, off, len))
			continue;
		rc = agree_look(a, off, len, there, e);
		for (size_t i = 0, n; !rc && i < pages && !agree_ends(a); i += n ? n : 1) {
			size_t most = a->run - i % a->run;

			for (n = 0; n < most && i + n < pages && (there[i + n] & 1); n++)
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

/* Not all blocks of a device are as small as a page. */
static int
direct_check(int *direct, struct err *e)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *buf = aligned_alloc(page, page);
	int errnum = 0;

	if (!buf)
		return err_set(e, REPL_E_NOMEM, "no memory to compare memory with media");
	if (pread(*direct, buf, page, 0) < 0)
		errnum = errno;
	free(buf);
	if (errnum == 0)
		return 0;
	(void)close(*direct);
	*direct = -1;
	errno = errnum;
	return is_unable(errnum) ? 0 : agree_error(0, -1, e);
}

int
pagecache_open(int fd, int *direct, struct err *e)
{
	char name[64];

	*direct = -1;
	if (pagecache_is_dax(fd) || pagecache_in_memory(fd))
		return 0;
	(void)snprintf(name, sizeof(name), PROCSELF "/fd/%d", fd);
	*direct = open(name, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (*direct >= 0)
		return direct_check(direct, e);
	/* Any other error says nothing of what is on media. */
	if (is_unable(errno))
		return 0;
	return err_errno(e, err_from_errno(errno), errno, "open it to compare memory with media");
}

int
pagecache_agree(const struct pagecache *c, uint64_t *bytes, struct err *e)
{
	struct agree a = {.c = c, .page = (size_t)sysconf(_SC_PAGESIZE)};
	struct stat st;
	uint8_t *bufs;
	int rc;

	if (fstat(c->fd, &st))
		return err_errno(e, REPL_E_IO, errno, "fstat");
	a.length = (uint64_t)st.st_size;
	a.run = folio_pages(a.page);
	bufs = aligned_alloc(a.page, (3 * a.run + 1) * a.page);
	if (!bufs)
		return err_set(e, REPL_E_NOMEM, "no memory to compare memory with media");
	a.media = bufs;
	a.memory = bufs + a.run * a.page;
	a.before = bufs + 2 * a.run * a.page;
	a.now = bufs + 3 * a.run * a.page;
	a.counts = agree_counts(&a);
	rc = agree_all(&a, e);
	if (agree_ends(&a) && a.bytes == 0)
		a.bytes = a.page;
	*bytes += a.bytes;
	free(bufs);
	return rc;
}
