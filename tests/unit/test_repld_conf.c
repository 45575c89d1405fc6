/* SPDX-License-Identifier: BSD-3-Clause */
/* Every key of repld.conf reaches its field, and what is out of bounds names file and key. */
#include "unit.h"

#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "conf.h"

static long file_system;

/* Stands in for a mount, which needs rights. */
int __wrap_statfs(const char *name, struct statfs *fs);

int
__wrap_statfs(const char *name, struct statfs *fs)
{
	assert_non_null(name);
	memset(fs, 0, sizeof(*fs));
	fs->f_type = file_system;
	return 0;
}

static char dir[] = "/tmp/test_repld_conf.XXXXXX";
static char path[64];

static int
make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/repld.conf", dir);
	return 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	return unlink(path) || rmdir(dir);
}

/* A file with a good pool-dir in line 2 and text from line 3 on. */
static int
read_text(const char *text, struct conf *c, struct err *e)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fprintf(f, "[repld]\npool-dir = %s\n%s\n", dir, text) > 0);
	assert_int_equal(fclose(f), 0);
	err_clear(e);
	return conf_read(path, c, e);
}

static void
accept(const char *text, struct conf *c)
{
	struct err e;

	if (read_text(text, c, &e))
		fail_msg("refused: %s", e.text);
}

static void
refuse(const char *text, const char *want)
{
	struct conf c;
	struct err e;

	assert_int_equal(read_text(text, &c, &e), REPL_E_CONFIG);
	assert_int_equal(e.code, REPL_E_CONFIG);
	assert_int_equal(strncmp(e.text, path, strlen(path)), 0);
	assert_string_equal(e.text + strlen(path), want);
	assert_null(c.pool_dir);
	assert_null(c.path);
	conf_fini(&c);
}

static void
check_defaults(const struct conf *c)
{
	assert_null(c->listen);
	assert_null(c->host_key);
	assert_null(c->authorized_keys);
	assert_null(c->user);
	assert_null(c->data_address);
	assert_null(c->data_told);
	assert_null(c->log_file);
	assert_int_equal(c->data_port_first, 0);
	assert_int_equal(c->data_port_last, 0);
	assert_int_equal(c->lanes_max, 16);
	assert_int_equal(c->sessions_max, 64);
	assert_int_equal(c->busy_poll_us, 50);
	assert_int_equal(c->message_size_max, 262144);
	assert_int_equal(c->log, CONF_LOG_STDERR);
	assert_int_equal(c->log_level, CONF_LEVEL_INFO);
	assert_int_equal(c->heartbeat_ms, 1000);
	assert_int_equal(c->heartbeat_timeout_ms, 10000);
	assert_int_equal(c->idle_timeout_ms, 300000);
	for (int f = 0; f < PROFILE_F_COUNT; f++)
		assert_false(c->stated[f].given);
}

static void
what_is_not_given_has_its_default(void **state)
{
	struct conf c;
	struct err e;

	(void)state;
	assert_int_equal(conf_read(NULL, &c, &e), 0);
	check_defaults(&c);
	assert_null(c.path);
	assert_null(c.pool_dir);
	conf_fini(&c);
	accept("", &c);
	check_defaults(&c);
	assert_string_equal(c.path, path);
	assert_string_equal(c.pool_dir, dir);
	conf_fini(&c);
	conf_fini(&c);
}

static void
assert_states(const struct conf *c, enum profile_field f, int value, bool trust)
{
	assert_true(c->stated[f].given);
	assert_int_equal(c->stated[f].value, value);
	assert_int_equal(c->stated[f].trust, trust);
}

static void
every_key_is_read(void **state)
{
	struct conf c;

	(void)state;
	accept("listen = [::1]:7222\nhost-key = /k/host\nauthorized-keys = /k/auth\nuser = repl\n"
	       "data-address = 192.0.2.1\ndata-told = 198.51.100.1\ndata-ports = "
	       "7300-7399\nlanes-max = 64\n"
	       "sessions-max = 10000\nbusy-poll = 0\nmessage-size-max = 1MiB\njournal-max = "
	       "2G\nlog = "
	       "file:/var/log/repld.log\n"
	       "log-level = debug\nheartbeat = 10\nheartbeat-timeout = 20\nidle-timeout = 30\n"
	       "ddio = off\npersistence-domain = system\nrqwrb = pm\nprovider-class = "
	       "iwarp\nnative-flush = yes\n",
	       &c);
	assert_string_equal(c.listen, "[::1]:7222");
	assert_string_equal(c.host_key, "/k/host");
	assert_string_equal(c.authorized_keys, "/k/auth");
	assert_string_equal(c.user, "repl");
	assert_string_equal(c.data_address, "192.0.2.1");
	assert_string_equal(c.data_told, "198.51.100.1");
	assert_int_equal(c.data_port_first, 7300);
	assert_int_equal(c.data_port_last, 7399);
	assert_int_equal(c.lanes_max, 64);
	assert_int_equal(c.sessions_max, 10000);
	assert_int_equal(c.busy_poll_us, 0);
	assert_int_equal(c.message_size_max, 1048576);
	assert_true(c.journal_max == 2ULL << 30);
	assert_int_equal(c.log, CONF_LOG_FILE);
	assert_string_equal(c.log_file, "/var/log/repld.log");
	assert_int_equal(c.log_level, CONF_LEVEL_DEBUG);
	assert_int_equal(c.heartbeat_ms, 10);
	assert_int_equal(c.heartbeat_timeout_ms, 20);
	assert_int_equal(c.idle_timeout_ms, 30);
	assert_states(&c, PROFILE_F_DDIO, PROFILE_DDIO_OFF, false);
	assert_states(&c, PROFILE_F_DOMAIN, PROFILE_WSP, false);
	assert_states(&c, PROFILE_F_RQWRB, PROFILE_RQWRB_PM, false);
	assert_states(&c, PROFILE_F_PROVIDER, PROFILE_PROVIDER_IWARP, false);
	conf_fini(&c);
}

static void
forms_of_values_are_taken(void **state)
{
	struct conf c;

	(void)state;
	accept("listen = 0.0.0.0:0\ndata-ports = 7300\nlog = syslog\ndata-address = "
	       "fe80::1%lo\ndata-told = fe80::1\n"
	       "persistence-domain = memory_controller\nddio = on",
	       &c);
	assert_string_equal(c.listen, "0.0.0.0:0");
	assert_int_equal(c.data_port_first, 7300);
	assert_int_equal(c.data_port_last, 7300);
	assert_int_equal(c.log, CONF_LOG_SYSLOG);
	assert_states(&c, PROFILE_F_DOMAIN, PROFILE_DMP, false);
	assert_states(&c, PROFILE_F_DDIO, PROFILE_DDIO_ON, false);
	conf_fini(&c);
	accept("log = stderr\npersistence-domain = cpu_cache\nddio = probe", &c);
	assert_int_equal(c.log, CONF_LOG_STDERR);
	assert_states(&c, PROFILE_F_DOMAIN, PROFILE_MHP, false);
	assert_false(c.stated[PROFILE_F_DDIO].given);
	conf_fini(&c);
	accept("ddio = off trust-me\npersistence-domain = wsp \t trust-me\nrqwrb = dram\n"
	       "provider-class = software",
	       &c);
	assert_states(&c, PROFILE_F_DDIO, PROFILE_DDIO_OFF, true);
	assert_states(&c, PROFILE_F_DOMAIN, PROFILE_WSP, true);
	assert_states(&c, PROFILE_F_RQWRB, PROFILE_RQWRB_DRAM, false);
	assert_states(&c, PROFILE_F_PROVIDER, PROFILE_PROVIDER_SOFTWARE, false);
	conf_fini(&c);
}

static void
the_pool_dir_is_a_directory_that_is_there(void **state)
{
	static const struct {
		const char *data;
		const char *want;
	} cases[] = {
		{"", ": key 'pool-dir': missing; name the directory of the pools in [repld]"},
		{"[repld]\npool-dir = pools",
		 ":2: key 'pool-dir': 'pools' is not an absolute path, which begins with '/'"},
		{"[repld]\npool-dir = /nowhere/at/all",
		 ": key 'pool-dir': '/nowhere/at/all': No such file or directory"},
		{"[repld]\npool-dir = /dev/null",
		 ": key 'pool-dir': '/dev/null' is not a directory"},
	};
	struct conf c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		assert_true(fputs(cases[i].data, f) >= 0);
		assert_int_equal(fclose(f), 0);
		assert_int_equal(conf_read(path, &c, &e), REPL_E_CONFIG);
		assert_string_equal(e.text + strlen(path), cases[i].want);
	}
	assert_int_equal(conf_read("/nowhere/repld.conf", &c, &e), REPL_E_CONFIG);
	assert_string_equal(e.text, "/nowhere/repld.conf: No such file or directory");
	conf_fini(&c);
}

/* As it is while a disk is not mounted. */
static void
sessions_max_is_read_without_a_pool_dir(void **state)
{
	FILE *f = fopen(path, "w");
	unsigned n = 0;
	struct err e;

	(void)state;
	assert_non_null(f);
	assert_true(fputs("[repld]\npool-dir = /nowhere/at/all\nsessions-max = 7\n", f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(conf_sessions_max(path, &n, &e), 0);
	assert_int_equal(n, 7);
	assert_int_equal(conf_sessions_max("/nowhere/repld.conf", &n, &e), REPL_E_CONFIG);
}

static void
addresses_are_numeric(void **state)
{
	static const char *const bad[] = {
		"127.0.0.1",    ":22",    "localhost:22", "::1:22",          "[::1]",
		"[::1]22",      "[::1]:", "127.0.0.1:",   "127.0.0.1:65536", "[127.0.0.1]:1",
		"127.0.0.1:-1", "[]:22",  "[:22",         "127.0.0.1:22 x",  "*:22",
	};
	char text[128], want[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(text, sizeof(text), "listen = %s", bad[i]);
		(void)snprintf(want, sizeof(want),
			       ":3: key 'listen': '%s' is neither ADDRESS:PORT nor "
			       "[IPV6-ADDRESS]:PORT in numbers",
			       bad[i]);
		refuse(text, want);
	}
	refuse("data-address = target1",
	       ":3: key 'data-address': 'target1' is not a numeric IPv4 or IPv6 address");
	refuse("data-told = target1",
	       ":3: key 'data-told': 'target1' is not a numeric IPv4 or IPv6 address");
	refuse("data-address = fe80::1",
	       ":3: key 'data-address': 'fe80::1' is link-local: name its interface, as "
	       "fe80::1%eth0");
}

/* What is bound is told, too. */
static void
addresses_that_nobody_reaches_are_refused(void **state)
{
	static const char *const keys[] = {"data-address", "data-told"};
	static const char *const bad[] = {"0.0.0.0", "::", "224.0.0.1", "ff02::1"};
	char text[128], want[256];

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(text, sizeof(text), "%s = %s", keys[i % 2], bad[i / 2]);
		(void)snprintf(want, sizeof(want),
			       ":3: key '%s': '%s' is nothing to connect to: name the address by "
			       "which initiators reach this machine",
			       keys[i % 2], bad[i / 2]);
		refuse(text, want);
	}
}

static void
port_ranges_are_in_order(void **state)
{
	static const char *const bad[] = {"0",  "0-9", "65536", "1-65536", "a-b",
					  "1-", "-1",  "1-2-3", "1 - 2",   "123456789-3"};
	char text[128], want[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(text, sizeof(text), "data-ports = %s", bad[i]);
		(void)snprintf(want, sizeof(want),
			       ":3: key 'data-ports': '%s' is neither FIRST-LAST nor one port, "
			       "1 to 65535",
			       bad[i]);
		refuse(text, want);
	}
	refuse("data-ports = 9-8",
	       ":3: key 'data-ports': '9-8' ends before it begins: write it as 8-9");
}

static void
values_out_of_bounds_are_refused(void **state)
{
	(void)state;
	refuse("lanes-max = 65", ":3: key 'lanes-max': '65' is not a whole number from 1 to 64");
	refuse("lanes-max = 0", ":3: key 'lanes-max': '0' is not a whole number from 1 to 64");
	refuse("sessions-max = 10001",
	       ":3: key 'sessions-max': '10001' is not a whole number from 1 to 10000");
	refuse("busy-poll = 1001",
	       ":3: key 'busy-poll': '1001' is not a whole number from 0 to 1000");
	refuse("message-size-max = 4095",
	       ":3: key 'message-size-max': '4095' is not a size from 4096 to 1048576 bytes, "
	       "such as 65536 or 64K");
	refuse("journal-max = 4K",
	       ":3: key 'journal-max': '4K' is neither auto nor a size from 1M on");
	refuse("heartbeat = 9", ":3: key 'heartbeat': '9' is not a whole number from 10 to 60000");
	refuse("heartbeat-timeout = 600001", ":3: key 'heartbeat-timeout': '600001' is not a whole "
					     "number from 20 to 600000");
	refuse("idle-timeout = 86400001",
	       ":3: key 'idle-timeout': '86400001' is not a whole number from 20 to 86400000");
	refuse("log-level = loud",
	       ":3: key 'log-level': 'loud' is none of error, warning, info, debug");
	refuse("ddio = maybe", ":3: key 'ddio': 'maybe' is none of probe, on, off");
	refuse("persistence-domain = adr", ":3: key 'persistence-domain': 'adr' is none of probe, "
					   "dmp, mhp, wsp, memory_controller, cpu_cache, system");
	refuse("rqwrb = ring", ":3: key 'rqwrb': 'ring' is none of probe, dram, pm");
	refuse("native-flush = maybe", ":3: key 'native-flush': 'maybe' is none of probe, no, yes");
	refuse("provider-class = roce",
	       ":3: key 'provider-class': 'roce' is none of probe, software, ib, iwarp");
	refuse("ddio = probe trust-me", ":3: key 'ddio': 'probe' states nothing to be trusted");
	refuse("ddio = trust-me", ":3: key 'ddio': 'trust-me' is none of probe, on, off");
	refuse("ddio = offtrust-me", ":3: key 'ddio': 'offtrust-me' is none of probe, on, off");
	refuse("ddio = off trust", ":3: key 'ddio': 'off trust' is none of probe, on, off");
	refuse("log = file", ":3: key 'log': 'file' is none of stderr, syslog, file:PATH");
	refuse("log = file:x", ":3: key 'log': 'x' is not an absolute path, which begins with '/'");
	refuse("host-key = k",
	       ":3: key 'host-key': 'k' is not an absolute path, which begins with '/'");
	refuse("authorized-keys = k",
	       ":3: key 'authorized-keys': 'k' is not an absolute path, which begins with '/'");
	refuse("user = -x", ":3: key 'user': '-x' is not a user name");
	refuse("user = a b", ":3: key 'user': 'a b' is not a user name");
	refuse("user = a12345678901234567890123456789012",
	       ":3: key 'user': 'a12345678901234567890123456789012' is not a user name");
	refuse("pool-dir = /tmp", ":3: key 'pool-dir': given before in line 2");
}

/* What is kept beside a pool is written; told at the start, not by the first pool. */
static void
the_pool_dir_takes_writes(void **state)
{
	struct conf c;
	struct err e;

	(void)state;
	file_system = HUGETLBFS_MAGIC;
	assert_int_equal(read_text("", &c, &e), REPL_E_CONFIG);
	file_system = 0;
	assert_non_null(strstr(e.text, "key 'pool-dir': '/tmp/test_repld_conf."));
	assert_non_null(strstr(e.text, "is on hugetlbfs, which takes no write(2)"));
	assert_non_null(strstr(e.text, "name a directory of another file system"));
	assert_null(c.pool_dir);
	conf_fini(&c);
	accept("", &c);
	conf_fini(&c);
}

static void
a_heartbeat_comes_before_its_timeout(void **state)
{
	struct conf c;

	(void)state;
	refuse("heartbeat = 500\nheartbeat-timeout = 500",
	       ": key 'heartbeat': 500 ms is not less than heartbeat-timeout, 500 ms");
	refuse("heartbeat = 10000",
	       ": key 'heartbeat': 10000 ms is not less than heartbeat-timeout, 10000 ms");
	accept("heartbeat = 500\nheartbeat-timeout = 501", &c);
	conf_fini(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_given_has_its_default),
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(forms_of_values_are_taken),
		cmocka_unit_test(sessions_max_is_read_without_a_pool_dir),
		cmocka_unit_test(the_pool_dir_is_a_directory_that_is_there),
		cmocka_unit_test(the_pool_dir_takes_writes),
		cmocka_unit_test(addresses_are_numeric),
		cmocka_unit_test(addresses_that_nobody_reaches_are_refused),
		cmocka_unit_test(port_ranges_are_in_order),
		cmocka_unit_test(values_out_of_bounds_are_refused),
		cmocka_unit_test(a_heartbeat_comes_before_its_timeout),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
