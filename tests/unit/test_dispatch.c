/* SPDX-License-Identifier: BSD-3-Clause */
/* Each method runs in the phases that the protocol allows it, and in no other. */
#include "unit.h"

#include "control.h"
#include "dispatch.h"

#define HELLO PHASE_HELLO
#define READ  (PHASE_HELLO | PHASE_POOL)
#define WRITE (PHASE_HELLO | PHASE_POOL | PHASE_WRITE)
#define LANES (WRITE | PHASE_LANES)

static const unsigned phases[] = {0, HELLO, READ, WRITE, LANES};

/* One character a phase of the list above: y runs, n is refused. */
static const struct row {
	const char *method;
	const char *allowed;
} rows[] = {
	{"hello", "ynnnn"},      {"ping", "nyyyy"},        {"bye", "nyyyy"},
	{"probe", "nyyyy"},      {"status", "nyyyy"},      {"pool.create", "nynnn"},
	{"pool.list", "nyyyy"},  {"pool.info", "nyyyy"},   {"pool.remove", "nynnn"},
	{"pool.open", "nynnn"},  {"pool.mark", "nnnyy"},   {"pool.hash", "nnyyy"},
	{"pool.close", "nnyyy"}, {"lanes.open", "nnyyn"},  {"lanes.close", "nnnny"},
	{"bench.open", "nnyyy"}, {"bench.close", "nyyyy"},
};

static void
policy_is_the_protocols(void **state)
{
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t k = 0; k < sizeof(phases) / sizeof(phases[0]); k++) {
			bool allowed = rows[i].allowed[k] == 'y';

			err_clear(&e);
			if (dispatch_check(rows[i].method, phases[k], &e) !=
			    (allowed ? REPL_OK : REPL_E_PROTOCOL))
				fail_msg("%s in phase %u", rows[i].method, phases[k]);
			if (!allowed)
				assert_non_null(strstr(e.text, rows[i].method));
		}
	}
}

static void
unknown_method_is_no_method(void **state)
{
	(void)state;
	assert_int_equal(dispatch_check("pool.destroy", HELLO, NULL), CONTROL_NO_METHOD);
	assert_int_equal(dispatch_check("", HELLO, NULL), CONTROL_NO_METHOD);
	assert_int_equal(dispatch_check("hello ", 0, NULL), CONTROL_NO_METHOD);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policy_is_the_protocols),
		cmocka_unit_test(unknown_method_is_no_method),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
