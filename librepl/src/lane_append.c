/* SPDX-License-Identifier: BSD-3-Clause */
/* APPEND on a lane: the target answers with the place that it has chosen. */
#include "lane_impl.h"

size_t
lane_append_max(const struct lane *l)
{
	return l->limits.inline_max - WIRE_LIMIT_SIZE;
}

bool
lane_can_append(const struct lane *l)
{
	return !l->ring;
}

bool
lane_append_post(struct lane *l)
{
	const struct lane_append *a = &l->append;
	struct wire_entry entry = {.off = a->word_off, .len = a->len, .op = WIRE_OP_APPEND};

	if (l->status || !lane_commit_begin(l, WIRE_LIMIT_SIZE + (size_t)a->len))
		return false;
	wire_commit_add_append(&l->commit, &entry, a->limit, a->data);
	lane_count(&l->counters.bytes, a->len);
	lane_commit_send(l);
	if (l->status)
		return false;
	l->append.seq = l->seq_sent;
	return true;
}

bool
lane_append_acked(struct lane *l, const struct wire_ack *ack)
{
	bool soft = ack->status == REPL_E_NOSPC || ack->status == REPL_E_CORRUPT ||
		    ack->status == REPL_E_INVAL;

	if (l->append.seq == 0 || ack->seq != l->append.seq || (ack->status && !soft))
		return false;
	l->append.status = ack->status;
	l->append.place = ack->place;
	return true;
}

bool
lane_append_done(const struct lane *l, const struct wire_ack *ack)
{
	return l->append.seq != 0 && ack->seq == l->append.seq && ack->status == 0;
}
