/* SPDX-License-Identifier: BSD-3-Clause */
/* A session serves one baseline at a time, to the token's bearer, and not beyond its own end. */
#include "unit.h"

#include "clock.h"
#include "hex.h"
#include "session_client.h"
#include "tcpraw.h"

/* A session with a pool open. */
static void
client_pool(struct client *c, const struct conf *conf, const char *name)
{
	char params[64];

	client_hello(c, conf, "t");
	make_pool(c, name);
	(void)snprintf(params, sizeof(params), "{\"name\":\"%s\",\"mode\":\"read\"}", name);
	call_ok(c, "pool.open", params);
}

/* bench.open and a connection to what it opened. */
static struct tcpraw *
bench_connect(struct client *c, const char *params)
{
	struct json_object *o = call(c, REPL_OK, "bench.open", params, NULL);
	uint8_t token[TCPRAW_TOKEN_SIZE];
	const char *address = NULL, *text = NULL;
	struct tcpraw *raw = NULL;
	uint64_t port = 0;
	struct err e;

	err_clear(&e);
	assert_int_equal(control_get_text(o, "address", 64, &address, NULL), 0);
	assert_int_equal(control_get_text(o, "token", 128, &text, NULL), 0);
	assert_int_equal(control_get_u64(o, "port", 1, UINT16_MAX, &port, NULL), 0);
	assert_true(hex_decode(text, strlen(text), token, sizeof(token)));
	token[0] ^= 1;
	assert_int_equal(
		tcpraw_connect(address, (uint16_t)port, token, clock_deadline(WAIT_MS), &raw, &e),
		REPL_E_AUTH);
	token[0] ^= 1;
	assert_int_equal(
		tcpraw_connect(address, (uint16_t)port, token, clock_deadline(WAIT_MS), &raw, &e),
		0);
	json_object_put(o);
	return raw;
}

static void
round_trips_and_streams(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct tcpraw *raw;
	uint32_t ns[8];
	uint64_t all_ns;
	struct err e;

	client_pool(&c, &d->conf, "a");
	raw = bench_connect(&c, "{\"seconds\":10}");
	assert_int_equal(tcpraw_pingpong(raw, 64, 8, ns, &e), 0);
	assert_int_equal(tcpraw_stream_out(raw, 100000, 4096, &all_ns, &e), 0);
	assert_int_equal(tcpraw_stream_in(raw, 100000, 4096, &all_ns, &e), 0);
	/* The control channel is served meanwhile. */
	call_ok(&c, "ping", "{}");
	tcpraw_free(raw);
	call_ok(&c, "bench.close", "{}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

static void
second_one_is_busy_until_the_first_is_closed(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct tcpraw *raw;
	uint32_t ns[1];
	struct err e;

	client_pool(&c, &d->conf, "b");
	raw = bench_connect(&c, "{\"seconds\":10}");
	call_refused(&c, REPL_E_BUSY, "bench.open", "{\"seconds\":10}");
	call_ok(&c, "bench.close", "{}");
	assert_int_equal(tcpraw_pingpong(raw, 64, 1, ns, &e), REPL_E_LOST);
	tcpraw_free(raw);
	raw = bench_connect(&c, "{\"seconds\":10}");
	tcpraw_free(raw);
	call_ok(&c, "bench.close", "{}");
	call_ok(&c, "bench.close", "{}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

static void
session_that_ends_takes_it_along(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct tcpraw *raw;
	uint32_t ns[1];
	struct err e;
	uint64_t begin;

	client_pool(&c, &d->conf, "c");
	raw = bench_connect(&c, "{\"seconds\":120}");
	begin = clock_now_ns();
	assert_int_equal(client_hangup(&c), REPL_OK);
	assert_int_equal(tcpraw_pingpong(raw, 64, 1, ns, &e), REPL_E_LOST);
	tcpraw_free(raw);
	/* Nobody has come yet. */
	client_pool(&c, &d->conf, "d");
	call_ok(&c, "bench.open", "{\"seconds\":120}");
	assert_int_equal(client_hangup(&c), REPL_OK);
	assert_true(clock_now_ns() - begin < 2 * NS_PER_S);
}

/* The next pool is mapped while the session has no thread that maps memory. */
static void
pool_that_is_closed_takes_it_along(void **state)
{
	struct target_dir *d = *state;
	struct client c;
	struct tcpraw *raw;
	uint32_t ns[1];
	struct err e;

	client_pool(&c, &d->conf, "a");
	raw = bench_connect(&c, "{\"seconds\":120}");
	call_ok(&c, "pool.close", "{}");
	assert_int_equal(tcpraw_pingpong(raw, 64, 1, ns, &e), REPL_E_LOST);
	tcpraw_free(raw);
	call_refused(&c, REPL_E_PROTOCOL, "bench.open", "{\"seconds\":10}");
	call_ok(&c, "bench.close", "{}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

static void
seconds_are_bounded(void **state)
{
	struct target_dir *d = *state;
	struct client c;

	client_pool(&c, &d->conf, "e");
	call_refused(&c, REPL_E_INVAL, "bench.open", "{}");
	call_refused(&c, REPL_E_INVAL, "bench.open", "{\"seconds\":0}");
	call_refused(&c, REPL_E_INVAL, "bench.open", "{\"seconds\":121}");
	call_refused(&c, REPL_E_INVAL, "bench.open", "{\"seconds\":\"10\"}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(round_trips_and_streams, setup, teardown),
		cmocka_unit_test_setup_teardown(second_one_is_busy_until_the_first_is_closed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(session_that_ends_takes_it_along, setup, teardown),
		cmocka_unit_test_setup_teardown(pool_that_is_closed_takes_it_along, setup,
						teardown),
		cmocka_unit_test_setup_teardown(seconds_are_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
