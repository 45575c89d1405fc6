/* SPDX-License-Identifier: BSD-3-Clause */
#include "show.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "control.h"
#include "out.h"
#include "text.h"

#define NAME_WIDTH 10
#define VALUE_MAX  4096
#define BAR_WIDTH  20
#define REPLICAS   4096

void
show_field(FILE *f, const char *name, const char *fmt, ...)
{
	char value[VALUE_MAX], *rest = value, *word;
	size_t column = NAME_WIDTH, most = out_width();
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	text_clean(value);
	(void)fprintf(f, "%-*s", NAME_WIDTH, name);
	/* Each blank counts: a name may have two. */
	while ((word = strsep(&rest, " ")) != NULL) {
		if (column > NAME_WIDTH && column + 1 + strlen(word) > most) {
			(void)fprintf(f, "\n%-*s", NAME_WIDTH, "");
			column = NAME_WIDTH;
		}
		(void)fprintf(f, "%s%s", column > NAME_WIDTH ? " " : "", word);
		column += strlen(word) + (column > NAME_WIDTH);
	}
	(void)fputc('\n', f);
}

static bool
is(struct json_object *o, const char *name)
{
	bool value = false;

	(void)control_get_bool(o, name, &value, NULL);
	return value;
}

static unsigned
percent_of(uint64_t done, uint64_t total)
{
	return total == 0      ? 0
	       : done >= total ? 100
			       : (unsigned)((double)done * 100 / (double)total);
}

static void
show_resync(FILE *f, struct json_object *o)
{
	uint64_t total = out_member_u64(o, "resync_total"), done = out_member_u64(o, "resync_done");
	uint64_t eta_ms = out_member_u64(o, "resync_eta_ms");
	unsigned percent = percent_of(done, total);
	char of[OUT_NUMBER_MAX], rate[OUT_NUMBER_MAX], left[OUT_NUMBER_MAX];
	char bar[BAR_WIDTH + 1] = "";

	if (strcmp(out_member(o, "replication"), "resyncing") != 0)
		return;
	for (unsigned i = 0; i < BAR_WIDTH; i++)
		bar[i] = i * 100 < percent * BAR_WIDTH ? '#' : '.';
	out_size(total, of);
	out_size(out_member_u64(o, "resync_rate"), rate);
	out_duration(eta_ms * NS_PER_MS, left);
	show_field(f, "resync", "[%s] %u%% of %s, %s/s, %s left", bar, percent, of, rate,
		   eta_ms ? left : "?");
}

/* Of an earlier version, or before its first lanes, there is none. */
static void
show_provider(FILE *f, struct json_object *o)
{
	const char *provider = out_member(o, "provider"), *why = out_member(o, "provider_why");

	if (strcmp(provider, "-") != 0 && strcmp(why, "-") != 0)
		show_field(f, "provider", "%s (%s)", provider, why);
	else if (strcmp(provider, "-") != 0)
		show_field(f, "provider", "%s", provider);
}

void
show_unknown(FILE *f, const char *target, const char *generation, uint64_t position)
{
	(void)fprintf(f,
		      "replctl: the last writer of %s ended without closing it; all that this "
		      "replica acknowledged is there, another one may have later updates: "
		      "replctl newest, with all of them, tells which has\n",
		      target);
	if (position)
		(void)fprintf(f,
			      "replctl: it holds the drains up to position %" PRIu64
			      " of generation %s: a replica of that generation with a higher "
			      "position has more\n",
			      position, generation);
}

void
show_replica(FILE *f, struct json_object *o)
{
	const char *reason = out_member(o, "reason");
	bool well = strcmp(reason, "none") == 0;
	uint64_t dirty = out_member_u64(o, "dirty_bytes"), lag = out_member_u64(o, "lag_bytes");
	char size[OUT_NUMBER_MAX];

	show_field(f, "replica", "%s", out_member(o, "replica"));
	show_field(f, "state", "%s, %s, %s%s%s", out_member(o, "connection"),
		   out_member(o, "replication"), out_member(o, "data"),
		   is(o, "async") ? ", asynchronous" : "", is(o, "paused") ? ", paused" : "");
	if (!well)
		show_field(f, "reason", "%s: %s", reason, out_member(o, "meaning"));
	if (!well && strcmp(out_member(o, "message"), "-") != 0)
		show_field(f, "message", "%s", out_member(o, "message"));
	show_provider(f, o);
	out_size(lag, size);
	if (lag)
		show_field(f, "lag", "%s, %" PRIu64 " ms", size, out_member_u64(o, "lag_ms"));
	out_size(dirty, size);
	if (dirty)
		show_field(f, "dirty", "%s", size);
	show_resync(f, o);
	if (!well)
		show_field(f, "next", "%s", out_member(o, "next"));
}

void
show_line(FILE *f, struct json_object *o)
{
	const char *when = out_member(o, "time"), *reason = out_member(o, "reason");
	uint64_t dirty = out_member_u64(o, "dirty_bytes"), lag = out_member_u64(o, "lag_bytes"),
		 total = out_member_u64(o, "resync_total");
	char size[OUT_NUMBER_MAX];

	if (strcmp(when, "-") != 0)
		(void)fprintf(f, "%s ", when);
	(void)fprintf(f, "%s %s %s %s", out_member(o, "replica"), out_member(o, "connection"),
		      out_member(o, "replication"), out_member(o, "data"));
	if (strcmp(reason, "none") != 0)
		(void)fprintf(f, " (%s)", reason);
	out_size(lag, size);
	if (lag)
		(void)fprintf(f, ", %s lag", size);
	out_size(dirty, size);
	if (dirty)
		(void)fprintf(f, ", %s dirty", size);
	if (strcmp(out_member(o, "replication"), "resyncing") == 0 && total)
		(void)fprintf(f, ", %u%%", percent_of(out_member_u64(o, "resync_done"), total));
	(void)fputc('\n', f);
}

struct json_object *
show_replicas(struct json_object *status)
{
	struct json_object *list = NULL;

	if (control_get_array(status, "replicas", REPLICAS, &list, NULL)) {
		list = json_object_new_array();
		control_add(status, "replicas", list);
	}
	return list;
}

void
show_status(FILE *f, struct json_object *status, double drains_per_s)
{
	struct json_object *list = show_replicas(status);
	uint64_t begin = out_member_u64(status, "begin"), now = (uint64_t)time(NULL);
	char up[OUT_NUMBER_MAX], size[OUT_NUMBER_MAX], rate[64] = "";

	out_size(out_member_u64(status, "size"), size);
	out_duration((now > begin ? now - begin : 0) * NS_PER_S, up);
	if (drains_per_s >= 0)
		(void)snprintf(rate, sizeof(rate), ", %.0f/s", drains_per_s);
	show_field(f, "pool", "%s, %s", out_member(status, "pool"), size);
	show_field(f, "program", "pid %" PRIu64 ", open for %s, %" PRIu64 " lane%s",
		   out_member_u64(status, "pid"), up, out_member_u64(status, "lanes"),
		   out_plural(out_member_u64(status, "lanes")));
	show_field(f, "drains", "%" PRIu64 "%s", out_member_u64(status, "drains"), rate);
	if (strcmp(out_member(status, "metrics_error"), "-") != 0)
		show_field(f, "metrics", "not written: %s", out_member(status, "metrics_error"));
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		(void)fputc('\n', f);
		show_replica(f, json_object_array_get_idx(list, i));
	}
}
