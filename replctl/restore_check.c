/* SPDX-License-Identifier: BSD-3-Clause */
#include "restore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "keep.h"
#include "missedmark.h"
#include "out.h"
#include "poolfile.h"
#include "poolname.h"
#include "replica_judge.h"
#include "show.h"

const char *
restore_force(const struct restore *r)
{
	return r->c->options.force ? "--force " : "";
}

bool
restore_was_primary(const struct restore *r)
{
	return r->old.present && r->old.meta.primary;
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
			 r->quoted_file, r->quoted_file, restore_force(r), r->quoted_target,
			 r->quoted_file, r->quoted_file, r->quoted_file);
	else if (file && strcmp(file, r->quoted_file) != 0)
		ctl_next(c, "%sreplctl restore %s%s %s", left ? "mend that, then " : "",
			 restore_force(r), r->quoted_target, file);
	free(file);
	free(name);
	return c->err.code;
}

int
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

/* By what the record of the file tells, which is not known, it may be the best there is. */
static void
unknown_next(struct restore *r, const char *first)
{
	char keep[CTL_NEXT_MAX];

	keep_moves(r->temp.file, keep);
	ctl_next(r->c,
		 "%s; or, to keep what is there: %sreplctl restore %s %s; if it was a primary, "
		 "then replctl promote TARGET/POOL (by its own target)",
		 first, keep, r->quoted_target, r->quoted_file);
}

/* That what stands in the old record is damaged is nobody's error: nobody may have it. */
int
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

const char *
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

void
restore_power_text(char *text, const char *target, enum boot_power power)
{
	(void)snprintf(text, ERR_TEXT_MAX,
		       "the program of %s ended without closing it, and its machine %s: it may "
		       "lack what its replicas have",
		       target,
		       power == BOOT_CUT ? "was started anew since"
					 : "may have lost its power since");
}

/* Of a primary. */
static int
restore_check_power(struct restore *r)
{
	struct ctl *c = r->c;
	char text[ERR_TEXT_MAX];

	if (r->power == BOOT_KEPT)
		return 0;
	restore_power_text(text, c->target_text, r->power);
	if (r->power != BOOT_CUT || c->options.force) {
		(void)fprintf(stderr, "replctl: %s; restored all the same\n", text);
		return 0;
	}
	ctl_next_newest(c, r->quoted_target, "replctl restore --force %s %s (take it as it is)",
			r->quoted_target, r->quoted_file);
	return err_set(&c->err, REPL_E_REFUSED, "%s", text);
}

int
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
		return restore_check_power(r);
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

/* It speaks of a file that was moved, or is gone: beside this one it would speak of this one. */
static int
restore_check_marks(struct restore *r)
{
	struct ctl *c = r->c;
	char keep[CTL_NEXT_MAX];

	if (!missedmark_waits(r->temp.file))
		return 0;
	keep_moves(r->temp.file, keep);
	ctl_next(c,
		 "if the file was moved, move the mark beside it, and restore again; else, to "
		 "keep it: %sreplctl restore %s%s %s%s",
		 keep, restore_force(r), r->quoted_target, r->quoted_file,
		 keep_promote(restore_was_primary(r)));
	return err_set(&c->err, REPL_E_REFUSED,
		       "%s is gone, and a mark beside it tells of what programs have made durable "
		       "there, which replicas may lack",
		       r->temp.file);
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
	const char *promote = keep_promote(restore_was_primary(r));
	enum gen_relation relation = restore_relation(r);
	struct ctl *c = r->c;
	char keep[CTL_NEXT_MAX];

	if (c->options.force || !told[relation])
		return restore_check_marks(r);
	keep_moves(r->temp.file, keep);
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
	const char *promote = keep_promote(restore_was_primary(r));
	char keep[CTL_NEXT_MAX];

	keep_moves(r->temp.file, keep);
	if (cut)
		ctl_next_newest(r->c, target, "or, to keep it: %sreplctl restore --force %s %s%s",
				keep, target, file, promote);
	else if (local_check_whole(&r->old, NULL))
		keep_left_next(r->c, r->temp.file, target);
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

static int
replaced_refused(struct restore *r, const char *lacks)
{
	struct ctl *c = r->c;

	return err_set(&c->err, REPL_E_REFUSED, "%s is not replaced by %s, not by force either: %s",
		       r->temp.file, c->target_text, lacks);
}

/* What stands behind the pool is in no replica of it: another pool, or what the file has grown by.
 */
static int
restore_check_behind(struct restore *r)
{
	char keep[CTL_NEXT_MAX];

	if ((uint64_t)r->temp.old.st_size <= r->meta.pool_size)
		return 0;
	keep_moves(r->temp.file, keep);
	ctl_next(r->c,
		 "to keep it: %sreplctl restore %s %s (what stood behind the pool is then in "
		 "the file that is kept)%s",
		 keep, r->quoted_target, r->quoted_file, keep_promote(restore_was_primary(r)));
	return replaced_refused(r, "it has fewer bytes than the file");
}

/*
 * Force that was given so that a file is replaced says nothing of what it is replaced with: one
 * that may be the best there is stays, under another name. What is resolved was looked at, by a
 * person.
 */
int
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
		return restore_check_behind(r);
	replaced_next(r);
	return replaced_refused(r, lacks);
}

/*
 * Who maps the file may have gone on with it all the time, without its replicas: not every program
 * locks it.
 */
int
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
