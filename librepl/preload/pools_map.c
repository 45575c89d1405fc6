/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's mappings as they come and go: with its first one a pool is followed, with its last
 * one closed. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "maps.h"
#include "pools.h"
#include "pools_impl.h"
#include "real.h"

#define PAGE 4096U

static pthread_once_t end_once = PTHREAD_ONCE_INIT;

/* When the file was made, or 0: where that is not known. */
static uint64_t
born_ns(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) || !(st.stx_mask & STATX_BTIME))
		return 0;
	return (uint64_t)st.stx_btime.tv_sec * 1000000000ULL + st.stx_btime.tv_nsec;
}

/*
 * A file that is deleted and not mapped any more gives its number away, and another one has that
 * and its name. As long as we have a view of it that can't be.
 */
static bool
is_reborn(const struct pool *p, uint64_t born)
{
	return !p->view && p->born_ns && born && p->born_ns != born;
}

static bool
has_file(const struct pool *p, const struct stat *st)
{
	return p->dev == st->st_dev && p->ino == st->st_ino;
}

/* A file is mapped of which nobody can say whether it is a pool. */
static void
hidden_tell(void)
{
	struct stat named;

	for (unsigned i = 0; i < pool_count; i++) {
		struct pool *p = &pools[i];

		/* One that has no name is not there yet. */
		if (p->view || stat(p->path, &named) == 0 || errno == ENOENT || errno == ENOTDIR ||
		    atomic_exchange(&p->told_hidden, true))
			continue;
		report("%s: %s: if it is this that is mapped now, it is NOT REPLICATED; next: map "
		       "it while its path can be looked up",
		       p->path, strerror(errno));
	}
}

/*
 * What is mapped is the pool's file, or has taken that one's place by its name. True if that was
 * replicated: what the replicas have is another file's then.
 */
static bool
pool_take_file(struct pool *p, int fd, const struct stat *st)
{
	uint64_t born = born_ns(fd);
	bool other, renewed;

	pool_lock_write(p);
	other = !has_file(p, st) || is_reborn(p, born);
	if (other) {
		p->mapped_mtim = st->st_mtim;
		if (maps_forget((unsigned)(p - pools)))
			report("%s is another file now: the one before, still mapped, is NOT "
			       "REPLICATED any more",
			       p->path);
		pool_close_locked(p);
		p->retry_ns = 0;
		view_unmap(p);
	}
	pool_set_file(p, st, born);
	renewed = other && missed_forget(p);
	mark_name(p, fd);
	p->file_size = (size_t)st->st_size;
	view_ends_at(p, p->file_size);
	if (!p->view && view_map(p, fd))
		report("%s: mapping it: %s: NOT REPLICATED", p->path, strerror(errno));
	(void)pool_unlock_write(p);
	return renewed;
}

/* Whether this mapping is, or can become by mprotect(2), one to write to a file by. */
static bool
may_write(int prot, int flags, int fd)
{
	if (fd < 0 || (flags & MAP_ANONYMOUS) || (flags & MAP_TYPE) == MAP_PRIVATE)
		return false;
	return (prot & PROT_WRITE) || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/* For a pool's lock: who has that is not this thread, and does not wait for it. */
static bool
may_wait(void)
{
	return !pools_busy() && !thread_is_theirs();
}

static size_t
whole_pages(size_t len)
{
	return (len + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* Mappings are gone: a pool with none left is closed, if it may be. */
static void
pools_let_go(struct maps_change c, bool may_close)
{
	/* What a child of vfork(2) closes it closes for itself only. */
	may_close = may_close && !is_sharing();
	for (unsigned i = 0; i < pool_count; i++) {
		if (c.full & 1U << i)
			report("%s: more than %d mappings: one is NOT REPLICATED", pools[i].path,
			       MAPS_MAX);
		if (!(c.gone & ~c.left & 1U << i) || !may_close)
			continue;
		pool_leave(&pools[i]);
		pool_lock_write(&pools[i]);
		pool_close_locked(&pools[i]);
		pools[i].retry_ns = 0;
		view_unmap(&pools[i]);
		(void)pool_unlock_write(&pools[i]);
	}
}

/*
 * By a signal handler that has interrupted work on a pool, or by a function of the program's that
 * this calls, as its malloc(3): the pool's lock may be its own. Of a file that is followed no more
 * is needed than that the mapping is known.
 */
static bool
may_add_amid(const struct pool *p, const struct stat *st)
{
	if (p->view && has_file(p, st))
		return true;
	report("%s: mapped amid work on a pool, as by a signal handler: this mapping is "
	       "NOT REPLICATED",
	       p->path);
	return false;
}

bool
mapping_add(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	bool may = may_wait(), writes = may_write(prot, flags, fd), renewed = false, add;
	struct calm calm = calm_begin();
	struct stat st = {0};
	int number = writes ? pool_of_file(fd, &st) : -1;
	struct pool *p = number < 0 ? NULL : &pools[number];

	if (writes && !p && S_ISREG(st.st_mode))
		hidden_tell();
	if (p && (prot & PROT_WRITE))
		p->stored = true;
	add = p && (may || may_add_amid(p, &st));
	/* What was there before is gone. But in what is mapped over itself others go on: that is
	 * found at each moment. */
	if ((flags & MAP_FIXED) && !(add && has_file(p, &st)))
		pools_let_go(maps_remove(addr, whole_pages(len)), may);
	if (add && may) {
		missed_none();
		(void)pthread_once(&end_once, register_end);
		renewed = pool_take_file(p, fd, &st);
	}
	if (add)
		pools_let_go(maps_put(addr, whole_pages(len), (uint64_t)off, (unsigned)number),
			     may);
	calm_end(calm);
	return renewed;
}

void
pools_mapped(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	struct stat st;
	int pool;

	if (!mapping_add(addr, len, prot, flags, fd, off))
		return;
	pool = pool_of_file(fd, &st);
	if (pool >= 0)
		pool_renewed(&pools[pool]);
}

static bool
any_held(const void *addr, size_t len)
{
	struct maps_piece any;

	return maps_find((uintptr_t)addr, (uintptr_t)addr + (len ? len : 1), &any);
}

void *
pools_remap(void *old, size_t old_len, size_t len, int flags, void *wish)
{
	bool may = may_wait();
	struct maps_change c;
	struct calm calm;
	void *got;

	if (!any_held(old, whole_pages(old_len)) &&
	    !(flags & MREMAP_FIXED && any_held(wish, whole_pages(len))))
		return (void *)syscall(SYS_mremap, old, old_len, len, flags, wish);
	calm = calm_begin();
	c = maps_remap(old, whole_pages(old_len), whole_pages(len), flags, wish, &got);
	if (got == MAP_FAILED)
		calm.saved_errno = errno;
	pools_let_go(c, may);
	calm_end(calm);
	return got;
}

int
pools_remap_pages(void *addr, size_t len, int prot, size_t page, int flags)
{
	struct maps_change c;
	struct calm calm;
	int rc;

	if (!any_held(addr, len))
		return (int)syscall(SYS_remap_file_pages, addr, len, prot, page, flags);
	calm = calm_begin();
	c = maps_remap_pages(addr, len, prot, page, flags, &rc);
	if (rc)
		calm.saved_errno = errno;
	/* Its pool is mapped there still. */
	pools_let_go(c, false);
	calm_end(calm);
	return rc;
}

int
pools_unmap(void *addr, size_t len)
{
	bool may = may_wait();
	struct maps_change c;
	struct calm calm;
	int rc;

	/* Most of what a process unmaps is no pool. */
	if (!any_held(addr, whole_pages(len)))
		return real_munmap(addr, len);
	calm = calm_begin();
	c = maps_unmap(addr, whole_pages(len), &rc);
	if (rc)
		calm.saved_errno = errno;
	pools_let_go(c, may);
	calm_end(calm);
	return rc;
}

static void
pool_written(struct pool *p, const struct stat *st)
{
	p->written_dev = st->st_dev;
	p->written_ino = st->st_ino;
}

void
pools_opened(int fd)
{
	int saved_errno = errno, pool;
	struct stat st;

	/* What we open ourselves is to look at it. */
	pool = pools_busy() ? -1 : pool_of_file(fd, &st);
	if (pool >= 0)
		pool_written(&pools[pool], &st);
	errno = saved_errno;
}

/* It may be about to be mapped, and goes to the replicas with the first that is followed then. */
static bool
is_synced_late(struct pool *p)
{
	uint64_t since = 0, now = now_ns();

	return !atomic_compare_exchange_strong(&p->synced_ns, &since, now) &&
	       now - since >= LATE_NS;
}

void
pools_synced(int fd, const char *call)
{
	struct calm calm;
	struct stat st;
	struct pool *p;
	int pool;

	if (pools_busy())
		return;
	calm = calm_begin();
	pool = pool_of_file(fd, &st);
	p = pool < 0 ? NULL : &pools[pool];
	/* However it was opened. */
	if (p && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
		pool_written(p, &st);
	if (p && (maps_has((unsigned)pool) || is_synced_late(p)) &&
	    !atomic_exchange(&p->told_synced, true))
		report("%s: %s replicates nothing: only what msync(2), libpmem or libpmem2 makes "
		       "durable is followed",
		       p->path, call);
	calm_end(calm);
}
