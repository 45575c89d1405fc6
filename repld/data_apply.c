/* SPDX-License-Identifier: BSD-3-Clause */
/* What a round of messages does to the pool: store, flush in groups, answer. */
#include "data_impl.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "log.h"

static int
ranges_persist(struct data *d, struct err *e)
{
	if (d->params.log && d->holes)
		return roundlog_persist(d->params.log, d->ranges, d->range_count, e);
	if (d->params.log)
		return roundlog_flush(d->params.log, d->ranges, d->range_count, e);
	return pmem_map_persist(d->params.map, d->ranges, d->range_count, e);
}

void
data_flush(struct data *d)
{
	struct err e;

	if (d->range_count == 0)
		return;
	err_clear(&e);
	if (!d->failed && ranges_persist(d, &e)) {
		/* A later sync may report success for pages that this one lost. */
		log_error("flush failed, no further update is accepted: %s", e.text);
		d->failed = e.code;
	}
	atomic_fetch_add(&d->counters.flushes, 1);
	d->range_count = 0;
	d->holes = false;
}

void
data_note_range(struct data *d, uint64_t off, uint64_t len)
{
	if (d->range_count == DATA_RANGES_MAX)
		data_flush(d);
	d->ranges[d->range_count++] = (struct range){.off = off, .len = len};
}

/*
 * The bytes are in place: an RMA write brought them. The units reach beyond them,
 * so a trim there is not over: no RMA goes where one is pending.
 */
static void
immediate_apply(struct data *d, const struct commit *c)
{
	data_note_range(d, c->imm.off, c->imm.len);
	atomic_fetch_add_explicit(&d->counters.write_bytes, c->imm.len, memory_order_relaxed);
}

bool
data_back(const struct data *d, uint64_t off, uint64_t len)
{
	return !d->params.sparse || pmem_map_back(d->params.map, off, len);
}

/* What comes behind it must not be there without it. */
void
data_space_fail(struct data *d, uint64_t off, uint64_t len)
{
	log_error("no space is left for %" PRIu64 " bytes at %" PRIu64
		  " of the pool, no further update is accepted: make room",
		  len, off);
	data_fail(d, REPL_E_NOSPC);
}

bool
data_back_or_fail(struct data *d, uint64_t off, uint64_t len)
{
	bool backed = data_back(d, off, len);

	if (!backed)
		data_space_fail(d, off, len);
	return backed;
}

static void
store_apply(struct data *d, struct commit *c, const struct wire_entry *en)
{
	data_trim_meet(d, en->off, en->len, en->op == WIRE_OP_FLUSH);
	/* What is in the log has had its space before. */
	if (en->op != WIRE_OP_FLUSH && !c->logged && !c->put &&
	    !data_back_or_fail(d, en->off, en->len))
		return;
	if (c->put && !pmem_map_put(d->params.map, en->off, c->payload, en->len))
		data_space_fail(d, en->off, en->len);
	else if (!c->put && en->op == WIRE_OP_COPY)
		pmem_map_copy(d->params.map, en->off, c->payload, en->len);
	else if (!c->put && en->op == WIRE_OP_ATOMIC8)
		pmem_map_store8(d->params.map, en->off, c->payload);
	if (en->op != WIRE_OP_FLUSH)
		c->payload += en->len;
	if (!c->logged && !c->put)
		data_note_range(d, en->off, en->len);
	atomic_fetch_add_explicit(en->op == WIRE_OP_FLUSH ? &d->counters.write_bytes
							  : &d->counters.commit_bytes,
				  en->len, memory_order_relaxed);
}

bool
data_commit_apply(struct data *d, struct commit *c)
{
	/* What is stored now could be durable without what the flush has lost. */
	if (d->failed)
		c->next_entry = c->view.entry_count;
	else if (c->imm.len)
		immediate_apply(d, c);
	else if (c->stage)
		data_stage_apply(d, c);
	while (c->next_entry < c->view.entry_count) {
		struct wire_entry en = wire_commit_entry(&c->view, c->next_entry++);

		/* One of its stores, or an earlier one's, has found no space. */
		if (d->failed)
			continue;
		if (en.op == WIRE_OP_BARRIER)
			return true;
		if (en.op == WIRE_OP_POSITION) {
			if (en.off > d->position_next)
				d->position_next = en.off;
			continue;
		}
		if (en.op == WIRE_OP_TRIM) {
			data_trim_take(d, c, &en);
			continue;
		}
		if (en.op == WIRE_OP_REGISTER) {
			if (!c->status)
				c->status = data_register(d, c, &en);
			continue;
		}
		if (en.op == WIRE_OP_FETCH) {
			c->status = data_fetch(d, c, &en);
			continue;
		}
		if (en.op == WIRE_OP_APPEND) {
			if (c->logged) {
				data_append_store(d, c, &en);
				continue;
			}
			if (!data_append(d, c, &en))
				continue;
			c->next_entry--;
			return true;
		}
		store_apply(d, c, &en);
	}
	return false;
}

void
data_commit_finish(struct data *d, struct commit *c)
{
	int status = d->failed ? d->failed : c->status;
	struct wire_ack ack = {.seq = c->view.seq,
			       .status = status,
			       .has_place = !status && c->append == APPEND_DONE,
			       .place = c->place,
			       .has_key = !status && c->has_key,
			       .addr = c->at.addr,
			       .key = c->at.key};

	c->state = COMMIT_ANSWERED;
	atomic_fetch_add_explicit(&d->counters.commits, 1, memory_order_relaxed);
	/* The answer first: the port has a buffer more than the initiator messages. */
	data_send_ack(d, c->lane, &ack, c->taken_ns);
	d->lanes[c->lane].taken--;
	d->lanes[c->lane].answered_ns = clock_now_ns();
	if (c->imm.len == 0)
		fab_server_repost(d->server, c->lane, c->slot);
}

static int
position_tell(struct data *d, struct err *e)
{
	if (d->params.log)
		return roundlog_position(d->params.log, d->position_next, e);
	return d->params.record ? poolposition_tell(d->params.record, d->position_next, e) : 0;
}

/* What was told is durable. That it is has to be known behind a power cut, too. */
static void
position_reached(struct data *d)
{
	struct err e;

	err_clear(&e);
	if (d->position_next == d->position || d->failed)
		return;
	if (position_tell(d, &e)) {
		log_error("position %" PRIu64 " could not be recorded, no further update is "
			  "accepted: %s",
			  d->position_next, e.text);
		data_fail(d, e.code);
		return;
	}
	d->position = d->position_next;
}

/*
 * One phase: each lane goes on through its COMMITs, in their order, up to its
 * next BARRIER; then one flush for all lanes; then those that came to their
 * end are answered. Returns true while a lane still waits behind a BARRIER.
 */
static bool
data_phase(struct data *d)
{
	bool more = false;

	for (unsigned i = 0; i < d->params.lanes; i++)
		d->lanes[i].waits = false;
	for (unsigned i = 0; i < d->pending_count; i++) {
		struct commit *c = &d->pending[i];

		if (c->state != COMMIT_TAKEN || d->lanes[c->lane].waits)
			continue;
		if (data_commit_apply(d, c)) {
			d->lanes[c->lane].waits = true;
			more = true;
		}
		if (c->next_entry == c->view.entry_count)
			c->state = COMMIT_APPLIED;
	}
	data_flush(d);
	position_reached(d);
	for (unsigned i = 0; i < d->pending_count; i++) {
		struct commit *c = &d->pending[i];

		if (c->state == COMMIT_APPLIED)
			data_commit_finish(d, c);
	}
	return more;
}

void
data_apply(struct data *d)
{
	if (d->pending_count == 0)
		return;
	if (d->params.ring)
		data_apply_deposits(d);
	if (d->params.log)
		data_log_round(d);
	while (!d->params.ring && data_phase(d))
		;
	d->pending_count = 0;
	atomic_store_explicit(&d->counters.last_commit_s, (uint64_t)time(NULL),
			      memory_order_relaxed);
}
