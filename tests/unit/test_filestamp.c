/* SPDX-License-Identifier: BSD-3-Clause */
/* Another file, or other contents, are noticed, and once. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "filestamp.h"

static char path[] = "/tmp/repld-filestamp-XXXXXX";

static void
another_file_is_noticed_once(void **state)
{
	struct filestamp seen = {0};
	char other[sizeof(path) + 8];

	(void)state;
	assert_true(filestamp_changed(path, &seen));
	assert_false(filestamp_changed(path, &seen));
	assert_int_equal(truncate(path, 1), 0);
	assert_true(filestamp_changed(path, &seen));
	assert_false(filestamp_changed(path, &seen));
	(void)snprintf(other, sizeof(other), "%s.new", path);
	assert_int_equal(rename(path, other), 0);
	assert_false(filestamp_changed(path, &seen));
	assert_true(filestamp_changed("/", &seen));
	assert_true(filestamp_changed(other, &seen));
	assert_int_equal(rename(other, path), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_file_is_noticed_once),
	};
	int fd = mkstemp(path);
	int failed;

	if (fd < 0 || close(fd) < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return failed;
}
