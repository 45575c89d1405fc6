/* SPDX-License-Identifier: BSD-3-Clause */
/* Putting ranges on the wire, each by the method that is planned for it. */
#include "lane_impl.h"

#include "err.h"

#define LANE_FLUSH_CHUNK (1U << 30) /* one FLUSH entry; its length has 32 bits */

/* ---- RMA ---- */

enum plan_method
lane_method(const struct lane *l, uint64_t len)
{
	return plan_choose(l->profile, PLAN_SINGLETON, len, &l->limits).method;
}

/* Post one chunk of a range; false if there is no room or the lane is lost. */
static bool
lane_write_chunk(struct lane *l, uint64_t off, uint64_t len)
{
	struct err e;

	if (!lane_region_ready(l, off) || fab_lane_rma_room(l->fab) == 0)
		return false;
	err_clear(&e);
	if (fab_lane_write(l->fab, l->mem + off, len, off, &e)) {
		lane_fail(l, e.code, e.text);
		return false;
	}
	l->rma_outstanding++;
	lane_count(&l->counters.writes, 1);
	lane_count(&l->counters.bytes, len);
	return true;
}

static uint64_t
chunk_len(uint64_t left, uint64_t max)
{
	return left < max ? left : max;
}

/* All of a range can be written now. */
static bool
lane_room_for(const struct lane *l, uint64_t off, uint64_t len)
{
	unsigned room = fab_lane_rma_room(l->fab);

	if (!lane_region_known(l, off, len))
		return false;
	for (uint64_t n; len > 0 && room > 0; len -= n, off += n, room--)
		n = lane_rma_len(l, off, len);
	return len == 0;
}

int
lane_flush(struct lane *l, uint64_t off, uint64_t len)
{
	if (l->status)
		return 0;
	if (l->phase != LANE_IDLE || lane_method(l, len) == PLAN_MESSAGE ||
	    !lane_room_for(l, off, len) || l->written.count == RANGESET_MAX)
		return rangeset_add(&l->todo, off, len);
	for (uint64_t at = 0, n; at < len && !l->status; at += n) {
		n = lane_rma_len(l, off + at, len - at);
		(void)lane_write_chunk(l, off + at, n);
	}
	return rangeset_add(&l->written, off, len);
}

/* ---- building and sending COMMITs ---- */

/* The entries reserved leave room for the payload of the first, at most inline_max. */
static bool
lane_commit_begin(struct lane *l, size_t payload)
{
	size_t ranges = (size_t)l->todo.count + l->written.count + 2;
	size_t entries = ranges > WIRE_ENTRIES_MAX ? WIRE_ENTRIES_MAX : ranges;
	size_t half = l->msg_size / 2 / WIRE_ENTRY_SIZE;
	size_t room = (l->msg_size - WIRE_HEADER_SIZE - payload) / WIRE_ENTRY_SIZE;
	size_t most = half < room ? half : room;
	uint8_t *buf;

	if (l->building)
		return true;
	if (l->seq_sent - l->seq_acked >= l->depth)
		return false;
	buf = fab_lane_buf(l->fab);
	if (!buf)
		return false;
	wire_commit_begin(&l->commit, buf, l->msg_size,
			  (uint32_t)(entries > most ? most : entries));
	l->building = true;
	return true;
}

void
lane_commit_send(struct lane *l)
{
	struct err e;
	size_t len;

	if (!l->building)
		return;
	l->building = false;
	len = wire_commit_end(&l->commit, l->seq_sent + 1, l->epoch);
	err_clear(&e);
	if (fab_lane_send(l->fab, len, &e)) {
		lane_fail(l, e.code, e.text);
		return;
	}
	l->seq_sent++;
	lane_count(&l->counters.messages, 1);
}

bool
lane_entry(struct lane *l, enum wire_op op, uint64_t off, uint32_t len, const void *data)
{
	struct wire_entry entry = {.off = off, .len = len, .op = (uint8_t)op};
	size_t payload = data ? len : 0;

	if (l->building && !wire_commit_fits(&l->commit, payload))
		lane_commit_send(l);
	if (l->status || !lane_commit_begin(l, payload))
		return false;
	wire_commit_add(&l->commit, &entry, data);
	lane_count(&l->counters.bytes, payload);
	return true;
}

/* ---- posting ranges ---- */

static bool
lane_post_message(struct lane *l, const struct range *r)
{
	uint64_t len;

	while (l->byte_at < r->len) {
		len = r->len;
		if (len > l->limits.message_max)
			len = chunk_len(r->len - l->byte_at, l->limits.inline_max / 2);
		if (!lane_entry(l, WIRE_OP_COPY, r->off + l->byte_at, (uint32_t)len,
				l->mem + r->off + l->byte_at))
			return false;
		l->byte_at += len;
	}
	return true;
}

/* Write what is not yet written of a range, and see to its durability piece by piece. */
static bool
lane_post_rma(struct lane *l, const struct range *r)
{
	bool appliance = lane_method(l, r->len) == PLAN_APPLIANCE;

	while (l->asked_at < r->len) {
		uint64_t end = l->asked_at + chunk_len(r->len - l->asked_at, LANE_FLUSH_CHUNK);

		while (l->byte_at < end) {
			uint64_t at = r->off + l->byte_at;
			uint64_t len = lane_rma_len(l, at, end - l->byte_at);

			if (!lane_write_chunk(l, at, len))
				return false;
			l->byte_at += len;
		}
		if (appliance) {
			l->read_due = true;
			l->read_off = r->off;
		} else if (!lane_entry(l, WIRE_OP_FLUSH, r->off + l->asked_at,
				       (uint32_t)(end - l->asked_at), NULL)) {
			return false;
		}
		l->asked_at = end;
	}
	return true;
}

bool
lane_post_set(struct lane *l, const struct range *r, unsigned count, bool written)
{
	while (l->range_at < count) {
		const struct range *one = &r[l->range_at];

		if (written)
			l->byte_at = one->len;
		if (written || lane_method(l, one->len) != PLAN_MESSAGE) {
			if (!lane_post_rma(l, one))
				return false;
		} else if (!lane_post_message(l, one)) {
			return false;
		}
		l->range_at++;
		l->byte_at = l->asked_at = 0;
	}
	return true;
}

bool
lane_post_read(struct lane *l)
{
	struct err e;

	if (!l->read_due)
		return true;
	if (!lane_region_ready(l, l->read_off) || fab_lane_rma_room(l->fab) == 0)
		return false;
	err_clear(&e);
	if (fab_lane_read(l->fab, l->scratch, 1, l->read_off, &e)) {
		lane_fail(l, e.code, e.text);
		return false;
	}
	l->rma_outstanding++;
	l->read_due = false;
	l->read_posted = true;
	lane_count(&l->counters.reads, 1);
	return true;
}

bool
lane_post_trim(struct lane *l)
{
	do {
		uint64_t len = chunk_len(l->second.len - l->byte_at, LANE_FLUSH_CHUNK);

		if (!lane_entry(l, WIRE_OP_TRIM, l->second.off + l->byte_at, (uint32_t)len, NULL))
			return false;
		l->byte_at += len;
	} while (l->byte_at < l->second.len);
	return true;
}
