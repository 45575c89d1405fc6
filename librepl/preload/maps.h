/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * maps - where pools are mapped in this process: address to pool and offset.
 *
 * A small table, read on each flush without a lock (a reader that met a change
 * looks again) and changed under one.
 */
#ifndef PRELOAD_MAPS_H
#define PRELOAD_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAPS_MAX 256

/* What lies in one mapping of the range that was asked for. */
struct maps_piece {
	unsigned pool;
	uint64_t off;  /* in the file */
	size_t len;    /* up to the end of mapping or range */
	uintptr_t end; /* go on from here */
};

/* What a change has done, a bit for each pool. */
struct maps_change {
	uint32_t gone; /* lost a mapping */
	uint32_t left; /* has any */
	uint32_t full; /* the table had no place for one of its mappings */
};

/* The range is a mapping of the pool from now on, whatever was there; at no moment is it none. */
struct maps_change maps_put(void *addr, size_t len, uint64_t off, unsigned pool);

/* Forget the range; mappings that reach beyond it are cut. */
struct maps_change maps_remove(void *addr, size_t len);

/*
 * munmap(2) and mremap(2), followed if they succeed: before anybody can add what is mapped there
 * next. *rc and *got are what they return. Lengths are of whole pages.
 */
struct maps_change maps_unmap(void *addr, size_t len, int *rc);
struct maps_change maps_remap(void *old, size_t old_len, size_t len, int flags, void *wish,
			      void **got);

/* The same of remap_file_pages(2): other pages of the file are there then. */
struct maps_change maps_remap_pages(void *addr, size_t len, int prot, size_t page, int flags,
				    int *rc);

/* Whether a pool has mappings, at some moment of late. */
bool maps_has(unsigned pool);

/* Forget all mappings of a pool; whether there were any. */
bool maps_forget(unsigned pool);

/* The first mapped piece of [at, end), or false. */
bool maps_find(uintptr_t at, uintptr_t end, struct maps_piece *piece);

/* Around fork(2), in the parent and, the second one, in the child. */
void maps_fork_begin(void);
void maps_fork_end(void);

/* In a child of which the parent knew nothing: it may have been amid a change. */
void maps_unseen(void);

#endif
