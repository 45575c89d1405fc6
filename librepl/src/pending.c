/* SPDX-License-Identifier: BSD-3-Clause */
#include "pending.h"

#include "clock.h"
#include "dirty.h"
#include "ownwait.h"
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
	if (!repl_lock_own(r))
		return 0;
	mask = 0;
	for (unsigned i = 0; i < r->replica_count; i++)
		mask |= (uint32_t)(atomic_load(&r->replicas[i].lost) != 0) << i;
	pthread_mutex_unlock(&r->lock);
	return mask;
}

/* Marks are in the activity log as well: what is marked, or queued, is young from now on. */
static void
mark(struct repl *r, uint32_t mask, const struct range *range, unsigned count)
{
	for (unsigned n = 0; n < count; n++) {
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

/* ---- trims ---- */

int
pending_trims_init(struct trims *t)
{
	return pthread_mutex_init(&t->lock, NULL);
}

void
pending_trims_fini(struct trims *t)
{
	(void)pthread_mutex_destroy(&t->lock);
}

/* False in a child that comes back to a call: see ownwait.h. */
static bool
trims_lock(struct repl *r)
{
	return ownwait_lock(&r->trims.lock, &r->abandoned) && !r->abandoned;
}

static void
trims_unlock(struct repl *r)
{
	if (!r->abandoned)
		pthread_mutex_unlock(&r->trims.lock);
}

static bool
any_lost(const struct repl *r)
{
	bool any = false;

	for (unsigned i = 0; i < r->replica_count; i++)
		any |= atomic_load(&r->replicas[i].lost) != 0;
	return any;
}

/* With the lock: forget what has come to its end on the queued replicas as well. */
static void
trims_forget(struct repl *r)
{
	struct trims *t = &r->trims;

	if (!atomic_load(&t->ended) || !ship_all_have(r->ship, t->shipment))
		return;
	rangeset_clear(&t->settling);
	atomic_store(&t->ended, false);
	/* One that is lost may have some of it still. */
	if (!any_lost(r))
		dirty_unpin(r->dirty, t->pins);
}

static void
trims_look(struct repl *r)
{
	if (!trims_lock(r))
		return;
	trims_forget(r);
	trims_unlock(r);
}

void
pending_trim(struct repl *r, uint64_t off, uint64_t len)
{
	if (!r->dirty || len == 0)
		return;
	/* A target that dies with us has not made it zero, however long ago it was told. */
	dirty_pin(r->dirty, off, len);
	if (!trims_lock(r))
		return;
	trims_add(&r->trims.noted, off, len);
	trims_unlock(r);
}

uint64_t
pending_trims_begin(struct repl *r)
{
	struct trims *t = &r->trims;
	uint64_t number;

	if (!r->dirty || !trims_lock(r))
		return 0;
	trims_forget(r);
	for (unsigned i = 0; i < t->noted.count; i++)
		trims_add(&t->settling, t->noted.r[i].off, t->noted.r[i].len);
	rangeset_clear(&t->noted);
	atomic_store(&t->ended, false);
	t->pins = dirty_pins(r->dirty);
	number = ++t->number;
	trims_unlock(r);
	return number;
}

void
pending_trims_end(struct repl *r, uint64_t number, uint64_t shipment)
{
	struct trims *t = &r->trims;

	if (!r->dirty || !trims_lock(r))
		return;
	/* Else another one has begun since, which ends this one's, too. */
	if (t->number == number) {
		t->shipment = shipment;
		atomic_store(&t->ended, true);
		trims_forget(r);
	}
	trims_unlock(r);
}

void
pending_trims_mark(struct repl *r, unsigned replica)
{
	struct trims *t = &r->trims;

	if (!r->dirty || !trims_lock(r))
		return;
	trims_forget(r);
	mark(r, UINT32_C(1) << replica, t->noted.r, t->noted.count);
	mark(r, UINT32_C(1) << replica, t->settling.r, t->settling.count);
	trims_unlock(r);
}

void
pending_trims_drop(struct repl *r)
{
	pthread_mutex_lock(&r->trims.lock);
	rangeset_clear(&r->trims.noted);
	rangeset_clear(&r->trims.settling);
	pthread_mutex_unlock(&r->trims.lock);
}

/* ---- drains ---- */

/* From here on some of what the lane has may be with replicas. */
static void
turn_begin(struct repl *r, struct lane_slot *slot)
{
	if (slot->sends || r->cfg->after_crash != CONFIG_CRASH_DIRTY_MAP)
		return;
	slot->store_turn = dirty_store_begin(r->dirty);
	slot->sends = true;
}

static void
turn_end(struct repl *r, struct lane_slot *slot)
{
	if (slot->sends)
		dirty_store_end(r->dirty, slot->store_turn);
	slot->sends = false;
}

bool
pending_early(struct repl *r, unsigned lane, uint64_t off, uint64_t len)
{
	if (!r->dirty || r->cfg->after_crash != CONFIG_CRASH_DIRTY_MAP)
		return true;
	turn_begin(r, &r->slots[lane]);
	return dirty_logged(r->dirty, off, len);
}

int
pending_active(struct repl *r, unsigned lane, const struct range *also, unsigned count,
	       uint64_t *begin_ns, struct err *e)
{
	struct lane_slot *slot = &r->slots[lane];
	bool waited;
	int rc;

	if (!r->dirty)
		return 0;
	turn_begin(r, slot);
	waited = active(r, slot->pending.r, slot->pending.count);
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
pending_append_end(struct repl *r, unsigned lane, const struct range *also, unsigned count)
{
	struct lane_slot *slot = &r->slots[lane];

	if (!r->dirty)
		return;
	mark(r, lost_mask(r), also, count);
	if (slot->pending.count == 0)
		turn_end(r, slot);
}

void
pending_settle(struct repl *r, unsigned lane, const struct range *also, unsigned count)
{
	struct lane_slot *slot = &r->slots[lane];

	if (r->dirty) {
		uint32_t mask = lost_mask(r);

		mark(r, mask, slot->pending.r, slot->pending.count);
		mark(r, mask, also, count);
		if (atomic_load(&r->trims.ended))
			trims_look(r);
		turn_end(r, slot);
	}
	rangeset_clear(&slot->pending);
}

void
pending_mark(struct repl *r, unsigned lane, unsigned replica)
{
	struct lane_slot *slot = &r->slots[lane];

	if (r->dirty)
		mark(r, UINT32_C(1) << replica, slot->pending.r, slot->pending.count);
}
