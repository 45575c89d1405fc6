/* SPDX-License-Identifier: BSD-3-Clause */
/* Recording the loss of a replica, and waiting until it is back. */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "dirty.h"
#include "ownwait.h"
#include "pending.h"
#include "reason.h"
#include "repl_impl.h"
#include "repl_lanes.h"
#include "ship.h"
#include "siblings.h"
#include "statusd.h"
#include "text.h"

#define LOCK_PAUSE_NS 1000000

#define TELL_LOOK_MS 20U  /* for one answer, before the others' are looked at; for one post */
#define BACK_LOOK_MS 100U /* before it is looked whether this is a child */

static void
replica_set_lost(struct repl *r, struct replica *p, const struct err *why)
{
	if (!repl_reason_lock(r))
		return;
	text_shorten(p->reason, sizeof(p->reason), why->text);
	atomic_store(&p->replication, REPL_REPL_DEGRADED);
	atomic_store(&p->connection, repl_set_gives_up(r) || atomic_load(&p->paused)
					     ? REPL_CONN_STANDALONE
					     : REPL_CONN_CONNECTING);
	atomic_store(&p->why, atomic_load(&p->paused) ? REPL_REASON_PAUSED
						      : (int)reason_of_error(why, REASON_USE));
	atomic_store(&p->data, REPL_DATA_OUTDATED);
	pthread_mutex_unlock(&r->reason_lock);
	if (!atomic_load(&p->paused))
		atomic_fetch_add(&p->error_count, 1);
	/* Before calls see the loss: they mark what they acknowledge without it. */
	if (r->dirty)
		(void)dirty_track(r->dirty, (unsigned)(p - r->replicas), &p->has);
	atomic_store(&p->lost, why->code);
	/* Before anything is acknowledged without it: what is stored after that must not get there.
	 */
	if (p->remote)
		remote_cut(p->remote);
	pending_trims_mark(r, (unsigned)(p - r->replicas));
	ship_lost(r->ship, (unsigned)(p - r->replicas));
	/* With what it had in front of it. */
	if (r->dirty)
		dirty_share(r->dirty, (unsigned)(p - r->replicas));
	/* Only now: no drain counts it any more. */
	atomic_store(&p->behind, 0);
	repl_wake(r);
	statusd_changed(r->statusd, (unsigned)(p - r->replicas));
}

/* Closing the handle gives it less time, beside what this machine's disk takes. */
static uint64_t
deadline_closing(struct repl *r, uint64_t deadline_ns)
{
	uint64_t closing_ns;

	if (!atomic_load(&r->until_ns))
		return deadline_ns;
	closing_ns = closing_end(r, 7);
	return closing_ns < deadline_ns ? closing_ns : deadline_ns;
}

/* That part of the time left. */
static uint64_t
deadline_part(uint64_t deadline_ns, unsigned part, unsigned of)
{
	uint64_t now = clock_now_ns();

	return now >= deadline_ns ? deadline_ns : now + (deadline_ns - now) / of * part;
}

/*
 * Three quarters of the time left for those that are told: what records it here has to be waited
 * for, however slow this machine's disk is, and that says nothing of them.
 */
static uint64_t
deadline_telling(struct repl *r, uint64_t deadline_ns)
{
	uint64_t end_ns = deadline_part(deadline_closing(r, deadline_ns), 3, 4);
	uint64_t least_ns = clock_deadline(r->cfg->op_timeout_ms / REPL_TELL_SHARE);

	return end_ns > least_ns ? end_ns : deadline_closing(r, least_ns);
}

uint64_t
repl_loss_deadline(const struct repl *r)
{
	return clock_deadline(r->cfg->op_timeout_ms / 4);
}

static bool
replica_is_live(const struct replica *p)
{
	return atomic_load(&p->lost) == 0;
}

static unsigned
replicas_live(const struct repl *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->replica_count; i++)
		n += replica_is_live(&r->replicas[i]);
	return n;
}

unsigned
repl_bases_kept(const struct repl *r, struct gen_id *keep)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->replica_count; i++) {
		const struct replica *p = &r->replicas[i];

		if (r->dirty && dirty_base(r->dirty, i, &keep[n]))
			n++;
		keep[n++] = p->has;
		keep[n++] = p->told;
	}
	return n;
}

/*
 * A chain says that all of its generations is there. Who has not all of the last
 * one yet, a laggard, gets the new one as what misses updates: else it would look
 * newer than one that was lost with them. What no drain has returned for is nobody's
 * yet: most have some of that before them, and are none the worse. Nor does its chain
 * name what it has not all of: by force it may be promoted. What it has all of it names:
 * one that was lost in that has no more.
 */
static enum sidecar_state
replica_label(struct repl *r, unsigned replica, struct generation *chain)
{
	*chain = r->generation;
	return ship_behind(r->ship, replica, chain) ? SIDECAR_OUTDATED : SIDECAR_UP_TO_DATE;
}

static int
tell_post(struct repl *r, unsigned replica, uint64_t deadline_ns, struct remote_mark *m,
	  struct err *e)
{
	struct generation chain;
	enum sidecar_state state = replica_label(r, replica, &chain);

	return remote_mark_post(r->replicas[replica].remote, state, &chain, deadline_ns, m, e);
}

static int
tell_take(struct repl *r, unsigned replica, uint64_t deadline_ns, const struct remote_mark *m,
	  bool *there, struct err *e)
{
	struct replica *p = &r->replicas[replica];
	int rc =
		remote_mark_take(p->remote, m, clock_deadline(TELL_LOOK_MS), deadline_ns, there, e);

	if (rc)
		return rc;
	p->has = r->generation.current;
	if (m->state != SIDECAR_OUTDATED && atomic_load(&p->behind))
		ship_labelled(r->ship, replica);
	return 0;
}

static void
tell_failed(struct repl *r, unsigned replica, const struct err *why)
{
	struct replica *p = &r->replicas[replica];

	p->told = r->generation.current;
	replica_set_lost(r, p, why);
}

/* Take the answers as they come; true if one was lost over it. */
static bool
advance_take(struct repl *r, uint32_t waiting, const struct remote_mark *marks,
	     uint64_t deadline_ns)
{
	bool any = false, there;
	struct err why;

	while (waiting) {
		for (unsigned i = 0; i < r->replica_count; i++) {
			if (!(waiting >> i & 1))
				continue;
			err_clear(&why);
			if (tell_take(r, i, deadline_ns, &marks[i], &there, &why) && there) {
				tell_failed(r, i, &why);
				any = true;
			}
			if (there)
				waiting &= ~(1U << i);
		}
	}
	return any;
}

/*
 * One whose last request hangs leaves half of the time for the answers. Who comes behind it may
 * just be asked something by its keeper, and gets a look of its own.
 */
static uint64_t
deadline_posting(uint64_t half_ns)
{
	uint64_t least_ns = clock_deadline(TELL_LOOK_MS);

	return half_ns > least_ns ? half_ns : least_ns;
}

/* At once. */
static bool
advance_those(struct repl *r, uint32_t those, uint64_t deadline_ns)
{
	struct remote_mark marks[REPL_TARGETS_MAX];
	uint64_t half_ns = deadline_part(deadline_ns, 1, 2);
	uint32_t waiting = 0;
	bool any = false;
	struct err why;

	for (unsigned i = 0; i < r->replica_count; i++) {
		if (!(those >> i & 1) || !replica_is_live(&r->replicas[i]))
			continue;
		err_clear(&why);
		if (tell_post(r, i, deadline_posting(half_ns), &marks[i], &why)) {
			tell_failed(r, i, &why);
			any = true;
		} else {
			waiting |= 1U << i;
		}
	}
	return advance_take(r, waiting, marks, deadline_ns) || any;
}

static void
await_grown(const struct replica *p, uint64_t until_ns)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

	while (atomic_load(&p->grows_until_ns) && clock_now_ns() < until_ns)
		(void)nanosleep(&pause, NULL);
}

/*
 * It answers a growth first, which has a deadline of its own, and this behind it, which says what
 * it has then. Nothing may be acknowledged before, so that all who wait for this wait as for the
 * local disk.
 */
static bool
advance_grown(struct repl *r, unsigned replica, uint64_t grows_until_ns, uint64_t deadline_ns)
{
	uint64_t until_ns = deadline_closing(r, grows_until_ns), least_ns;
	struct remote_mark marks[REPL_TARGETS_MAX];
	struct err why;
	int rc;

	if (!replica_is_live(&r->replicas[replica]))
		return false;
	err_clear(&why);
	diskclock_begin(&r->local.disk);
	await_grown(&r->replicas[replica], until_ns);
	rc = tell_post(r, replica, until_ns > deadline_ns ? until_ns : deadline_ns, &marks[replica],
		       &why);
	diskclock_end(&r->local.disk);
	if (rc) {
		tell_failed(r, replica, &why);
		return true;
	}
	least_ns = deadline_closing(r, clock_deadline(r->cfg->op_timeout_ms / REPL_TELL_SHARE));
	return advance_take(r, 1U << replica, marks,
			    least_ns > deadline_ns ? least_ns : deadline_ns);
}

/* Tell all that are not lost; true if one was lost over it. */
static bool
advance_replicas(struct repl *r, uint64_t deadline_ns)
{
	uint64_t grows_until_ns[REPL_TARGETS_MAX];
	uint32_t grow = 0;
	bool any;

	for (unsigned i = 0; i < r->replica_count; i++) {
		grows_until_ns[i] = atomic_load(&r->replicas[i].grows_until_ns);
		grow |= (uint32_t)(grows_until_ns[i] != 0) << i;
	}
	any = advance_those(r, ~grow, deadline_ns);
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (grow >> i & 1)
			any |= advance_grown(r, i, grows_until_ns[i], deadline_ns);
	}
	return any;
}

/* On media, or nobody has read of it there. */
static int
record_store(struct repl *r, struct err *e)
{
	int rc = local_store(&r->local, e);

	atomic_store(&r->unrecorded, rc != 0);
	if (!rc && r->dirty)
		dirty_recorded(r->dirty);
	return rc;
}

int
repl_advance_locked(struct repl *r, uint64_t deadline_ns, struct err *e)
{
	struct gen_id keep[REPL_BASES_MAX], id;
	int rc;

	/*
	 * One that was lost over it may have the new generation: the others need another. So
	 * do we, also when none is left: what we go on with it lacks.
	 */
	atomic_store(&r->advancing, true);
	do {
		if (r->dirty)
			dirty_note_bases(r->dirty);
		rc = local_new_id(&id, e);
		if (rc)
			break;
		gen_advance_keeping(&r->generation, &id, keep, repl_bases_kept(r, keep));
		ship_ended(r->ship, &r->generation);
		/* Ours first: if we die in between, the replicas are behind, not ahead. */
		r->local.meta.generation = r->generation;
		rc = record_store(r, e);
		/* After a loss it matters more that the replicas can be told apart. */
		if (rc && !r->ready)
			break;
		/* Those that are well have answered long before the others are given up. */
	} while (advance_replicas(r, deadline_telling(r, deadline_ns)));
	atomic_store(&r->advancing, false);
	return rc;
}

/*
 * What is acknowledged without a replica is in a generation that only our record names. Without
 * that the file would look older than a replica that others have gone on from.
 */
void
repl_record_again(struct repl *r)
{
	/* One that has come back has another generation. */
	bool bases = r->dirty && dirty_bases_due(r->dirty);

	if ((!atomic_load(&r->unrecorded) && !bases) || !repl_lock_own(r))
		return;
	if (atomic_load(&r->unrecorded))
		(void)record_store(r, NULL);
	if (bases)
		dirty_note_bases(r->dirty);
	pthread_mutex_unlock(&r->lock);
}

static uint32_t
replicas_lost(const struct repl *r)
{
	uint32_t lost = 0;

	for (unsigned i = 0; i < r->replica_count; i++)
		lost |= (uint32_t)!replica_is_live(&r->replicas[i]) << i;
	return lost;
}

int
repl_record_doubt(struct repl *r, struct err *e)
{
	const char *why;
	int rc = 0;

	if (!repl_lock_own(r))
		return 0;
	if (dirty_disown(r->dirty)) {
		r->believed = UINT32_MAX;
		(void)repl_advance_locked(r, repl_loss_deadline(r), NULL);
	}
	/* Who is there, or was since, has what no record of ours names. */
	r->believed &= replicas_lost(r);
	if (r->believed && dirty_untold(r->dirty))
		(void)record_store(r, NULL);
	if (dirty_untold(r->dirty) && (r->believed || !atomic_load(&r->unrecorded))) {
		(void)dirty_media_ok(r->dirty, &why);
		rc = err_set(e, REPL_E_IO,
			     "%s can't be written, and a replica is away that would pass for up to "
			     "date without this, should the program die: make it writable, or get "
			     "the replica back (%s)",
			     r->local.path, why);
		(void)err_because(e, REPL_REASON_LOCAL);
	}
	pthread_mutex_unlock(&r->lock);
	return rc;
}

static int
none_is_told(struct repl *r, struct err *e)
{
	int rc;

	if (!repl_reason_lock(r))
		return handle_abandoned(e);
	rc = err_set(e, REPL_E_LOST, "no replica could be told its generation: %s",
		     r->replicas[0].reason);
	pthread_mutex_unlock(&r->reason_lock);
	return rc;
}

int
repl_tell(struct repl *r, const struct generation *chain, uint64_t deadline_ns, struct err *e)
{
	int rc = 0;

	if (!repl_lock_own(r))
		return handle_abandoned(e);
	r->generation = *chain;
	(void)advance_replicas(r, deadline_closing(r, deadline_ns));
	if (replicas_live(r) == 0)
		rc = none_is_told(r, e);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int
repl_advance(struct repl *r, uint64_t deadline_ns, struct err *e)
{
	unsigned before;
	int rc;

	if (!repl_lock_own(r))
		return handle_abandoned(e);
	before = replicas_live(r);
	rc = repl_advance_locked(r, deadline_ns, e);
	if (!rc && before && replicas_live(r) == 0)
		rc = none_is_told(r, e);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

bool
repl_lock_own(struct repl *r)
{
	return ownwait_lock(&r->lock, &r->abandoned);
}

bool
repl_reason_lock(struct repl *r)
{
	return ownwait_lock(&r->reason_lock, &r->abandoned);
}

void
repl_lose_all(struct repl *r, const struct repl_loss *losses, unsigned count, uint64_t deadline_ns)
{
	struct siblings *siblings;
	struct err why;
	bool any = false;

	if (r->abandoned)
		return;
	siblings = siblings_lock(r);
	if (!repl_lock_own(r)) {
		siblings_unlock(siblings);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		struct replica *p = &r->replicas[losses[i].replica];

		if (!replica_is_live(p))
			continue;
		(void)err_set(&why, losses[i].status, "%s", losses[i].why);
		(void)err_because(&why, losses[i].reason);
		replica_set_lost(r, p, &why);
		any = true;
	}
	/* Without a generation of their own the rest could not be told from those. */
	if (any && siblings)
		siblings_advance(siblings, r, deadline_ns);
	else if (any && r->ready && !atomic_load(&r->stop))
		(void)repl_advance_locked(r, deadline_ns, NULL);
	pthread_mutex_unlock(&r->lock);
	siblings_unlock(siblings);
}

void
repl_lose(struct repl *r, unsigned replica, int status, const char *why, uint64_t deadline_ns)
{
	const struct repl_loss loss = {.replica = replica, .status = status, .why = why};

	repl_lose_all(r, &loss, 1, deadline_ns);
}

/* Not by clocklock: see remote_lock_by(). */
static bool
repl_lock_by(struct repl *r, uint64_t until_ns)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

	while (pthread_mutex_trylock(&r->lock)) {
		if (clock_now_ns() >= until_ns)
			return false;
		(void)nanosleep(&pause, NULL);
	}
	return true;
}

void
repl_label(struct repl *r, unsigned replica, uint64_t until_ns, uint64_t deadline_ns)
{
	struct replica *p = &r->replicas[replica];
	struct generation chain;
	enum sidecar_state state;
	struct err why;

	if (!ship_caught_up(r->ship, replica) || !repl_lock_by(r, until_ns))
		return;
	err_clear(&why);
	/* One that grows would have to be waited for: at the next ping. */
	if (replica_is_live(p) && ship_caught_up(r->ship, replica) &&
	    atomic_load(&p->grows_until_ns) == 0) {
		state = replica_label(r, replica, &chain);
		/* Should it hang, the others must have time to hear of it. */
		if (remote_pool_mark_by(p->remote, state, &chain, deadline_part(deadline_ns, 1, 2),
					&why))
			replica_set_lost(r, p, &why);
		else if (state == SIDECAR_UP_TO_DATE)
			ship_labelled(r->ship, replica);
	}
	if (why.code && r->ready && !atomic_load(&r->stop))
		(void)repl_advance_locked(r, deadline_ns, NULL);
	pthread_mutex_unlock(&r->lock);
}

void
repl_await_recorded(struct repl *r)
{
	if (repl_lock_own(r))
		pthread_mutex_unlock(&r->lock);
}

/* ---- waiting ---- */

void
repl_wake(struct repl *r)
{
	if (!ownwait_lock(&r->wake_lock, &r->abandoned))
		return;
	(void)pthread_cond_broadcast(&r->wake);
	pthread_mutex_unlock(&r->wake_lock);
}

/* The first of those that were lost and that the call waits for still, or replica_count. */
static unsigned
awaited(const struct repl *r, uint32_t lost, const uint64_t *installs)
{
	uint32_t live = 0, back = 0;

	for (unsigned i = 0; i < r->replica_count; i++) {
		const struct replica *p = &r->replicas[i];

		live |= (uint32_t)replica_is_live(p) << i;
		back |= (uint32_t)(atomic_load(&p->install_count) != installs[i]) << i;
	}
	lost = ship_awaited(r->ship, lost, live, back);
	return lost ? (unsigned)__builtin_ctz(lost) : r->replica_count;
}

/* With wake_lock held; a look at a time: a handler may have forked, and nobody wakes its child. */
static void
await_wake(struct repl *r, uint64_t at)
{
	uint64_t look = clock_deadline(BACK_LOOK_MS), until = look < at ? look : at;
	struct timespec ts = {.tv_sec = (time_t)(until / NS_PER_S),
			      .tv_nsec = (long)(until % NS_PER_S)};

	(void)pthread_cond_timedwait(&r->wake, &r->wake_lock, &ts);
}

int
repl_await_back(struct repl *r, struct err *e)
{
	uint64_t at = clock_deadline(r->cfg->block_timeout_ms), installs[REPL_TARGETS_MAX];
	unsigned who = r->replica_count;
	uint32_t lost = 0;

	for (unsigned i = 0; i < r->replica_count; i++) {
		installs[i] = atomic_load(&r->replicas[i].install_count);
		lost |= (uint32_t)!replica_is_live(&r->replicas[i]) << i;
	}
	if (lost == 0)
		return 0;
	if (!ownwait_lock(&r->wake_lock, &r->abandoned))
		return handle_abandoned(e);
	while ((who = awaited(r, lost, installs)) < r->replica_count && clock_now_ns() < at &&
	       !r->abandoned)
		await_wake(r, at);
	/* In the child of a fork it is new, and may not be taken. */
	if (!r->abandoned)
		pthread_mutex_unlock(&r->wake_lock);
	if (who == r->replica_count)
		return 0;
	if (r->abandoned)
		return handle_abandoned(e);
	if (!repl_reason_lock(r))
		return handle_abandoned(e);
	(void)err_set(e, REPL_E_LOST, "replica %u is lost and was not back within %u ms: %s", who,
		      r->cfg->block_timeout_ms, r->replicas[who].reason);
	pthread_mutex_unlock(&r->reason_lock);
	return REPL_E_LOST;
}
