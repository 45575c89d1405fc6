/* SPDX-License-Identifier: BSD-3-Clause */
#include "keeper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"
#include "control.h"
#include "keeper_impl.h"
#include "replica_fsm.h"
#include "resync.h"
#include "ship.h"
#include "siblings.h"
#include "statusd.h"
#include "statusdoc.h"
#include "text.h"
#include "thread.h"

#define LABEL_SHARE     4U    /* of the time between two pings that a label may wait for others */
#define KEEPER_CLOSE_MS 1000U /* for an end in order of a session that nobody wants */

/* ---- what can be seen ---- */

static void
keeper_publish(struct keeper *k)
{
	static const struct {
		int connection, replication;
	} seen[] = {
		[FSM_CONNECTING] = {REPL_CONN_CONNECTING, REPL_REPL_DEGRADED},
		[FSM_BACKOFF] = {REPL_CONN_CONNECTING, REPL_REPL_DEGRADED},
		[FSM_RESYNCING] = {REPL_CONN_CONNECTED, REPL_REPL_RESYNCING},
		[FSM_ESTABLISHED] = {REPL_CONN_CONNECTED, REPL_REPL_ESTABLISHED},
		[FSM_PAUSED] = {REPL_CONN_STANDALONE, REPL_REPL_DEGRADED},
		[FSM_STANDALONE] = {REPL_CONN_STANDALONE, REPL_REPL_DEGRADED},
		[FSM_ENDED] = {REPL_CONN_STANDALONE, REPL_REPL_DEGRADED},
	};
	enum fsm_state state = k->fsm.state;

	/* Established is told by the install; a loss since then must not be hidden by it. */
	if (state == FSM_ESTABLISHED || state == FSM_ENDED)
		return;
	/* First, since who sees the state reads this, too. */
	if (state == FSM_RESYNCING)
		resync_progress_begin(&k->progress, 0);
	pthread_mutex_lock(&k->r->reason_lock);
	atomic_store(&k->p->connection, seen[state].connection);
	atomic_store(&k->p->replication, seen[state].replication);
	if (state == FSM_RESYNCING) {
		atomic_store(&k->p->why, REPL_REASON_RESYNCING);
		/* This try has got there: what kept an earlier one from it is over. */
		k->p->trouble[0] = '\0';
	} else if (state == FSM_PAUSED) {
		atomic_store(&k->p->why, REPL_REASON_PAUSED);
	}
	/* A pause that has cut this try short is about to come about. */
	if (state != FSM_PAUSED && !atomic_load(&k->p->paused) &&
	    atomic_load(&k->p->why) == REPL_REASON_PAUSED) {
		atomic_store(&k->p->why, REPL_REASON_CONNECTING);
		(void)snprintf(k->p->reason, sizeof(k->p->reason), "resumed by the operator");
	}
	pthread_mutex_unlock(&k->r->reason_lock);
}

static void
keeper_say(struct keeper *k, char *where, size_t size, const char *why)
{
	pthread_mutex_lock(&k->r->reason_lock);
	text_shorten(where, size, why);
	pthread_mutex_unlock(&k->r->reason_lock);
}

/* ---- wishes ---- */

static bool
keeper_asked(const struct keeper *k)
{
	bool paused = k->fsm.state == FSM_PAUSED;

	return atomic_load(&k->r->stop) || atomic_load(&k->p->paused) != paused ||
	       atomic_load(&k->retry);
}

static struct fsm_event
keeper_wish(struct keeper *k)
{
	struct fsm_event ev = {.kind = FSM_TIMER};

	if (atomic_load(&k->r->stop)) {
		ev.kind = FSM_STOP;
	} else if (atomic_load(&k->p->paused) && k->fsm.state != FSM_PAUSED) {
		ev.kind = FSM_PAUSE;
		keeper_say(k, k->p->reason, sizeof(k->p->reason), "paused by the operator");
	} else if (atomic_exchange(&k->retry, false) || k->fsm.state == FSM_PAUSED) {
		ev.kind = atomic_load(&k->p->paused) ? FSM_TIMER : FSM_RESUME;
	}
	return ev;
}

/* Cut short what is under way. */
static void
keeper_cut(struct keeper *k)
{
	int calm = 0;

	(void)atomic_compare_exchange_strong(&k->cancel, &calm, REPL_E_FAILED);
}

/*
 * What cut an action short was for that one; a stop is for all. So is a pause, but where the
 * replica stands, whose keeper soon looks for himself: it may have come between two actions. It is
 * told first and cuts then, so that one of the two is seen here, or ends what comes.
 */
static void
keeper_calm(struct keeper *k)
{
	bool comes = k->fsm.state == FSM_CONNECTING || k->fsm.state == FSM_RESYNCING;

	atomic_store(&k->cancel, 0);
	if (atomic_load(&k->r->stop))
		atomic_store(&k->cancel, REPL_E_LOST);
	else if (comes && atomic_load(&k->p->paused))
		keeper_cut(k);
}

/* What an established replica's keeper has to see to. One that grows is labelled behind that. */
static bool
keeper_needed(const struct keeper *k)
{
	return atomic_load(&k->p->lost) ||
	       (atomic_load(&k->p->grows_until_ns) == 0 && ship_caught_up(k->r->ship, k->replica));
}

/* Sleep until at_ns, a wish, or in state ESTABLISHED a loss or a laggard that is none any more. */
static void
keeper_sleep(struct keeper *k, uint64_t at_ns)
{
	struct timespec ts = {.tv_sec = (time_t)(at_ns / NS_PER_S),
			      .tv_nsec = (long)(at_ns % NS_PER_S)};
	bool standing = k->fsm.state == FSM_ESTABLISHED;
	int rc = 0;

	pthread_mutex_lock(&k->r->wake_lock);
	while (!keeper_asked(k) && !(standing && keeper_needed(k)) && rc != ETIMEDOUT) {
		if (at_ns == UINT64_MAX)
			rc = pthread_cond_wait(&k->r->wake, &k->r->wake_lock);
		else
			rc = pthread_cond_timedwait(&k->r->wake, &k->r->wake_lock, &ts);
	}
	pthread_mutex_unlock(&k->r->wake_lock);
}

static struct fsm_event
keeper_wait(struct keeper *k, uint64_t until_ns)
{
	keeper_sleep(k, until_ns);
	return keeper_wish(k);
}

/* ---- established ---- */

static struct fsm_event
keeper_lost(struct keeper *k)
{
	return (struct fsm_event){.kind = FSM_LOST, .status = atomic_load(&k->p->lost)};
}

struct json_object *
keeper_report(void *arg)
{
	const struct keeper *k = arg;
	struct json_object *params = json_object_new_object();
	struct repl_stat st = {.struct_size = sizeof(st)};
	struct json_object *report = NULL;

	if (!repl_stat(k->r, k->replica, &st))
		report = statusdoc_report(&st);
	/* For want of memory it goes without. */
	if (control_complete(report))
		control_add(params, "report", report);
	else
		json_object_put(report);
	return params;
}

/* Before the first write to a set its remote is none's for a moment: see set_reopen_lanes(). */
static unsigned
keeper_interval_ms(const struct keeper *k)
{
	unsigned ms = k->r->cfg->heartbeat_interval_ms;

	pthread_mutex_lock(&k->r->reason_lock);
	if (k->p->remote && remote_heartbeat_ms(k->p->remote) < ms)
		ms = remote_heartbeat_ms(k->p->remote);
	pthread_mutex_unlock(&k->r->reason_lock);
	return ms;
}

static void
keeper_ping(struct keeper *k, unsigned ms)
{
	const struct repl_config *c = k->r->cfg;
	struct err e;
	int rc;

	/*
	 * Calls wait until either is recorded, and some of their time is over. The target is to
	 * hear from us also while something else takes long to be recorded.
	 */
	repl_label(k->r, k->replica, clock_deadline(ms / LABEL_SHARE),
		   clock_deadline(c->op_timeout_ms / 2));
	err_clear(&e);
	rc = remote_ping(k->p->remote, keeper_report(k), c->heartbeat_timeout_ms, &k->cancel, &e);
	/* A sign of life that finds no memory is left out; the next one tells if more is wrong. */
	if (rc && rc != REPL_E_NOMEM)
		repl_lose(k->r, k->replica, e.code, e.text, repl_loss_deadline(k->r));
}

/*
 * Ping until it is lost or something else is asked for. Of a set not while it is caught up: that
 * closes its lanes, and its target hears from us by what it is asked for.
 */
static struct fsm_event
keeper_watch(struct keeper *k)
{
	struct repl *r = k->r;

	for (;;) {
		unsigned ms = keeper_interval_ms(k);

		keeper_sleep(k, clock_deadline(ms));
		if (atomic_load(&k->p->lost))
			return keeper_lost(k);
		if (keeper_asked(k))
			return keeper_wish(k);
		keeper_calm(k);
		if (r->set && pthread_mutex_trylock(&r->set->asking))
			continue;
		keeper_ping(k, ms);
		if (r->set)
			pthread_mutex_unlock(&r->set->asking);
	}
}

/* ---- leaving ---- */

static void
keeper_disconnect(struct keeper *k, enum fsm_event_kind why)
{
	bool polite = why == FSM_REFUSED || why == FSM_PAUSE;

	if (k->holding)
		keeper_release(k);
	if (k->joining) {
		if (polite)
			remote_detach(k->joining);
		remote_free(k->joining, polite ? KEEPER_CLOSE_MS : 0);
		k->joining = NULL;
	}
	/* At the end those that are installed are closed by who ends it. */
	if (why == FSM_STOP || repl_set_gives_up(k->r))
		return;
	if (!atomic_load(&k->p->lost))
		repl_lose(k->r, k->replica, REPL_E_LOST, "paused by the operator",
			  repl_loss_deadline(k->r));
	keeper_retire(k);
}

/* ---- the thread ---- */

static struct fsm_event
keeper_failed(struct keeper *k, struct fsm_event ev, const struct err *e)
{
	if (ev.kind == FSM_FAILED)
		keeper_say(k, k->p->trouble, sizeof(k->p->trouble), e->text);
	if (ev.kind == FSM_REFUSED) {
		/* An older trouble, on the way there, would hide it. */
		keeper_say(k, k->p->trouble, sizeof(k->p->trouble), "");
		keeper_say(k, k->p->reason, sizeof(k->p->reason), e->text);
	}
	return ev;
}

static struct fsm_event
keeper_do(struct keeper *k, const struct fsm_action *a)
{
	struct err e;

	err_clear(&e);
	keeper_calm(k);
	switch (a->kind) {
	case FSM_DO_CONNECT:
		return keeper_failed(k, keeper_connect(k, &e), &e);
	case FSM_DO_RESYNC:
		return keeper_failed(k, keeper_resync(k, a->what, &e), &e);
	case FSM_DO_INSTALL:
		return keeper_failed(k, keeper_install(k, &e), &e);
	case FSM_DO_WAIT:
		return keeper_wait(k, a->until_ns);
	default:
		break;
	}
	return k->fsm.state == FSM_ESTABLISHED ? keeper_watch(k) : keeper_wait(k, UINT64_MAX);
}

static uint64_t
keeper_random(void)
{
	uint64_t v = 0;

	/* It spreads tries in time; nothing else rests on it. */
	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
		v = clock_now_ns() * 0x9e3779b97f4a7c15ULL;
	return v;
}

static void
keeper_run(struct keeper *k)
{
	struct fsm_event ev = {.kind = k->first};

	for (;;) {
		struct fsm_action a = fsm_step(&k->fsm, &ev, clock_now_ns(), keeper_random());

		if (a.disconnect)
			keeper_disconnect(k, ev.kind);
		if (a.changed)
			keeper_publish(k);
		atomic_store(&k->p->reconnect_count, k->fsm.reconnect_count);
		/* Also without: the reason may be another one. */
		statusd_changed(k->r->statusd, k->replica);
		if (a.kind == FSM_DO_END || (repl_set_gives_up(k->r) && a.disconnect))
			return;
		ev = keeper_do(k, &a);
	}
}

static void *
keeper_main(void *arg)
{
	struct keeper *k = arg;

	keeper_run(k);
	atomic_store(&k->runs, false);
	return NULL;
}

/* ---- all of them ---- */

static int
keeper_start(struct repl *r, unsigned i, struct err *e)
{
	struct keeper *k = r->replicas[i].keeper;
	int ret;

	if (!k)
		k = calloc(1, sizeof(*k));
	if (!k)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	r->replicas[i].keeper = k;
	k->r = r;
	k->replica = i;
	k->p = &r->replicas[i];
	channel_fds_tell(&k->fds, -1, -1);
	/* A loss that is noticed before the thread is there is one of a replica that stood. */
	k->first = atomic_load(&k->p->lost) && !k->p->remote ? FSM_START : FSM_ADOPT;
	keeper_calm(k);
	fsm_init(&k->fsm, (uint64_t)r->cfg->reconnect_min_ms * NS_PER_MS,
		 (uint64_t)r->cfg->reconnect_max_ms * NS_PER_MS, clock_now_ns());
	atomic_store(&k->runs, true);
	ret = thread_start(&k->thread, keeper_main, k);
	k->started = ret == 0;
	if (!ret)
		return 0;
	atomic_store(&k->runs, false);
	return err_thread(e, ret, "the thread of a replica");
}

int
keepers_start(struct repl *r, struct err *e)
{
	int rc = 0;

	atomic_store(&r->stop, false);
	for (unsigned i = 0; !rc && i < r->replica_count; i++)
		rc = keeper_start(r, i, e);
	return rc;
}

void
keepers_stop(struct repl *r)
{
	atomic_store(&r->stop, true);
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (r->replicas[i].keeper)
			atomic_store(&r->replicas[i].keeper->cancel, REPL_E_LOST);
	}
	if (r->wake_made)
		repl_wake(r);
	for (unsigned i = 0; i < r->replica_count; i++) {
		struct keeper *k = r->replicas[i].keeper;

		if (k && k->started)
			(void)pthread_join(k->thread, NULL);
		if (k)
			k->started = false;
	}
}

bool
keeper_runs(const struct repl *r, unsigned replica)
{
	const struct keeper *k = r->replicas[replica].keeper;

	return k && atomic_load(&k->runs);
}

void
keepers_abandon(struct repl *r)
{
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (r->replicas[i].keeper)
			channel_fds_abandon(&r->replicas[i].keeper->fds);
	}
}

/* ---- one after the other ---- */

/* Laggards lack what those may have that were lost, also where no drain waits for them. */
static bool
any_live(const struct repl *r, bool laggard)
{
	for (unsigned i = 0; i < r->replica_count; i++) {
		const struct replica *p = &r->replicas[i];

		if (atomic_load(&p->lost) == 0 && (atomic_load(&p->behind) != 0) == laggard)
			return true;
	}
	return false;
}

bool
repl_direct_begin(struct repl *r, unsigned replica, bool opened)
{
	uint32_t me = 1U << replica;
	bool live, waits, may;

	if (r->set)
		return siblings_direct_begin(r, opened);
	live = opened && any_live(r, false);
	waits = opened && any_live(r, true);
	pthread_mutex_lock(&r->wake_lock);
	may = live || (!waits && !(r->direct & ~me));
	if (may)
		r->direct |= me;
	pthread_mutex_unlock(&r->wake_lock);
	return may;
}

void
repl_direct_note(struct repl *r, unsigned replica)
{
	if (r->set) {
		siblings_direct_note(r);
		return;
	}
	pthread_mutex_lock(&r->wake_lock);
	r->direct |= 1U << replica;
	pthread_mutex_unlock(&r->wake_lock);
}

void
repl_direct_end(struct repl *r, unsigned replica)
{
	if (r->set) {
		siblings_direct_end(r);
		return;
	}
	pthread_mutex_lock(&r->wake_lock);
	r->direct &= ~(1U << replica);
	pthread_mutex_unlock(&r->wake_lock);
}

/* ---- beside repl_grow() ---- */

bool
repl_resync_begin(struct repl *r)
{
	bool free;

	pthread_mutex_lock(&r->wake_lock);
	free = !r->growing;
	r->resyncing += free;
	pthread_mutex_unlock(&r->wake_lock);
	return free;
}

void
repl_resync_end(struct repl *r)
{
	pthread_mutex_lock(&r->wake_lock);
	r->resyncing--;
	(void)pthread_cond_broadcast(&r->wake);
	pthread_mutex_unlock(&r->wake_lock);
}

int
repl_resync_suspend(struct repl *r, struct err *e)
{
	uint64_t at = clock_deadline(r->cfg->op_timeout_ms);
	struct timespec ts = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)};
	bool other;
	int rc = 0;

	pthread_mutex_lock(&r->wake_lock);
	while (r->growing && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&r->wake, &r->wake_lock, &ts);
	other = r->growing;
	if (!other) {
		r->growing = true;
		for (unsigned i = 0; r->resyncing && i < r->replica_count; i++) {
			/* That takes a moment, and it would have to be made equal once more. */
			if (!r->replicas[i].keeper->installing)
				keeper_cut(r->replicas[i].keeper);
		}
		while (r->resyncing && rc != ETIMEDOUT)
			rc = pthread_cond_timedwait(&r->wake, &r->wake_lock, &ts);
		r->growing = r->resyncing == 0;
		rc = r->growing ? 0 : ETIMEDOUT;
		if (rc)
			(void)pthread_cond_broadcast(&r->wake);
	}
	pthread_mutex_unlock(&r->wake_lock);
	if (!rc)
		return 0;
	return err_set(e, REPL_E_TIMEOUT, "%s has not come to an end: call again",
		       other ? "another thread's repl_grow()" : "a resync");
}

void
repl_resync_resume(struct repl *r)
{
	pthread_mutex_lock(&r->wake_lock);
	r->growing = false;
	(void)pthread_cond_broadcast(&r->wake);
	pthread_mutex_unlock(&r->wake_lock);
}

bool
repl_grows(struct repl *r)
{
	bool grows;

	pthread_mutex_lock(&r->wake_lock);
	grows = r->growing;
	pthread_mutex_unlock(&r->wake_lock);
	return grows;
}

/* ---- the operator ---- */

void
keeper_pause(struct repl *r, unsigned replica)
{
	atomic_store(&r->replicas[replica].paused, true);
	keeper_cut(r->replicas[replica].keeper);
	repl_wake(r);
}

void
keeper_resume(struct repl *r, unsigned replica)
{
	struct keeper *k = r->replicas[replica].keeper;

	atomic_store(&r->replicas[replica].paused, false);
	atomic_store(&k->retry, true);
	repl_wake(r);
}

const struct resync_progress *
keeper_progress(const struct repl *r, unsigned replica)
{
	return &r->replicas[replica].keeper->progress;
}
