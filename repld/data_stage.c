/* SPDX-License-Identifier: BSD-3-Clause */
/* STAGEs: into the resync journal in the order in which they came, and nothing into the pool. */
#include "data_impl.h"

#include <inttypes.h>

#include "log.h"

bool
data_staging(const struct data *d)
{
	return pooljournal_is_open(d->params.journal);
}

int
data_take_stage(struct data *d, const struct fab_event *ev, struct commit *c, struct err *e)
{
	int rc = wire_stage_decode(ev->data, ev->len, pmem_map_size(d->params.map), &c->view, e);

	if (rc)
		return rc;
	c->stage = ev->data;
	c->stage_len = ev->len;
	return 0;
}

/*
 * What storing is to take gets its space now, when the journal can still be given up: one
 * that is committed and finds none would keep everybody from the pool.
 */
static int
stage_back(struct data *d, const struct commit *c, struct err *e)
{
	for (uint32_t i = 0; i < c->view.entry_count; i++) {
		struct wire_entry en = wire_commit_entry(&c->view, i);

		if (data_back(d, en.off, en.len))
			continue;
		pooljournal_fail(d->params.journal, REPL_E_NOSPC);
		return err_set(e, REPL_E_NOSPC,
			       "STAGE: no space is left for %" PRIu32 " bytes at %" PRIu64
			       " of the pool",
			       en.len, en.off);
	}
	return 0;
}

void
data_stage_apply(struct data *d, struct commit *c)
{
	struct err e;

	err_clear(&e);
	/* What is trimmed here later would be zeros over what the journal brings. */
	for (uint32_t i = 0; d->trim_count > 0 && i < c->view.entry_count; i++) {
		struct wire_entry en = wire_commit_entry(&c->view, i);

		data_trim_meet(d, en.off, en.len, false);
	}
	c->status = stage_back(d, c, &e);
	if (!c->status)
		c->status = pooljournal_append(d->params.journal, c->stage, c->stage_len, &e);
	if (c->status)
		log_error("lane %u: %s", c->lane, e.text);
	c->next_entry = c->view.entry_count;
	atomic_fetch_add_explicit(&d->counters.commit_bytes, c->view.payload_len,
				  memory_order_relaxed);
}
