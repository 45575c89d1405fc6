/* SPDX-License-Identifier: BSD-3-Clause */
#include "fill.h"

#include "lane_impl.h"
#include "localmem.h"
#include "localread.h"

#define PAGE      4096U
#define PIECE_MIN PAGE /* of a range: less is not put at the end of a message */

bool
fill_has_turn(const struct lane *l)
{
	return l->status || l->seq_sent - l->seq_acked < l->depth;
}

bool
fill_is_quiet(const struct lane *l)
{
	return l->status || l->seq_sent == l->seq_acked;
}

/*
 * A whole message of one range needs one entry: what is reserved and not used costs a move. One
 * without bytes has as many as can be.
 */
int
fill_begin(struct fill *f, struct lane *l, uint64_t len, struct err *e)
{
	uint32_t most = (uint32_t)((l->msg_size - WIRE_HEADER_SIZE) / WIRE_ENTRY_SIZE);
	uint32_t entries = len > 0 ? (uint32_t)(l->msg_size / PIECE_MIN) + 1 : most;
	uint8_t *buf = fab_lane_buf(l->fab);

	if (!buf)
		return err_set(e, REPL_E_FAILED, "a lane has no buffer within its depth");
	if (entries > WIRE_ENTRIES_MAX)
		entries = WIRE_ENTRIES_MAX;
	if (len >= l->msg_size)
		entries = 1;
	wire_commit_begin(&f->message, buf, l->msg_size, entries);
	f->lane = l;
	f->building = true;
	return 0;
}

/*
 * What is cut is cut between pages, which are then written whole, if that leaves the most of it;
 * never amid a word, of which a replica might get one half.
 */
static size_t
cut(uint64_t off, size_t room)
{
	size_t over = (size_t)((off + room) % PAGE);

	return room - (room / 2 > over ? over : over % WORDS_SIZE);
}

size_t
fill_room(const struct fill *f, uint64_t off, uint64_t len)
{
	const struct wire_commit *c = &f->message;
	size_t room = c->entry_count < c->entry_room
			      ? c->size - wire_commit_size(c->entry_room, c->payload_len)
			      : 0;

	if (room < len && room < PIECE_MIN && c->entry_count > 0)
		return 0;
	return len <= room ? (size_t)len : cut(off, room);
}

int
fill_add(struct fill *f, const struct fill_source *from, uint64_t off, size_t len, struct err *e)
{
	struct wire_entry en = {.off = off, .len = (uint32_t)len, .op = WIRE_OP_COPY};
	void *to = wire_commit_next(&f->message);
	const struct localmem m = {.mem = from->mem, .file = from->file};
	size_t got;
	int rc = from->fd < 0 ? localmem_read(&m, to, len, off, &got, e)
			      : localread(from->fd, to, len, off, &got, e);

	if (!rc && got < len)
		rc = localread_short(e);
	if (rc)
		return rc;
	wire_commit_add(&f->message, &en, to);
	lane_count(&f->lane->counters.bytes, len);
	return 0;
}

void
fill_send(struct fill *f, fill_end_fn *end)
{
	struct lane *l = f->lane;
	struct err e;
	size_t len;

	f->building = false;
	err_clear(&e);
	len = end(&f->message, l->seq_sent + 1, l->epoch);
	if (fab_lane_send(l->fab, len, &e)) {
		lane_fail(l, e.code, e.text);
		return;
	}
	l->seq_sent++;
	l->unanswered += len;
	lane_count(&l->counters.messages, 1);
}
