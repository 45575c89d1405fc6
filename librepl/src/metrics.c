/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of a handle in Prometheus' text exposition format 0.0.4. */
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reason.h"
#include "statusdoc.h"
#include "text.h"

#define LABEL_MAX 8192 /* an escaped path */

/* One family with a value a replica. */
static const struct family {
	const char *name, *type, *help;
	size_t offset;
	double unit; /* what one of the field's units is, in the metric's */
} families[] = {
#define FAMILY(name_, type_, field, unit_, help_)                                                  \
	{                                                                                          \
		name_, type_, help_, offsetof(struct repl_stat, field), unit_                      \
	}
	FAMILY("repl_replica_messages_total", "counter", message_count, 1,
	       "Messages sent to the replica since the pool was opened."),
	FAMILY("repl_replica_writes_total", "counter", write_count, 1,
	       "RMA writes to the replica since the pool was opened."),
	FAMILY("repl_replica_reads_total", "counter", read_count, 1,
	       "RMA reads from the replica since the pool was opened."),
	FAMILY("repl_replica_sent_bytes_total", "counter", byte_count, 1,
	       "Payload bytes sent to the replica since the pool was opened."),
	FAMILY("repl_replica_errors_total", "counter", error_count, 1, "Failed operations."),
	FAMILY("repl_replica_missed_drains_total", "counter", degraded_count, 1,
	       "Drains that were acknowledged without the replica."),
	FAMILY("repl_replica_reconnects_total", "counter", reconnect_count, 1,
	       "Times that the replica was lost and came back."),
	FAMILY("repl_replica_lag_bytes", "gauge", lag_bytes, 1,
	       "Bytes that are acknowledged and on their way to the replica."),
	FAMILY("repl_replica_lag_seconds", "gauge", lag_ms, 1e-3,
	       "Age of the oldest update on its way to the replica."),
	FAMILY("repl_replica_dirty_bytes", "gauge", dirty_bytes, 1,
	       "Bytes that the replica misses, in blocks of the dirty map."),
	FAMILY("repl_replica_resync_size_bytes", "gauge", resync_total, 1,
	       "Bytes to look at in the resync under way."),
	FAMILY("repl_replica_resync_done_bytes", "gauge", resync_done, 1,
	       "Bytes looked at in the resync under way."),
	FAMILY("repl_replica_resync_moved_bytes", "gauge", resync_moved, 1,
	       "Bytes sent by the resync under way."),
	FAMILY("repl_replica_resync_bytes_per_second", "gauge", resync_rate, 1,
	       "Speed of the resync under way."),
	FAMILY("repl_replica_resync_eta_seconds", "gauge", resync_eta_ms, 1e-3,
	       "Time left of the resync under way, as far as it is known."),
#undef FAMILY
};

/* A label's value: clean, and what the format wants escaped is. */
static void
label_escape(const char *text, char out[LABEL_MAX])
{
	char clean[LABEL_MAX / 2];
	size_t at = 0;

	(void)snprintf(clean, sizeof(clean), "%s", text);
	text_clean(clean);
	for (const char *c = clean; *c && at + 3 < LABEL_MAX; c++) {
		if (*c == '\\' || *c == '"')
			out[at++] = '\\';
		out[at++] = *c;
	}
	out[at] = '\0';
}

static void
put_head(FILE *f, const char *name, const char *type, const char *help)
{
	(void)fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
put_pool_value(FILE *f, const char *pool, const char *name, const char *type, const char *help,
	       uint64_t value)
{
	put_head(f, name, type, help);
	(void)fprintf(f, "%s{pool=\"%s\"} %" PRIu64 "\n", name, pool, value);
}

static void
put_latency(FILE *f, const char *pool, const struct repl_stat *st)
{
	static const char name[] = "repl_drain_duration_seconds";
	uint64_t sum = 0;

	put_head(f, name, "histogram", "Duration of drains.");
	for (unsigned i = 0; i < REPL_HIST_BUCKETS; i++) {
		sum += st->latency_ns[i];
		/* The last bucket is open. */
		if (i + 1 < REPL_HIST_BUCKETS)
			(void)fprintf(f, "%s_bucket{pool=\"%s\",le=\"%.9g\"} %" PRIu64 "\n", name,
				      pool, (double)(2ULL << i) * 1e-9, sum);
	}
	(void)fprintf(f, "%s_bucket{pool=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name, pool, sum);
	(void)fprintf(f, "%s_sum{pool=\"%s\"} %.9f\n", name, pool,
		      (double)st->latency_sum_ns * 1e-9);
	(void)fprintf(f, "%s_count{pool=\"%s\"} %" PRIu64 "\n", name, pool, sum);
}

struct labels {
	char pool[LABEL_MAX];
	char replica[REPL_TARGETS_MAX][TARGET_TEXT_MAX * 2];
};

static void
put_family(FILE *f, const struct statusdoc *d, const struct labels *l, const struct family *m)
{
	put_head(f, m->name, m->type, m->help);
	for (unsigned i = 0; i < d->replica_count; i++) {
		uint64_t value;

		memcpy(&value, (const char *)&d->stat[i] + m->offset, sizeof(value));
		(void)fprintf(f, "%s{pool=\"%s\",replica=\"%s\"} ", m->name, l->pool,
			      l->replica[i]);
		if (m->unit == 1)
			(void)fprintf(f, "%" PRIu64 "\n", value);
		else
			(void)fprintf(f, "%.3f\n", (double)value * m->unit);
	}
}

/* A series for each value of an axis: 1 for the one that holds. */
static void
put_axis(FILE *f, const struct statusdoc *d, const struct labels *l, enum reason_axis axis)
{
	const char *key = reason_axis_key(axis), *state;
	char name[64];

	(void)snprintf(name, sizeof(name), "repl_replica_%s", key);
	put_head(f, name, "gauge", "1 for the state that the replica is in, 0 for the others.");
	for (unsigned i = 0; i < d->replica_count; i++) {
		const struct repl_stat *st = &d->stat[i];
		int now = axis == REASON_CONNECTION    ? st->connection
			  : axis == REASON_REPLICATION ? st->replication
						       : st->data;

		for (int v = 0; (state = reason_axis_name(axis, v)) != NULL; v++)
			(void)fprintf(f, "%s{pool=\"%s\",replica=\"%s\",state=\"%s\"} %d\n", name,
				      l->pool, l->replica[i], state, v == now);
	}
}

static void
put_reasons(FILE *f, const struct statusdoc *d, const struct labels *l)
{
	put_head(f, "repl_replica_reason", "gauge", "1, with the reason for the replica's state.");
	for (unsigned i = 0; i < d->replica_count; i++)
		(void)fprintf(f,
			      "repl_replica_reason{pool=\"%s\",replica=\"%s\",reason=\"%s\"} 1\n",
			      l->pool, l->replica[i], reason_name(d->stat[i].reason_code));
	put_head(f, "repl_replica_paused", "gauge", "1 while the replica is paused.");
	for (unsigned i = 0; i < d->replica_count; i++)
		(void)fprintf(f, "repl_replica_paused{pool=\"%s\",replica=\"%s\"} %d\n", l->pool,
			      l->replica[i], d->stat[i].paused != 0);
}

static void
put_all(FILE *f, const struct statusdoc *d, const struct labels *l)
{
	const struct repl_stat *st = &d->stat[0];

	put_pool_value(f, l->pool, "repl_start_time_seconds", "gauge",
		       "When the pool was opened, in seconds since the epoch.", d->begin_s);
	put_pool_value(f, l->pool, "repl_pool_size_bytes", "gauge", "Size of the pool.", d->size);
	put_pool_value(f, l->pool, "repl_replicas", "gauge", "Replicas in the configuration.",
		       d->replica_count);
	put_pool_value(f, l->pool, "repl_flushes_total", "counter", "Ranges flushed.",
		       st->flush_count);
	put_pool_value(f, l->pool, "repl_flushes_merged_total", "counter",
		       "Ranges that were merged into another.", st->merged_count);
	put_latency(f, l->pool, st);
	for (int a = 0; a < REASON_AXIS_COUNT; a++)
		put_axis(f, d, l, (enum reason_axis)a);
	put_reasons(f, d, l);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		put_family(f, d, l, &families[i]);
}

char *
statusdoc_metrics(const struct statusdoc *d, size_t *len)
{
	struct labels *l = malloc(sizeof(*l));
	char *text = NULL, escaped[LABEL_MAX];
	FILE *f = open_memstream(&text, len);
	/* The program's own may write a half as 0,5, which no reader of metrics takes. */
	locale_t numbers = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), before;

	if (!l || !f || !numbers)
		goto out;
	label_escape(d->pool, l->pool);
	for (unsigned i = 0; i < d->replica_count; i++) {
		label_escape(d->replica[i], escaped);
		(void)snprintf(l->replica[i], sizeof(l->replica[i]), "%.*s",
			       (int)sizeof(l->replica[i]) - 1, escaped);
	}
	before = uselocale(numbers);
	put_all(f, d, l);
	(void)uselocale(before);
out:
	free(l);
	if (f && (fclose(f) || !l || !numbers)) {
		free(text);
		text = NULL;
	}
	if (numbers)
		freelocale(numbers);
	return text;
}
