/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replctl restore TARGET/pool FILE - pull a replica into a file.
 *
 * The data go to FILE.restoring (restoring.h), which becomes FILE when it is whole and
 * durable. The record beside the file comes last: it never speaks of data
 * that are not there. Only that the file is a primary stands there all the time.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "fabric.h"
#include "hint.h"
#include "interrupt.h"
#include "local.h"
#include "missedmark.h"
#include "out.h"
#include "pmdk.h"
#include "poolfile.h"
#include "poolname.h"
#include "progress.h"
#include "pulse.h"
#include "reason.h"
#include "lineage.h"
#include "replica_judge.h"
#include "restoring.h"
#include "show.h"

/* They keep the target busy (pull.h); where they may go by an RNIC each would pin memory there. */
#define RESTORE_LANES 4U

struct restore {
	struct ctl *c;
	struct restoring temp;
	struct local old;      /* held so that nobody replicates the file that is replaced */
	struct sidecar before; /* its record, where that stays: of a primary */
	struct sidecar meta;
	struct transfer_progress sum;
	uint64_t begin_ns;         /* of the copy: the lanes are open */
	uint64_t ns;               /* until it is durable */
	bool here;                 /* what failed is of this machine */
	struct resolved *resolved; /* NULL: of a command of its own */
	bool shutdown_reset;       /* the file differs from the replica by that */
	char *quoted_file, *quoted_target;
};

static const char *
force_option(const struct restore *r)
{
	return r->c->options.force ? "--force " : "";
}

/*
 * A record that an earlier version has kept beside it may tell that the file is the best there is.
 * Of one that leads nowhere there is nothing to be said.
 */
static int
link_refused(struct restore *r)
{
	struct ctl *c = r->c;
	char *name = strdup(r->temp.file), *file = poolfile_word(r->temp.file);
	struct err e;
	bool left;

	err_clear(&e);
	left = name && poolname_resolve(&name, &e) == REPL_E_REFUSED;
	if (left)
		(void)err_copy(&c->err, &e);
	if (poolname_is_device(r->temp.file))
		ctl_next(c,
			 "where it is the pool-file of a device: mv %s %s.device; replctl restore "
			 "%s%s %s; copy it to the device, then mv -f %s.device %s",
			 r->quoted_file, r->quoted_file, force_option(r), r->quoted_target,
			 r->quoted_file, r->quoted_file, r->quoted_file);
	else if (file && strcmp(file, r->quoted_file) != 0)
		ctl_next(c, "%sreplctl restore %s%s %s", left ? "mend that, then " : "",
			 force_option(r), r->quoted_target, file);
	free(file);
	free(name);
	return c->err.code;
}

static int
restore_check_file(struct restore *r)
{
	struct ctl *c = r->c;
	int rc = restoring_look(&r->temp, &c->err);

	if (rc && S_ISLNK(r->temp.old.st_mode))
		rc = link_refused(r);
	if (!rc && r->temp.replaces)
		rc = poolfile_no_set(r->temp.file, &c->err);
	if (rc || !r->temp.replaces || c->options.force)
		return rc;
	ctl_next(c,
		 "replctl verify %s %s (what differs); replctl restore --force %s %s (replace it)",
		 r->quoted_file, r->quoted_target, r->quoted_target, r->quoted_file);
	return err_set(&c->err, REPL_E_EXISTS, "%s exists and is not replaced", r->temp.file);
}

/* A file and what lies beside it and speaks of it. */
static const char *const kept_parts[] = {"", SIDECAR_SUFFIX, MISSEDMARK_SUFFIX,
					 MISSEDMARK_TAKEN_SUFFIX};
#define KEPT_PARTS (sizeof(kept_parts) / sizeof(kept_parts[0]))

static bool
part_is_there(const char *file, const char *suffix, const char *part)
{
	struct stat st;
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s%s%s", file, suffix, part);
	return lstat(path, &st) == 0;
}

static bool
any_is_there(const char *file, const char *suffix)
{
	bool any = false;

	for (size_t i = 0; i < KEPT_PARTS; i++)
		any = any || part_is_there(file, suffix, kept_parts[i]);
	return any;
}

void
cmd_restore_keep(const char *file, char text[CTL_NEXT_MAX])
{
	char *word = out_quote(file);
	char old[16] = ".old";
	size_t len = 0;

	/* What was kept before, and may be the best there is, stays. */
	for (unsigned n = 2; any_is_there(file, old) && n < 1000; n++)
		(void)snprintf(old, sizeof(old), ".old%u", n);
	text[0] = '\0';
	/* -n: what it has kept stays, too, when the command is given once more. */
	for (size_t i = 0; word && i < KEPT_PARTS && len < CTL_NEXT_MAX; i++)
		if (part_is_there(file, "", kept_parts[i]))
			len += (size_t)snprintf(text + len, CTL_NEXT_MAX - len,
						"mv -n %s%s %s%s%s; ", word, kept_parts[i], word,
						old, kept_parts[i]);
	free(word);
}

const char *
cmd_restore_promote(bool was_primary)
{
	return was_primary
		       ? "; then replctl promote TARGET/POOL (by its own target: it was a primary)"
		       : "";
}

static bool
was_primary(const struct restore *r)
{
	return r->old.present && r->old.meta.primary;
}

/* By what the record of the file tells, which is not known, it may be the best there is. */
static void
unknown_next(struct restore *r, const char *first)
{
	char keep[CTL_NEXT_MAX];

	cmd_restore_keep(r->temp.file, keep);
	ctl_next(r->c,
		 "%s; or, to keep what is there: %sreplctl restore %s %s; if it was a primary, "
		 "then replctl promote TARGET/POOL (by its own target)",
		 first, keep, r->quoted_target, r->quoted_file);
}

/* That what stands in the old record is damaged is nobody's error: nobody may have it. */
static int
restore_lock_old(struct restore *r)
{
	uint64_t size = r->temp.replaces ? (uint64_t)r->temp.old.st_size : 0;
	struct local *old = &r->old;
	struct err e;
	bool repair;
	int rc;

	err_clear(&e);
	rc = local_open(old, r->temp.file, size, &e);
	/* One that can't be opened may be locked. */
	if (rc && (rc == REPL_E_BUSY || old->fd < 0))
		return err_copy(&r->c->err, &e);
	if (rc == REPL_E_VERSION) {
		unknown_next(r, "install that version of librepl");
		return err_copy(&r->c->err, &e);
	}
	/* Of a file that was cut, or is gone, it tells all the same what that had. */
	err_clear(&e);
	if (rc)
		old->present = sidecar_read(old->fd, &old->meta, &repair, &e) == 0;
	if (!old->present && e.errnum) {
		unknown_next(r, "look at this machine's kernel log");
		return err_set(&r->c->err, REPL_E_IO, "%s: %s", old->path, e.text);
	}
	return restoring_lock_replaced(&r->temp, &r->c->err);
}

/* What is not to be had without force, or NULL. */
static const char *
restore_lacks(const struct sidecar *meta)
{
	bool never = gen_id_is_nil(&meta->generation.current);

	switch (meta->state) {
	case SIDECAR_UP_TO_DATE:
		return never ? "it has never been written, all of it is zero" : NULL;
	case SIDECAR_UNKNOWN:
		return NULL;
	case SIDECAR_INCONSISTENT:
		return never ? "its first copy has begun and not ended, or its file was cut or "
			       "replaced"
			     : "a copy into it has begun and not ended";
	default:
		return "it misses updates";
	}
}

static int
restore_check_state(struct restore *r)
{
	struct ctl *c = r->c;
	const char *name = sidecar_state_name(r->meta.state), *lacks = restore_lacks(&r->meta);
	char id[GEN_TEXT_SIZE];

	if (r->meta.state == SIDECAR_UNKNOWN) {
		gen_id_format(&r->meta.generation.current, id);
		show_unknown(stderr, c->target_text, id, r->meta.position);
	}
	if (!lacks)
		return 0;
	if (c->options.force) {
		(void)fprintf(stderr, "replctl: %s is %s: %s, restored all the same\n",
			      c->target_text, name, lacks);
		return 0;
	}
	/* An outdated one may be the best there is: who has less may look better. */
	if (r->meta.state == SIDECAR_OUTDATED)
		ctl_next_newest(c, r->quoted_target,
				"replctl restore --force %s %s (take it as it is)",
				r->quoted_target, r->quoted_file);
	else
		ctl_next(c,
			 "restore from another replica, or finish the sync to this one; replctl "
			 "restore --force %s %s (take it as it is)",
			 r->quoted_target, r->quoted_file);
	return err_set(&c->err, REPL_E_REFUSED, "the replica %s is %s: %s", c->target_text, name,
		       lacks);
}

/*
 * The record beside the file speaks of what that has, or had: also one that is outdated, where the
 * replica is of a generation before that in which it is.
 */
static bool
restore_record_counts(const struct restore *r)
{
	const struct local *old = &r->old;

	return old->present && !old->meta.opening &&
	       (!local_check_whole(old, NULL) ||
		(old->meta.state == SIDECAR_OUTDATED &&
		 judge_relation(&old->meta, &r->meta) == GEN_AHEAD));
}

/* Of what the file has, or had, to the replica; behind, where nothing tells. */
static enum gen_relation
restore_relation(const struct restore *r)
{
	return restore_record_counts(r) ? judge_relation(&r->old.meta, &r->meta) : GEN_BEHIND;
}

/*
 * Of the generation that both have the replica may have less: its writer ended without a word and
 * did not wait for it, and of the file nobody knows that it is a part as well, and no larger one.
 */
static bool
restore_may_be_behind(const struct restore *r)
{
	const struct sidecar *file = &r->old.meta, *replica = &r->meta;
	bool part = file->state == SIDECAR_UNKNOWN && !file->primary && file->position;

	return restore_record_counts(r) &&
	       gen_compare(&file->generation, &replica->generation) == GEN_EQUAL &&
	       replica->state == SIDECAR_UNKNOWN && !replica->waited &&
	       (!part || replica->position < file->position);
}

/*
 * Programs have made bytes of the file durable, while another one had it open, that nobody has
 * looked at: who resolves has taken the mark of what was there then.
 */
static bool
restore_missed(const struct restore *r)
{
	return r->resolved ? missedmark_is(r->temp.file) : missedmark_waits(r->temp.file);
}

/* Why the file may be the best there is, or NULL. */
static const char *
restore_file_has_more(const struct restore *r)
{
	static const char *const lacks[] = {
		[GEN_AHEAD] = "it lacks what the file has been given since",
		[GEN_DIVERGED] = "it lacks what the file has been given since they were the same",
		[GEN_UNRELATED] = "no generation is in common",
	};
	enum gen_relation relation = restore_relation(r);

	if (lacks[relation])
		return lacks[relation];
	if (restore_may_be_behind(r))
		return "it may lack what the file has been given since";
	if (restore_missed(r))
		return "it may lack what programs have made durable in the file while another one "
		       "had it open";
	return NULL;
}

/* With nothing to be replaced it is only to be known that there is, or was, more. */
static int
restore_check_gone(struct restore *r)
{
	static const char *const told[] = {
		[GEN_AHEAD] = "a later generation than",
		[GEN_DIVERGED] = "a generation that went another way than",
		[GEN_UNRELATED] = "a generation that has nothing in common with",
	};
	const char *promote = cmd_restore_promote(was_primary(r));
	enum gen_relation relation = restore_relation(r);
	struct ctl *c = r->c;
	char keep[CTL_NEXT_MAX];

	if (c->options.force || !told[relation])
		return 0;
	cmd_restore_keep(r->temp.file, keep);
	if (relation == GEN_UNRELATED)
		ctl_next(c, "if it is the right one: %sreplctl restore %s %s%s", keep,
			 r->quoted_target, r->quoted_file, promote);
	else
		ctl_next_newest(c, r->quoted_target,
				"replctl restore --force %s %s (take it as it is)",
				r->quoted_target, r->quoted_file);
	return err_set(&c->err, REPL_E_REFUSED,
		       "%s is gone, and %s tells of %s that of %s: it lacks what the file had",
		       r->temp.file, r->old.path, told[relation], c->target_text);
}

void
cmd_restore_left_next(struct ctl *c, const char *file, const char *target)
{
	char *word = out_quote(file);
	char keep[CTL_NEXT_MAX];

	cmd_restore_keep(file, keep);
	ctl_next_newest(c, target,
			"if that is this file: replctl promote --force TARGET/POOL (where it lies, "
			"as it is); or, to keep it: %sreplctl restore --force %s %s",
			keep, target, word ? word : "FILE");
	free(word);
}

/*
 * What is left of a file that was cut is nobody's to be copied. Where the replica may have more,
 * too, a sync is refused as well: of one pool it is resolved whose data go, by a look at them.
 */
static void
replaced_next(struct restore *r)
{
	bool cut = r->old.present && (uint64_t)r->temp.old.st_size < r->old.meta.pool_size;
	enum gen_relation relation = restore_relation(r);
	const char *file = r->quoted_file, *target = r->quoted_target;
	const char *promote = cmd_restore_promote(was_primary(r));
	char keep[CTL_NEXT_MAX];

	cmd_restore_keep(r->temp.file, keep);
	if (cut)
		ctl_next_newest(r->c, target, "or, to keep it: %sreplctl restore --force %s %s%s",
				keep, target, file, promote);
	else if (local_check_whole(&r->old, NULL))
		cmd_restore_left_next(r->c, r->temp.file, target);
	else if (relation == GEN_UNRELATED && !judge_is_one_pool(&r->old.meta, &r->meta))
		ctl_next(r->c, "if it is the right one: %sreplctl restore %s %s%s", keep, target,
			 file, promote);
	else if (restore_record_counts(r) && relation != GEN_EQUAL && relation != GEN_AHEAD)
		ctl_next(r->c,
			 "replctl resolve --discard local %s %s (tells what the file would lose, "
			 "and asks)",
			 file, target);
	else
		ctl_next(r->c,
			 "replctl sync %s %s (if the file is whole); or, to keep it: %sreplctl "
			 "restore --force %s %s%s",
			 file, target, keep, target, file, promote);
}

/*
 * Force that was given so that a file is replaced says nothing of what it is replaced with: one
 * that may be the best there is stays, under another name. What is resolved was looked at, by a
 * person.
 */
static int
restore_check_replaced(struct restore *r)
{
	const char *lacks = restore_lacks(&r->meta);
	struct ctl *c = r->c;

	if (r->resolved)
		return restore_missed(r) ? resolved_changed(c) : 0;
	if (!r->temp.replaces)
		return restore_check_gone(r);
	if (!lacks)
		lacks = restore_file_has_more(r);
	if (!lacks)
		return 0;
	replaced_next(r);
	return err_set(&c->err, REPL_E_REFUSED, "%s is not replaced by %s, not by force either: %s",
		       r->temp.file, c->target_text, lacks);
}

static int
restore_open(struct restore *r)
{
	struct ctl *c = r->c;
	struct progress progress;
	int rc = restore_check_file(r);

	if (!rc)
		rc = restore_lock_old(r);
	if (rc)
		return rc;
	progress_wait(&progress, c->host_text);
	rc = ctl_connect(c);
	if (!rc)
		rc = remote_pool_open(c->remote, c->target.pool, REMOTE_STABLE, &c->err);
	(void)progress_end(&progress);
	if (!rc)
		rc = remote_refuse_headers(c->remote, &c->err);
	if (rc)
		return rc;
	r->meta = remote_info(c->remote)->meta;
	rc = resolved_check(c, r->resolved, &r->meta, r->old.present ? &r->old.meta : NULL,
			    &r->temp.old);
	if (!rc)
		rc = restore_check_replaced(r);
	return rc ? rc : restore_check_state(r);
}

static int
restore_pull(struct restore *r)
{
	struct ctl *c = r->c;
	struct progress progress;
	struct transfer t = {.remote = c->remote, .progress = progress_tell, .arg = &progress};
	unsigned lanes = fab_rdma_present() ? 1 : RESTORE_LANES;
	int rc = remote_lanes_open(c->remote, lanes, &c->err);

	if (rc)
		return rc;
	r->begin_ns = clock_now_ns();
	progress_begin(&progress, "restore", r->meta.pool_size, c->options.json);
	rc = transfer_pull(&t, r->temp.fd, r->meta.pool_size, &r->sum, &c->err);
	(void)progress_end(&progress);
	return rc;
}

static bool
file_is_dax(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH, 0, &st) == 0 && (st.stx_attributes & STATX_ATTR_DAX);
}

/* A pool of PMDK's may be opened wherever it is restored to. */
static int
restore_pmdk(struct restore *r)
{
	uint8_t header[PMDK_HEADER_SIZE];

	if (r->meta.pool_size < sizeof(header) ||
	    pread(r->temp.fd, header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    !pmdk_shutdown_settle(header, file_is_dax(r->temp.fd)))
		return 0;
	if (pwrite(r->temp.fd, header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return err_errno(&r->c->err, REPL_E_IO, errno, "writing %s", r->temp.path);
	r->shutdown_reset = true;
	return 0;
}

/* Of what it is then a record tells, which is that of the file that is replaced. */
static bool
keeps_record(const struct restore *r)
{
	return was_primary(r) && r->meta.state != SIDECAR_INCONSISTENT;
}

/* Of a pool that was promoted, and is used where it lies, these are the data from now on. */
static int
restore_stays_primary(struct restore *r, struct sidecar *file)
{
	struct gen_id id;
	int rc;

	if (!was_primary(r))
		return 0;
	rc = local_new_id(&id, &r->c->err);
	if (rc)
		return rc;
	lineage_promote(file, &id);
	memcpy(file->writer, r->old.meta.writer, sizeof(file->writer));
	return 0;
}

static int
restore_describe(struct restore *r, struct sidecar *file)
{
	struct gen_id fresh;
	int rc = local_new_id(&fresh, &r->c->err);

	if (rc)
		return rc;
	memset(file, 0, sizeof(*file));
	file->pool_uuid = r->meta.pool_uuid;
	file->pool_size = r->meta.pool_size;
	file->created_s = (uint64_t)time(NULL);
	lineage_restore(file, &r->meta, r->shutdown_reset, &fresh);
	return restore_stays_primary(r, file);
}

/*
 * While it may be the old data or the new ones that stand under the name they are of no generation
 * that anybody knows, as beside a file that no program has written to under its record.
 */
static int
restore_record_begin(struct restore *r)
{
	struct sidecar next;
	int rc = restore_describe(r, &next);

	if (rc)
		return rc;
	memset(&next.generation, 0, sizeof(next.generation));
	rc = local_new_id(&next.generation.current, &r->c->err);
	if (rc)
		return rc;
	next.position = 0;
	next.state = SIDECAR_UP_TO_DATE;
	next.opening = true;
	r->before = r->old.meta;
	r->old.meta = next;
	return local_store(&r->old, &r->c->err);
}

/* The file is as it was. */
static void
restore_record_undo(struct restore *r)
{
	if (!r->old.meta.opening || !r->before.primary)
		return;
	r->old.meta = r->before;
	/* Else there is one that the next restore takes up. */
	(void)local_store(&r->old, NULL);
}

static int
restore_record_store(struct restore *r, struct local *l)
{
	if (r->resolved)
		r->resolved->outcome = l->meta.generation;
	return local_store(l, &r->c->err);
}

/*
 * What the file is from now on. Of a copy that was cut off nobody knows a
 * generation: without a record it has to be compared before it counts. A record that is there is
 * of somebody who uses the file since it has its name, and may have changed it.
 */
static int
restore_record(struct restore *r)
{
	struct sidecar file;
	struct local l;
	int rc;

	if (r->meta.state == SIDECAR_INCONSISTENT)
		return 0;
	rc = restore_describe(r, &file);
	if (rc)
		return rc;
	if (keeps_record(r)) {
		r->old.meta = file;
		return restore_record_store(r, &r->old);
	}
	local_init(&l);
	rc = local_open(&l, r->temp.file, r->meta.pool_size, &r->c->err);
	if (!rc && l.present)
		rc = err_set(&r->c->err, REPL_E_BUSY,
			     "%s is restored, and a program has used it since: %s is left as it is",
			     r->temp.file, l.path);
	if (!rc) {
		l.meta = file;
		rc = restore_record_store(r, &l);
	}
	local_fini(&l);
	return rc;
}

/* The command, once more; allocated. What is resolved a restore alone is refused for. */
static char *
restore_again(const struct restore *r)
{
	char *text = NULL;
	int n = r->resolved ? asprintf(&text, "replctl resolve --discard local %s %s",
				       r->quoted_file, r->quoted_target)
			    : asprintf(&text, "replctl restore %s%s%s %s",
				       r->c->options.dry_run ? "--dry-run " : "", force_option(r),
				       r->quoted_target, r->quoted_file);

	return n < 0 ? NULL : text;
}

static const char *
restore_after(const struct restore *r, int rc, bool io)
{
	if (rc == REPL_E_NOSPC)
		return r->c->err.errnum == EFBIG ? "mend what the message names, then "
						 : "make room there, then ";
	return io ? "look at this machine's kernel log, then " : "";
}

static void
restore_next(struct restore *r, int rc)
{
	bool io = r->c->err.code == REPL_E_IO;
	char *again = restore_again(r);

	if (io && !r->here)
		ctl_next(r->c, "look at the target's kernel log; if its device fails take another "
			       "replica, or copy the pool's file there by ddrescue(1), its "
			       "bytes are the pool's");
	else if (again)
		ctl_next(r->c, "%s%s%s", restore_after(r, rc, io), again,
			 r->temp.removed ? "" : " (goes on where this ended)");
	free(again);
}

static int
restore_unfinished(struct restore *r, int rc)
{
	restore_next(r, rc);
	if (r->temp.removed)
		return err_prefix(&r->c->err, "restore of %s not finished", r->temp.file);
	return err_prefix(&r->c->err, "restore of %s not finished, %s is kept", r->temp.file,
			  r->temp.path);
}

/*
 * Who maps the file may have gone on with it all the time, without its replicas: not every program
 * locks it.
 */
static int
restore_check_missed(struct restore *r)
{
	if (!r->temp.replaces || !restore_missed(r))
		return 0;
	replaced_next(r);
	return err_set(&r->c->err, REPL_E_EXISTS,
		       "a program has made bytes of %s durable while that was to be replaced; the "
		       "restored data are in %s",
		       r->temp.file, r->temp.path);
}

static int
restore_place(struct restore *r)
{
	struct err *e = &r->c->err;
	int rc = restoring_settle(&r->temp, e);

	if (!rc)
		rc = restore_check_missed(r);
	if (rc)
		return rc;
	rc = keeps_record(r) ? restore_record_begin(r) : restoring_forget(&r->temp, e);
	if (!rc)
		rc = restoring_place(&r->temp, e);
	if (rc && !r->temp.placed)
		restore_record_undo(r);
	if (!rc && r->resolved)
		missedmark_answered(r->temp.file);
	return rc;
}

/* Where the file has its name by now, that is told, too. */
static int
restore_finish(struct restore *r)
{
	struct ctl *c = r->c;
	int rc = restore_place(r);
	bool away;

	if (!rc)
		rc = restore_record(r);
	/* These tell all of it. */
	if (!rc || rc == REPL_E_BUSY || rc == REPL_E_EXISTS)
		return rc;
	if (!r->temp.placed)
		return restore_unfinished(r, rc);
	/* By force alone it would not be replaced by one that lacks something. */
	away = restore_lacks(&r->meta) || missedmark_waits(r->temp.file);
	ctl_next(c, "mend that, then %s%s%sreplctl restore --force %s %s%s%s", away ? "rm " : "",
		 away ? r->quoted_file : "", away ? "; " : "", r->quoted_target, r->quoted_file,
		 away ? "" : " (moves only what differs)",
		 cmd_restore_promote(was_primary(r) && !keeps_record(r)));
	return err_prefix(&c->err, "%s is restored and whole, but without its record",
			  r->temp.file);
}

/* The file that is replaced is copied first, which may take longer than the target bears silence.
 */
static int
restore_open_temp(struct restore *r)
{
	struct ctl *c = r->c;
	struct pulse pulse = {0};
	int rc = pulse_start(&pulse, c->remote, &c->err);

	if (!rc)
		rc = restoring_open(&r->temp, r->meta.pool_size, &c->err);
	pulse_stop(&pulse);
	return rc;
}

/* In a dry run it is only looked whether it could be done. */
static int
restore_begin(struct restore *r)
{
	struct ctl *c = r->c;
	int rc = c->options.dry_run ? restoring_check(&r->temp, r->meta.pool_size, &c->err)
				    : restore_open_temp(r);
	char *again = restore_again(r);

	/* No session of the target's tells who that is. */
	if (rc == REPL_E_BUSY && again)
		ctl_next(c, "wait until the other restore has ended, or end it, then %s", again);
	free(again);
	return rc;
}

static int
restore_copy(struct restore *r)
{
	struct ctl *c = r->c;
	int rc = restore_pull(r);

	r->here = !rc || c->err.reason == REPL_REASON_LOCAL;
	if (!rc)
		rc = restoring_allocate(&r->temp, &c->err);
	if (!rc)
		rc = restore_pmdk(r);
	if (rc)
		return restore_unfinished(r, rc);
	rc = restore_finish(r);
	r->ns = clock_now_ns() - r->begin_ns;
	return rc;
}

/*
 * The file differs from the replica, and the record beside it, if there is one, has left the
 * generation of which that has but a part: the replica is not overwritten by itself.
 */
static bool
restore_leaves(const struct restore *r)
{
	return r->shutdown_reset &&
	       (r->meta.state == SIDECAR_INCONSISTENT || r->meta.state == SIDECAR_OUTDATED ||
		lineage_is_untold(&r->meta));
}

static void
restore_left_next(const struct restore *r, char text[CTL_NEXT_MAX])
{
	bool recorded = r->meta.state != SIDECAR_INCONSISTENT;

	(void)snprintf(text, CTL_NEXT_MAX, "replctl %s %s %s",
		       recorded ? "resolve --discard replica" : "sync --force", r->quoted_file,
		       r->quoted_target);
	hint_complete(text, CTL_NEXT_MAX, &r->c->options);
}

static void
restore_print_reset(const struct restore *r, FILE *to)
{
	char next[CTL_NEXT_MAX];

	if (!r->shutdown_reset)
		return;
	(void)fprintf(to, "its PMDK shutdown state, which spoke of another device, is reset, "
			  "and the checksum of its header is made anew\n");
	if (!restore_leaves(r))
		return;
	restore_left_next(r, next);
	out_line(to, "%s differs from it by that, and is refused until it is overwritten",
		 r->c->target_text);
	show_field(to, "next", "%s", next);
}

static void
restore_print(const struct restore *r)
{
	char moved[OUT_NUMBER_MAX], size[OUT_NUMBER_MAX], duration[OUT_NUMBER_MAX];
	char rate[OUT_NUMBER_MAX];

	out_size(r->sum.moved, moved);
	out_size(r->meta.pool_size, size);
	out_duration(r->ns, duration);
	out_size(out_rate(r->meta.pool_size, r->ns), rate);
	if (r->c->options.dry_run)
		out_line(stdout, "would restore %s (%s, %s) to %s%s", r->c->target_text, size,
			 sidecar_state_name(r->meta.state), r->temp.file,
			 r->temp.replaces ? ", replacing it" : "");
	else if (r->sum.moved == 0)
		out_line(stdout, "%s is restored: nothing had to be moved, in %s", r->temp.file,
			 duration);
	else
		out_line(stdout, "%s is restored: moved %s of %s in %s (%s/s)", r->temp.file, moved,
			 size, duration, rate);
	restore_print_reset(r, stdout);
}

static void
restore_report(struct restore *r)
{
	struct ctl *c = r->c;
	struct json_object *answer = json_object_new_object();
	char id[GEN_TEXT_SIZE], next[CTL_NEXT_MAX];

	if (!c->options.json)
		restore_print(r);
	gen_id_format(&r->meta.generation.current, id);
	out_add_text(answer, "target", c->target_text);
	out_add_text(answer, "file", r->temp.file);
	out_add_u64(answer, "size", r->meta.pool_size);
	out_add_u64(answer, "moved", r->sum.moved);
	out_add_u64(answer, "duration_ms", r->ns / 1000000);
	out_add_bool(answer, "dry_run", c->options.dry_run);
	out_add_bool(answer, "replaced", r->temp.replaces && !c->options.dry_run);
	out_add_bool(answer, "shutdown_state_reset", r->shutdown_reset);
	out_add_text(answer, "state", sidecar_state_name(r->meta.state));
	out_add_text(answer, "generation", id);
	if (r->meta.position)
		out_add_u64(answer, "position", r->meta.position);
	if (restore_leaves(r)) {
		restore_left_next(r, next);
		out_add_text(answer, "next", next);
	}
	ctl_answer(c, answer);
}

static int
restore_run(struct restore *r, char **args)
{
	struct ctl *c = r->c;
	int rc = ctl_target(c, args[0], CTL_POOL);

	if (!rc)
		rc = restoring_init(&r->temp, args[1], &c->err);
	if (rc)
		return rc;
	r->quoted_file = out_quote(args[1]);
	r->quoted_target = out_quote(c->target_text);
	if (!r->quoted_file || !r->quoted_target)
		return err_set(&c->err, REPL_E_NOMEM, "out of memory");
	rc = restore_open(r);
	r->temp.sparse = !rc && r->meta.sparse;
	interrupt_catch();
	/* A file that may not get longer: the write says so. */
	(void)signal(SIGXFSZ, SIG_IGN);
	if (!rc)
		rc = restore_begin(r);
	if (!rc && !c->options.dry_run)
		rc = restore_copy(r);
	if (!rc && r->resolved) {
		r->resolved->moved = r->sum.moved;
		restore_print_reset(r, c->options.json ? stderr : stdout);
	} else if (!rc) {
		restore_report(r);
	}
	return rc;
}

static int
restore_start(struct ctl *c, char **args, struct resolved *resolved)
{
	struct restore r = {.c = c, .resolved = resolved};
	int rc;

	local_init(&r.old);
	rc = restore_run(&r, args);
	ctl_disconnect(c);
	local_fini(&r.old);
	restoring_fini(&r.temp);
	free(r.quoted_file);
	free(r.quoted_target);
	return rc;
}

int
cmd_restore(struct ctl *c, char **args)
{
	c->file = args[1];
	return restore_start(c, args, NULL);
}

int
cmd_restore_resolved(struct ctl *c, const char *file, struct resolved *r)
{
	char target[sizeof(c->target_text)], *path = strdup(file);
	char *args[] = {target, path};
	int rc;

	memcpy(target, c->target_text, sizeof(target));
	rc = path ? restore_start(c, args, r) : err_set(&c->err, REPL_E_NOMEM, "out of memory");
	free(path);
	return rc;
}
