/* SPDX-License-Identifier: BSD-3-Clause */
/* The temporary pool of replctl bench, and what is connected to it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

#include "control.h"

static int
pool_make(struct bench *b)
{
	struct json_object *params;
	struct err *e = &b->c->err;
	const char *name = NULL;
	int rc = scratch_init(&b->scratch, e);

	if (!rc)
		rc = scratch_name(&b->scratch, "", &name, e);
	if (rc)
		return rc;
	params = json_object_new_object();
	control_add(params, "name", json_object_new_string(name));
	control_add(params, "size", json_object_new_uint64(b->pool_size));
	/* Of a session that ends by whatever way nothing stays. */
	control_add(params, "provisional", json_object_new_boolean(true));
	rc = remote_call(b->c->remote, "pool.create", params, NULL, e);
	if (!rc)
		rc = remote_pool_open(b->c->remote, name, REMOTE_WRITE, e);
	return rc;
}

static uint8_t *
buffer_new(uint64_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	memset(mem, 0x5a, size);
	return mem;
}

static int
buffers_make(struct bench *b)
{
	b->mem = buffer_new(b->pool_size);
	b->back = buffer_new(b->pool_size);
	b->samples = calloc(BENCH_SAMPLES_MAX, sizeof(*b->samples));
	if (!b->mem || !b->back || !b->samples)
		return err_set(&b->c->err, REPL_E_NOMEM,
			       "out of memory for two buffers of the pool's size");
	return 0;
}

static int
lanes_make(struct bench *b)
{
	int rc = remote_lanes_open(b->c->remote, BENCH_LANES_MAX, &b->c->err);

	if (rc)
		return rc;
	b->lanes = remote_terms(b->c->remote)->lanes;
	for (unsigned i = 0; i < b->lanes; i++)
		lane_bind(remote_lane(b->c->remote, i), b->mem);
	b->limits = remote_lane(b->c->remote, 0)->limits;
	return 0;
}

static int
raw_make(struct bench *b)
{
	return bench_raw_open(&b->raw, b->c, BENCH_RAW_SECONDS_MAX);
}

int
bench_open(struct bench *b)
{
	int rc = ctl_connect_lanes(b->c);

	if (!rc)
		rc = buffers_make(b);
	if (!rc)
		rc = pool_make(b);
	if (!rc)
		rc = lanes_make(b);
	return rc ? rc : raw_make(b);
}

void
bench_close(struct bench *b)
{
	bench_raw_close(&b->raw);
	scratch_clear(&b->scratch, b->c);
	/* Before the buffers: what lanes have in flight uses them. */
	ctl_disconnect(b->c);
	if (b->mem)
		(void)munmap(b->mem, b->pool_size);
	if (b->back)
		(void)munmap(b->back, b->pool_size);
	free(b->samples);
	b->mem = b->back = NULL;
	b->samples = NULL;
}
