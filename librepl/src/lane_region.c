/* SPDX-License-Identifier: BSD-3-Clause */
/* The target registers regions of the pool for RMA when the first lane is about to use them. */
#include "lane_impl.h"

uint64_t
lane_rma_len(const struct lane *l, uint64_t off, uint64_t len)
{
	uint64_t max = len < LANE_READ_MAX ? len : LANE_READ_MAX;

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

	if (!l->regions)
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

void
lane_region_acked(struct lane *l)
{
	if (l->reg_seq == 0 || l->seq_acked < l->reg_seq)
		return;
	regions_set_ready(l->regions, l->reg_region);
	l->reg_seq = 0;
}
