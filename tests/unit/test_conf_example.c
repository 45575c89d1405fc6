/* SPDX-License-Identifier: BSD-3-Clause */
/* repld takes its example configuration, and what it comments out are the defaults. */
#include "unit.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf.h"

#define EXAMPLE   REPL_SOURCE_DIR "/packaging/repld.conf.example"
#define POOL_DIR  "/var/lib/repld/pools"
#define LINE_SIZE 512

/* "#key = value", not "# prose". */
static bool
is_commented_key(const char *line)
{
	return line[0] == '#' && islower((unsigned char)line[1]) && strchr(line, '=');
}

/* The example with a pool-dir that exists and, if asked, all keys switched on. */
static void
read_example(bool all_keys, struct conf *c)
{
	char path[] = "/tmp/repld-example-XXXXXX";
	char line[LINE_SIZE];
	FILE *in = fopen(EXAMPLE, "r");
	int fd = mkstemp(path);
	FILE *out = fdopen(fd, "w");
	struct err e;
	int rc;

	assert_non_null(in);
	assert_non_null(out);
	while (fgets(line, sizeof(line), in)) {
		if (strstr(line, POOL_DIR))
			(void)fputs("pool-dir = /tmp\n", out);
		else
			(void)fputs(line + (all_keys && is_commented_key(line)), out);
	}
	assert_int_equal(fclose(in), 0);
	assert_int_equal(fclose(out), 0);
	rc = conf_read(path, c, &e);
	(void)unlink(path);
	if (rc)
		fail_msg("%s", e.text);
}

static void
example_is_taken(void **state)
{
	struct conf c;

	(void)state;
	read_example(false, &c);
	assert_string_equal(c.pool_dir, "/tmp");
	assert_string_equal(c.listen, "0.0.0.0:2222");
	assert_null(c.user);
	conf_fini(&c);
}

static void
commented_out_keys_are_the_defaults(void **state)
{
	struct conf c, d;

	(void)state;
	read_example(true, &c);
	assert_int_equal(conf_read(NULL, &d, NULL), 0);
	assert_non_null(c.user);
	assert_int_equal(c.data_port_first, 18000);
	assert_int_equal(c.lanes_max, d.lanes_max);
	assert_int_equal(c.sessions_max, d.sessions_max);
	assert_int_equal(c.message_size_max, d.message_size_max);
	assert_int_equal(c.log, d.log);
	assert_int_equal(c.log_level, d.log_level);
	assert_int_equal(c.heartbeat_ms, d.heartbeat_ms);
	assert_int_equal(c.heartbeat_timeout_ms, d.heartbeat_timeout_ms);
	assert_int_equal(c.idle_timeout_ms, d.idle_timeout_ms);
	assert_memory_equal(c.stated, d.stated, sizeof(c.stated));
	conf_fini(&c);
	conf_fini(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(example_is_taken),
		cmocka_unit_test(commented_out_keys_are_the_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
