/* SPDX-License-Identifier: BSD-3-Clause */
/* A target whose list of pools has no end is not asked for ever, nor one that fills the memory with
 * few answers, or by long texts, listened to, also of sessions; as many pools as one may have are
 * taken. Of more the first are shown, and what else there is, before the error. Events of many
 * pools take no look at all sessions each.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "commands.h"
#include "control.h"
#include "out.h"
#include "pools.h"
#include "sessions.h"

#define PAGE      64U
#define POOLS     131072U
#define CALLS_MAX 4000U

size_t __real_out_cost(struct json_object *o);
size_t __wrap_out_cost(struct json_object *o);
int __wrap_ctl_connect(struct ctl *c);
bool __wrap_watch_wait(void);
const char *__real_out_member(struct json_object *o, const char *name);
const char *__wrap_out_member(struct json_object *o, const char *name);
int __wrap_remote_call(struct remote *r, const char *method, struct json_object *params,
		       struct json_object **result, struct err *e);

static unsigned told, calls, pool_count, page = PAGE, members;
static unsigned session_count, session_page, session_told, looks;

/* A text of so many bytes in each pool and session: a value, a name, or the digits of a number. */
static enum { VALUE, NAME, NUMBER } long_is;
static unsigned long_len;

/* So much memory the test can do without. */
static unsigned cost_times = 1;

size_t
__wrap_out_cost(struct json_object *o)
{
	return cost_times * __real_out_cost(o);
}

int
__wrap_ctl_connect(struct ctl *c)
{
	(void)c;
	return 0;
}

bool
__wrap_watch_wait(void)
{
	return false;
}

const char *
__wrap_out_member(struct json_object *o, const char *name)
{
	looks++;
	return __real_out_member(o, name);
}

static void
add_long(struct json_object *o)
{
	char *text = malloc(long_len + 1U);

	assert_non_null(text);
	memset(text, '1', long_len);
	text[long_len] = '\0';
	if (long_len && long_is == NAME)
		json_object_object_add(o, text, NULL);
	else if (long_len)
		json_object_object_add(o, "x",
				       long_is == VALUE ? json_object_new_string(text)
							: json_object_new_double_s(1, text));
	free(text);
}

/* Of the first pools, whose writers report. With session_page the next so many. */
static struct json_object *
some_sessions(void)
{
	struct json_object *list = json_object_new_array();
	char text[32];

	unsigned i = session_page ? session_told : 0;

	for (; i < session_count && (!session_page || i < session_told + session_page); i++) {
		struct json_object *s = json_object_new_object();
		struct json_object *report = json_object_new_object();

		(void)snprintf(text, sizeof(text), "s%09u", i);
		json_object_object_add(s, "session", json_object_new_string(text));
		(void)snprintf(text, sizeof(text), "p%09u", i);
		json_object_object_add(s, "pool", json_object_new_string(text));
		json_object_object_add(report, "reason", json_object_new_string("peer-down"));
		json_object_object_add(s, "report", report);
		add_long(s);
		json_object_array_add(list, s);
	}
	session_told = i;
	return list;
}

static struct json_object *
status_answer(void)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "sessions", some_sessions());
	if (session_told < session_count)
		json_object_object_add(o, "sessions_more", json_object_new_boolean(true));
	json_object_object_add(o, "sessions_untold", json_object_new_int(7));
	json_object_object_add(o, "overrides", json_object_new_array());
	return o;
}

/* The next names of pool_count. */
int
__wrap_remote_call(struct remote *r, const char *method, struct json_object *params,
		   struct json_object **result, struct err *e)
{
	struct json_object *pools;
	char name[32];

	(void)r;
	(void)e;
	if (strcmp(method, "status") == 0) {
		json_object_put(params);
		*result = status_answer();
		return 0;
	}
	assert_string_equal(method, "pool.list");
	assert_true(++calls < CALLS_MAX);
	pools = json_object_new_array();
	for (unsigned i = 0; i < page && told < pool_count; i++) {
		struct json_object *pool = json_object_new_object();

		(void)snprintf(name, sizeof(name), "p%09u", told++);
		json_object_object_add(pool, "name", json_object_new_string(name));
		if (members)
			json_object_object_add(pool, "more", json_object_new_array());
		for (unsigned m = 0; m < members; m++)
			json_object_array_add(json_object_object_get(pool, "more"),
					      json_object_new_array());
		add_long(pool);
		json_object_array_add(pools, pool);
	}
	*result = json_object_new_object();
	json_object_object_add(*result, "pools", pools);
	json_object_object_add(*result, "more", json_object_new_boolean(told < pool_count));
	json_object_put(params);
	return 0;
}

static void
expect_fetch(unsigned count, int rc)
{
	struct json_object *pools = NULL;
	struct ctl c = {0};

	told = calls = 0;
	pool_count = count;
	assert_int_equal(pools_fetch(&c, &pools), rc);
	if (rc) {
		assert_non_null(strstr(c.err.text, "more than 131072 pools"));
		assert_string_equal(c.next, "look at what the target's pool directory holds");
	}
	assert_int_equal(json_object_array_length(pools), rc ? POOLS : count);
	json_object_put(pools);
}

static void
list_that_ends_is_taken_whole(void **state)
{
	(void)state;
	expect_fetch(0, 0);
	expect_fetch(1, 0);
	expect_fetch(PAGE, 0);
	expect_fetch(10 * PAGE + 1, 0);
	expect_fetch(POOLS, 0);
}

static void
list_without_end_is_refused(void **state)
{
	(void)state;
	expect_fetch(POOLS + 1, REPL_E_LIMIT);
	expect_fetch(UINT32_MAX, REPL_E_LIMIT);
}

static void
few_answers_with_many_pools_are_refused(void **state)
{
	(void)state;
	page = 4096;
	expect_fetch(POOLS, 0);
	expect_fetch(POOLS + 1, REPL_E_LIMIT);
	page = PAGE;
}

static void
pools_of_many_members_are_refused(void **state)
{
	struct json_object *pools = NULL;
	struct ctl c = {0};

	(void)state;
	members = 100;
	expect_fetch(1, 0);
	members = 1000;
	told = calls = 0;
	pool_count = 1;
	assert_int_equal(pools_fetch(&c, &pools), REPL_E_PROTOCOL);
	assert_string_equal(c.err.text, "pool.list: a pool has 1003 members");
	members = 0;
}

/* Each of them is small enough. */
static void
many_pools_of_many_members_are_refused(void **state)
{
	struct json_object *pools = NULL;
	struct ctl c = {0};

	(void)state;
	members = 250;
	cost_times = 8;
	told = calls = 0;
	pool_count = POOLS;
	assert_int_equal(pools_fetch(&c, &pools), REPL_E_PROTOCOL);
	assert_non_null(strstr(c.err.text, "take more than 1024 MiB"));
	assert_true(told < POOLS / 64);
	assert_null(pools);
	members = 0;
	cost_times = 1;
}

/* A line has room for one each. */
static void
long_texts_are_refused(void **state)
{
	(void)state;
	long_len = 200000;
	cost_times = 64;
	page = session_page = 1;
	pool_count = session_count = 1000;
	for (long_is = VALUE; long_is <= NUMBER; long_is++) {
		struct json_object *pools = NULL, *sessions = NULL;
		struct sessions_beside beside = {0};
		struct ctl list = {0}, status = {0};

		told = calls = session_told = 0;
		assert_int_equal(pools_fetch(&list, &pools), REPL_E_PROTOCOL);
		assert_non_null(strstr(list.err.text, "take more than 1024 MiB"));
		assert_true(told < 200);
		assert_int_equal(sessions_fetch(&status, &sessions, &beside), REPL_E_PROTOCOL);
		assert_non_null(strstr(status.err.text, "take more than 1024 MiB"));
		assert_true(session_told < 200);
	}
	long_len = 0;
	cost_times = 1;
	page = PAGE;
	session_page = session_count = 0;
}

static void
add_texts(struct json_object *o, const char *const *names, size_t len)
{
	char text[256] = "";

	memset(text, 'x', len);
	for (; *names; names++)
		json_object_object_add(o, *names, json_object_new_string(text));
}

/* As repld tells of one of which all is to be told, by the longest name. */
static void
longest_list_of_good_pools_is_taken(void **state)
{
	static const char *const uuids[] = {"uuid", "generation", NULL};
	static const char *const words[] = {"filesystem", "state", "class", "sidecar",
					    "journal",    "power", NULL};
	static const char *const numbers[] = {"size",   "created",  "updated",     "header",
					      "sparse", "position", "writer_open", "ring",
					      "waited", "primary",  NULL};
	struct json_object *o = json_object_new_object(), *history = json_object_new_array();
	char id[37] = "";

	(void)state;
	memset(id, 'x', sizeof(id) - 1);
	add_texts(o, (const char *[]){"name", NULL}, 255);
	add_texts(o, (const char *[]){"attr", NULL}, 208);
	add_texts(o, (const char *[]){"writer", NULL}, 127);
	add_texts(o, uuids, sizeof(id) - 1);
	add_texts(o, words, 16);
	for (const char *const *n = numbers; *n; n++)
		json_object_object_add(o, *n, json_object_new_int64(INT64_MAX));
	for (unsigned i = 0; i < 15; i++)
		json_object_array_add(history, json_object_new_string(id));
	json_object_object_add(o, "history", history);
	assert_in_range(__real_out_cost(o), 1, OUT_COST_MAX / POOLS);
	json_object_put(o);
}

/* What it prints, at its end. */
static void
run_printing(int run(struct ctl *c, char **args), struct ctl *c, int rc, char *tail, size_t size)
{
	char host[] = "host", *args[] = {host, NULL};
	FILE *file = tmpfile();
	int saved = dup(STDOUT_FILENO);
	ssize_t n;

	assert_true(file && saved >= 0);
	told = calls = 0;
	(void)fflush(stdout);
	assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
	n = run(c, args);
	(void)fflush(stdout);
	assert_true(dup2(saved, STDOUT_FILENO) >= 0);
	(void)close(saved);
	assert_int_equal(n, rc);
	n = lseek(fileno(file), 0, SEEK_END);
	n = pread(fileno(file), tail, size - 1, n > (ssize_t)size - 1 ? n - (ssize_t)size + 1 : 0);
	assert_true(n >= 0);
	tail[n] = '\0';
	(void)fclose(file);
}

static void
of_too_many_the_first_are_shown(void **state)
{
	struct ctl list = {0}, status = {0}, json = {.options.json = true}, good = {0};
	char tail[1024];

	(void)state;
	pool_count = POOLS + 1;
	page = 4096;
	run_printing(cmd_list, &list, REPL_E_LIMIT, tail, sizeof(tail));
	assert_non_null(strstr(tail, "p000131071 "));
	assert_null(strstr(tail, "p000131072"));
	assert_int_equal(list.err.code, REPL_E_LIMIT);
	run_printing(cmd_status, &status, REPL_E_LIMIT, tail, sizeof(tail));
	assert_non_null(strstr(tail, "p000131071 "));
	assert_non_null(strstr(tail, "no session has a pool open\nand 7 more "));
	assert_non_null(strstr(status.err.text, "more than 131072 pools"));
	/* A program would take it for the whole. */
	run_printing(cmd_list, &json, REPL_E_LIMIT, tail, sizeof(tail));
	assert_string_equal(tail, "");
	run_printing(cmd_status, &json, REPL_E_LIMIT, tail, sizeof(tail));
	assert_string_equal(tail, "");
	assert_false(json.answered);
	pool_count = 1;
	run_printing(cmd_status, &good, 0, tail, sizeof(tail));
	assert_non_null(strstr(tail, "p000000000 "));
	page = PAGE;
}

/* Not by a look at each session for each pool. */
static void
events_tell_each_pool_with_its_writers_report(void **state)
{
	struct ctl c = {0};
	char tail[4096];

	(void)state;
	pool_count = 2000;
	session_count = 1000;
	looks = 0;
	run_printing(cmd_events, &c, 0, tail, sizeof(tail));
	assert_non_null(strstr(tail, " p000001999 -, writer -\n"));
	assert_true(looks < 50000);
	pool_count = 2;
	session_count = 1;
	run_printing(cmd_events, &c, 0, tail, sizeof(tail));
	assert_non_null(strstr(tail, " p000000000 -, writer -: - - - (peer-down)\n"));
	assert_non_null(strstr(tail, " p000000001 -, writer -\n"));
	session_count = 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_that_ends_is_taken_whole),
		cmocka_unit_test(list_without_end_is_refused),
		cmocka_unit_test(few_answers_with_many_pools_are_refused),
		cmocka_unit_test(pools_of_many_members_are_refused),
		cmocka_unit_test(many_pools_of_many_members_are_refused),
		cmocka_unit_test(long_texts_are_refused),
		cmocka_unit_test(longest_list_of_good_pools_is_taken),
		cmocka_unit_test(of_too_many_the_first_are_shown),
		cmocka_unit_test(events_tell_each_pool_with_its_writers_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
