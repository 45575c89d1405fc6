/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control - JSON-RPC lines of docs/PROTOCOL.md: framing, parsing, building.
 *
 * Pure but for memory: bytes in, json-c objects out. Used by both sides.
 */
#ifndef COMMON_CONTROL_H
#define COMMON_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <json-c/json.h>

#include "err.h"

#define CONTROL_LINE_MAX   262144
#define CONTROL_DEPTH_MAX  8
#define CONTROL_VERSION    1
#define CONTROL_METHOD_MAX 64

#define CONTROL_PARSE_ERROR     (-32700)
#define CONTROL_INVALID_REQUEST (-32600)
#define CONTROL_NO_METHOD       (-32601)
#define CONTROL_INVALID_PARAMS  (-32602)
#define CONTROL_STATUS_BASE     (-32000)

/*
 * Collects bytes into lines; memory grows to CONTROL_LINE_MAX at most. Take all
 * whole lines with line_buf_next() before asking for space again.
 */
struct line_buf {
	char *data;
	size_t start;   /* of the first byte that was not given out */
	size_t len;     /* end of the bytes */
	size_t size;    /* of data */
	size_t scanned; /* no newline from start up to here */
};

void line_buf_init(struct line_buf *b);
void line_buf_fini(struct line_buf *b);

/*
 * Room for at least one more byte: *space and *room to read into. When
 * CONTROL_LINE_MAX bytes are there and no line has ended, REPL_E_PROTOCOL.
 */
int line_buf_space(struct line_buf *b, char **space, size_t *room, struct err *e);
void line_buf_filled(struct line_buf *b, size_t count);

/*
 * The next whole line without its end, as a zero-terminated string valid until
 * the next call on b; NULL if there is none yet. *len is its length: a line
 * with an embedded zero byte has a shorter strlen().
 */
char *line_buf_next(struct line_buf *b, size_t *len);

/*
 * Parse one line strictly: one object, nothing after it, bounded depth, well
 * formed UTF-8, no control character but tab and carriage return. Of members
 * of one name the last counts. REPL_E_PROTOCOL; *out is a new reference.
 */
int control_parse(const char *line, size_t len, struct json_object **out, struct err *e);

/* A checked request. All members point into obj. */
struct control_request {
	struct json_object *id;     /* an integer; NULL for a notification */
	const char *method;         /* printable, at most CONTROL_METHOD_MAX bytes */
	struct json_object *params; /* object or NULL */
};

/*
 * Returns 0, or a JSON-RPC code (CONTROL_INVALID_REQUEST) with e filled. r->id
 * is set in both cases: the answer needs it.
 */
int control_request_check(struct json_object *obj, struct control_request *r, struct err *e);

/*
 * Add to what is to be a part of a message; value is taken. Where there is no memory, value is
 * NULL for that, or it lacks something itself, o is marked as incomplete: a message that would
 * lack a part is not built. o may be NULL for the same reason; json-c ends the program then.
 */
void control_add(struct json_object *o, const char *name, struct json_object *value);
void control_append(struct json_object *array, struct json_object *value);
bool control_complete(const struct json_object *o); /* not NULL, and lacks nothing */

/*
 * Build messages; each returns a new object or NULL (no memory, or a part is
 * incomplete). result and params are taken, also on failure; id is borrowed. NULL is written as
 * null, params that are NULL not at all.
 */
struct json_object *control_request_new(int64_t id, const char *method, struct json_object *params);
struct json_object *control_result_new(struct json_object *id, struct json_object *result);
/*
 * code 0 means CONTROL_STATUS_BASE + e->code. A reason of e's goes along. next may be NULL. Bytes
 * of both texts that may not stand in a message are replaced.
 */
struct json_object *control_error_new(struct json_object *id, int code, const struct err *e,
				      const char *next);

/*
 * Take an answer apart: on a result, which is an object, *result is a new reference
 * and 0 returned; on an error e is filled from the peer's status, reason (if it is one of
 * reason_by_peer()) and text (control characters replaced), next (size next_size, may be NULL) with
 * its next step, and the status returned, always negative. An answer of another
 * form or another id is REPL_E_PROTOCOL, with the peer's text if it has id null:
 * so the target refuses a line that it can't read.
 */
int control_answer_check(struct json_object *obj, int64_t id, struct json_object **result,
			 char *next, size_t next_size, struct err *e);

/*
 * Of rc, what reading the members of a result has come to: one that is not as it has to be is the
 * target's fault and no wrong argument of ours. REPL_E_INVAL becomes REPL_E_PROTOCOL with the
 * method in front of the text; what the target has said itself, and all else, stays.
 */
int control_answer_bad(int rc, const char *method, struct err *e);

/* Serialised with its newline into a new string; free(). NULL: no memory, incomplete or over the
 * limit. */
char *control_line(struct json_object *obj, size_t *len);

/*
 * Typed members of params or results; o may be NULL, as without members. A
 * member that is missing, of another type or out of range is REPL_E_INVAL with
 * a text that names it; ask control_has() before for an optional one.
 */
/* min <= *out <= max, and below 2^63. */
int control_get_u64(struct json_object *o, const char *name, uint64_t min, uint64_t max,
		    uint64_t *out, struct err *e);
/* At most max bytes, UTF-8 without control characters. Belongs to o. */
int control_get_text(struct json_object *o, const char *name, size_t max, const char **out,
		     struct err *e);
int control_get_bool(struct json_object *o, const char *name, bool *out, struct err *e);
/* At most max elements, of any type. Belongs to o. */
int control_get_array(struct json_object *o, const char *name, size_t max, struct json_object **out,
		      struct err *e);
bool control_has(struct json_object *o, const char *name); /* there and not null */

#endif
