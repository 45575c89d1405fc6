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
 * The function of that name in library, e.g. "libpmem.so.1", be that loaded for
 * all or, as a plug-in's, for some. NULL: the program has found ours without
 * having the library, which it can't.
 */
void *real_symbol(const char *library, const char *name);

#endif
