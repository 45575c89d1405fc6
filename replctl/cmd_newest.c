/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl newest TARGET/pool...: which replica to go on from when the primary is gone. */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "control.h"
#include "hint.h"
#include "newest.h"
#include "out.h"
#include "replica_judge.h"
#include "text.h"

#define NOTE_MAX 768

struct row {
	char name[TARGET_TEXT_MAX]; /* as given */
	struct ctl ctl;             /* its own connection; the configuration is shared */
	pthread_t thread;
	bool running;
	bool asked; /* meta is known */
	bool set;   /* its headers are PMDK's: replctl copies it nowhere */
	struct sidecar meta;
	struct err err; /* why not */
	char note[NOTE_MAX];
};

struct choice {
	struct row row[REPL_TARGETS_MAX];
	unsigned count;
	const struct sidecar *asked[REPL_TARGETS_MAX];
	struct row *asked_row[REPL_TARGETS_MAX];
	unsigned asked_count;
	struct row *best, *doubt; /* NULL: none */
};

/* ---- asking ---- */

/*
 * Opened, so that all is brought in that its last writer has left; where that fails as it lies.
 * What a journal holds is of another generation than the one that is told until it is brought in.
 */
static int
row_open(struct ctl *c, struct row *r)
{
	int rc = remote_pool_open(c->remote, c->target.pool, REMOTE_READ, &c->err);

	if (!rc)
		r->meta = remote_info(c->remote)->meta;
	if (r->meta.journal_committed)
		return rc ? rc
			  : err_set(&c->err, REPL_E_BUSY,
				    "the journal of a resync is being brought in; next: the same "
				    "again in a while");
	if (rc)
		(void)snprintf(r->note, sizeof(r->note),
			       "what its last writer has left is not brought in: %.500s",
			       c->err.text);
	err_clear(&c->err);
	return 0;
}

static int
row_fetch(struct ctl *c, struct row *r)
{
	struct json_object *info = NULL;
	struct replica_info *told;
	uint64_t size;
	int rc = ctl_pool_info(c, &info, &size);

	if (!rc && !size)
		rc = err_set(&c->err, REPL_E_CORRUPT, "its metadata: %s",
			     out_member(info, "sidecar"));
	told = calloc(1, sizeof(*told));
	if (!rc && !told)
		rc = err_set(&c->err, REPL_E_NOMEM, "no memory to look at a replica");
	if (!rc)
		rc = replica_info_parse(info, told, &c->err);
	if (!rc) {
		r->meta = told->meta;
		r->set = told->header > 0;
	}
	if (!rc)
		rc = row_open(c, r);
	free(told);
	json_object_put(info);
	return rc;
}

/* Whoever can't be asked keeps nobody else from it, nor does one that hangs. */
static void *
row_ask(void *arg)
{
	struct row *r = arg;
	struct ctl *c = &r->ctl;
	int rc = ctl_connect(c);

	if (!rc)
		rc = row_fetch(c, r);
	r->asked = !rc;
	r->err = c->err;
	text_clean(r->err.text);
	text_clean(r->note);
	ctl_disconnect(c);
	return NULL;
}

static int
rows_name(struct ctl *c, struct choice *x, char **args)
{
	for (; args[x->count]; x->count++) {
		struct row *r;
		int rc = ctl_target(c, args[x->count], CTL_POOL);

		if (!rc && x->count == REPL_TARGETS_MAX)
			rc = err_set(&c->err, REPL_E_INVAL,
				     "a pool has at most %u replicas, more are named",
				     REPL_TARGETS_MAX);
		if (rc)
			return rc;
		r = &x->row[x->count];
		(void)snprintf(r->name, sizeof(r->name), "%s", c->target_text);
		r->ctl = *c;
		for (unsigned i = 0; i < x->count; i++)
			if (strcmp(x->row[i].name, r->name) == 0)
				return err_set(&c->err, REPL_E_INVAL, "%s is named twice", r->name);
	}
	return 0;
}

static void
ask_all(struct choice *x)
{
	for (unsigned i = 0; i < x->count; i++) {
		struct row *r = &x->row[i];

		r->running = pthread_create(&r->thread, NULL, row_ask, r) == 0;
		if (!r->running)
			(void)row_ask(r);
	}
	for (unsigned i = 0; i < x->count; i++)
		if (x->row[i].running)
			(void)pthread_join(x->row[i].thread, NULL);
}

/* Of those that were never written nothing is known, and nothing is to be had. */
static bool
is_written_ever(const struct row *r)
{
	return !gen_id_is_nil(&r->meta.generation.current);
}

/* A chain names only so many generations: two may have only a third one in common. */
static bool
is_known(const struct choice *x, const bool known[REPL_TARGETS_MAX], const struct row *r)
{
	for (unsigned i = 0; i < x->asked_count; i++)
		if (known[i] && judge_is_one_pool(x->asked[i], &r->meta))
			return true;
	return false;
}

static int
check_one_pool(struct ctl *c, const struct choice *x)
{
	bool known[REPL_TARGETS_MAX] = {false}, more = true;
	const struct row *first = NULL;

	while (more) {
		more = false;
		for (unsigned i = 0; i < x->asked_count; i++) {
			const struct row *r = x->asked_row[i];

			if (known[i] || !is_written_ever(r) || (first && !is_known(x, known, r)))
				continue;
			known[i] = more = true;
			first = first ? first : r;
		}
	}
	for (unsigned i = 0; i < x->asked_count; i++)
		if (!known[i] && is_written_ever(x->asked_row[i]))
			return err_set(&c->err, REPL_E_INVAL,
				       "%s and %s are replicas of different pools", first->name,
				       x->asked_row[i]->name);
	return 0;
}

/* ---- telling ---- */

static void note_add(struct row *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
note_add(struct row *r, const char *fmt, ...)
{
	size_t used = strlen(r->note);
	va_list ap;

	if (used > 0 && used + 3 < sizeof(r->note))
		used += (size_t)snprintf(r->note + used, sizeof(r->note) - used, "; ");
	va_start(ap, fmt);
	(void)vsnprintf(r->note + used, sizeof(r->note) - used, fmt, ap);
	va_end(ap);
}

static void
note_unusable(struct row *r)
{
	if (gen_id_is_nil(&r->meta.generation.current))
		note_add(r, "no copy into it has ended: it has nothing");
	else if (r->meta.state == SIDECAR_INCONSISTENT)
		note_add(r, "a copy into it has not ended: not usable");
}

/* Why it is not the one to take. */
static void
note_behind(struct row *r, const struct row *best)
{
	switch (newest_over(&best->meta, &r->meta)) {
	case NEWEST_GENERATION:
		note_add(r, "older: %s names its generation", best->name);
		break;
	case NEWEST_STATE:
		note_add(r, "it is outdated, %s is not", best->name);
		break;
	case NEWEST_WAITED:
		note_add(r,
			 newest_over(&r->meta, &best->meta) ? "it has all as well"
							    : "%s has been waited for",
			 best->name);
		break;
	case NEWEST_POSITION:
		note_add(r, r->meta.position < best->meta.position ? "its position is lower"
								   : "it has all as well");
		break;
	default:
		break;
	}
}

static void
notes_make(struct choice *x)
{
	for (unsigned i = 0; i < x->count; i++) {
		struct row *r = &x->row[i];

		if (!r->asked) {
			note_add(r, "%s", r->err.text);
			continue;
		}
		note_unusable(r);
		if (x->best && r != x->best && newest_usable(&r->meta))
			note_behind(r, x->best);
		if (r == x->best && r->meta.state == SIDECAR_OUTDATED)
			note_add(r, "it misses updates, and no other one that was asked has them");
		if (r->meta.primary)
			note_add(r, "it was promoted: a program goes on with it in place");
		if (r->meta.writer_open)
			note_add(r, "somebody writes to it now");
	}
}

/*
 * Of one that is outdated, or that a copy has not ended in, a part is there, whoever has waited for
 * it. A primary's is of the generation before.
 */
static void
position_text(const struct row *r, char out[OUT_NUMBER_MAX])
{
	if (r->meta.primary)
		(void)snprintf(out, OUT_NUMBER_MAX, "-");
	else if (r->meta.state == SIDECAR_INCONSISTENT)
		(void)snprintf(out, OUT_NUMBER_MAX, "?");
	else if (r->meta.waited && r->meta.state != SIDECAR_OUTDATED)
		(void)snprintf(out, OUT_NUMBER_MAX, "all");
	else if (r->meta.position)
		(void)snprintf(out, OUT_NUMBER_MAX, "%" PRIu64, r->meta.position);
	else
		(void)snprintf(out, OUT_NUMBER_MAX, "?");
}

static void
print_rows(const struct choice *x)
{
	static const char *const heads[] = {"REPLICA", "STATE", "GENERATION", ">POSITION",
					    "LAST CHANGED"};
	struct out_table t;

	out_table_init(&t, heads, sizeof(heads) / sizeof(heads[0]));
	for (unsigned i = 0; i < x->count; i++) {
		const struct row *r = &x->row[i];
		char id[GEN_TEXT_SIZE] = "-", position[OUT_NUMBER_MAX] = "-",
		     when[OUT_NUMBER_MAX] = "-";
		const char *cells[] = {r->name, "not asked", id, position, when};

		if (r->asked) {
			cells[1] = r->meta.primary ? "primary" : sidecar_state_name(r->meta.state);
			gen_id_format(&r->meta.generation.current, id);
			position_text(r, position);
			out_time(r->meta.updated_s, when);
			id[8] = '\0';
		}
		out_table_row(&t, cells);
		if (r->note[0])
			out_table_note(&t, "%s", r->note);
	}
	out_table_end(&t);
}

static struct json_object *
row_json(const struct row *r)
{
	struct json_object *o = json_object_new_object();
	char id[GEN_TEXT_SIZE];

	out_add_text(o, "replica", r->name);
	out_add_bool(o, "asked", r->asked);
	if (r->asked) {
		gen_id_format(&r->meta.generation.current, id);
		out_add_text(o, "state", sidecar_state_name(r->meta.state));
		out_add_bool(o, "primary", r->meta.primary);
		out_add_bool(o, "usable", newest_usable(&r->meta));
		out_add_text(o, "generation", id);
		out_add_bool(o, "waited", r->meta.waited);
		out_add_u64(o, "position", r->meta.position);
		out_add_bool(o, "writer_open", r->meta.writer_open);
		out_add_u64(o, "updated", r->meta.updated_s);
	}
	out_add_text(o, "note", r->note);
	return o;
}

static void
answer(struct ctl *c, const struct choice *x)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	for (unsigned i = 0; i < x->count; i++)
		control_append(list, row_json(&x->row[i]));
	if (x->best)
		control_add(o, "newest", json_object_new_string(x->best->name));
	else if (o)
		(void)json_object_object_add(o, "newest", NULL);
	if (c->err.code) {
		text_clean(c->err.text);
		out_add_text(o, "why", c->err.text);
		out_add_text(o, "next", c->next);
	}
	control_add(o, "replicas", list);
	ctl_answer(c, o);
}

/* ---- the verdict ---- */

static bool
is_same(const struct row *a, const struct row *b)
{
	return gen_id_equal(&a->meta.generation.current, &b->meta.generation.current);
}

static const char *
untold_why(const struct row *a, const struct row *b)
{
	if (is_same(a, b) &&
	    (a->meta.state == SIDECAR_OUTDATED) != (b->meta.state == SIDECAR_OUTDATED))
		return "they are of one generation, and the one that is outdated was being "
		       "brought back: how much of it was copied until then is not told";
	if (is_same(a, b))
		return "they are of one generation, and one of them tells no position";
	return "neither names the other's generation";
}

/* Only the end of a session tells how far a queued replica has come. */
static bool
is_written(const struct row *r)
{
	return r->meta.writer_open && !r->meta.primary && !r->meta.position && !r->meta.waited;
}

static int
untold_written(struct ctl *c, const struct row *r)
{
	ctl_next(c, "wait until it has ended, which the target does by itself when the primary's "
		    "machine "
		    "is gone, or find it by replctl status TARGET; then the same again");
	return err_set(&c->err, REPL_E_REFUSED,
		       "%s is open for writing, and how far it has come is told when that session "
		       "has ended",
		       r->name);
}

/* A promoted one is known not to have all of the generation that it was promoted in. */
static int
untold_promoted(struct ctl *c, const struct row *a, const struct row *b)
{
	return err_set(&c->err, REPL_E_REFUSED,
		       "%s was promoted with the drains up to position %" PRIu64
		       " of a generation of which %s may have more",
		       a->name, a->meta.position, b->name);
}

static int
untold_pair(struct ctl *c, const struct choice *x)
{
	for (unsigned i = 0; i < x->asked_count; i++)
		for (unsigned k = 0; k < i; k++) {
			const struct row *a = x->asked_row[k], *b = x->asked_row[i];

			if (!newest_usable(&a->meta) || !newest_usable(&b->meta) ||
			    newest_over(&a->meta, &b->meta) || newest_over(&b->meta, &a->meta))
				continue;
			if (is_same(a, b) && (is_written(a) || is_written(b)))
				return untold_written(c, is_written(a) ? a : b);
			if (newest_promoted_part(&a->meta, &b->meta))
				return untold_promoted(c, a, b);
			if (newest_promoted_part(&b->meta, &a->meta))
				return untold_promoted(c, b, a);
			return err_set(&c->err, REPL_E_REFUSED,
				       "nothing tells which has more, %s or %s: %s", a->name,
				       b->name, untold_why(a, b));
		}
	return err_set(&c->err, REPL_E_REFUSED, "nothing tells which has all");
}

static int
refuse_why(struct ctl *c, const struct choice *x, bool usable)
{
	if (!usable)
		return err_set(&c->err, REPL_E_REFUSED, "none of them is usable");
	if (x->doubt)
		return err_set(&c->err, REPL_E_REFUSED,
			       "a copy into %s was under way, and what is outdated may have more "
			       "than what is not, or less",
			       x->doubt->name);
	return untold_pair(c, x);
}

static int
refuse(struct ctl *c, const struct choice *x)
{
	const struct row *silent = NULL;
	bool usable = false, set = false;
	char *word;
	int rc;

	for (unsigned i = 0; i < x->count; i++) {
		const struct row *r = &x->row[i];

		usable = usable || (r->asked && newest_usable(&r->meta));
		set = set || r->set;
		silent = silent || r->asked ? silent : r;
	}
	if (!usable && silent) {
		word = out_quote(silent->name);
		ctl_next(c, "replctl why %s", word ? word : "TARGET/POOL");
		free(word);
		return err_set(&c->err, silent->err.code, "%s: %.700s", silent->name,
			       silent->err.text);
	}
	rc = refuse_why(c, x, usable);
	if (!c->next[0] && set)
		ctl_next(c, "start the program, if its local part is there; else look at the data "
			    "of each where they lie, after replctl promote, by pmempool and the "
			    "tools of its program");
	else if (!c->next[0])
		ctl_next(c,
			 "look at the data: replctl restore TARGET/POOL OTHER-FILE, of each to a "
			 "file of its own");
	answer(c, x);
	return rc;
}

/* What is outdated is had by force only: here it is known that there is no better one. */
static void
tell_next(struct ctl *c, const struct row *best, const char *word)
{
	char text[OUT_FIELD_MAX];
	const char *force = best->meta.state == SIDECAR_OUTDATED ? "--force " : "";

	if (best->meta.primary) {
		out_field("next", "its program goes on at its target");
		return;
	}
	(void)snprintf(text, sizeof(text), "replctl restore %s%s FILE", force, word);
	hint_complete(text, sizeof(text), &c->options);
	out_field("next", "%s",
		  best->set
			  ? "pmempool sync of its set file, where the program's local part is lost"
			  : text);
	(void)snprintf(text, sizeof(text), "or, to go on at its target: replctl promote %s%s",
		       force, word);
	hint_complete(text, sizeof(text), &c->options);
	out_field("", "%s", text);
}

static void
tell_best(struct ctl *c, const struct choice *x)
{
	char *word = out_quote(x->best->name);
	unsigned missing = x->count - x->asked_count;

	if (!c->options.json) {
		(void)putchar('\n');
		out_field("newest", "%s", x->best->name);
		if (missing)
			out_field("but", "%u of %u could not be asked and may have more", missing,
				  x->count);
		tell_next(c, x->best, word ? word : "TARGET/POOL");
	}
	c->degraded = missing > 0;
	answer(c, x);
	free(word);
}

static void
choose(struct choice *x)
{
	unsigned best, doubt;

	for (unsigned i = 0; i < x->count; i++)
		if (x->row[i].asked) {
			x->asked[x->asked_count] = &x->row[i].meta;
			x->asked_row[x->asked_count++] = &x->row[i];
		}
	best = newest_of(x->asked, x->asked_count, &doubt);
	x->best = best < x->asked_count ? x->asked_row[best] : NULL;
	x->doubt = doubt < x->asked_count ? x->asked_row[doubt] : NULL;
}

int
cmd_newest(struct ctl *c, char **args)
{
	struct choice *x = calloc(1, sizeof(*x));
	int rc;

	if (!x)
		return err_set(&c->err, REPL_E_NOMEM, "no memory to look at replicas");
	rc = rows_name(c, x, args);
	if (!rc) {
		ask_all(x);
		choose(x);
		rc = check_one_pool(c, x);
	}
	if (!rc) {
		notes_make(x);
		if (!c->options.json)
			print_rows(x);
		/* The error is of none of them alone. */
		c->target.pool[0] = c->host_text[0] = '\0';
		if (x->best)
			tell_best(c, x);
		else
			rc = refuse(c, x);
	}
	free(x);
	return rc;
}
