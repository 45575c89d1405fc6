/* SPDX-License-Identifier: BSD-3-Clause */
#include "ship.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "dirty.h"
#include "ownwait.h"
#include "repl_lanes.h"
#include "ship_impl.h"
#include "words.h"

/* A slice of a large drain: the next can be copied while one is on its way. */
#define SLICE_MAX (1U << 20)

#define PAGE 4096U

/* ---- the lock ---- */

bool
ship_lock(struct ship *s)
{
	return ownwait_lock(&s->lock, &s->r->abandoned) && !s->r->abandoned;
}

void
ship_unlock(struct ship *s)
{
	if (!s->r->abandoned)
		pthread_mutex_unlock(&s->lock);
}

/* ---- deadlines ---- */

static uint64_t
op_ns(const struct ship *s)
{
	return (uint64_t)s->r->cfg->op_timeout_ms * NS_PER_MS;
}

static uint64_t
wait_end(const struct ship *s, uint64_t begin_ns)
{
	return begin_ns + op_ns(s) - op_ns(s) / 4;
}

/* That a replica has at least for what is not its own doing. */
static uint64_t
least_end(const struct ship *s)
{
	return clock_deadline(s->r->cfg->op_timeout_ms / REPL_TELL_SHARE);
}

static uint64_t
later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- who is there ---- */

bool
ship_queues(const struct repl *r, unsigned replica)
{
	return config_queued(r->cfg, replica);
}

bool
ship_serves(const struct ship *s, unsigned replica)
{
	return s && s->policy.served & 1U << replica;
}

/* Those that are sent to. With the lock. */
static uint32_t
ship_live(const struct ship *s)
{
	uint32_t live = 0;

	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++)
		live |= s->q.view[i].open && !atomic_load(&s->r->replicas[i].lost) ? 1U << i : 0;
	return live;
}

static unsigned
count(uint32_t bits)
{
	return (unsigned)__builtin_popcount(bits);
}

/* Without the lock. By status a bound is like a silence: reason, or none. */
static void
ship_lose(struct ship *s, uint32_t replicas, const char *why, enum repl_reason reason,
	  uint64_t end_ns)
{
	struct repl_loss losses[REPL_TARGETS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		if (replicas & 1U << i)
			losses[n++] = (struct repl_loss){.replica = i,
							 .status = REPL_E_TIMEOUT,
							 .why = why,
							 .reason = reason};
	}
	repl_lose_all(s->r, losses, n, end_ns);
}

/* ---- room ---- */

/* The record of the loss of who was waited for takes no more: the others are to get the rest. */
static uint64_t
room_lose_end(const struct ship *s, uint64_t begin_ns)
{
	uint64_t end_ns = begin_ns + op_ns(s) / 8 * 5, loss_ns = repl_loss_deadline(s->r);

	return loss_ns < end_ns ? loss_ns : end_ns;
}

/* The time that all of what a call posts may wait for room. */
struct room_time {
	uint64_t begin_ns, half_ns, end_ns;
};

/* Whatever went by before: who has to make room now has had none of it. */
static void
room_least(const struct ship *s, struct room_time *t)
{
	t->half_ns = later(t->half_ns, least_end(s));
	t->end_ns = later(t->end_ns, least_end(s));
}

static struct room_time
room_begin(const struct ship *s, uint64_t begin_ns, uint64_t latest_ns)
{
	uint64_t least_ns = least_end(s);

	least_ns = least_ns < latest_ns ? least_ns : latest_ns;
	return (struct room_time){.begin_ns = begin_ns,
				  .half_ns = later(begin_ns + op_ns(s) / 2, least_ns),
				  .end_ns = later(wait_end(s, begin_ns), least_ns)};
}

/* What touching pages has taken, since then, is their disk's time. */
static void
room_touched(struct room_time *t, uint64_t since_ns)
{
	uint64_t took_ns = clock_now_ns() - since_ns;

	t->begin_ns += took_ns;
	t->half_ns += took_ns;
	t->end_ns += took_ns;
}

/*
 * Wait until there is room for one more, or nobody without: half of the time, where others that do
 * not lag need some of it as well. True if the lock was given up meanwhile: what was touched is to
 * be touched again, and room to be looked for. False as well where nothing is to be queued any
 * more: ship_lock().
 */
static bool
ship_room(struct ship *s, struct room_time *t)
{
	const struct ship_want all = {.replicas = s->policy.served};
	bool drives = false, waited = false;

	for (; !s->r->abandoned; waited = true) {
		uint64_t now = clock_now_ns();
		uint32_t live = ship_live(s), late;
		bool over = now >= t->end_ns ||
			    (now >= t->half_ns && ack_room_held(&s->policy, &s->q, live, now));

		switch (ack_room(&s->policy, &s->q, live, now, over, &late)) {
		case ACK_ROOM_THERE:
			ship_wait_end(s, &drives);
			return waited;
		case ACK_ROOM_LOSE:
			ship_wait_end(s, &drives);
			ship_unlock(s);
			ship_lose(s, late,
				  over ? "it lags by more than async-lag-bytes or "
					 "async-lag-time, and a drain has waited for it; if "
					 "drains are large, raise op-timeout"
				       : "it lags by more than async-lag-bytes or "
					 "async-lag-time",
				  REPL_REASON_LAG, room_lose_end(s, t->begin_ns));
			room_least(s, t);
			(void)ship_lock(s);
			break;
		default:
			ship_wait(s, &drives, &all, t->end_ns);
		}
	}
	return false;
}

/* ---- posting ---- */

/*
 * Before the lock is taken: a page that is not in memory waits for its disk, which may stall, and
 * keepers ask the queue before they ping.
 */
static void
pages_touch(const uint8_t *mem, uint64_t off, uint64_t len)
{
	for (uint64_t at = off; at < off + len; at += PAGE - at % PAGE)
		(void)__atomic_load_n(mem + at, __ATOMIC_RELAXED);
}

/* One that was synced waits as well, for leave to be written to. */
static void
single_touch(uint8_t *mem, enum lane_kind kind, uint64_t off, bool stores, struct room_time *t)
{
	uint64_t since_ns = clock_now_ns();

	if (stores)
		(void)__atomic_fetch_or((uint64_t *)(void *)(mem + off), 0, __ATOMIC_RELAXED);
	else if (kind == LANE_ATOMIC8)
		pages_touch(mem, off, WORDS_SIZE);
	room_touched(t, since_ns);
}

static unsigned
slice_max(const struct ship *s)
{
	unsigned part = s->r->cfg->async_lag_bytes / 4;

	return part < SLICE_MAX ? part - part % WORDS_SIZE : SLICE_MAX;
}

/* What of count ranges from a place on goes in one slice. */
struct slice {
	const struct range *r;
	unsigned count;
	uint64_t skip; /* of the first */
	unsigned pieces;
	size_t bytes;
};

/* Of a range what a slice has room for: no word is in two. */
static uint64_t
slice_part(uint64_t off, uint64_t len, size_t room)
{
	uint64_t over = (off + room) % WORDS_SIZE;

	if (len <= room)
		return len;
	return room > over ? room - over : 0;
}

/* Add the slice's pieces to fill, or touch them if that is NULL; move the slice on behind it. */
static void
slice_walk(struct slice *sl, size_t max, struct shipment *fill, const uint8_t *mem)
{
	unsigned pieces = 0;
	size_t bytes = 0;

	while (sl->count && bytes < max) {
		uint64_t off = sl->r->off + sl->skip;
		uint64_t len = slice_part(off, sl->r->len - sl->skip, max - bytes);

		if (len == 0)
			break;
		if (fill)
			shipment_add(fill, WIRE_OP_COPY, off, len, mem + off);
		else
			pages_touch(mem, off, len);
		pieces++;
		bytes += len;
		sl->skip += len;
		if (sl->skip == sl->r->len) {
			sl->skip = 0;
			sl->r++;
			sl->count--;
		}
	}
	sl->pieces = pieces;
	sl->bytes = bytes;
}

/* The slice that comes next, of which nothing is taken yet. */
static struct slice
slice_touch(const struct ship *s, const struct slice *rest, size_t max, struct room_time *t)
{
	uint64_t since_ns = clock_now_ns();
	struct slice next = *rest;

	slice_walk(&next, max, NULL, s->r->mem);
	room_touched(t, since_ns);
	return next;
}

/* Something was queued. With the lock. */
static void
ship_arm(struct ship *s)
{
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		if (s->q.view[i].open)
			shipper_arm(&s->shipper[i]);
	}
	ship_queued(s);
}

/* With the lock; *last is the one to await. */
static void
ship_append(struct ship *s, struct shipment *m, struct shipment **last)
{
	shipqueue_append(&s->q, m, clock_now_ns());
	if (*last)
		shipqueue_unref(&s->q, *last);
	*last = m;
	ship_arm(s);
}

static int
post_ranges(struct ship *s, const struct range *r, unsigned n, struct room_time *t,
	    struct shipment **last, struct err *e)
{
	struct slice rest = {.r = r, .count = n};
	size_t max = slice_max(s);

	while (rest.count) {
		struct slice next = slice_touch(s, &rest, max, t);
		struct shipment *m;

		m = shipment_new(next.pieces, next.bytes);
		if (!m)
			return err_set(e, REPL_E_NOMEM, "no memory for what replicas are to get");
		while (ship_lock(s) && ship_room(s, t)) {
			ship_unlock(s);
			(void)slice_touch(s, &rest, max, t);
		}
		if (s->r->abandoned) {
			free(m);
			return 0;
		}
		/* With the lock: what lies behind in the list is never older. */
		slice_walk(&rest, max, m, s->r->mem);
		ship_append(s, m, last);
		ship_unlock(s);
	}
	return 0;
}

/* One that is not made of ranges: 8 bytes in one store, which may be made here as well, or a trim.
 */
static int
post_single(struct ship *s, enum lane_kind kind, const struct range *range,
	    const struct repl_behind *behind, struct room_time *t, struct shipment **last,
	    struct err *e)
{
	struct shipment *m = shipment_new(1, 8);
	uint64_t word;

	if (!m)
		return err_set(e, REPL_E_NOMEM, "no memory for what replicas are to get");
	single_touch(s->r->mem, kind, range->off, behind != NULL, t);
	while (ship_lock(s) && ship_room(s, t)) {
		ship_unlock(s);
		single_touch(s->r->mem, kind, range->off, behind != NULL, t);
	}
	if (s->r->abandoned) {
		free(m);
		return 0;
	}
	if (kind == LANE_ATOMIC8) {
		/* With the lock: no other range that is queued has it before, of which a part may
		 * arrive. */
		if (behind)
			repl_behind_store(s->r, behind);
		word = __atomic_load_n((const uint64_t *)(const void *)(s->r->mem + range->off),
				       __ATOMIC_ACQUIRE);
		shipment_add(m, WIRE_OP_ATOMIC8, range->off, 8, &word);
	} else {
		shipment_add(m, WIRE_OP_TRIM, range->off, range->len, NULL);
	}
	ship_append(s, m, last);
	ship_unlock(s);
	return 0;
}

int
ship_post(struct ship *s, const struct rangeset *first, enum lane_kind kind,
	  const struct range *second, const struct repl_behind *behind, uint64_t begin_ns,
	  uint64_t latest_ns, struct shipment **out, struct err *e)
{
	struct room_time t = room_begin(s, begin_ns, latest_ns);
	int rc = post_ranges(s, first->r, first->count, &t, out, e);

	if (!rc && kind == LANE_PAIR)
		rc = post_ranges(s, second, 1, &t, out, e);
	else if (!rc && (kind == LANE_ATOMIC8 || kind == LANE_TRIM))
		rc = post_single(s, kind, second, behind, &t, out, e);
	/* Who has the part has not got the whole. */
	if (rc && *out) {
		if (ship_lock(s))
			shipqueue_unref(&s->q, *out);
		ship_unlock(s);
		*out = NULL;
	}
	return rc;
}

/* ---- waiting ---- */

/* With the lock. */
static uint32_t
ship_laggards(const struct ship *s)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++)
		bits |= atomic_load(&s->r->replicas[i].behind) ? 1U << i : 0;
	return bits;
}

static uint32_t
lost_mask(const struct repl *r)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < r->replica_count; i++)
		mask |= atomic_load(&r->replicas[i].lost) ? 1U << i : 0;
	return mask;
}

/* With the lock: those left have not enough. */
static void
ship_await_some(struct ship *s, bool *drives, const struct shipment *m, uint32_t left,
		uint64_t end_ns)
{
	uint32_t has = ack_holders(&s->policy, m, ship_live(s), ship_laggards(s));
	unsigned missing = s->policy.needed - count(has), some = count(left);
	const struct ship_want want = {.replicas = left, .count = missing < some ? missing : some};

	ship_wait(s, drives, &want, end_ns);
}

/* With the lock: whether one has it that counts as soon as it is labelled, and makes room first. */
static bool
ship_grows(const struct ship *s, const struct shipment *m, uint32_t left)
{
	bool grows = false;

	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++)
		grows |= (left & m->acked) >> i & 1 &&
			 atomic_load(&s->r->replicas[i].grows_until_ns);
	return grows;
}

/* From now on, of what may be left of a call's time. */
static uint64_t
await_least(const struct ship *s, uint64_t end_ns, uint64_t latest_ns)
{
	uint64_t least_ns = least_end(s);

	return later(end_ns, least_ns < latest_ns ? least_ns : latest_ns);
}

bool
ship_await(struct ship *s, struct shipment *m, uint64_t begin_ns, uint64_t latest_ns)
{
	uint64_t end_ns = await_least(s, wait_end(s, begin_ns), latest_ns);
	uint32_t left = 0, lost, recorded = 0;
	bool enough, drives = false;

	if (!ship_lock(s))
		return false;
	for (;;) {
		left = ack_left(&s->policy, m, ship_live(s), ship_laggards(s), &enough);
		lost = lost_mask(s->r);
		if (ship_grows(s, m, left))
			end_ns = await_least(s, end_ns, latest_ns);
		if (left && clock_now_ns() < end_ns) {
			ship_await_some(s, &drives, m, left, end_ns);
			if (s->r->abandoned)
				return false;
			continue;
		}
		ship_wait_end(s, &drives);
		if (lost == recorded && !atomic_load(&s->r->advancing))
			break;
		/*
		 * Who counts may be lost over the record, or be a laggard by it. And who is told a
		 * generation as one that has all must not lack what returns before that is done.
		 */
		ship_unlock(s);
		repl_await_recorded(s->r);
		if (!ship_lock(s))
			return false;
		recorded = lost;
		/* Nor could a laggard be labelled meanwhile. */
		end_ns = await_least(s, end_ns, latest_ns);
	}
	/* With the lock, before anybody is lost: who lacks it is a laggard from now on. */
	shipqueue_through(&s->q, m->number);
	shipqueue_unref(&s->q, m);
	ship_unlock(s);
	if (left)
		ship_lose(s, left, "the target did not acknowledge in time", REPL_REASON_NONE,
			  begin_ns + op_ns(s));
	return enough;
}

bool
ship_enough(struct ship *s)
{
	bool enough;

	if (!s)
		return true;
	if (!ship_lock(s))
		return false;
	enough = count(s->policy.sync & ship_live(s)) >= s->policy.needed;
	ship_unlock(s);
	return enough;
}

int
ship_few(struct ship *s, struct err *e)
{
	unsigned live;

	if (!ship_lock(s))
		return handle_abandoned(e);
	live = count(s->policy.sync & ship_live(s));
	ship_unlock(s);
	return err_set(e, REPL_E_LOST,
		       "%u of %u replicas are left, a drain needs %u: repl_stat() tells why", live,
		       count(s->policy.sync), s->policy.needed);
}

void
ship_finish(struct ship *s, uint64_t deadline_ns, uint64_t lose_ns)
{
	struct ship_want all = {0};
	bool drives = false;
	uint32_t left;

	if (!s)
		return;
	all.replicas = s->policy.served;
	pthread_mutex_lock(&s->lock);
	for (;;) {
		left = 0;
		for (unsigned i = 0; i < REPL_TARGETS_MAX; i++)
			left |= s->q.view[i].unacked ? 1U << i : 0;
		if (!left || clock_now_ns() >= deadline_ns)
			break;
		ship_wait(s, &drives, &all, deadline_ns);
	}
	ship_wait_end(s, &drives);
	pthread_mutex_unlock(&s->lock);
	ship_lose(s, left, "it did not get all that was drained before the end", REPL_REASON_LAG,
		  lose_ns);
}

/* ---- losing and bringing back ---- */

static void
mark_dropped(void *arg, uint64_t off, uint64_t len)
{
	const struct shipper *p = arg;

	if (p->ship->r->dirty)
		dirty_mark(p->ship->r->dirty, p->replica, off, len);
}

void
ship_lost(struct ship *s, unsigned replica)
{
	if (!ship_serves(s, replica) || !ship_lock(s))
		return;
	shipqueue_close(&s->q, replica, mark_dropped, &s->shipper[replica]);
	s->shipper[replica].broken = false;
	ship_changed(s);
	ship_unlock(s);
}

bool
ship_leave(struct ship *s, unsigned replica, uint64_t deadline_ns)
{
	struct shipper *p;
	bool out;

	if (!ship_serves(s, replica))
		return true;
	p = &s->shipper[replica];
	pthread_mutex_lock(&s->lock);
	while ((p->inside || p->lent) && clock_now_ns() < deadline_ns)
		ship_sleep(s, deadline_ns);
	out = !p->inside && !p->lent;
	if (out)
		p->remote = NULL;
	pthread_mutex_unlock(&s->lock);
	return out;
}

/* With the lock. Who has all tells it: without a POSITION one with less would be called better. */
static void
ship_position(struct ship *s)
{
	struct shipment *empty = shipment_new(0, 0);

	if (!empty)
		return;
	shipqueue_append(&s->q, empty, clock_now_ns());
	shipqueue_unref(&s->q, empty);
	ship_arm(s);
}

void
ship_begin(struct ship *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	ship_position(s);
	pthread_mutex_unlock(&s->lock);
}

void
ship_install(struct ship *s, unsigned replica, struct remote *remote)
{
	struct shipper *p;

	if (!ship_serves(s, replica))
		return;
	p = &s->shipper[replica];
	pthread_mutex_lock(&s->lock);
	assert(!p->inside && !s->q.view[replica].open);
	p->remote = remote;
	p->at = (struct ship_at){0};
	p->begun = false;
	shipper_drop_writes(p);
	shipqueue_open(&s->q, replica);
	ship_position(s);
	pthread_mutex_unlock(&s->lock);
}

/* With the lock, of who wants it: it may be lent. */
static bool
shipper_rests(const struct shipper *p)
{
	return !p->inside && shipper_yields(p);
}

struct lane *
ship_lane_borrow(struct ship *s, unsigned replica, uint64_t deadline_ns)
{
	const struct ship_want want = {.replicas = 1U << replica};
	struct shipper *p = &s->shipper[replica];
	struct lane *l = NULL;
	bool drives = false;

	if (!turns_enter(&p->readers, deadline_ns) || !ship_lock(s))
		return NULL;
	p->wanted = true;
	while (!s->r->abandoned && s->q.view[replica].open && !shipper_rests(p) &&
	       clock_now_ns() < deadline_ns)
		ship_wait(s, &drives, &want, deadline_ns);
	if (s->r->abandoned)
		return NULL;
	ship_wait_end(s, &drives);
	if (s->q.view[replica].open && shipper_rests(p)) {
		p->lent = true;
		l = remote_lane(p->remote, 0);
	}
	p->wanted = false;
	ship_arm(s);
	ship_unlock(s);
	if (!l)
		turns_leave(&p->readers);
	return l;
}

void
ship_lane_return(struct ship *s, unsigned replica)
{
	struct shipper *p = &s->shipper[replica];

	if (!ship_lock(s))
		return;
	p->lent = false;
	/* However readers follow each other, all that is queued gets its turn between two. */
	p->owed = s->q.last;
	/* What has waited for the reader says nothing of the target. */
	p->begun = false;
	ship_changed(s);
	ship_arm(s);
	ship_unlock(s);
	turns_leave(&p->readers);
}

void
ship_lag(struct ship *s, unsigned replica, uint64_t *bytes, uint64_t *ms)
{
	*bytes = *ms = 0;
	if (!ship_serves(s, replica) || !ship_lock(s))
		return;
	*bytes = s->q.view[replica].weight;
	*ms = shipqueue_lag_ns(&s->q, replica, clock_now_ns()) / NS_PER_MS;
	ship_unlock(s);
}

uint64_t
ship_oldest_ms(struct ship *s)
{
	uint64_t oldest = 0, bytes, ms;

	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		ship_lag(s, i, &bytes, &ms);
		oldest = ms > oldest ? ms : oldest;
	}
	return oldest;
}

void
ship_ended(struct ship *s, const struct generation *chain)
{
	if (!s || !ship_lock(s))
		return;
	shipqueue_ended(&s->q, chain);
	ship_unlock(s);
}

bool
ship_behind(struct ship *s, unsigned replica, struct generation *chain)
{
	uint64_t number;

	/* With the lock: no drain counts it between our look and the note of it. */
	if (!ship_serves(s, replica) || !ship_lock(s))
		return false;
	number = shipqueue_behind(&s->q, replica, chain);
	/* One that has caught up is labelled so first. */
	if (number)
		atomic_store(&s->r->replicas[replica].behind, number);
	ship_unlock(s);
	return number != 0;
}

bool
ship_caught_up(struct ship *s, unsigned replica)
{
	uint64_t number;
	bool has;

	/* Asked by who pings: nearly always without the lock. */
	if (!ship_serves(s, replica) || atomic_load(&s->r->replicas[replica].behind) == 0)
		return false;
	pthread_mutex_lock(&s->lock);
	number = atomic_load(&s->r->replicas[replica].behind);
	has = number && shipqueue_has(&s->q, replica, number);
	pthread_mutex_unlock(&s->lock);
	return has;
}

bool
ship_all_have(struct ship *s, uint64_t number)
{
	bool all = true;

	if (!s)
		return true;
	if (!ship_lock(s))
		return false;
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++)
		all &= !s->q.view[i].open || shipqueue_has(&s->q, i, number);
	ship_unlock(s);
	return all;
}

bool
ship_settling(struct ship *s)
{
	bool settling;

	if (!s)
		return false;
	pthread_mutex_lock(&s->lock);
	settling = (ship_laggards(s) & s->policy.sync) != 0;
	pthread_mutex_unlock(&s->lock);
	return settling;
}

void
ship_labelled(struct ship *s, unsigned replica)
{
	pthread_mutex_lock(&s->lock);
	atomic_store(&s->r->replicas[replica].behind, 0);
	ship_changed(s);
	pthread_mutex_unlock(&s->lock);
}

uint32_t
ship_awaited(struct ship *s, uint32_t lost, uint32_t live, uint32_t back)
{
	static const struct ackpolicy none = {0};

	return ack_awaited(s ? &s->policy : &none, lost, live, back);
}

/* ---- construction ---- */

static int
ship_init(struct ship *s, struct err *e)
{
	pthread_condattr_t attr;

	s->driver_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->driver_fd < 0)
		return err_errno(e, REPL_E_LIMIT, errno, "eventfd");
	if (pthread_mutex_init(&s->lock, NULL))
		return err_set(e, REPL_E_NOMEM, "out of memory");
	s->lock_made = true;
	if (pthread_condattr_init(&attr))
		return err_set(e, REPL_E_NOMEM, "out of memory");
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	s->moved_made = pthread_cond_init(&s->moved, &attr) == 0;
	(void)pthread_condattr_destroy(&attr);
	return s->moved_made ? 0 : err_set(e, REPL_E_NOMEM, "out of memory");
}

int
ship_new(struct repl *r, struct ship **out, struct err *e)
{
	uint32_t queued = 0;
	struct ship *s;
	int rc;

	*out = NULL;
	for (unsigned i = 0; i < r->replica_count; i++)
		queued |= ship_queues(r, i) ? 1U << i : 0;
	if (!queued)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	s->r = r;
	s->driver_fd = -1;
	s->policy = (struct ackpolicy){.served = queued,
				       .degrade = r->cfg->on_lag == CONFIG_ON_LAG_DEGRADE,
				       .lag_bytes = r->cfg->async_lag_bytes,
				       .lag_ns = r->cfg->async_lag_ms * NS_PER_MS};
	s->tick_ns = s->policy.lag_ns / 4 < SHIP_TICK_NS ? s->policy.lag_ns / 4 : SHIP_TICK_NS;
	if (r->cfg->ack != ACK_ALL) {
		s->policy.needed = config_needed(r->cfg);
		for (unsigned i = 0; i < r->replica_count; i++)
			s->policy.sync |= r->cfg->async[i] ? 0 : 1U << i;
	}
	rc = ship_init(s, e);
	for (unsigned i = 0; !rc && i < r->replica_count; i++) {
		struct replica *p = &r->replicas[i];

		if (!ship_serves(s, i))
			continue;
		if (p->remote && !atomic_load(&p->lost)) {
			s->shipper[i].remote = p->remote;
			shipqueue_open(&s->q, i);
		}
		rc = shipper_start(s, i, e);
	}
	if (rc)
		ship_free(s);
	else
		*out = s;
	return rc;
}

void
ship_stop(struct ship *s)
{
	if (s && s->lock_made && s->moved_made)
		shippers_stop(s);
}

void
ship_free(struct ship *s)
{
	if (!s)
		return;
	ship_stop(s);
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		shipqueue_close(&s->q, i, NULL, NULL);
		shipper_drop_writes(&s->shipper[i]);
		if (s->shipper[i].readers_made)
			turns_fini(&s->shipper[i].readers);
	}
	if (s->moved_made)
		(void)pthread_cond_destroy(&s->moved);
	if (s->lock_made)
		(void)pthread_mutex_destroy(&s->lock);
	if (s->driver_fd >= 0)
		(void)close(s->driver_fd);
	free(s);
}

void
ship_abandon(struct ship *s)
{
	if (!s)
		return;
	/* The numbers may be other files' when a call goes on that was interrupted. */
	(void)close(s->driver_fd);
	s->driver_fd = -1;
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		if (s->shipper[i].started) {
			(void)close(s->shipper[i].timer_fd);
			s->shipper[i].timer_fd = -1;
		}
	}
	ownwait_lock_anew(&s->lock);
}
