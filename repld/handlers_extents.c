/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.extents: where a pool has data, so that nobody reads terabytes of holes. */
#include "handlers.h"

#include <errno.h>

#include "control.h"
#include "describe.h"
#include "extents.h"
#include "filesystem.h"

#define GRAIN_MIN 4096
#define GRAIN_MAX (1U << 30)
#define ROWS_MAX  1024  /* in an answer */
#define LOOKS_MAX 65536 /* at the file, for an answer */

struct telling {
	struct json_object *rows;
	unsigned count;
	struct range row; /* being collected */
};

static void
telling_put(struct telling *t)
{
	struct json_object *row;

	if (t->row.len == 0)
		return;
	row = json_object_new_array();
	control_append(row, json_object_new_uint64(t->row.off));
	control_append(row, json_object_new_uint64(t->row.len));
	control_append(t->rows, row);
	t->count++;
	t->row.len = 0;
}

/* A run of data, rounded outwards to the grain. */
static void
telling_add(struct telling *t, struct range data, uint64_t grain, uint64_t size)
{
	uint64_t from = data.off - data.off % grain;
	uint64_t end = (data.off + data.len + grain - 1) / grain * grain;

	end = end < size ? end : size;
	if (t->row.len && from <= t->row.off + t->row.len) {
		t->row.len = end - t->row.off;
		return;
	}
	telling_put(t);
	t->row = (struct range){.off = from, .len = end - from};
}

/* What a hole hides must not come back after a power cut, nor from a round log. */
static int
extents_settle(struct state *s, uint64_t off, struct err *e)
{
	int fd = pool_extents_fd(s->pool);

	if (!s->write || off != 0 || fd < 0)
		return 0;
	if (state_log_settle(s, e))
		return e->code;
	if (filesystem_sync(fd) == 0)
		return 0;
	state_flush_lost(s);
	return err_errno(e, REPL_E_IO, errno, "pool '%s': sync", s->pool_name);
}

int
handle_pool_extents(struct state *s, struct json_object *params, struct reply *r)
{
	uint64_t size = pmem_map_size(s->map), off, grain;
	struct telling t = {0};

	if (control_get_u64(params, "off", 0, INT64_MAX, &off, &r->err) ||
	    control_get_u64(params, "grain", GRAIN_MIN, GRAIN_MAX, &grain, &r->err))
		return r->err.code;
	if (off > size || grain & (grain - 1))
		return err_set(&r->err, REPL_E_INVAL,
			       "off %llu is not in the pool of %llu bytes, or grain %llu is no "
			       "power of two",
			       (unsigned long long)off, (unsigned long long)size,
			       (unsigned long long)grain);
	if (extents_settle(s, off, &r->err))
		return r->err.code;
	r->result = json_object_new_object();
	t.rows = json_object_new_array();
	for (unsigned i = 0; off < size && i < LOOKS_MAX && t.count < ROWS_MAX; i++) {
		struct range data = extents_next(pool_extents_fd(s->pool), off, size);

		if (data.len)
			telling_add(&t, data, grain, size);
		off = data.len ? data.off + data.len : size;
		/* The rest of the last grain is told of already. */
		if (t.row.len && off < t.row.off + t.row.len)
			off = t.row.off + t.row.len;
	}
	telling_put(&t);
	control_add(r->result, "extents", t.rows);
	describe_add_u64(r->result, "next", off);
	return REPL_OK;
}
