/* SPDX-License-Identifier: BSD-3-Clause */
/* The requests of the status socket: docs/PROTOCOL.md, The status socket. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "keeper.h"
#include "onloss.h"
#include "statusd_impl.h"

#define TIME_MAX 40

static void
time_format(const struct timespec *at, char out[TIME_MAX])
{
	struct tm tm;
	size_t n = 0;

	if (gmtime_r(&at->tv_sec, &tm))
		n = strftime(out, TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out + n, TIME_MAX - n, ".%03ldZ", at->tv_nsec / 1000000 % 1000);
}

struct json_object *
statusreq_event(const struct statusdoc *d, const char *kind, uint64_t number,
		const struct timespec *at, unsigned replica)
{
	struct json_object *o = json_object_new_object();
	struct json_object *params = statusdoc_replica(d, replica);
	char text[TIME_MAX];

	time_format(at, text);
	control_add(params, "event", json_object_new_string(kind));
	control_add(params, "time", json_object_new_string(text));
	if (number)
		control_add(params, "number", json_object_new_int64((int64_t)number));
	control_add(o, "jsonrpc", json_object_new_string("2.0"));
	control_add(o, "method", json_object_new_string("event"));
	control_add(o, "params", params);
	return o;
}

/* ---- methods ---- */

static int
do_status(struct statusd *s, struct statusclient *c, struct json_object *params,
	  struct json_object **result, struct err *e)
{
	(void)c;
	(void)params;
	(void)e;
	statusd_snapshot(s);
	*result = statusdoc_json(&s->doc);
	return 0;
}

static int
follow_check(const struct statusd *s, const struct statusclient *c, struct err *e)
{
	unsigned followers = 0;

	for (unsigned i = 0; i < STATUSD_CLIENTS_MAX; i++)
		followers += s->clients[i].fd >= 0 && s->clients[i].follows;
	if (c->follows || followers < STATUSD_FOLLOWERS_MAX)
		return 0;
	return err_set(e, REPL_E_BUSY,
		       "%u clients follow its events already, no more are served: end one of them",
		       followers);
}

static int
do_events(struct statusd *s, struct statusclient *c, struct json_object *params,
	  struct json_object **result, struct err *e)
{
	int rc = follow_check(s, c, e);

	if (rc)
		return rc;
	/* What came before the snapshot is not for this one, what comes after it is. */
	for (unsigned i = 0; i < s->doc.replica_count; i++)
		statusd_changed(s, i);
	statusd_send_events(s);
	c->follows = true;
	return do_status(s, c, params, result, e);
}

static int
do_metrics(struct statusd *s, struct statusclient *c, struct json_object *params,
	   struct json_object **result, struct err *e)
{
	size_t len;
	char *text;

	(void)c;
	(void)params;
	statusd_snapshot(s);
	text = statusdoc_metrics(&s->doc, &len);
	if (!text)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	*result = json_object_new_object();
	control_add(*result, "text", json_object_new_string(text));
	free(text);
	return 0;
}

/* The replica that params name; without a name all of them. */
static int
replicas_named(const struct statusd *s, struct json_object *params, uint32_t *named, struct err *e)
{
	const char *name = NULL;

	*named = 0;
	if (control_has(params, "replica") &&
	    control_get_text(params, "replica", TARGET_TEXT_MAX, &name, e))
		return e->code;
	for (unsigned i = 0; i < s->doc.replica_count; i++)
		*named |= !name || strcmp(name, s->doc.replica[i]) == 0 ? 1U << i : 0;
	return *named ? 0 : err_set(e, REPL_E_NOT_FOUND, "no replica is called '%.200s'", name);
}

/* The program's policy is its own: what it makes of a loss it is not made to do unasked. */
static int
pause_check(const struct statusd *s, struct json_object *params, uint32_t named, struct err *e)
{
	bool force = false;

	if (control_has(params, "force") && control_get_bool(params, "force", &force, e))
		return e->code;
	return force ? 0 : onloss_spare(s->repl, named, e);
}

static int
do_pausing(struct statusd *s, struct json_object *params, bool pause, struct json_object **result,
	   struct err *e)
{
	uint32_t named;
	int rc = replicas_named(s, params, &named, e);

	if (!rc && pause)
		rc = pause_check(s, params, named, e);
	if (rc)
		return rc;
	for (unsigned i = 0; i < s->doc.replica_count; i++) {
		if (!(named >> i & 1))
			continue;
		if (pause)
			keeper_pause(s->repl, i);
		else
			keeper_resume(s->repl, i);
	}
	statusd_snapshot(s);
	*result = statusdoc_json(&s->doc);
	return 0;
}

static int
do_pause(struct statusd *s, struct statusclient *c, struct json_object *params,
	 struct json_object **result, struct err *e)
{
	(void)c;
	return do_pausing(s, params, true, result, e);
}

static int
do_resume(struct statusd *s, struct statusclient *c, struct json_object *params,
	  struct json_object **result, struct err *e)
{
	(void)c;
	return do_pausing(s, params, false, result, e);
}

static const struct {
	const char *name;
	int (*run)(struct statusd *s, struct statusclient *c, struct json_object *params,
		   struct json_object **result, struct err *e);
} methods[] = {
	{"status", do_status}, {"events", do_events}, {"metrics", do_metrics},
	{"pause", do_pause},   {"resume", do_resume},
};

static struct json_object *
run(struct statusd *s, struct statusclient *c, const struct control_request *q)
{
	struct json_object *result = NULL;
	struct err e;

	err_clear(&e);
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(methods[i].name, q->method) != 0)
			continue;
		if (methods[i].run(s, c, q->params, &result, &e))
			return control_error_new(q->id, 0, &e, NULL);
		return control_result_new(q->id, result);
	}
	(void)err_set(&e, REPL_E_PROTOCOL, "method '%.64s' is not known", q->method);
	return control_error_new(q->id, CONTROL_NO_METHOD, &e,
				 "docs/PROTOCOL.md lists the methods of this version");
}

/* Many replicas with long names have more metrics than a line has room for. */
static struct json_object *
too_long(const struct control_request *q)
{
	struct err e;

	err_clear(&e);
	(void)err_set(&e, REPL_E_LIMIT,
		      "the answer to '%.64s' has more than the %d bytes that one may have%s",
		      q->method, CONTROL_LINE_MAX,
		      strcmp(q->method, "metrics") == 0
			      ? ": the key metrics-file has all of them written to a file"
			      : "");
	return control_error_new(q->id, 0, &e, NULL);
}

void
statusreq_serve(struct statusd *s, struct statusclient *c, const char *line, size_t len)
{
	struct control_request q = {NULL, NULL, NULL};
	struct json_object *obj = NULL, *answer;
	struct err e;
	char *text;
	int code;

	err_clear(&e);
	if (control_parse(line, len, &obj, &e)) {
		/* What follows such a line can't be told from it. */
		statusclient_end(c);
		return;
	}
	code = control_request_check(obj, &q, &e);
	answer = code ? control_error_new(q.id, code, &e, NULL) : q.id ? run(s, c, &q) : NULL;
	text = answer ? control_line(answer, &len) : NULL;
	if (!text && answer && !code) {
		json_object_put(answer);
		answer = too_long(&q);
		text = answer ? control_line(answer, &len) : NULL;
	}
	if (text)
		statusclient_send(c, text, len);
	else if (code || q.id)
		statusclient_end(c); /* and not waited for by whoever asked */
	free(text);
	json_object_put(answer);
	json_object_put(obj);
}
