/* SPDX-License-Identifier: BSD-3-Clause */
/* A revoked key is found in the file, and a file that can't be looked at is not taken for one
 * without it. */
#include "unit.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../librepl/src/revoked.c"

static const char lines[] = "# a comment\n"
			    "host ssh-ed25519 GOOD\n"
			    "@cert-authority * ssh-ed25519 OTHER\n"
			    "@revoked * ssh-ed25519 BAD\n"
			    "@revoked short\n"
			    "@revoked [host]:22 ssh-rsa LAST";

static void
what_is_revoked_is_found(void **state)
{
	char path[] = "/tmp/test_revoked.XXXXXX";
	int fd = mkstemp(path);
	bool found;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, lines, sizeof(lines) - 1), sizeof(lines) - 1);
	(void)close(fd);
	assert_int_equal(revoked_find(path, "BAD", &found), 0);
	assert_true(found);
	assert_int_equal(revoked_find(path, "LAST", &found), 0);
	assert_true(found);
	for (unsigned i = 0; i < 3; i++) {
		static const char *const keys[] = {"GOOD", "OTHER", "NONE"};

		assert_int_equal(revoked_find(path, keys[i], &found), 0);
		assert_false(found);
	}
	(void)unlink(path);
	assert_int_equal(revoked_find(path, "BAD", &found), 0);
	assert_false(found);
}

static void
what_cannot_be_looked_at_is_told(void **state)
{
	struct rlimit old, none;
	bool found;

	(void)state;
	assert_int_equal(revoked_find("/tmp", "BAD", &found), EISDIR);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(revoked_find("/dev/null", "BAD", &found), EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(revoked_find("/dev/null", "BAD", &found), 0);
	assert_false(found);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_revoked_is_found),
		cmocka_unit_test(what_cannot_be_looked_at_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
