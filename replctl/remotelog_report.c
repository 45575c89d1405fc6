/* SPDX-License-Identifier: BSD-3-Clause */
/* What replctl bench remotelog has found: a table, JSON, and a plot. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "barplot.h"
#include "control.h"
#include "out.h"
#include "remotelog.h"

#define CELL      64
#define NOTE_MAX  200
#define NS_PER_US 1000.0

enum { P50 = 500, P99 = 990 };

static bool
series_measured(const struct remotelog *rl, const struct remotelog_way *w, enum remotelog_tail t)
{
	return remotelog_wanted(rl, w, t) && !w->tails[t].why_not && w->tails[t].hist.count;
}

static double
ratio(const struct remotelog *rl, const struct hist *h)
{
	double raw = (double)hist_quantile(&rl->raw_hist, P50);

	return raw > 0 ? (double)hist_quantile(h, P50) / raw : 0;
}

static const char *
class_name(const struct remotelog *rl)
{
	const char *name =
		profile_value_name(PROFILE_F_CLASS, remote_info(rl->c->remote)->durability);

	return name ? name : "?";
}

/* ---- text ---- */

static void
row(struct out_table *table, const struct remotelog *rl, const struct hist *h, const char *method,
    const char *tail)
{
	char count[CELL], mean[CELL], p50[CELL], p99[CELL], rel[CELL];

	(void)snprintf(count, CELL, "%llu", (unsigned long long)h->count);
	(void)snprintf(mean, CELL, "%.2f", hist_mean(h) / NS_PER_US);
	(void)snprintf(p50, CELL, "%.2f", (double)hist_quantile(h, P50) / NS_PER_US);
	(void)snprintf(p99, CELL, "%.2f", (double)hist_quantile(h, P99) / NS_PER_US);
	(void)snprintf(rel, CELL, "%.2f", ratio(rl, h));
	out_table_row(table, (const char *[]){method, tail, count, mean, p50, p99, rel});
}

static void
print_measured(const struct remotelog *rl)
{
	static const char *const heads[] = {"METHOD",  "UPDATE",  ">APPENDS", ">mean us",
					    ">p50 us", ">p99 us", ">RATIO"};
	struct out_table table;
	char name[CELL];

	out_table_init(&table, heads, 7);
	row(&table, rl, &rl->raw_hist, "raw ping-pong", "-");
	for (enum remotelog_tail t = 0; t < REMOTELOG_TAILS; t++) {
		for (unsigned i = 0; i < rl->way_count; i++) {
			const struct remotelog_way *w = &rl->ways[i];

			if (!series_measured(rl, w, t))
				continue;
			(void)snprintf(name, CELL, "%s%s", w->name, w->tails[t].chosen ? " *" : "");
			row(&table, rl, &w->tails[t].hist, name, remotelog_tail_name(t));
		}
	}
	out_table_end(&table);
	(void)puts("ratio: of the medians, to the raw ping-pong; * the library's own choice");
}

static const char *
why_not(const struct remotelog *rl, const struct remotelog_way *w, enum remotelog_tail t)
{
	return remotelog_wanted(rl, w, t) ? w->tails[t].why_not : NULL;
}

/* One line if no kind of update runs, for the same reason. */
static void
print_not_run(const struct remotelog *rl)
{
	bool headed = false;

	for (unsigned i = 0; i < rl->way_count; i++) {
		const struct remotelog_way *w = &rl->ways[i];
		const char *one = why_not(rl, w, REMOTELOG_SINGLETON);
		const char *two = why_not(rl, w, REMOTELOG_COMPOUND);

		if ((one || two) && !headed)
			(void)puts("\nnot to be run there");
		headed |= one || two;
		if (one && two && strcmp(one, two) == 0)
			(void)printf("  %s: %s\n", w->name, one);
		else if (one)
			(void)printf("  %s, singleton: %s\n", w->name, one);
		if (two && !(one && strcmp(one, two) == 0))
			(void)printf("  %s, compound: %s\n", w->name, two);
	}
}

static void
print_head(const struct remotelog *rl)
{
	const struct lane_terms *terms = remote_terms(rl->c->remote);

	out_field("target", "%s", rl->c->host_text);
	out_field("pools", "class %s, %s", class_name(rl), remote_info(rl->c->remote)->filesystem);
	out_field("lane", "one by %s to %s", terms->provider, rl->raw.address);
	out_field("log", "records of %llu bytes, series take turns", (unsigned long long)rl->size);
	if (rl->interrupted)
		out_field("note", "interrupted after %llu of %llu appends",
			  (unsigned long long)rl->done, (unsigned long long)rl->count);
	(void)putchar('\n');
}

/* ---- JSON ---- */

static void
add_number(struct json_object *o, const char *name, double value)
{
	char text[CELL];

	(void)snprintf(text, sizeof(text), "%.3f", value);
	control_add(o, name, json_object_new_double_s(value, text));
}

static struct json_object *
hist_json(const struct hist *h)
{
	struct json_object *o = json_object_new_object();

	out_add_u64(o, "count", h->count);
	add_number(o, "mean_ns", hist_mean(h));
	out_add_u64(o, "p50_ns", hist_quantile(h, P50));
	out_add_u64(o, "p99_ns", hist_quantile(h, P99));
	return o;
}

static void
add_series(const struct remotelog *rl, struct json_object *measured, struct json_object *not_run)
{
	for (unsigned i = 0; i < rl->way_count; i++) {
		const struct remotelog_way *w = &rl->ways[i];

		for (enum remotelog_tail t = 0; t < REMOTELOG_TAILS; t++) {
			const struct remotelog_series *s = &w->tails[t];
			struct json_object *o;

			if (!remotelog_wanted(rl, w, t))
				continue;
			o = s->why_not ? json_object_new_object() : hist_json(&s->hist);
			out_add_text(o, "method", w->name);
			out_add_text(o, "update", remotelog_tail_name(t));
			if (s->why_not) {
				out_add_text(o, "reason", s->why_not);
				control_append(not_run, o);
				continue;
			}
			add_number(o, "ratio", ratio(rl, &s->hist));
			out_add_bool(o, "chosen", s->chosen);
			control_append(measured, o);
		}
	}
}

static struct json_object *
report_json(const struct remotelog *rl)
{
	struct json_object *o = json_object_new_object();
	struct json_object *measured = json_object_new_array(), *not_run = json_object_new_array();

	out_add_text(o, "target", rl->c->host_text);
	out_add_text(o, "address", rl->raw.address);
	out_add_text(o, "provider", remote_terms(rl->c->remote)->provider);
	out_add_text(o, "class", class_name(rl));
	out_add_text(o, "filesystem", remote_info(rl->c->remote)->filesystem);
	out_add_u64(o, "record_size", rl->size);
	out_add_u64(o, "count", rl->count);
	out_add_bool(o, "interrupted", rl->interrupted);
	control_add(o, "raw", hist_json(&rl->raw_hist));
	add_series(rl, measured, not_run);
	control_add(o, "series", measured);
	control_add(o, "not_run", not_run);
	return o;
}

void
remotelog_report(struct remotelog *rl)
{
	if (!rl->c->options.json) {
		print_head(rl);
		print_measured(rl);
		print_not_run(rl);
	}
	ctl_answer(rl->c, report_json(rl));
}

/* ---- plot ---- */

struct bars {
	const char *groups[REMOTELOG_WAYS], *series[REMOTELOG_TAILS];
	double values[REMOTELOG_WAYS * REMOTELOG_TAILS];
	double marks[REMOTELOG_WAYS * REMOTELOG_TAILS];
	char subtitle[NOTE_MAX], line[CELL];
	char notes[BARPLOT_NOTES_MAX][NOTE_MAX];
};

/* Groups with at least one bar; a note for each of the others. */
static void
bars_fill(const struct remotelog *rl, struct bars *b, struct barplot *p)
{
	unsigned notes = 0;

	for (enum remotelog_tail t = 0; t < REMOTELOG_TAILS; t++)
		if (rl->wanted_tails[t])
			b->series[p->series_count++] = remotelog_tail_name(t);
	for (unsigned i = 0; i < rl->way_count; i++) {
		const struct remotelog_way *w = &rl->ways[i];
		unsigned at = p->group_count * p->series_count;
		const char *why = NULL;
		bool any = false;

		for (enum remotelog_tail t = 0; t < REMOTELOG_TAILS; t++) {
			if (!rl->wanted_tails[t])
				continue;
			if (!series_measured(rl, w, t))
				why = w->tails[t].why_not;
			else
				any = true;
			b->values[at] = series_measured(rl, w, t)
						? hist_mean(&w->tails[t].hist) / NS_PER_US
						: -1;
			b->marks[at++] = (double)hist_quantile(&w->tails[t].hist, P50) / NS_PER_US;
		}
		if (any)
			b->groups[p->group_count++] = w->name;
		if (why && notes < BARPLOT_NOTES_MAX) {
			(void)snprintf(b->notes[notes], NOTE_MAX, "%s%s: %.*s", w->name,
				       any ? ", in part" : " can't run there",
				       (int)strcspn(why, ";"), why);
			p->notes[notes] = b->notes[notes];
			notes++;
		}
	}
}

int
remotelog_plot_open(struct remotelog *rl, const char *file)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	rl->plot = fd < 0 ? NULL : fdopen(fd, "w");
	if (rl->plot)
		return 0;
	(void)err_errno(&rl->c->err, err_from_errno(errno), errno, "%s", file);
	if (fd >= 0)
		(void)close(fd);
	return rl->c->err.code;
}

static int
plot_write(FILE *f, const struct barplot *p)
{
	struct stat st;

	/* What is no file, such as a pipe, holds no earlier plot. */
	if (fstat(fileno(f), &st) || (S_ISREG(st.st_mode) && ftruncate(fileno(f), 0)))
		return -1;
	barplot_write(p, f);
	return fflush(f) || ferror(f) ? -1 : 0;
}

int
remotelog_plot(struct remotelog *rl)
{
	static struct bars b;
	const struct replica_info *info = remote_info(rl->c->remote);
	struct barplot p = {.title = "REMOTELOG: latency of appends to a remote log",
			    .subtitle = b.subtitle,
			    .axis = "mean latency of an append, \xc2\xb5s",
			    .groups = b.groups,
			    .series = b.series,
			    .values = b.values,
			    .marks = b.marks,
			    .mark_label = "median",
			    .line = hist_mean(&rl->raw_hist) / NS_PER_US,
			    .line_label = b.line};
	bool failed;

	bars_fill(rl, &b, &p);
	(void)snprintf(b.subtitle, sizeof(b.subtitle),
		       "%llu records of %llu bytes by each method; pools of class %s on %s, "
		       "provider %s",
		       (unsigned long long)rl->done, (unsigned long long)rl->size, class_name(rl),
		       info->filesystem, remote_terms(rl->c->remote)->provider);
	(void)snprintf(b.line, sizeof(b.line), "raw TCP ping-pong, %.1f \xc2\xb5s", p.line);
	failed = plot_write(rl->plot, &p) != 0;
	if (!failed) {
		failed = fclose(rl->plot) != 0;
		rl->plot = NULL;
	}
	if (failed)
		return err_errno(&rl->c->err, err_from_errno(errno), errno, "writing the plot");
	return 0;
}

void
remotelog_plot_close(struct remotelog *rl, const char *file)
{
	struct stat st;

	if (!rl->plot)
		return;
	/* Nothing came of it: then there is no file either. */
	if (fstat(fileno(rl->plot), &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		(void)unlink(file);
	(void)fclose(rl->plot);
	rl->plot = NULL;
}
