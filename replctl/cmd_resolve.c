/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replctl resolve --discard local|replica FILE TARGET/pool - after both sides went on.
 *
 * First it is looked, in a session of its own, at what would be lost; then the user decides;
 * then sync's or restore's machinery does it, if all is still as it was seen. What is
 * discarded never becomes an ancestor: the file's chain gets a new generation that does not
 * have it, or the file takes the replica's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot.h"
#include "commands.h"
#include "confirm.h"
#include "control.h"
#include "interrupt.h"
#include "keep.h"
#include "local.h"
#include "missedmark.h"
#include "out.h"
#include "poolfile.h"
#include "progress.h"
#include "replica_judge.h"
#include "restore.h"

#define RANGES_TOLD 16
#define RANGES_JSON 1000

struct resolve {
	struct ctl *c;
	const char *file;
	char *place;     /* of the file that was looked at, with links resolved */
	bool local_goes; /* else the replica's */
	struct poolfile pool;
	struct local local;
	enum gen_relation relation;
	enum boot_power power; /* of a primary: it may lack what its replicas have */
	struct resolved seen;
	uint64_t bytes, ranges; /* that differ */
	struct json_object *list;
	struct progress progress;
	char *quoted_file, *quoted_target;
};

int
resolved_changed(struct ctl *c)
{
	return err_set(&c->err, REPL_E_REFUSED,
		       "file or replica have changed since they were looked at; nothing was "
		       "changed, look again");
}

static bool
is_same_replica(const struct sidecar *seen, const struct sidecar *now)
{
	return memcmp(&seen->generation, &now->generation, sizeof(now->generation)) == 0 &&
	       seen->state == now->state && /* all that a cut off copy changes */
	       seen->primary == now->primary && seen->pool_size == now->pool_size;
}

static bool
is_same_file(const struct stat *seen, const struct stat *now)
{
	return seen->st_ino == now->st_ino && seen->st_size == now->st_size &&
	       seen->st_mtim.tv_sec == now->st_mtim.tv_sec &&
	       seen->st_mtim.tv_nsec == now->st_mtim.tv_nsec;
}

/*
 * The file's times do not tell of stores to a mapping on tmpfs; who opens the pool changes this.
 * Not the current generation: of a replica that is used where it lies that is made up at each look.
 */
static bool
is_same_record(const struct sidecar *seen, const struct sidecar *now)
{
	return now && seen->sequence == now->sequence &&
	       gen_id_equal(&seen->pool_uuid, &now->pool_uuid) &&
	       memcmp(seen->generation.history, now->generation.history,
		      sizeof(now->generation.history)) == 0;
}

int
resolved_check(struct ctl *c, const struct resolved *r, const struct sidecar *replica,
	       const struct sidecar *local, const struct stat *file)
{
	if (!r || (is_same_replica(&r->replica, replica) && is_same_record(&r->local, local) &&
		   is_same_file(&r->file, file)))
		return 0;
	return resolved_changed(c);
}

/* ---- look ---- */

static void
note_range(void *arg, uint64_t off, uint64_t len)
{
	struct resolve *r = arg;
	struct json_object *pair;

	r->bytes += len;
	if (r->ranges++ >= RANGES_JSON)
		return;
	pair = json_object_new_array();
	control_append(pair, json_object_new_uint64(off));
	control_append(pair, json_object_new_uint64(len));
	control_append(r->list, pair);
}

/* By a link it is the file that goes. */
static void
keep_next(struct resolve *r, const char *look)
{
	char *file = out_quote(r->pool.path);
	char keep[CTL_NEXT_MAX];

	keep_moves(r->pool.path, keep);
	ctl_next(r->c,
		 "%s; %sreplctl restore %s %s (all of it: the file gets the replica's data and "
		 "size)%s",
		 look, keep, r->quoted_target, file ? file : "FILE",
		 keep_promote(r->local.meta.primary));
	free(file);
}

/* What is outdated may be the best there is, but of what is of the same generation. */
static void
behind_next(struct resolve *r)
{
	struct ctl *c = r->c;
	char look[CTL_NEXT_MAX];

	(void)snprintf(look, sizeof(look), "replctl verify %s %s (what differs)", r->quoted_file,
		       r->quoted_target);
	if (!local_check_whole(&r->local, NULL) && r->local_goes)
		keep_next(r, look);
	else if (!local_check_whole(&r->local, NULL))
		ctl_next(c, "replctl sync %s %s", r->quoted_file, r->quoted_target);
	else if (r->relation == GEN_AHEAD && r->local.meta.state == SIDECAR_OUTDATED)
		keep_left_next(c, r->pool.path, r->quoted_target);
	else
		ctl_next(c, "replctl restore --force %s %s", r->quoted_target, r->quoted_file);
}

/* One that was made by itself, and filled under a record that is gone, may be of this pool. */
static void
stranger_next(struct resolve *r)
{
	char look[CTL_NEXT_MAX];

	(void)snprintf(look, sizeof(look),
		       "replctl verify %s %s (what differs: is it the right one?)", r->quoted_file,
		       r->quoted_target);
	if (r->local_goes)
		keep_next(r, look);
	else
		ctl_next(r->c, "%s; replctl sync --force %s %s (overwrite the replica)", look,
			 r->quoted_file, r->quoted_target);
}

static int
nothing_known(struct resolve *r)
{
	struct ctl *c = r->c;

	if (r->local_goes)
		ctl_next(c,
			 "replctl verify %s %s (what differs); replctl restore --force %s %s "
			 "(take the replica's data)",
			 r->quoted_file, r->quoted_target, r->quoted_target, r->quoted_file);
	else
		ctl_next(c,
			 "replctl verify %s %s (what differs); replctl sync --force %s %s "
			 "(overwrite the replica)",
			 r->quoted_file, r->quoted_target, r->quoted_file, r->quoted_target);
	if (r->local.fd >= 0)
		return err_set(&c->err, REPL_E_REFUSED,
			       "nothing is known of %s: a restore over it was cut off, and %s "
			       "tells nothing",
			       r->file, r->local.path);
	return err_set(&c->err, REPL_E_REFUSED, "nothing is known of %s: there is no %s%s", r->file,
		       r->pool.path, SIDECAR_SUFFIX);
}

/* Only what can't be brought together by itself, of one pool, is resolved. */
static int
look_relation(struct resolve *r)
{
	const struct sidecar *replica = &r->seen.replica;
	struct ctl *c = r->c;

	if (!r->local.present)
		return nothing_known(r);
	/* What it lacks is nobody's to take the replica's place. */
	if (!r->local_goes && local_check_whole(&r->local, &c->err))
		return c->err.code;
	r->relation = judge_relation(&r->local.meta, replica);
	if (r->relation == GEN_EQUAL || r->relation == GEN_AHEAD) {
		behind_next(r);
		return err_set(&c->err, REPL_E_REFUSED, "there is nothing to resolve: %s",
			       r->relation == GEN_EQUAL ? "both are of the same generation"
							: "the replica is only behind");
	}
	if (judge_is_one_pool(&r->local.meta, replica))
		return 0;
	stranger_next(r);
	return err_set(&c->err, REPL_E_REFUSED,
		       "%s has another identity than %s, and no generation in common: it may be "
		       "of another pool",
		       c->target_text, r->file);
}

/* One side has grown since they were the same: they can't be compared, and no pool shrinks. */
static void
size_next(struct resolve *r)
{
	struct ctl *c = r->c;
	char look[CTL_NEXT_MAX];
	bool smaller = r->seen.replica.pool_size < r->pool.size;

	(void)snprintf(look, sizeof(look), "replctl restore %s OTHER-FILE (to look at both)",
		       r->quoted_target);
	if (r->local_goes)
		keep_next(r, look);
	else if (smaller && r->local.recorded < r->pool.size)
		ctl_next(c,
			 "replctl grow %s --size %zu (if the pool has grown; then the same again); "
			 "where it is but the first %" PRIu64
			 " bytes of the file: replctl restore %s OTHER-FILE (what it would lose); "
			 "replctl remove %s, then start its program, which makes and fills it",
			 r->quoted_target, r->pool.size, r->local.recorded, r->quoted_target,
			 r->quoted_target);
	else if (smaller)
		ctl_next(c, "replctl grow %s --size %zu, then the same again", r->quoted_target,
			 r->pool.size);
	else
		ctl_next(c,
			 "replctl restore %s OTHER-FILE (what it would lose); replctl remove %s, "
			 "then replctl sync %s %s (all of it)",
			 r->quoted_target, r->quoted_target, r->quoted_file, r->quoted_target);
}

/*
 * Of a primary. It is told before anybody decides; who looks what would be lost is not kept from
 * it.
 */
static int
look_power(struct resolve *r)
{
	struct ctl *c = r->c;
	char text[ERR_TEXT_MAX];

	if (!r->local_goes || !r->seen.replica.primary || r->power == BOOT_KEPT)
		return 0;
	restore_power_text(text, c->target_text, r->power);
	if (r->power == BOOT_CUT && !c->options.force && !c->options.dry_run) {
		ctl_next_newest(c, r->quoted_target,
				"replctl resolve --force --discard local %s %s (take it as it is)",
				r->quoted_file, r->quoted_target);
		return err_set(&c->err, REPL_E_REFUSED, "%s", text);
	}
	/* Who has forced it hears of it when it is done. */
	if (!c->options.force || c->options.dry_run)
		(void)fprintf(stderr,
			      "replctl: %s. Before it is taken: replctl newest %s, and behind it "
			      "those replicas\n",
			      text, r->quoted_target);
	return 0;
}

/* The replica is not all of what it names: there may be a better one. */
static void
part_next(struct resolve *r)
{
	struct ctl *c = r->c;

	if (r->seen.replica.state == SIDECAR_OUTDATED)
		ctl_next_newest(c, r->quoted_target,
				"replctl resolve --force --discard local %s %s (take it as it is)",
				r->quoted_file, r->quoted_target);
	else
		ctl_next(c,
			 "restore from another replica; replctl restore --force %s "
			 "OTHER-FILE (to look at it); replctl resolve --force --discard local %s "
			 "%s (take it as it is)",
			 r->quoted_target, r->quoted_file, r->quoted_target);
}

static int
look_state(struct resolve *r)
{
	const struct sidecar *replica = &r->seen.replica;
	struct ctl *c = r->c;

	if (!r->local_goes && replica->primary) {
		ctl_next(c, "replctl demote %s", r->quoted_target);
		return err_set(
			&c->err, REPL_E_REFUSED,
			"%s is the primary (%s): its data are not discarded before it is demoted",
			c->target_text, replica->writer);
	}
	/* What a primary holds is the pool: one of an earlier version may be called so still. */
	if (r->local_goes && !replica->primary && !c->options.force &&
	    (replica->state == SIDECAR_INCONSISTENT || replica->state == SIDECAR_OUTDATED)) {
		part_next(r);
		return err_set(&c->err, REPL_E_REFUSED, "the replica %s is %s", c->target_text,
			       sidecar_state_name(replica->state));
	}
	if (replica->pool_size == r->pool.size)
		return 0;
	size_next(r);
	return err_set(&c->err, REPL_E_REFUSED, "%s has %zu bytes, the replica %" PRIu64, r->file,
		       r->pool.size, replica->pool_size);
}

static int
look_tell(void *arg, const struct transfer_progress *t)
{
	struct resolve *r = arg;

	return progress_tell(&r->progress, t);
}

static int
look_compare(struct resolve *r)
{
	struct ctl *c = r->c;
	struct transfer t = {.remote = c->remote,
			     .file = r->pool.path,
			     .untouched = true,
			     .progress = look_tell,
			     .arg = r};
	struct transfer_progress sum;
	int rc = remote_lanes_open(c->remote, 1, &c->err);

	if (rc)
		return rc;
	progress_begin(&r->progress, "compare", r->pool.size, c->options.json);
	rc = transfer_compare(&t, r->pool.mem, r->pool.size, note_range, &sum, &c->err);
	(void)progress_end(&r->progress);
	if (rc != REPL_E_DIFFER)
		return rc;
	err_clear(&c->err);
	return 0;
}

static int
look(struct resolve *r)
{
	struct ctl *c = r->c;
	int rc = poolfile_open(&r->pool, r->file, &c->err);

	if (!rc)
		rc = poolfile_settle(&r->pool, &r->local, &c->err);
	if (!rc && local_in_doubt(&r->local) && !c->options.dry_run)
		rc = poolfile_agree(&r->pool, &c->err);
	if (rc)
		return rc;
	/* What is replaced is what was looked at: one that is made from now on tells of more. */
	if (r->local_goes && !c->options.dry_run)
		(void)missedmark_take(r->pool.path);
	progress_wait(&r->progress, c->host_text);
	rc = ctl_connect_lanes(c);
	if (!rc)
		rc = remote_pool_open(c->remote, c->target.pool, REMOTE_STABLE, &c->err);
	(void)progress_end(&r->progress);
	if (!rc)
		rc = remote_refuse_headers(c->remote, &c->err);
	if (rc)
		return rc;
	r->seen.replica = remote_info(c->remote)->meta;
	r->power = remote_info(c->remote)->power;
	r->seen.local = r->local.meta;
	r->seen.file = r->pool.opened;
	rc = look_relation(r);
	if (!rc)
		rc = look_state(r);
	if (!rc)
		rc = look_power(r);
	if (!rc)
		rc = look_compare(r);
	return rc ? rc : poolfile_unchanged(&r->pool, &c->err);
}

/* ---- tell ---- */

static void
tell(const struct resolve *r)
{
	const struct ctl *c = r->c;
	const char *loser = r->local_goes ? r->file : c->target_text;
	char human[OUT_NUMBER_MAX];
	FILE *to = c->options.json || !c->options.dry_run ? stderr : stdout;

	out_size(r->bytes, human);
	out_line(to, "%s and %s: %s; last writer of the replica: %s", r->file, c->target_text,
		 r->relation == GEN_BEHIND     ? "the replica is newer"
		 : r->relation == GEN_DIVERGED ? "both went on since they were the same"
					       : "they have no generation in common",
		 r->seen.replica.writer);
	if (r->local_goes && r->seen.replica.primary &&
	    r->seen.replica.state == SIDECAR_INCONSISTENT)
		out_line(to, "%s is inconsistent: when it is demoted --force takes it as it is",
			 c->target_text);
	if (r->ranges)
		out_line(to, "%s in %" PRIu64 " range%s differ; there %s would lose what it has:",
			 human, r->ranges, out_plural(r->ranges), loser);
	else
		(void)fprintf(to, "their data do not differ; nothing would be lost\n");
	for (size_t i = 0; i < json_object_array_length(r->list) && i < RANGES_TOLD; i++) {
		struct json_object *pair = json_object_array_get_idx(r->list, i);

		(void)fprintf(to, "  offset %" PRId64 ", %" PRId64 " bytes\n",
			      json_object_get_int64(json_object_array_get_idx(pair, 0)),
			      json_object_get_int64(json_object_array_get_idx(pair, 1)));
	}
	if (r->ranges > RANGES_TOLD)
		(void)fprintf(to, "  and %" PRIu64 " more: replctl verify %s %s\n",
			      r->ranges - RANGES_TOLD, r->quoted_file, r->quoted_target);
}

static int
ask(struct resolve *r)
{
	struct ctl *c = r->c;
	char question[1024], again[CTL_NEXT_MAX], human[OUT_NUMBER_MAX];
	const char *what = r->local_goes ? "local" : "replica";

	out_size(r->bytes, human);
	(void)snprintf(question, sizeof(question), "Discard %s of %s for good?", human,
		       r->local_goes ? r->file : c->target_text);
	(void)snprintf(
		again, sizeof(again),
		"replctl resolve --dry-run --discard %s %s %s, then the same with --force in "
		"place of --dry-run",
		what, r->quoted_file, r->quoted_target);
	return confirm(c, question, again);
}

static void
report(struct resolve *r)
{
	struct ctl *c = r->c;
	struct json_object *answer = json_object_new_object();
	char id[GEN_TEXT_SIZE], moved[OUT_NUMBER_MAX];
	/* Of what an inconsistent replica held nobody knows a generation. */
	bool recorded = !gen_id_is_nil(&r->seen.outcome.current);

	out_size(r->seen.moved, moved);
	if (!c->options.json && !c->options.dry_run)
		out_line(stdout, "%s and %s agree: moved %s", r->file, c->target_text, moved);
	if (!c->options.dry_run && !recorded)
		out_line(c->options.json ? stderr : stdout,
			 "%s has no record: what is synced from it is compared first", r->file);
	out_add_text(answer, "file", r->file);
	out_add_text(answer, "target", c->target_text);
	out_add_text(answer, "discard", r->local_goes ? "local" : "replica");
	out_add_text(answer, "relation", gen_relation_name(r->relation));
	out_add_u64(answer, "lost", r->bytes);
	out_add_u64(answer, "range_count", r->ranges);
	control_add(answer, "ranges", json_object_get(r->list));
	out_add_bool(answer, "dry_run", c->options.dry_run);
	if (!c->options.dry_run)
		out_add_u64(answer, "moved", r->seen.moved);
	if (recorded) {
		gen_id_format(&r->seen.outcome.current, id);
		out_add_text(answer, "generation", id);
	}
	ctl_answer(c, answer);
}

/* ---- do ---- */

static int
decide(struct resolve *r)
{
	struct ctl *c = r->c;
	int rc = look(r);

	/* Nothing is held while a person thinks; what has changed by then is seen. */
	ctl_disconnect(c);
	local_fini(&r->local);
	r->place = r->pool.path;
	r->pool.path = NULL;
	poolfile_fini(&r->pool);
	if (rc)
		return rc;
	tell(r);
	if (c->options.dry_run)
		return 0;
	rc = ask(r);
	if (rc)
		return rc;
	c->options.force = true;
	return r->local_goes ? cmd_restore_resolved(c, r->place, &r->seen)
			     : cmd_sync_resolved(c, r->file, &r->seen);
}

static int
resolve_run(struct resolve *r, const char *target)
{
	struct ctl *c = r->c;
	const char *what = c->options.discard ? c->options.discard : "";
	int rc;

	r->local_goes = strcmp(what, "local") == 0;
	if (!r->local_goes && strcmp(what, "replica") != 0)
		return err_set(&c->err, REPL_E_INVAL,
			       "resolve takes --discard local or --discard replica: whose data are "
			       "given up where they differ");
	rc = ctl_target(c, target, CTL_POOL);
	if (rc)
		return rc;
	r->list = json_object_new_array();
	r->quoted_file = poolfile_word(r->file);
	r->quoted_target = out_quote(c->target_text);
	if (!r->list || !r->quoted_file || !r->quoted_target)
		return err_set(&c->err, REPL_E_NOMEM, "out of memory");
	rc = decide(r);
	if (!rc)
		report(r);
	return rc;
}

int
cmd_resolve(struct ctl *c, char **args)
{
	struct resolve r = {.c = c, .file = args[0]};
	int rc;

	c->file = args[0];
	poolfile_init(&r.pool);
	local_init(&r.local);
	rc = resolve_run(&r, args[1]);
	json_object_put(r.list);
	free(r.place);
	free(r.quoted_file);
	free(r.quoted_target);
	return rc;
}
