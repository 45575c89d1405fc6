/* SPDX-License-Identifier: BSD-3-Clause */
#include "control.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reason.h"
#include "text.h"

#define LINE_BUF_FIRST 4096
#define SHOWN_MAX      80 /* bytes of what is no message that an error text repeats */

/* ---- lines ---- */

void
line_buf_init(struct line_buf *b)
{
	*b = (struct line_buf){.data = NULL};
}

void
line_buf_fini(struct line_buf *b)
{
	free(b->data);
	line_buf_init(b);
}

/* What was given out goes once for all lines, not once a line. */
static void
line_buf_compact(struct line_buf *b)
{
	if (b->start == 0)
		return;
	b->len -= b->start;
	b->scanned -= b->start;
	memmove(b->data, b->data + b->start, b->len);
	b->start = 0;
}

int
line_buf_space(struct line_buf *b, char **space, size_t *room, struct err *e)
{
	line_buf_compact(b);
	if (b->len == CONTROL_LINE_MAX)
		return err_set(e, REPL_E_PROTOCOL, "message is longer than %d bytes",
			       CONTROL_LINE_MAX);
	if (b->len == b->size) {
		size_t size = b->size ? 2 * b->size : LINE_BUF_FIRST;
		char *data = realloc(b->data, size);

		if (!data)
			return err_set(e, REPL_E_NOMEM, "no memory for a message of %zu bytes",
				       size);
		b->data = data;
		b->size = size;
	}
	*space = b->data + b->len;
	*room = b->size - b->len;
	return 0;
}

void
line_buf_filled(struct line_buf *b, size_t count)
{
	b->len += count;
}

char *
line_buf_next(struct line_buf *b, size_t *len)
{
	char *end = NULL;
	char *line;

	if (b->scanned < b->len)
		end = memchr(b->data + b->scanned, '\n', b->len - b->scanned);
	if (!end) {
		b->scanned = b->len;
		return NULL;
	}
	line = b->data + b->start;
	*end = '\0';
	*len = (size_t)(end - line);
	b->start += *len + 1;
	b->scanned = b->start;
	return line;
}

/* ---- parsing ---- */

/* json-c lets overlong forms, surrogates and control characters pass. */
static int
line_check(const char *line, size_t len, struct err *e)
{
	if (len >= CONTROL_LINE_MAX)
		return err_set(e, REPL_E_PROTOCOL, "message of %zu bytes is too long, at most %d",
			       len + 1, CONTROL_LINE_MAX);
	for (size_t i = text_plain_len(line, len), step; i < len; i += step) {
		unsigned char c = (unsigned char)line[i];

		if (c < 0x20 && c != '\t' && c != '\r')
			return err_set(e, REPL_E_PROTOCOL,
				       "message holds the control character 0x%02x at byte %zu", c,
				       i);
		step = text_char_len(line + i, len - i);
		if (step == 0)
			return err_set(e, REPL_E_PROTOCOL, "message is no UTF-8 at byte %zu", i);
	}
	return 0;
}

/* Its beginning: it may be what a shell says of an account that lets nobody in. */
static int
not_json(const char *line, size_t len, const char *why, struct err *e)
{
	char shown[SHOWN_MAX + 1];

	(void)snprintf(shown, sizeof(shown), "%.*s", (int)(len < SHOWN_MAX ? len : SHOWN_MAX),
		       line);
	text_clean(shown);
	return err_set(e, REPL_E_PROTOCOL, "message is not JSON: %s: '%s%s'", why, shown,
		       len > SHOWN_MAX ? "..." : "");
}

int
control_parse(const char *line, size_t len, struct json_object **out, struct err *e)
{
	struct json_tokener *tok = NULL;
	struct json_object *obj = NULL;
	enum json_tokener_error why;
	int ret = line_check(line, len, e);

	if (ret)
		return ret;
	tok = json_tokener_new_ex(CONTROL_DEPTH_MAX);
	if (!tok)
		return err_set(e, REPL_E_NOMEM, "no memory to parse a message");
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	obj = json_tokener_parse_ex(tok, line, (int)len);
	why = json_tokener_get_error(tok);
	if (why == json_tokener_continue)
		ret = err_set(e, REPL_E_PROTOCOL, "message ends within a value");
	else if (why != json_tokener_success)
		ret = not_json(line, len, json_tokener_error_desc(why), e);
	else if (json_tokener_get_parse_end(tok) != len)
		ret = err_set(e, REPL_E_PROTOCOL, "message goes on behind its object at byte %zu",
			      json_tokener_get_parse_end(tok));
	else if (!json_object_is_type(obj, json_type_object))
		ret = err_set(e, REPL_E_PROTOCOL, "message is of type %s, not an object",
			      json_type_to_name(json_object_get_type(obj)));
	json_tokener_free(tok);
	if (ret)
		json_object_put(obj);
	else
		*out = obj;
	return ret;
}

/* Integers that json-c holds as unsigned are 2^63 and above. */
static bool
is_int64(struct json_object *o)
{
	return json_object_is_type(o, json_type_int) &&
	       (json_object_get_int64(o) < 0 || json_object_get_uint64(o) <= INT64_MAX);
}

/* Equal as bytes: a JSON text may hold zero bytes. */
static bool
is_text(struct json_object *o, const char *text)
{
	size_t len = strlen(text);

	return json_object_is_type(o, json_type_string) &&
	       (size_t)json_object_get_string_len(o) == len &&
	       memcmp(json_object_get_string(o), text, len) == 0;
}

static int
request_refuse(struct err *e, const char *why)
{
	(void)err_set(e, REPL_E_PROTOCOL, "invalid request: %s", why);
	return CONTROL_INVALID_REQUEST;
}

int
control_request_check(struct json_object *obj, struct control_request *r, struct err *e)
{
	struct json_object *id = NULL;
	bool has_id = json_object_object_get_ex(obj, "id", &id);

	*r = (struct control_request){.id = is_int64(id) ? id : NULL};
	if (has_id && !r->id)
		return request_refuse(e, "'id' is not an integer of 64 bits");
	if (!is_text(json_object_object_get(obj, "jsonrpc"), "2.0"))
		return request_refuse(e, "'jsonrpc' is not \"2.0\"");
	if (control_get_text(obj, "method", CONTROL_METHOD_MAX, &r->method, e) ||
	    r->method[0] == '\0')
		return request_refuse(e, "'method' is not a short text");
	if (json_object_object_get_ex(obj, "params", &r->params) &&
	    !json_object_is_type(r->params, json_type_object))
		return request_refuse(e, "'params' is not an object");
	return 0;
}

/* ---- building ---- */

/* What an object that lacks something carries as its user data: to set it takes no memory. */
#define INCOMPLETE ((void *)1)

static void
mark_incomplete(struct json_object *o)
{
	if (o)
		json_object_set_userdata(o, INCOMPLETE, NULL);
}

bool
control_complete(const struct json_object *o)
{
	/* It takes no object that is const, and changes none. */
	return o && json_object_get_userdata((struct json_object *)(uintptr_t)o) != INCOMPLETE;
}

void
control_add(struct json_object *o, const char *name, struct json_object *value)
{
	if (!control_complete(value))
		mark_incomplete(o);
	if (o && value && json_object_object_add(o, name, value) == 0)
		return;
	mark_incomplete(o);
	json_object_put(value);
}

void
control_append(struct json_object *array, struct json_object *value)
{
	if (!control_complete(value))
		mark_incomplete(array);
	if (array && value && json_object_array_add(array, value) == 0)
		return;
	mark_incomplete(array);
	json_object_put(value);
}

/* Takes value; NULL is a failed allocation before, as is one that is incomplete. */
static bool
member_add(struct json_object *o, const char *name, struct json_object *value)
{
	if (control_complete(value) && json_object_object_add(o, name, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

/* Cleaned text of at most ERR_TEXT_MAX bytes. */
static struct json_object *
text_new(const char *text)
{
	char copy[ERR_TEXT_MAX];
	size_t len = strnlen(text, sizeof(copy) - 1);

	memcpy(copy, text, len);
	copy[len] = '\0';
	text_clean(copy);
	return json_object_new_string(copy);
}

static struct json_object *
message_new(void)
{
	struct json_object *o = json_object_new_object();

	if (o && member_add(o, "jsonrpc", json_object_new_string("2.0")))
		return o;
	json_object_put(o);
	return NULL;
}

/* NULL is the JSON null in json-c: an answer's id or result may be it. */
static bool
member_add_or_null(struct json_object *o, const char *name, struct json_object *value)
{
	return value ? member_add(o, name, value) : json_object_object_add(o, name, NULL) == 0;
}

struct json_object *
control_request_new(int64_t id, const char *method, struct json_object *params)
{
	struct json_object *o = message_new();
	bool good = o && member_add(o, "id", json_object_new_int64(id)) &&
		    member_add(o, "method", json_object_new_string(method));

	if (good && params) {
		good = member_add(o, "params", params);
		params = NULL;
	}
	if (good)
		return o;
	json_object_put(params);
	json_object_put(o);
	return NULL;
}

struct json_object *
control_result_new(struct json_object *id, struct json_object *result)
{
	struct json_object *o = message_new();
	bool good = o && member_add_or_null(o, "id", json_object_get(id));

	if (good) {
		good = member_add_or_null(o, "result", result);
		result = NULL;
	}
	if (good)
		return o;
	json_object_put(result);
	json_object_put(o);
	return NULL;
}

static struct json_object *
error_data_new(const struct err *e, const char *next)
{
	struct json_object *data = json_object_new_object();
	bool plain = e->reason == REPL_REASON_NONE;

	if (data && member_add(data, "status", json_object_new_string(err_name(e->code))) &&
	    (plain ||
	     member_add(data, "reason", json_object_new_string(reason_name((int)e->reason)))) &&
	    (!next || member_add(data, "next", text_new(next))))
		return data;
	json_object_put(data);
	return NULL;
}

static struct json_object *
error_object_new(int code, const struct err *e, const char *next)
{
	const char *text = e->text[0] ? e->text : repl_strstatus(e->code);
	struct json_object *o = json_object_new_object();

	if (o && member_add(o, "code", json_object_new_int(code)) &&
	    member_add(o, "message", text_new(text)) &&
	    member_add(o, "data", error_data_new(e, next)))
		return o;
	json_object_put(o);
	return NULL;
}

struct json_object *
control_error_new(struct json_object *id, int code, const struct err *e, const char *next)
{
	struct json_object *o = message_new();

	if (code == 0)
		code = CONTROL_STATUS_BASE + e->code;
	if (o && member_add_or_null(o, "id", json_object_get(id)) &&
	    member_add(o, "error", error_object_new(code, e, next)))
		return o;
	json_object_put(o);
	return NULL;
}

char *
control_line(struct json_object *obj, size_t *len)
{
	int flags = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE;
	size_t text_len = 0;
	const char *text = NULL;
	char *line;

	if (control_complete(obj))
		text = json_object_to_json_string_length(obj, flags, &text_len);
	if (!text || text_len >= CONTROL_LINE_MAX)
		return NULL;
	line = malloc(text_len + 2);
	if (!line)
		return NULL;
	memcpy(line, text, text_len);
	memcpy(line + text_len, "\n", 2);
	*len = text_len + 1;
	return line;
}

/* ---- answers ---- */

/* Copy as much as fits, cleaned; "" for anything but a text. */
static void
text_copy(struct json_object *o, char *out, size_t size)
{
	size_t len = 0;

	if (size == 0)
		return;
	if (json_object_is_type(o, json_type_string)) {
		len = (size_t)json_object_get_string_len(o);
		if (len > size - 1)
			len = size - 1;
		memcpy(out, json_object_get_string(o), len);
	}
	out[len] = '\0';
	text_clean(out);
}

/* The name goes before the number: a code of JSON-RPC's own may stand with any status. */
static int
error_status(struct json_object *error)
{
	struct json_object *data = json_object_object_get(error, "data");
	struct json_object *name = json_object_object_get(data, "status");
	int64_t code = json_object_get_int64(json_object_object_get(error, "code"));
	int status = REPL_E_PROTOCOL;

	if (json_object_is_type(name, json_type_string))
		status = err_by_name(json_object_get_string(name));
	else if (code < CONTROL_STATUS_BASE && code >= CONTROL_STATUS_BASE + REPL_E_DIFFER)
		status = (int)code - CONTROL_STATUS_BASE;
	return status < 0 ? status : REPL_E_FAILED;
}

/* Absent in what earlier versions answer, and of a later one's that is not known here. */
static enum repl_reason
error_reason(struct json_object *data)
{
	const char *name;

	if (control_get_text(data, "reason", REASON_NAME_MAX, &name, NULL))
		return REPL_REASON_NONE;
	return reason_by_peer(name);
}

static int
error_take(struct json_object *error, bool for_us, char *next, size_t next_size, struct err *e)
{
	struct json_object *data = json_object_object_get(error, "data");
	int status = for_us ? error_status(error) : REPL_E_PROTOCOL;
	char text[ERR_TEXT_MAX];

	if (!is_int64(json_object_object_get(error, "code")))
		return err_set(e, REPL_E_PROTOCOL, "answer has an error without a code");
	text_copy(json_object_object_get(error, "message"), text, sizeof(text));
	if (next)
		text_copy(json_object_object_get(data, "next"), next, next_size);
	(void)err_set(e, status, "%s", text[0] ? text : repl_strstatus(status));
	if (for_us)
		(void)err_because(e, error_reason(data));
	if (e)
		e->by_target = true;
	return status;
}

int
control_answer_check(struct json_object *obj, int64_t id, struct json_object **result, char *next,
		     size_t next_size, struct err *e)
{
	struct json_object *have_id = NULL;
	struct json_object *have = NULL;
	struct json_object *error = NULL;
	bool has_id = json_object_object_get_ex(obj, "id", &have_id);
	bool has_result = json_object_object_get_ex(obj, "result", &have);
	bool has_error = json_object_object_get_ex(obj, "error", &error);

	*result = NULL;
	if (next && next_size > 0)
		next[0] = '\0';
	if (!is_text(json_object_object_get(obj, "jsonrpc"), "2.0"))
		return err_set(e, REPL_E_PROTOCOL, "answer is not JSON-RPC 2.0");
	if (has_result == has_error)
		return err_set(e, REPL_E_PROTOCOL, "answer has %s 'result' and 'error'",
			       has_result ? "both" : "neither");
	if (has_error && !json_object_is_type(error, json_type_object))
		return err_set(e, REPL_E_PROTOCOL, "answer has an error that is not an object");
	if (has_error && has_id && !have_id)
		return error_take(error, false, next, next_size, e);
	if (!is_int64(have_id) || json_object_get_int64(have_id) != id)
		return err_set(e, REPL_E_PROTOCOL, "answer is not to request %" PRId64, id);
	if (has_error)
		return error_take(error, true, next, next_size, e);
	/* json-c asserts that what a member is added to is an object. */
	if (!json_object_is_type(have, json_type_object))
		return err_set(e, REPL_E_PROTOCOL, "answer has a result that is not an object");
	*result = json_object_get(have);
	return 0;
}

int
control_answer_bad(int rc, const char *method, struct err *e)
{
	if (rc != REPL_E_INVAL || (e && e->by_target))
		return rc;
	if (!e)
		return REPL_E_PROTOCOL;
	e->code = REPL_E_PROTOCOL;
	return err_prefix(e, "bad answer to %s", method);
}

/* ---- members ---- */

bool
control_has(struct json_object *o, const char *name)
{
	return json_object_object_get(o, name) != NULL;
}

static int
member_get(struct json_object *o, const char *name, enum json_type type, struct json_object **out,
	   struct err *e)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(o, name, &value))
		return err_set(e, REPL_E_INVAL, "'%s' is missing", name);
	if (!json_object_is_type(value, type))
		return err_set(e, REPL_E_INVAL, "'%s' is of type %s, not %s", name,
			       json_type_to_name(json_object_get_type(value)),
			       json_type_to_name(type));
	*out = value;
	return 0;
}

int
control_get_u64(struct json_object *o, const char *name, uint64_t min, uint64_t max, uint64_t *out,
		struct err *e)
{
	struct json_object *value = NULL;
	uint64_t number;
	int ret = member_get(o, name, json_type_int, &value, e);

	if (ret)
		return ret;
	if (max > INT64_MAX)
		max = INT64_MAX;
	if (json_object_get_int64(value) < 0)
		return err_set(e, REPL_E_INVAL,
			       "'%s' is %" PRId64 ", not from %" PRIu64 " to %" PRIu64, name,
			       json_object_get_int64(value), min, max);
	number = json_object_get_uint64(value);
	if (number < min || number > max)
		return err_set(e, REPL_E_INVAL,
			       "'%s' is %" PRIu64 ", not from %" PRIu64 " to %" PRIu64, name,
			       number, min, max);
	*out = number;
	return 0;
}

int
control_get_text(struct json_object *o, const char *name, size_t max, const char **out,
		 struct err *e)
{
	struct json_object *value = NULL;
	size_t len;
	int ret = member_get(o, name, json_type_string, &value, e);

	if (ret)
		return ret;
	len = (size_t)json_object_get_string_len(value);
	if (len > max)
		return err_set(e, REPL_E_INVAL, "'%s' has %zu bytes, at most %zu are allowed", name,
			       len, max);
	if (!text_is_clean(json_object_get_string(value), len))
		return err_set(e, REPL_E_INVAL, "'%s' holds a control character", name);
	*out = json_object_get_string(value);
	return 0;
}

int
control_get_bool(struct json_object *o, const char *name, bool *out, struct err *e)
{
	struct json_object *value = NULL;
	int ret = member_get(o, name, json_type_boolean, &value, e);

	if (ret)
		return ret;
	*out = json_object_get_boolean(value);
	return 0;
}

int
control_get_array(struct json_object *o, const char *name, size_t max, struct json_object **out,
		  struct err *e)
{
	struct json_object *value = NULL;
	int ret = member_get(o, name, json_type_array, &value, e);

	if (ret)
		return ret;
	if (json_object_array_length(value) > max)
		return err_set(e, REPL_E_INVAL, "'%s' has %zu elements, at most %zu are allowed",
			       name, json_object_array_length(value), max);
	*out = value;
	return 0;
}
