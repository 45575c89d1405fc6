/* SPDX-License-Identifier: BSD-3-Clause */
#include "pending.h"

#include "clock.h"
#include "dirty.h"
#include "ship.h"

bool
pending_note(struct lane_slot *slot, uint64_t off, uint64_t len)
{
	return rangeset_add(&slot->pending, off, len) >= 0;
}

/* One range over all is more than was trimmed, and will do. */
static void
trims_add(struct rangeset *s, uint64_t off, uint64_t len)
{
	uint64_t end;

	if (len == 0 || rangeset_add(s, off, len) >= 0)
		return;
	end = s->r[s->count - 1].off + s->r[s->count - 1].len;
	if (off + len > end)
		end = off + len;
	if (s->r[0].off < off)
		off = s->r[0].off;
	rangeset_clear(s);
	(void)rangeset_add(s, off, end - off);
}

void
pending_trim(struct repl *r, unsigned lane, uint64_t off, uint64_t len)
{
	/* A target that dies with us has not made it zero, however long ago it was told. */
	if (r->dirty)
		dirty_pin(r->dirty, off, len);
	trims_add(&r->slots[lane].trims, off, len);
}

/*
 * A bit for each that is lost. With one that another thread loses at this moment
 * its map begins before the lock is free; what is acknowledged until then it has.
 */
static uint32_t
lost_mask(struct repl *r)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < r->replica_count; i++)
		mask |= (uint32_t)(atomic_load(&r->replicas[i].lost) != 0) << i;
	if (mask == 0)
		return 0;
	pthread_mutex_lock(&r->lock);
	mask = 0;
	for (unsigned i = 0; i < r->replica_count; i++)
		mask |= (uint32_t)(atomic_load(&r->replicas[i].lost) != 0) << i;
	pthread_mutex_unlock(&r->lock);
	return mask;
}

static void
mark(struct repl *r, uint32_t mask, const struct range *range, unsigned count)
{
	for (unsigned n = 0; mask && n < count; n++) {
		if (range[n].len == 0)
			continue;
		for (unsigned i = 0; i < r->replica_count; i++)
			if (mask >> i & 1)
				dirty_mark(r->dirty, i, range[n].off, range[n].len);
		(void)dirty_active(r->dirty, range[n].off, range[n].len);
	}
}

static bool
active(struct repl *r, const struct range *range, unsigned count)
{
	bool waited = false;

	for (unsigned n = 0; n < count; n++)
		if (range[n].len)
			waited |= dirty_active(r->dirty, range[n].off, range[n].len);
	return waited;
}

/* Whoever has waited may have ranges that are in no log. */
static int
active_end(struct repl *r, bool waited, struct err *e)
{
	return waited && dirty_untold(r->dirty) ? repl_record_doubt(r, e) : 0;
}

int
pending_store(struct repl *r, const struct range *range, unsigned count, unsigned *turn,
	      struct err *e)
{
	int rc;

	*turn = 0;
	if (!r->dirty)
		return 0;
	*turn = dirty_store_begin(r->dirty);
	rc = active_end(r, active(r, range, count), e);
	if (rc)
		dirty_store_end(r->dirty, *turn);
	return rc;
}

void
pending_stored(struct repl *r, unsigned turn)
{
	if (r->dirty)
		dirty_store_end(r->dirty, turn);
}

uint64_t
pending_trims(struct repl *r)
{
	return r->dirty ? dirty_pins(r->dirty) : 0;
}

void
pending_trimmed(struct repl *r, unsigned lane, uint64_t trims)
{
	struct lane_slot *slot = &r->slots[lane];

	for (unsigned i = 0; i < slot->trims.count; i++)
		trims_add(&slot->settled, slot->trims.r[i].off, slot->trims.r[i].len);
	rangeset_clear(&slot->trims);
	slot->settled_number = slot->shipped_number;
	slot->settled_pins = trims;
	slot->settling = true;
}

/* Those of a queued replica that is lost are noted in its map: it is looked at before that. */
static bool
trims_are_ended(const struct repl *r, const struct lane_slot *slot)
{
	return slot->settling && ship_all_have(r->ship, slot->settled_number);
}

static void
trims_end(struct repl *r, struct lane_slot *slot)
{
	rangeset_clear(&slot->settled);
	slot->settling = false;
	/* One that is lost may have some before it still. */
	if (r->dirty && lost_mask(r) == 0)
		dirty_unpin(r->dirty, slot->settled_pins);
}

int
pending_active(struct repl *r, unsigned lane, const struct range *also, unsigned count,
	       uint64_t *begin_ns, struct err *e)
{
	bool waited;
	int rc;

	if (!r->dirty)
		return 0;
	waited = active(r, r->slots[lane].pending.r, r->slots[lane].pending.count);
	waited |= active(r, also, count);
	rc = active_end(r, waited, e);
	if (waited)
		*begin_ns = clock_now_ns();
	return rc;
}

void
pending_settle_only(struct repl *r, const struct range *also, unsigned count)
{
	if (r->dirty)
		mark(r, lost_mask(r), also, count);
}

void
pending_settle(struct repl *r, unsigned lane, const struct range *also, unsigned count)
{
	struct lane_slot *slot = &r->slots[lane];
	bool ended = trims_are_ended(r, slot);

	if (r->dirty) {
		uint32_t mask = lost_mask(r);

		mark(r, mask, slot->pending.r, slot->pending.count);
		mark(r, mask, slot->trims.r, slot->trims.count);
		mark(r, mask, slot->settled.r, slot->settled.count);
		mark(r, mask, also, count);
	}
	rangeset_clear(&slot->pending);
	if (ended)
		trims_end(r, slot);
}

void
pending_mark(struct repl *r, unsigned lane, unsigned replica)
{
	struct lane_slot *slot = &r->slots[lane];

	if (!r->dirty)
		return;
	mark(r, UINT32_C(1) << replica, slot->pending.r, slot->pending.count);
	mark(r, UINT32_C(1) << replica, slot->trims.r, slot->trims.count);
	mark(r, UINT32_C(1) << replica, slot->settled.r, slot->settled.count);
}
