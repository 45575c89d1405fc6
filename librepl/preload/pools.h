/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pools - which memory of this process belongs to which replicated pool, and
 * the replicas of each.
 *
 * A pool is a file named in the environment. Whatever maps it shared is noted
 * by address; a flush anywhere in such a mapping becomes a flush at the offset
 * in the file. The replicas are opened at a pool's first flush, for a mapping of the
 * whole file that is ours alone, and closed with its program's last mapping.
 * A process that flushes no pool opens no connection.
 *
 * All functions may be called by any thread, at any time but from a signal
 * handler, and leave errno alone.
 */
#ifndef PRELOAD_POOLS_H
#define PRELOAD_POOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * The pools: lines "FILE<tab>[user@]host[:port]/pool", a line for each replica.
 * Set by replctl run; what else is needed comes from POOLS_SET, lines
 * "key<tab>value" of repl.conf(5).
 */
#define POOLS_ENV "REPL_PRELOAD_POOLS"
#define POOLS_SET "REPL_PRELOAD_SET"

/* There is at least one pool: else nothing of this need be asked. */
bool pools_any(void);

void pools_mapped(void *addr, size_t len, int prot, int flags, int fd, off_t off);

/* munmap(2), mremap(2) and remap_file_pages(2), and what they take back or move is followed. */
int pools_unmap(void *addr, size_t len);
void *pools_remap(void *old, size_t old_len, size_t len, int flags, void *wish);
int pools_remap_pages(void *addr, size_t len, int prot, size_t page, int flags);

/* rename(2) and its kind: a pool's name may be another file's now, which is mapped already. */
void pools_renamed(const char *from, const char *to);

/* Where that could not be looked at, as for want of a descriptor, it is tried again; whether it
 * was. */
bool pools_look_due(void);

/* A file was opened for writing: who changes a pool by that is not followed, and told at exit. */
void pools_opened(int fd);

/*
 * fsync(2) or its kind of a file: of a pool it makes durable what is in no call that is followed,
 * and all of the pool would have to go to the replicas. It is told, once: of one that is mapped at
 * once, of another if that goes on.
 */
void pools_synced(int fd, const char *call);

/*
 * Bytes of a file have changed by other ways than stores, in its own length, as by ftruncate(2) or
 * fallocate(2). They are durable on the replicas where it is a pool's.
 */
void pools_changed(const struct stat *file, uint64_t from, uint64_t to);

/*
 * A file may get shorter by the call, down to there. What was flushed behind that and not drained
 * is durable on the replicas before: it could not be read afterwards. Nor does any thread read a
 * pool for them meanwhile. What the call returns, and its errno.
 */
int pools_shrink(const struct stat *file, uint64_t to, int (*call)(const void *), const void *arg);

/*
 * A file has got that size. Where that is more, by zeros, so do the replicas of a pool's, with
 * whatever the program makes durable next: that may be what it says of the file's size.
 */
void pools_resized(const struct stat *file);

/* The range lies in a pool, or this thread has flushed what is not drained. */
bool pools_concern(const void *addr, size_t len);

/*
 * A range is made durable that lies in no pool. If a program has mapped none, and that is a file,
 * it's told.
 */
void pools_missed(const void *addr);

/* The range is on its way to the replicas, where it lies in a pool. */
void pools_flush(const void *addr, size_t len);

/* The same of one that may reach behind the end of its file, where nothing is to be had. */
void pools_sync(const void *addr, size_t len);

/* The same of one whose bytes have become zeros. */
void pools_zeroed(const void *addr, size_t len);

/* All that this thread has flushed is durable on the replicas. */
void pools_drain(void);

#endif
