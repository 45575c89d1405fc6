/* SPDX-License-Identifier: BSD-3-Clause */
/* Of what an initiator reports of its replica only what is known and well formed is kept. */
#include "unit.h"

#include <stdio.h>

#include "report.h"

static const char *
kept(const char *text)
{
	static char out[512];
	struct json_object *in = json_tokener_parse(text), *o = report_check(in);

	(void)snprintf(out, sizeof(out), "%s",
		       o ? json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN) : "none");
	json_object_put(o);
	json_object_put(in);
	return out;
}

#define AXES "\"connection\":\"connected\",\"replication\":\"resyncing\",\"data\":\"outdated\""

static void
good_is_kept(void **state)
{
	(void)state;
	assert_string_equal(kept("{" AXES ",\"reason\":\"lag\",\"paused\":true,\"lag_ms\":7}"),
			    "{" AXES ",\"reason\":\"lag\",\"paused\":true,\"lag_ms\":7}");
}

static void
rest_is_left_out(void **state)
{
	(void)state;
	assert_string_equal(kept("7"), "none");
	assert_string_equal(kept("{\"connection\":\"connected\"}"), "none");
	assert_string_equal(kept("{\"connection\":\"\\u001b[2J\",\"replication\":\"resyncing\","
				 "\"data\":\"outdated\"}"),
			    "none");
	assert_string_equal(kept("{" AXES ",\"lag_ms\":-1,\"lag_bytes\":\"x\",\"evil\":\"y\","
				 "\"paused\":[1],\"reason\":\"of later\"}"),
			    "{" AXES ",\"reason\":\"failed\"}");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_is_kept),
		cmocka_unit_test(rest_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
