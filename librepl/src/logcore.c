/* SPDX-License-Identifier: BSD-3-Clause */
#include "logcore.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "logscan.h"

#define LOGCORE_NUMBER_MAX (1ULL << 62) /* at open; readers take up to 2^63 */

void
logcore_clear(uint8_t *area)
{
	memset(area + LOGFMT_PAGE, 0, LOGFMT_RING_OFF - LOGFMT_PAGE);
}

void
logcore_format(uint8_t *area, uint64_t size, enum repl_log_kind kind, uint64_t salt)
{
	struct logfmt_header h = {
		.sequence = 1, .area_size = size, .salt = salt, .run = 1, .kind = kind};

	memset(area, 0, LOGFMT_PAGE);
	logfmt_header_encode(area, &h);
}

int
logcore_open(struct logcore *c, uint8_t *area, uint64_t off, uint64_t room, struct err *e)
{
	struct logcore new = {.area = area};
	struct logscan scan;
	int rc = logfmt_header_read(area, off, room, &new.h, &new.other, e);

	if (!rc)
		rc = logscan_run(area, &new.h, &scan, e);
	if (rc)
		return rc;
	if (new.h.run == LOGFMT_RUN_MAX)
		return err_set(e, REPL_E_LIMIT,
			       "the log at %" PRIu64 " was opened %" PRIu32
			       " times: copy it to a new one",
			       off, new.h.run);
	/* No use leads there, and what is written must be read again. */
	if (new.h.sequence > LOGCORE_NUMBER_MAX || scan.tail > LOGCORE_NUMBER_MAX)
		return err_set(e, REPL_E_LIMIT,
			       "the log at %" PRIu64 " has sequence %" PRIu64 " and tail %" PRIu64
			       ", near the end of the numbers: copy it to a new one",
			       off, new.h.sequence, scan.tail);
	new.h.run++;
	new.h.run_start = scan.tail;
	new.base = new.h.head - new.h.head % LOGFMT_PAGE;
	new.settled = logscan_tail_max(&new.h, new.h.head);
	new.next = new.durable = scan.tail;
	new.turn = logfmt_tail_turn(area, new.h.kind);
	*c = new;
	return 0;
}

struct logfmt_span
logcore_header_first(struct logcore *c, struct logfmt_header *h)
{
	struct logfmt_span both = {
		.off = {logfmt_copy_off(c->other), logfmt_copy_off(1 - c->other)},
		.len = {LOGFMT_HEADER_SIZE, LOGFMT_HEADER_SIZE},
	};

	h->sequence++;
	logfmt_header_encode(c->area + both.off[0], h);
	return both;
}

void
logcore_header_second(struct logcore *c, const struct logfmt_header *h)
{
	logfmt_header_encode(c->area + logfmt_copy_off(1 - c->other), h);
	c->other = 0;
}

/* The least area in which so many bytes find room wherever an empty log stands in a page. */
static uint64_t
area_for(uint64_t size)
{
	uint64_t pages = (size + LOGFMT_PAGE - LOGFMT_ALIGN + LOGFMT_PAGE - 1) / LOGFMT_PAGE;

	return LOGFMT_RING_OFF + pages * LOGFMT_PAGE;
}

int
logcore_room(const struct logcore *c, uint64_t size, struct err *e)
{
	uint64_t capacity = logfmt_capacity(c->h.area_size);
	uint64_t room = c->base + capacity - c->next;
	bool empty = c->h.head == c->next && c->base == c->next - c->next % LOGFMT_PAGE;

	if (size <= room)
		return 0;
	/* Who trims and tries again would do so for ever. */
	if (size > capacity || empty)
		return err_set(e, REPL_E_INVAL,
			       "%" PRIu64 " bytes do not fit the log: it has room for %" PRIu64
			       ", empty and from here on %" PRIu64 ": make one of %" PRIu64
			       " bytes, which always has",
			       size, capacity, capacity - c->next % LOGFMT_PAGE, area_for(size));
	return err_set(e, REPL_E_NOSPC,
		       "the log is full: %" PRIu64 " bytes are needed, %" PRIu64
		       " are free: trim it with repl_log_trim()",
		       size, room);
}

uint64_t
logcore_place(struct logcore *c, const void *data, size_t len, uint64_t data_sum)
{
	uint64_t position = c->next;

	logfmt_record_store(c->area, &c->h, position, data, len, data_sum);
	c->next += logfmt_record_size(len);
	return position;
}

void
logcore_group_begin(struct logcore *c, struct logcore_group *g)
{
	assert(c->next > c->durable);
	*g = (struct logcore_group){.from = c->durable, .to = c->next};
	g->settle = g->to > c->settled;
	g->settled = c->base + logfmt_capacity(c->h.area_size);
	g->span = logfmt_span(&c->h, g->from, g->to - g->from);
	g->kind = c->h.kind;
	g->tail_off = logfmt_tail_next(g->kind, c->turn);
}

void
logcore_group_tail(struct logcore *c, const struct logcore_group *g)
{
	logfmt_tail_store(c->area, g->kind, &c->turn, g->to);
}

void
logcore_group_end(struct logcore *c, const struct logcore_group *g)
{
	c->durable = g->to;
	if (g->settle)
		c->settled = g->settled;
}
