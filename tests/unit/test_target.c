/* SPDX-License-Identifier: BSD-3-Clause */
/* A target is read as written or refused, and no pool name leads out of the pool directory. */
#include "unit.h"

#include "target.h"

struct good {
	const char *text;
	const char *user;
	const char *host;
	unsigned port;
	const char *pool;
};

static const struct good goods[] = {
	{"backup1/orders.pool", "", "backup1", 0, "orders.pool"},
	{"ops@backup1:2222/eu/orders.pool", "ops", "backup1", 2222, "eu/orders.pool"},
	{"backup1", "", "backup1", 0, ""},
	{"backup1:65535", "", "backup1", 65535, ""},
	{"a@b.example.org", "a", "b.example.org", 0, ""},
	{"ann@corp.example@host/p", "ann@corp.example", "host", 0, "p"},
	{"10.1.2.3:1/p", "", "10.1.2.3", 1, "p"},
	{"[::1]/p", "", "::1", 0, "p"},
	{"[2001:db8::1]:22/a/b/c", "", "2001:db8::1", 22, "a/b/c"},
	{"u@[fe80::1%eth0]:7000/p", "u", "fe80::1%eth0", 7000, "p"},
	{"[::ffff:10.0.0.1]", "", "::ffff:10.0.0.1", 0, ""},
	{"h/with space, a@b:c [x]", "", "h", 0, "with space, a@b:c [x]"},
	{"h/a..b", "", "h", 0, "a..b"},
	{"h/repl", "", "h", 0, "repl"},
	{"h/a.repl.pool", "", "h", 0, "a.repl.pool"},
	{"my_host-2/p", "", "my_host-2", 0, "p"},
};

static void
good_targets_are_read_and_written_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		const struct good *g = &goods[i];
		char text[TARGET_TEXT_MAX];
		struct target t;
		struct err e;

		if (target_parse(g->text, g->pool[0] != '\0', &t, &e) != 0)
			fail_msg("%s: %s", g->text, e.text);
		assert_string_equal(t.user, g->user);
		assert_string_equal(t.host, g->host);
		assert_int_equal(t.port, g->port);
		assert_string_equal(t.pool, g->pool);
		target_format(&t, text, sizeof(text));
		assert_string_equal(text, g->text);
	}
}

struct bad {
	const char *text;
	const char *why; /* what the error must say */
};

static const struct bad bad_targets[] = {
	{"", "no host"},
	{"/pool", "no host"},
	{"user@/pool", "no host"},
	{":22/pool", "no host"},
	{"@host/pool", "empty user"},
	{"host", "names no pool"},
	{"host:22", "names no pool"},
	{"host/", "pool name is empty"},
	{"host//etc/passwd", "absolute"},
	{"host:/p", "port"},
	{"host:0/p", "port"},
	{"host:65536/p", "port"},
	{"host:000022/p", "port"},
	{"host:99999999999999999999/p", "port"},
	{"host:+22/p", "port"},
	{"host:-1/p", "port"},
	{"host:2x/p", "port"},
	{"::1/p", "brackets"},
	{"fe80::1/p", "brackets"},
	{"[::1/p", "without ']'"},
	{"[]/p", "no host"},
	{"[::1]x/p", "after ']'"},
	{"[::1]\x1b/p", "after ']'"},
	{"[::1]:/p", "port"},
	{"[::1]22/p", "after ']'"},
	{"[1.2.3.4]/p", "no IPv6"},
	{"[host]/p", "no IPv6"},
	{"[::1%]/p", "no IPv6"},
	{"[%eth0]/p", "no IPv6"},
	{"[::g]/p", "no IPv6"},
	{"[1:2:3:4:5:6:7:8:9:a:b:c:d:e:f:1:2:3:4:5:6:7:8]/p", "no IPv6"},
	{"-oProxyCommand=x/p", "character"},
	{"-host/p", "begins with '-'"},
	{"-l@host/p", "begins with '-'"},
	{"a b@host/p", "character 0x20"},
	{"a;b@host/p", "character 0x3b"},
	{"$(x)@host/p", "character 0x24"},
	{"ho st/p", "character 0x20"},
	{"host\n/p", "character 0x0a"},
	{"h`x`/p", "character 0x60"},
	{"h\xc3\xb6st/p", "character 0xc3"},
};

static void
bad_targets_are_refused_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_targets) / sizeof(bad_targets[0]); i++) {
		struct target t = {.port = 77};
		struct err e = {0};

		if (target_parse(bad_targets[i].text, true, &t, &e) != REPL_E_INVAL ||
		    !strstr(e.text, bad_targets[i].why))
			fail_msg("'%s': '%s'", bad_targets[i].text, e.text);
		assert_int_equal(t.port, 77);
	}
}

static const struct bad bad_names[] = {
	{"", "empty"},
	{"/", "absolute"},
	{"/etc/passwd", "absolute"},
	{"//a", "absolute"},
	{"..", "dot"},
	{".", "dot"},
	{"../a", "dot"},
	{"a/..", "dot"},
	{"a/../b", "dot"},
	{"a/../../../etc/passwd", "dot"},
	{"./a", "dot"},
	{"...", "dot"},
	{".hidden", "dot"},
	{"a/.hidden/b", "dot"},
	{"a/", "empty component"},
	{"a//b", "empty component"},
	{"a.repl", ".repl"},
	{"eu/a.repl", ".repl"},
	{"a.repl/b", ".repl"},
	{"a\nb", "0x0a"},
	{"a\tb", "0x09"},
	{"\x1b[31m", "0x1b"},
	{"a\x7f", "0x7f"},
	{"a\x01/b", "0x01"},
	{"\xc3\xa4", "0xc3"},
	{"a\xff", "0xff"},
};

static void
bad_pool_names_are_refused_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++) {
		struct err e = {0};

		if (pool_name_check(bad_names[i].text, &e) != REPL_E_INVAL ||
		    !strstr(e.text, bad_names[i].why))
			fail_msg("'%s': '%s'", bad_names[i].text, e.text);
	}
}

static void
lengths_are_bounded(void **state)
{
	char text[4096 + 1];
	struct target t;
	struct err e;

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(pool_name_check(text, &e), REPL_E_INVAL);
	assert_int_equal(target_parse(text, false, &t, &e), REPL_E_INVAL);
	text[300] = '@';
	assert_int_equal(target_parse(text, false, &t, &e), REPL_E_INVAL);
	memcpy(text, "h/", 2);
	assert_int_equal(target_parse(text, true, &t, &e), REPL_E_INVAL);

	/* The longest that are allowed. */
	memset(text, 'a', sizeof(text) - 1);
	text[TARGET_COMPONENT_MAX] = '\0';
	assert_int_equal(pool_name_check(text, &e), 0);
	text[TARGET_COMPONENT_MAX] = 'a';
	text[TARGET_COMPONENT_MAX + 1] = '\0';
	assert_int_equal(pool_name_check(text, &e), REPL_E_INVAL);
	text[TARGET_COMPONENT_MAX + 1] = 'a';
	text[TARGET_COMPONENT_MAX] = '/';
	text[TARGET_POOL_MAX] = '\0';
	assert_int_equal(pool_name_check(text, &e), 0);
	text[TARGET_POOL_MAX] = 'a';
	text[TARGET_POOL_MAX + 1] = '\0';
	assert_int_equal(pool_name_check(text, &e), REPL_E_INVAL);
}

static void
longest_target_fits_its_text(void **state)
{
	char text[TARGET_TEXT_MAX];
	struct target t = {.port = 65535};
	struct target back;
	struct err e;

	(void)state;
	memset(t.user, 'u', sizeof(t.user) - 1);
	memset(t.host, 'h', sizeof(t.host) - 1);
	memset(t.pool, 'p', sizeof(t.pool) - 1);
	t.pool[100] = '/';
	target_format(&t, text, sizeof(text));
	assert_int_equal(target_parse(text, true, &back, &e), 0);
	assert_memory_equal(&back, &t, sizeof(t));
}

static void
address_of_errors_has_brackets(void **state)
{
	char host[TARGET_HOST_MAX], out[TARGET_ADDRESS_MAX];

	(void)state;
	assert_string_equal(target_address("a.example", 22, out), "a.example:22");
	assert_string_equal(target_address("fe80::1%eth0", 65535, out), "[fe80::1%eth0]:65535");
	memset(host, ':', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	assert_non_null(strstr(target_address(host, 65535, out), "]:65535"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_targets_are_read_and_written_back),
		cmocka_unit_test(bad_targets_are_refused_with_a_reason),
		cmocka_unit_test(bad_pool_names_are_refused_with_a_reason),
		cmocka_unit_test(lengths_are_bounded),
		cmocka_unit_test(longest_target_fits_its_text),
		cmocka_unit_test(address_of_errors_has_brackets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
