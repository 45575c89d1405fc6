/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deposits.h"
#include "le.h"
#include "space.h"

#define SLOT_HEAD 64U /* what is zeroed of a slot: more than any magic needs */

/* The mapping is that of the sidecar up to the ring's end; only the ring in it is used. */
struct poolring {
	struct pmem_map *map;
	uint64_t off;
	struct ring_geometry geometry;
};

static const uint8_t zeros[SLOT_HEAD];

static int
poolring_map(int sidecar_fd, const char *path, const struct sidecar *meta, struct poolring **out,
	     struct err *e)
{
	struct poolring *r = calloc(1, sizeof(*r));
	struct stat st;
	int rc;

	if (!r)
		return err_set(e, REPL_E_NOMEM, "%s: no memory for the receive ring", path);
	r->off = meta->ring_off;
	/* What lies behind the end of a file can be mapped, and ends the process when touched. */
	if (fstat(sidecar_fd, &st) || (uint64_t)st.st_size < meta->ring_off + meta->ring_len)
		rc = err_set(e, REPL_E_CORRUPT, "%s: the file ends before its receive ring", path);
	else
		rc = pmem_map_new(sidecar_fd, path, meta->ring_off + meta->ring_len, true, &r->map,
				  e);
	if (rc) {
		poolring_free(r);
		return rc;
	}
	*out = r;
	return REPL_OK;
}

static int
poolring_persist(struct poolring *r, uint64_t off, uint64_t len, struct err *e)
{
	struct range range = {.off = r->off + off, .len = len};

	return pmem_map_persist(r->map, &range, 1, e);
}

/* The header last: what has one is in order. */
static int
poolring_format(struct poolring *r, struct err *e)
{
	const struct ring_geometry *g = &r->geometry;
	uint8_t header[RING_HEADER_SIZE];
	int rc;

	for (uint32_t lane = 0; lane < RING_LANES_MAX; lane++)
		pmem_map_copy(r->map, r->off + ring_mark_off(lane), zeros, RING_MARK_SIZE);
	rc = poolring_persist(r, ring_mark_off(0), RING_LANES_MAX * RING_MARK_SIZE, e);
	for (uint32_t lane = 0; lane < g->lanes && !rc; lane++) {
		for (uint32_t slot = 0; slot < g->slots && !rc; slot++)
			rc = poolring_destroy(r, lane, slot, e);
	}
	if (rc)
		return rc;
	ring_header_encode(g, header);
	pmem_map_copy(r->map, r->off, header, sizeof(header));
	return poolring_persist(r, 0, sizeof(header), e);
}

static int
poolring_allocate(int sidecar_fd, const char *path, uint64_t size, struct err *e)
{
	int rc;

	/* What an earlier ring may have left. */
	rc = space_cut(sidecar_fd, SIDECAR_SIZE, SIDECAR_SIZE + size, e);
	if (!rc)
		rc = space_extend(sidecar_fd, SIDECAR_SIZE, SIDECAR_SIZE + size, e);
	if (rc)
		return err_prefix(e, "%s: receive ring", path);
	if (fsync(sidecar_fd))
		return err_errno(e, REPL_E_IO, errno, "%s: sync", path);
	return REPL_OK;
}

int
poolring_make(int sidecar_fd, const char *path, struct sidecar *meta, const struct ring_geometry *g,
	      struct poolring **out, struct err *e)
{
	struct sidecar next = *meta;
	struct poolring *r = NULL;
	int rc;

	*out = NULL;
	rc = ring_geometry_check(g, e);
	if (rc)
		return rc;
	next.ring_off = SIDECAR_SIZE;
	next.ring_len = ring_size(g);
	rc = poolring_allocate(sidecar_fd, path, next.ring_len, e);
	if (!rc)
		rc = poolring_map(sidecar_fd, path, &next, &r, e);
	if (rc)
		goto out;
	r->geometry = *g;
	rc = poolring_format(r, e);
	if (rc)
		goto out;
	rc = sidecar_write(sidecar_fd, &next, e);
	if (rc) {
		/* One copy may name it: it has to stay. */
		poolring_free(r);
		return rc;
	}
	*meta = next;
	*out = r;
	return REPL_OK;
out:
	poolring_free(r);
	(void)space_cut(sidecar_fd, SIDECAR_SIZE, SIDECAR_SIZE + next.ring_len, NULL);
	return rc;
}

/* What may be lost, and the next step, behind the reason. */
static int
poolring_lost(struct err *e)
{
	struct err why;

	if (!e)
		return REPL_E_CORRUPT;
	why = *e;
	return err_set(e, REPL_E_CORRUPT,
		       "%.512s: updates that were acknowledged may be lost with it; the pool's own "
		       "file is not touched: copy it away, then remove the pool and make the "
		       "replica anew",
		       why.text);
}

int
poolring_open(int sidecar_fd, const char *path, const struct sidecar *meta, struct poolring **out,
	      struct err *e)
{
	struct poolring *r = NULL;
	int rc;

	*out = NULL;
	rc = poolring_map(sidecar_fd, path, meta, &r, e);
	if (!rc)
		rc = ring_header_decode((const uint8_t *)pmem_map_addr(r->map) + r->off,
					meta->ring_len, &r->geometry, e);
	if (!rc && r->geometry.epoch > meta->epoch)
		rc = err_set(e, REPL_E_CORRUPT, "receive ring: of epoch %u, the pool is at %u",
			     r->geometry.epoch, meta->epoch);
	if (!rc) {
		*out = r;
		return REPL_OK;
	}
	poolring_free(r);
	if (rc == REPL_E_CORRUPT)
		rc = poolring_lost(e);
	return rc;
}

void
poolring_free(struct poolring *r)
{
	if (!r)
		return;
	pmem_map_free(r->map);
	free(r);
}

const struct ring_geometry *
poolring_geometry(const struct poolring *r)
{
	return &r->geometry;
}

uint8_t *
poolring_slots(const struct poolring *r)
{
	return (uint8_t *)pmem_map_addr(r->map) + r->off + ring_slot_off(&r->geometry, 0, 0);
}

int
poolring_mark(struct poolring *r, uint32_t lane, uint64_t seq, struct err *e)
{
	uint8_t word[8];

	ring_mark_encode(seq, word);
	pmem_map_store8(r->map, r->off + ring_mark_off(lane), word);
	return poolring_persist(r, ring_mark_off(lane), sizeof(word), e);
}

int
poolring_destroy(struct poolring *r, uint32_t lane, uint32_t slot, struct err *e)
{
	uint64_t at = ring_slot_off(&r->geometry, lane, slot);

	pmem_map_copy(r->map, r->off + at, zeros, SLOT_HEAD);
	return poolring_persist(r, at, SLOT_HEAD, e);
}

int
poolring_replay(const struct poolring *r, struct pmem_map *pool, uint64_t *count, struct err *e)
{
	struct ring_replay *replay = malloc(sizeof(*replay));
	struct deposits *d = malloc(sizeof(*d));
	struct ring_message m;
	int rc = REPL_OK;

	*count = 0;
	if (!replay || !d) {
		rc = err_set(e, REPL_E_NOMEM, "no memory to replay the receive ring");
		goto out;
	}
	deposits_init(d, pool);
	d->back = true;
	ring_replay_begin(replay, (const uint8_t *)pmem_map_addr(r->map) + r->off, &r->geometry,
			  pmem_map_size(pool));
	while (!rc && ring_replay_next(replay, &m)) {
		rc = deposits_apply(d, &m.view, e);
		(*count)++;
	}
	if (!rc)
		rc = deposits_flush(d, e);
out:
	free(d);
	free(replay);
	return rc;
}

static bool
region_read(int sidecar_fd, const struct sidecar *meta, uint64_t off, void *buf, size_t len)
{
	ssize_t n = pread(sidecar_fd, buf, len, (off_t)(meta->ring_off + off));

	return n >= 0 && (size_t)n == len;
}

/* A lane's messages behind its mark, up to its first gap. Only what is there in whole is read. */
static uint64_t
lane_count(int sidecar_fd, const struct sidecar *meta, const struct ring_geometry *g, uint32_t lane,
	   uint8_t *slot)
{
	struct wire_commit_view v = {.stamp = 0};
	uint8_t mark[8];
	uint64_t from, seq;

	if (!region_read(sidecar_fd, meta, ring_mark_off(lane), mark, sizeof(mark)))
		return 0;
	from = get_le64(mark);
	for (seq = from; seq < UINT64_MAX; seq++) {
		uint64_t off = ring_slot_off(g, lane, ring_slot_of(g, seq + 1));
		size_t len;

		if (!region_read(sidecar_fd, meta, off, slot, WIRE_HEADER_SIZE))
			break;
		len = wire_deposit_len(slot, g->slot_size);
		if (len == 0 || !region_read(sidecar_fd, meta, off, slot, len) ||
		    !ring_slot_holds(slot, g, meta->pool_size, seq + 1, v.stamp, &v))
			break;
	}
	return seq - from;
}

uint64_t
poolring_count(int sidecar_fd, const struct sidecar *meta)
{
	uint8_t *buf = malloc(WIRE_MSG_SIZE_MAX);
	struct ring_geometry g;
	uint64_t count = 0;

	/* Not mapped: a living writer may cut the file, which would end this process. */
	if (buf && region_read(sidecar_fd, meta, 0, buf, RING_HEADER_SIZE) &&
	    ring_header_decode(buf, meta->ring_len, &g, NULL) == 0) {
		for (uint32_t i = 0; i < g.lanes; i++)
			count += lane_count(sidecar_fd, meta, &g, i, buf);
	}
	free(buf);
	return count;
}

int
poolring_drop(int sidecar_fd, struct sidecar *meta, struct err *e)
{
	struct sidecar next = *meta;
	uint64_t off = meta->ring_off, len = meta->ring_len;
	int rc;

	next.ring_off = next.ring_len = 0;
	rc = sidecar_write(sidecar_fd, &next, e);
	if (rc)
		return rc;
	*meta = next;
	/* Only space: the next ring cuts it as well. */
	(void)space_cut(sidecar_fd, off, off + len, NULL);
	return REPL_OK;
}
