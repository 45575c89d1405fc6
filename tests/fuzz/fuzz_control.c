/* SPDX-License-Identifier: BSD-3-Clause */
/* No bytes on the control channel get past their checks, and every answer to them is valid. */
#include <string.h>

#include "control.h"
#include "fuzz.h"
#include "reason.h"
#include "text.h"

/* Parsed and serialised anew it is still a message. */
static void
check_own_line(struct json_object *obj)
{
	struct json_object *again = NULL;
	size_t len = 0;
	char *line;

	FUZZ_CHECK(obj != NULL);
	line = control_line(obj, &len);
	FUZZ_CHECK(line != NULL && len == strlen(line) && line[len - 1] == '\n');
	FUZZ_CHECK(strchr(line, '\n') == line + len - 1);
	FUZZ_CHECK(control_parse(line, len - 1, &again, NULL) == 0);
	json_object_put(again);
	json_object_put(obj);
	free(line);
}

static void
check_members(struct json_object *o)
{
	struct json_object *list;
	const char *text;
	uint64_t number;
	bool yes;

	if (control_get_u64(o, "size", 1, 1 << 20, &number, NULL) == 0)
		FUZZ_CHECK(number >= 1 && number <= 1 << 20);
	if (control_get_u64(o, "off", 0, UINT64_MAX, &number, NULL) == 0)
		FUZZ_CHECK(number <= INT64_MAX);
	if (control_get_text(o, "name", 16, &text, NULL) == 0)
		FUZZ_CHECK(strlen(text) <= 16 && text_is_clean(text, strlen(text)));
	if (control_get_array(o, "versions", 4, &list, NULL) == 0)
		FUZZ_CHECK(json_object_array_length(list) <= 4);
	(void)control_get_bool(o, "more", &yes, NULL);
}

static void
check_request(struct json_object *obj)
{
	struct control_request r;
	struct err e;

	if (control_request_check(obj, &r, &e)) {
		check_own_line(control_error_new(r.id, CONTROL_INVALID_REQUEST, &e, e.text));
		return;
	}
	FUZZ_CHECK(r.method[0] && strlen(r.method) <= CONTROL_METHOD_MAX);
	check_members(r.params);
	check_own_line(control_result_new(r.id, NULL));
}

static void
check_answer(struct json_object *obj)
{
	struct json_object *result;
	char next[16];
	struct err e;
	int ret = control_answer_check(obj, 1, &result, next, sizeof(next), &e);

	FUZZ_CHECK(ret <= 0);
	FUZZ_CHECK(text_is_clean(next, strlen(next)));
	FUZZ_CHECK(ret == 0 || (ret == e.code && text_is_clean(e.text, strlen(e.text))));
	FUZZ_CHECK(ret == 0 || e.reason == REPL_REASON_NONE ||
		   (e.by_target && reason_by_peer(reason_name((int)e.reason)) == e.reason));
	if (ret == 0)
		check_members(result);
	json_object_put(result);
}

static void
check_line(const char *line, size_t len)
{
	struct json_object *obj = NULL;
	struct err e;

	if (control_parse(line, len, &obj, &e)) {
		FUZZ_CHECK(obj == NULL);
		check_own_line(control_error_new(NULL, CONTROL_PARSE_ERROR, &e, NULL));
		return;
	}
	FUZZ_CHECK(json_object_is_type(obj, json_type_object));
	check_request(obj);
	check_answer(obj);
	json_object_put(obj);
}

/* In pieces whose size the input chooses, as a session reads them. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_buf b;
	size_t chunk = size ? 1 + (size_t)data[size - 1] * 4 : 1;
	size_t at = 0;
	size_t len;
	char *line;

	line_buf_init(&b);
	while (at < size) {
		size_t room;
		char *space;

		FUZZ_CHECK(line_buf_space(&b, &space, &room, NULL) == 0 && room > 0);
		if (room > chunk)
			room = chunk;
		if (room > size - at)
			room = size - at;
		memcpy(space, data + at, room);
		line_buf_filled(&b, room);
		at += room;
		while ((line = line_buf_next(&b, &len)) != NULL)
			check_line(line, len);
	}
	line_buf_fini(&b);
	check_line((const char *)data, size);
	return 0;
}

size_t
fuzz_seed(unsigned i, uint8_t *buf)
{
	static const char *const seeds[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{\"versions\":[1],"
		"\"software\":\"librepl 0.1\",\"peer\":\"a@b pid 1\"}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"pool.create\",\"params\":{\"name\":"
		"\"a\","
		"\"size\":4096}}\n{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"versions\":[1],\"more\":true,"
		"\"off\":9223372036854775807,\"name\":\"\xc3\xa4\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32004,\"message\":\"pool 'a'\","
		"\"data\":{\"status\":\"not-found\",\"next\":\"replctl\\u001b\"}}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32007,\"message\":\"pool 'a'\","
		"\"data\":{\"status\":\"refused\",\"reason\":\"promoted\",\"next\":\"n\"}}}",
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\"}}\n",
		"{\"a\":[[[[[[1.5e3]]]]]],\"b\":null,\"b\":false}\n",
	};

	if (i >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	memcpy(buf, seeds[i], strlen(seeds[i]));
	return strlen(seeds[i]);
}
