/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out - text and JSON on standard output. Whatever a peer or a file has
 * supplied is made clean (text.h) on its way: no byte of it drives a terminal.
 */
#ifndef REPLCTL_OUT_H
#define REPLCTL_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <json-c/json.h>

#define OUT_NUMBER_MAX  32
#define OUT_FIELD_MAX   1024 /* bytes of out_field()'s value that are shown, with a NUL */
#define OUT_COLUMNS_MAX 10

/* "0 B", "4.0 KiB", "1.5 GiB". */
void out_size(uint64_t bytes, char out[OUT_NUMBER_MAX]);
/* "0.3 s", "12 s", "3:05", "1:02:03". */
void out_duration(uint64_t ns, char out[OUT_NUMBER_MAX]);
/* Seconds since the epoch as "2026-11-21 09:54:40 UTC"; "never" for 0. */
void out_time(uint64_t seconds, char out[OUT_NUMBER_MAX]);
/* Of so many: "range", out_plural(count). */
const char *out_plural(uint64_t count);

/* The mean rate: bytes a second. */
uint64_t out_rate(uint64_t bytes, uint64_t ns);

/*
 * As one word of a shell command: quoted where that is needed, and a file whose name begins with a
 * dash by its path, so that it is no option. A new string or NULL.
 */
char *out_quote(const char *word);

/* Columns that a line of standard output has: of a terminal one less than it, else no bound. */
size_t out_width(void);

/* One line "name        value". */
void out_field(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One line to f, clean. */
void out_line(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Rows of cells, printed aligned when all are there. */
struct out_table {
	unsigned columns;
	const char *const *heads;
	char **cells; /* of each row so many as there are columns, and its note or NULL */
	unsigned rows, room;
};

/* heads must outlive the table. A head that begins with '>' is aligned right. */
void out_table_init(struct out_table *t, const char *const *heads, unsigned columns);
void out_table_row(struct out_table *t, const char *const *cells);
/* A line of its own below the row that was added last, for what would make it too long. */
void out_table_note(struct out_table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Prints and frees. On a terminal a name of the first column that leaves no room for the others has
 * a line of its own.
 */
void out_table_end(struct out_table *t);

/* Print with a newline at its end; false: there is no memory for the text. */
bool out_json(struct json_object *o);
/* In one line, for those who read by a pipe; without memory it is left out. */
void out_json_line(struct json_object *o);

/* A deep copy with all keys and texts made clean. */
struct json_object *out_clean_json(struct json_object *o);

/*
 * The memory that such a copy takes, in bytes; and the most that answers are kept of: the longest
 * list of good pools takes four fifths of that.
 */
size_t out_cost(struct json_object *o);
#define OUT_COST_MAX (1024U << 20)

void out_add_text(struct json_object *o, const char *name, const char *value);
void out_add_u64(struct json_object *o, const char *name, uint64_t value);
void out_add_bool(struct json_object *o, const char *name, bool value);

/* Members for display, of an object that is clean already: what is missing is "-" or 0. */
const char *out_member(struct json_object *o, const char *name);
bool out_member_bool(struct json_object *o, const char *name);
uint64_t out_member_u64(struct json_object *o, const char *name);

#endif
