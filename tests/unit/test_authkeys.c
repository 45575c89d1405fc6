/* SPDX-License-Identifier: BSD-3-Clause */
/* Authorized keys: plain and "restrict" lines count, other options and bad lines do not. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "authkeys.h"
#include "log.h"

#define KEY_A "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define KEY_B "AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7Zb+/=="

static char path[] = "/tmp/test_authkeys.XXXXXX";

static struct authkeys *
read_bytes(const char *text, size_t len)
{
	struct authkeys *k = NULL;
	struct err e;
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(authkeys_read(path, true, &k, &e), REPL_OK);
	return k;
}

static struct authkeys *
read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static void
check_count(const char *text, unsigned count)
{
	struct authkeys *k = read_text(text);

	assert_int_equal(authkeys_count(k), count);
	authkeys_free(k);
}

static void
test_plain_and_restricted(void **state)
{
	struct authkeys *k = read_text("# comment\n\n  ssh-ed25519 " KEY_A " a comment here\n"
				       "restrict ssh-rsa " KEY_B);

	(void)state;
	assert_int_equal(authkeys_count(k), 2);
	assert_true(authkeys_contain(k, "ssh-ed25519", KEY_A));
	assert_true(authkeys_contain(k, "ssh-rsa", KEY_B));
	assert_false(authkeys_contain(k, "ssh-rsa", KEY_A));
	assert_false(authkeys_contain(k, "ssh-ed25519", "AAAA"));
	authkeys_free(k);
}

static void
test_options_are_not_widened(void **state)
{
	(void)state;
	check_count("command=\"true\" ssh-ed25519 " KEY_A "\n", 0);
	check_count("from=\"10.0.0.1\" ssh-ed25519 " KEY_A "\n", 0);
	check_count("restrict,command=\"true\" ssh-ed25519 " KEY_A "\n", 0);
	check_count("restrict command=\"true\" ssh-ed25519 " KEY_A "\n", 0);
	check_count("cert-authority ssh-ed25519 " KEY_A "\n", 0);
	/* A key inside an option's quotes is no key. */
	check_count("command=\"echo ssh-ed25519 " KEY_A "\" ssh-rsa " KEY_B "\n", 0);
}

static void
test_bad_lines(void **state)
{
	char *text = malloc(100001);

	(void)state;
	check_count("", 0);
	check_count("restrict\nssh-ed25519\nrestrict ssh-ed25519\n", 0);
	check_count("ssh-ed25519 not*base64*at*all*here\n", 0);
	check_count("ssh-ed25519 " KEY_A "==x\n", 0);
	/* What is behind a line that is too long is still read. */
	assert_non_null(text);
	memset(text, 'A', 100000);
	memcpy(text, "ssh-rsa ", 8);
	(void)snprintf(text + 90000, 10000, "\nssh-ed25519 " KEY_A "\n");
	check_count(text, 1);
	free(text);
}

/* Behind one that has a zero byte, too; and it is told which line that is, and why. */
static void
test_zero_byte(void **state)
{
	static const char text[] = "# 1\nssh-ed25519 " KEY_A " a\0b\nssh-rsa " KEY_B "\n"
				   "\0\nother\n\0ssh-ed25519 " KEY_A;
	static char log[] = "/tmp/test_authkeys.log.XXXXXX";
	static char conf_path[] = "repld.conf";
	const struct conf conf = {.path = conf_path,
				  .log = CONF_LOG_FILE,
				  .log_file = log,
				  .log_level = CONF_LEVEL_INFO};
	static const struct {
		unsigned number;
		const char *why;
	} due[] = {{2, "zero byte"}, {4, "zero byte"}, {5, "neither"}, {6, "zero byte"}};
	char line[LOG_LINE_MAX], where[64];
	struct authkeys *k;
	struct err e;
	FILE *f;
	int fd = mkstemp(log);

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(log_open(&conf, &e), 0);
	k = read_bytes(text, sizeof(text) - 1);
	log_close();
	assert_int_equal(authkeys_count(k), 1);
	assert_true(authkeys_contain(k, "ssh-rsa", KEY_B));
	authkeys_free(k);
	f = fopen(log, "r");
	assert_non_null(f);
	for (size_t i = 0; i < sizeof(due) / sizeof(due[0]); i++) {
		(void)snprintf(where, sizeof(where), "%s:%u: ", path, due[i].number);
		assert_non_null(fgets(line, sizeof(line), f));
		if (!strstr(line, where) || !strstr(line, due[i].why))
			fail_msg("not '%s' of line %u: %s", due[i].why, due[i].number, line);
	}
	assert_null(fgets(line, sizeof(line), f));
	(void)fclose(f);
	(void)unlink(log);
}

static void
test_many_lines(void **state)
{
	size_t size = 1100 * (sizeof("ssh-rsa " KEY_B "\n") - 1) + 1;
	char *text = malloc(size);

	(void)state;
	assert_non_null(text);
	text[0] = '\0';
	for (size_t i = 0, len = 0; i < 1100; i++)
		len += (size_t)snprintf(text + len, size - len, "ssh-rsa " KEY_B "\n");
	check_count(text, 1024);
	free(text);
}

static void
test_file_is_closed_to_others(void **state)
{
	struct authkeys *k = read_text("ssh-ed25519 " KEY_A "\n");
	struct err e;

	(void)state;
	authkeys_free(k);
	for (mode_t bit = 002; bit <= 020; bit = (mode_t)(bit << 3)) {
		assert_int_equal(chmod(path, 0600 | bit), 0);
		assert_int_equal(authkeys_read(path, true, &k, &e), REPL_E_REFUSED);
		assert_null(k);
		assert_non_null(strstr(e.text, "chmod"));
	}
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(authkeys_read(path, true, &k, &e), REPL_OK);
	authkeys_free(k);
	assert_int_equal(authkeys_read("/nonexistent/keys", true, &k, &e), REPL_E_NOT_FOUND);
	assert_int_equal(authkeys_read("/tmp", true, &k, &e), REPL_E_REFUSED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_and_restricted),
		cmocka_unit_test(test_options_are_not_widened),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_zero_byte),
		cmocka_unit_test(test_many_lines),
		cmocka_unit_test(test_file_is_closed_to_others),
	};
	int fd = mkstemp(path);
	int failed;

	if (fd < 0 || close(fd) < 0 || !freopen("/dev/null", "w", stderr))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return failed;
}
