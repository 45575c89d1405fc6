/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that the dynamic linker finds here before those of libc and
 * libpmem: each does what the real one does, and the replicas follow.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "descriptors.h"
#include "follow.h"
#include "pools.h"
#include "real.h"
#include "resize.h"

#define NODRAIN 1 /* PMEM_F_MEM_NODRAIN */
#define PAGE    4096U
#define EXPORT  __attribute__((visibility("default")))

/* In a function that is interposed: a real one calls it. */
#define INNER follow_inner(__builtin_return_address(0))

/* ---- libc ---- */

EXPORT void *
mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	void *got = real_mmap(addr, len, prot, flags, fd, off);

	if (got != MAP_FAILED && pools_any())
		pools_mapped(got, len, prot, flags, fd, off);
	return got;
}

EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
	__attribute__((alias("mmap")));

EXPORT int
munmap(void *addr, size_t len)
{
	return pools_any() ? pools_unmap(addr, len) : real_munmap(addr, len);
}

EXPORT void *
mremap(void *old, size_t old_len, size_t len, int flags, ...)
{
	void *wish = NULL;
	va_list ap;

	if (flags & MREMAP_FIXED) {
		va_start(ap, flags);
		wish = va_arg(ap, void *);
		va_end(ap);
	}
	return pools_any() ? pools_remap(old, old_len, len, flags, wish)
			   : (void *)syscall(SYS_mremap, old, old_len, len, flags, wish);
}

EXPORT int
remap_file_pages(void *addr, size_t len, int prot, size_t page, int flags)
{
	return pools_any() ? pools_remap_pages(addr, len, prot, page, flags)
			   : (int)syscall(SYS_remap_file_pages, addr, len, prot, page, flags);
}

/* What librepl renames is no pool, whatever its name: its threads are waited for under locks. */
#define OURS descriptors_caller(__builtin_return_address(0))

static int
renamed(int rc, const char *from, const char *to, bool ours)
{
	if (rc == 0 && !ours && pools_any())
		pools_renamed(from, to);
	return rc;
}

EXPORT int
renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	return renamed((int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags), from, to,
		       OURS);
}

/* Not by the one above, which a sandbox may not know. */
EXPORT int
renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	return renamed((int)syscall(SYS_renameat, from_dir, from, to_dir, to), from, to, OURS);
}

EXPORT int
rename(const char *from, const char *to)
{
	return renamed((int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to), from, to, OURS);
}

/* From another name to this one: the first is not changed. */
EXPORT int
linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	return renamed((int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags), to, to, OURS);
}

EXPORT int
link(const char *from, const char *to)
{
	return renamed((int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0), to, to, OURS);
}

EXPORT int
symlinkat(const char *text, int to_dir, const char *to)
{
	return renamed((int)syscall(SYS_symlinkat, text, to_dir, to), to, to, OURS);
}

EXPORT int
symlink(const char *text, const char *to)
{
	return renamed((int)syscall(SYS_symlinkat, text, AT_FDCWD, to), to, to, OURS);
}

EXPORT int
msync(void *addr, size_t len, int flags)
{
	int rc = real_msync(addr, len, flags);

	if (rc == 0 && (flags & MS_SYNC) && !INNER) {
		follow_sync(addr, len, true);
		follow_drain();
	}
	return rc;
}

/* What it makes durable nobody can tell us. */
static int
synced(int rc, int fd, const char *call)
{
	if (rc == 0 && pools_any())
		pools_synced(fd, call);
	return rc;
}

EXPORT int
fsync(int fd)
{
	return synced((int)syscall(SYS_fsync, fd), fd, "fsync(2)");
}

EXPORT int
fdatasync(int fd)
{
	return synced((int)syscall(SYS_fdatasync, fd), fd, "fdatasync(2)");
}

EXPORT int
sync_file_range(int fd, off64_t off, off64_t len, unsigned flags)
{
	return synced((int)syscall(SYS_sync_file_range, fd, off, len, flags), fd,
		      "sync_file_range(2)");
}

/* What a call that may change a file's size is given. */
struct resizing {
	int fd;
	const char *path;
	int mode;
	off_t off, len;
};

static int
ftruncate_by(const void *arg)
{
	const struct resizing *r = arg;

	return (int)syscall(SYS_ftruncate, r->fd, r->len);
}

static int
truncate_by(const void *arg)
{
	const struct resizing *r = arg;

	return (int)syscall(SYS_truncate, r->path, r->len);
}

static int
fallocate_by(const void *arg)
{
	const struct resizing *r = arg;

	return (int)syscall(SYS_fallocate, r->fd, r->mode, r->off, r->len);
}

/* One that has failed amid its work, as by an error of the device, may have done it. */
EXPORT int
ftruncate(int fd, off_t len)
{
	const struct resizing r = {.fd = fd, .len = len};
	struct stat before;
	int rc;

	if (!pools_any() || OURS || fstat(fd, &before))
		return ftruncate_by(&r);
	rc = resize_by(&before, len, ftruncate_by, &r);
	resized(&before, rc ? resize_left(&before, fd, -1, NULL) : len);
	return rc;
}

EXPORT int ftruncate64(int fd, off64_t len) __attribute__((alias("ftruncate")));

EXPORT int
truncate(const char *path, off_t len)
{
	const struct resizing r = {.path = path, .len = len};
	struct stat before;
	int rc;

	if (!pools_any() || OURS || stat(path, &before))
		return truncate_by(&r);
	rc = resize_by(&before, len, truncate_by, &r);
	resized(&before, rc ? resize_left(&before, -1, AT_FDCWD, path) : len);
	return rc;
}

EXPORT int truncate64(const char *path, off64_t len) __attribute__((alias("truncate")));

/* Others get room for them, and no byte changes. What is not known may change any. */
static bool
changes(int mode)
{
	return mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_UNSHARE_RANGE);
}

/*
 * A file that was so may be longer, by zeros where the replicas may have bytes that it had before
 * it got shorter: also by a call that has failed amid its work, as for want of space.
 */
static bool
lengthened(int fd, const struct stat *before, struct stat *now)
{
	int saved_errno = errno, rc = fstat(fd, now);

	errno = saved_errno;
	if (rc)
		return false;
	pools_resized(now);
	if (now->st_size > before->st_size)
		pools_changed(before, (uint64_t)before->st_size, (uint64_t)now->st_size);
	return true;
}

EXPORT int
fallocate(int fd, int mode, off_t off, off_t len)
{
	const struct resizing r = {.fd = fd, .mode = mode, .off = off, .len = len};
	bool moves = mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE);
	struct stat before, now;
	uint64_t end = UINT64_MAX;
	int rc;

	if (!pools_any() || OURS || fstat(fd, &before))
		return fallocate_by(&r);
	if (mode & FALLOC_FL_COLLAPSE_RANGE)
		rc = resize_by(&before, before.st_size - len, fallocate_by, &r);
	else
		rc = fallocate_by(&r);
	/* What moves behind the replicas' end finds them as long as the file. */
	if (!lengthened(fd, &before, &now) || !changes(mode))
		return rc;
	/* Of what was refused the bounds may be any. */
	if (!moves && (uint64_t)off + (uint64_t)len < (uint64_t)now.st_size)
		end = (uint64_t)off + (uint64_t)len;
	else if (!moves)
		end = (uint64_t)now.st_size;
	if (rc == 0 || errno != EOPNOTSUPP)
		pools_changed(&now, (uint64_t)off, end);
	return rc;
}

EXPORT int fallocate64(int fd, int mode, off64_t off, off64_t len)
	__attribute__((alias("fallocate")));

static __typeof__(&posix_fallocate) next_allocate;

/*
 * Looked up at once: librepl calls it when a replica is lost, under locks that the constructor of a
 * library may wait for, while the linker is that one's.
 */
__attribute__((constructor)) static void
next_init(void)
{
	next_allocate = (__typeof__(next_allocate))(uintptr_t)dlsym(RTLD_NEXT, "posix_fallocate");
}

EXPORT int
posix_fallocate(int fd, off_t off, off_t len)
{
	struct stat before, now;
	bool any = pools_any() && !OURS && fstat(fd, &before) == 0;
	int rc;

	if (!next_allocate)
		next_init();
	rc = next_allocate(fd, off, len);
	if (any)
		(void)lengthened(fd, &before, &now);
	return rc;
}

EXPORT int posix_fallocate64(int fd, off64_t off, off64_t len)
	__attribute__((alias("posix_fallocate")));

EXPORT int
madvise(void *addr, size_t len, int advice)
{
	int rc = (int)syscall(SYS_madvise, addr, len, advice);
	uintptr_t at = (uintptr_t)addr;
	int saved_errno = errno;

	/* One that has failed may have done a part: up to what is locked, or around gaps. */
	if (advice == MADV_REMOVE && at % PAGE == 0 && len <= UINTPTR_MAX - PAGE - at) {
		follow_zeroed(addr, len);
		follow_drain();
		errno = saved_errno;
	}
	return rc;
}

/* ---- libpmem ---- */

#define REAL_TABLE(X)                                                                              \
	X(pmem_flush)                                                                              \
	X(pmem_drain)                                                                              \
	X(pmem_persist)                                                                            \
	X(pmem_msync)                                                                              \
	X(pmem_deep_flush)                                                                         \
	X(pmem_deep_drain)                                                                         \
	X(pmem_deep_persist)                                                                       \
	X(pmem_memmove)                                                                            \
	X(pmem_memcpy)                                                                             \
	X(pmem_memset)                                                                             \
	X(pmem_memmove_persist)                                                                    \
	X(pmem_memcpy_persist)                                                                     \
	X(pmem_memset_persist)                                                                     \
	X(pmem_memmove_nodrain)                                                                    \
	X(pmem_memcpy_nodrain)                                                                     \
	X(pmem_memset_nodrain)                                                                     \
	X(pmem_has_auto_flush)

static struct {
#define REAL_MEMBER(name) void *name;
	REAL_TABLE(REAL_MEMBER)
#undef REAL_MEMBER
} real;

__attribute__((constructor)) static void
real_init(void)
{
#define REAL_FIND(name) real_early(&real.name, #name);
	REAL_TABLE(REAL_FIND)
#undef REAL_FIND
}

#define REAL(name)                                                                                 \
	__typeof__(&name) f =                                                                      \
		(__typeof__(&name))(uintptr_t)real_once(&real.name, "libpmem.so.1", #name);

void pmem_flush(const void *addr, size_t len);
void pmem_drain(void);
void pmem_persist(const void *addr, size_t len);
int pmem_msync(const void *addr, size_t len);
void pmem_deep_flush(const void *addr, size_t len);
int pmem_deep_drain(const void *addr, size_t len);
int pmem_deep_persist(const void *addr, size_t len);
int pmem_has_auto_flush(void);

EXPORT void
pmem_flush(const void *addr, size_t len)
{
	REAL(pmem_flush)

	if (INNER || !follow_concerns(addr, len)) {
		f(addr, len);
		return;
	}
	follow_enter();
	f(addr, len);
	follow_leave();
	follow_flush(addr, len);
}

EXPORT void
pmem_drain(void)
{
	REAL(pmem_drain)

	follow_enter();
	f();
	follow_leave();
	if (!INNER)
		follow_drain();
}

EXPORT void
pmem_persist(const void *addr, size_t len)
{
	REAL(pmem_persist)

	if (INNER || !follow_concerns(addr, len)) {
		f(addr, len);
		return;
	}
	follow_enter();
	f(addr, len);
	follow_leave();
	follow_flush(addr, len);
	follow_drain();
}

EXPORT int
pmem_msync(const void *addr, size_t len)
{
	REAL(pmem_msync)
	int rc;

	follow_enter();
	rc = f(addr, len);
	follow_leave();
	if (rc == 0 && !INNER) {
		follow_sync(addr, len, false);
		follow_drain();
	}
	return rc;
}

EXPORT void
pmem_deep_flush(const void *addr, size_t len)
{
	REAL(pmem_deep_flush)

	follow_enter();
	f(addr, len);
	follow_leave();
	if (!INNER)
		follow_flush(addr, len);
}

EXPORT int
pmem_deep_drain(const void *addr, size_t len)
{
	REAL(pmem_deep_drain)
	int rc;

	follow_enter();
	rc = f(addr, len);
	follow_leave();
	if (!INNER)
		follow_drain();
	return rc;
}

EXPORT int
pmem_deep_persist(const void *addr, size_t len)
{
	REAL(pmem_deep_persist)
	int rc;

	follow_enter();
	rc = f(addr, len);
	follow_leave();
	if (rc == 0 && !INNER) {
		follow_flush(addr, len);
		follow_drain();
	}
	return rc;
}

#define COPY_WITH_FLAGS(name, source)                                                              \
	void *name(void *dst, source src, size_t len, unsigned flags);                             \
	EXPORT void *name(void *dst, source src, size_t len, unsigned flags)                       \
	{                                                                                          \
		REAL(name)                                                                         \
		void *got;                                                                         \
                                                                                                   \
		if (INNER || !follow_concerns(dst, len))                                           \
			return f(dst, src, len, flags);                                            \
		follow_enter();                                                                    \
		got = f(dst, src, len, flags);                                                     \
		follow_leave();                                                                    \
		follow_copy(dst, len, flags);                                                      \
		return got;                                                                        \
	}

#define COPY_PLAIN(name, source, flags)                                                            \
	void *name(void *dst, source src, size_t len);                                             \
	EXPORT void *name(void *dst, source src, size_t len)                                       \
	{                                                                                          \
		REAL(name)                                                                         \
		void *got;                                                                         \
                                                                                                   \
		if (INNER || !follow_concerns(dst, len))                                           \
			return f(dst, src, len);                                                   \
		follow_enter();                                                                    \
		got = f(dst, src, len);                                                            \
		follow_leave();                                                                    \
		follow_copy(dst, len, flags);                                                      \
		return got;                                                                        \
	}

COPY_WITH_FLAGS(pmem_memmove, const void *)
COPY_WITH_FLAGS(pmem_memcpy, const void *)
COPY_WITH_FLAGS(pmem_memset, int)
COPY_PLAIN(pmem_memmove_persist, const void *, 0)
COPY_PLAIN(pmem_memcpy_persist, const void *, 0)
COPY_PLAIN(pmem_memset_persist, int, 0)
COPY_PLAIN(pmem_memmove_nodrain, const void *, NODRAIN)
COPY_PLAIN(pmem_memcpy_nodrain, const void *, NODRAIN)
COPY_PLAIN(pmem_memset_nodrain, int, NODRAIN)

/* Where it has, a program need tell nobody what it has stored, and would not. -1 is an error. */
EXPORT int
pmem_has_auto_flush(void)
{
	REAL(pmem_has_auto_flush)
	int has = f();

	return has > 0 && follow_any() ? 0 : has;
}
