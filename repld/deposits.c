/* SPDX-License-Identifier: BSD-3-Clause */
#include "deposits.h"

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

int
deposits_apply(struct deposits *d, const struct wire_commit_view *v, struct err *e)
{
	const uint8_t *payload = v->payload;
	int rc = REPL_OK;

	for (uint32_t i = 0; i < v->entry_count && !rc; i++) {
		struct wire_entry en = wire_commit_entry(v, i);

		switch (en.op) {
		case WIRE_OP_BARRIER:
			rc = deposits_flush(d, e);
			break;
		case WIRE_OP_COPY:
			pmem_map_copy(d->map, en.off, payload, en.len);
			payload += en.len;
			d->bytes += en.len;
			rc = deposits_note(d, en.off, en.len, e);
			break;
		case WIRE_OP_ATOMIC8:
			pmem_map_store8(d->map, en.off, payload);
			payload += en.len;
			d->bytes += en.len;
			rc = deposits_note(d, en.off, en.len, e);
			break;
		case WIRE_OP_FLUSH:
			rc = deposits_note(d, en.off, en.len, e);
			break;
		case WIRE_OP_TRIM:
			if (!d->trims || en.len == 0)
				break;
			pmem_map_zero(d->map, en.off, en.len, d->hole);
			rc = deposits_note(d, en.off, en.len, e);
			break;
		default: /* the stamp, a registration */
			break;
		}
	}
	return rc;
}
