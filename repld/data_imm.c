/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Immediates: an RMA write that names what it wrote, so that no COMMIT has to
 * follow it. One that wants an answer is a COMMIT of one FLUSH in 32 bits.
 */
#include "data_impl.h"

#include <inttypes.h>
#include <string.h>

#include "clock.h"
#include "log.h"

/* Which lane sent it can't be told, and the session has one initiator: all end. */
static void
immediate_from_nowhere(struct data *d, uint32_t bits)
{
	struct err e;

	err_clear(&e);
	(void)err_set(&e, REPL_E_PROTOCOL,
		      "immediate 0x%08" PRIx32 " from a lane that is not there", bits);
	for (unsigned i = 0; i < d->params.lanes; i++)
		if (!d->lanes[i].broken)
			data_end_lane(d, i, NULL, &e);
}

static int
immediate_check(const struct data *d, const struct data_lane *l, uint32_t bits,
		struct wire_imm *imm, struct err *e)
{
	if (!d->params.write)
		return err_set(e, REPL_E_REFUSED, "immediate to a pool opened for reading");
	if (d->imm_unit == 0)
		return err_set(e, REPL_E_PROTOCOL, "immediate where none may be used");
	if (data_staging(d))
		return err_set(e, REPL_E_PROTOCOL, "immediate while a journal is open");
	/* COMMITs beyond the depth find no buffer; these need none. */
	if (l->taken >= d->params.depth)
		return err_set(e, REPL_E_PROTOCOL, "immediate with %u updates in flight, depth %u",
			       l->taken, d->params.depth);
	return wire_imm_decode(bits, d->imm_unit, pmem_map_size(d->params.map), imm, e);
}

void
data_on_immediate(struct data *d, const struct fab_event *ev)
{
	struct commit *c = &d->pending[d->pending_count];
	struct data_lane *l;
	uint64_t seq;
	struct err e;

	err_clear(&e);
	if (ev->lane >= d->params.lanes) {
		immediate_from_nowhere(d, ev->imm);
		return;
	}
	l = &d->lanes[ev->lane];
	if (l->broken || (d->params.write && !wire_imm_answered(ev->imm)))
		return;
	memset(c, 0, sizeof(*c));
	seq = l->seq + 1;
	if (immediate_check(d, l, ev->imm, &c->imm, &e)) {
		data_end_lane(d, ev->lane, &seq, &e);
		return;
	}
	c->taken_ns = clock_now_ns();
	c->lane = ev->lane;
	c->view.seq = l->seq = seq;
	l->taken++;
	d->pending_count++;
}
