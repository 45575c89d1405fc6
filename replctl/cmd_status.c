/* SPDX-License-Identifier: BSD-3-Clause */
/* replctl status and events of a target. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ask.h"
#include "clock.h"
#include "commands.h"
#include "control.h"
#include "interrupt.h"
#include "out.h"
#include "pools.h"
#include "sessions.h"
#include "watch.h"

#define SAMPLE_NS NS_PER_S

static struct json_object *
find_session(struct json_object *list, const char *id)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *o = json_object_array_get_idx(list, i);

		if (strcmp(out_member(o, "session"), id) == 0)
			return o;
	}
	return NULL;
}

static void
add_rate(struct json_object *now, struct json_object *before, const char *counter, const char *name,
	 uint64_t ns)
{
	uint64_t from = out_member_u64(before, counter), to = out_member_u64(now, counter);

	out_add_u64(now, name, to > from ? out_rate(to - from, ns) : 0);
}

/* Two samples, a second apart, give the rates. */
static int
sample_rates(struct ctl *c, struct json_object **sessions)
{
	const struct timespec pause = {.tv_sec = SAMPLE_NS / NS_PER_S};
	struct json_object *before = *sessions, *now = NULL;
	uint64_t begin_ns = clock_now_ns(), ns;
	int rc;

	(void)nanosleep(&pause, NULL);
	rc = sessions_fetch(c, &now, NULL);
	ns = clock_now_ns() - begin_ns;
	if (rc)
		return rc;
	for (size_t i = 0; i < json_object_array_length(now); i++) {
		struct json_object *o = json_object_array_get_idx(now, i);
		struct json_object *old = find_session(before, out_member(o, "session"));

		/* A session that has just come has no rate yet. */
		if (!old)
			old = o;
		add_rate(o, old, "commits", "commits_per_s", ns);
		add_rate(o, old, "commit_bytes", "commit_bytes_per_s", ns);
	}
	json_object_put(before);
	*sessions = now;
	return 0;
}

static void
print_session(struct out_table *t, struct json_object *o)
{
	char lanes[OUT_NUMBER_MAX], commits[OUT_NUMBER_MAX], bytes[OUT_NUMBER_MAX];
	char per_s[OUT_NUMBER_MAX], rate[OUT_NUMBER_MAX + 2];

	(void)snprintf(lanes, sizeof(lanes), "%llu",
		       (unsigned long long)out_member_u64(o, "lanes"));
	(void)snprintf(commits, sizeof(commits), "%llu",
		       (unsigned long long)out_member_u64(o, "commits"));
	(void)snprintf(per_s, sizeof(per_s), "%llu",
		       (unsigned long long)out_member_u64(o, "commits_per_s"));
	out_size(out_member_u64(o, "commit_bytes"), bytes);
	out_size(out_member_u64(o, "commit_bytes_per_s"), rate);
	(void)strcat(rate, "/s");
	out_table_row(t, (const char *[]){out_member(o, "pool"), out_member(o, "mode"), lanes,
					  commits, per_s, bytes, rate});
	/* Below it: beside it a terminal of 80 columns has no room. */
	if (strcmp(out_member(o, "method"), "-") == 0)
		out_table_note(t, "by %s", out_member(o, "peer"));
	else
		out_table_note(t, "by %s; %s", out_member(o, "peer"), out_member(o, "method"));
}

static void
print_sessions(struct json_object *sessions)
{
	static const char *const heads[] = {"SESSION ON", "MODE",   ">LANES", ">COMMITS",
					    ">/S",        ">BYTES", ">RATE"};
	struct out_table t;

	(void)putchar('\n');
	if (json_object_array_length(sessions) == 0) {
		(void)puts("no session has a pool open");
		return;
	}
	out_table_init(&t, heads, 7);
	for (size_t i = 0; i < json_object_array_length(sessions); i++)
		print_session(&t, json_object_array_get_idx(sessions, i));
	out_table_end(&t);
}

static void
print_untold(uint64_t count)
{
	if (count)
		(void)printf("and %" PRIu64
			     " more that the target could not write down: the disk of "
			     "its pool\ndirectory is full\n",
			     count);
}

/* What the programs that write say of their replicas here. */
static void
print_reports(struct json_object *sessions)
{
	const char *reason;

	for (size_t i = 0; i < json_object_array_length(sessions); i++) {
		struct json_object *o = json_object_array_get_idx(sessions, i), *report = NULL;

		if (!json_object_object_get_ex(o, "report", &report))
			continue;
		reason = out_member(report, "reason");
		(void)printf("\n%s, as its writer says: %s, %s, %s", out_member(o, "pool"),
			     out_member(report, "connection"), out_member(report, "replication"),
			     out_member(report, "data"));
		if (strcmp(reason, "none") != 0)
			(void)printf(" (%s)", reason);
		(void)putchar('\n');
	}
}

static const char *
text_at(struct json_object *list, size_t i)
{
	const char *text = json_object_get_string(json_object_array_get_idx(list, i));

	return text ? text : "-";
}

/* What was not found out but stated, and for the open pools what that is against. */
static void
print_overrides(struct json_object *overrides, struct json_object *sessions)
{
	struct json_object *list;

	if (json_object_array_length(overrides) == 0)
		return;
	(void)puts("\nstated in the target's repld.conf, not probed:");
	for (size_t i = 0; i < json_object_array_length(overrides); i++)
		(void)printf("  %s\n", text_at(overrides, i));
	for (size_t s = 0; s < json_object_array_length(sessions); s++) {
		struct json_object *o = json_object_array_get_idx(sessions, s);

		list = sessions_overrides(o);
		for (size_t i = 0; list && i < json_object_array_length(list); i++)
			(void)printf("  %s: %s\n", out_member(o, "pool"), text_at(list, i));
		json_object_put(list);
	}
}

/* With more pools than there may be an answer all the same, to be shown in front of the error. */
static int
status_once(struct ctl *c, struct json_object **out)
{
	struct json_object *pools = NULL, *sessions = NULL, *answer;
	struct sessions_beside says = {0};
	int rc = pools_fetch(c, &pools), limit = pools ? rc : 0;

	if (!rc || limit)
		rc = sessions_fetch(c, &sessions, &says);
	if (!rc && json_object_array_length(sessions) > 0)
		rc = sample_rates(c, &sessions);
	if (rc) {
		json_object_put(pools);
		json_object_put(sessions);
		json_object_put(says.overrides);
		return rc;
	}
	answer = json_object_new_object();
	out_add_text(answer, "target", c->host_text);
	control_add(answer, "pools", pools);
	control_add(answer, "sessions", sessions);
	if (says.untold)
		out_add_u64(answer, "sessions_untold", says.untold);
	control_add(answer, "overrides", says.overrides);
	if (!control_complete(answer)) {
		json_object_put(answer);
		return err_set(&c->err, REPL_E_NOMEM, "no memory for the answer");
	}
	*out = answer;
	return limit;
}

static void
status_print(struct json_object *answer)
{
	struct json_object *pools = NULL, *sessions = NULL, *overrides = NULL;

	(void)json_object_object_get_ex(answer, "pools", &pools);
	(void)json_object_object_get_ex(answer, "sessions", &sessions);
	(void)json_object_object_get_ex(answer, "overrides", &overrides);
	pools_print(pools);
	print_sessions(sessions);
	print_untold(out_member_u64(answer, "sessions_untold"));
	print_reports(sessions);
	print_overrides(overrides, sessions);
}

/* Each answer below the one before; a terminal is cleared when the next one is there. */
static int
status_watch(struct ctl *c)
{
	bool terminal = watch_on_terminal();
	int rc = 0;

	interrupt_catch();
	do {
		struct json_object *answer = NULL;

		rc = status_once(c, &answer);
		if (rc && !answer)
			return interrupt_seen() ? (err_clear(&c->err), 0) : rc;
		if (terminal && !c->options.json)
			(void)fputs("\033[H\033[2J", stdout);
		if (!c->options.json)
			status_print(answer);
		else if (!rc)
			out_json_line(answer);
		(void)fflush(stdout);
		json_object_put(answer);
	} while (!rc && watch_wait());
	c->answered = !rc;
	return rc;
}

int
cmd_status(struct ctl *c, char **args)
{
	struct json_object *answer = NULL;
	int rc;

	if (ask_is_file(args[0]))
		return cmd_status_file(c, args[0]);
	rc = ctl_target(c, args[0], CTL_HOST_OR_FILE);
	if (!rc)
		rc = ctl_connect(c);
	if (!rc && c->options.watch)
		return status_watch(c);
	if (!rc)
		rc = status_once(c, &answer);
	if (answer && !c->options.json)
		status_print(answer);
	if (rc) {
		json_object_put(answer);
		return rc;
	}
	ctl_answer(c, answer);
	return 0;
}

/* ---- events of a target: what differs from one look to the next ---- */

static void
event_line(const struct ctl *c, struct json_object *o, const char *name)
{
	struct json_object *report = NULL;
	char now[OUT_NUMBER_MAX];

	if (c->options.json) {
		out_json_line(o);
		return;
	}
	out_time((uint64_t)time(NULL), now);
	(void)printf("%s %s %s", now, name, out_member(o, "state"));
	if (control_has(o, "writer"))
		(void)printf(", writer %s%s", out_member(o, "writer"),
			     out_member_bool(o, "writer_open") ? " (open)" : "");
	if (json_object_object_get_ex(o, "report", &report))
		(void)printf(": %s %s %s (%s)", out_member(report, "connection"),
			     out_member(report, "replication"), out_member(report, "data"),
			     out_member(report, "reason"));
	(void)putchar('\n');
}

/* What the writers report, by the pool. */
static struct json_object *
reports_by_pool(struct json_object *sessions)
{
	struct json_object *reports = json_object_new_object();

	for (size_t i = 0; i < json_object_array_length(sessions); i++) {
		struct json_object *s = json_object_array_get_idx(sessions, i), *report = NULL;

		if (json_object_object_get_ex(s, "report", &report))
			control_add(reports, out_member(s, "pool"), json_object_get(report));
	}
	return reports;
}

/* What counts as a change of a pool, from its own state and its writer's report. */
static struct json_object *
pool_event(struct json_object *pool, struct json_object *reports)
{
	static const char *const axes[] = {"connection", "replication", "data", "reason"};
	struct json_object *o = json_object_new_object(), *report = NULL, *few;

	out_add_text(o, "pool", out_member(pool, "name"));
	out_add_text(o, "state", out_member(pool, "state"));
	out_add_text(o, "writer", out_member(pool, "writer"));
	out_add_bool(o, "writer_open", out_member_bool(pool, "writer_open"));
	if (!json_object_object_get_ex(reports, out_member(pool, "name"), &report))
		return o;
	few = json_object_new_object();
	for (size_t a = 0; a < sizeof(axes) / sizeof(axes[0]); a++)
		out_add_text(few, axes[a], out_member(report, axes[a]));
	control_add(o, "report", few);
	return o;
}

/* Of the pools that were known those that are not there now. */
static void
events_removed(const struct ctl *c, struct json_object *known, struct json_object *now)
{
	json_object_object_foreach(known, name, old)
	{
		struct json_object *o;

		(void)old;
		if (control_has(now, name))
			continue;
		o = json_object_new_object();
		out_add_text(o, "pool", name);
		out_add_text(o, "state", "removed");
		event_line(c, o, name);
		json_object_put(o);
	}
}

/* Print what is new in a look at all pools; *known holds what was told, by name. */
static int
events_look(struct ctl *c, struct json_object **known)
{
	struct json_object *pools = NULL, *sessions = NULL, *old = NULL, *now, *reports;
	int rc = pools_fetch(c, &pools);

	if (!rc)
		rc = sessions_fetch(c, &sessions, NULL);
	if (rc) {
		json_object_put(pools);
		return rc;
	}
	now = json_object_new_object();
	reports = reports_by_pool(sessions);
	for (size_t i = 0; i < json_object_array_length(pools); i++) {
		struct json_object *pool = json_object_array_get_idx(pools, i);
		struct json_object *o = pool_event(pool, reports);
		const char *name = out_member(pool, "name");

		old = NULL;
		(void)json_object_object_get_ex(*known, name, &old);
		if (!old || !json_object_equal(old, o))
			event_line(c, o, name);
		control_add(now, name, o);
	}
	events_removed(c, *known, now);
	json_object_put(*known);
	*known = now;
	(void)fflush(stdout);
	json_object_put(reports);
	json_object_put(pools);
	json_object_put(sessions);
	return 0;
}

int
cmd_events(struct ctl *c, char **args)
{
	struct json_object *known;
	int rc;

	if (ask_is_file(args[0]))
		return cmd_events_file(c, args[0]);
	rc = ctl_target(c, args[0], CTL_HOST_OR_FILE);
	if (!rc)
		rc = ctl_connect(c);
	if (rc)
		return rc;
	known = json_object_new_object();
	interrupt_catch();
	do {
		rc = events_look(c, &known);
	} while (!rc && watch_wait());
	json_object_put(known);
	c->answered = rc == 0;
	return rc;
}
