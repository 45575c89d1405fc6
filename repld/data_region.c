/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an initiator may reach by RMA: regions, by REGISTER, none before it is
 * asked for; or, where the RNIC can't have the pool, a window, by FETCH. And
 * growth as the data thread sees it.
 */
#include "data_impl.h"

#include "log.h"

int
data_register(struct data *d, struct commit *c, const struct wire_entry *en)
{
	struct range r =
		regions_get(&d->regions, en->off < REGIONS_MAX ? (unsigned)en->off : REGIONS_MAX);
	uint8_t *pool = pmem_map_addr(d->params.map);
	/* With a ring nothing may reach the pool but through it. */
	bool write = d->params.write && d->params.rma && !d->params.ring;
	struct err e;

	err_clear(&e);
	/* Of a growth that is not recorded no byte may be written. */
	if (r.len == 0 || r.off + r.len > pmem_map_size(d->params.map))
		return REPL_E_INVAL;
	/* What an RNIC can't have it can't read: a lane does so through its window. */
	if (!d->params.rma && d->rdma)
		return REPL_E_INVAL;
	if (fab_server_register(d->server, (unsigned)en->off, pool + r.off, r.len, write, &e)) {
		log_error("region %u: %s", (unsigned)en->off, e.text);
		return e.code;
	}
	regions_set_ready(&d->regions, (unsigned)en->off);
	c->has_key = fab_server_place(d->server, (unsigned)en->off, &c->at);
	return 0;
}

/* What went before on the lane is in memory, if not yet durable: so it is read. */
int
data_fetch(struct data *d, struct commit *c, const struct wire_entry *en)
{
	uint8_t *window;

	if (en->len > d->params.window || !fab_server_window(d->server, c->lane, &window, &c->at))
		return REPL_E_INVAL;
	pmem_map_get(d->params.map, en->off, window, en->len);
	c->has_key = true;
	return 0;
}

/* What is not registered so far of a pool of that size. */
static uint64_t
data_to_register(const struct data *d, uint64_t size)
{
	struct range r;

	for (unsigned i = 0; (r = regions_get(&d->regions, i)).len; i++)
		size -= regions_is_ready(&d->regions, i) ? r.len : 0;
	return size;
}

int
data_grow_check(const struct data *d, uint64_t size, struct err *e)
{
	int rc = regions_grow_check(&d->regions, size, e);

	if (rc || !d->params.rma)
		return rc;
	return fab_server_can_pin(d->server, data_to_register(d, size), e);
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
