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

/* -1 if the table is full. */
int maps_add(void *addr, size_t len, uint64_t off, unsigned pool);

/*
 * Forget the range; mappings that reach beyond it are cut. Returns a bit for
 * each pool that lost a mapping; *left has one for each that has any, *cut_off for
 * each of which the table had no place for what is left behind the range.
 */
uint32_t maps_remove(void *addr, size_t len, uint32_t *left, uint32_t *cut_off);

/*
 * munmap(2) of the range, which is forgotten if that succeeds: before anybody can add what is
 * mapped there next. *rc is what it returns.
 */
uint32_t maps_unmap(void *addr, size_t len, int *rc, uint32_t *left, uint32_t *cut_off);

/* Whether a pool has mappings, at some moment of late. */
bool maps_has(unsigned pool);

/* Forget all mappings of a pool; whether there were any. */
bool maps_forget(unsigned pool);

/* The first mapped piece of [at, end), or false. */
bool maps_find(uintptr_t at, uintptr_t end, struct maps_piece *piece);

/* Around fork(2), in the parent and, the second one, in the child. */
void maps_fork_begin(void);
void maps_fork_end(void);

#endif
