/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "claim.h"
#include "control.h"
#include "hint.h"
#include "out.h"
#include "reason.h"
#include "text.h"

void
ctl_next(struct ctl *c, const char *fmt, ...)
{
	va_list ap;

	if (c->next[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(c->next, sizeof(c->next), fmt, ap);
	va_end(ap);
	hint_complete(c->next, sizeof(c->next), &c->options);
}

void
ctl_next_newest(struct ctl *c, const char *replica, const char *fmt, ...)
{
	char otherwise[CTL_NEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(otherwise, sizeof(otherwise), fmt, ap);
	va_end(ap);
	ctl_next(c,
		 "replctl newest %s, and behind it the other replicas, tells whether one has more; "
		 "%s",
		 replica, otherwise);
}

void
ctl_next_file(struct ctl *c, const char *command, const char *file)
{
	char *word = ask_word(file);

	ctl_next(c, "%s %s", command, word ? word : "FILE");
	free(word);
}

int
ctl_has_writer(struct ctl *c, const char *writer)
{
	ctl_next(c, "replctl status %s", c->host_text);
	return err_set(&c->err, REPL_E_BUSY, "pool '%s' is open for writing by %s", c->target.pool,
		       writer);
}

int
ctl_configure(struct ctl *c)
{
	const struct ctl_options *o = &c->options;
	int rc;

	if (repl_config_new(&c->cfg))
		return err_set(&c->err, REPL_E_NOMEM, "out of memory");
	rc = config_load(c->cfg, o->config, &c->err);
	if (!rc && o->identity)
		rc = config_set(c->cfg, "identity", o->identity, &c->err);
	if (!rc && o->known_hosts)
		rc = config_set(c->cfg, "known-hosts", o->known_hosts, &c->err);
	return rc;
}

static void
next_maybe_file(struct ctl *c)
{
	if (c->maybe_file && access(c->maybe_file, F_OK) == 0)
		ctl_next_file(c, "if the file of this name is meant:", c->maybe_file);
}

int
ctl_target(struct ctl *c, const char *text, enum ctl_naming naming)
{
	bool no_pool = naming == CTL_HOST || naming == CTL_HOST_OR_FILE;
	struct target host;
	int rc = target_parse(text, naming == CTL_POOL, &c->target, &c->err);

	if (!rc) {
		host = c->target;
		host.pool[0] = '\0';
		target_format(&c->target, c->target_text, sizeof(c->target_text));
		target_format(&host, c->host_text, sizeof(c->host_text));
	}
	if (!rc && no_pool && c->target.pool[0])
		rc = err_set(&c->err, REPL_E_INVAL,
			     "'%s' names a pool; this command takes the host only: %s", text,
			     c->host_text);
	c->maybe_file = naming == CTL_HOST_OR_FILE ? text : NULL;
	if (rc)
		next_maybe_file(c);
	return rc;
}

static int
connect_for(struct ctl *c, bool lanes)
{
	const struct remote_hooks hooks = {.cancel = c->cancel, .lanes = lanes};
	int rc = remote_new(c->cfg, &c->target, &hooks, &c->remote, &c->err);

	c->connected = rc == 0;
	return rc;
}

int
ctl_connect(struct ctl *c)
{
	return connect_for(c, false);
}

int
ctl_connect_lanes(struct ctl *c)
{
	return connect_for(c, true);
}

void
ctl_disconnect(struct ctl *c)
{
	if (!c->remote)
		return;
	if (c->err.code && remote_next_step(c->remote)[0]) {
		char next[CTL_NEXT_MAX];

		claim_next(c->remote, next, sizeof(next));
		ctl_next(c, "%s", next);
	}
	remote_free(c->remote, c->cfg->close_timeout_ms);
	c->remote = NULL;
}

void
ctl_fini(struct ctl *c)
{
	ctl_disconnect(c);
	repl_config_free(c->cfg);
	c->cfg = NULL;
}

int
ctl_pool_info(struct ctl *c, struct json_object **info, uint64_t *size)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	int rc;

	control_add(params, "name", json_object_new_string(c->target.pool));
	rc = remote_call(c->remote, "pool.info", params, &result, &c->err);
	if (rc)
		return rc;
	*info = out_clean_json(result);
	*size = 0;
	if (control_has(*info, "size"))
		rc = control_get_u64(*info, "size", 0, INT64_MAX, size, &c->err);
	rc = control_answer_bad(rc, "pool.info", &c->err);
	json_object_put(result);
	return rc;
}

void
ctl_answer(struct ctl *c, struct json_object *answer)
{
	bool told = control_complete(answer);

	if (told && c->options.json && !c->answered)
		c->answered = told = out_json(answer);
	if (!told && !c->err.code)
		(void)err_set(&c->err, REPL_E_NOMEM, "no memory for the answer");
	json_object_put(answer);
}

static void
next_by_reason(struct ctl *c)
{
	const struct reason_names names = {.target = c->host_text, .replica = c->target_text};
	char text[CTL_NEXT_MAX];

	if (!c->host_text[0])
		return;
	reason_next_for((int)reason_of_error(&c->err, c->connected ? REASON_OPEN : REASON_CONNECT),
			&names, text, sizeof(text));
	ctl_next(c, "%s", text);
}

/* "COMMAND WORD", of the target's making only. */
static void
next_of_target(struct ctl *c, const char *command, const char *word)
{
	char *quoted = c->connected ? out_quote(word) : NULL;

	if (quoted)
		ctl_next(c, "%s %s", command, quoted);
	free(quoted);
}

static void
next_auth(struct ctl *c)
{
	if (c->err.reason == REPL_REASON_LOCAL)
		ctl_next(c, "name a private key that can be read, with --identity or the key "
			    "'identity'");
	next_by_reason(c);
}

/* Only where something on this machine has failed. */
static void
next_by_errno(struct ctl *c)
{
	if (c->err.reason == REPL_REASON_LOCAL)
		ctl_next(c, "do what the message says, then repeat the command");
	if (c->err.errnum == ENAMETOOLONG)
		ctl_next(c, "take a file with a shorter name, or path: what is kept beside it has "
			    "one that is longer by up to 12 characters");
}

/* Or what this machine lacks to reach it. */
static void
next_unreachable(struct ctl *c)
{
	if (c->err.reason == REPL_REASON_LOCAL) {
		ctl_next(c, "do what the message says, then repeat the command");
		return;
	}
	next_maybe_file(c);
	next_by_reason(c);
}

/* No refusal without a way on. */
void
ctl_next_by_error(struct ctl *c)
{
	switch (c->err.code) {
	case REPL_E_INVAL:
		ctl_next(c, "replctl help");
		break;
	case REPL_E_NOT_FOUND:
		next_of_target(c, "replctl list", c->host_text);
		ctl_next(c, "correct the path, then repeat the command");
		break;
	case REPL_E_REFUSED:
		if (c->err.errnum == EACCES)
			ctl_next(c, "repeat the command as the user whose file it is");
		/* fall through */
	case REPL_E_EXISTS:
	case REPL_E_DIVERGED:
	case REPL_E_DIFFER:
		if (c->target.pool[0])
			next_of_target(c, "replctl info", c->target_text);
		break;
	case REPL_E_BUSY:
		next_of_target(c, "replctl status", c->host_text);
		if (c->file)
			ctl_next_file(c, "replctl status", c->file);
		ctl_next(c, "end the other program, then repeat the command");
		break;
	case REPL_E_NOSPC:
		if (c->err.errnum == EFBIG)
			ctl_next(c, "mend what the message names, then repeat the command");
		ctl_next(c, "make room there, then repeat the command");
		break;
	case REPL_E_LIMIT:
		if (c->err.by_target)
			next_by_reason(c);
		ctl_next(c, "raise the limit that the message names, then repeat the command");
		break;
	case REPL_E_IO:
		if (c->err.by_target)
			next_by_reason(c);
		else if (c->err.errnum == EROFS)
			ctl_next(c, "mount that file system so that it can be written, or look at "
				    "this machine's kernel log (if that has made it read-only), "
				    "then repeat the command");
		else if (c->err.errnum)
			ctl_next(c, "look at this machine's kernel log, then repeat the command");
		break;
	case REPL_E_CORRUPT:
		if (c->file)
			ctl_next_file(c, "replctl why", c->file);
		break;
	case REPL_E_CONFIG:
		/* Of what can be no host's name, too. */
		next_maybe_file(c);
		if (c->host_text[0])
			next_by_reason(c);
		ctl_next(c, "correct what the message names: man 5 repl.conf");
		break;
	case REPL_E_UNREACHABLE:
		next_unreachable(c);
		break;
	case REPL_E_AUTH:
		next_auth(c);
		break;
	case REPL_E_TIMEOUT:
		next_by_reason(c);
		if (c->file)
			ask_next(c, c->file);
		break;
	case REPL_E_LOST:
	case REPL_E_PROTOCOL:
	case REPL_E_VERSION:
		next_by_reason(c);
		/* Of the program that has it open; no target is named. */
		if (c->file)
			ctl_next_file(c, "replctl why", c->file);
		break;
	default:
		next_by_errno(c);
		break;
	}
}

static void
error_json(struct ctl *c, int exit_status)
{
	struct json_object *o = json_object_new_object(), *error = json_object_new_object();

	out_add_text(error, "status", err_name(c->err.code));
	control_add(error, "exit", json_object_new_int(exit_status));
	out_add_text(error, "message", c->err.text);
	if (c->next[0])
		out_add_text(error, "next", c->next);
	control_add(o, "error", error);
	ctl_answer(c, o);
}

int
ctl_finish(struct ctl *c)
{
	int status;

	/* What an earlier flush has lost is told by ferror() alone. */
	if ((fflush(stdout) || ferror(stdout)) && !c->err.code)
		(void)err_set(&c->err, REPL_E_IO, "writing the output failed");
	if (!c->err.code)
		return c->degraded ? err_exit_status(REPL_E_DEGRADED) : 0;
	ctl_disconnect(c);
	ctl_next_by_error(c);
	text_clean(c->err.text);
	text_clean(c->next);
	status = err_exit_status(c->err.code);
	if (c->options.json)
		error_json(c, status);
	(void)fprintf(stderr, "replctl: %s\n", c->err.text);
	if (c->next[0])
		(void)fprintf(stderr, "next: %s\n", c->next);
	return status;
}
