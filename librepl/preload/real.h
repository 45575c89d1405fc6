/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * real - what stands behind the functions that are interposed.
 *
 * System calls are made directly: the dynamic linker maps memory itself, so
 * looking a function up must not come in between.
 */
#ifndef PRELOAD_REAL_H
#define PRELOAD_REAL_H

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void *
real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

static inline int
real_munmap(void *addr, size_t len)
{
	return (int)syscall(SYS_munmap, addr, len);
}

static inline int
real_msync(void *addr, size_t len, int flags)
{
	return (int)syscall(SYS_msync, addr, len, flags);
}

/*
 * Functions of a library, e.g. "libpmem.so.1", be that loaded for all or, as a plug-in's, for some:
 * each is looked up once. The linker may be another thread's, whose library's constructor waits for
 * this one, and a handler may have interrupted its allocator. So those that are there when the
 * program begins are found then, and the others by whoever comes first. Before anybody has it,
 * follow_inner() knows its library.
 */

/* In a constructor. */
void real_early(void **where, const char *name);

/* NULL: the program has found ours without having the library, which it can't. */
void *real_once(void **where, const char *library, const char *name);

#endif
