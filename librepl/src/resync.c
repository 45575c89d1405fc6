/* SPDX-License-Identifier: BSD-3-Clause */
/* The rounds of a resync: what goes by the journal, what directly, and which one is the last. */
#include "resync_impl.h"

#include <string.h>
#include <time.h>

#include "clock.h"
#include "extents.h"
#include "holes.h"

/*
 * How long the application may be held. At first a few milliseconds; where it
 * writes as fast as rounds go, longer from round to round, so that it ends, but
 * never so long that calls would miss their deadlines.
 */
#define HOLD_NS         4000000ULL
#define HOLD_FIRST      (1ULL << 20) /* bytes that are few before anything was measured */
#define PATIENT_PASSES  3U
#define APPLY_NS        50000000ULL /* one call's work, so that cancelling is soon seen */
#define APPLY_BYTES_MIN (4ULL << 20)
#define APPLY_BYTES_MAX (1ULL << 40)
#define DIRECT_LOOK_NS  20000000L

enum outcome {
	ROUND_MORE,   /* what has become dirty meanwhile needs another */
	ROUND_LAST,   /* the replica has everything, under a hold */
	ROUND_DIRECT, /* the target keeps no journal of this */
};

struct rounds {
	struct resync_run run;
	const struct generation *(*chain)(void *arg);
	bool refine;        /* the map is coarse, and the replica not empty */
	unsigned passes;    /* of all rounds */
	uint64_t hold_ns;   /* that is thought acceptable now */
	uint64_t apply_max; /* bytes of the next journal.apply */
};

/* ---- the hold ---- */

static int
hold(struct resync_run *r, struct err *e)
{
	const struct resync_host *h = &r->s->host;
	int rc = 0;

	if (h->hold)
		rc = h->hold(h->arg, clock_deadline(remote_op_timeout_ms(r->s->remote)),
			     resync_breath(r), e);
	r->held = rc == 0;
	return rc;
}

static void
release(struct resync_run *r)
{
	const struct resync_host *h = &r->s->host;

	if (r->held && h->hold)
		h->release(h->arg);
	r->held = false;
}

static uint64_t
hold_most_ns(const struct rounds *o)
{
	return (uint64_t)remote_op_timeout_ms(o->run.s->remote) * NS_PER_MS / 4;
}

/* One more pass has left something behind. */
static void
hold_longer(struct rounds *o)
{
	uint64_t most_ns = hold_most_ns(o);

	if (++o->passes <= PATIENT_PASSES)
		return;
	o->hold_ns = o->hold_ns < most_ns / 2 ? o->hold_ns * 2 : most_ns;
}

/* Whether what is left, and then applied bytes, take no longer than a hold may. */
static bool
is_little(const struct rounds *o, uint64_t left, uint64_t applied)
{
	const struct resync_run *r = &o->run;

	if (!r->s->host.hold)
		return true;
	if (o->hold_ns == HOLD_NS && left > HOLD_FIRST)
		return false;
	return pace_ns(&r->copying, left) + pace_ns(&r->applying, applied) <= o->hold_ns;
}

/* Under a hold: the pool has not grown since the round began, nor become dirty behind that. */
static bool
is_whole(const struct resync_run *r)
{
	const struct resync_host *h = &r->s->host;

	return resync_left(r) == 0 && (!h->size || h->size(h->arg) == r->size);
}

static int
chain_get(const struct rounds *o, const struct generation **chain, struct err *e)
{
	*chain = o->chain(o->run.s->host.arg);
	return *chain ? 0 : err_set(e, REPL_E_FAILED, "the new generation is not recorded");
}

/* ---- by the journal ---- */

/*
 * But where the disk is full what goes directly into the holes of a sparse pool finds no space
 * either: a whole copy, if an older one, would be given up for one that can't come to its end.
 * rc, why there is no journal, or why that could not be asked for.
 */
static int
goes_directly(struct resync_run *r, int rc, bool *directly, struct err *e)
{
	struct err why;

	*directly = resync_is_refusal(rc);
	if (rc != REPL_E_NOSPC || !remote_info(r->s->remote)->meta.sparse)
		return rc;
	err_clear(&why);
	if (resync_has_space(r, directly, &why))
		return err_copy(e, &why);
	return rc;
}

/*
 * What one call may work: as long as it is on its way, so that a long way does no more than double
 * the time, but far from where it would miss its deadline on a disk that becomes slow.
 */
static uint64_t
apply_worth_ns(const struct remote *remote)
{
	uint64_t trip_ns = remote_trip_ns(remote);
	uint64_t most_ns = remote_op_timeout_ms(remote) * NS_PER_MS / 16;

	if (trip_ns > most_ns)
		trip_ns = most_ns;
	return trip_ns > APPLY_NS ? trip_ns : APPLY_NS;
}

/* One call has worked for so long. */
static void
apply_adapt(struct rounds *o, uint64_t work_ns)
{
	uint64_t worth_ns = apply_worth_ns(o->run.s->remote);

	if (work_ns < worth_ns / 8)
		o->apply_max *= 4;
	else if (work_ns < worth_ns / 2)
		o->apply_max *= 2;
	else if (work_ns > worth_ns && o->apply_max > APPLY_BYTES_MIN)
		o->apply_max /= 2;
	if (o->apply_max > APPLY_BYTES_MAX)
		o->apply_max = APPLY_BYTES_MAX;
}

/* all: the journal's bytes by the first answer. */
static int
apply_check(const struct resync_run *r, uint64_t before, uint64_t done, uint64_t all,
	    uint64_t total, struct err *e)
{
	uint64_t room = remote_journal_room(r->s->remote, r->reserved);

	if (total != all || total > room)
		return err_set(e, REPL_E_PROTOCOL,
			       "journal.apply: a journal of %llu bytes, of %llu before, with room "
			       "for %llu",
			       (unsigned long long)total, (unsigned long long)all,
			       (unsigned long long)room);
	if (done <= before && done < total)
		return err_set(e, REPL_E_PROTOCOL, "journal.apply: does not come to its end");
	return 0;
}

/* Given up in the middle it is as where the session is lost: the target brings the rest in. */
static int
journal_apply(struct rounds *o, struct err *e)
{
	struct resync_run *r = &o->run;
	uint64_t done = 0, total = 1, all = 0;
	int rc = 0;

	while (!rc && done < total) {
		uint64_t before = done, begin_ns = clock_now_ns(), trip_ns, ns;

		rc = remote_journal_apply(r->s->remote, o->apply_max, &done, &total, e);
		ns = clock_now_ns() - begin_ns;
		trip_ns = remote_trip_ns(r->s->remote);
		ns = ns > trip_ns ? ns - trip_ns : 0;
		all = before ? all : total;
		if (!rc)
			rc = apply_check(r, before, done, all, total, e);
		if (rc)
			break;
		pace_add(&r->applying, done - before, ns);
		apply_adapt(o, ns);
		r->heard_ns = clock_now_ns();
		if (done < total)
			rc = resync_breathe(r, e);
		if (!rc && done < total)
			rc = resync_yield(r, 0, e);
	}
	return rc;
}

/*
 * What is written again and again is staged by each pass. Where another one would leave no room for
 * the rest, that is taken now, by the longest hold if it must be: a journal that is full is none.
 */
static bool
is_crowded(const struct rounds *o)
{
	const struct resync_run *r = &o->run;
	uint64_t left = resync_left(r);

	return r->staged + 2 * left > remote_journal_takes(r->s->remote) &&
	       pace_ns(&r->copying, left) <= hold_most_ns(o);
}

/* Passes until little is left, then the rest with the application held. */
static int
journal_fill(struct rounds *o, struct err *e)
{
	struct resync_run *r = &o->run;
	int rc;

	do {
		rc = resync_pass(r, e);
		/* What the round has staged can't be compared with the pool any more. */
		r->refine = false;
		resync_kept_free(r);
		if (!rc && r->s->host.hold)
			hold_longer(o);
	} while (!rc && !is_little(o, resync_left(r), 0) && !is_crowded(o));
	if (!rc)
		rc = hold(r, e);
	return rc ? rc : resync_pass(r, e);
}

/* In between it has not all, nor at the end what equals a part. */
static enum sidecar_state
commit_state(const struct resync *s, bool last)
{
	return last && !s->part ? SIDECAR_UP_TO_DATE : SIDECAR_OUTDATED;
}

static int
journal_commit(struct rounds *o, bool last, struct err *e)
{
	struct resync_run *r = &o->run;
	const struct generation *chain = NULL;
	int rc = chain_get(o, &chain, e);

	if (rc)
		return rc;
	/*
	 * Outdated, too, is of our generation: under its old one another initiator's map of
	 * it would seem to tell all that it lacks.
	 */
	r->s->in_doubt = last;
	rc = remote_journal_commit(r->s->remote, commit_state(r->s, last), chain,
				   last ? r->s->part : 0, e);
	if (!rc && !last) {
		dirty_rebase(r->s->dirty, r->s->replica, &chain->current);
		release(r);
	}
	return rc ? rc : journal_apply(o, e);
}

/*
 * Forget what was staged. What is under way would come between later requests; it may have been
 * refused, but where nothing can be asked any more it has the cause.
 */
static int
journal_forget(struct resync_run *r, struct err *e)
{
	struct err why;
	int rc = 0;

	release(r);
	err_clear(&why);
	if (r->stage && stage_settle(r->stage, &why) && remote_is_broken(r->s->remote))
		rc = err_copy(e, &why);
	resync_kept_free(r);
	return rc ? rc : remote_journal_drop(r->s->remote, e);
}

/* Without what has grown since it would be no prefix: *whole is false. */
static int
journal_stage(struct rounds *o, bool *whole, struct err *e)
{
	struct resync_run *r = &o->run;
	struct resync *s = r->s;
	int rc, dropped;

	r->staged = 0;
	r->refine = o->refine;
	rc = resync_kept_begin(r, e);
	if (!rc)
		rc = stage_begin(s->remote, &r->source, resync_breath(r), &r->stage, e);
	if (!rc && r->kept)
		rc = resync_kept_stage(r, e);
	if (!rc)
		rc = journal_fill(o, e);
	*whole = !rc && is_whole(r);
	if (!*whole && (!rc || resync_is_refusal(rc))) {
		dropped = journal_forget(r, e);
		rc = dropped ? dropped : rc;
	}
	stage_end(r->stage);
	r->stage = NULL;
	return rc;
}

static int
journal_round(struct rounds *o, enum outcome *outcome, struct err *e)
{
	struct resync_run *r = &o->run;
	bool whole = false, last = false, directly = false;
	int rc = journal_stage(o, &whole, e);

	*outcome = ROUND_MORE;
	if (whole) {
		last = is_little(o, 0, r->staged);
		rc = journal_commit(o, last, e);
	}
	dirty_batch_end(r->s->dirty, r->s->replica, rc == 0 && whole);
	/* With what was there before it may be too large, and one by itself is not. */
	if (r->resumed && !whole && resync_is_refusal(rc)) {
		atomic_store(&r->s->progress->kept, 0);
		err_clear(e);
		return 0;
	}
	if (rc && !whole)
		rc = goes_directly(r, rc, &directly, e);
	if (directly) {
		*outcome = ROUND_DIRECT;
		rc = 0;
	} else if (last) {
		*outcome = ROUND_LAST;
	}
	return rc;
}

/* ---- directly ---- */

/*
 * From now on marks go for what is no prefix of anything. What the map's base lacks they tell no
 * longer, and a copy of that may take the replica's place: the files that it had, or another's.
 */
static void
base_forsake(const struct resync_run *r)
{
	dirty_forsake(r->s->dirty, r->s->replica);
}

/* One that is whole, if an old copy, is given up when another one that can be used is left. */
static int
direct_await(struct resync_run *r, struct err *e)
{
	const struct resync_host *h = &r->s->host;
	int rc = 0;

	while (!rc && !r->blank && h->direct && !h->direct(h->arg, false)) {
		(void)nanosleep(&(struct timespec){.tv_nsec = DIRECT_LOOK_NS}, NULL);
		rc = resync_breathe(r, e);
	}
	return rc;
}

static int
direct_mark(struct resync_run *r, struct err *e)
{
	int rc = 0;

	if (!r->marked)
		rc = direct_await(r, e);
	if (!rc && !r->marked)
		rc = remote_pool_mark(r->s->remote, SIDECAR_INCONSISTENT, NULL, e);
	if (!rc && !r->marked)
		base_forsake(r);
	r->marked = r->marked || rc == 0;
	return rc;
}

/* A part of that generation it is already, of which it knows how much. */
static bool
is_called_part(const struct resync_run *r, const struct generation *chain)
{
	const struct sidecar *meta = &remote_info(r->s->remote)->meta;

	return r->s->part && !r->marked && meta->state != SIDECAR_INCONSISTENT && meta->position &&
	       gen_id_equal(&meta->generation.current, &chain->current);
}

/* It takes space, and beside it lanes have no round log. */
static int
left_drop(const struct resync_run *r, struct err *e)
{
	return remote_info(r->s->remote)->journal_left ? remote_journal_drop(r->s->remote, e) : 0;
}

/* Nothing is left to copy, and the application is held. */
static int
mark_last(struct rounds *o, struct err *e)
{
	struct resync_run *r = &o->run;
	const struct generation *chain = NULL;
	int rc = chain_get(o, &chain, e);

	if (rc)
		return rc;
	/* A mark drops it. */
	if (is_called_part(r, chain))
		return left_drop(r, e);
	r->s->in_doubt = true;
	if (r->s->part)
		return remote_pool_mark_part(r->s->remote, chain, r->s->part, e);
	return remote_pool_mark(r->s->remote, SIDECAR_UP_TO_DATE, chain, e);
}

static int
direct_round(struct rounds *o, enum outcome *outcome, struct err *e)
{
	struct resync_run *r = &o->run;
	struct resync *s = r->s;
	bool last = false;
	int rc;

	push_begin(&r->push, s->remote, s->lane, &r->source, resync_breath(r));
	r->staged = 0;
	/* Nothing is marked for the sake of a lane that is gone. */
	rc = push_settle(&r->push, e);
	if (!rc)
		rc = direct_mark(r, e);
	if (!rc && is_little(o, resync_left(r), 0))
		rc = hold(r, e);
	/* With the application held comparing would be one more wait. */
	r->refine = o->refine && (!r->held || !s->host.hold);
	if (!rc)
		rc = resync_pass(r, e);
	if (!rc && r->held)
		last = is_whole(r);
	if (!rc && last)
		rc = mark_last(o, e);
	dirty_batch_end(s->dirty, s->replica, rc == 0);
	*outcome = last ? ROUND_LAST : ROUND_MORE;
	if (!rc && !last) {
		release(r);
		hold_longer(o);
	}
	return rc;
}

/* ---- with nothing to copy ---- */

/* A journal of nothing would cost three requests, and as many syncs of the target's sidecar. */
static int
empty_round(struct rounds *o, enum outcome *outcome, struct err *e)
{
	struct resync_run *r = &o->run;
	int rc = hold(r, e);

	*outcome = ROUND_MORE;
	if (rc)
		return rc;
	/* What was flushed meanwhile is marked by the hold. */
	if (!is_whole(r)) {
		release(r);
		return 0;
	}
	rc = mark_last(o, e);
	*outcome = ROUND_LAST;
	return rc;
}

/* ---- all of it ---- */

/* The pool may have grown while the replica was away, or since the last round. */
static int
grow(struct resync_run *r, struct err *e)
{
	const struct resync_host *h = &r->s->host;
	struct remote *remote = r->s->remote;

	r->size = remote_info(remote)->meta.pool_size;
	if (!h->size || h->size(h->arg) <= r->size)
		return 0;
	r->size = h->size(h->arg);
	return remote_pool_grow(remote, r->size, false,
				clock_deadline(remote_op_timeout_ms(remote)), e);
}

static int
round_run(struct rounds *o, enum outcome *outcome, struct err *e)
{
	struct resync_run *r = &o->run;
	int rc = grow(r, e);

	atomic_fetch_add(&r->s->progress->rounds, 1);
	if (!rc)
		rc = resync_breathe(r, e);
	if (rc)
		return rc;
	if (resync_left(r) == 0 && !r->direct)
		return empty_round(o, outcome, e);
	rc = r->direct ? direct_round(o, outcome, e) : journal_round(o, outcome, e);
	if (!rc && *outcome == ROUND_DIRECT) {
		err_clear(e);
		r->direct = true;
	}
	return rc;
}

void
resync_progress_begin(struct resync_progress *p, uint64_t total)
{
	atomic_store(&p->total, total);
	atomic_store(&p->done, 0);
	atomic_store(&p->moved, 0);
	atomic_store(&p->kept, 0);
	atomic_store(&p->rate, 0);
	atomic_store(&p->eta_ms, 0);
	atomic_store(&p->rounds, 0);
}

static void
rounds_begin(struct rounds *o, struct resync *s, enum resync_what what)
{
	const struct replica_info *info = remote_info(s->remote);
	const struct resync_host *h = &s->host;
	struct resync_run *r = &o->run;
	uint64_t now_ns = clock_now_ns();
	int fd = holes_open(s->file, s->mem);

	s->in_doubt = false;
	r->fill = extents_fill(fd) && !s->untouched;
	r->source =
		(struct fill_source){.mem = s->mem, .file = s->file, .fd = s->untouched ? fd : -1};
	if (!s->untouched)
		holes_close(fd);
	r->resumes = s->resume && what != RESYNC_FULL;
	r->s = s;
	r->marked = info->meta.state == SIDECAR_INCONSISTENT;
	/* There is nothing to protect in a replica that is no prefix of anything. */
	r->blank =
		r->marked || what == RESYNC_FULL || gen_id_is_nil(&info->meta.generation.current);
	r->direct = s->no_journal || r->blank;
	/* It need not wait; the others have to. */
	if (r->blank && h->direct)
		(void)h->direct(h->arg, true);
	r->heard_ns = r->ticked_ns = now_ns;
	o->refine = what != RESYNC_FULL && dirty_grain(s->dirty) > RESYNC_FINE;
	o->hold_ns = HOLD_NS;
	o->apply_max = APPLY_BYTES_MIN;
	throttle_init(&r->throttle, s->rate, h->foreground_ns ? h->foreground_ns(h->arg) : 0,
		      now_ns);
	resync_progress_begin(s->progress, resync_left(r));
}

/* Where a comparison that was interrupted goes on: a replica that others may have written to has
 * none. */
static uint64_t
resync_compared(const struct resync *s, enum resync_what what)
{
	const struct sidecar *meta = &remote_info(s->remote)->meta;

	if (what != RESYNC_HASHES || meta->state == SIDECAR_INCONSISTENT)
		return 0;
	return dirty_compared(s->dirty, s->replica, &meta->generation.current);
}

bool
resync_lacks_journal(const struct err *e)
{
	return e->code == REPL_E_PROTOCOL && strstr(e->text, "method 'journal.");
}

int
resync_run(struct resync *s, enum resync_what what, const struct generation *(*chain)(void *arg),
	   struct err *e)
{
	struct rounds o = {.chain = chain};
	enum outcome outcome = ROUND_MORE;
	int rc = 0;

	/* One that was interrupted may have left anything in the holes. */
	if (what == RESYNC_FULL && remote_info(s->remote)->meta.state == SIDECAR_INCONSISTENT)
		what = RESYNC_HASHES;
	rounds_begin(&o, s, what);
	if (o.run.blank)
		base_forsake(&o.run);
	/* First of all. */
	if (what != RESYNC_DELTA) {
		o.run.from = resync_compared(s, what);
		rc = resync_mark_all(&o.run, e);
	}
	if (!rc && o.run.direct)
		rc = left_drop(&o.run, e);
	if (!rc)
		rc = grow(&o.run, e);
	if (!rc && what != RESYNC_DELTA)
		rc = resync_scan(&o.run, what, e);
	while (!rc && outcome != ROUND_LAST)
		rc = round_run(&o, &outcome, e);
	if (rc && !s->in_doubt)
		release(&o.run);
	if (!rc)
		s->in_doubt = false;
	resync_kept_free(&o.run);
	holes_close(o.run.source.fd);
	return rc;
}
