/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl why FILE | TARGET/pool: the reason, what it is told from, and what helps. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ask.h"
#include "boot.h"
#include "commands.h"
#include "control.h"
#include "fileclaim.h"
#include "hint.h"
#include "holes.h"
#include "out.h"
#include "poolfile.h"
#include "poolname.h"
#include "reason.h"
#include "restoring.h"
#include "sessions.h"
#include "show.h"
#include "text.h"
#include "whyset.h"

#define NEXT_MAX 2048

/* What is found out, as it is told. */
struct why {
	int reason;
	const char *file;
	const char *meaning; /* NULL: the reason's */
	char next[NEXT_MAX];
	struct json_object *evidence; /* of texts */
};

static void evidence_add(struct why *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
evidence_add(struct why *w, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_clean(text);
	control_append(w->evidence, json_object_new_string(text));
}

static void
why_answer(struct ctl *c, struct why *w, const char *name)
{
	struct json_object *o = json_object_new_object();
	const struct reason_names names = {
		.file = w->file, .target = c->host_text, .replica = c->target_text};
	const char *meaning = w->meaning ? w->meaning : reason_meaning(w->reason);

	if (!w->next[0])
		reason_next_for(w->reason, &names, w->next, sizeof(w->next));
	hint_complete(w->next, sizeof(w->next), &c->options);
	if (!c->options.json) {
		show_field(stdout, "what", "%s", name);
		show_field(stdout, "reason", "%s: %s", reason_name(w->reason), meaning);
		for (size_t i = 0; i < json_object_array_length(w->evidence); i++)
			show_field(
				stdout, i ? "" : "evidence", "%s",
				json_object_get_string(json_object_array_get_idx(w->evidence, i)));
		show_field(stdout, "next", "%s", w->next);
	}
	out_add_text(o, "what", name);
	out_add_text(o, "reason", reason_name(w->reason));
	out_add_text(o, "meaning", meaning);
	control_add(o, "evidence", json_object_get(w->evidence));
	out_add_text(o, "next", w->next);
	ctl_answer(c, o);
}

/* ---- a local pool ---- */

/* No device, and there: commands copy it, and it has a size. */
static bool
is_file(const char *file)
{
	struct stat st;

	return stat(file, &st) == 0 && S_ISREG(st.st_mode);
}

/* A file that is smaller than the record beside it says: no growth explains that. */
static void
judge_size(struct why *w, const char *word, uint64_t recorded)
{
	struct stat st;

	if (stat(w->file, &st) || !S_ISREG(st.st_mode) || st.st_size < 0 ||
	    (uint64_t)st.st_size >= recorded)
		return;
	w->reason = REPL_REASON_DAMAGED;
	w->meaning = "the file is smaller than the record beside it says";
	evidence_add(w, "the record is of a pool of %" PRIu64 " bytes, the file has %lld", recorded,
		     (long long)st.st_size);
	(void)snprintf(w->next, sizeof(w->next),
		       "if the pool was made anew: rm %s" SIDECAR_SUFFIX
		       "; replctl remove TARGET/POOL; if it was cut off: replctl restore --dry-run "
		       "--force TARGET/POOL %s",
		       word, word);
}

static bool
holds_zeros(const char *file)
{
	struct poolfile pool;
	struct err e;
	bool zeros;

	err_clear(&e);
	poolfile_init(&pool);
	zeros = poolfile_open(&pool, file, &e) == 0 && holes_blank(pool.path, pool.mem, pool.size);
	poolfile_fini(&pool);
	return zeros;
}

/* What a program writes to a file that was made anew is copied over the replicas of the lost one.
 */
static void
judge_zeros(struct why *w, const char *word, const struct gen_id *recorded)
{
	if (gen_id_is_nil(recorded) || !holds_zeros(w->file))
		return;
	evidence_add(w, "the file holds nothing but zeros: if its program has ever stored anything "
			"else, it was made anew");
	(void)snprintf(w->next, sizeof(w->next),
		       "replctl verify %s TARGET/POOL before the program is started, which copies "
		       "what it writes over the replica; where they differ, for the replica's "
		       "data: replctl restore --dry-run --force TARGET/POOL %s",
		       word, word);
}

/* A record that can't be read says nothing of a replica: none is to be made anew for it. */
static void
judge_record(struct why *w, const char *word, const struct err *e)
{
	if (e->code == REPL_E_VERSION) {
		w->reason = REPL_REASON_VERSION;
		w->meaning = "the record beside the file is of a newer version of librepl";
		(void)snprintf(w->next, sizeof(w->next), "install that version of librepl");
		return;
	}
	/* It may be as it was when the disk can be read again. */
	if (e->errnum) {
		w->reason = REPL_REASON_LOCAL;
		w->meaning = "the record beside the file can't be read";
		(void)snprintf(w->next, sizeof(w->next),
			       "look at this machine's kernel log, then replctl why %s", word);
		return;
	}
	w->reason = REPL_REASON_DAMAGED;
	w->meaning = "the record beside the file can't be believed";
	(void)snprintf(w->next, sizeof(w->next),
		       "rm %s" SIDECAR_SUFFIX
		       ", then start the program: a replica that differs from the file is left as "
		       "it is, and the message says how to choose",
		       word);
}

/* What was left half way, as a replica, is refused to programs and to commands that copy it. */
static void
judge_left(struct why *w, const char *word, const struct sidecar *s)
{
	const char *holds = sidecar_holds(s);

	if (holds) {
		w->reason = REPL_REASON_WRITER_GONE;
		w->meaning = "it was a replica, and what its last writer has left was not brought "
			     "in";
		evidence_add(w, "the record holds a %s: the file may lack updates", holds);
		(void)snprintf(w->next, sizeof(w->next),
			       "replctl probe TARGET/POOL once, by its own target, which brings "
			       "them in");
		return;
	}
	if (s->primary || (s->state != SIDECAR_INCONSISTENT && s->state != SIDECAR_OUTDATED))
		return;
	w->reason = (int)reason_of_sidecar(s);
	w->meaning = "it was a replica, and was not brought up to date";
	evidence_add(w, "the record says that it is %s", sidecar_state_name(s->state));
	/* An outdated one may be the best there is. */
	if (s->state == SIDECAR_OUTDATED)
		(void)snprintf(w->next, sizeof(w->next),
			       "replctl newest TARGET/POOL (with the other replicas behind it) "
			       "tells which has all; then replctl restore --force TARGET/POOL %s; "
			       "or, if it is this one: replctl promote --force TARGET/POOL (where "
			       "it lies, as it is)",
			       word);
	else
		(void)snprintf(w->next, sizeof(w->next),
			       "replctl restore --force TARGET/POOL %s (of a replica that is up to "
			       "date); if there is none: replctl promote --force TARGET/POOL "
			       "(where it lies, as it is)",
			       word);
}

/* What it had is to be had from a replica, but for a device's, which the record alone is of. */
static void
judge_gone(struct why *w, const char *word, enum boot_power power)
{
	const char *device = "if it is the pool-file of a device whose program makes its data "
			     "durable before they are replicated, start it; else ";

	if (power == BOOT_KEPT)
		device = "if it is the pool-file of a device, start the program; else ";
	else if (power == BOOT_UNTOLD)
		device = "if it is the pool-file of a device, and this machine has not lost its "
			 "power since, start the program; else ";
	w->reason = REPL_REASON_DAMAGED;
	w->meaning = "the record beside the file is there, the file is not";
	(void)snprintf(w->next, sizeof(w->next),
		       "%sreplctl newest TARGET/POOL (with the other replicas behind it) tells "
		       "which has all; then replctl restore TARGET/POOL %s",
		       device, word);
}

/* A restore leaves one of a primary, or one that tells nothing: the data are those of before, or
 * the new ones. */
static void
judge_opening(struct why *w, const char *word, const char *path, bool restore)
{
	int len = (int)(strlen(path) - strlen(SIDECAR_SUFFIX));
	char *left = NULL;
	struct stat st;

	w->reason = REPL_REASON_WRITER_GONE;
	w->meaning = "an opening of it, or a restore over it, was cut off: of which generation it "
		     "is nobody knows";
	if (asprintf(&left, "%.*s" RESTORING_SUFFIX, len, path) < 0)
		left = NULL;
	if (restore && left && lstat(left, &st) == 0) {
		evidence_add(w, "what a restore has copied is in %s", left);
		(void)snprintf(w->next, sizeof(w->next),
			       "replctl restore --force TARGET/POOL %s (goes on where it ended)",
			       word);
	} else {
		bool file = is_file(w->file);

		(void)snprintf(w->next, sizeof(w->next),
			       "%s%s%sstart the program: a replica that differs from what it has "
			       "is left as it is, and the message says how to choose",
			       file ? "replctl verify " : "", file ? word : "",
			       file ? " TARGET/POOL (what differs); " : "");
	}
	free(left);
}

static void
judge_closing(struct why *w, const struct sidecar *s)
{
	w->reason = s->writer_open ? REPL_REASON_WRITER_GONE : REPL_REASON_NONE;
	if (!s->writer_open) {
		w->meaning = "the record tells of nothing wrong; what a replica has is told "
			     "by its target";
		evidence_add(w, "the program has closed it in order");
	} else if (boot_power(s) == BOOT_CUT) {
		w->meaning = "the file may lack what its replicas have";
		evidence_add(w, "this machine was started anew since the file's program ended "
				"without closing it, or a sync of the file has failed");
	} else {
		evidence_add(w, "the program that replicates it has ended without closing it");
	}
}

/* A program that is started makes the replicas equal to the file. */
static void
next_own(struct why *w, const char *word, const struct sidecar *s)
{
	enum boot_power power = boot_power(s);

	if (power == BOOT_CUT)
		(void)snprintf(w->next, sizeof(w->next),
			       "replctl newest TARGET/POOL (with the other replicas behind it) "
			       "before all else; only where the program makes its data durable "
			       "before they are replicated, so that the file has all, it goes on "
			       "from the file");
	else if (s->writer_open)
		(void)snprintf(
			w->next, sizeof(w->next),
			"%sstart the program again: it compares and brings its replicas up; "
			"where it is refused its message says why",
			power == BOOT_KEPT
				? ""
				: "if this machine has lost its power since, the file may "
				  "lack what replicas have: replctl newest TARGET/POOL (with "
				  "the other replicas behind it) before all else; otherwise ");
	else if (is_file(w->file))
		(void)snprintf(w->next, sizeof(w->next),
			       "replctl verify %s TARGET/POOL; a replica that lacks "
			       "something gets it when the program is started",
			       word);
	else
		(void)snprintf(w->next, sizeof(w->next),
			       "start the program, which compares and brings its replicas up; what "
			       "a replica has: replctl why TARGET/POOL");
}

/* The record of the file, and of no replica. */
static void
judge_own(struct why *w, const char *word, const char *path, const struct sidecar *s)
{
	char id[GEN_TEXT_SIZE], when[OUT_NUMBER_MAX];

	gen_id_format(&s->generation.current, id);
	out_time(s->updated_s, when);
	evidence_add(w, "%s: generation %s, last changed %s", path, id, when);
	if (s->opening)
		judge_opening(w, word, path, s->primary || sidecar_tells_nothing(s));
	else
		judge_closing(w, s);
	if (s->dirty_len)
		evidence_add(w, "it notes what replicas miss: one was away, or "
				"after-crash = dirty-map is set");
	if (!s->opening)
		judge_left(w, word, s);
	if (!w->next[0])
		judge_size(w, word, s->pool_size);
	if (!w->next[0])
		judge_zeros(w, word, &s->generation.current);
	if (!w->next[0])
		next_own(w, word, s);
}

static bool
is_locked(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
		(void)flock(fd, LOCK_UN);
		return false;
	}
	return errno == EWOULDBLOCK;
}

/*
 * Whoever replicates the pool, or copies it, has locked its record, and programs of PMDK's the
 * file. They try but once: that one is not locked to look at it.
 */
static const char *
locked_path(const struct why *w, int record, const char *path)
{
	struct stat st;

	if (record >= 0 && is_locked(record))
		return path;
	return is_file(w->file) && stat(w->file, &st) == 0 && fileclaim_seen(&st) ? w->file : NULL;
}

static void
judge_held(struct why *w, const char *word, const char *locked)
{
	w->reason = REPL_REASON_NONE;
	w->meaning = "a program, a sync or a restore has it, and answers elsewhere or nowhere";
	evidence_add(w, "%s is locked", locked);
	(void)snprintf(w->next, sizeof(w->next),
		       "fuser -v %s %s" SIDECAR_SUFFIX
		       " tells who has it; of a program that replicates it name the socket that "
		       "its status-socket says in place of the file: replctl why SOCKET; where "
		       "that is none, the program itself tells, or each target: replctl why "
		       "TARGET/POOL",
		       word, word);
}

/* Without a record of ours. */
static void
judge_unknown(struct why *w, const char *word, const char *path)
{
	const char *locked;
	struct whyset set;

	if (whyset_look(w->file, &set)) {
		evidence_add(w,
			     "it is %s: of the replicas of a set nothing is kept on this side, and "
			     "its programs answer to nobody here; they tell of a loss on standard "
			     "error, or in RPMEM_LOG_FILE",
			     set.what);
		w->reason = REPL_REASON_NONE;
		w->meaning = "what a replica of a pool set has is told by its target";
		(void)snprintf(w->next, sizeof(w->next), "%s", set.next);
		return;
	}
	locked = locked_path(w, -1, NULL);
	if (locked) {
		judge_held(w, word, locked);
		return;
	}
	evidence_add(w, "there is no %s: nothing was ever replicated from here", path);
	w->reason = REPL_REASON_FAILED;
	(void)snprintf(w->next, sizeof(w->next), "replctl sync --dry-run %s TARGET/POOL", word);
}

/* Of a file that is gone the record may still be there. */
static bool
has_record(const char *file)
{
	struct stat st;
	char *path = NULL;
	bool has;

	if (asprintf(&path, "%s" SIDECAR_SUFFIX, file) < 0)
		return false;
	has = lstat(path, &st) == 0 && S_ISREG(st.st_mode);
	free(path);
	return has;
}

/* The record: beside what a link leads to, or, where that is a device, beside the link. */
static int
record_open(const char *file, const char *real, char **path)
{
	bool linked = real && !has_record(real) && has_record(file);

	if (asprintf(path, "%s" SIDECAR_SUFFIX, real && !linked ? real : file) < 0)
		*path = NULL;
	return *path ? open(*path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
}

/* No program that has it open answers: what its sidecar says. */
static int
why_closed(struct ctl *c, const char *file)
{
	struct why w = {.file = file, .evidence = json_object_new_array()};
	char *path = NULL, *quoted = poolfile_word(file), *real = realpath(file, NULL);
	const char *word = quoted ? quoted : "FILE";
	bool gone = access(file, F_OK) != 0, repair = false;
	enum boot_power power = BOOT_UNTOLD;
	const char *locked = NULL;
	struct sidecar s;
	int fd = record_open(file, real, &path), rc = 0;

	if (!gone)
		evidence_add(&w, "no program answers at %s.repl-sock",
			     real && !poolname_is_device(file) ? real : file);
	if (fd < 0 && errno == ENOENT) {
		judge_unknown(&w, word, path);
	} else if (fd < 0) {
		rc = err_errno(&c->err, err_from_errno(errno), errno, "%s", path ? path : file);
	} else if ((locked = locked_path(&w, fd, path)) != NULL) {
		judge_held(&w, word, locked);
	} else if (sidecar_read(fd, &s, &repair, &c->err)) {
		evidence_add(&w, "%s: %s", path, c->err.text);
		judge_record(&w, word, &c->err);
		err_clear(&c->err);
	} else {
		judge_own(&w, word, path, &s);
		power = boot_power(&s);
	}
	if (gone && !locked)
		judge_gone(&w, word, power);
	if (!rc)
		why_answer(c, &w, file);
	json_object_put(w.evidence);
	if (fd >= 0)
		(void)close(fd);
	free(path);
	free(real);
	free(quoted);
	return rc;
}

/* Neither a file nor a replica: perhaps a target was meant. */
static void
why_nothing(struct ctl *c, const char *arg)
{
	char *word = out_quote(arg);

	ctl_next(c,
		 "name a local pool file, or a replica as TARGET/pool; of a target: "
		 "replctl status %s",
		 word ? word : "TARGET");
	free(word);
}

/* What another look by this command would end by as well. */
static bool
is_stuck(int rc)
{
	return rc == REPL_E_BUSY || rc == REPL_E_TIMEOUT || rc == REPL_E_LOST ||
	       rc == REPL_E_PROTOCOL || rc == REPL_E_VERSION;
}

static int
why_file(struct ctl *c, const char *file)
{
	struct json_object *status = NULL, *list;
	struct ask a;
	int rc;

	ask_init(&a, c);
	rc = ask_open(&a, file, &c->err);
	if (rc == REPL_E_NOT_FOUND && (access(file, F_OK) == 0 || has_record(file))) {
		err_clear(&c->err);
		ask_fini(&a);
		return why_closed(c, file);
	}
	if (rc == REPL_E_NOT_FOUND)
		why_nothing(c, file);
	c->file = file;
	if (!rc)
		rc = ask_call(&a, "status", NULL, &status, &c->err);
	if (!rc && !c->options.json) {
		list = show_replicas(status);
		for (size_t i = 0; i < json_object_array_length(list); i++) {
			if (i)
				(void)putchar('\n');
			show_replica(stdout, json_object_array_get_idx(list, i));
		}
	}
	if (!rc)
		ctl_answer(c, status);
	else if (is_stuck(rc))
		ask_next(c, file);
	ask_fini(&a);
	return rc;
}

/* ---- a replica, by its target ---- */

static enum sidecar_state
state_named(const char *name)
{
	for (int s = SIDECAR_UP_TO_DATE; s <= SIDECAR_UNKNOWN; s++)
		if (strcmp(name, sidecar_state_name((enum sidecar_state)s)) == 0)
			return (enum sidecar_state)s;
	return SIDECAR_UNKNOWN;
}

/* The session that has the pool open for writing; borrowed from sessions, NULL: none. */
static struct json_object *
find_writer(struct json_object *sessions, const char *pool)
{
	for (size_t i = 0; i < json_object_array_length(sessions); i++) {
		struct json_object *o = json_object_array_get_idx(sessions, i);

		if (strcmp(out_member(o, "pool"), pool) == 0 &&
		    strcmp(out_member(o, "mode"), "write") == 0)
			return o;
	}
	return NULL;
}

static void
judge_writer(struct why *w, struct json_object *writer)
{
	struct json_object *report = NULL;
	char size[OUT_NUMBER_MAX];
	uint64_t lag;

	evidence_add(w, "open for writing by %s, session %s", out_member(writer, "peer"),
		     out_member(writer, "session"));
	if (!json_object_object_get_ex(writer, "report", &report)) {
		w->reason = REPL_REASON_OTHER_WRITER;
		return;
	}
	w->reason = (int)reason_by_name(out_member(report, "reason"));
	evidence_add(w, "it says: %s, %s, %s", out_member(report, "connection"),
		     out_member(report, "replication"), out_member(report, "data"));
	lag = out_member_u64(report, "lag_bytes");
	out_size(lag, size);
	if (lag)
		evidence_add(w, "it had %s on the way here, the oldest for %" PRIu64 " ms", size,
			     out_member_u64(report, "lag_ms"));
	if (lag && w->reason == REPL_REASON_NONE)
		w->meaning = "the replica gets everything in its order, and lacks the last of it";
}

static bool
has_no_generation(struct json_object *info)
{
	struct gen_id id;

	return gen_id_parse(out_member(info, "generation"), &id) && gen_id_is_nil(&id);
}

/* With none, no copy into it has ended: that nothing was acknowledged is all that it "holds". */
static void
judge_generation(struct why *w, struct json_object *info)
{
	if (!has_no_generation(info))
		return;
	evidence_add(w, "that is none: no copy into it has come to its end, or its file was cut or "
			"replaced");
	if (w->reason == REPL_REASON_WRITER_GONE)
		w->reason = REPL_REASON_INCONSISTENT;
}

/* A drain counts without a replica that it does not wait for. */
static void
judge_waited(struct why *w, struct json_object *info)
{
	uint64_t position = out_member_u64(info, "position");

	if (w->reason != REPL_REASON_WRITER_GONE)
		return;
	if (out_member_bool(info, "waited")) {
		evidence_add(w, "drains waited for it");
		return;
	}
	w->meaning = "its writer ended without closing it, and nothing says that drains waited for "
		     "it: it holds those up to its position, and may lack later ones that were "
		     "acknowledged";
	if (position)
		evidence_add(w, "position %" PRIu64 " of that generation", position);
	else
		evidence_add(w, "no position is told");
}

/* As create makes it, or a sync that has come no further. */
static void
judge_unwritten(struct why *w, const char *replica)
{
	char *word = out_quote(replica);

	w->meaning = "nothing has been copied into it since it was made: all of it is zero";
	(void)snprintf(w->next, sizeof(w->next),
		       "replctl sync FILE %s; or open the program that replicates to it",
		       word ? word : "TARGET/POOL");
	free(word);
}

/* Nobody tells a target what went on without it. */
static void
judge_closed(struct why *w, const char *replica)
{
	char *word = out_quote(replica);

	w->meaning = "it has all that was acknowledged until it was closed; another copy may have "
		     "gone on without it";
	(void)snprintf(w->next, sizeof(w->next),
		       "replctl newest %s (with the other replicas behind it) tells which has all",
		       word ? word : "TARGET/POOL");
	free(word);
}

static void
judge_info(struct why *w, struct json_object *info, struct json_object *writer)
{
	struct sidecar s = {.state = state_named(out_member(info, "state"))};
	char when[OUT_NUMBER_MAX];

	if (!control_has(info, "size")) {
		w->reason = REPL_REASON_DAMAGED;
		evidence_add(w, "its metadata: %s", out_member(info, "sidecar"));
		return;
	}
	(void)control_get_bool(info, "writer_open", &s.writer_open, NULL);
	(void)control_get_bool(info, "primary", &s.primary, NULL);
	out_time(out_member_u64(info, "updated"), when);
	evidence_add(w, "its metadata say %s, last changed %s", out_member(info, "state"), when);
	evidence_add(w, "generation %s", out_member(info, "generation"));
	if (strcmp(out_member(info, "sidecar"), "ok") != 0)
		evidence_add(w, "metadata: %s", out_member(info, "sidecar"));
	if (control_has(info, "journal"))
		evidence_add(w, "a resync's journal is there: %s", out_member(info, "journal"));
	if (s.primary)
		evidence_add(w, "it was promoted to a primary");
	w->reason = (int)reason_of_sidecar(&s);
	if (writer) {
		judge_writer(w, writer);
		return;
	}
	/* Of one whose writer is gone the target says "unknown". A primary's has no session. */
	if (s.writer_open && s.state == SIDECAR_UP_TO_DATE && !s.primary) {
		w->reason = REPL_REASON_OTHER_WRITER;
		evidence_add(w,
			     "open for writing by %s; its session does not tell what it does: it "
			     "is of another version of repld, or found no space for that",
			     out_member(info, "writer"));
		return;
	}
	evidence_add(w, "no session says that it has it open for writing; last writer: %s",
		     out_member(info, "writer"));
	if (s.writer_open)
		evidence_add(w, s.primary ? "its own program has it open, or has ended without "
					    "closing it"
					  : "that writer has not closed it");
	judge_generation(w, info);
	judge_waited(w, info);
}

/* Seen from the target a session that writes is no fault: it may be the only one there is. */
static void
judge_writing(struct why *w, const char *target)
{
	char *word = out_quote(target);

	w->meaning = "a session writes to it that has not told what it does: a program that has "
		     "only just opened it, a sync, or a program of another version";
	(void)snprintf(w->next, sizeof(w->next),
		       "replctl status --watch %s shows what it does; end it only if nobody should "
		       "write to it",
		       word ? word : "TARGET");
	free(word);
}

/* Of a set's replica, what its user can do: neither is there a FILE, nor does replctl copy it. */
static void
judge_set(struct why *w, struct json_object *info, const char *replica)
{
	uint64_t header = out_member_u64(info, "header");
	char *word;

	if (!header)
		return;
	if (control_has(info, "header_damage")) {
		w->reason = REPL_REASON_DAMAGED;
		evidence_add(w, "%s", out_member(info, "header_damage"));
		return;
	}
	word = out_quote(replica);
	if (w->reason == REPL_REASON_PROMOTED)
		(void)snprintf(
			w->next, sizeof(w->next),
			"to go on elsewhere with what it has: move the program's local part "
			"away, replctl demote %s, then pmempool sync of the set file; where "
			"that does not count replctl demote alone: the program overwrites it; "
			"beside other replicas of the set, which went on without it, then "
			"also replctl remove --force of the ones whose data are not wanted",
			word ? word : "TARGET/POOL");
	else if (w->reason == REPL_REASON_WRITER_GONE || w->reason == REPL_REASON_INCONSISTENT ||
		 w->reason == REPL_REASON_OUTDATED || has_no_generation(info))
		(void)snprintf(w->next, sizeof(w->next),
			       "if its program runs nothing needs to be done, it brings the "
			       "replica up to date by itself; else start it again; where its local "
			       "part is lost: replctl newest %s (with the other replicas behind "
			       "it), then pmempool sync of the set file",
			       word ? word : "TARGET/POOL");
	free(word);
}

/* A path that begins with neither '/' nor '.' was taken for a replica. */
static void
next_file(struct why *w, const char *arg)
{
	char *word = access(arg, F_OK) == 0 ? ask_word(arg) : NULL;

	if (word)
		(void)snprintf(w->next, sizeof(w->next),
			       "if the file of this name is meant: replctl why %s", word);
	free(word);
}

/* The protocol is theirs in common: they have spoken. */
static void
why_newer(struct why *w)
{
	w->meaning = "its metadata are of a newer version than the repld of the target";
	(void)snprintf(w->next, sizeof(w->next),
		       "install the version of repld that made it, or a newer one, on the target");
}

static int
why_target(struct ctl *c, const char *arg)
{
	struct why w = {.evidence = json_object_new_array()};
	struct json_object *info = NULL, *sessions = NULL;
	uint64_t size;
	int rc = ctl_target(c, arg, CTL_POOL);

	if (rc && access(arg, F_OK) == 0)
		ctl_next_file(c, "if the file of this name is meant: replctl why", arg);
	if (!rc && ctl_connect(c)) {
		w.reason = (int)reason_of_error(&c->err, REASON_CONNECT);
		evidence_add(&w, "%s", c->err.text);
		/* Of what can be no host's name it is a matter of configuration. */
		if (c->err.code == REPL_E_UNREACHABLE || c->err.code == REPL_E_CONFIG)
			next_file(&w, arg);
		err_clear(&c->err);
		goto out;
	}
	if (!rc && ctl_pool_info(c, &info, &size)) {
		w.reason = (int)reason_of_error(&c->err, REASON_OPEN);
		evidence_add(&w, "%s", c->err.text);
		if (w.reason == REPL_REASON_VERSION)
			why_newer(&w);
		err_clear(&c->err);
		goto out;
	}
	if (!rc)
		rc = sessions_fetch(c, &sessions, NULL);
	if (!rc)
		judge_info(&w, info, find_writer(sessions, c->target.pool));
	if (!rc && w.reason == REPL_REASON_OTHER_WRITER)
		judge_writing(&w, c->host_text);
	if (!rc && w.reason == REPL_REASON_NONE && !find_writer(sessions, c->target.pool)) {
		if (has_no_generation(info))
			judge_unwritten(&w, c->target_text);
		else
			judge_closed(&w, c->target_text);
	}
	if (!rc)
		judge_set(&w, info, c->target_text);
out:
	if (!rc)
		why_answer(c, &w, c->target_text);
	json_object_put(w.evidence);
	json_object_put(info);
	json_object_put(sessions);
	return rc;
}

int
cmd_why(struct ctl *c, char **args)
{
	/* A replica's name has a slash. */
	return ask_is_file(args[0]) || !strchr(args[0], '/') ? why_file(c, args[0])
							     : why_target(c, args[0]);
}
