/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl promote TARGET/pool, replctl demote TARGET/pool */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot.h"
#include "clock.h"
#include "commands.h"
#include "control.h"
#include "interrupt.h"
#include "out.h"
#include "show.h"

/* Longer than the target takes to end a writer that does not want to. */
#define PROMOTE_MS 20000U

static unsigned
primary_ms(const struct ctl *c)
{
	unsigned ms = remote_op_timeout_ms(c->remote);

	return ms > PROMOTE_MS ? ms : PROMOTE_MS;
}

static bool
promotes(const char *method)
{
	return strcmp(method, "pool.promote") == 0;
}

/*
 * What a dead writer has left is brought in before, however long that takes, and what was begun is
 * done also for one who is gone.
 */
static void
next_unanswered(struct ctl *c, bool promotion)
{
	char *word = out_quote(c->target_text);
	const char *replica = word ? word : "TARGET/POOL";

	/* In this order: what info tells while it goes on is not what it comes to. */
	ctl_next(c,
		 "the target may still be at it: when replctl status %s shows no session of this "
		 "command any more, replctl info %s tells whether it is %sthe primary; if %s, the "
		 "same again; promote no other replica before that is clear",
		 c->host_text, replica, promotion ? "" : "still ", promotion ? "not" : "so");
	free(word);
}

static int
primary_call(struct ctl *c, const char *method, struct json_object **info)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	int rc;

	control_add(params, "name", json_object_new_string(c->target.pool));
	if (c->options.force)
		control_add(params, "force", json_object_new_boolean(true));
	/* The target goes on with it all the same: who ends this command is to hear of that. */
	interrupt_catch();
	rc = remote_call_by(c->remote, method, params, clock_deadline(primary_ms(c)), &result,
			    &c->err);
	if (rc == REPL_E_LOST && interrupt_seen())
		rc = err_set(&c->err, REPL_E_LOST, "interrupted, without an answer of %s",
			     c->host_text);
	if (rc == REPL_E_TIMEOUT || rc == REPL_E_LOST)
		next_unanswered(c, promotes(method));
	if (rc)
		return rc;
	*info = out_clean_json(result);
	json_object_put(result);
	return 0;
}

/* A promotion says that all is there. */
static void
promote_tell_state(struct ctl *c, struct json_object *info)
{
	const char *state = out_member(info, "state");

	if (strcmp(state, "unknown") == 0)
		show_unknown(stderr, c->target_text, out_member(info, "generation"),
			     out_member_u64(info, "position"));
	else if (c->options.force && strcmp(state, "up-to-date") != 0)
		(void)fprintf(stderr, "replctl: %s is %s, promoted all the same\n", c->target_text,
			      state);
}

static void
promote_tell(struct ctl *c)
{
	struct json_object *info = NULL;
	uint64_t size;

	if (ctl_pool_info(c, &info, &size))
		err_clear(&c->err);
	/* A committed journal comes in first, and says what the pool is. */
	else if (strcmp(out_member(info, "journal"), "committed") != 0)
		promote_tell_state(c, info);
	json_object_put(info);
}

/* The demotion makes it no newer than those: who chooses among them is to hear of it. */
static bool
demote_tell(struct ctl *c, struct json_object *info)
{
	enum boot_power power = boot_power_by_name(out_member(info, "power"));
	char *word;

	/* Earlier versions of targets do not tell. */
	if (power == BOOT_KEPT || !json_object_object_get_ex(info, "power", NULL))
		return false;
	word = out_quote(c->target_text);
	(void)fprintf(stderr,
		      "replctl: the program of %s ended without closing it, and its machine %s: it "
		      "may lack what its replicas have. Before a program goes on from it: replctl "
		      "newest %s, and behind it those replicas\n",
		      c->target_text,
		      power == BOOT_CUT ? "was started anew since"
					: "may have lost its power since",
		      word ? word : "TARGET/POOL");
	free(word);
	return true;
}

/* The answer may be lost, and what was demoted does not tell it any more. */
static bool
demote_tell_before(struct ctl *c)
{
	struct json_object *info = NULL;
	uint64_t size;
	bool told = false;

	if (ctl_pool_info(c, &info, &size))
		err_clear(&c->err);
	else
		told = demote_tell(c, info);
	json_object_put(info);
	return told;
}

static int
primary_run(struct ctl *c, const char *target, const char *method, const char *done)
{
	struct json_object *info = NULL;
	bool told = false;
	int rc = ctl_target(c, target, CTL_POOL);

	c->cancel = interrupt_flag();
	if (!rc)
		rc = ctl_connect(c);
	if (!rc && promotes(method))
		promote_tell(c);
	else if (!rc)
		told = demote_tell_before(c);
	if (!rc)
		rc = primary_call(c, method, &info);
	if (rc)
		return rc;
	/* While somebody has it, to read it, nothing is told before. */
	if (!promotes(method) && !told)
		(void)demote_tell(c, info);
	if (!c->options.json)
		(void)printf("%s %s, generation %s\n", c->target_text, done,
			     out_member(info, "generation"));
	ctl_answer(c, info);
	return 0;
}

int
cmd_promote(struct ctl *c, char **args)
{
	return primary_run(
		c, args[0], "pool.promote",
		"is the primary: nobody replicates to it, its program may use it in place");
}

int
cmd_demote(struct ctl *c, char **args)
{
	return primary_run(c, args[0], "pool.demote", "is a replica");
}
