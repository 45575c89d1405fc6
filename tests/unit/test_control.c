/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages are built as documented, and hostile bytes end in an error, never in trust. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "control.h"
#include "hex.h"
#include "text.h"

/* ---- helpers ---- */

/* Parses a copy without a terminator, so that a sanitizer sees one read too far. */
static int
parse(const char *text, size_t len, struct json_object **out, struct err *e)
{
	char *copy = malloc(len ? len : 1);
	int ret;

	assert_non_null(copy);
	memcpy(copy, text, len);
	*out = NULL;
	ret = control_parse(copy, len, out, e);
	free(copy);
	return ret;
}

static struct json_object *
parse_good(const char *text)
{
	struct json_object *o;
	struct err e;

	if (parse(text, strlen(text), &o, &e) != 0)
		fail_msg("%s: %s", text, e.text);
	return o;
}

static void
assert_bad_line(const char *text, size_t len, const char *why)
{
	struct json_object *o;
	struct err e = {0};

	if (parse(text, len, &o, &e) != REPL_E_PROTOCOL || !strstr(e.text, why))
		fail_msg("'%.60s': '%s'", text, e.text);
	assert_null(o);
}

static void
assert_line(struct json_object *o, const char *want)
{
	size_t len;
	char *line = control_line(o, &len);

	assert_non_null(line);
	assert_string_equal(line, want);
	assert_int_equal(len, strlen(want));
	free(line);
	json_object_put(o);
}

/* ---- parsing ---- */

struct bad_line {
	const char *text;
	const char *why;
};

static const struct bad_line bad_lines[] = {
	{"", "ends within"},
	{"   ", "ends within"},
	{"garbage", "not JSON"},
	{"GET / HTTP/1.1\r", "not JSON"},
	{"SSH-2.0-OpenSSH_9.2p1", "not JSON"},
	{"{", "ends within"},
	{"{\"id\":1", "ends within"},
	{"{\"id\":1,\"method\":\"hel", "ends within"},
	{"{\"id\":1}}", "not JSON"},
	{"{\"id\":1}{\"id\":2}", "not JSON"},
	{"{} x", "not JSON"},
	{"{\"a\":1,}", "not JSON"},
	{"{a:1}", "not JSON"},
	{"{\"a\":01}", "not JSON"},
	{"{\"a\":+1}", "not JSON"},
	{"{\"a\":/* */1}", "not JSON"},
	{"[]", "not an object"},
	{"[{\"id\":1}]", "not an object"},
	{"null ", "not an object"},
	{"\"text\"", "not an object"},
	{"12 ", "not an object"},
	{"{\"a\":\"\x01\"}", "control character 0x01"},
	{"{\"a\":\"\x1b[2J\"}", "control character 0x1b"},
	{"{}\n{}", "control character 0x0a"},
	{"{\"a\":\"\xff\"}", "UTF-8 at byte 6"},
	{"{\"a\":\"\x80\"}", "UTF-8"},
	{"{\"a\":\"\xc0\x80\"}", "UTF-8"},
	{"{\"a\":\"\xc1\xbf\"}", "UTF-8"},
	{"{\"a\":\"\xe0\x9f\xbf\"}", "UTF-8"},
	{"{\"a\":\"\xed\xa0\x80\"}", "UTF-8"},
	{"{\"a\":\"\xf0\x8f\xbf\xbf\"}", "UTF-8"},
	{"{\"a\":\"\xf4\x90\x80\x80\"}", "UTF-8"},
	{"{\"a\":\"\xf5\x80\x80\x80\"}", "UTF-8"},
	{"{\"a\":\"\xe2\x82\"}", "UTF-8"},
	{"{\"a\":\"\xc3", "UTF-8"},
	{"{\"a\":\"\xf0\x9f\x92", "UTF-8"},
	{"{\"\xff\":1}", "UTF-8"},
	{"{\"a\":[[[[[[[1]]]]]]]}", "deep"},
	{"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}}}}", "deep"},
};

static void
bad_lines_are_refused_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_lines) / sizeof(bad_lines[0]); i++)
		assert_bad_line(bad_lines[i].text, strlen(bad_lines[i].text), bad_lines[i].why);
	assert_bad_line("{\"a\":1}\0", 8, "control character 0x00");
	assert_bad_line("{\"a\":\"\0\"}", 9, "control character 0x00");
	assert_bad_line("{\"a\0\":1}", 8, "control character 0x00");
}

static void
good_lines_are_parsed(void **state)
{
	static const char *const lines[] = {
		"{}",
		" \t{ } \r",
		"{\"a\":\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x92\xbe \xef\xbf\xbf \xf4\x8f\xbf\xbf\"}",
		"{\"a\":[[[[[[1]]]]]]}",
		"{\"a\":null,\"b\":true,\"c\":-1.5e3}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		json_object_put(parse_good(lines[i]));
}

static void
every_half_line_is_refused(void **state)
{
	static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\","
				   "\"params\":{\"versions\":[1,2],\"peer\":\"\xc3\xa4\"}}";

	(void)state;
	for (size_t len = 0; len < sizeof(line) - 1; len++) {
		struct json_object *o;
		struct err e;

		assert_int_equal(parse(line, len, &o, &e), REPL_E_PROTOCOL);
		assert_null(o);
	}
	json_object_put(parse_good(line));
}

static void
deep_and_long_lines_are_refused(void **state)
{
	size_t len = 300 * 1024;
	char *text = malloc(len);
	struct json_object *o;
	struct err e;

	(void)state;
	assert_non_null(text);
	memset(text, '[', len);
	memcpy(text, "{\"a\":", 5);
	assert_bad_line(text, len, "too long");
	assert_bad_line(text, CONTROL_LINE_MAX - 1, "deep");
	memset(text, 'a', len);
	memcpy(text, "{\"a\":\"", 6);
	memcpy(text + CONTROL_LINE_MAX - 3, "\"}", 2);
	assert_bad_line(text, CONTROL_LINE_MAX, "too long");
	assert_int_equal(parse(text, CONTROL_LINE_MAX - 1, &o, &e), 0);
	json_object_put(o);
	free(text);
}

static void
last_of_equal_names_counts(void **state)
{
	struct json_object *o = parse_good("{\"a\":1,\"a\":\"x\",\"a\":{\"b\":2},\"a\":3}");
	uint64_t v = 0;
	struct err e;

	(void)state;
	assert_int_equal(control_get_u64(o, "a", 0, 9, &v, &e), 0);
	assert_int_equal(v, 3);
	json_object_put(o);
}

/* ---- requests ---- */

static void
good_requests_are_checked(void **state)
{
	struct json_object *o = parse_good("{\"jsonrpc\":\"2.0\",\"id\":9223372036854775807,"
					   "\"method\":\"pool.open\",\"params\":{\"name\":\"p\"},"
					   "\"unknown\":[]}");
	struct control_request r;
	struct err e;

	(void)state;
	assert_int_equal(control_request_check(o, &r, &e), 0);
	assert_string_equal(r.method, "pool.open");
	assert_true(json_object_get_int64(r.id) == INT64_MAX);
	assert_true(control_has(r.params, "name"));
	json_object_put(o);

	o = parse_good("{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}");
	assert_int_equal(control_request_check(o, &r, &e), 0);
	assert_null(r.id);
	assert_null(r.params);
	json_object_put(o);
}

#define HEAD "{\"jsonrpc\":\"2.0\",\"id\":7,"

static const struct bad_line bad_requests[] = {
	{"{}", "jsonrpc"},
	{"{\"id\":7,\"method\":\"ping\"}", "jsonrpc"},
	{"{\"jsonrpc\":2.0,\"id\":7,\"method\":\"ping\"}", "jsonrpc"},
	{"{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}", "jsonrpc"},
	{"{\"jsonrpc\":\"2.0\\u0000\",\"id\":7,\"method\":\"ping\"}", "jsonrpc"},
	{"{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"method\":\"ping\"}", "id"},
	{"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", "id"},
	{"{\"jsonrpc\":\"2.0\",\"id\":7.0,\"method\":\"ping\"}", "id"},
	{"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", "id"},
	{"{\"jsonrpc\":\"2.0\",\"id\":9223372036854775808,\"method\":\"ping\"}", "id"},
	{"{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"ping\"}", "id"},
	{HEAD "\"params\":{}}", "method"},
	{HEAD "\"method\":1}", "method"},
	{HEAD "\"method\":\"\"}", "method"},
	{HEAD "\"method\":null}", "method"},
	{HEAD "\"method\":\"ping\\u0000\"}", "method"},
	{HEAD "\"method\":\"\\u001b[2J\"}", "method"},
	{HEAD "\"method\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
	 "method"},
	{HEAD "\"method\":\"ping\",\"params\":[]}", "params"},
	{HEAD "\"method\":\"ping\",\"params\":null}", "params"},
	{HEAD "\"method\":\"ping\",\"params\":\"x\"}", "params"},
};

static void
bad_requests_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_requests) / sizeof(bad_requests[0]); i++) {
		struct json_object *o = parse_good(bad_requests[i].text);
		struct control_request r;
		struct err e = {0};

		if (control_request_check(o, &r, &e) != CONTROL_INVALID_REQUEST ||
		    !strstr(e.text, bad_requests[i].why))
			fail_msg("%s: '%s'", bad_requests[i].text, e.text);
		if (strstr(bad_requests[i].text, "\"id\":7,"))
			assert_int_equal(json_object_get_int64(r.id), 7);
		else
			assert_null(r.id);
		json_object_put(o);
	}
}

/* ---- building ---- */

static void
messages_have_the_documented_form(void **state)
{
	struct json_object *id = json_object_new_int64(2);
	struct json_object *params = json_object_new_object();
	struct err e;

	(void)state;
	json_object_object_add(params, "name", json_object_new_string("eu/a"));
	assert_line(control_request_new(1, "pool.info", params),
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pool.info\","
		    "\"params\":{\"name\":\"eu/a\"}}\n");
	assert_line(control_request_new(2, "ping", NULL),
		    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
	assert_line(control_result_new(id, json_object_new_int(5)),
		    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":5}\n");
	assert_line(control_result_new(id, NULL),
		    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":null}\n");
	(void)err_set(&e, REPL_E_NOT_FOUND, "pool 'a': not found");
	assert_line(control_error_new(id, 0, &e, "replctl create TARGET/a --size N"),
		    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32004,"
		    "\"message\":\"pool 'a': not found\",\"data\":{\"status\":\"not-found\","
		    "\"next\":\"replctl create TARGET/a --size N\"}}}\n");
	(void)err_set(&e, REPL_E_REFUSED, "m");
	(void)err_because(&e, REPL_REASON_PROMOTED);
	assert_line(control_error_new(id, 0, &e, "n"),
		    "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32007,"
		    "\"message\":\"m\",\"data\":{\"status\":\"refused\","
		    "\"reason\":\"promoted\",\"next\":\"n\"}}}\n");
	(void)err_set(&e, REPL_E_PROTOCOL, "%s", "");
	assert_line(control_error_new(NULL, CONTROL_PARSE_ERROR, &e, NULL),
		    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
		    "\"message\":\"protocol error\",\"data\":{\"status\":\"protocol\"}}}\n");
	json_object_put(id);
}

/* Neither a member nor an element is left out silently, however deep. */
static void
what_lacks_a_part_is_not_sent(void **state)
{
	struct json_object *params = json_object_new_object(), *list = json_object_new_array();
	struct json_object *o;
	size_t len;

	(void)state;
	control_append(list, json_object_new_int(1));
	assert_true(control_complete(list));
	control_append(list, NULL);
	assert_false(control_complete(list));
	assert_null(control_line(list, &len));
	assert_true(control_complete(params));
	control_add(params, "list", list);
	assert_false(control_complete(params));
	assert_null(control_request_new(1, "pool.mark", json_object_get(params)));
	assert_null(control_result_new(NULL, params));
	o = json_object_new_object();
	control_add(o, "name", NULL);
	assert_false(control_complete(o));
	json_object_put(o);
	/* Where there is nothing to add to, what was to be added is freed. */
	control_add(NULL, "name", json_object_new_int(1));
	control_append(NULL, json_object_new_int(1));
	assert_false(control_complete(NULL));
}

static void
error_texts_are_cleaned(void **state)
{
	struct err e;

	(void)state;
	(void)err_set(&e, REPL_E_IO, "a\x1b[2J\xff\xc3\xa4\xc2\x9b\n");
	assert_line(control_error_new(NULL, 0, &e, "b\x07"),
		    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32019,"
		    "\"message\":\"a?[2J?\xc3\xa4???\",\"data\":{\"status\":\"io\","
		    "\"next\":\"b?\"}}}\n");
}

static void
lines_over_the_limit_are_not_made(void **state)
{
	/* {"jsonrpc":"2.0","id":null,"result":"..."} and the newline */
	size_t frame = strlen("{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":\"\"}\n");
	int room = (int)(CONTROL_LINE_MAX - frame);
	char *text = calloc(1, CONTROL_LINE_MAX);
	struct json_object *o;
	size_t len = 0;
	char *line;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', CONTROL_LINE_MAX - 1);
	o = control_result_new(NULL, json_object_new_string_len(text, room + 1));
	assert_null(control_line(o, &len));
	json_object_put(o);
	o = control_result_new(NULL, json_object_new_string_len(text, room));
	line = control_line(o, &len);
	assert_non_null(line);
	assert_int_equal(len, CONTROL_LINE_MAX);
	free(line);
	json_object_put(o);
	free(text);
}

/* ---- answers ---- */

struct answer {
	const char *line;
	int status;
	const char *text; /* part of the error */
	const char *next;
};

#define ANSWER  "{\"jsonrpc\":\"2.0\",\"id\":3,"
#define MESSAGE "\"message\":\"m\""

static const struct answer answers[] = {
	{ANSWER "\"result\":{\"a\":1}}", 0, "", ""},
	{ANSWER "\"result\":null}", REPL_E_PROTOCOL, "not an object", ""},
	{ANSWER "\"result\":[{}]}", REPL_E_PROTOCOL, "not an object", ""},
	{ANSWER "\"error\":{\"code\":-32006," MESSAGE
		",\"data\":{\"status\":\"busy\",\"next\":\"wait\"}}}",
	 REPL_E_BUSY, "m", "wait"},
	{ANSWER "\"error\":{\"code\":-32602," MESSAGE ",\"data\":{\"status\":\"inval\"}}}",
	 REPL_E_INVAL, "m", ""},
	{ANSWER "\"error\":{\"code\":-32004," MESSAGE "}}", REPL_E_NOT_FOUND, "m", ""},
	{ANSWER "\"error\":{\"code\":-32021," MESSAGE "}}", REPL_E_DIFFER, "m", ""},
	{ANSWER "\"error\":{\"code\":-32022," MESSAGE "}}", REPL_E_PROTOCOL, "m", ""},
	{ANSWER "\"error\":{\"code\":-32601," MESSAGE "}}", REPL_E_PROTOCOL, "m", ""},
	{ANSWER "\"error\":{\"code\":-32000," MESSAGE "}}", REPL_E_PROTOCOL, "m", ""},
	{ANSWER "\"error\":{\"code\":9223372036854775807," MESSAGE "}}", REPL_E_PROTOCOL, "m", ""},
	{ANSWER "\"error\":{\"code\":-9223372036854775808," MESSAGE "}}", REPL_E_PROTOCOL, "m", ""},
	{ANSWER "\"error\":{\"code\":-32006," MESSAGE ",\"data\":{\"status\":\"new\"}}}",
	 REPL_E_FAILED, "m", ""},
	{ANSWER "\"error\":{\"code\":-32006," MESSAGE ",\"data\":{\"status\":\"ok\"}}}",
	 REPL_E_FAILED, "m", ""},
	{ANSWER "\"error\":{\"code\":-32006," MESSAGE ",\"data\":[1]}}", REPL_E_BUSY, "m", ""},
	{ANSWER "\"error\":{\"code\":-32006,\"data\":{\"status\":\"busy\"}}}", REPL_E_BUSY,
	 "in use", ""},
	{ANSWER "\"error\":{\"code\":-32006,\"message\":\"a\\u001bb\\nc\\u0000d\","
		"\"data\":{\"next\":\"\\u0007\"}}}",
	 REPL_E_BUSY, "a?b?c", "?"},
	{"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700," MESSAGE "}}",
	 REPL_E_PROTOCOL, "m", ""},
	{"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32016," MESSAGE
	 ",\"data\":{\"status\":\"limit\",\"next\":\"n\"}}}",
	 REPL_E_PROTOCOL, "m", "n"},
	{"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}", REPL_E_PROTOCOL, "request 3", ""},
	{"{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":1}", REPL_E_PROTOCOL, "request 3", ""},
	{"{\"jsonrpc\":\"2.0\",\"id\":\"3\",\"result\":1}", REPL_E_PROTOCOL, "request 3", ""},
	{"{\"jsonrpc\":\"2.0\",\"id\":3.0,\"result\":1}", REPL_E_PROTOCOL, "request 3", ""},
	{"{\"jsonrpc\":\"2.0\",\"result\":1}", REPL_E_PROTOCOL, "request 3", ""},
	{"{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-32006," MESSAGE "}}", REPL_E_PROTOCOL,
	 "request 3", ""},
	{"{\"id\":3,\"result\":1}", REPL_E_PROTOCOL, "JSON-RPC", ""},
	{ANSWER "\"x\":1}", REPL_E_PROTOCOL, "neither", ""},
	{ANSWER "\"result\":1,\"error\":{\"code\":-32006}}", REPL_E_PROTOCOL, "both", ""},
	{ANSWER "\"error\":null}", REPL_E_PROTOCOL, "not an object", ""},
	{ANSWER "\"error\":\"busy\"}", REPL_E_PROTOCOL, "not an object", ""},
	{ANSWER "\"error\":{}}", REPL_E_PROTOCOL, "without a code", ""},
	{ANSWER "\"error\":{\"code\":\"x\"}}", REPL_E_PROTOCOL, "without a code", ""},
};

static void
answers_are_taken_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		const struct answer *a = &answers[i];
		struct json_object *o = parse_good(a->line);
		struct json_object *result;
		struct err e = {0};
		char next[8] = "old";

		if (control_answer_check(o, 3, &result, next, sizeof(next), &e) != a->status ||
		    e.code != a->status || !strstr(e.text, a->text) || strcmp(next, a->next) != 0)
			fail_msg("%s: %d '%s' '%s'", a->line, e.code, e.text, next);
		json_object_put(o);
		if (i == 0) /* a reference of its own */
			assert_true(control_has(result, "a"));
		else
			assert_null(result);
		json_object_put(result);
	}
}

/* What a target can't know, or what is none, is as if it were not there. */
static const struct {
	const char *member;
	enum repl_reason reason;
} told_reasons[] = {
	{"", REPL_REASON_NONE}, /* of an earlier version */
	{",\"reason\":\"promoted\"", REPL_REASON_PROMOTED},
	{",\"reason\":\"behind\",\"other\":[1]", REPL_REASON_BEHIND},
	{",\"reason\":\"behind\",\"reason\":\"config\"", REPL_REASON_CONFIG},
	{",\"reason\":\"none\"", REPL_REASON_NONE},
	{",\"reason\":\"failed\"", REPL_REASON_NONE},
	{",\"reason\":\"paused\"", REPL_REASON_NONE},
	{",\"reason\":\"local\"", REPL_REASON_NONE},
	{",\"reason\":\"Promoted\"", REPL_REASON_NONE},
	{",\"reason\":\"promoted \"", REPL_REASON_NONE},
	{",\"reason\":\"promoted\\u0000\"", REPL_REASON_NONE},
	{",\"reason\":\"promotedpromotedpromotedpromotedpromoted\"", REPL_REASON_NONE},
	{",\"reason\":\"\"", REPL_REASON_NONE},
	{",\"reason\":null", REPL_REASON_NONE},
	{",\"reason\":15", REPL_REASON_NONE},
	{",\"reason\":[\"promoted\"]", REPL_REASON_NONE},
	{",\"reason\":{\"promoted\":\"promoted\"}", REPL_REASON_NONE},
};

static void
reasons_of_the_peer_are_known_ones(void **state)
{
	char line[512];

	(void)state;
	for (size_t i = 0; i < sizeof(told_reasons) / sizeof(told_reasons[0]); i++) {
		struct json_object *result, *o;
		struct err e = {.reason = REPL_REASON_LAG};

		(void)snprintf(line, sizeof(line),
			       ANSWER "\"error\":{\"code\":-32007," MESSAGE
				      ",\"data\":{\"status\":\"refused\"%s}}}",
			       told_reasons[i].member);
		o = parse_good(line);
		assert_int_equal(control_answer_check(o, 3, &result, NULL, 0, &e), REPL_E_REFUSED);
		if (e.reason != told_reasons[i].reason)
			fail_msg("%s: %d", line, (int)e.reason);
		json_object_put(o);
		/* Of a line that could not be read nothing is refused. */
		(void)snprintf(
			line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700," MESSAGE
			",\"data\":{\"status\":\"refused\"%s}}}",
			told_reasons[i].member);
		o = parse_good(line);
		assert_int_equal(control_answer_check(o, 3, &result, NULL, 0, &e), REPL_E_PROTOCOL);
		assert_int_equal(e.reason, REPL_REASON_NONE);
		json_object_put(o);
	}
}

static void
long_texts_of_the_peer_are_cut(void **state)
{
	char line[4096];
	char text[2001];
	struct json_object *result;
	struct json_object *o;
	char next[8];
	struct err e;

	(void)state;
	memset(text, 'y', 2000);
	text[2000] = '\0';
	(void)snprintf(line, sizeof(line),
		       ANSWER "\"error\":{\"code\":-32006,\"message\":\"%s\","
			      "\"data\":{\"next\":\"123456\xc3\xa4\"}}}",
		       text);
	o = parse_good(line);
	assert_int_equal(control_answer_check(o, 3, &result, next, sizeof(next), &e), REPL_E_BUSY);
	assert_true(e.by_target);
	assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
	assert_string_equal(next, "123456?");
	assert_int_equal(control_answer_check(o, 3, &result, NULL, 0, &e), REPL_E_BUSY);
	json_object_put(o);
}

static void
built_messages_are_understood(void **state)
{
	struct json_object *id = json_object_new_int64(INT64_MAX);
	struct json_object *result;
	struct json_object *o;
	struct err e;
	struct err back;
	char next[32];

	(void)state;
	for (int code = REPL_E_FAILED; code >= REPL_E_DIFFER; code--) {
		(void)err_set(&e, code, "text %d", code);
		o = control_error_new(id, 0, &e, "next step");
		assert_int_equal(
			control_answer_check(o, INT64_MAX, &result, next, sizeof(next), &back),
			code);
		assert_string_equal(back.text, e.text);
		assert_string_equal(next, "next step");
		json_object_put(o);
	}
	json_object_put(id);
}

/* ---- members ---- */

static const char members[] =
	"{\"zero\":0,\"big\":9223372036854775807,\"over\":9223372036854775808,"
	"\"huge\":99999999999999999999999,\"neg\":-1,\"low\":-99999999999999999999,"
	"\"float\":1.0,\"exp\":1e3,\"text\":\"abc\",\"num\":\"12\",\"null\":null,\"yes\":true,"
	"\"list\":[1,2,3],\"empty\":\"\",\"nul\":\"a\\u0000b\",\"esc\":\"\\u001b[0m\","
	"\"c1\":\"\\u009b\",\"nl\":\"a\\nb\",\"tab\":\"a\tb\",\"uml\":\"\xc3\xa4\"}";

struct number {
	const char *name;
	uint64_t min;
	uint64_t max;
	int64_t want; /* -1: refused */
	const char *why;
};

static const struct number numbers[] = {
	{"zero", 0, 0, 0, ""},
	{"zero", 0, UINT64_MAX, 0, ""},
	{"big", 0, UINT64_MAX, INT64_MAX, ""},
	{"zero", 1, 5, -1, "'zero' is 0, not from 1 to 5"},
	{"big", 0, 4096, -1, "'big' is 9223372036854775807, not from 0 to 4096"},
	{"over", 0, UINT64_MAX, -1, "'over' is 9223372036854775808, not from"},
	{"huge", 0, UINT64_MAX, -1, "'huge' is 18446744073709551615, not from"},
	{"neg", 0, UINT64_MAX, -1, "'neg' is -1, not from"},
	{"low", 0, UINT64_MAX, -1, "'low' is -9223372036854775808, not from"},
	{"float", 0, 9, -1, "'float' is of type double, not int"},
	{"exp", 0, 9, -1, "'exp' is of type double, not int"},
	{"num", 0, 99, -1, "'num' is of type string, not int"},
	{"yes", 0, 1, -1, "'yes' is of type boolean, not int"},
	{"null", 0, 1, -1, "'null' is of type null, not int"},
	{"list", 0, 1, -1, "'list' is of type array, not int"},
	{"none", 0, 1, -1, "'none' is missing"},
};

static void
numbers_are_bounded(void **state)
{
	struct json_object *o = parse_good(members);

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const struct number *n = &numbers[i];
		int want = n->want < 0 ? REPL_E_INVAL : 0;
		uint64_t have = 77;
		struct err e = {0};

		if (control_get_u64(o, n->name, n->min, n->max, &have, &e) != want ||
		    !strstr(e.text, n->why))
			fail_msg("%s: '%s'", n->name, e.text);
		assert_true(have == (want ? 77 : (uint64_t)n->want));
	}
	json_object_put(o);
}

static void
texts_are_bounded_and_clean(void **state)
{
	static const char *const unclean[] = {"nul", "esc", "c1", "nl", "tab"};
	struct json_object *o = parse_good(members);
	const char *text = NULL;
	struct err e;

	(void)state;
	assert_int_equal(control_get_text(o, "text", 3, &text, &e), 0);
	assert_string_equal(text, "abc");
	assert_int_equal(control_get_text(o, "empty", 0, &text, &e), 0);
	assert_string_equal(text, "");
	assert_int_equal(control_get_text(o, "uml", 2, &text, &e), 0);
	assert_int_equal(control_get_text(o, "text", 2, &text, &e), REPL_E_INVAL);
	assert_string_equal(e.text, "'text' has 3 bytes, at most 2 are allowed");
	assert_int_equal(control_get_text(o, "zero", 9, &text, &e), REPL_E_INVAL);
	assert_int_equal(control_get_text(o, "null", 9, &text, &e), REPL_E_INVAL);
	for (size_t i = 0; i < sizeof(unclean) / sizeof(unclean[0]); i++) {
		assert_int_equal(control_get_text(o, unclean[i], 99, &text, &e), REPL_E_INVAL);
		assert_non_null(strstr(e.text, unclean[i]));
	}
	json_object_put(o);
}

static void
bools_and_arrays_have_their_type(void **state)
{
	struct json_object *o = parse_good(members);
	struct json_object *list = NULL;
	bool yes = false;
	struct err e;

	(void)state;
	assert_int_equal(control_get_bool(o, "yes", &yes, &e), 0);
	assert_true(yes);
	assert_int_equal(control_get_bool(o, "zero", &yes, &e), REPL_E_INVAL);
	assert_int_equal(control_get_array(o, "list", 3, &list, &e), 0);
	assert_int_equal(json_object_array_length(list), 3);
	assert_int_equal(control_get_array(o, "list", 2, &list, &e), REPL_E_INVAL);
	assert_string_equal(e.text, "'list' has 3 elements, at most 2 are allowed");
	assert_int_equal(control_get_array(o, "text", 3, &list, &e), REPL_E_INVAL);
	assert_true(control_has(o, "zero"));
	assert_false(control_has(o, "null"));
	assert_false(control_has(o, "none"));
	json_object_put(o);
}

static void
no_params_have_no_members(void **state)
{
	uint64_t v;
	struct err e;

	(void)state;
	assert_false(control_has(NULL, "a"));
	assert_int_equal(control_get_u64(NULL, "a", 0, 1, &v, &e), REPL_E_INVAL);
	assert_string_equal(e.text, "'a' is missing");
}

/* ---- lines ---- */

/* At most chunk bytes at a time, as read(2) would. */
static size_t
feed(struct line_buf *b, const char *text, size_t len, size_t chunk)
{
	size_t room = 0;
	char *space = NULL;
	struct err e;

	assert_int_equal(line_buf_space(b, &space, &room, &e), 0);
	assert_true(room > 0);
	if (len > room)
		len = room;
	if (len > chunk)
		len = chunk;
	memcpy(space, text, len);
	line_buf_filled(b, len);
	return len;
}

static void
lines_come_out_whole_at_any_chunking(void **state)
{
	static const char text[] = "one\n\nthree is longer\nz\0ro\nlast\nhalf";
	static const char *const want[] = {"one", "", "three is longer", "z", "last"};
	static const size_t want_len[] = {3, 0, 15, 4, 4};

	(void)state;
	for (size_t chunk = 1; chunk < sizeof(text); chunk++) {
		struct line_buf b;
		unsigned count = 0;
		size_t at = 0;
		size_t len;
		char *line;

		line_buf_init(&b);
		assert_null(line_buf_next(&b, &len));
		while (at < sizeof(text) - 1) {
			at += feed(&b, text + at, sizeof(text) - 1 - at, chunk);
			while ((line = line_buf_next(&b, &len)) != NULL) {
				assert_true(count < 5);
				assert_string_equal(line, want[count]);
				assert_int_equal(len, want_len[count]);
				count++;
			}
		}
		assert_int_equal(count, 5);
		line_buf_fini(&b);
	}
}

static void
longest_line_passes_and_a_longer_one_does_not(void **state)
{
	size_t size = 300 * 1024;
	char *text = malloc(size);

	(void)state;
	assert_non_null(text);
	for (unsigned over = 0; over < 2; over++) {
		size_t end = CONTROL_LINE_MAX - 1 + over;
		struct line_buf b;
		size_t at = 0;
		size_t room;
		size_t len;
		char *space;
		struct err e;

		memset(text, 'x', size);
		text[end] = '\n';
		line_buf_init(&b);
		while (at < CONTROL_LINE_MAX)
			at += feed(&b, text + at, CONTROL_LINE_MAX - at, 10000);
		assert_true(b.size <= CONTROL_LINE_MAX);
		if (over) {
			assert_null(line_buf_next(&b, &len));
			assert_int_equal(line_buf_space(&b, &space, &room, &e), REPL_E_PROTOCOL);
		} else {
			assert_non_null(line_buf_next(&b, &len));
			assert_int_equal(len, CONTROL_LINE_MAX - 1);
			assert_int_equal(line_buf_space(&b, &space, &room, &e), 0);
			assert_int_equal(room, CONTROL_LINE_MAX);
		}
		line_buf_fini(&b);
		line_buf_fini(&b);
	}
	free(text);
}

/* ---- hexadecimal ---- */

static void
hex_is_lower_case_and_exact(void **state)
{
	static const uint8_t data[] = {0x00, 0x9a, 0xff, 0x10};
	uint8_t back[4];
	char text[9];

	(void)state;
	hex_encode(data, sizeof(data), text);
	assert_string_equal(text, "009aff10");
	assert_true(hex_decode(text, 8, back, 4));
	assert_memory_equal(back, data, 4);
	assert_true(hex_decode("", 0, back, 0));
	assert_false(hex_decode(text, 8, back, 3));
	assert_false(hex_decode(text, 7, back, 4));
	assert_false(hex_decode(text, 7, back, 3));
	assert_false(hex_decode("009AFF10", 8, back, 4));
	assert_false(hex_decode("009aff1g", 8, back, 4));
	assert_false(hex_decode("-09aff10", 8, back, 4));
	assert_false(hex_decode("0x9aff10", 8, back, 4));
	assert_false(hex_decode("009a\0f10", 8, back, 4));
}

/* Eight bytes are looked at at once: each place of them, and of the few behind, counts. */
static void
each_byte_of_a_long_text_is_looked_at(void **state)
{
	static const unsigned char bad[] = {0x01, 0x1f, 0x7f, 0x80, 0xff};

	(void)state;
	for (size_t len = 1; len < 40; len++) {
		for (size_t at = 0; at < len; at++) {
			for (unsigned i = 0; i < sizeof(bad); i++) {
				char text[40], *end = text + sizeof(text) - len;

				memset(end, i % 2 ? ' ' : '~', len);
				assert_true(text_is_clean(end, len));
				assert_int_equal(text_plain_len(end, len), len / 8 * 8);
				end[at] = (char)bad[i];
				assert_false(text_is_clean(end, len));
				assert_int_equal(text_plain_len(end, len),
						 at < len / 8 * 8 ? at / 8 * 8 : len / 8 * 8);
			}
		}
	}
}

/* Of a line as well, which may hold DEL and other than ASCII. */
static void
each_byte_of_a_long_line_is_looked_at(void **state)
{
	const char line[] = "{\"hashes\":\"0123456789abcdef\x7f\xc3\xa4 0123456789abcdef\"}";

	(void)state;
	for (size_t at = 0; at < sizeof(line) - 1; at++) {
		struct json_object *o;
		char copy[sizeof(line)];
		struct err e;

		err_clear(&e);
		memcpy(copy, line, sizeof(line));
		copy[at] = 0x02;
		assert_int_equal(parse(copy, sizeof(line) - 1, &o, &e), REPL_E_PROTOCOL);
		copy[at] = (char)0xff;
		assert_int_equal(parse(copy, sizeof(line) - 1, &o, &e), REPL_E_PROTOCOL);
	}
	json_object_put(parse_good(line));
}

static void
texts_that_are_cut_off_show_it(void **state)
{
	const struct {
		const char *text, *copy;
	} rows[] = {
		{"", ""},
		{"1234567", "1234567"},
		{"12345678", "1234..."},
		{"123\u00e9\u00e9", "123\u00e9\u00e9"},
		{"123\u00e9\u00e9\u00e9", "123..."},
		{"1234\xff\xff\xff\xff", "1234..."},
		{"\xff\xff\xff\xff\xff\xff\xff\xff", "\xff\xff\xff\xff..."},
	};
	char out[8];

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		text_shorten(out, sizeof(out), rows[i].text);
		assert_string_equal(out, rows[i].copy);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_lines_are_refused_with_a_reason),
		cmocka_unit_test(good_lines_are_parsed),
		cmocka_unit_test(every_half_line_is_refused),
		cmocka_unit_test(deep_and_long_lines_are_refused),
		cmocka_unit_test(last_of_equal_names_counts),
		cmocka_unit_test(good_requests_are_checked),
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(messages_have_the_documented_form),
		cmocka_unit_test(what_lacks_a_part_is_not_sent),
		cmocka_unit_test(error_texts_are_cleaned),
		cmocka_unit_test(texts_that_are_cut_off_show_it),
		cmocka_unit_test(lines_over_the_limit_are_not_made),
		cmocka_unit_test(answers_are_taken_apart),
		cmocka_unit_test(reasons_of_the_peer_are_known_ones),
		cmocka_unit_test(long_texts_of_the_peer_are_cut),
		cmocka_unit_test(built_messages_are_understood),
		cmocka_unit_test(numbers_are_bounded),
		cmocka_unit_test(texts_are_bounded_and_clean),
		cmocka_unit_test(bools_and_arrays_have_their_type),
		cmocka_unit_test(no_params_have_no_members),
		cmocka_unit_test(lines_come_out_whole_at_any_chunking),
		cmocka_unit_test(longest_line_passes_and_a_longer_one_does_not),
		cmocka_unit_test(hex_is_lower_case_and_exact),
		cmocka_unit_test(each_byte_of_a_long_text_is_looked_at),
		cmocka_unit_test(each_byte_of_a_long_line_is_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
