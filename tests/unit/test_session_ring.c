/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive ring is granted where the pool is open for writing, outlives the process without a
 * page cache, and has room for it; it goes with the lanes.
 */
#include "unit.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "session_client.h"
#include "tempdir.h"

#define SIDECAR_PLAIN 8192

static const char ring_params[] = "{\"count\":2,\"msg_size\":4096,\"depth\":2,"
				  "\"providers\":[\"tcp\"],\"ring\":true}";

/* 3 slots of 4096 bytes a lane, and two pages of header and marks. */
#define RING_BYTES (2 * 4096 + 2 * 3 * 4096)

static char memory_dir[TEMPDIR_MAX];

static int
setup_memory(void **state)
{
	struct target_dir *d;

	if (setup(state) || tempdir_new(memory_dir, 0))
		return -1;
	d = *state;
	d->conf.pool_dir = memory_dir;
	return 0;
}

static int
teardown_memory(void **state)
{
	tempdir_free(memory_dir);
	return teardown(state);
}

static void
open_pool(struct client *c, const struct conf *conf, const char *mode)
{
	char params[64];

	client_hello(c, conf, "t");
	(void)snprintf(params, sizeof(params), "{\"name\":\"a\",\"mode\":\"%s\"}", mode);
	call_ok(c, "pool.open", params);
}

static void
make_one(const struct conf *conf)
{
	struct client c;

	client_hello(&c, conf, "t");
	call_ok(&c, "pool.create", "{\"name\":\"a\",\"size\":65536}");
	call_ok(&c, "bye", "{}");
	assert_int_equal(client_join(&c), REPL_OK);
}

static bool
granted(struct client *c, const char *params)
{
	struct json_object *o = call(c, REPL_OK, "lanes.open", params, NULL);
	bool ring = true;

	assert_int_equal(control_get_bool(o, "ring", &ring, NULL), 0);
	json_object_put(o);
	return ring;
}

static off_t
sidecar_size(const struct conf *conf)
{
	char path[128];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/a.repl", conf->pool_dir);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void
it_comes_and_goes_with_the_lanes(void **state)
{
	const struct conf *conf = &((struct target_dir *)*state)->conf;
	struct client c;

	make_one(conf);
	open_pool(&c, conf, "write");
	for (unsigned i = 0; i < 2; i++) {
		assert_true(granted(&c, ring_params));
		assert_int_equal(sidecar_size(conf), SIDECAR_PLAIN + RING_BYTES);
		call_ok(&c, "lanes.close", "{}");
		assert_int_equal(sidecar_size(conf), SIDECAR_PLAIN);
	}
	/* Unless it is asked for there is none. */
	assert_false(granted(&c, "{\"count\":2,\"msg_size\":4096,\"depth\":2,"
				 "\"providers\":[\"tcp\"],\"ring\":false}"));
	call_ok(&c, "lanes.close", "{}");
	call_refused(&c, REPL_E_INVAL, "lanes.open",
		     "{\"count\":1,\"msg_size\":4096,\"depth\":2,\"providers\":[\"tcp\"],"
		     "\"ring\":1}");
	/* pool.mark and the end of the session leave nothing of it. */
	assert_true(granted(&c, ring_params));
	call_ok(&c, "pool.mark", "{\"state\":\"outdated\"}");
	assert_int_not_equal(client_hangup(&c), REPL_OK);
	assert_int_equal(sidecar_size(conf), SIDECAR_PLAIN);
}

static void
a_pool_open_for_reading_has_none(void **state)
{
	const struct conf *conf = &((struct target_dir *)*state)->conf;
	struct client c;

	make_one(conf);
	open_pool(&c, conf, "stable");
	assert_false(granted(&c, ring_params));
	assert_int_equal(client_hangup(&c), REPL_OK);
	assert_int_equal(sidecar_size(conf), SIDECAR_PLAIN);
}

/* Said by the administrator, and by nobody else. */
static void
receive_buffers_in_dram_are_none(void **state)
{
	struct conf *conf = &((struct target_dir *)*state)->conf;
	struct client c;

	make_one(conf);
	conf->stated[PROFILE_F_RQWRB].given = true;
	conf->stated[PROFILE_F_RQWRB].value = PROFILE_RQWRB_DRAM;
	open_pool(&c, conf, "write");
	assert_false(granted(&c, ring_params));
	call_ok(&c, "pool.close", "{}");
	assert_int_equal(client_hangup(&c), REPL_OK);
}

static void
without_room_the_lanes_do_without(void **state)
{
	const struct conf *conf = &((struct target_dir *)*state)->conf;
	struct rlimit was, low;
	struct client c;

	make_one(conf);
	open_pool(&c, conf, "write");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	low = was;
	low.rlim_cur = SIDECAR_PLAIN + 4096;
	/* As repld does: what the session tells of itself may not be written, either. */
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	assert_false(granted(&c, ring_params));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	call_ok(&c, "pool.close", "{}");
	assert_int_equal(client_hangup(&c), REPL_OK);
	assert_int_equal(sidecar_size(conf), SIDECAR_PLAIN);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup_memory, teardown_memory)
	const struct CMUnitTest tests[] = {
		T(it_comes_and_goes_with_the_lanes),
		T(a_pool_open_for_reading_has_none),
		T(receive_buffers_in_dram_are_none),
		T(without_room_the_lanes_do_without),
	};

	if (access("/dev/shm", W_OK) != 0)
		return 0;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)unsetenv("SSH_CONNECTION");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
