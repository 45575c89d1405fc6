/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of a round goes by the round log: one sequential sync for the messages of
 * all lanes, however many places they are for. They are stored in the pool when they
 * are durable in the log, in the order in which they are in it, and answered.
 */
#include "data_impl.h"

#include <string.h>

#include "le.h"
#include "log.h"

#define APPEND_RECORD(len) (wire_commit_size(2, 8) + (len)) /* of an APPEND of len bytes */

/* A frame that is gathered. */
struct frame {
	const struct wire_commit_view *messages[DATA_PENDING_MAX];
	struct commit *commits[DATA_PENDING_MAX];
	unsigned count;
	size_t bytes, ranges;
	size_t scratch; /* bytes of it that are taken */
};

static bool
frame_fits(const struct frame *f, size_t bytes, size_t ranges)
{
	return f->bytes + bytes <= ROUND_FRAME_MAX && f->ranges + ranges <= ROUNDLOG_RANGES_MAX / 2;
}

static void
frame_add(struct frame *f, struct commit *c)
{
	f->messages[f->count] = &c->record;
	f->commits[f->count++] = c;
	f->bytes += wire_commit_size(c->record.entry_count, c->record.payload_len);
	f->ranges += c->record.entry_count;
}

/* The zeros that a trim would leave beside it are not in the log. */
static bool
commit_meets_trim(const struct data *d, const struct commit *c)
{
	for (uint32_t i = 0; d->trim_count > 0 && i < c->view.entry_count; i++) {
		struct wire_entry en = wire_commit_entry(&c->view, i);

		if ((en.op == WIRE_OP_COPY || en.op == WIRE_OP_ATOMIC8) &&
		    data_trim_meets(d, en.off, en.len))
			return true;
	}
	return false;
}

/* Or its frame could not be brought in, and the pool not be opened. */
static bool
commit_is_backed(const struct data *d, const struct commit *c)
{
	for (uint32_t i = 0; d->params.sparse && i < c->view.entry_count; i++) {
		struct wire_entry en = wire_commit_entry(&c->view, i);

		if ((en.op == WIRE_OP_COPY || en.op == WIRE_OP_ATOMIC8) &&
		    !data_back(d, en.off, en.len))
			return false;
	}
	return true;
}

/*
 * What it makes zero is to be durable, and that is the pool's matter: be that at its end, or at
 * once where too many are put off. A replay of the stores in front of it must not undo that.
 */
static bool
commit_trims(const struct commit *c)
{
	for (uint32_t i = 0; i < c->view.entry_count; i++)
		if (wire_commit_entry(&c->view, i).op == WIRE_OP_TRIM)
			return true;
	return false;
}

static bool
is_append(const struct commit *c)
{
	return c->view.entry_count == 1 && wire_commit_entry(&c->view, 0).op == WIRE_OP_APPEND;
}

/* An APPEND as what it comes to: its bytes at their place, and the tail word. */
static void
append_record(struct data *d, struct frame *f, struct commit *c, const struct wire_entry *en)
{
	struct wire_entry bytes = {.off = c->place, .len = en->len, .op = WIRE_OP_COPY};
	struct wire_entry word = {.off = c->word_off, .len = 8, .op = WIRE_OP_ATOMIC8};
	uint8_t *at = d->scratch + f->scratch, tail[8];
	struct wire_commit record;
	size_t len;

	put_le64(tail, c->tail);
	wire_commit_begin(&record, at, ROUND_FRAME_MAX - f->scratch, 2);
	wire_commit_add(&record, &bytes, c->view.payload + WIRE_LIMIT_SIZE);
	wire_commit_add(&record, &word, tail);
	len = wire_commit_end(&record, c->view.seq, d->params.epoch);
	f->scratch += len;
	c->record = c->view;
	c->record.entry_count = 2;
	c->record.entries = at + WIRE_HEADER_SIZE;
	c->record.payload = at + wire_commit_size(2, 0);
	c->record.payload_len = len - wire_commit_size(2, 0);
}

/*
 * The place is chosen by what is stored: what the lane has in the frame already may be the tail
 * word.
 */
static bool
append_take(struct data *d, struct frame *f, struct commit *c)
{
	struct wire_entry en = wire_commit_entry(&c->view, 0);

	if (d->lanes[c->lane].stores || !frame_fits(f, APPEND_RECORD((size_t)en.len), 2) ||
	    data_trim_meets(d, en.off, 8))
		return false;
	if (!data_append_choose(d, c, &en))
		return false;
	if (data_trim_meets(d, c->place, en.len) || !data_back(d, c->place, en.len) ||
	    !data_back(d, c->word_off, 8)) {
		c->append = APPEND_NONE;
		return false;
	}
	append_record(d, f, c, &en);
	frame_add(f, c);
	return true;
}

static bool
commit_take(struct data *d, struct frame *f, struct commit *c)
{
	if (c->imm.len || c->stage || c->put)
		return false;
	if (is_append(c))
		return append_take(d, f, c);
	if (!round_takes(&c->view) || commit_trims(c) || commit_meets_trim(d, c) ||
	    !frame_fits(f, wire_commit_size(c->view.entry_count, c->view.payload_len),
			c->view.entry_count) ||
	    !commit_is_backed(d, c))
		return false;
	c->record = c->view;
	d->lanes[c->lane].stores = true;
	frame_add(f, c);
	return true;
}

/* Of each lane what comes first. */
static void
frame_gather(struct data *d, struct frame *f)
{
	f->count = 0;
	f->bytes = ROUND_HEAD_SIZE;
	f->ranges = f->scratch = 0;
	for (unsigned i = 0; i < d->params.lanes; i++)
		d->lanes[i].waits = d->lanes[i].stores = false;
	for (unsigned i = 0; i < d->pending_count; i++) {
		struct commit *c = &d->pending[i];

		if (c->state == COMMIT_TAKEN && !d->lanes[c->lane].waits)
			d->lanes[c->lane].waits = !commit_take(d, f, c);
	}
}

/* Whoever looks at the pool sees it from now on. */
static void
frame_apply(struct data *d, const struct frame *f)
{
	for (unsigned i = 0; i < f->count; i++) {
		struct commit *c = f->commits[i];

		c->logged = true;
		while (c->next_entry < c->view.entry_count)
			(void)data_commit_apply(d, c);
	}
	roundlog_stored(d->params.log, f->messages, f->count);
	d->position = d->position_next;
	for (unsigned i = 0; i < f->count; i++)
		data_commit_finish(d, f->commits[i]);
}

void
data_log_round(struct data *d)
{
	struct frame f;
	struct err e;

	err_clear(&e);
	do {
		if (d->failed)
			return;
		frame_gather(d, &f);
		if (f.count == 0)
			return;
		if (roundlog_write(d->params.log, f.messages, f.count, &e)) {
			log_error("flush failed, no further update is accepted: %s", e.text);
			data_fail(d, e.code);
			return;
		}
		atomic_fetch_add(&d->counters.flushes, 1);
		frame_apply(d, &f);
	} while (true);
}
