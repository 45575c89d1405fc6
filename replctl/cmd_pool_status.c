/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl status, events, pause, resume, wait and metrics of a local pool FILE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "clock.h"
#include "commands.h"
#include "conffile.h"
#include "control.h"
#include "interrupt.h"
#include "out.h"
#include "reason.h"
#include "show.h"
#include "text.h"
#include "watch.h"
#include "whyset.h"

#define WAIT_LOOK_MS 100
#define WAIT_MAX_S   604800U
#define EVENT_MS     1000
#define SETTLE_MS    5000U

static const struct timespec look_again = {.tv_nsec = WAIT_LOOK_MS * 1000000L};

static int
open_nobody(struct ctl *c, const char *file)
{
	struct whyset set;

	if (whyset_look(file, &set)) {
		ctl_next(c, "%s", set.next);
		return err_set(&c->err, REPL_E_NOT_FOUND,
			       "%s is %s, whose programs answer to nobody here", file, set.what);
	}
	if (access(file, F_OK) == 0)
		ctl_next_file(c, "replctl why", file);
	else
		ctl_next(c, "name the local pool file that the program maps");
	return REPL_E_NOT_FOUND;
}

/* A program that is being started, and makes the file itself perhaps, is waited for until the
 * deadline; 0: not at all. */
static int
open_by(struct ctl *c, struct ask *a, const char *file, uint64_t deadline_ns)
{
	int rc;

	ask_init(a, c);
	while ((rc = ask_open(a, file, &c->err)) == REPL_E_NOT_FOUND &&
	       clock_now_ns() < deadline_ns) {
		err_clear(&c->err);
		(void)nanosleep(&look_again, NULL);
	}
	if (rc == REPL_E_NOT_FOUND)
		rc = open_nobody(c, file);
	else if (rc == REPL_E_BUSY)
		ask_next(c, file);
	if (!rc)
		c->file = file;
	return rc;
}

static int
open_file(struct ctl *c, struct ask *a, const char *file)
{
	return open_by(c, a, file, 0);
}

static void
print_compact(struct json_object *o)
{
	out_json_line(o);
	(void)fflush(stdout);
}

/* Has any replica, or the one of that name, this reason; or with has false another one? */
static bool
any_has(struct json_object *status, const char *replica, const char *reason, bool has)
{
	struct json_object *list = show_replicas(status);

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *o = json_object_array_get_idx(list, i);

		if ((!replica || strcmp(out_member(o, "replica"), replica) == 0) &&
		    (strcmp(out_member(o, "reason"), reason) == 0) == has)
			return true;
	}
	return false;
}

/* ---- status ---- */

static void
status_lines(struct json_object *status)
{
	struct json_object *list = show_replicas(status);

	for (size_t i = 0; i < json_object_array_length(list); i++)
		show_line(stdout, json_object_array_get_idx(list, i));
	(void)fflush(stdout);
}

static void
status_draw(struct json_object *status, double rate)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	show_status(f, status, rate);
	if (fclose(f) == 0)
		watch_draw(text);
	free(text);
}

static int
status_watch(struct ctl *c, struct ask *a)
{
	uint64_t before = 0, drains;
	bool terminal = watch_on_terminal(), first = true;

	interrupt_catch();
	do {
		struct json_object *status = NULL;

		if (ask_call(a, "status", NULL, &status, &c->err))
			return c->err.code;
		drains = out_member_u64(status, "drains");
		if (c->options.json)
			print_compact(status);
		else if (terminal)
			status_draw(status, first ? -1 : (double)(drains - before));
		else
			status_lines(status);
		before = drains;
		first = false;
		json_object_put(status);
	} while (watch_wait());
	c->answered = true;
	return 0;
}

int
cmd_status_file(struct ctl *c, const char *file)
{
	struct json_object *status = NULL;
	struct ask a;
	int rc = open_file(c, &a, file);

	if (!rc && c->options.watch)
		rc = status_watch(c, &a);
	else if (!rc)
		rc = ask_call(&a, "status", NULL, &status, &c->err);
	if (!rc && status) {
		c->degraded = any_has(status, NULL, "none", false);
		if (!c->options.json)
			show_status(stdout, status, -1);
		ctl_answer(c, status);
	}
	ask_fini(&a);
	return rc;
}

/* ---- events ---- */

static void
event_print(const struct ctl *c, struct json_object *o)
{
	if (c->options.json)
		print_compact(o);
	else
		show_line(stdout, o);
	(void)fflush(stdout);
}

/* An opening of a pool; of one program the next may be in the same second. */
struct opened {
	uint64_t pid, begin_s;
};

static struct opened
opened_by(struct json_object *status)
{
	return (struct opened){.pid = out_member_u64(status, "pid"),
			       .begin_s = out_member_u64(status, "begin")};
}

/* Whoever answers is not the one that was followed. */
static bool
is_another(struct ask *a, const struct opened *followed)
{
	struct json_object *status = NULL;
	struct opened now;
	struct err e;

	err_clear(&e);
	if (ask_call(a, "status", NULL, &status, &e))
		return false;
	now = opened_by(status);
	json_object_put(status);
	return now.pid != followed->pid || now.begin_s != followed->begin_s;
}

/*
 * A program that ends in order is no failure of who followed it: nobody answers then, or one that
 * has opened the pool since.
 */
static int
events_end(struct ctl *c, const char *file, const struct opened *followed)
{
	uint64_t deadline_ns = clock_deadline(EVENT_MS);
	bool another;
	struct err e;
	struct ask a;
	int rc;

	err_clear(&c->err);
	for (;;) {
		err_clear(&e);
		ask_init(&a, c);
		a.until_ns = deadline_ns;
		rc = ask_open(&a, file, &e);
		another = !rc && is_another(&a, followed);
		ask_fini(&a);
		if (rc == REPL_E_NOT_FOUND || another)
			return 0;
		if (rc || clock_now_ns() >= deadline_ns)
			break;
		/* It may be at its end. */
		(void)nanosleep(&look_again, NULL);
	}
	ctl_next_file(c, "replctl events", file);
	return err_set(&c->err, REPL_E_LOST,
		       "the program no longer tells of its changes: what it told was not read in "
		       "time, or it has opened the pool anew");
}

int
cmd_events_file(struct ctl *c, const char *file)
{
	struct opened followed = {0};
	struct json_object *o = NULL;
	bool follows;
	struct ask a;
	int rc = open_file(c, &a, file);

	if (!rc)
		rc = ask_call(&a, "events", NULL, &o, &c->err);
	follows = rc == 0;
	if (follows) {
		interrupt_catch();
		followed = opened_by(o);
		if (c->options.json)
			print_compact(o);
		else
			status_lines(o);
		json_object_put(o);
	}
	while (!rc && !interrupt_seen() && watch_taken()) {
		rc = ask_event(&a, EVENT_MS, &o, &c->err);
		if (o)
			event_print(c, o);
		json_object_put(o);
	}
	ask_fini(&a);
	if (follows && rc == REPL_E_LOST)
		rc = events_end(c, file, &followed);
	return rc;
}

/* ---- pause, resume ---- */

/* The answer is given at once; what is shown is the state when it has come about. */
static int
pause_settle(struct ask *a, const char *replica, bool paused, struct json_object **status,
	     struct err *e)
{
	uint64_t deadline_ns = clock_deadline(SETTLE_MS);
	int rc = 0;

	while (!rc && any_has(*status, replica, "paused", !paused) &&
	       clock_now_ns() < deadline_ns) {
		(void)nanosleep(&look_again, NULL);
		json_object_put(*status);
		*status = NULL;
		rc = ask_call(a, "status", NULL, status, e);
	}
	if (!rc && any_has(*status, replica, "paused", !paused))
		rc = err_set(
			e, REPL_E_TIMEOUT,
			"not %s after %u s: it will be, the program may be busy with the loss of "
			"another replica",
			paused ? "paused" : "resumed", SETTLE_MS / 1000);
	return rc;
}

static void
next_pause(struct ctl *c, char **args)
{
	char *file = ask_word(args[0]), *replica = args[1] ? out_quote(args[1]) : NULL;

	if (file && (replica || !args[1]))
		ctl_next(c,
			 "replctl pause --force %s%s%s (where the program may fail or wait); else "
			 "start it with on-loss = degrade",
			 file, replica ? " " : "", replica ? replica : "");
	free(file);
	free(replica);
}

/* A library that does not say so knows of no force, and pauses whatever becomes of its program. */
static int
pause_is_checked(struct ask *a, struct err *e)
{
	struct json_object *status = NULL;
	int rc = ask_call(a, "status", NULL, &status, e);

	if (!rc && !out_member_bool(status, "pause_checked"))
		rc = err_set(e, REPL_E_REFUSED,
			     "the program runs an older librepl, which does not look at its "
			     "on-loss");
	json_object_put(status);
	return rc;
}

static int
pausing(struct ctl *c, char **args, const char *method)
{
	struct json_object *params = json_object_new_object(), *status = NULL;
	struct ask a;
	bool pauses = strcmp(method, "pause") == 0;
	int rc = open_file(c, &a, args[0]);
	bool open = !rc;

	if (!rc && args[1])
		control_add(params, "replica", json_object_new_string(args[1]));
	if (!rc && !c->options.force && pauses)
		rc = pause_is_checked(&a, &c->err);
	if (!rc && c->options.force)
		control_add(params, "force", json_object_new_boolean(true));
	/* Without its name they would be all replicas. */
	if (!rc && !control_complete(params))
		rc = err_set(&c->err, REPL_E_NOMEM, "out of memory");
	if (rc)
		json_object_put(params);
	else
		rc = ask_call(&a, method, params, &status, &c->err);
	if (!rc)
		rc = pause_settle(&a, args[1], pauses, &status, &c->err);
	if (!rc) {
		if (!c->options.json)
			status_lines(status);
		ctl_answer(c, status);
	} else if (open) {
		if (rc == REPL_E_REFUSED && pauses)
			next_pause(c, args);
		/* Who has not answered does not answer to that either. */
		if (status || (args[1] && rc != REPL_E_TIMEOUT))
			ctl_next_file(c, "replctl status", args[0]);
		json_object_put(status);
	}
	ask_fini(&a);
	return rc;
}

int
cmd_pause(struct ctl *c, char **args)
{
	return pausing(c, args, "pause");
}

int
cmd_resume(struct ctl *c, char **args)
{
	return pausing(c, args, "resume");
}

/* ---- wait ---- */

/*
 * One with a queue may never be seen without anything on its way: that it has all that was drained
 * when we were asked, so many milliseconds ago, is enough. The oldest thing that it lacks is
 * younger.
 */
static bool
has_all(struct json_object *o, uint64_t asked_ms)
{
	return out_member_u64(o, "lag_bytes") == 0 || out_member_u64(o, "lag_ms") < asked_ms;
}

static bool
replica_is(struct json_object *o, const char *state, uint64_t asked_ms)
{
	for (int a = 0; a < REASON_AXIS_COUNT; a++)
		if (strcmp(out_member(o, reason_axis_key((enum reason_axis)a)), state) == 0)
			return strcmp(state, "up-to-date") != 0 ||
			       (strcmp(out_member(o, "replication"), "established") == 0 &&
				has_all(o, asked_ms));
	return false;
}

static bool
all_are(struct json_object *status, const char *state, uint64_t asked_ms)
{
	struct json_object *list = show_replicas(status);
	size_t count = json_object_array_length(list);

	for (size_t i = 0; i < count; i++)
		if (!replica_is(json_object_array_get_idx(list, i), state, asked_ms))
			return false;
	return count > 0;
}

static int
wait_options(struct ctl *c, const char **state, unsigned *timeout_s)
{
	bool known = false;

	*state = c->options.until ? c->options.until : "up-to-date";
	for (int a = 0; a < REASON_AXIS_COUNT; a++)
		known |= reason_axis_value((enum reason_axis)a, *state) >= 0;
	if (!known)
		return err_set(
			&c->err, REPL_E_INVAL,
			"'%s' is no state of a replica, which are connected, connecting, "
			"standalone, established, resyncing, degraded, up-to-date, outdated, "
			"inconsistent and unknown",
			*state);
	*timeout_s = 60;
	if (c->options.timeout && parse_uint(c->options.timeout, WAIT_MAX_S, timeout_s))
		return err_set(&c->err, REPL_E_INVAL, "--timeout %s: seconds, at most %u",
			       c->options.timeout, WAIT_MAX_S);
	return 0;
}

/*
 * Who waits has one of the few places of those who ask the program. Where nobody takes the output
 * the exit status may still be awaited, and where its parent is gone the output may still be read.
 */
static int
wait_awaited(pid_t parent, struct err *e)
{
	if (watch_taken() || getppid() == parent)
		return 0;
	return err_set(e, REPL_E_FAILED, "nobody is there any more who could learn of it");
}

int
cmd_wait(struct ctl *c, char **args)
{
	const pid_t parent = getppid();
	struct json_object *status = NULL;
	const char *state;
	unsigned timeout_s;
	uint64_t begin_ns = clock_now_ns(), asked_ms, deadline_ns;
	struct ask a;
	int rc;

	ask_init(&a, c);
	rc = wait_options(c, &state, &timeout_s);
	deadline_ns = clock_deadline(timeout_s * 1000);
	if (!rc)
		rc = open_by(c, &a, args[0], deadline_ns);
	a.until_ns = deadline_ns;
	while (!rc) {
		asked_ms = (clock_now_ns() - begin_ns) / NS_PER_MS;
		rc = ask_call(&a, "status", NULL, &status, &c->err);
		if (!rc && all_are(status, state, asked_ms))
			break;
		if (!rc && clock_now_ns() >= deadline_ns) {
			if (!c->options.json)
				status_lines(status);
			ctl_next_file(c, "replctl why", args[0]);
			rc = err_set(&c->err, REPL_E_TIMEOUT, "not all replicas are %s after %u s",
				     state, timeout_s);
			break;
		}
		json_object_put(status);
		status = NULL;
		(void)nanosleep(&look_again, NULL);
		rc = rc ? rc : wait_awaited(parent, &c->err);
	}
	if (rc)
		json_object_put(status);
	else
		ctl_answer(c, status);
	ask_fini(&a);
	return rc;
}

/* ---- metrics ---- */

/* Its lines stay lines; else whoever serves at that name may have put in what a terminal obeys. */
static void
clean_lines(char *text)
{
	char *line, *rest = text;

	while ((line = strsep(&rest, "\n")) != NULL) {
		text_clean(line);
		if (rest)
			rest[-1] = '\n';
	}
}

static int
metrics_tell(struct ctl *c, const char *told)
{
	struct json_object *answer;
	char *text = strdup(told);

	if (!text)
		return err_set(&c->err, REPL_E_NOMEM, "out of memory");
	clean_lines(text);
	if (!c->options.json)
		(void)fputs(text, stdout);
	answer = json_object_new_object();
	control_add(answer, "text", json_object_new_string(text));
	ctl_answer(c, answer);
	free(text);
	return 0;
}

int
cmd_metrics(struct ctl *c, char **args)
{
	struct json_object *o = NULL, *text = NULL;
	struct ask a;
	int rc = open_file(c, &a, args[0]);

	if (!rc)
		rc = ask_raw(&a, "metrics", NULL, &o, &c->err);
	if (!rc && json_object_object_get_ex(o, "text", &text) &&
	    json_object_is_type(text, json_type_string))
		rc = metrics_tell(c, json_object_get_string(text));
	json_object_put(o);
	ask_fini(&a);
	return rc;
}
