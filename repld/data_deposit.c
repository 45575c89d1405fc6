/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DEPOSITs: messages that lie in the receive ring, where they are as durable as
 * the profile says before anybody here has seen them. Each is applied to its
 * end before anything of a later one of any lane: an initiator may have gone on
 * with another lane when this one was in its slot.
 */
#include "data_impl.h"

#include <inttypes.h>
#include <string.h>

#include "clock.h"
#include "log.h"

static void
deposit_fail(struct data *d, const struct err *e)
{
	if (!d->failed)
		log_error("flush failed, no further update is accepted: %s", e->text);
	d->failed = e->code;
}

static int
deposit_check(const struct data *d, const struct commit *c, struct err *e)
{
	const struct data_lane *l = &d->lanes[c->lane];
	uint32_t slot = ring_slot_of(poolring_geometry(d->params.ring), l->seq + 1);

	if (c->view.epoch != d->params.epoch)
		return err_set(e, REPL_E_REFUSED, "DEPOSIT of epoch %" PRIu32 ", this is %" PRIu32,
			       c->view.epoch, d->params.epoch);
	if (c->view.seq != l->seq + 1)
		return err_set(e, REPL_E_PROTOCOL, "DEPOSIT %" PRIu64 " where %" PRIu64 " is due",
			       c->view.seq, l->seq + 1);
	if (c->view.stamp <= l->stamp)
		return err_set(e, REPL_E_PROTOCOL,
			       "DEPOSIT %" PRIu64 " has stamp %" PRIu64 ", the one before %" PRIu64,
			       c->view.seq, c->view.stamp, l->stamp);
	if (c->slot != slot)
		return err_set(e, REPL_E_PROTOCOL,
			       "DEPOSIT %" PRIu64
			       " is in slot %u, where a replay looks in %" PRIu32,
			       c->view.seq, c->slot, slot);
	return 0;
}

/* No replay may take it for good; the lane's later ones stay behind the gap. */
static void
deposit_refuse(struct data *d, const struct fab_event *ev, const struct err *why)
{
	uint64_t seq;
	bool known = wire_commit_seq(ev->data, ev->len, &seq);
	struct err e;

	err_clear(&e);
	if (poolring_destroy(d->params.ring, ev->lane, ev->slot, &e))
		deposit_fail(d, &e);
	data_end_lane(d, ev->lane, known ? &seq : NULL, why);
}

void
data_on_deposit(struct data *d, const struct fab_event *ev)
{
	struct commit *c = &d->pending[d->pending_count];
	struct data_lane *l = &d->lanes[ev->lane];
	struct err e;
	int rc;

	if (l->broken)
		return;
	err_clear(&e);
	memset(c, 0, sizeof(*c));
	c->taken_ns = clock_now_ns();
	c->lane = ev->lane;
	c->slot = ev->slot;
	rc = wire_deposit_decode(ev->data, ev->len, pmem_map_size(d->params.map), &c->view, &e);
	if (!rc)
		rc = deposit_check(d, c, &e);
	if (rc) {
		deposit_refuse(d, ev, &e);
		return;
	}
	l->seq = c->view.seq;
	l->stamp = c->view.stamp;
	c->payload = c->view.payload;
	d->pending_count++;
}

/*
 * What an entry has to do with trims that are put off, as in a COMMIT. Their zeros come when the
 * mark of theirs may be durable already, and a replay passes trims over: none counts on them before
 * it is told that all are finished.
 */
static void
deposit_trim(struct data *d, struct commit *c, const struct wire_entry *en)
{
	if (en->op == WIRE_OP_TRIM)
		data_trim_take(d, c, en);
	else if (en->op == WIRE_OP_BARRIER)
		data_flush(d);
	else if (en->op == WIRE_OP_COPY || en->op == WIRE_OP_ATOMIC8 || en->op == WIRE_OP_FLUSH)
		data_trim_meet(d, en->off, en->len, en->op == WIRE_OP_FLUSH);
}

static int
deposit_apply(struct data *d, struct commit *c, struct err *e)
{
	int rc = d->failed;

	for (uint32_t i = 0; i < c->view.entry_count && !rc; i++) {
		struct wire_entry en = wire_commit_entry(&c->view, i);

		deposit_trim(d, c, &en);
		rc = d->failed;
		if (!rc)
			rc = deposits_entry(d->deposits, &en, &c->payload, e);
	}
	return rc;
}

static void
deposits_store(struct data *d)
{
	struct deposits *s = d->deposits;
	uint64_t bytes = s->bytes, flushes = s->flushes;
	struct err e;
	int rc = d->failed;

	err_clear(&e);
	for (unsigned i = 0; i < d->pending_count && !rc; i++)
		rc = deposit_apply(d, &d->pending[i], &e);
	if (!rc)
		rc = deposits_flush(s, &e);
	if (rc && !d->failed)
		deposit_fail(d, &e);
	data_flush(d);
	atomic_fetch_add_explicit(&d->counters.commit_bytes, s->bytes - bytes,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&d->counters.flushes, s->flushes - flushes, memory_order_relaxed);
}

/*
 * In the order of arrival over all lanes. If a later one's mark were durable
 * first, a cut between would have an earlier one replayed over what the later
 * one has stored.
 */
static void
deposits_mark(struct data *d)
{
	struct err e;

	err_clear(&e);
	for (unsigned i = 0; i < d->pending_count && !d->failed; i++) {
		const struct commit *c = &d->pending[i];

		if (i + 1 < d->pending_count && d->pending[i + 1].lane == c->lane)
			continue;
		if (poolring_mark(d->params.ring, c->lane, c->view.seq, &e))
			deposit_fail(d, &e);
	}
}

/* Regions that it asks for: not the pool's business, so a replay passes them over. */
static int
deposit_register(struct data *d, struct commit *c)
{
	int status = 0;

	for (uint32_t i = 0; i < c->view.entry_count && !status; i++) {
		struct wire_entry en = wire_commit_entry(&c->view, i);

		if (en.op == WIRE_OP_REGISTER)
			status = data_register(d, c, &en);
	}
	return status;
}

void
data_apply_deposits(struct data *d)
{
	deposits_store(d);
	deposits_mark(d);
	for (unsigned i = 0; i < d->pending_count; i++) {
		struct commit *c = &d->pending[i];
		struct wire_ack ack = {.seq = c->view.seq};

		atomic_fetch_add_explicit(&d->counters.commits, 1, memory_order_relaxed);
		ack.status = d->failed ? d->failed : c->status ? c->status : deposit_register(d, c);
		ack.has_key = !ack.status && c->has_key;
		ack.addr = c->at.addr;
		ack.key = c->at.key;
		data_send_ack(d, c->lane, &ack, c->taken_ns);
		/* What is not applied stays where a replay finds it. */
		if (!d->failed)
			fab_server_repost(d->server, c->lane, c->slot);
	}
}
