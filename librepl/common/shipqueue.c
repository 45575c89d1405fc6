/* SPDX-License-Identifier: BSD-3-Clause */
#include "shipqueue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

#define BIT(replica) (1U << (replica))

struct shipment *
shipment_new(unsigned pieces, size_t bytes)
{
	size_t head = sizeof(struct shipment) + pieces * sizeof(struct ship_piece);
	struct shipment *s = malloc(head + bytes);

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->refs = 1;
	s->piece_room = pieces;
	s->room = bytes;
	s->data = (uint8_t *)s + head;
	return s;
}

void
shipment_add(struct shipment *s, uint8_t op, uint64_t off, uint64_t len, const void *src)
{
	assert(s->piece_count < s->piece_room && (!src || len <= s->room - s->bytes));
	s->pieces[s->piece_count++] =
		(struct ship_piece){.off = off, .len = len, .at = s->bytes, .op = op};
	if (!src)
		return;
	words_load(s->data + s->bytes, src, len);
	s->bytes += len;
}

uint64_t
shipment_weight(const struct shipment *s)
{
	return SHIPMENT_OVERHEAD + s->piece_room * sizeof(struct ship_piece) + s->room;
}

void
shipqueue_unref(struct shipqueue *q, struct shipment *s)
{
	assert(s->refs > 0);
	if (--s->refs > 0)
		return;
	if (q->tail == s)
		q->tail = NULL;
	free(s);
}

void
shipqueue_open(struct shipqueue *q, unsigned replica)
{
	assert(!q->view[replica].open);
	q->view[replica] = (struct shipview){.open = true};
}

void
shipqueue_append(struct shipqueue *q, struct shipment *s, uint64_t now_ns)
{
	s->number = ++q->last;
	s->queued_ns = now_ns;
	if (q->tail)
		q->tail->next = s;
	q->tail = s;
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		struct shipview *v = &q->view[i];

		if (!v->open)
			continue;
		s->refs++;
		s->wanted |= BIT(i);
		v->weight += shipment_weight(s);
		if (!v->unsent)
			v->unsent = s;
		if (!v->unacked)
			v->unacked = s;
	}
}

void
shipqueue_sent(struct shipqueue *q, unsigned replica)
{
	struct shipview *v = &q->view[replica];

	assert(v->unsent);
	v->unsent = v->unsent->next;
}

/* The view has it behind itself. */
static void
view_pass(struct shipqueue *q, struct shipview *v)
{
	struct shipment *s = v->unacked;

	v->unacked = s->next;
	v->weight -= shipment_weight(s);
	shipqueue_unref(q, s);
}

void
shipqueue_acked(struct shipqueue *q, unsigned replica)
{
	struct shipview *v = &q->view[replica];

	assert(v->unacked && v->unacked != v->unsent);
	v->unacked->acked |= BIT(replica);
	view_pass(q, v);
}

void
shipqueue_close(struct shipqueue *q, unsigned replica,
		void (*dropped)(void *arg, uint64_t off, uint64_t len), void *arg)
{
	struct shipview *v = &q->view[replica];

	while (v->unacked) {
		struct shipment *s = v->unacked;

		for (unsigned i = 0; dropped && i < s->piece_count; i++)
			if (s->pieces[i].len)
				dropped(arg, s->pieces[i].off, s->pieces[i].len);
		view_pass(q, v);
	}
	*v = (struct shipview){.open = false};
}

void
shipqueue_through(struct shipqueue *q, uint64_t number)
{
	if (number > q->through)
		q->through = number;
}

static uint64_t
ended_last(const struct ship_ended *ended, const struct gen_id *id)
{
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		if (gen_id_equal(&ended[i].id, id))
			return ended[i].last;
	return 0;
}

/* By their names: a full history may have dropped any. */
void
shipqueue_ended(struct shipqueue *q, const struct generation *chain)
{
	struct ship_ended was[GEN_HISTORY];

	memcpy(was, q->ended, sizeof(was));
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		q->ended[i] = (struct ship_ended){.id = chain->history[i],
						  .last = ended_last(was, &chain->history[i])};
	q->ended[0].last = q->through;
}

/* Of an older one the last shipment is none that comes later. */
uint64_t
shipqueue_behind(const struct shipqueue *q, unsigned replica, struct generation *chain)
{
	unsigned n = 0;

	while (n < GEN_HISTORY && !shipqueue_has(q, replica, q->ended[n].last))
		n++;
	if (n == 0)
		return 0;
	gen_forget_since(chain, &q->ended[n - 1].id);
	return q->ended[n - 1].last;
}

bool
shipqueue_has(const struct shipqueue *q, unsigned replica, uint64_t number)
{
	const struct shipment *oldest = q->view[replica].unacked;

	return !oldest || oldest->number > number;
}

uint64_t
shipqueue_lag_ns(const struct shipqueue *q, unsigned replica, uint64_t now_ns)
{
	const struct shipment *s = q->view[replica].unacked;

	if (!s)
		return 0;
	return now_ns > s->queued_ns ? now_ns - s->queued_ns : 1;
}
