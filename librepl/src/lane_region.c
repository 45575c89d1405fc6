/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be reached by RMA: the target registers regions of the pool when the
 * first lane is about to use them. Where it can't, it copies what is to be read
 * into a window.
 */
#include "lane_impl.h"

#include "err.h"

uint64_t
lane_rma_len(const struct lane *l, uint64_t off, uint64_t len)
{
	uint64_t max = len < l->rma_max ? len : l->rma_max;

	return l->regions ? regions_reach(l->regions, off, max) : max;
}

bool
lane_region_known(const struct lane *l, uint64_t off, uint64_t len)
{
	unsigned last;

	if (!l->regions)
		return true;
	last = regions_find(l->regions, off + len - 1);
	for (unsigned i = regions_find(l->regions, off); i <= last; i++) {
		if (!regions_is_ready(l->regions, i))
			return false;
	}
	return true;
}

/*
 * Two lanes may ask for the same: the target does it once. The COMMIT goes out at
 * once, since nothing can be written before its answer.
 */
bool
lane_region_ready(struct lane *l, uint64_t off)
{
	unsigned i;

	if (!l->regions || l->window)
		return true;
	i = regions_find(l->regions, off);
	if (regions_is_ready(l->regions, i))
		return true;
	if (l->status || l->reg_seq || !lane_entry(l, WIRE_OP_REGISTER, i, 0, NULL))
		return false;
	lane_commit_send(l);
	l->reg_seq = l->seq_sent;
	l->reg_region = i;
	return false;
}

bool
lane_key_due(const struct lane *l, const struct wire_ack *ack)
{
	bool region = l->keyed && ack->seq == l->reg_seq;

	return ack->status == 0 && (region || ack->seq == l->fetch.seq);
}

void
lane_region_acked(struct lane *l, const struct wire_ack *ack)
{
	struct regions_place place = {.addr = ack->addr, .key = ack->key};
	struct err e;

	if (l->fetch.seq && ack->seq == l->fetch.seq)
		l->fetch.place = place;
	if (l->reg_seq == 0 || ack->seq != l->reg_seq)
		return;
	err_clear(&e);
	if (!l->keyed)
		regions_set_ready(l->regions, l->reg_region);
	else if (regions_tell(l->regions, l->reg_region, &place, &e))
		lane_fail(l, e.code, e.text);
	l->reg_seq = 0;
}

bool
lane_fetch_post(struct lane *l)
{
	struct lane_fetch *f = &l->fetch;
	struct err e;

	if (f->seq == 0) {
		if (l->status || !lane_entry(l, WIRE_OP_FETCH, f->off, f->len, NULL))
			return false;
		lane_commit_send(l);
		f->seq = l->seq_sent;
		return false;
	}
	if (l->status || l->seq_acked < f->seq || fab_lane_rma_room(l->fab) == 0)
		return false;
	err_clear(&e);
	f->seq = 0;
	if (fab_lane_read_window(l->fab, f->dst, f->len, &f->place, &e)) {
		lane_fail(l, e.code, e.text);
		return false;
	}
	l->rma_outstanding++;
	lane_count(&l->counters.reads, 1);
	return true;
}
