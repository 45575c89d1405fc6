/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening a replica set. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alive.h"
#include "boot.h"
#include "bring.h"
#include "clock.h"
#include "dirty.h"
#include "entry.h"
#include "forks.h"
#include "holes.h"
#include "keeper.h"
#include "mapped.h"
#include "reason.h"
#include "repl_each.h"
#include "repl_impl.h"
#include "repl_lanes.h"
#include "repl_prepare.h"
#include "lineage.h"
#include "pending.h"
#include "poolname.h"
#include "replica_judge.h"
#include "replica_open.h"
#include "ship.h"
#include "stage.h"
#include "standard.h"
#include "statusd.h"
#include "text.h"
#include "transfer.h"

#define REPL_PAGE       4096U
#define REPL_GIVE_UP_MS 1000U /* for closing in order after a failed open */

/* ---- one replica ---- */

static int
replica_err(const struct repl *r, unsigned i, struct err *e)
{
	char text[TARGET_TEXT_MAX];

	target_format(&r->cfg->targets[i], text, sizeof(text));
	return err_prefix(e, "%s", text);
}

/*
 * Whether dirty maps may say what replicas lack. With compare something else may have written to
 * the file between two openings; and a generation that is not of a record of ours is only borrowed.
 */
static bool
maps_count(const struct repl *r)
{
	return r->known && r->cfg->after_crash == CONFIG_CRASH_DIRTY_MAP;
}

/*
 * Whoever says that the replicas equal the range (REPL_OPEN_NO_COMPARE) has only not looked, where
 * what is known here says that this one lacks something.
 */
static bool
is_contradicted(const struct repl *r, unsigned i, const struct judgement *j)
{
	const struct sidecar *meta = &remote_info(r->replicas[i].remote)->meta;

	/* So its own record says, whatever there is here to hold against it. */
	if (r->blank || meta->state == SIDECAR_INCONSISTENT || meta->state == SIDECAR_OUTDATED)
		return true;
	switch (j->reason) {
	case JUDGE_NEVER_WRITTEN:
		return r->replicas[i].made ||
		       (r->known && !gen_id_is_nil(&r->local.meta.generation.current));
	case JUDGE_SAME:
		return j->verdict == JUDGE_DELTA;
	case JUDGE_BEHIND:
		return true;
	default:
		return false;
	}
}

/*
 * Nor where one has more of a generation than the other, or something else than that: positions
 * tell it. A queued one that was left has its generation up to its own, and no more is known; left
 * before it told any, not even that.
 */
static bool
is_other_part(const struct repl *r, unsigned i, const struct judgement *j)
{
	const struct sidecar *meta = &remote_info(r->replicas[i].remote)->meta;
	uint64_t mine = r->local.meta.position;

	if (j->reason == JUDGE_NEWER || j->reason == JUDGE_DIVERGED)
		return true;
	return j->reason == JUDGE_SAME &&
	       (lineage_is_untold(meta) ||
		((mine || meta->state == SIDECAR_UNKNOWN) && meta->position != mine));
}

static struct judgement
replica_judged(const struct repl *r, unsigned i)
{
	const struct sidecar *meta = &remote_info(r->replicas[i].remote)->meta;
	struct judge_input in = {.local = r->local.present ? &r->local.meta : NULL,
				 .replica = meta};
	struct judgement j;

	if (r->dirty && maps_count(r) &&
	    dirty_found(r->dirty, i, &meta->generation.current) == DIRTY_TRUSTED) {
		in.base = &meta->generation.current;
		in.trusted = true;
		in.dirty_bytes = dirty_bytes(r->dirty, i);
	}
	replica_judge(&in, &j);
	/* Not by the record alone: the file may have been made anew beside that of a lost one. */
	if (r->blank && j.verdict != JUDGE_REFUSE && j.verdict != JUDGE_FULL) {
		j.verdict = JUDGE_REFUSE;
		j.why = "the local file holds nothing but zeros, though by its record it was "
			"written";
	}
	if ((r->flags & REPL_OPEN_NO_COMPARE) &&
	    (r->set || (!is_contradicted(r, i, &j) && !is_other_part(r, i, &j))))
		j.verdict = JUDGE_UP_TO_DATE;
	return j;
}

/* Not into a replica that is no prefix of anything, nor into one that we may not write to. */
static bool
by_resync(const struct repl *r, unsigned i, struct judgement j)
{
	const struct sidecar *meta = &remote_info(r->replicas[i].remote)->meta;

	return j.verdict == JUDGE_DELTA ||
	       (j.verdict == JUDGE_HASHES && meta->state != SIDECAR_INCONSISTENT);
}

/* By a comparison of all. */
static bool
by_all(const struct repl *r, unsigned i, struct judgement j)
{
	return j.verdict != JUDGE_UP_TO_DATE && j.verdict != JUDGE_REFUSE && !by_resync(r, i, j);
}

/* Open the pool and the lanes. */
static int
replica_attach(struct repl *r, unsigned i, struct err *e)
{
	struct remote *remote = r->replicas[i].remote;
	int rc;

	remote_set_op_timeout(remote, repl_connect_ms(r->cfg));
	remote_keep_journal(remote);
	rc = repl_open_pool(r, remote, &r->replicas[i].made, e);
	r->replicas[i].epoch = remote_epoch(remote);
	/* A resync goes by lanes that have no receive ring, and may go on with a journal. */
	if (!rc && (r->set ? repl_set_by_resync(r) : by_resync(r, i, replica_judged(r, i)))) {
		rc = remote_lanes_open_bare(remote, r->cfg->lanes, e);
	} else if (!rc) {
		if (remote_info(remote)->journal_left)
			rc = remote_journal_drop(remote, e);
		if (!rc)
			rc = remote_lanes_open(remote, r->cfg->lanes, e);
	}
	if (rc)
		return replica_err(r, i, e);
	remote_bind(remote, r->mem, &r->replicas[i].lost);
	return 0;
}

static int
bring_up_cut(void *arg, const struct transfer_progress *progress)
{
	const struct repl *r = arg;

	(void)progress;
	return atomic_load(&r->cut);
}

/* Of one pool it is resolved, where the record beside the file speaks of what was written there. */
static bool
by_resolve(const struct repl *r, enum judge_reason reason)
{
	return !r->blank && !gen_id_is_nil(&r->local.meta.generation.current) &&
	       (reason == JUDGE_NEWER || reason == JUDGE_DIVERGED || reason == JUDGE_NO_COMMON);
}

static int
replica_refuse(const struct repl *r, unsigned i, const struct judgement *j, struct err *e)
{
	char text[TARGET_TEXT_MAX], word[TARGET_TEXT_MAX * 4];

	target_format(&r->cfg->targets[i], text, sizeof(text));
	(void)text_quote(text, word, sizeof(word));
	if (replica_elsewhere(r)) {
		(void)err_set(e, REPL_E_DIVERGED, "%s, and the contents differ", j->why);
		return replica_differs_elsewhere(r, r->replicas[i].remote, e);
	}
	if (by_resolve(r, j->reason))
		return err_set(e, REPL_E_DIVERGED,
			       "%s, and the contents differ; nothing was changed. To take the "
			       "replica's data: replctl resolve --discard local FILE %s; to "
			       "overwrite it: replctl resolve --discard replica FILE %s",
			       j->why, word, word);
	if (!r->local.path)
		return err_set(e, REPL_E_DIVERGED,
			       "the local range is no mapping of a regular file, so that no "
			       "generation of it is kept, and the contents differ; nothing was "
			       "changed. To take the replica's data: replctl restore %s FILE; to "
			       "have it anew: replctl remove %s%s",
			       word, word,
			       r->is_private ? ""
					     : "; to have a generation kept: pool-file in "
					       "repl.conf(5)");
	return err_set(e, REPL_E_DIVERGED,
		       "%s, and the contents differ; nothing was changed. To take the replica's "
		       "data: replctl restore --force %s FILE; to overwrite it: replctl sync "
		       "--force FILE %s",
		       j->why, word, word);
}

/* What the dirty map or a comparison says, while nobody writes. */
static int
replica_bring_resync(struct repl *r, unsigned i, enum resync_what what, struct err *e)
{
	struct replica *p = &r->replicas[i];
	unsigned lanes = remote_terms(p->remote)->lanes;
	int rc = bring_resync(r, i, r->dirty, what, &r->local.meta.generation, e);

	if (!rc)
		rc = remote_lanes_reopen(p->remote, lanes, e);
	if (!rc)
		remote_bind(p->remote, r->mem, &p->lost);
	return rc;
}

static struct transfer
replica_transfer(struct repl *r, unsigned i)
{
	return (struct transfer){.remote = r->replicas[i].remote,
				 .file = r->file,
				 .progress = bring_up_cut,
				 .arg = r,
				 .deadline_ns = clock_deadline(r->cfg->resync_timeout_ms)};
}

/* Of one that is not to be written to: equal contents will do. */
static int
replica_compare(struct repl *r, unsigned i, const struct judgement *j, struct err *e)
{
	const struct transfer t = replica_transfer(r, i);
	struct transfer_progress sum;
	int rc = transfer_compare(&t, r->mem, r->size, NULL, &sum, e);

	if (rc == REPL_E_DIFFER)
		rc = replica_refuse(r, i, j, e);
	if (!rc)
		atomic_store(&r->vouched, true);
	return rc ? replica_err(r, i, e) : 0;
}

/* What the local pool is, as far as that is known: others that wait are made inconsistent then. */
static int
replica_label_equal(struct repl *r, unsigned i, struct err *e)
{
	struct replica *p = &r->replicas[i];
	struct generation chain = r->local.meta.generation;
	uint64_t part = lineage_equal(&r->local.meta, &chain);
	int rc;

	if (gen_id_is_nil(&chain.current))
		return 0;
	rc = part ? remote_pool_mark_part(p->remote, &chain, part, e)
		  : remote_pool_mark(p->remote, SIDECAR_UP_TO_DATE, &chain, e);
	pthread_mutex_lock(&r->lock);
	/* It may have heard of it. */
	*(rc ? &p->told : &p->has) = chain.current;
	pthread_mutex_unlock(&r->lock);
	return rc;
}

static int
replica_bring_all(struct repl *r, unsigned i, struct err *e)
{
	const struct transfer t = replica_transfer(r, i);
	struct transfer_progress sum;
	int rc = remote_pool_mark(t.remote, SIDECAR_INCONSISTENT, NULL, e);

	if (!rc)
		rc = transfer_push(&t, r->mem, r->size, &sum, e);
	return rc ? rc : replica_label_equal(r, i, e);
}

/* Make the replica equal to the range; one that may not be written to has proved so. */
static int
replica_bring_up(struct repl *r, unsigned i, struct err *e)
{
	struct judgement j = replica_judged(r, i);
	int rc = 0;

	if (by_resync(r, i, j))
		rc = replica_bring_resync(
			r, i, j.verdict == JUDGE_DELTA ? RESYNC_DELTA : RESYNC_HASHES, e);
	else if (by_all(r, i, j))
		rc = replica_bring_all(r, i, e);
	return rc ? replica_err(r, i, e) : 0;
}

/*
 * A target that is not there is no reason to stay away for the others, nor is one whose disk has
 * become full or fails, that is short of something else, or on which repld does not start any more;
 * nor a replica that somebody reads, who lets it go at some time, and changes nothing. Another
 * writer may. For a pool that was never replicated it is none from the beginning.
 */
static bool
is_absence(const struct repl *r, int status, const struct err *e)
{
	switch (status) {
	case REPL_E_UNREACHABLE:
	case REPL_E_TIMEOUT:
	case REPL_E_LOST:
		return true;
	case REPL_E_NOSPC:
		return r->known;
	case REPL_E_IO:
	case REPL_E_NOMEM:
	case REPL_E_LIMIT:
	case REPL_E_CONFIG:
		return r->known && e->by_target;
	case REPL_E_BUSY:
		return r->known && e->by_target && e->reason == REPL_REASON_BEING_READ;
	default:
		return false;
	}
}

/* By the policy: the error, or 0 to go on without the replica; its keeper will try. */
static int
replica_absent(struct repl *r, unsigned i, int rc, const struct err *e)
{
	struct replica *p = &r->replicas[i];
	bool torn;

	if (!rc || r->cfg->on_loss == REPL_ON_LOSS_FAIL || !is_absence(r, rc, e))
		return rc;
	/* The first copy into it, or one that no journal took, has been cut off now or before. */
	torn = p->remote && remote_info(p->remote)->meta.state == SIDECAR_INCONSISTENT;
	remote_free(p->remote, 0);
	p->remote = NULL;
	text_shorten(p->reason, sizeof(p->reason), e->text);
	atomic_store(&p->why, (int)reason_of_error(e, REASON_CONNECT));
	atomic_store(&p->connection,
		     repl_set_gives_up(r) ? REPL_CONN_STANDALONE : REPL_CONN_CONNECTING);
	atomic_store(&p->replication, REPL_REPL_DEGRADED);
	atomic_store(&p->data, torn ? REPL_DATA_INCONSISTENT : REPL_DATA_OUTDATED);
	atomic_store(&p->lost, rc);
	return 0;
}

/* ---- the steps of opening: repl_each() ---- */

static int
step_connect(struct repl *r, unsigned i, struct err *e)
{
	const struct remote_hooks hooks = {.cancel = &r->cut, .lanes = true};
	int rc = remote_new(r->cfg, &r->cfg->targets[i], &hooks, &r->replicas[i].remote, e);

	if (!rc)
		remote_bound(r->replicas[i].remote, &r->until_ns);
	if (!rc && ship_queues(r, i))
		remote_queue(r->replicas[i].remote);
	else if (!rc)
		remote_wait(r->replicas[i].remote);
	return replica_absent(r, i, rc ? replica_err(r, i, e) : 0, e);
}

static int
step_attach(struct repl *r, unsigned i, struct err *e)
{
	int rc = r->replicas[i].remote ? replica_attach(r, i, e) : 0;

	if (rc && r->set)
		repl_set_undo(r, r->replicas[i].remote);
	return replica_absent(r, i, rc, e);
}

/* A step of its own: what is refused for one changes none. */
static int
step_compare(struct repl *r, unsigned i, struct err *e)
{
	struct judgement j;
	int rc;

	if (!r->replicas[i].remote)
		return 0;
	j = replica_judged(r, i);
	rc = j.verdict == JUDGE_REFUSE ? replica_compare(r, i, &j, e) : 0;
	return replica_absent(r, i, rc, e);
}

static int
step_bring_up(struct repl *r, unsigned i, struct err *e)
{
	struct replica *p = &r->replicas[i];
	int rc;

	if (!p->remote)
		return 0;
	/* What it has until it is told the generation of this opening, before which it may be lost.
	 */
	p->has = by_resync(r, i, replica_judged(r, i))
			 ? r->local.meta.generation.current
			 : remote_info(p->remote)->meta.generation.current;
	rc = replica_bring_up(r, i, e);
	repl_direct_end(r, i);
	remote_set_op_timeout(p->remote, r->cfg->op_timeout_ms);
	if (!rc && r->dirty)
		dirty_untrack(r->dirty, i);
	if (!rc)
		repl_install(r, i, p->remote);
	return replica_absent(r, i, rc, e);
}

/* Those that are not whole, and will not be before they are equal: others wait from the beginning.
 */
static void
repl_note_direct(struct repl *r)
{
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (r->replicas[i].remote && by_all(r, i, replica_judged(r, i)))
			repl_direct_note(r, i);
	}
}

/* What is away may have been written, and would be made zero when it is back. */
static int
repl_check_blank(const struct repl *r, struct err *e)
{
	char take[REPLICA_TAKE_MAX];

	if (!r->blank || atomic_load(&r->vouched))
		return 0;
	replica_take_by(r, "TARGET/POOL", take);
	return err_set(
		e, REPL_E_REFUSED,
		"the local file holds nothing but zeros, though by %s it was written, and no "
		"replica that is reachable equals it; nothing was changed. To take a "
		"replica's data: %s; to begin anew: remove %s and the replicas",
		r->local.path, take, r->local.path);
}

/*
 * Each on all before the next on any: from the opening of a pool on a target does not bear
 * silence for long, and what one target refuses is known before another's data change.
 * The target that is opened first is the same for all who open the same ones: who gets it gets the
 * others, and who does not has touched none of them.
 */
static int
repl_reach(struct repl *r, struct err *e)
{
	static const struct each_step steps[] = {
		{.run = step_connect, .per_host = EACH_LOGINS_MAX},
		{.run = step_attach, .one_first = true},
		{.run = step_compare},
	};
	static const struct each_step bring_up = {.run = step_bring_up};
	int rc = 0;

	for (unsigned i = 0; !rc && i < sizeof(steps) / sizeof(steps[0]); i++)
		rc = repl_each(r, &steps[i], e);
	if (!rc)
		rc = repl_check_blank(r, e);
	if (!rc) {
		repl_note_direct(r);
		rc = repl_each(r, &bring_up, e);
	}
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (r->replicas[i].remote)
			remote_detach(r->replicas[i].remote);
	}
	return rc;
}

/* ---- the set ---- */

static int
repl_check(const struct repl_config *cfg, const void *addr, size_t size, unsigned flags,
	   struct err *e)
{
	if (!cfg || cfg->target_count == 0)
		return err_set(e, REPL_E_INVAL,
			       "no target: name one by the key 'target' of repl.conf, "
			       "or add it with repl_config_add_target()");
	if (!addr || (uintptr_t)addr % REPL_PAGE)
		return err_set(e, REPL_E_INVAL, "address %p is not a multiple of 4096", addr);
	if (size == 0 || size > INT64_MAX || (uintptr_t)addr > UINTPTR_MAX - size)
		return err_set(e, REPL_E_INVAL, "size %zu is 0, or not within the address space",
			       size);
	if (flags & ~(REPL_OPEN_CREATE | REPL_OPEN_NO_COMPARE | REPL_OPEN_SPARSE))
		return err_set(e, REPL_E_INVAL, "unknown flags 0x%x", flags);
	/* Of the range the first and the last byte are looked at. */
	if (!mapped_has(addr, size, 0) || !mapped_has(addr, size, size - 1))
		return err_set(
			e, REPL_E_INVAL,
			"%zu bytes at %p can't be read: they are not all mapped, or the file "
			"that is mapped there is shorter",
			size, addr);
	return 0;
}

static int
repl_init_locks(struct repl *r, struct err *e)
{
	pthread_condattr_t attr;

	if (pthread_mutex_init(&r->lock, NULL))
		return err_set(e, REPL_E_NOMEM, "out of memory");
	r->lock_made = true;
	if (pthread_mutex_init(&r->grow_lock, NULL))
		return err_set(e, REPL_E_NOMEM, "out of memory");
	r->grow_lock_made = true;
	if (pthread_mutex_init(&r->reason_lock, NULL))
		return err_set(e, REPL_E_NOMEM, "out of memory");
	r->reason_lock_made = true;
	if (pthread_mutex_init(&r->wake_lock, NULL))
		return err_set(e, REPL_E_NOMEM, "out of memory");
	r->wake_lock_made = true;
	r->appends_made = turns_init(&r->appends, &r->abandoned) == 0;
	r->trims_made = pending_trims_init(&r->trims) == 0;
	if (!r->appends_made || !r->trims_made)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	if (pthread_condattr_init(&attr))
		return err_set(e, REPL_E_NOMEM, "out of memory");
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	r->wake_made = pthread_cond_init(&r->wake, &attr) == 0;
	(void)pthread_condattr_destroy(&attr);
	return r->wake_made ? 0 : err_set(e, REPL_E_NOMEM, "out of memory");
}

/* What lies behind its end the memory has, and the replicas would, but the file never. */
static int
repl_check_file(const struct repl *r, struct err *e)
{
	uint64_t has = holes_length_at(r->file, r->mem, r->size);

	if (has >= r->size)
		return 0;
	return err_set(
		e, REPL_E_INVAL,
		"the local file has %llu bytes, and a range of %zu is opened: open as many as "
		"the file has, or make it as long first",
		(unsigned long long)has, (size_t)r->size);
}

static bool
same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

/*
 * The file that is mapped, if any. One of which the range is a later part is not what a replica's
 * data are restored to, nor is what stands beside it the range's record.
 */
static int
repl_find_file(struct repl *r, struct err *e)
{
	const char *named = r->cfg->pool_file;
	struct local_range range;
	int rc = local_find_range(r->mem, r->size, &range, e);

	r->file = range.path;
	r->is_private = range.is_private;
	/* Taken for none, what is written would be in no record and under no lock. */
	if (rc)
		return named ? 0 : rc;
	/* By its record what a later start finds there would be taken for what was written. */
	if (named && range.is_private)
		return err_set(
			e, REPL_E_INVAL,
			"the range is private memory (anonymous, or MAP_PRIVATE), which ends "
			"with the program: no record can speak of it. Map the pool's file "
			"MAP_SHARED, or leave out pool-file %s",
			named);
	if (range.off == 0)
		return 0;
	if (!named || same_file(named, r->file))
		rc = err_set(
			e, REPL_E_INVAL,
			"the range begins at byte %llu of %s, and a record is kept of a file that "
			"is opened from its first byte on: open that, or name a pool-file in "
			"repl.conf(5) that is another",
			(unsigned long long)range.off, r->file);
	free(r->file);
	r->file = NULL;
	return rc;
}

/* A program that knows nothing of us may store meanwhile: what it finds is then kept for others. */
static int
repl_agree(struct repl *r, struct err *e)
{
	bool run = r->flags & REPL_OPEN_RUN;
	uint64_t lost;
	int rc = local_agree(r->local.pool, r->mem, r->size,
			     run ? PAGECACHE_EITHER : PAGECACHE_MEMORY, &lost, e);

	r->local.lost = run && lost > 0;
	return rc;
}

static int
repl_settle(struct repl *r, struct err *e)
{
	int rc = local_settle(r->mem, r->size, e);

	if (rc)
		local_doubt(&r->local);
	else if (local_in_doubt(&r->local))
		rc = repl_agree(r, e);
	return rc;
}

/* Of other data than what is mapped the record may tell another size, too. */
static int
repl_open_record(struct repl *r, struct err *e)
{
	const char *file = r->cfg->pool_file ? r->cfg->pool_file : r->file;
	int rc = local_open(&r->local, file, r->size, e);

	if ((!rc || rc == REPL_E_CORRUPT) && local_check_mapped(r->mem, r->size, file, e))
		rc = e->code;
	return rc ? rc : local_check_whole(&r->local, e);
}

static int
repl_open_local(struct repl *r, struct err *e)
{
	bool crashed;
	int rc;

	/* Its holes count, also where the sidecar is that of another name. */
	rc = repl_find_file(r, e);
	if (rc)
		return rc;
	if (repl_check_file(r, e))
		return e->code;
	rc = repl_open_record(r, e);
	if (rc)
		return rc;
	/* Nobody is connected to yet, who would have to wait. */
	if (r->local.path) {
		local_look(&r->local, r->file, r->mem);
		rc = repl_settle(r, e);
	}
	if (rc)
		return rc;
	r->local.mem = r->mem;
	if (!r->local.present) {
		memset(&r->local.meta, 0, sizeof(r->local.meta));
		rc = local_new_id(&r->local.meta.pool_uuid, e);
		r->local.meta.pool_size = r->size;
		r->local.meta.created_s = (uint64_t)time(NULL);
	}
	if (rc)
		return rc;
	/* A record that an opening has left which did not end is of a file that nobody has written.
	 */
	r->known = r->local.present && !r->local.meta.opening;
	r->local.meta.opening = !r->known;
	r->blank = r->known && !(r->flags & REPL_OPEN_ANEW) &&
		   !gen_id_is_nil(&r->local.meta.generation.current) &&
		   holes_blank(r->file, r->mem, r->size);
	/* Who has recovered it since, as a replica's, has cleared the flag and left the state. */
	crashed = r->known &&
		  (r->local.meta.writer_open || r->local.meta.state != SIDECAR_UP_TO_DATE);
	return dirty_open(&r->local, r->cfg, r->size, crashed, &r->dirty, e);
}

/*
 * What one that is away misses from now on. What it missed before is told by the map
 * of a former run; without one only a comparison can tell.
 */
static int
repl_track_absent(struct repl *r, struct err *e)
{
	for (unsigned i = 0; i < r->replica_count; i++) {
		bool counts;

		if (atomic_load(&r->replicas[i].lost) == 0)
			continue;
		counts = maps_count(r) && dirty_tracked(r->dirty, i);
		if (!dirty_tracked(r->dirty, i) && dirty_track(r->dirty, i, &r->generation.current))
			return err_set(e, REPL_E_NOMEM, "no memory for a dirty map");
		/* On media as well: whoever opens it next would believe what we do not. */
		if (!counts)
			dirty_doubt(r->dirty, i);
	}
	return 0;
}

/* Its contents equal ours, and its chain is longer or the only one. */
static bool
may_adopt(const struct repl *r, const struct sidecar *meta)
{
	enum gen_relation relation;

	if (gen_id_is_nil(&meta->generation.current))
		return false;
	if (!r->local.present)
		return true;
	/* Of contents that a copy was cut off in, its chain says nothing. */
	if (meta->state == SIDECAR_INCONSISTENT)
		return false;
	relation = gen_compare(&r->local.meta.generation, &meta->generation);
	if (relation == GEN_EQUAL || relation == GEN_AHEAD)
		return false;
	return relation == GEN_BEHIND || !gen_id_equal(&meta->pool_uuid, &r->local.meta.pool_uuid);
}

/* The chain that the next generation is put on: ours, or that of what equals us. */
static int
repl_adopt(struct repl *r, struct err *e)
{
	const struct sidecar *from = NULL;
	struct gen_id fresh;
	int rc = local_new_id(&fresh, e);

	for (unsigned i = 0; i < r->replica_count; i++) {
		const struct sidecar *meta;

		if (!r->replicas[i].remote)
			continue;
		meta = &remote_info(r->replicas[i].remote)->meta;
		if (may_adopt(r, meta) && (!from || lineage_tells_more(meta, from)))
			from = meta;
	}
	if (!rc && from) {
		lineage_copy(&r->local.meta, from, &fresh);
		r->local.present = true;
	}
	r->generation = r->local.meta.generation;
	return rc;
}

static int
repl_count_lanes(struct repl *r, struct err *e)
{
	unsigned present = 0;

	r->lane_count = r->cfg->lanes;
	for (unsigned i = 0; i < r->replica_count; i++) {
		if (!r->replicas[i].remote)
			continue;
		present++;
		if (!ship_queues(r, i) &&
		    remote_terms(r->replicas[i].remote)->lanes < r->lane_count)
			r->lane_count = remote_terms(r->replicas[i].remote)->lanes;
	}
	/* Of a pool that was never replicated nobody has seen that its targets are right. */
	if (present == 0 && !r->known)
		return err_set(e, atomic_load(&r->replicas[0].lost), "no replica is reachable: %s",
			       r->replicas[0].reason);
	r->slots = calloc(r->lane_count, sizeof(*r->slots));
	if (!r->slots)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	/* A queue orders what comes from several lanes by itself. */
	if (r->lane_count == 1 || r->cfg->ack != ACK_ALL)
		return 0;
	r->claims_made = claims_init(&r->claims, r->lane_count, &r->abandoned) == 0;
	return r->claims_made ? 0 : err_set(e, REPL_E_NOMEM, "out of memory");
}

static int
repl_forget_part(struct repl *r, struct err *e)
{
	struct gen_id fresh;
	int rc = r->local.meta.position ? local_new_id(&fresh, e) : 0;

	if (!rc && r->local.meta.position) {
		lineage_forget_part(&r->local.meta, &fresh);
		r->generation = r->local.meta.generation;
	}
	return rc;
}

/* Whoever comes next takes what it finds for what was replicated. */
static int
repl_has_begun(struct repl *r, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	if (r->local.meta.opening) {
		r->local.meta.opening = false;
		rc = local_store(&r->local, e);
	}
	pthread_mutex_unlock(&r->lock);
	return rc;
}

static uint64_t
queue_lag_ms(void *ship)
{
	return ship_oldest_ms(ship);
}

static void
record_again(void *r)
{
	repl_record_again(r);
}

/* That it is opened: in our own record, which may take its time, and on the targets. */
static int
repl_record(struct repl *r, struct err *e)
{
	int rc = repl_adopt(r, e);

	if (!rc)
		rc = repl_forget_part(r, e);
	if (!rc)
		rc = repl_track_absent(r, e);
	r->local.meta.writer_open = true;
	/* Of what a sync had lost memory alone may have it still: that outlives no kill. */
	if (r->local.lost)
		boot_none(&r->local.meta.boot);
	else
		boot_now(&r->local.meta.boot);
	r->local.meta.state = SIDECAR_UP_TO_DATE;
	dirty_begin(r->dirty);
	if (!rc)
		rc = repl_advance(r, clock_deadline(repl_connect_ms(r->cfg)), e);
	dirty_watch_record(r->dirty, record_again, r);
	return rc ? rc : dirty_start(r->dirty, e);
}

static int
repl_start(struct repl *r, struct err *e)
{
	struct alive alive;
	int rc = r->set ? 0 : repl_open_local(r, e);

	if (!rc)
		rc = repl_reach(r, e);
	if (!rc)
		rc = repl_count_lanes(r, e);
	if (rc)
		return rc;
	alive_begin(&alive, r);
	/* With a set, in memory alone: what a replica misses while it is away. */
	rc = r->set ? dirty_open(&r->local, r->cfg, r->size, false, &r->dirty, e)
		    : repl_record(r, e);
	alive_end(&alive);
	if (rc)
		return rc;
	rc = ship_new(r, &r->ship, e);
	if (rc)
		return rc;
	if (r->ship && r->dirty)
		dirty_watch_lag(r->dirty, queue_lag_ms, r->ship);
	r->ready = true;
	ship_begin(r->ship);
	/* Keepers tell it of changes, and who asks it may want something of a keeper. */
	rc = statusd_new(r, &r->statusd, e);
	if (!rc)
		rc = keepers_start(r, e);
	if (!rc)
		rc = statusd_start(r->statusd, e);
	return rc ? rc : repl_has_begun(r, e);
}

int
repl_open_with(struct repl_config *cfg, struct repl_set *set, void *addr, size_t size,
	       unsigned flags, struct repl **out, struct err *e)
{
	struct repl *r = calloc(1, sizeof(*r));
	int rc;

	if (!r) {
		repl_config_free(cfg);
		free(set);
		return err_set(e, REPL_E_NOMEM, "out of memory");
	}
	local_init(&r->local);
	r->forks = forks_count();
	r->mem = addr;
	r->size = size;
	r->cfg = cfg;
	r->set = set;
	r->flags = flags;
	r->replica_count = r->cfg->target_count;
	rc = repl_init_locks(r, e);
	standard_take();
	/* A replica that comes back is reached by the same files, wherever the program is then. */
	if (!rc)
		rc = config_fix_paths(r->cfg, e);
	if (!rc)
		rc = poolname_resolve(&r->cfg->pool_file, e);
	if (!rc)
		rc = repl_start(r, e);
	if (rc) {
		repl_free(r, clock_deadline(REPL_GIVE_UP_MS));
		return rc;
	}
	*out = r;
	return 0;
}

/* more: of the flags that are not the caller's. */
static int
open_checked(const struct repl_config *cfg, void *addr, size_t size, unsigned flags, unsigned more,
	     struct repl **out)
{
	struct repl_config *mine = NULL;
	struct err e;
	int rc;

	err_clear(&e);
	if (!out)
		return config_report_set(REPL_E_INVAL, "no place for the handle");
	*out = NULL;
	rc = repl_check(cfg, addr, size, flags, &e);
	if (!rc)
		rc = config_copy(cfg, &mine, &e);
	if (!rc)
		rc = repl_open_with(mine, NULL, addr, size, flags | more, out, &e);
	return rc ? config_report(&e) : 0;
}

int
repl_open(const struct repl_config *cfg, void *addr, size_t size, unsigned flags, struct repl **out)
{
	ENTRY_WHOLE();

	return open_checked(cfg, addr, size, flags, 0, out);
}

int
repl_open_run(const struct repl_config *cfg, void *addr, size_t size, bool anew, struct repl **out)
{
	ENTRY_WHOLE();

	return open_checked(cfg, addr, size, REPL_OPEN_CREATE,
			    REPL_OPEN_RUN | (anew ? REPL_OPEN_ANEW : 0), out);
}
