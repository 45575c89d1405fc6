/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poolring - a pool's receive ring on media: made, marked, replayed and taken
 * away, in the order of docs/POOL-FORMAT.md, section 1.5. What is in it is
 * ring.h's business, who may do it and when is pool.c's.
 *
 * Making and opening map memory: see pmem.h.
 */
#ifndef REPLD_POOLRING_H
#define REPLD_POOLRING_H

#include <stdint.h>

#include "err.h"
#include "pmem.h"
#include "ring.h"
#include "sidecar.h"

/* A ring, mapped. */
struct poolring;

/*
 * Make a ring in the sidecar, an open file that has none; meta is what the
 * sidecar says and will say. path is the sidecar's, for error texts. On an error
 * the sidecar is as it was.
 */
int poolring_make(int sidecar_fd, const char *path, struct sidecar *meta,
		  const struct ring_geometry *g, struct poolring **out, struct err *e);

/* Map the ring that meta names. REPL_E_CORRUPT with the next step if it can't be believed. */
int poolring_open(int sidecar_fd, const char *path, const struct sidecar *meta,
		  struct poolring **out, struct err *e);

/* Unmaps it; it stays on media. NULL is allowed. */
void poolring_free(struct poolring *r);

const struct ring_geometry *poolring_geometry(const struct poolring *r);

/* The first slot of the first lane: receive buffers. */
uint8_t *poolring_slots(const struct poolring *r);

/* All of a lane up to seq is durable in the pool: never replay it. Durable on return. */
int poolring_mark(struct poolring *r, uint32_t lane, uint64_t seq, struct err *e);

/* See to it that no replay takes what is in a slot, or anything behind it. Durable on return. */
int poolring_destroy(struct poolring *r, uint32_t lane, uint32_t slot, struct err *e);

/*
 * Apply what is not marked to the pool, durably; *count messages. Nothing may
 * write to the ring meanwhile. REPL_E_NOSPC where that takes space and
 * the disk is full.
 */
int poolring_replay(const struct poolring *r, struct pmem_map *pool, uint64_t *count,
		    struct err *e);

/*
 * How many messages the ring that meta names holds and are not applied; 0 if it
 * can't be believed. To tell people: beside a living writer it is old at once.
 */
uint64_t poolring_count(int sidecar_fd, const struct sidecar *meta);

/* Take the ring away: there is nothing in it any more, and it is not mapped. */
int poolring_drop(int sidecar_fd, struct sidecar *meta, struct err *e);

#endif
