/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolposition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "checksum.h"
#include "le.h"
#include "pmem.h"
#include "regionpage.h"
#include "space.h"

#define MAGIC   "REPLPOSN"
#define VERSION 1

/* The header's page. */
enum { AT_UUID = 24, AT_KEY = 40, AT_END = 48 };

/*
 * Behind it: cells that are written in turn, each on lines of its own, since it takes longer to
 * write the same line again. A torn one has a wrong sum, and those before it are there.
 */
#define CELLS     16U
#define CELL_SIZE 256U
#define CELL_SUM  8U /* its place in the cell; so many bytes are summed */

_Static_assert(CELLS *CELL_SIZE == REGION_PAGE, "cells fill a page");

#define SIZE (2ULL * REGION_PAGE)

static const struct region_page header_page = {"position record", MAGIC, VERSION, 0, AT_END};

struct poolposition {
	struct pmem_map *map; /* of the sidecar up to the record's end */
	uint64_t off;         /* of the cells */
	uint64_t key;
	uint64_t count; /* written so far */
};

int
poolposition_tell(struct poolposition *p, uint64_t position, struct err *e)
{
	struct range r = {.off = p->off + p->count++ % CELLS * CELL_SIZE, .len = CELL_SUM + 8};
	uint8_t cell[CELL_SUM + 8];

	put_le64(cell, position);
	put_le64(cell + CELL_SUM, sum64_seeded(cell, CELL_SUM, p->key));
	pmem_map_copy(p->map, r.off, cell, sizeof(cell));
	return pmem_map_persist(p->map, &r, 1, e);
}

static int
record_allocate(int fd, const char *path, struct err *e)
{
	int rc;

	/* What an earlier region may have left. */
	rc = space_cut(fd, SIDECAR_SIZE, SIDECAR_SIZE + SIZE, e);
	if (!rc)
		rc = space_extend(fd, SIDECAR_SIZE, SIDECAR_SIZE + SIZE, e);
	if (rc)
		return err_prefix(e, "%s: position record", path);
	return fsync(fd) ? err_errno(e, REPL_E_IO, errno, "%s: sync", path) : 0;
}

static int
record_format(struct poolposition *p, const struct sidecar *meta, struct err *e)
{
	struct range r = {.off = p->off - REGION_PAGE, .len = SIZE};
	uint8_t page[REGION_PAGE];

	if (getrandom(&p->key, sizeof(p->key), 0) != (ssize_t)sizeof(p->key))
		return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	region_page_begin(page, MAGIC, VERSION, meta->epoch);
	memcpy(page + AT_UUID, meta->pool_uuid.b, GEN_ID_SIZE);
	put_le64(page + AT_KEY, p->key);
	region_page_seal(page);
	pmem_map_copy(p->map, r.off, page, sizeof(page));
	(void)pmem_map_zero(p->map, p->off, REGION_PAGE, false);
	return pmem_map_persist(p->map, &r, 1, e);
}

int
poolposition_make(int sidecar_fd, const char *path, struct sidecar *meta, struct poolposition **out,
		  struct err *e)
{
	struct poolposition *p = calloc(1, sizeof(*p));
	struct sidecar next = *meta;
	int rc;

	*out = NULL;
	if (!p)
		return err_set(e, REPL_E_NOMEM, "no memory for a position record");
	next.position_off = SIDECAR_SIZE;
	next.position_len = SIZE;
	p->off = SIDECAR_SIZE + REGION_PAGE;
	rc = record_allocate(sidecar_fd, path, e);
	if (!rc)
		rc = pmem_map_new(sidecar_fd, path, SIDECAR_SIZE + SIZE, true, &p->map, e);
	if (!rc)
		rc = record_format(p, meta, e);
	if (rc) {
		poolposition_free(p);
		(void)space_cut(sidecar_fd, SIDECAR_SIZE, SIDECAR_SIZE + SIZE, NULL);
		return rc;
	}
	rc = sidecar_write(sidecar_fd, &next, e);
	if (rc) {
		/* One copy may name it: it has to stay. */
		poolposition_free(p);
		return rc;
	}
	*meta = next;
	*out = p;
	return 0;
}

void
poolposition_free(struct poolposition *p)
{
	if (!p)
		return;
	pmem_map_free(p->map);
	free(p);
}

/* ---- what a dead writer has left ---- */

static int
record_read(int fd, const struct sidecar *meta, uint8_t to[SIZE], struct err *e)
{
	ssize_t n;

	if (meta->position_len != SIZE)
		return err_set(e, REPL_E_CORRUPT, "position record: a region of %llu bytes",
			       (unsigned long long)meta->position_len);
	do {
		n = pread(fd, to, SIZE, (off_t)meta->position_off);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_errno(e, REPL_E_IO, errno, "position record: read");
	return n == (ssize_t)SIZE
		       ? 0
		       : err_set(e, REPL_E_CORRUPT, "position record: the file ends before it");
}

int
poolposition_read(int sidecar_fd, const struct sidecar *meta, uint64_t *position, struct err *e)
{
	uint8_t region[SIZE];
	int rc = record_read(sidecar_fd, meta, region, e);

	*position = 0;
	if (!rc)
		rc = region_page_open(region, &header_page, e);
	if (rc)
		return rc;
	if (memcmp(region + AT_UUID, meta->pool_uuid.b, GEN_ID_SIZE) != 0 ||
	    region_page_epoch(region) > meta->epoch)
		return err_set(e, REPL_E_CORRUPT, "position record: it is not this pool's");
	for (unsigned i = 0; i < CELLS; i++) {
		const uint8_t *cell = region + REGION_PAGE + (size_t)i * CELL_SIZE;
		uint64_t told = get_le64(cell);

		if (get_le64(cell + CELL_SUM) ==
			    sum64_seeded(cell, CELL_SUM, get_le64(region + AT_KEY)) &&
		    told <= INT64_MAX && told > *position)
			*position = told;
	}
	return 0;
}

int
poolposition_drop(int sidecar_fd, struct sidecar *meta, uint64_t position, struct err *e)
{
	struct sidecar next = *meta;
	uint64_t off = meta->position_off, len = meta->position_len;
	int rc;

	next.position = position;
	next.position_off = next.position_len = 0;
	rc = sidecar_write(sidecar_fd, &next, e);
	if (rc)
		return rc;
	*meta = next;
	/* Only space: the next region cuts it as well. */
	if (!next.ring_len && !next.dirty_len && !next.journal_len && !next.log_len)
		(void)space_cut(sidecar_fd, off, off + len, NULL);
	return 0;
}
