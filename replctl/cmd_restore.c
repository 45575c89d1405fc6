/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replctl restore TARGET/pool FILE - pull a replica into a file.
 *
 * The data go to FILE.restoring (restoring.h), which becomes FILE when it is whole and
 * durable. What the record beside the file says of it comes last: it never speaks of data
 * that are not there. Only that the file is a primary stands there all the time.
 */
#include <errno.h>
#include <fcntl.h>
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
#include "keep.h"
#include "lineage.h"
#include "local.h"
#include "missedmark.h"
#include "out.h"
#include "pagecache.h"
#include "pmdk.h"
#include "progress.h"
#include "pulse.h"
#include "reason.h"
#include "restore.h"
#include "restoring.h"
#include "show.h"

/* They keep the target busy (pull.h); where they may go by an RNIC each would pin memory there. */
#define RESTORE_LANES 4U

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
	rc = ctl_connect_lanes(c);
	if (!rc)
		rc = remote_pool_open(c->remote, c->target.pool, REMOTE_STABLE, &c->err);
	(void)progress_end(&progress);
	if (!rc)
		rc = remote_refuse_headers(c->remote, &c->err);
	if (rc)
		return rc;
	r->meta = remote_info(c->remote)->meta;
	r->power = remote_info(c->remote)->power;
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

/* A pool of PMDK's may be opened wherever it is restored to. */
static int
restore_pmdk(struct restore *r)
{
	uint8_t header[PMDK_HEADER_SIZE];

	if (r->meta.pool_size < sizeof(header) ||
	    pread(r->temp.fd, header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    !pmdk_shutdown_settle(header, pagecache_is_dax(r->temp.fd)))
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
	return restore_was_primary(r) && r->meta.state != SIDECAR_INCONSISTENT;
}

/* Of a pool that was promoted, and is used where it lies, these are the data from now on. */
static int
restore_stays_primary(struct restore *r, struct sidecar *file)
{
	struct gen_id id;
	int rc;

	if (!restore_was_primary(r))
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
	lineage_restore(file, &r->meta, r->shutdown_reset && r->power == BOOT_KEPT, &fresh);
	/* Its replicas may have more of that generation. */
	if (r->power != BOOT_KEPT)
		lineage_lost(file, &fresh);
	return restore_stays_primary(r, file);
}

/* Of no generation that anybody knows, as beside a file that no program has written to. */
static int
restore_describe_primary(struct restore *r, struct sidecar *next)
{
	int rc = restore_describe(r, next);

	if (rc)
		return rc;
	memset(&next->generation, 0, sizeof(next->generation));
	next->position = 0;
	next->state = SIDECAR_UP_TO_DATE;
	return local_new_id(&next->generation.current, &r->c->err);
}

/* As without a record; to who takes the file for a replica it is none that is whole. */
static void
restore_describe_nothing(const struct restore *r, struct sidecar *next)
{
	*next = (struct sidecar){.pool_uuid = r->meta.pool_uuid,
				 .pool_size = r->meta.pool_size,
				 .created_s = (uint64_t)time(NULL),
				 .state = SIDECAR_INCONSISTENT,
				 .opening = true};
}

/*
 * Of a file without a record: before anything is copied, so that none which the copy has left no
 * room for is wanting at its end.
 */
static int
restore_record_make(struct restore *r)
{
	struct local *old = &r->old;
	int rc;

	if (!r->temp.replaces || old->fd >= 0)
		return 0;
	restore_describe_nothing(r, &old->meta);
	rc = local_store(old, &r->c->err);
	/* Still there is nothing that it tells. */
	old->present = false;
	r->made = old->fd >= 0 && fstat(old->fd, &r->temp.sidecar) == 0;
	r->temp.has_sidecar = r->made;
	return rc;
}

/*
 * While it may be the old data or the new ones that stand under the name. The record stays there
 * all the time, and locked: else a program that has the old ones mapped could put its own beside
 * the new ones. Where neither file nor record is there nobody can.
 */
static int
restore_record_begin(struct restore *r)
{
	struct sidecar next;
	bool repair;
	int rc = 0;

	if (r->made || r->old.fd < 0)
		return 0;
	if (keeps_record(r))
		rc = restore_describe_primary(r, &next);
	else
		restore_describe_nothing(r, &next);
	if (rc)
		return rc;
	next.opening = true;
	/* As it lies: what was read of it is as who goes on with the file would have it. */
	r->recorded = sidecar_read(r->old.fd, &r->before, &repair, NULL) == 0;
	r->old.meta = next;
	return local_store(&r->old, &r->c->err);
}

/* Where somebody has removed it the one that is there now is not ours. */
static bool
made_is_there(const struct restore *r)
{
	struct stat now;

	return r->made && lstat(r->temp.sidecar_path, &now) == 0 &&
	       now.st_dev == r->temp.sidecar.st_dev && now.st_ino == r->temp.sidecar.st_ino;
}

/* The file is as it was: what its record knew, or that there was none, is as true as before. */
static void
restore_record_undo(struct restore *r)
{
	if (made_is_there(r))
		(void)restoring_forget(&r->temp, NULL);
	if (!r->recorded)
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
 * generation: without a record it has to be compared before it counts. Where there was none to be
 * held one that is there is of somebody who uses the file since it has its name, and may have
 * changed it.
 */
static int
restore_record(struct restore *r)
{
	struct sidecar file;
	struct local l;
	int rc;

	if (r->meta.state == SIDECAR_INCONSISTENT)
		return r->old.fd < 0 ? 0 : restoring_forget(&r->temp, &r->c->err);
	rc = restore_describe(r, &file);
	if (rc)
		return rc;
	if (r->old.fd >= 0) {
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
				       r->c->options.dry_run ? "--dry-run " : "", restore_force(r),
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

static int
restore_place(struct restore *r)
{
	struct err *e = &r->c->err;
	int rc = restoring_settle(&r->temp, e);

	if (!rc)
		rc = restore_check_missed(r);
	if (rc)
		return rc;
	rc = restore_record_begin(r);
	if (!rc)
		rc = restoring_place(&r->temp, e);
	if (!rc && r->resolved)
		missedmark_answered(r->temp.file);
	return rc;
}

/* Where the file has its name by now, that is told, too. */
static int
restore_finish(struct restore *r)
{
	struct ctl *c = r->c;
	char away[CTL_NEXT_MAX] = "";
	const char *promote = keep_promote(restore_was_primary(r) && !keeps_record(r));
	int rc = restore_place(r);

	if (!rc)
		rc = restore_record(r);
	/* These tell all of it. */
	if (!rc || rc == REPL_E_BUSY || rc == REPL_E_EXISTS)
		return rc;
	if (!r->temp.placed)
		return restore_unfinished(r, rc);
	/* By force alone it would not be replaced by one that lacks something. */
	if (missedmark_waits(r->temp.file))
		keep_moves(r->temp.file, away);
	else if (restore_lacks(&r->meta))
		(void)snprintf(away, sizeof(away), "rm %s; ", r->quoted_file);
	ctl_next(c, "mend that, then %sreplctl restore --force %s %s%s%s", away, r->quoted_target,
		 r->quoted_file, away[0] ? "" : " (moves only what differs)", promote);
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
	int rc = c->options.dry_run ? 0 : restore_record_make(r);
	char *again;

	if (rc)
		return rc;
	rc = c->options.dry_run ? restoring_check(&r->temp, r->meta.pool_size, &c->err)
				: restore_open_temp(r);
	again = restore_again(r);
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
		r->power != BOOT_KEPT || lineage_is_untold(&r->meta));
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
	if (rc && !r.temp.placed)
		restore_record_undo(&r);
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
