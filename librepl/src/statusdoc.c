/* SPDX-License-Identifier: BSD-3-Clause */
#include "statusdoc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "reason.h"
#include "text.h"

#define NEXT_MAX 2048

/* Numbers of a replica that JSON shows, by name. */
static const struct number {
	const char *name;
	size_t offset;
} numbers[] = {
	{"lag_bytes", offsetof(struct repl_stat, lag_bytes)},
	{"lag_ms", offsetof(struct repl_stat, lag_ms)},
	{"dirty_bytes", offsetof(struct repl_stat, dirty_bytes)},
	{"resync_total", offsetof(struct repl_stat, resync_total)},
	{"resync_done", offsetof(struct repl_stat, resync_done)},
	{"resync_moved", offsetof(struct repl_stat, resync_moved)},
	{"resync_rate", offsetof(struct repl_stat, resync_rate)},
	{"resync_eta_ms", offsetof(struct repl_stat, resync_eta_ms)},
	{"reconnects", offsetof(struct repl_stat, reconnect_count)},
	{"messages", offsetof(struct repl_stat, message_count)},
	{"bytes", offsetof(struct repl_stat, byte_count)},
	{"uncopied_bytes", offsetof(struct repl_stat, uncopied_count)},
	{"errors", offsetof(struct repl_stat, error_count)},
	{"missed_drains", offsetof(struct repl_stat, degraded_count)},
};

#define NUMBER_COUNT     (sizeof(numbers) / sizeof(numbers[0]))
#define REPORTED_NUMBERS 8 /* the first ones go to the target as well */

static void
add_text(struct json_object *o, const char *name, const char *value)
{
	char clean[NEXT_MAX];

	(void)snprintf(clean, sizeof(clean), "%s", value ? value : "");
	text_clean(clean);
	control_add(o, name, json_object_new_string(clean));
}

static void
add_u64(struct json_object *o, const char *name, uint64_t value)
{
	control_add(o, name, json_object_new_int64(value > INT64_MAX ? INT64_MAX : (int64_t)value));
}

static uint64_t
number_of(const struct repl_stat *st, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)st + offset, sizeof(value));
	return value;
}

static int
axis_of(const struct repl_stat *st, enum reason_axis axis)
{
	return axis == REASON_CONNECTION    ? st->connection
	       : axis == REASON_REPLICATION ? st->replication
					    : st->data;
}

static void
add_axes(struct json_object *o, const struct repl_stat *st, size_t count)
{
	for (int a = 0; a < REASON_AXIS_COUNT; a++)
		add_text(o, reason_axis_key((enum reason_axis)a),
			 reason_axis_name((enum reason_axis)a, axis_of(st, (enum reason_axis)a)));
	add_text(o, "reason", reason_name(st->reason_code));
	control_add(o, "paused", json_object_new_boolean(st->paused != 0));
	for (size_t i = 0; i < count; i++)
		add_u64(o, numbers[i].name, number_of(st, numbers[i].offset));
}

/*
 * Without a next step: the target's takes whom it refuses for the one who must give way, and ours
 * (replica_differs_elsewhere()) has no room there. Here it is told from the reason.
 */
static void
add_message(struct json_object *o, const char *reason)
{
	static const char *const steps[] = {"; next: ", ". To take the replica's data: "};
	char text[sizeof(((struct repl_stat *)0)->reason)], *step;

	(void)snprintf(text, sizeof(text), "%s", reason);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		step = strstr(text, steps[i]);
		if (step)
			*step = '\0';
	}
	add_text(o, "message", text);
}

/*
 * What is mapped is no file, and no command takes it. false: for that reason none is named that
 * wants one, or it is longer than there is room for.
 */
static bool
next_without_file(int reason, const struct reason_names *names, char *out, size_t size)
{
	char file[NEXT_MAX / 2] = "FILE", replica[TARGET_TEXT_MAX * 4];
	int n = -1;

	if ((names->file[0] && !text_quote(names->file, file, sizeof(file))) ||
	    !text_quote(names->replica, replica, sizeof(replica)))
		return false;
	if (reason == REPL_REASON_BEHIND || reason == REPL_REASON_DIVERGED ||
	    reason == REPL_REASON_UNRELATED)
		n = snprintf(out, size,
			     "replctl restore %s OTHER-FILE (to look at it); to have it anew: "
			     "replctl remove %s, then replctl resume %s %s",
			     replica, replica, file, replica);
	else if (reason == REPL_REASON_INCONSISTENT || reason == REPL_REASON_OUTDATED)
		n = snprintf(out, size, "replctl resume %s %s", file, replica);
	return n >= 0 && (size_t)n < size;
}

struct json_object *
statusdoc_replica(const struct statusdoc *d, unsigned replica)
{
	const struct repl_stat *st = &d->stat[replica];
	struct json_object *o = json_object_new_object();
	char host[TARGET_TEXT_MAX], next[NEXT_MAX], size[24], *slash;
	struct reason_names names = {
		.file = d->pool, .size = size, .target = host, .replica = d->replica[replica]};

	(void)snprintf(size, sizeof(size), "%" PRIu64, (uint64_t)d->size);
	(void)snprintf(host, sizeof(host), "%s", d->replica[replica]);
	slash = strchr(host, '/');
	if (slash)
		*slash = '\0';
	add_text(o, "replica", d->replica[replica]);
	control_add(o, "async", json_object_new_boolean(d->async[replica]));
	add_axes(o, st, NUMBER_COUNT);
	add_text(o, "provider", st->provider);
	add_text(o, "provider_why", st->provider_why);
	add_message(o, st->reason);
	if (st->reason_code != REPL_REASON_NONE) {
		if (!d->no_file || !next_without_file(st->reason_code, &names, next, sizeof(next)))
			reason_next_for(st->reason_code, &names, next, sizeof(next));
		add_text(o, "meaning", reason_meaning(st->reason_code));
		add_text(o, "next", next);
	}
	return o;
}

struct json_object *
statusdoc_json(const struct statusdoc *d)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	add_text(o, "pool", d->pool);
	add_u64(o, "size", d->size);
	add_u64(o, "pid", (uint64_t)getpid());
	add_u64(o, "begin", d->begin_s);
	add_u64(o, "lanes", d->lanes);
	add_u64(o, "flushes", d->stat[0].flush_count);
	add_u64(o, "drains", d->stat[0].drain_count);
	control_add(o, "pause_checked", json_object_new_boolean(true));
	if (d->metrics_error[0])
		add_text(o, "metrics_error", d->metrics_error);
	for (unsigned i = 0; i < d->replica_count; i++)
		control_append(list, statusdoc_replica(d, i));
	control_add(o, "replicas", list);
	return o;
}

struct json_object *
statusdoc_report(const struct repl_stat *st)
{
	struct json_object *o = json_object_new_object();

	add_axes(o, st, REPORTED_NUMBERS);
	return o;
}
