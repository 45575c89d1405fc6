/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmem - a pool's mapping and its flushing, through libpmem2.
 *
 * The only header in front of <libpmem2.h>. Two variants are linked: pmem.c
 * (libpmem2), and tests' pmem_media.c, which also keeps a second image with
 * only what was flushed (the media build).
 */
#ifndef COMMON_PMEM_H
#define COMMON_PMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "profile.h"
#include "rangeset.h"

struct pmem_map;

/*
 * Map size bytes of fd (the whole of the pool) shared; fd is not taken. With
 * write false the mapping is read-only. path is used in error texts, and by
 * the media variant to find its image at PATH.media.
 *
 * No other thread of the process may map memory meanwhile: on a file system
 * that refuses MAP_SYNC in its own mmap handler, libpmem2's trial of it leaves
 * the address range unmapped for a moment, and its second try maps over
 * whatever has come there, to be lost when that is unmapped.
 *
 * A mapping for writing lies at the beginning of a reserved range of addresses,
 * so that it can grow in place; where none can be had it can't.
 */
int pmem_map_new(int fd, const char *path, size_t size, bool write, struct pmem_map **out,
		 struct err *e);

/*
 * The same for the size bytes from fd_off, a multiple of the page size, on: the
 * first piece of total bytes, for which there are addresses also if the mapping
 * is read-only. REPL_E_LIMIT if they can't be had.
 */
int pmem_map_new_at(int fd, const char *path, uint64_t fd_off, size_t size, size_t total,
		    bool write, struct pmem_map **out, struct err *e);

/*
 * Tells whether what is in the processor's caches survives a power cut where fd's file lies. Only
 * there a flush may be left out: libpmem2 says so of the whole machine. Before the first mapping;
 * without it lines are always flushed.
 */
typedef bool (*pmem_survive_fn)(const void *arg, int fd);
void pmem_caches(pmem_survive_fn survive, const void *arg);

/* The size up to which the mapping can grow; its own size if it can't. */
size_t pmem_map_room(const struct pmem_map *m);

/*
 * Map len bytes of fd (this file, or one that continues it) from fd_off on at offset
 * at, which is the mapping's end or lies behind it: nobody sees them before
 * pmem_map_set_size(). A second call before that replaces what the first has mapped.
 * Takes no trial as pmem_map_new() does, so other threads may map, and use what is
 * mapped already. REPL_E_LIMIT if there is no room.
 */
int pmem_map_extend(struct pmem_map *m, uint64_t at, int fd, uint64_t fd_off, size_t len,
		    struct err *e);

/*
 * From now on what pmem_map_persist() makes durable in m is copied to copy as well, and durable
 * there before it returns: the bytes that m holds at that moment, each aligned 8 of them by one
 * store. copy is of m's size and follows pmem_map_set_size(); it is taken, also after an error.
 * Before the first use of m.
 */
int pmem_map_add_copy(struct pmem_map *m, struct pmem_map *copy, struct err *e);

/* The copy that was added first, and of a copy the next one; NULL: none. */
struct pmem_map *pmem_map_copy_of(const struct pmem_map *m);

/* Make all copies equal to m, durably; *differed gets the bytes of the blocks that were not. */
int pmem_map_settle_copies(struct pmem_map *m, uint64_t *differed, struct err *e);

/* What was mapped behind belongs to the mapping from now on, for all threads. */
void pmem_map_set_size(struct pmem_map *m, size_t size);

void pmem_map_free(struct pmem_map *m);

void *pmem_map_addr(const struct pmem_map *m);
size_t pmem_map_size(const struct pmem_map *m);
enum profile_granularity pmem_map_granularity(const struct pmem_map *m);

/*
 * Make count ranges durable together; on return all of them are. For page
 * granularity this is one sync over the span of the ranges, since clean pages
 * cost nothing there; otherwise lines are flushed range by range and one
 * drain follows. Ranges lie inside the mapping (checked by the caller). The
 * entries of r may be reordered and merged. Once a sync of the mapping has failed all
 * others fail: what it has lost looks like what is durable.
 */
int pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e);

/*
 * Take the space that storing in the range would need, behind its holes and for blocks that another
 * file shares, and that its copies would: false if there is none, and storing would be a SIGBUS.
 * True also where that can't be asked for.
 */
bool pmem_map_back(struct pmem_map *m, uint64_t off, size_t len);

/*
 * True if persisting is dear and costs about the same for one range or many, so
 * that waiting for more of them pays.
 */
bool pmem_map_groups(const struct pmem_map *m);

/* Copy for the target's CPU; not durable before pmem_map_persist(). */
void pmem_map_copy(struct pmem_map *m, uint64_t off, const void *src, size_t len);

/*
 * The same, and the way back, for bytes whose pages have hardly been touched in this mapping, as by
 * who copies or reads a whole pool. Where the page cache holds them anyway that goes by the
 * file: to map a page costs more than to copy it. fd of pmem_map_new() must still be open. False:
 * as pmem_map_back(), and a part of it may be stored.
 */
bool pmem_map_put(struct pmem_map *m, uint64_t off, const void *src, size_t len);
void pmem_map_get(const struct pmem_map *m, uint64_t off, void *dst, size_t len);

/* Whether those two go by the file, at least for the beginning of the mapping. */
bool pmem_map_by_file(const struct pmem_map *m);

/*
 * Copy, durably: of a mapping of a whole file. Where pages are synced this is one write to the
 * file, which leaves no page to be protected and faulted in again. After an error nothing
 * is known of the range.
 */
int pmem_map_write(struct pmem_map *m, uint64_t off, const void *src, size_t len, struct err *e);

/*
 * Make the range, of whole pages, read as zeros; with hole true its space may be
 * given back, and where it can't be, as pmem_map_back(), false. Not durable before
 * pmem_map_persist().
 */
bool pmem_map_zero(struct pmem_map *m, uint64_t off, size_t len, bool hole);

/* One 8-byte store; off is a multiple of 8. */
void pmem_map_store8(struct pmem_map *m, uint64_t off, const void *src);

#endif
