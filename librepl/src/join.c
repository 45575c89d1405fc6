/* SPDX-License-Identifier: BSD-3-Clause */
/* Getting a replica back and taking a lost one's remote away: what its keeper does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "dirty.h"
#include "hold.h"
#include "keeper_impl.h"
#include "pending.h"
#include "reason.h"
#include "repl_lanes.h"
#include "ship.h"
#include "siblings.h"
#include "statusd.h"

#define JOIN_LOOK_MS 50U
#define PROFILES_MAX 16U

/* ---- connecting ---- */

static struct fsm_event
join_failed(struct keeper *k, enum reason_phase phase, const struct err *e)
{
	/* What a pause has cut short says nothing of the target. */
	atomic_store(&k->p->why, atomic_load(&k->p->paused) ? REPL_REASON_PAUSED
							    : (int)reason_of_error(e, phase));
	return (struct fsm_event){.kind = FSM_FAILED, .status = e->code};
}

/* What a target refuses it refuses until a person has decided: it is told what by, and what
 * helps is in the text already. */
static struct fsm_event
join_open_failed(struct keeper *k, struct err *e)
{
	struct fsm_event ev = join_failed(k, REASON_OPEN, e);
	char text[TARGET_TEXT_MAX];
	struct err why = *e;

	/* Of a set nobody is there to decide: replctl does not reach its program. */
	if ((why.code != REPL_E_REFUSED || k->r->set) && why.code != REPL_E_DIVERGED)
		return ev;
	target_format(&k->r->cfg->targets[k->replica], text, sizeof(text));
	(void)err_set(e, why.code, "%s: %s", text, why.text);
	ev.kind = FSM_REFUSED;
	return ev;
}

/* Of a set it is the generation in common, which was told to others while this one was away. */
static int
join_chain(struct keeper *k, struct err *e)
{
	struct generation chain;

	if (!k->r->set)
		return 0;
	if (siblings_generation(k->r, &chain, e))
		return e->code;
	pthread_mutex_lock(&k->r->lock);
	k->r->generation = chain;
	pthread_mutex_unlock(&k->r->lock);
	return 0;
}

/*
 * Each who opens it for writing counts one on. Others that did so since may have made it equal to
 * an older file of the generation that it has, and not have come to say so; and one of an earlier
 * session may have been put in its place. Of either, what is marked, or was compared, in that
 * generation speaks of another copy. Of what is opened now that counts, whatever comes of it.
 */
static void
join_recognize(struct keeper *k)
{
	uint32_t epoch = remote_epoch(k->joining);

	if (epoch == 0)
		return;
	pthread_mutex_lock(&k->r->lock);
	if (k->p->epoch && epoch != k->p->epoch + 1 && dirty_tracked(k->r->dirty, k->replica))
		dirty_forsake(k->r->dirty, k->replica);
	k->p->epoch = epoch;
	pthread_mutex_unlock(&k->r->lock);
}

/* What the pool and the dirty map say of each other. */
static void
join_judge(struct keeper *k, struct judgement *out)
{
	const struct sidecar *meta = &remote_info(k->joining)->meta;
	struct judge_input in = {.replica = meta};
	struct sidecar mine;

	pthread_mutex_lock(&k->r->lock);
	mine = k->r->local.meta;
	/* A set keeps no record of its own: that it is this pool is known by now. */
	if (k->r->set)
		mine.pool_uuid = meta->pool_uuid;
	mine.generation = k->r->generation;
	in.local = &mine;
	if (dirty_found(k->r->dirty, k->replica, &meta->generation.current) == DIRTY_TRUSTED) {
		in.base = &meta->generation.current;
		in.trusted = true;
		in.dirty_bytes = dirty_bytes(k->r->dirty, k->replica);
	}
	pthread_mutex_unlock(&k->r->lock);
	replica_judge(&in, out);
}

static struct fsm_event
join_refused(struct keeper *k, const struct judgement *j, struct err *e)
{
	char text[TARGET_TEXT_MAX];

	target_format(&k->r->cfg->targets[k->replica], text, sizeof(text));
	/* What helps elsewhere is refused of a set, whose user is told by librpmem. */
	(void)err_set(e, REPL_E_DIVERGED, "%s: %s; nothing was changed%s%s", text, j->why,
		      k->r->set ? "" : "; next: ", k->r->set ? "" : j->next);
	atomic_store(&k->p->why, (int)reason_of_judge(j->reason));
	return (struct fsm_event){
		.kind = FSM_REFUSED, .status = REPL_E_DIVERGED, .reason = (int)j->reason};
}

static int
join_lanes(struct keeper *k, struct err *e)
{
	int rc = remote_lanes_open_bare(k->joining, k->r->lane_count, e);

	if (!rc)
		rc = remote_lanes_check(k->joining, k->r->lane_count, e);
	if (!rc)
		remote_bind(k->joining, k->r->mem, &k->cancel);
	return rc;
}

struct fsm_event
keeper_connect(struct keeper *k, struct err *e)
{
	const struct remote_hooks hooks = {.cancel = &k->cancel, .fds = &k->fds, .lanes = true};
	const struct repl_config *c = k->r->cfg;
	struct judgement j = {0};
	bool made = false;
	int rc;

	if (remote_new(c, &c->targets[k->replica], &hooks, &k->joining, e))
		return join_failed(k, REASON_CONNECT, e);
	remote_bound(k->joining, &k->r->until_ns);
	remote_set_op_timeout(k->joining, repl_connect_ms(c));
	if (ship_queues(k->r, k->replica))
		remote_queue(k->joining);
	else
		remote_wait(k->joining);
	remote_keep_journal(k->joining);
	rc = k->r->set ? repl_set_open_again(k->r, k->joining, e)
		       : repl_open_pool(k->r, k->joining, &made, e);
	join_recognize(k);
	if (rc)
		return join_open_failed(k, e);
	if (join_chain(k, e))
		return join_failed(k, REASON_OPEN, e);
	join_judge(k, &j);
	if (j.verdict == JUDGE_REFUSE)
		return join_refused(k, &j, e);
	if (join_lanes(k, e))
		return join_failed(k, REASON_OPEN, e);
	remote_set_op_timeout(k->joining, c->op_timeout_ms);
	return (struct fsm_event){.kind = FSM_CONNECTED, .verdict = j.verdict};
}

/* ---- the handle, as a resync sees it ---- */

static int
host_hold(void *arg, uint64_t deadline_ns, struct breath breath, struct err *e)
{
	struct keeper *k = arg;
	const struct hold_wait wait = {
		.deadline_ns = deadline_ns, .flag = &k->cancel, .breath = breath};
	int rc = hold_take(k->r, k->replica, &wait, e);

	k->holding = rc == 0;
	return rc;
}

void
keeper_release(struct keeper *k)
{
	k->holding = false;
	hold_release(k->r);
}

static void
host_release(void *arg)
{
	keeper_release(arg);
}

static bool
host_cancelled(void *arg)
{
	struct keeper *k = arg;
	bool torn = remote_info(k->joining)->meta.state == SIDECAR_INCONSISTENT;
	int now = torn ? REPL_DATA_INCONSISTENT : REPL_DATA_OUTDATED;

	if (atomic_exchange(&k->p->data, now) != now)
		statusd_changed(k->r->statusd, k->replica);
	return atomic_load(&k->cancel) != 0;
}

/* The median of the drains since the last look; within its bucket as if they were spread evenly. */
static uint64_t
host_foreground_ns(void *arg)
{
	struct keeper *k = arg;
	uint64_t fresh[REPL_HIST_BUCKETS], total = 0, below = 0;

	for (unsigned b = 0; b < REPL_HIST_BUCKETS; b++) {
		uint64_t now = 0;

		for (unsigned i = 0; i < k->r->lane_count; i++)
			now += atomic_load_explicit(&k->r->slots[i].latency_ns[b],
						    memory_order_relaxed);
		fresh[b] = now - k->latency_seen[b];
		k->latency_seen[b] = now;
		total += fresh[b];
	}
	for (unsigned b = 0; b < REPL_HIST_BUCKETS && total; b++) {
		if (below + fresh[b] > total / 2)
			return (1ULL << b) + (1ULL << b) * (total / 2 - below) / fresh[b];
		below += fresh[b];
	}
	return 0;
}

static uint64_t
host_size(void *arg)
{
	struct keeper *k = arg;

	return atomic_load(&k->r->size);
}

static bool
host_direct(void *arg, bool blank)
{
	struct keeper *k = arg;

	if (blank)
		repl_direct_note(k->r, k->replica);
	return blank || repl_direct_begin(k->r, k->replica, true);
}

static const struct generation *
host_chain(void *arg)
{
	struct keeper *k = arg;

	/* It has been begun, and no new one is made: this can't fail any more. */
	(void)join_chain(k, NULL);
	pthread_mutex_lock(&k->r->lock);
	k->told = k->r->generation;
	/* However that ends: it may have heard it. */
	k->p->told = k->told.current;
	pthread_mutex_unlock(&k->r->lock);
	return &k->told;
}

/* ---- resync ---- */

static enum resync_what
resync_what_of(enum judge_verdict v)
{
	return v == JUDGE_FULL ? RESYNC_FULL : v == JUDGE_HASHES ? RESYNC_HASHES : RESYNC_DELTA;
}

/* What it lacks must be noted from here on, whatever was before. */
static int
resync_track(struct keeper *k, struct err *e)
{
	const struct gen_id *has = &remote_info(k->joining)->meta.generation.current;
	int rc = 0;

	pthread_mutex_lock(&k->r->lock);
	if (dirty_track_found(k->r->dirty, k->replica, has))
		rc = err_set(e, REPL_E_NOMEM, "no memory for a dirty map");
	k->p->has = *has;
	pthread_mutex_unlock(&k->r->lock);
	return rc;
}

/* Under r->lock: the others must have a generation that this one does not have. */
static void
join_advance(struct keeper *k, struct siblings *siblings)
{
	uint64_t deadline_ns = repl_loss_deadline(k->r);

	if (siblings)
		siblings_advance(siblings, k->r, deadline_ns);
	else
		(void)repl_advance_locked(k->r, deadline_ns, NULL);
}

/* The replica may have been told the chain: the others get another one. */
static void
resync_doubt(struct keeper *k)
{
	struct siblings *siblings = siblings_lock(k->r);

	pthread_mutex_lock(&k->r->lock);
	join_advance(k, siblings);
	pthread_mutex_unlock(&k->r->lock);
	siblings_unlock(siblings);
	if (k->holding)
		keeper_release(k);
}

static void
installing_set(struct keeper *k, bool installing)
{
	pthread_mutex_lock(&k->r->wake_lock);
	k->installing = installing;
	pthread_mutex_unlock(&k->r->wake_lock);
}

/* It is tried again, and no other writer is in its way. */
static int
join_later(struct err *e, const char *why)
{
	(void)err_set(e, REPL_E_BUSY, "%s", why);
	return err_because(e, REPL_REASON_RESYNCING);
}

struct fsm_event
keeper_resync(struct keeper *k, enum judge_verdict what, struct err *e)
{
	struct resync s = {
		.remote = k->joining,
		.mem = k->r->mem,
		.file = k->r->file,
		.dirty = k->r->dirty,
		.replica = k->replica,
		.host = {.arg = k,
			 .hold = host_hold,
			 .release = host_release,
			 .cancelled = host_cancelled,
			 .foreground_ns = host_foreground_ns,
			 .size = host_size,
			 .direct = host_direct},
		.progress = &k->progress,
		.resume = true,
		.rate = k->r->cfg->resync_rate,
		.no_journal = k->no_journal,
	};
	int rc = resync_track(k, e);

	atomic_store(&k->p->why, REPL_REASON_RESYNCING);
	if (!rc && ship_settling(k->r->ship))
		rc = join_later(e, "other replicas have to catch up first");
	if (!rc && !repl_resync_begin(k->r))
		rc = join_later(e, "repl_grow() is under way");
	else if (!rc && remote_info(k->joining)->meta.pool_size != atomic_load(&k->r->size)) {
		repl_resync_end(k->r);
		rc = join_later(e, "the pool has grown meanwhile");
	}
	if (!rc) {
		/* Else it would tell others of a writer of whom nothing is known. */
		remote_reports(k->joining, keeper_report, k);
		rc = remote_beat(k->joining, e);
		if (!rc)
			rc = resync_run(&s, resync_what_of(what), host_chain, e);
		repl_direct_end(k->r, k->replica);
		/* What has the size of now is installed before the pool may grow. */
		if (rc)
			repl_resync_end(k->r);
		else
			installing_set(k, true);
	}
	if (!rc)
		return (struct fsm_event){.kind = FSM_RESYNCED};
	if (s.in_doubt)
		resync_doubt(k);
	/* A target of an earlier version: the next try does without. */
	if (resync_lacks_journal(e))
		k->no_journal = true;
	return join_failed(k, REASON_RESYNC, e);
}

/* ---- installing ---- */

/*
 * The newest is the first; one that is there already is not kept twice. None
 * is freed before the end, since who asked for it may read it: a target that tells something
 * else each time it comes back is not listened to for ever.
 */
void
repl_note_profile(struct replica *p, char *text)
{
	struct profile_note **at = &p->profiles, *note;
	unsigned count = 0;

	for (; text && *at && strcmp((*at)->text, text) != 0; at = &(*at)->next)
		count++;
	note = *at;
	if (note && text) {
		*at = note->next;
		note->next = p->profiles;
		p->profiles = note;
	}
	if (!text || note || count >= PROFILES_MAX || !(note = malloc(sizeof(*note)))) {
		free(text);
		return;
	}
	*note = (struct profile_note){.next = p->profiles, .text = text};
	p->profiles = note;
}

static bool
none_is_live(const struct repl *r)
{
	bool none = true;

	for (unsigned i = 0; i < r->replica_count; i++)
		none &= atomic_load(&r->replicas[i].lost) != 0;
	return none;
}

void
repl_install(struct repl *r, unsigned replica, struct remote *remote)
{
	struct replica *p = &r->replicas[replica];
	char *text;

	remote_bind(remote, r->mem, &p->lost);
	text = repl_profile_text(remote);
	pthread_mutex_lock(&r->reason_lock);
	p->remote = remote;
	p->reason[0] = p->trouble[0] = '\0';
	repl_note_profile(p, text);
	(void)snprintf(p->provider, sizeof(p->provider), "%s", remote_terms(remote)->provider);
	(void)snprintf(p->provider_why, sizeof(p->provider_why), "%s", remote_terms(remote)->why);
	atomic_store(&p->why, REPL_REASON_NONE);
	atomic_store(&p->data, REPL_DATA_UP_TO_DATE);
	atomic_store(&p->connection, REPL_CONN_CONNECTED);
	atomic_store(&p->replication, REPL_REPL_ESTABLISHED);
	pthread_mutex_unlock(&r->reason_lock);
	atomic_fetch_add(&p->install_count, 1);
	if (none_is_live(r))
		pending_trims_drop(r);
	/* Its lanes look at this, and a shipper may be in one as soon as it is shipped to. */
	atomic_store(&p->lost, 0);
	ship_install(r->ship, replica, remote);
	statusd_changed(r->statusd, replica);
}

/* Another one may have been lost since it was told the chain: it must have what the rest has. */
static int
install_generation(struct keeper *k, struct err *e)
{
	struct repl *r = k->r;

	if (gen_id_equal(&k->told.current, &r->generation.current))
		return 0;
	return remote_pool_mark_by(k->joining, SIDECAR_UP_TO_DATE, &r->generation,
				   repl_loss_deadline(r), e);
}

struct fsm_event
keeper_install(struct keeper *k, struct err *e)
{
	struct repl *r = k->r;
	struct siblings *siblings;
	/* It is ours alone so far, and a loss of others must not wait for its network. */
	int rc = remote_lanes_reopen(k->joining, r->lane_count, e);

	siblings = siblings_lock(r);
	pthread_mutex_lock(&r->lock);
	if (siblings)
		siblings_rejoin(siblings, r);
	if (!rc)
		rc = install_generation(k, e);
	if (!rc) {
		remote_detach(k->joining);
		k->p->has = r->generation.current;
		k->p->told = (struct gen_id){0};
		dirty_untrack(r->dirty, k->replica);
		repl_install(r, k->replica, k->joining);
		k->joining = NULL;
		if (r->set)
			atomic_store(&r->set->unfinished, false);
	} else {
		/* What it was told is no lie, but the others must go on without it. */
		k->p->has = k->told.current;
		k->p->told = r->generation.current;
		(void)dirty_track_found(r->dirty, k->replica, &k->p->has);
		join_advance(k, siblings);
	}
	pthread_mutex_unlock(&r->lock);
	siblings_unlock(siblings);
	keeper_release(k);
	installing_set(k, false);
	repl_resync_end(r);
	return rc ? join_failed(k, REASON_OPEN, e) : (struct fsm_event){.kind = FSM_INSTALLED};
}

/* ---- retiring ---- */

/* Whoever was in a lane when the replica was lost has left it. */
static bool
retire_lanes(struct keeper *k)
{
	for (unsigned i = 0; i < k->r->lane_count; i++) {
		while (!lane_borrow(k->r, i, clock_deadline(JOIN_LOOK_MS)))
			if (atomic_load(&k->r->stop))
				return false;
		lane_leave(k->r, i);
	}
	while (!ship_leave(k->r->ship, k->replica, clock_deadline(JOIN_LOOK_MS)))
		if (atomic_load(&k->r->stop))
			return false;
	return true;
}

static bool
retire_lock(struct repl *r)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	while (pthread_mutex_trylock(&r->grow_lock)) {
		if (atomic_load(&r->stop))
			return false;
		(void)nanosleep(&pause, NULL);
	}
	pthread_mutex_lock(&r->lock);
	return true;
}

/* At the end of the handle who closes it frees it all. */
void
keeper_retire(struct keeper *k)
{
	struct repl *r = k->r;
	struct remote *remote = k->p->remote;

	if (!remote || !retire_lanes(k) || !retire_lock(r))
		return;
	pthread_mutex_lock(&r->reason_lock);
	k->p->remote = NULL;
	remote_traffic_add(remote, &k->p->traffic);
	pthread_mutex_unlock(&r->reason_lock);
	pthread_mutex_unlock(&r->lock);
	pthread_mutex_unlock(&r->grow_lock);
	remote_free(remote, 0);
}
