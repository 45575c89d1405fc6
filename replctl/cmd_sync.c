/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replctl sync FILE TARGET/pool - push what differs.
 *
 * The order of records is what makes a kill at any moment harmless: the bytes
 * go to the target's journal, or the replica is marked inconsistent before its
 * first byte changes; the new generation is recorded beside the file before the
 * replica gets it. So the replica may be left behind, never ahead of its data.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "boot.h"
#include "commands.h"
#include "control.h"
#include "holes.h"
#include "interrupt.h"
#include "local.h"
#include "missedmark.h"
#include "out.h"
#include "poolfile.h"
#include "progress.h"
#include "pulse.h"
#include "pushing.h"
#include "reason.h"
#include "lineage.h"
#include "relation.h"
#include "replica_judge.h"

struct sync {
	struct ctl *c;
	const char *file; /* as given */
	struct poolfile pool;
	struct local local;
	bool create_only; /* the pool must not be there yet */
	bool created;     /* by this run */
	bool absent;      /* dry run: there is no pool */
	bool refused;     /* by the target: open for reading, until contents have proved equal */
	struct resolved *resolved; /* NULL: of a command of its own */
	bool blank;                /* zeros, beside a record of what was written */
	bool renewed;              /* ... and the file was made behind that */
	bool anew;                 /* ... which they take the place of, by force */
	bool adopted;              /* equal contents: the replica's generation was taken over */
	bool unrecorded;           /* the local record could not be written */
	enum boot_power power;     /* since its program opened it, which has not closed it */
	bool part_left;            /* recorded: the file has left the generation of its part */
	struct progress waiting;   /* until the lanes are open */
	struct transfer_progress sum;
	uint64_t kept; /* bytes that one before it had sent */
	uint64_t ns;
	char *quoted_file, *quoted_target;
};

static const struct sidecar *
sync_local(const struct sync *s)
{
	return s->local.present ? &s->local.meta : NULL;
}

/* Its bytes are not those of its generation: a copy was cut off in it, or it misses updates. */
static bool
sync_is_part(const struct sync *s)
{
	enum sidecar_state state = remote_info(s->c->remote)->meta.state;

	return state == SIDECAR_INCONSISTENT || state == SIDECAR_OUTDATED;
}

/* What comes before the repetition, or "". */
static const char *
repeat_after(const struct sync *s, bool io)
{
	bool full = s->c->err.code == REPL_E_NOSPC && s->c->err.errnum != EFBIG;

	if (io)
		return "look at this machine's kernel log";
	if (!s->unrecorded)
		return full ? "make room in the target's pool directory" : "";
	return full ? "make room beside the file" : "mend what the message names";
}

static void
next_repeat(struct sync *s)
{
	const char *force = s->c->options.force && !s->create_only ? "--force " : "";
	bool dry = s->c->options.dry_run;
	bool io = s->c->err.code == REPL_E_IO;
	bool here = s->unrecorded || s->c->err.reason == REPL_REASON_LOCAL;
	const char *after = repeat_after(s, io);
	char otherwise[CTL_NEXT_MAX] = "";

	/* It would end the same way. */
	if (io && !here)
		return;
	if (s->part_left && !force[0])
		(void)snprintf(otherwise, sizeof(otherwise),
			       "; where that is refused: replctl resolve --discard replica %s %s",
			       s->quoted_file, s->quoted_target);
	ctl_next(s->c, "%s%sreplctl sync %s%s%s %s%s%s", after, after[0] ? ", then " : "",
		 dry ? "--dry-run " : "", force, s->quoted_file, s->quoted_target,
		 dry ? "" : " (goes on where this ended)", otherwise);
}

/* ---- opening ---- */

/* Whether it was made later; false where the file system does not tell. */
static bool
is_younger(const char *file, const char *record)
{
	struct statx f, r;

	if (statx(AT_FDCWD, file, 0, STATX_BTIME, &f) ||
	    statx(AT_FDCWD, record, 0, STATX_BTIME, &r) || !(f.stx_mask & r.stx_mask & STATX_BTIME))
		return false;
	return f.stx_btime.tv_sec > r.stx_btime.tv_sec ||
	       (f.stx_btime.tv_sec == r.stx_btime.tv_sec &&
		f.stx_btime.tv_nsec > r.stx_btime.tv_nsec);
}

static int
sync_open_file(struct sync *s)
{
	struct err *e = &s->c->err;
	int rc = poolfile_open(&s->pool, s->file, e);

	if (!rc)
		rc = poolfile_settle(&s->pool, &s->local, e);
	if (!rc)
		rc = local_check_whole(&s->local, e);
	if (!rc && local_in_doubt(&s->local) && !s->c->options.dry_run)
		rc = poolfile_agree(&s->pool, e);
	/* No program has had one whose position tells what it has. */
	if (!rc && s->local.present && !s->local.meta.position)
		s->power = boot_power(&s->local.meta);
	/* The file's times do not tell of stores to a mapping on tmpfs. What is there is compared.
	 */
	if (!rc && !s->c->options.dry_run)
		(void)missedmark_take(s->pool.path);
	s->blank = !rc && s->local.present && !s->local.meta.opening &&
		   !gen_id_is_nil(&s->local.meta.generation.current) &&
		   holes_blank(s->pool.path, s->pool.mem, s->pool.size);
	s->renewed = s->blank && is_younger(s->pool.path, s->local.path);
	return rc;
}

static const char made_anew[] = "the file holds nothing but zeros, though by its record it was "
				"written: it seems to be made anew";

/* It was never written: its zeros tell nothing. */
static bool
sync_is_new(const struct sync *s)
{
	return gen_id_is_nil(&remote_info(s->c->remote)->meta.generation.current);
}

/* A new replica of the zeros would pass for one of those that have what the record speaks of. */
static int
sync_check_new(struct sync *s)
{
	if (!s->renewed || s->c->options.force)
		return 0;
	ctl_next(s->c,
		 "replctl restore TARGET/POOL OTHER-FILE (from a replica that has the data); if "
		 "zeros are meant: replctl sync --force %s %s",
		 s->quoted_file, s->quoted_target);
	return err_set(&s->c->err, REPL_E_REFUSED, "%s; nothing was changed", made_anew);
}

/* Its program would not open a pool whose record tells of more than it maps. */
static int
sync_check_part(struct sync *s)
{
	uint64_t size = s->local.recorded;

	if (size == 0 || size >= s->pool.size || s->c->options.force)
		return 0;
	ctl_next(s->c,
		 "where the pool is but the first %" PRIu64 " bytes of the file: start its "
		 "program, which makes and fills it; if the pool has grown: replctl sync --force "
		 "%s %s",
		 size, s->quoted_file, s->quoted_target);
	return err_set(&s->c->err, REPL_E_REFUSED,
		       "%s has %zu bytes, and the pool, by the record beside it, %" PRIu64
		       ": nothing was changed",
		       s->file, s->pool.size, size);
}

static int
sync_check_create(struct sync *s)
{
	int rc = sync_check_new(s);

	return rc ? rc : sync_check_part(s);
}

static int
sync_create(struct sync *s)
{
	struct ctl *c = s->c;
	struct json_object *params;
	char uuid[GEN_TEXT_SIZE];
	int rc = sync_check_create(s);

	if (rc)
		return rc;
	params = json_object_new_object();
	control_add(params, "name", json_object_new_string(c->target.pool));
	control_add(params, "size", json_object_new_uint64(s->pool.size));
	if (s->local.present) {
		gen_id_format(&s->local.meta.pool_uuid, uuid);
		control_add(params, "uuid", json_object_new_string(uuid));
	}
	if (c->options.sparse)
		control_add(params, "sparse", json_object_new_boolean(true));
	rc = remote_call(c->remote, "pool.create", params, NULL, &c->err);
	if (rc == REPL_E_EXISTS)
		ctl_next(c, "replctl sync %s %s", s->quoted_file, s->quoted_target);
	if (rc == REPL_E_NOSPC && !c->options.sparse && poolfile_data(&s->pool) < s->pool.size)
		ctl_next(c,
			 "make room in the target's pool directory; or replctl create %s --from %s "
			 "--sparse (the file is sparse, too: space is taken as it is written)",
			 s->quoted_target, s->quoted_file);
	if (rc)
		return rc;
	s->created = true;
	(void)progress_end(&s->waiting);
	if (!c->options.json)
		(void)fprintf(stderr, "replctl: made the pool %s\n", c->target_text);
	return 0;
}

/* Who looks is let in where a writer is not: say what that one would be told. */
static int
sync_open_dry(struct sync *s)
{
	struct ctl *c = s->c;
	int rc = remote_pool_open(c->remote, c->target.pool, REMOTE_READ, &c->err);
	const struct sidecar *meta = &remote_info(c->remote)->meta;

	if (rc)
		return rc;
	if (!meta->primary)
		return meta->writer_open ? ctl_has_writer(c, meta->writer) : 0;
	ctl_next(c, "replctl info %s; replctl demote %s (when its own program has ended)",
		 s->quoted_target, s->quoted_target);
	return err_set(&c->err, REPL_E_REFUSED,
		       "pool '%s' was %s; it is the primary now and takes no replication",
		       c->target.pool, meta->writer);
}

/* Under the file's chain; who is refused for that may still look. */
static int
sync_open_mode(struct sync *s)
{
	const struct generation *chain = s->local.present ? &s->local.meta.generation : NULL;
	struct ctl *c = s->c;
	const char *pool = c->target.pool;
	int rc;

	if (c->options.dry_run)
		return sync_open_dry(s);
	rc = remote_pool_open_as(c->remote, pool, chain, c->options.force, &c->err);
	if (rc != REPL_E_DIVERGED)
		return rc;
	err_clear(&c->err);
	s->refused = true;
	return remote_pool_open(c->remote, pool, REMOTE_STABLE, &c->err);
}

static int
sync_open_pool(struct sync *s)
{
	struct ctl *c = s->c;
	int rc = s->create_only ? sync_create(s) : 0;

	if (!rc)
		rc = sync_open_mode(s);
	if (rc != REPL_E_NOT_FOUND || s->created)
		return rc;
	err_clear(&c->err);
	if (c->options.dry_run) {
		s->absent = true;
		return 0;
	}
	rc = sync_create(s);
	return rc ? rc : sync_open_mode(s);
}

/* A program may have more in its file than the pool. */
static void
smaller_next(struct sync *s, uint64_t size)
{
	char first[CTL_NEXT_MAX] = "";

	if (s->local.present)
		(void)snprintf(first, sizeof(first),
			       "; where the pool is but the first %" PRIu64
			       " bytes of the file: start its program, which brings the replica up "
			       "to date",
			       size);
	ctl_next(s->c,
		 "replctl grow %s --size %zu (if the pool has grown; then sync again); or sync to "
		 "another name (of another pool)%s",
		 s->quoted_target, s->pool.size, first);
}

static int
sync_check_size(struct sync *s)
{
	struct ctl *c = s->c;
	uint64_t size = remote_info(c->remote)->meta.pool_size;

	if (size == s->pool.size)
		return 0;
	if (size < s->pool.size)
		smaller_next(s, size);
	else
		ctl_next(c,
			 "replctl restore %s OTHER-FILE (what it would lose); replctl remove %s, "
			 "then replctl sync %s %s (all of it); or sync to another name (of another "
			 "pool)",
			 s->quoted_target, s->quoted_target, s->quoted_file, s->quoted_target);
	return err_set(&c->err, REPL_E_REFUSED, "%s has %zu bytes, the replica %s has %" PRIu64,
		       s->file, s->pool.size, c->target_text, size);
}

/* Nobody has had more acknowledged in its generation than the file has. */
static bool
sync_is_whole(const struct sync *s)
{
	const struct sidecar *local = sync_local(s);

	return !local || (s->power == BOOT_KEPT && local->state == SIDECAR_UP_TO_DATE);
}

static int
sync_open_target(struct sync *s)
{
	int rc = ctl_connect_lanes(s->c);

	if (!rc)
		remote_keep_journal(s->c->remote);
	/* In the generation that it gets nothing is acknowledged but what is copied. */
	if (!rc && sync_is_whole(s))
		remote_wait(s->c->remote);
	/* From here on it matters how we end: a writer that is gone leaves doubt. */
	interrupt_catch();
	if (!rc)
		rc = sync_open_pool(s);
	if (rc || s->absent)
		return rc;
	rc = remote_refuse_headers(s->c->remote, &s->c->err);
	if (!rc)
		rc = sync_check_size(s);
	if (!rc)
		rc = resolved_check(s->c, s->resolved, &remote_info(s->c->remote)->meta,
				    sync_local(s), &s->pool.opened);
	return rc ? rc : remote_lanes_open_bare(s->c->remote, s->c->cfg->lanes, &s->c->err);
}

static int
sync_open(struct sync *s)
{
	int rc = sync_open_file(s);

	if (rc)
		return rc;
	progress_wait(&s->waiting, s->c->host_text);
	rc = sync_open_target(s);
	(void)progress_end(&s->waiting);
	return rc;
}

/* ---- may it be overwritten? ---- */

static int
stop_at_first(void *arg, const struct transfer_progress *t)
{
	return progress_tell(arg, t) || t->moved > 0;
}

/* REPL_E_DIFFER at the first difference. */
static int
sync_compare(struct sync *s)
{
	struct progress progress;
	struct transfer t = {.remote = s->c->remote,
			     .file = s->pool.path,
			     .untouched = true,
			     .progress = stop_at_first,
			     .arg = &progress};
	struct transfer_progress sum;
	int rc;

	progress_begin(&progress, "compare", s->pool.size, s->c->options.json);
	rc = transfer_compare(&t, s->pool.mem, s->pool.size, NULL, &sum, &s->c->err);
	(void)progress_end(&progress);
	if (rc == REPL_E_FAILED && sum.moved > 0 && !interrupt_seen())
		rc = err_set(&s->c->err, REPL_E_DIFFER, "contents differ");
	return rc ? rc : poolfile_unchanged(&s->pool, &s->c->err);
}

static const char power_cut[] = "this machine was started anew since the file's program ended "
				"without closing it, or a sync of the file has failed, so that "
				"the file may lack what the replica has";

static bool
sync_is_of(const struct sync *s, const struct generation *g)
{
	return gen_id_equal(&s->local.meta.generation.current, &g->current) &&
	       !gen_id_is_nil(&g->current);
}

/* Of the file's generation a replica may have what the file has lost: that is no copy of it. */
static enum relation_verdict
sync_judge(const struct sync *s, const char **why)
{
	const struct sidecar *meta = &remote_info(s->c->remote)->meta;
	enum relation_verdict verdict = relation_judge(sync_local(s), meta, why);

	if (s->power != BOOT_CUT || sync_is_part(s) || meta->primary ||
	    !sync_is_of(s, &meta->generation))
		return verdict;
	*why = power_cut;
	return RELATION_COMPARE;
}

/* Not of one that nobody says to have all: who chooses among the replicas is to hear of it. */
static void
sync_warn(const struct sync *s)
{
	if (s->power == BOOT_KEPT)
		return;
	(void)fprintf(stderr,
		      "replctl: the program of %s ended without closing it, and %s: it may lack "
		      "what other replicas have. Before its program is started: replctl newest %s, "
		      "and behind it the other replicas\n",
		      s->quoted_file,
		      s->power == BOOT_CUT ? "this machine was started anew since, or a sync "
					     "of it has failed"
					   : "this machine may have lost its power since",
		      s->quoted_target);
}

static void
refuse_next(struct sync *s, const char *why)
{
	if (why == power_cut)
		ctl_next_newest(s->c, s->quoted_target,
				"replctl verify %s %s (what differs); where the program makes its "
				"data durable before they are replicated, so that the file has "
				"all: replctl sync --force %s %s (overwrite the replica)",
				s->quoted_file, s->quoted_target, s->quoted_file, s->quoted_target);
	else
		ctl_next(s->c,
			 "replctl verify %s %s (what differs); replctl restore %s OTHER-FILE (take "
			 "the replica's data); replctl sync --force %s %s (overwrite the replica)",
			 s->quoted_file, s->quoted_target, s->quoted_target, s->quoted_file,
			 s->quoted_target);
}

static int
sync_refuse(struct sync *s, const char *why)
{
	const struct sidecar *local = sync_local(s);
	bool newer = local && judge_relation(local, &remote_info(s->c->remote)->meta) == GEN_BEHIND;

	refuse_next(s, why);
	return err_set(&s->c->err,
		       newer || why == made_anew || why == power_cut ? REPL_E_REFUSED
								     : REPL_E_DIVERGED,
		       "%s, and the contents differ; nothing was changed", why);
}

static int
sync_record(struct sync *s, struct err *e)
{
	/* A disk may take longer than the target bears silence. */
	struct pulse pulse = {0};
	struct sidecar *meta = &s->local.meta;
	int rc = pulse_start(&pulse, s->c->remote, e);

	/* Of what the file has grown by the map tells nothing but that the record does not know it.
	 */
	if (s->local.recorded < meta->pool_size)
		meta->dirty_off = meta->dirty_len = 0;
	if (!rc)
		rc = local_store(&s->local, e);
	pulse_stop(&pulse);
	s->unrecorded = rc != 0;
	return rc;
}

/* Once all of the file has been read. */
static int
sync_check_missed(const struct sync *s, struct err *e)
{
	if (!missedmark_is(s->pool.path))
		return 0;
	return err_set(e, REPL_E_FAILED,
		       "a program has made bytes of %s durable while it was being read",
		       s->pool.path);
}

/* Equal contents: the file is of the replica's generation from now on. */
static int
sync_adopt(struct sync *s)
{
	const struct sidecar *meta = &remote_info(s->c->remote)->meta;
	struct sidecar *mine = &s->local.meta;
	struct gen_id fresh;
	int rc = sync_check_missed(s, &s->c->err);

	if (rc) {
		next_repeat(s);
		return rc;
	}
	rc = local_new_id(&fresh, &s->c->err);
	s->adopted = true;
	lineage_copy(mine, meta, &fresh);
	/* The mark makes it whole: of a generation that nobody has more of. */
	lineage_forget_part(mine, &fresh);
	mine->state = SIDECAR_UP_TO_DATE;
	mine->opening = false;
	/* The map and the activity log speak of replicas of the generation that the file had. */
	mine->dirty_off = mine->dirty_len = 0;
	if (!rc)
		rc = sync_record(s, &s->c->err);
	if (!rc && meta->state != SIDECAR_UP_TO_DATE)
		rc = remote_pool_mark(s->c->remote, SIDECAR_UP_TO_DATE, &mine->generation,
				      &s->c->err);
	return rc;
}

/* ---- copying ---- */

/*
 * What the file has lost another replica may have, of its generation: neither the file nor what is
 * made equal to it may descend from that.
 */
static void
sync_advance(struct sync *s, bool changed, const struct gen_id *fresh, const struct gen_id *id)
{
	struct sidecar *meta = &s->local.meta;
	const struct generation before = meta->generation;

	if (s->power == BOOT_KEPT || gen_id_is_nil(&before.current))
		lineage_sync(meta, changed || s->resolved, fresh, id);
	else if (s->resolved)
		lineage_lost(meta, fresh);
	/* Of a generation that begins with what the file has nothing is lost. */
	if (!sync_is_of(s, &before))
		boot_now(&meta->boot);
}

/* Record what both sides are about to be: the local side first. */
static const struct generation *
sync_chain(void *arg, uint64_t moved, struct err *e)
{
	struct sync *s = arg;
	struct sidecar *meta = &s->local.meta;
	bool part = meta->position > 0;
	struct gen_id id, fresh;
	int rc = poolfile_unchanged(&s->pool, e);

	if (!rc)
		rc = sync_check_missed(s, e);
	if (!rc)
		rc = local_new_id(&id, e);
	if (!rc)
		rc = local_new_id(&fresh, e);
	if (!rc && s->anew) {
		memset(&meta->generation, 0, sizeof(meta->generation));
		meta->dirty_off = meta->dirty_len = 0;
		s->anew = false;
	}
	if (!rc)
		sync_advance(s, moved || sync_is_part(s), &fresh, &id);
	meta->state = SIDECAR_UP_TO_DATE;
	meta->opening = false;
	if (!rc)
		rc = sync_record(s, e);
	/* Of the replica, which may not be told any more, that is no ancestor: it may have more. */
	s->part_left = s->part_left || part;
	return rc ? NULL : &meta->generation;
}

static int
sync_copy(struct sync *s)
{
	struct ctl *c = s->c;
	struct progress progress;
	struct pushing p = {.remote = c->remote,
			    .mem = s->pool.mem,
			    .size = s->pool.size,
			    .file = s->pool.path,
			    .progress = &progress,
			    .chain = sync_chain,
			    .arg = s};
	int rc;

	progress_begin(&progress, "sync", s->pool.size, c->options.json);
	rc = pushing_run(&p, &c->err);
	s->ns = progress_end(&progress);
	s->sum = p.sum;
	s->kept = p.kept;
	if (!rc)
		return 0;
	next_repeat(s);
	if (remote_info(c->remote)->meta.state == SIDECAR_INCONSISTENT)
		(void)err_prefix(&c->err, "the replica %s is inconsistent until a sync ends well",
				 c->target_text);
	else
		(void)err_prefix(&c->err, "the replica %s is as it was, or as it should be",
				 c->target_text);
	return rc;
}

/* A file without a record begins one, under the replica's name for the pool. */
static void
sync_begin_local(struct sync *s)
{
	if (s->local.present)
		return;
	memset(&s->local.meta, 0, sizeof(s->local.meta));
	s->local.meta.pool_uuid = remote_info(s->c->remote)->meta.pool_uuid;
	s->local.meta.pool_size = s->pool.size;
	s->local.meta.created_s = (uint64_t)time(NULL);
}

/* Contents have proved equal: write after all. */
static int
sync_reopen(struct sync *s)
{
	struct generation seen = remote_info(s->c->remote)->meta.generation;
	struct err *e = &s->c->err;
	int rc = remote_pool_close(s->c->remote, e);

	if (!rc)
		rc = remote_pool_open_as(s->c->remote, s->c->target.pool, NULL, true, e);
	if (!rc && gen_compare(&seen, &remote_info(s->c->remote)->meta.generation) != GEN_EQUAL)
		rc = err_set(e, REPL_E_DIVERGED, "%s was written by another meanwhile",
			     s->c->target_text);
	if (!rc)
		rc = sync_check_size(s);
	return rc ? rc : remote_lanes_open_bare(s->c->remote, s->c->cfg->lanes, e);
}

/*
 * The record speaks of what stood under this name before: only zeros are overwritten by zeros. By
 * force this replica is, and no other one which has what the record speaks of: the zeros do not
 * descend from that.
 */
static int
sync_check_blank(struct sync *s)
{
	int rc;

	if (!s->blank)
		return 0;
	if (s->renewed && sync_is_new(s)) {
		rc = sync_check_new(s);
		s->anew = rc == 0;
		return rc;
	}
	rc = sync_compare(s);
	if (rc != REPL_E_DIFFER)
		return rc;
	if (!s->c->options.force)
		return sync_refuse(s, made_anew);
	err_clear(&s->c->err);
	s->anew = true;
	return 0;
}

static int
sync_decide(struct sync *s)
{
	const char *why;
	enum relation_verdict verdict = sync_judge(s, &why);
	int rc;

	if (s->resolved) {
		s->anew = s->blank;
		return sync_copy(s);
	}
	if (verdict == RELATION_COMPARE || s->refused) {
		rc = sync_compare(s);
		if (rc == REPL_E_DIFFER && !s->c->options.force)
			return sync_refuse(s, why);
		if (rc && rc != REPL_E_DIFFER)
			return rc;
		err_clear(&s->c->err);
		s->anew = s->blank && rc == REPL_E_DIFFER;
		if (s->refused && sync_reopen(s))
			return s->c->err.code;
		if (sync_is_part(s))
			rc = REPL_E_DIFFER;
		sync_begin_local(s);
		return rc ? sync_copy(s) : sync_adopt(s);
	}
	rc = sync_check_blank(s);
	if (rc)
		return rc;
	sync_begin_local(s);
	return sync_copy(s);
}

/* ---- dry run, report ---- */

static int
sync_dry_run(struct sync *s)
{
	struct ctl *c = s->c;
	struct progress progress;
	struct transfer t = {.remote = c->remote,
			     .file = s->pool.path,
			     .untouched = true,
			     .progress = progress_tell,
			     .arg = &progress};
	const char *why;
	int rc;

	if (s->absent) {
		s->sum.total = s->sum.moved = s->pool.size;
		return sync_check_create(s);
	}
	progress_begin(&progress, "compare", s->pool.size, c->options.json);
	rc = transfer_compare(&t, s->pool.mem, s->pool.size, NULL, &s->sum, &c->err);
	s->ns = progress_end(&progress);
	if (rc && rc != REPL_E_DIFFER)
		return rc;
	if (s->renewed && sync_is_new(s)) {
		err_clear(&c->err);
		return sync_check_new(s);
	}
	if (rc && !c->options.force && sync_judge(s, &why) == RELATION_COMPARE)
		return sync_refuse(s, why);
	if (rc && !c->options.force && s->blank)
		return sync_refuse(s, made_anew);
	err_clear(&c->err);
	return 0;
}

/* Of a pool that is mostly holes hardly anything is looked at: only data have a speed. */
static void
sync_print_equal(const struct sync *s)
{
	char data[OUT_NUMBER_MAX], duration[OUT_NUMBER_MAX], rate[OUT_NUMBER_MAX];
	uint64_t bytes = poolfile_data(&s->pool);

	out_size(bytes, data);
	out_size(out_rate(bytes, s->ns), rate);
	out_duration(s->ns, duration);
	(void)printf("%s is up to date: nothing differed, nothing was moved; %s of data compared "
		     "in %s (%s/s)\n",
		     s->c->target_text, data, duration, rate);
}

static void
sync_print(const struct sync *s)
{
	const struct ctl *c = s->c;
	char moved[OUT_NUMBER_MAX], size[OUT_NUMBER_MAX], duration[OUT_NUMBER_MAX];
	char rate[OUT_NUMBER_MAX], kept[OUT_NUMBER_MAX];

	out_size(s->kept, kept);
	out_size(s->sum.moved, moved);
	out_size(s->pool.size, size);
	out_size(out_rate(s->pool.size, s->ns), rate);
	out_duration(s->ns, duration);
	if (c->options.dry_run)
		(void)printf("would move at most %s of %s%s\n", moved, size,
			     s->absent ? " and make the pool" : "");
	else if (s->adopted)
		out_line(stdout, "%s equals %s already; nothing was moved", c->target_text,
			 s->file);
	else if (s->sum.moved == 0 && s->kept == 0)
		sync_print_equal(s);
	else if (s->kept)
		(void)printf("%s is up to date: moved %s of %s in %s (%s/s); a sync or a program "
			     "that was cut off had moved %s before\n",
			     c->target_text, moved, size, duration, rate, kept);
	else
		(void)printf("%s is up to date: moved %s of %s in %s (%s/s)\n", c->target_text,
			     moved, size, duration, rate);
}

static void
sync_report(struct sync *s)
{
	struct ctl *c = s->c;
	struct json_object *answer = json_object_new_object();
	char id[GEN_TEXT_SIZE];

	if (!c->options.json)
		sync_print(s);
	out_add_text(answer, "file", s->pool.path);
	out_add_text(answer, "target", c->target_text);
	out_add_u64(answer, "size", s->pool.size);
	out_add_u64(answer, "moved", s->sum.moved);
	out_add_u64(answer, "moved_before", s->kept);
	out_add_u64(answer, "duration_ms", s->ns / 1000000);
	out_add_bool(answer, "dry_run", c->options.dry_run);
	out_add_bool(answer, "created", s->created);
	if (!c->options.dry_run) {
		gen_id_format(&s->local.meta.generation.current, id);
		out_add_text(answer, "generation", id);
		out_add_text(answer, "state", sidecar_state_name(SIDECAR_UP_TO_DATE));
	}
	ctl_answer(c, answer);
}

static int
sync_run(struct sync *s, const char *target)
{
	struct ctl *c = s->c;
	int rc = ctl_target(c, target, CTL_POOL);

	if (rc)
		return rc;
	s->quoted_file = out_quote(s->file);
	s->quoted_target = out_quote(c->target_text);
	if (!s->quoted_file || !s->quoted_target)
		return err_set(&c->err, REPL_E_NOMEM, "out of memory");
	rc = sync_open(s);
	if (!rc && interrupt_seen()) {
		next_repeat(s);
		rc = err_set(&c->err, REPL_E_FAILED, "interrupted before anything was copied");
	}
	if (!rc)
		rc = c->options.dry_run ? sync_dry_run(s) : sync_decide(s);
	if (!rc)
		sync_warn(s);
	if (!rc && !c->options.dry_run)
		missedmark_answered(s->pool.path);
	if (!rc && s->resolved) {
		s->resolved->moved = s->sum.moved;
		s->resolved->outcome = s->local.meta.generation;
	} else if (!rc) {
		sync_report(s);
	}
	return rc;
}

static int
sync_start(struct ctl *c, const char *file, const char *target, bool create_only,
	   struct resolved *resolved)
{
	struct sync s = {.c = c, .file = file, .create_only = create_only, .resolved = resolved};
	int rc;

	poolfile_init(&s.pool);
	local_init(&s.local);
	rc = sync_run(&s, target);
	ctl_disconnect(c); /* its lanes may still read the file */
	local_fini(&s.local);
	poolfile_fini(&s.pool);
	free(s.quoted_file);
	free(s.quoted_target);
	return rc;
}

int
cmd_sync(struct ctl *c, char **args)
{
	c->file = args[0];
	return sync_start(c, args[0], args[1], false, NULL);
}

int
cmd_sync_new(struct ctl *c, const char *file, const char *target)
{
	c->file = file;
	return sync_start(c, file, target, true, NULL);
}

int
cmd_sync_resolved(struct ctl *c, const char *file, struct resolved *r)
{
	char target[sizeof(c->target_text)];

	memcpy(target, c->target_text, sizeof(target));
	return sync_start(c, file, target, false, r);
}
