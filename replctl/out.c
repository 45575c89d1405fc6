/* SPDX-License-Identifier: BSD-3-Clause */
#include "out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "text.h"

#define CELL_MAX  512
#define WIDTH_MIN 30

#define COST_VALUE  64U
#define COST_MEMBER 64U   /* beside its value */
#define COST_ARRAY  512U  /* json-c has room in each for 32 elements, */
#define COST_OBJECT 1024U /* and for 16 members */

void
out_size(uint64_t bytes, char out[OUT_NUMBER_MAX])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	unsigned i = 0;

	/* From 1023.95 on, one decimal would say 1024.0. */
	while (value >= 1023.95) {
		value /= 1024;
		i++;
	}
	(void)snprintf(out, OUT_NUMBER_MAX, i ? "%.1f %s" : "%.0f %s", value, units[i]);
}

void
out_duration(uint64_t ns, char out[OUT_NUMBER_MAX])
{
	uint64_t s = ns / NS_PER_S;

	if (s < 10)
		(void)snprintf(out, OUT_NUMBER_MAX, "%.1f s", (double)(ns / 100000000) / 10);
	else if (s < 60)
		(void)snprintf(out, OUT_NUMBER_MAX, "%" PRIu64 " s", s);
	else if (s < 3600)
		(void)snprintf(out, OUT_NUMBER_MAX, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
	else
		(void)snprintf(out, OUT_NUMBER_MAX, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64,
			       s / 3600, s / 60 % 60, s % 60);
}

void
out_time(uint64_t seconds, char out[OUT_NUMBER_MAX])
{
	time_t t = (time_t)seconds;
	struct tm tm;

	if (seconds == 0)
		(void)snprintf(out, OUT_NUMBER_MAX, "never");
	else if (seconds > INT32_MAX * 100ULL || !gmtime_r(&t, &tm) ||
		 !strftime(out, OUT_NUMBER_MAX, "%Y-%m-%d %H:%M:%S UTC", &tm))
		(void)snprintf(out, OUT_NUMBER_MAX, "?");
}

const char *
out_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

uint64_t
out_rate(uint64_t bytes, uint64_t ns)
{
	return ns ? (uint64_t)((double)bytes * 1e9 / (double)ns) : 0;
}

char *
out_quote(const char *word)
{
	size_t size = strlen(word) * 4 + 5, dash = word[0] == '-' ? 2 : 0;
	char *quoted = malloc(size);

	if (!quoted)
		return NULL;
	memcpy(quoted, "./", dash);
	(void)text_quote(word, quoted + dash, size - dash);
	return quoted;
}

size_t
out_width(void)
{
	struct winsize w = {.ws_col = 0};

	if (!isatty(STDOUT_FILENO))
		return SIZE_MAX;
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
	if (w.ws_col == 0)
		w.ws_col = 80;
	return w.ws_col > WIDTH_MIN ? w.ws_col - 1U : WIDTH_MIN;
}

void
out_field(const char *name, const char *fmt, ...)
{
	char value[OUT_FIELD_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	text_clean(value);
	(void)printf("%-14s %s\n", name, value);
}

void
out_line(FILE *f, const char *fmt, ...)
{
	char *line = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&line, fmt, ap) < 0)
		line = NULL;
	va_end(ap);
	if (!line)
		return;
	text_clean(line);
	(void)fprintf(f, "%s\n", line);
	free(line);
}

/* ---- tables ---- */

void
out_table_init(struct out_table *t, const char *const *heads, unsigned columns)
{
	memset(t, 0, sizeof(*t));
	t->heads = heads;
	t->columns = columns < OUT_COLUMNS_MAX ? columns : OUT_COLUMNS_MAX;
}

static char **
table_at(const struct out_table *t, unsigned row, unsigned column)
{
	return &t->cells[(size_t)row * (t->columns + 1) + column];
}

void
out_table_row(struct out_table *t, const char *const *cells)
{
	if (t->rows == t->room) {
		unsigned room = t->room ? t->room * 2 : 16;
		char **grown =
			reallocarray(t->cells, (size_t)room * (t->columns + 1), sizeof(*grown));

		if (!grown)
			return;
		t->cells = grown;
		t->room = room;
	}
	for (unsigned i = 0; i < t->columns; i++) {
		char *cell = strndup(cells[i], CELL_MAX);

		if (cell)
			text_clean(cell);
		*table_at(t, t->rows, i) = cell;
	}
	*table_at(t, t->rows, t->columns) = NULL;
	t->rows++;
}

void
out_table_note(struct out_table *t, const char *fmt, ...)
{
	char **note = t->rows ? table_at(t, t->rows - 1, t->columns) : NULL;
	char text[CELL_MAX];
	va_list ap;

	if (!note)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_clean(text);
	free(*note);
	*note = strdup(text);
}

static const char *
table_cell(const struct out_table *t, unsigned row, unsigned column)
{
	const char *cell = *table_at(t, row, column);

	return cell ? cell : "?";
}

static void
table_line(const char *const *cells, const int *widths, const bool *right, unsigned columns)
{
	for (unsigned i = 0; i < columns; i++) {
		const char *end = i + 1 == columns ? "\n" : "  ";

		if (i + 1 == columns && !right[i])
			(void)printf("%s%s", cells[i], end);
		else
			(void)printf("%*s%s", right[i] ? widths[i] : -widths[i], cells[i], end);
	}
}

/* That leave room for what stands beside them; short ones are left where they are in any case. */
static int
table_first_width(const struct out_table *t, const char *head, const int *widths)
{
	size_t most = out_width(), beside = 0, width = strlen(head);

	for (unsigned c = 1; c < t->columns; c++)
		beside += (size_t)widths[c] + 2;
	for (unsigned r = 0; r < t->rows; r++) {
		size_t len = strlen(table_cell(t, r, 0));

		if (len > width && (len <= most / 2 || len + beside <= most))
			width = len;
	}
	return (int)width;
}

static void
table_rows(const struct out_table *t, const int *widths, const bool *right)
{
	const char *line[OUT_COLUMNS_MAX];

	for (unsigned r = 0; r < t->rows; r++) {
		for (unsigned c = 0; c < t->columns; c++)
			line[c] = table_cell(t, r, c);
		if ((int)strlen(line[0]) > widths[0]) {
			(void)puts(line[0]);
			line[0] = "";
		}
		table_line(line, widths, right, t->columns);
		if (*table_at(t, r, t->columns))
			(void)printf("    %s\n", *table_at(t, r, t->columns));
	}
}

void
out_table_end(struct out_table *t)
{
	const char *line[OUT_COLUMNS_MAX];
	int widths[OUT_COLUMNS_MAX];
	bool right[OUT_COLUMNS_MAX];

	for (unsigned c = 0; c < t->columns; c++) {
		right[c] = t->heads[c][0] == '>';
		line[c] = t->heads[c] + right[c];
		widths[c] = (int)strlen(line[c]);
		for (unsigned r = 0; r < t->rows; r++) {
			int len = (int)strlen(table_cell(t, r, c));

			widths[c] = len > widths[c] ? len : widths[c];
		}
	}
	if (!right[0])
		widths[0] = table_first_width(t, line[0], widths);
	table_line(line, widths, right, t->columns);
	table_rows(t, widths, right);
	for (unsigned i = 0; i < t->rows * (t->columns + 1); i++)
		free(t->cells[i]);
	free(t->cells);
	memset(t, 0, sizeof(*t));
}

/* ---- JSON ---- */

bool
out_json(struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(
		o,
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (text)
		(void)puts(text);
	return text != NULL;
}

void
out_json_line(struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(
		o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (text)
		(void)puts(text);
}

void
out_add_text(struct json_object *o, const char *name, const char *value)
{
	char *copy = strdup(value);

	if (copy)
		text_clean(copy);
	control_add(o, name, copy ? json_object_new_string(copy) : NULL);
	free(copy);
}

void
out_add_u64(struct json_object *o, const char *name, uint64_t value)
{
	control_add(o, name, json_object_new_uint64(value));
}

void
out_add_bool(struct json_object *o, const char *name, bool value)
{
	control_add(o, name, json_object_new_boolean(value));
}

static struct json_object *
clean_text(struct json_object *o)
{
	size_t len = (size_t)json_object_get_string_len(o);
	char *copy = strndup(json_object_get_string(o), len);
	struct json_object *made;

	if (!copy)
		return NULL;
	text_clean(copy);
	made = json_object_new_string(copy);
	free(copy);
	return made;
}

static struct json_object *
clean_object(struct json_object *o)
{
	struct json_object *made = json_object_new_object();

	json_object_object_foreach(o, key, value)
	{
		char *name = strdup(key);

		if (name)
			text_clean(name);
		if (!name || value)
			control_add(made, name, name ? out_clean_json(value) : NULL);
		else if (made)
			(void)json_object_object_add(made, name, NULL);
		free(name);
	}
	return made;
}

static struct json_object *
clean_array(struct json_object *o)
{
	struct json_object *made = json_object_new_array();

	for (size_t i = 0; i < json_object_array_length(o); i++) {
		struct json_object *value = json_object_array_get_idx(o, i);

		if (value)
			control_append(made, out_clean_json(value));
		else if (made)
			(void)json_object_array_add(made, NULL);
	}
	return made;
}

/* As deep as control.h lets a message be. */
struct json_object *
out_clean_json(struct json_object *o)
{
	switch (json_object_get_type(o)) {
	case json_type_string:
		return clean_text(o);
	case json_type_object:
		return clean_object(o);
	case json_type_array:
		return clean_array(o);
	default:
		return json_object_get(o);
	}
}

size_t
out_cost(struct json_object *o)
{
	size_t cost = COST_VALUE;

	if (json_object_is_type(o, json_type_string)) {
		cost += (size_t)json_object_get_string_len(o);
	} else if (json_object_is_type(o, json_type_double)) {
		const char *digits = json_object_get_userdata(o); /* as they were on the line */

		cost += digits ? strlen(digits) : 0;
	} else if (json_object_is_type(o, json_type_array)) {
		cost = COST_ARRAY;
		for (size_t i = 0; i < json_object_array_length(o); i++)
			cost += out_cost(json_object_array_get_idx(o, i));
	} else if (json_object_is_type(o, json_type_object)) {
		cost = COST_OBJECT;
		json_object_object_foreach(o, name, value)
		{
			cost += COST_MEMBER + strlen(name) + out_cost(value);
		}
	}
	return cost;
}

const char *
out_member(struct json_object *o, const char *name)
{
	struct json_object *member = NULL;
	const char *text;

	if (!json_object_object_get_ex(o, name, &member) ||
	    !json_object_is_type(member, json_type_string))
		return "-";
	text = json_object_get_string(member);
	return text[0] ? text : "-";
}

uint64_t
out_member_u64(struct json_object *o, const char *name)
{
	struct json_object *member = NULL;
	int64_t value;

	if (!json_object_object_get_ex(o, name, &member) ||
	    !json_object_is_type(member, json_type_int))
		return 0;
	value = json_object_get_int64(member);
	return value > 0 ? (uint64_t)value : 0;
}

bool
out_member_bool(struct json_object *o, const char *name)
{
	struct json_object *member = NULL;

	return json_object_object_get_ex(o, name, &member) && json_object_get_boolean(member);
}
