/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl remove TARGET/pool */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "confirm.h"
#include "control.h"
#include "generation.h"
#include "out.h"
#include "text.h"

/* A replica's data are elsewhere too, a primary's may be nowhere else. */
static const char *
primary_word(struct json_object *info)
{
	return info && out_member_bool(info, "primary") ? ", the primary" : "";
}

static int
remove_confirm(struct ctl *c, struct json_object *info, uint64_t size)
{
	char question[1024], again[CTL_NEXT_MAX], human[OUT_NUMBER_MAX];
	char *target = out_quote(c->target_text);

	out_size(size, human);
	(void)snprintf(question, sizeof(question),
		       "Remove the pool %s (%s, %s%s) and its data for good?", c->target_text,
		       info ? human : "size unknown", info ? out_member(info, "state") : "damaged",
		       primary_word(info));
	(void)snprintf(again, sizeof(again), "replctl info %s, then replctl remove --force %s",
		       target ? target : "", target ? target : "");
	free(target);
	return confirm(c, question, again);
}

/* That the record of a primary is open may be of a program that was killed. */
static int
remove_check_primary(struct ctl *c)
{
	int rc = remote_pool_open(c->remote, c->target.pool, REMOTE_STABLE, &c->err);

	if (rc == REPL_E_BUSY)
		return rc;
	err_clear(&c->err);
	return 0;
}

/* What the target would say, in a dry run. */
static int
remove_check(struct ctl *c, struct json_object *info)
{
	if (info && out_member_bool(info, "primary"))
		return remove_check_primary(c);
	if (!info || !out_member_bool(info, "writer_open"))
		return 0;
	return ctl_has_writer(c, out_member(info, "writer"));
}

static struct json_object *
removal_new(struct ctl *c, bool primary)
{
	struct json_object *params = json_object_new_object();

	control_add(params, "name", json_object_new_string(c->target.pool));
	if (primary)
		control_add(params, "primary", json_object_new_boolean(true));
	return params;
}

/*
 * Who was asked may have thought it over for long: what he has said yes to is told. Of a damaged
 * one he was not told whether it is a primary, which its target may know.
 */
static int
remove_pool(struct ctl *c, struct json_object *info)
{
	struct json_object *params =
		removal_new(c, info ? out_member_bool(info, "primary") : c->options.force);

	if (info && !c->options.force) {
		out_add_text(params, "uuid", out_member(info, "uuid"));
		out_add_text(params, "generation", out_member(info, "generation"));
	}
	if (!info && !c->options.force)
		out_add_bool(params, "damaged", true);
	return remote_call(c->remote, "pool.remove", params, NULL, &c->err);
}

/* what: in place of a size that is not known, else NULL. */
static void
remove_report(struct ctl *c, struct json_object *info, const char *what, uint64_t size)
{
	struct json_object *answer = json_object_new_object();
	char human[OUT_NUMBER_MAX];

	out_size(size, human);
	if (!c->options.json)
		(void)printf("%s %s (%s%s)\n", c->options.dry_run ? "would remove" : "removed",
			     c->target_text, what ? what : human, primary_word(info));
	out_add_text(answer, "target", c->target_text);
	if (!what)
		out_add_u64(answer, "size", size);
	out_add_bool(answer, "removed", !c->options.dry_run);
	ctl_answer(c, answer);
}

/*
 * Of a pool set, by the target's words. Nothing is asked of one of an earlier version that would
 * take away what says what a pool is whose file is elsewhere for now.
 */
static bool
is_begun(const struct err *e)
{
	return strstr(e->text, "its set file is there, its parts are not") != NULL;
}

/*
 * There is no pool that could be asked about. What a removal that was cut off has left goes; a pool
 * that was made since does not.
 */
static int
remove_left(struct ctl *c)
{
	struct json_object *params = removal_new(c, true);
	const struct gen_id none = {.b = {0}};
	struct err first = c->err;
	char text[GEN_TEXT_SIZE];
	int rc;

	gen_id_format(&none, text);
	out_add_text(params, "uuid", text);
	out_add_text(params, "generation", text);
	err_clear(&c->err);
	rc = remote_call(c->remote, "pool.remove", params, NULL, &c->err);
	if (rc == REPL_E_NOT_FOUND)
		c->err = first;
	if (!rc)
		remove_report(c, NULL, "what was left of it", 0);
	return rc;
}

int
cmd_remove(struct ctl *c, char **args)
{
	struct json_object *info = NULL;
	uint64_t size = 0;
	bool damaged;
	int rc = ctl_target(c, args[0], CTL_POOL);

	if (!rc)
		rc = ctl_connect(c);
	if (!rc)
		rc = ctl_pool_info(c, &info, &size);
	if (rc == REPL_E_NOT_FOUND && c->connected && is_begun(&c->err) && !c->options.dry_run)
		return remove_left(c);
	/* What can't be read any more can still be removed: only so it is made anew. */
	damaged = rc == REPL_E_CORRUPT;
	if (damaged) {
		text_clean(c->err.text);
		(void)fprintf(stderr, "replctl: %s\n", c->err.text);
		err_clear(&c->err);
		rc = 0;
	}
	if (!rc && c->options.dry_run)
		rc = remove_check(c, info);
	else if (!rc)
		rc = remove_confirm(c, info, size);
	if (!rc && !c->options.dry_run)
		rc = remove_pool(c, info);
	if (!rc)
		remove_report(c, info, damaged ? "damaged" : NULL, size);
	json_object_put(info);
	return rc;
}
