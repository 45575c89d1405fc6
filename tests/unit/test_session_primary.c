/* SPDX-License-Identifier: BSD-3-Clause */
/* A session judges, promotes and demotes as docs/PROTOCOL.md says, and names what is wrong with a
 * request. */
#include "unit.h"

#include <signal.h>

#include "session_client.h"

#define G1 "11111111-1111-4111-8111-111111111111"
#define G2 "22222222-2222-4222-8222-222222222222"
#define G3 "33333333-3333-4333-8333-333333333333"

static void
give_chain(struct client *c, const char *generation, const char *history)
{
	char params[256];

	call_ok(c, "pool.open", "{\"name\":\"a\",\"mode\":\"write\",\"force\":true}");
	(void)snprintf(params, sizeof(params),
		       "{\"state\":\"up-to-date\",\"generation\":\"%s\",\"history\":[%s]}",
		       generation, history);
	call_ok(c, "pool.mark", params);
	call_ok(c, "pool.close", "{}");
}

static void
a_writer_is_judged_by_its_chain(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct err e;

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	give_chain(&c, G2, "\"" G1 "\"");
	call_ok(&c, "pool.open",
		"{\"name\":\"a\",\"mode\":\"write\",\"generation\":\"" G3 "\",\"history\":[\"" G2
		"\",\"" G1 "\"]}");
	call_ok(&c, "pool.close", "{}");
	(void)call(&c, REPL_E_DIVERGED, "pool.open",
		   "{\"name\":\"a\",\"mode\":\"write\",\"generation\":\"" G1 "\"}", &e);
	assert_non_null(strstr(e.text, "newer"));
	assert_int_equal(e.reason, REPL_REASON_BEHIND);
	(void)call(&c, REPL_E_DIVERGED, "pool.open",
		   "{\"name\":\"a\",\"mode\":\"write\",\"generation\":\"" G3 "\",\"history\":[\"" G1
		   "\"]}",
		   &e);
	assert_non_null(strstr(e.text, "have diverged"));
	assert_int_equal(e.reason, REPL_REASON_DIVERGED);
	(void)call(&c, REPL_E_DIVERGED, "pool.open",
		   "{\"name\":\"a\",\"mode\":\"write\",\"generation\":\"" G3 "\"}", &e);
	assert_non_null(strstr(e.text, "no generation in common"));
	assert_int_equal(e.reason, REPL_REASON_UNRELATED);
	/* Who only reads has nothing to lose there. */
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"read\",\"generation\":\"" G1 "\"}");
	call_ok(&c, "pool.close", "{}");
	call_ok(&c, "pool.open",
		"{\"name\":\"a\",\"mode\":\"write\",\"force\":true,\"generation\":\"" G1 "\"}");
	assert_int_equal(client_hangup(&c), REPL_E_LOST);
}

static void
wrong_params_are_named(void **state)
{
	static const struct {
		const char *method, *params, *names;
	} rows[] = {
		{"pool.open", "{\"name\":\"a\",\"mode\":\"write\",\"generation\":7}", "generation"},
		{"pool.open", "{\"name\":\"a\",\"mode\":\"write\",\"generation\":\"x\"}",
		 "generation"},
		{"pool.open", "{\"name\":\"a\",\"mode\":\"write\",\"history\":[]}", "history"},
		{"pool.open",
		 "{\"name\":\"a\",\"mode\":\"write\",\"generation\":\"" G1 "\",\"history\":7}",
		 "history"},
		{"pool.open",
		 "{\"name\":\"a\",\"mode\":\"write\",\"generation\":\"" G1 "\",\"history\":[7]}",
		 "history"},
		{"pool.open",
		 "{\"name\":\"a\",\"mode\":\"write\",\"generation\":\"" G1
		 "\",\"history\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}",
		 "history"},
		{"pool.open", "{\"name\":\"a\",\"mode\":\"write\",\"force\":\"yes\"}", "force"},
		{"pool.promote", "{}", "name"},
		{"pool.promote", "{\"name\":\"../a\"}", "'..'"},
		{"pool.promote", "{\"name\":\"a\",\"force\":1}", "force"},
		{"pool.demote", "{\"name\":[]}", "name"},
	};
	struct target_dir *d = *state;
	struct client c;
	struct err e;

	client_hello(&c, &d->conf, "t");
	make_pool(&c, "a");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_null(call(&c, REPL_E_INVAL, rows[i].method, rows[i].params, &e));
		if (!strstr(e.text, rows[i].names))
			fail_msg("%s %s: %s", rows[i].method, rows[i].params, e.text);
	}
	call_refused(&c, REPL_E_NOT_FOUND, "pool.promote", "{\"name\":\"none\"}");
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"read\"}");
	call_refused(&c, REPL_E_PROTOCOL, "pool.promote", "{\"name\":\"a\"}");
	call_refused(&c, REPL_E_PROTOCOL, "pool.demote", "{\"name\":\"a\"}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

static void
a_promoted_pool_is_told_and_refused_until_it_is_demoted(void **state)
{
	struct target_dir *d = *state;
	struct client c, old;
	struct json_object *o;
	struct err e;
	bool primary = false;

	client_hello(&old, &d->conf, "app@a pid 1");
	make_pool(&old, "a");
	give_chain(&old, G1, "");
	call_ok(&old, "pool.open", "{\"name\":\"a\",\"mode\":\"write\",\"generation\":\"" G1 "\"}");
	client_hello(&c, &d->conf, "root@b pid 7");
	(void)call(&c, REPL_E_BUSY, "pool.promote", "{\"name\":\"a\"}", &e);
	assert_non_null(strstr(e.text, "app@a pid 1"));
	(void)client_hangup(&old);

	o = call(&c, REPL_OK, "pool.promote", "{\"name\":\"a\"}", NULL);
	assert_int_equal(control_get_bool(o, "primary", &primary, NULL), 0);
	assert_true(primary);
	assert_text(o, "state", "up-to-date");
	json_object_put(o);
	(void)call(&c, REPL_E_REFUSED, "pool.open",
		   "{\"name\":\"a\",\"mode\":\"write\",\"force\":true}", &e);
	assert_non_null(strstr(e.text, "by root@b pid 7"));
	assert_int_equal(e.reason, REPL_REASON_PROMOTED);
	call_ok(&c, "pool.open", "{\"name\":\"a\",\"mode\":\"read\"}");
	call_ok(&c, "pool.close", "{}");
	o = call(&c, REPL_OK, "pool.demote", "{\"name\":\"a\"}", NULL);
	assert_false(control_has(o, "primary"));
	json_object_put(o);
	call_refused(&c, REPL_E_DIVERGED, "pool.open",
		     "{\"name\":\"a\",\"mode\":\"write\",\"generation\":\"" G1 "\"}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_writer_is_judged_by_its_chain),
		T(wrong_params_are_named),
		T(a_promoted_pool_is_told_and_refused_until_it_is_demoted),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	(void)unsetenv("SSH_CONNECTION");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
