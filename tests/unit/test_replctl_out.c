/* SPDX-License-Identifier: BSD-3-Clause */
/* What people read is short, right at the edges, and holds no byte that drives a terminal. */
#include "unit.h"

#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "out.h"
#include "progress.h"

static void
expect_size(uint64_t bytes, const char *text)
{
	char out[OUT_NUMBER_MAX];

	out_size(bytes, out);
	assert_string_equal(out, text);
}

static void
sizes(void **state)
{
	(void)state;
	expect_size(0, "0 B");
	expect_size(1023, "1023 B");
	expect_size(1024, "1.0 KiB");
	expect_size(1048575, "1.0 MiB");
	expect_size(1536, "1.5 KiB");
	expect_size(1ULL << 30, "1.0 GiB");
	expect_size(UINT64_MAX, "16.0 EiB");
}

static void
expect_duration(uint64_t ms, const char *text)
{
	char out[OUT_NUMBER_MAX];

	out_duration(ms * 1000000, out);
	assert_string_equal(out, text);
}

static void
durations(void **state)
{
	(void)state;
	expect_duration(0, "0.0 s");
	expect_duration(340, "0.3 s");
	expect_duration(9999, "9.9 s");
	expect_duration(59999, "59 s");
	expect_duration(60000, "1:00");
	expect_duration(3723000, "1:02:03");
}

static void
times(void **state)
{
	char out[OUT_NUMBER_MAX];

	(void)state;
	out_time(0, out);
	assert_string_equal(out, "never");
	out_time(1767225599, out);
	assert_string_equal(out, "2025-12-31 23:59:59 UTC");
	out_time(INT64_MAX, out);
	assert_string_equal(out, "?");
}

static void
expect_quote(const char *word, const char *quoted)
{
	char *out = out_quote(word);

	assert_string_equal(out, quoted);
	free(out);
}

static void
a_quoted_word_is_one_word(void **state)
{
	(void)state;
	expect_quote("ops@host:22/eu/a.pool", "ops@host:22/eu/a.pool");
	expect_quote("", "''");
	expect_quote("a b", "'a b'");
	expect_quote("$(reboot)", "'$(reboot)'");
	expect_quote("it's", "'it'\\''s'");
	expect_quote("[::1]/a", "'[::1]/a'");
}

static void
json_of_a_peer_is_made_clean(void **state)
{
	struct json_object *dirty = json_tokener_parse(
		"{\"na\\u001bme\":\"a\\u001b[2J\\u009b\",\"list\":[\"\\u0007\",7,null]}");
	struct json_object *clean = out_clean_json(dirty);

	(void)state;
	assert_string_equal(json_object_to_json_string_ext(clean, JSON_C_TO_STRING_PLAIN),
			    "{\"na?me\":\"a?[2J??\",\"list\":[\"?\",7,null]}");
	json_object_put(clean);
	json_object_put(dirty);
}

static void
members_of_another_type_are_absent(void **state)
{
	struct json_object *o = json_tokener_parse("{\"text\":7,\"number\":\"x\",\"less\":-1}");

	(void)state;
	assert_string_equal(out_member(o, "text"), "-");
	assert_string_equal(out_member(o, "none"), "-");
	assert_int_equal(out_member_u64(o, "number"), 0);
	assert_int_equal(out_member_u64(o, "less"), 0);
	assert_int_equal(out_member_u64(NULL, "none"), 0);
	json_object_put(o);
}

static void
a_progress_line_says_how_long(void **state)
{
	struct transfer_progress t = {.total = 100 << 20, .done = 25 << 20};
	char out[PROGRESS_LINE_MAX];

	(void)state;
	(void)progress_format(out, "sync", &t, 25 << 20, false, 200);
	assert_string_equal(out, "sync  25% 25.0 MiB of 100.0 MiB  25.0 MiB/s  ETA 0:03");
	(void)progress_format(out, "sync", &t, 1 << 20, true, 79);
	assert_string_equal(
		out,
		"sync  25% [======>                 ] 25.0 MiB of 100.0 MiB  1.0 MiB/s  ETA 1:15");
	(void)progress_format(out, "sync", &t, 0, false, 200);
	assert_non_null(strstr(out, "ETA -:--"));
}

static void
a_progress_line_fits_every_terminal(void **state)
{
	struct transfer_progress t = {.total = UINT64_MAX, .done = UINT64_MAX / 2};
	char out[PROGRESS_LINE_MAX];

	(void)state;
	for (unsigned columns = 1; columns < 2 * PROGRESS_LINE_MAX; columns++) {
		size_t len = progress_format(out, "restore", &t, 1e3, true, columns);

		assert_true(len <= columns && len < sizeof(out));
		assert_int_equal(len, strlen(out));
	}
	t.total = t.done = 0;
	(void)progress_format(out, "sync", &t, 0, true, 79);
	assert_non_null(strstr(out, "100%"));
}

/* A journal that is refused half way is copied again, directly. */
static void
more_than_all_is_all(void **state)
{
	struct transfer_progress t = {.total = 100 << 20, .done = 250 << 20};
	char out[PROGRESS_LINE_MAX];

	(void)state;
	(void)progress_format(out, "sync", &t, 1 << 20, true, 120);
	assert_string_equal(out, "sync 100% [========================================] "
				 "100.0 MiB of 100.0 MiB  1.0 MiB/s  ETA 0:00");
}

static void
print_table(const char *const *names, unsigned count)
{
	static const char *const heads[] = {"POOL", ">SIZE", "STATE"};
	struct out_table t;

	out_table_init(&t, heads, 3);
	for (unsigned i = 0; i < count; i++)
		out_table_row(&t, (const char *[]){names[i], "64.0 KiB", "up-to-date"});
	out_table_end(&t);
	(void)fflush(stdout);
}

/* What is printed where standard output is this one. */
static void
printed_on(int out, int in, const char *const *names, unsigned count, char *text, size_t size)
{
	int own = dup(STDOUT_FILENO);
	size_t used = 0;
	ssize_t got;

	assert_true(own >= 0);
	(void)fflush(stdout);
	assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
	print_table(names, count);
	assert_int_equal(dup2(own, STDOUT_FILENO), STDOUT_FILENO);
	(void)close(own);
	(void)close(out);
	while ((got = read(in, text + used, size - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = '\0';
	(void)close(in);
}

/* Each row in as few lines as it needs, and other rows none the longer for it. */
static void
a_long_name_has_its_own_line(void **state)
{
	static const struct winsize screen = {.ws_col = 80, .ws_row = 24};
	char name[256], text[4096], due[4096];
	const char *names[] = {"short", name};
	int in, out, pipe_fds[2];

	(void)state;
	memset(name, 'n', 255);
	name[255] = '\0';
	assert_int_equal(openpty(&in, &out, NULL, NULL, &screen), 0);
	printed_on(out, in, names, 2, text, sizeof(text));
	(void)snprintf(due, sizeof(due),
		       "POOL       SIZE  STATE\r\n"
		       "short  64.0 KiB  up-to-date\r\n"
		       "%s\r\n"
		       "       64.0 KiB  up-to-date\r\n",
		       name);
	assert_string_equal(text, due);
	/* One that fits makes a column. */
	name[50] = '\0';
	assert_int_equal(openpty(&in, &out, NULL, NULL, &screen), 0);
	printed_on(out, in, names, 2, text, sizeof(text));
	(void)snprintf(due, sizeof(due), "%s  64.0 KiB  up-to-date\r\n", name);
	assert_non_null(strstr(text, due));
	/* Nor is one cut or parted from its line for a program that reads it. */
	memset(name, 'n', 255);
	assert_int_equal(pipe(pipe_fds), 0);
	printed_on(pipe_fds[1], pipe_fds[0], names, 2, text, sizeof(text));
	(void)snprintf(due, sizeof(due), "\n%s  64.0 KiB  up-to-date\n", name);
	assert_non_null(strstr(text, due));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(durations),
		cmocka_unit_test(times),
		cmocka_unit_test(a_quoted_word_is_one_word),
		cmocka_unit_test(json_of_a_peer_is_made_clean),
		cmocka_unit_test(members_of_another_type_are_absent),
		cmocka_unit_test(a_progress_line_says_how_long),
		cmocka_unit_test(a_progress_line_fits_every_terminal),
		cmocka_unit_test(more_than_all_is_all),
		cmocka_unit_test(a_long_name_has_its_own_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
