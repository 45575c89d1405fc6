/* SPDX-License-Identifier: BSD-3-Clause */
/* The tightest of a group and those above it says what is left, in both versions. */
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>

#include "memroom.h"
#include "tempdir.h"

#define MIB 1048576ULL

static char root[TEMPDIR_MAX];

static void
file_write(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
dir_make(const char *name)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static uint64_t
room(void)
{
	char groups[512];

	(void)snprintf(groups, sizeof(groups), "%s/groups", root);
	return memroom_of(groups, root);
}

static void
version_two(void **state)
{
	(void)state;
	assert_int_equal(tempdir_new(root, 0), 0);
	assert_true(room() == UINT64_MAX);
	file_write("groups", "0::/a/b\n");
	assert_true(room() == UINT64_MAX);
	dir_make("a");
	dir_make("a/b");
	file_write("a/b/memory.max", "max\n");
	file_write("a/b/memory.current", "1048576\n");
	assert_true(room() == UINT64_MAX);
	file_write("a/b/memory.max", "104857600\n");
	assert_int_equal(room(), 83 * MIB);
	/* What is cached of files is given back. */
	file_write("a/b/memory.current", "94371840\n");
	assert_int_equal(room(), 0);
	file_write("a/b/memory.stat", "anon 1\ninactive_file 41943040\nactive_file 20971520\n");
	assert_int_equal(room(), 54 * MIB);
	file_write("a/memory.max", "52428800\n");
	file_write("a/memory.current", "0\n");
	assert_int_equal(room(), 34 * MIB);
	tempdir_free(root);
}

static void
version_one(void **state)
{
	(void)state;
	assert_int_equal(tempdir_new(root, 0), 0);
	file_write("groups", "5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n");
	dir_make("memory");
	dir_make("memory/a");
	file_write("memory/memory.limit_in_bytes", "9223372036854771712\n");
	file_write("memory/memory.usage_in_bytes", "0\n");
	assert_true(room() > 1ULL << 62);
	file_write("memory/a/memory.limit_in_bytes", "104857600\n");
	file_write("memory/a/memory.usage_in_bytes", "52428800\n");
	file_write("memory/a/memory.stat",
		   "cache 9\ninactive_file 1\ntotal_inactive_file 10485760\ntotal_active_file 0\n");
	assert_int_equal(room(), 44 * MIB);
	tempdir_free(root);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_two),
		cmocka_unit_test(version_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
