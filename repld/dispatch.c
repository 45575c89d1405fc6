/* SPDX-License-Identifier: BSD-3-Clause */
#include "dispatch.h"

#include <stdio.h>
#include <string.h>

#include "control.h"
#include "handlers.h"
#include "log.h"
#include "target.h"
#include "text.h"

/* A peer that is refused for ever does not fill the log. */
#define REFUSALS_LOGGED 100

struct method {
	const char *name;
	dispatch_handler *handler;
	unsigned needs;   /* phases that must be there */
	unsigned forbids; /* phases that must not */
	bool silent;      /* its result is empty */
};

#define H PHASE_HELLO
#define P PHASE_POOL
#define W PHASE_WRITE
#define L PHASE_LANES

static const struct method methods[] = {
	/* name, handler, needs, forbids, silent */
	{"hello", handle_hello, 0, H, false},
	{"ping", handle_ping, H, 0, true},
	{"bye", handle_bye, H, 0, true},
	{"probe", handle_probe, H, 0, false},
	{"status", handle_status, H, 0, false},
	{"pool.create", handle_pool_create, H, P, false},
	{"pool.list", handle_pool_list, H, 0, false},
	{"pool.info", handle_pool_info, H, 0, false},
	{"pool.remove", handle_pool_remove, H, P, true},
	{"pool.open", handle_pool_open, H, P, false},
	{"pool.promote", handle_pool_promote, H, P, false},
	{"pool.demote", handle_pool_demote, H, P, false},
	{"pool.mark", handle_pool_mark, H | P | W, 0, false},
	{"pool.grow", handle_pool_grow, H | P | W, 0, false},
	{"pool.attr", handle_pool_attr, H | P | W, 0, false},
	{"pool.hash", handle_pool_hash, H | P, 0, false},
	{"pool.extents", handle_pool_extents, H | P, 0, false},
	{"pool.close", handle_pool_close, H | P, 0, true},
	{"journal.begin", handle_journal_begin, H | P | W, 0, false},
	{"journal.kept", handle_journal_kept, H | P | W, 0, false},
	{"journal.commit", handle_journal_commit, H | P | W, 0, true},
	{"journal.apply", handle_journal_apply, H | P | W, 0, false},
	{"journal.drop", handle_journal_drop, H | P | W, 0, true},
	{"lanes.open", handle_lanes_open, H | P, L, false},
	{"lanes.close", handle_lanes_close, H | L, 0, true},
	{"bench.open", handle_bench_open, H | P, 0, false},
	{"bench.close", handle_bench_close, H, 0, true},
};

#undef H
#undef P
#undef W
#undef L

/* Phases in the order in which a session comes to them. */
static const struct phase_rule {
	unsigned bit;
	const char *missing; /* why a method that needs it can't run */
	const char *missing_next;
	const char *present; /* why a method that forbids it can't run */
	const char *present_next;
} phase_rules[] = {
	{PHASE_HELLO, "the session has not begun", "send hello first", "hello was said already",
	 "go on with the session"},
	{PHASE_POOL, "no pool is open", "pool.open", "a pool is open in this session",
	 "pool.close, or use another session"},
	{PHASE_WRITE, "the pool is open for reading only",
	 "pool.close, then pool.open with mode \"write\"", NULL, NULL},
	{PHASE_LANES, "no lanes are open", "lanes.open", "lanes are open already", "lanes.close"},
};

#define PHASE_RULES (sizeof(phase_rules) / sizeof(phase_rules[0]))

/* "TARGET/POOL" becomes the name that the request gave, if it gave a good one. */
static const struct next_row {
	int code;
	const char *text;
} next_rows[] = {
	{REPL_E_INVAL, "correct what the message names; docs/PROTOCOL.md has the bounds"},
	{REPL_E_NOMEM, "try again later, or with fewer lanes"},
	{REPL_E_NOT_FOUND, "replctl list TARGET"},
	{REPL_E_EXISTS, "replctl info TARGET/POOL"},
	{REPL_E_BUSY, "replctl status TARGET"},
	{REPL_E_REFUSED, "choose another name, or ask the target's administrator"},
	{REPL_E_TIMEOUT, "try again"},
	{REPL_E_CONFIG, "correct repld.conf on the target"},
	{REPL_E_VERSION,
	 "install the version of repld that made it, or a newer one, on the target"},
	{REPL_E_LIMIT, "raise the limit that the message names"},
	{REPL_E_DIVERGED, "replctl info TARGET/POOL"},
	{REPL_E_NOSPC, "make room in the target's pool directory, or ask for a smaller size"},
	{REPL_E_CORRUPT,
	 "put back what the message names, or, if that is lost, copy the pool's file away unless a "
	 "good copy is known, then replctl remove TARGET/POOL and make the replica anew"},
	{REPL_E_IO, "look at the target's kernel log, then replctl info TARGET/POOL"},
};

static const struct method *
method_find(const char *name)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}

/* The first rule that the phase breaks, NULL if none; *missing says which way. */
static const struct phase_rule *
rule_broken(const struct method *m, unsigned phase, bool *missing)
{
	for (size_t i = 0; i < PHASE_RULES; i++) {
		const struct phase_rule *rule = &phase_rules[i];

		*missing = (m->needs & rule->bit) && !(phase & rule->bit);
		if (*missing || (m->forbids & phase & rule->bit))
			return rule;
	}
	return NULL;
}

static int
phase_check(const struct method *m, unsigned phase, const char **next, struct err *e)
{
	bool missing;
	const struct phase_rule *rule = rule_broken(m, phase, &missing);

	if (!rule)
		return REPL_OK;
	*next = missing ? rule->missing_next : rule->present_next;
	return err_set(e, REPL_E_PROTOCOL, "%s: %s", m->name,
		       missing ? rule->missing : rule->present);
}

int
dispatch_check(const char *method, unsigned phase, struct err *e)
{
	const struct method *m = method_find(method);
	const char *next;

	if (!m)
		return CONTROL_NO_METHOD;
	return phase_check(m, phase, &next, e);
}

/* The name that a request is about; NULL if it has none that can be shown. */
static const char *
params_name(struct json_object *params)
{
	const char *name;

	if (control_get_text(params, "name", TARGET_POOL_MAX, &name, NULL))
		return NULL;
	return pool_name_check(name, NULL) ? NULL : name;
}

void
dispatch_next(struct reply *r, const char *text, const char *name)
{
	static const char word[] = "TARGET/POOL";
	char whole[TARGET_TEXT_MAX], quoted[TARGET_TEXT_MAX * 4];
	const char *from = text, *at;
	size_t used = 0, len, more;

	(void)snprintf(whole, sizeof(whole), "TARGET/%s", name ? name : "POOL");
	(void)text_quote(whole, quoted, sizeof(quoted));
	while (*from) {
		at = strstr(from, word);
		len = at ? (size_t)(at - from) : strlen(from);
		more = at ? strlen(quoted) : 0;
		if (used + len + more >= sizeof(r->next)) {
			/* Half a command is none. */
			(void)snprintf(r->next, sizeof(r->next), "%s", text);
			return;
		}
		memcpy(r->next + used, from, len);
		memcpy(r->next + used + len, quoted, more);
		used += len + more;
		from += len + (at ? sizeof(word) - 1 : 0);
	}
	r->next[used] = '\0';
}

static void
next_by_status(int code, struct json_object *params, struct reply *r)
{
	const char *text = "look at the target's log";

	/* A stated word against the evidence. */
	if (r->err.reason == REPL_REASON_CONFIG)
		code = REPL_E_CONFIG;
	for (size_t i = 0; i < sizeof(next_rows) / sizeof(next_rows[0]); i++)
		if (next_rows[i].code == code)
			text = next_rows[i].text;
	dispatch_next(r, text, params_name(params));
}

static void
log_refusal(struct state *s, const char *method, const struct err *e)
{
	if (s->refusals++ < REFUSALS_LOGGED)
		log_info("%s refused: %s: %s", method, err_name(e->code), e->text);
}

static struct json_object *
answer_refused(struct json_object *id, int code, const struct err *e, const char *next)
{
	return control_error_new(id, code, e, next[0] ? next : NULL);
}

/* Run a method that the table allows. */
static struct json_object *
method_run(struct state *s, const struct method *m, const struct control_request *q)
{
	struct reply r;
	struct json_object *none = NULL, *params = q->params;
	struct json_object *answer;
	int rc;

	memset(&r, 0, sizeof(r));
	if (!params)
		params = none = json_object_new_object();
	rc = params ? m->handler(s, params, &r) : err_set(&r.err, REPL_E_NOMEM, "out of memory");
	if (rc == REPL_OK && m->silent)
		r.result = json_object_new_object();
	if (rc == REPL_OK && !control_complete(r.result)) {
		/* The peer can't go on from what it does not know of. */
		rc = err_set(&r.err, REPL_E_NOMEM, "no memory for the answer");
		s->ends = "no memory for an answer";
	}
	if (rc == REPL_OK) {
		answer = control_result_new(q->id, r.result);
	} else {
		json_object_put(r.result);
		log_refusal(s, m->name, &r.err);
		if (!r.next[0])
			next_by_status(rc, params, &r);
		answer = answer_refused(q->id, rc == REPL_E_INVAL ? CONTROL_INVALID_PARAMS : 0,
					&r.err, r.next);
	}
	json_object_put(none);
	return answer;
}

static struct json_object *
request_run(struct state *s, const struct control_request *q)
{
	const struct method *m = method_find(q->method);
	const char *next = "";
	struct err e;

	err_clear(&e);
	if (!m) {
		(void)err_set(&e, REPL_E_PROTOCOL, "method '%.64s' is not known", q->method);
		return answer_refused(q->id, CONTROL_NO_METHOD, &e,
				      "docs/PROTOCOL.md lists the methods of this version");
	}
	if (phase_check(m, state_phase(s), &next, &e))
		return answer_refused(q->id, 0, &e, next);
	return method_run(s, m, q);
}

int
dispatch_line(struct state *s, const char *line, size_t len, struct json_object **answer,
	      struct err *e)
{
	struct control_request q = {NULL, NULL, NULL};
	struct json_object *obj = NULL;
	struct err why;
	int rc;

	*answer = NULL;
	err_clear(&why);
	state_heard(s);
	rc = control_parse(line, len, &obj, e);
	if (rc) {
		*answer = answer_refused(NULL, CONTROL_PARSE_ERROR, e, "begin a new session");
		return REPL_E_PROTOCOL;
	}
	rc = control_request_check(obj, &q, &why);
	if (rc)
		*answer = answer_refused(q.id, rc, &why, "send a JSON-RPC 2.0 request");
	else if (q.id) /* no notification has a meaning in this version */
		*answer = request_run(s, &q);
	/* Whoever waits for one is told by the end of the session. */
	rc = *answer || (!rc && !q.id) ? REPL_OK
				       : err_set(e, REPL_E_NOMEM, "no memory for an answer");
	json_object_put(obj);
	return rc;
}
