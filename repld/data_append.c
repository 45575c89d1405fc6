/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * APPEND: the target chooses the place. In two phases of a round: the bytes go
 * where the tail word points, behind those of the appends that this round has
 * placed already; when they are durable the tail word is stored past them. So
 * all appends of a round share two flushes, and at no moment the durable tail
 * word lies beyond bytes that are not durable.
 */
#include "data_impl.h"

#include <string.h>

#include "le.h"
#include "log.h"

/* The tail as it will be when what this round has placed is stored. */
static uint64_t
append_tail(const struct data *d, uint64_t word_off)
{
	const uint8_t *pool = pmem_map_addr(d->params.map);
	uint64_t tail = get_le64(pool + word_off);

	for (unsigned i = 0; i < d->pending_count; i++) {
		const struct commit *c = &d->pending[i];

		if (c->append == APPEND_PLACED && c->word_off == word_off && c->tail > tail)
			tail = c->tail;
	}
	return tail;
}

/* The tail word's bytes are the pool's: anything may be there. */
static int
append_check(const struct data *d, uint64_t tail, const struct wire_entry *en, uint64_t limit)
{
	if (tail > pmem_map_size(d->params.map))
		return REPL_E_CORRUPT;
	if (tail > limit || en->len > limit - tail)
		return REPL_E_NOSPC;
	/* The tail word can't be among the bytes. */
	if (tail < en->off + 8 && en->off < tail + en->len)
		return REPL_E_INVAL;
	return 0;
}

bool
data_append_choose(struct data *d, struct commit *c, const struct wire_entry *en)
{
	uint64_t tail = append_tail(d, en->off);

	c->status = append_check(d, tail, en, get_le64(c->payload));
	if (c->status)
		return false;
	c->append = APPEND_PLACED;
	c->word_off = en->off;
	c->place = tail;
	c->tail = tail + en->len;
	return true;
}

static void
append_bytes(struct data *d, struct commit *c, const struct wire_entry *en)
{
	data_trim_meet(d, c->place, en->len, false);
	pmem_map_copy(d->params.map, c->place, c->payload + WIRE_LIMIT_SIZE, en->len);
	if (!c->logged)
		data_note_range(d, c->place, en->len);
	atomic_fetch_add_explicit(&d->counters.commit_bytes, en->len, memory_order_relaxed);
}

static void
append_word(struct data *d, struct commit *c)
{
	uint8_t word[8];

	put_le64(word, c->tail);
	pmem_map_store8(d->params.map, c->word_off, word);
	if (!c->logged)
		data_note_range(d, c->word_off, sizeof(word));
	c->append = APPEND_DONE;
}

void
data_append_store(struct data *d, struct commit *c, const struct wire_entry *en)
{
	append_bytes(d, c, en);
	append_word(d, c);
}

bool
data_append(struct data *d, struct commit *c, const struct wire_entry *en)
{
	if (c->append == APPEND_PLACED) {
		append_word(d, c);
		return false;
	}
	data_trim_meet(d, en->off, sizeof(uint64_t), false);
	if (!data_append_choose(d, c, en))
		return false;
	if (!data_back_or_fail(d, c->place, en->len) || !data_back_or_fail(d, c->word_off, 8)) {
		c->append = APPEND_NONE;
		return false;
	}
	append_bytes(d, c, en);
	return true;
}
