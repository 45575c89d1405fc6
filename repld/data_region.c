/* SPDX-License-Identifier: BSD-3-Clause */
/* REGISTER, and growth as the data thread sees it: nothing is registered before it is asked for. */
#include "data_impl.h"

#include "log.h"

int
data_register(struct data *d, const struct wire_entry *en)
{
	struct range r =
		regions_get(&d->regions, en->off < REGIONS_MAX ? (unsigned)en->off : REGIONS_MAX);
	uint8_t *pool = pmem_map_addr(d->params.map);
	/* With a ring nothing may reach the pool but through it. */
	bool write = d->params.write && !d->params.ring;
	struct err e;

	err_clear(&e);
	/* Of a growth that is not recorded no byte may be written. */
	if (r.len == 0 || !d->params.rma || r.off + r.len > pmem_map_size(d->params.map))
		return REPL_E_INVAL;
	if (fab_server_register(d->server, (unsigned)en->off, pool + r.off, r.len, write, &e))
		log_error("region %u: %s", (unsigned)en->off, e.text);
	return e.code;
}

int
data_grow(struct data *d, uint64_t size, struct err *e)
{
	return regions_grow(&d->regions, size, e);
}

uint64_t
data_region_unit(const struct data *d)
{
	return d->regions.unit;
}
