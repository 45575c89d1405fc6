/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of what is marked differs, told by some blocks of it: where by far more does than a
 * journal takes, none is filled with what then goes directly after all.
 */
#include "resync_impl.h"

#include "dirtymap.h"

#define SAMPLES     128U
#define SAMPLES_MIN 16U /* fewer foretell nothing */
#define SPARSE      4U  /* blocks, at least, of which one is looked at */

struct sample {
	const struct dirtymap *marked;
	uint64_t stride; /* blocks of which one is looked at */
	uint64_t size;   /* what is marked behind it is not looked at */
	unsigned count;  /* of those to look at */
	unsigned i;      /* the next one */
	uint64_t at;     /* where the run begins that the last one is in ... */
	uint64_t before; /* and bytes that are marked before it */
	unsigned differ;
};

/* Not by the same distance: what differs may be as regular. */
static uint64_t
sample_place(const struct sample *c)
{
	uint32_t part = (uint32_t)(c->i * 2654435769U); /* of the golden ratio, by 2^32 */

	return (c->i * c->stride + ((c->stride * part) >> 32)) * RESYNC_FINE;
}

static bool
sample_next(void *arg, uint64_t off, uint64_t max, struct range *piece)
{
	struct sample *c = arg;
	struct range run;

	(void)off;
	(void)max;
	while (c->i < c->count && dirtymap_next(c->marked, c->at, RESYNC_LOOK, &run)) {
		uint64_t into = sample_place(c) - c->before;

		if (into < run.len) {
			*piece = (struct range){.off = run.off + into, .len = RESYNC_FINE};
			if (piece->len > run.len - into)
				piece->len = run.len - into;
			if (piece->off + piece->len > c->size)
				return false;
			c->i++;
			return true;
		}
		c->before += run.len;
		c->at = run.off + run.len;
	}
	return false;
}

static int
sample_differ(void *arg, uint64_t off, uint64_t len, struct err *e)
{
	struct sample *c = arg;

	(void)off;
	(void)len;
	(void)e;
	c->differ++;
	return 0;
}

/* Bytes, no more than what they allow to rely on. */
static uint64_t
sample_least(const struct sample *c, uint64_t marked)
{
	unsigned equal = c->count - c->differ, doubt = 2 * equal;

	if (doubt > c->count / 8)
		doubt = c->count / 8;
	doubt += 2;
	return c->differ > doubt ? marked / c->count * (c->differ - doubt) : 0;
}

int
resync_sample(struct resync_run *r, uint64_t *least, struct err *e)
{
	struct sample c = {.marked = dirty_batch_begin(r->s->dirty, r->s->replica),
			   .size = r->size};
	struct hashwalk w = {
		.exact = true, .arg = &c, .next = sample_next, .differ = sample_differ};
	uint64_t marked = c.marked ? dirtymap_bytes(c.marked) : 0;
	uint64_t blocks = marked / RESYNC_FINE;
	int rc = 0;

	*least = 0;
	c.count = blocks / SPARSE < SAMPLES ? (unsigned)(blocks / SPARSE) : SAMPLES;
	if (c.count >= SAMPLES_MIN) {
		c.stride = blocks / c.count;
		rc = resync_compare(r, &w, e);
		if (!rc && c.i == c.count)
			*least = sample_least(&c, marked);
	}
	if (c.marked)
		dirty_batch_end(r->s->dirty, r->s->replica, false);
	return rc;
}
