/* SPDX-License-Identifier: BSD-3-Clause */
#include "deposits.h"

#include <inttypes.h>
#include <string.h>

void
deposits_init(struct deposits *d, struct pmem_map *map)
{
	memset(d, 0, sizeof(*d));
	d->map = map;
}

int
deposits_flush(struct deposits *d, struct err *e)
{
	int rc;

	if (d->count == 0)
		return REPL_OK;
	rc = pmem_map_persist(d->map, d->ranges, d->count, e);
	d->flushes++;
	d->count = 0;
	return rc;
}

static int
deposits_note(struct deposits *d, uint64_t off, uint64_t len, struct err *e)
{
	int rc = d->count == DEPOSITS_RANGES_MAX ? deposits_flush(d, e) : REPL_OK;

	d->ranges[d->count++] = (struct range){.off = off, .len = len};
	return rc;
}

static int
deposits_back(struct deposits *d, uint64_t off, uint64_t len, struct err *e)
{
	if (!d->back || pmem_map_back(d->map, off, (size_t)len))
		return 0;
	return err_set(e, REPL_E_NOSPC,
		       "no space is left for %" PRIu64 " acknowledged bytes at %" PRIu64
		       " of the pool: make room, then open it again",
		       len, off);
}

static int
deposits_store(struct deposits *d, const struct wire_entry *en, const uint8_t *payload,
	       struct err *e)
{
	int rc = deposits_back(d, en->off, en->len, e);

	if (rc)
		return rc;
	if (en->op == WIRE_OP_ATOMIC8)
		pmem_map_store8(d->map, en->off, payload);
	else
		pmem_map_copy(d->map, en->off, payload, en->len);
	d->bytes += en->len;
	return deposits_note(d, en->off, en->len, e);
}

int
deposits_entry(struct deposits *d, const struct wire_entry *en, const uint8_t **payload,
	       struct err *e)
{
	const uint8_t *data = *payload;

	switch (en->op) {
	case WIRE_OP_BARRIER:
		return d->whole ? REPL_OK : deposits_flush(d, e);
	case WIRE_OP_COPY:
	case WIRE_OP_ATOMIC8:
		*payload += en->len;
		return deposits_store(d, en, data, e);
	case WIRE_OP_FLUSH:
		return deposits_note(d, en->off, en->len, e);
	default: /* the stamp, a trim, a registration */
		return REPL_OK;
	}
}

int
deposits_apply(struct deposits *d, const struct wire_commit_view *v, struct err *e)
{
	const uint8_t *payload = v->payload;
	int rc = REPL_OK;

	for (uint32_t i = 0; i < v->entry_count && !rc; i++) {
		struct wire_entry en = wire_commit_entry(v, i);

		rc = deposits_entry(d, &en, &payload, e);
	}
	return rc;
}
