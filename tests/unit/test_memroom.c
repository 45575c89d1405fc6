/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tightest of a group, those above it and the machine says what is left, in both versions, with
 * the swap that may be used.
 */
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>

#include "memroom.h"
#include "tempdir.h"

#define MIB 1048576ULL

static char root[TEMPDIR_MAX];
static uint64_t swap;

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
	char groups[512], meminfo[512];

	(void)snprintf(groups, sizeof(groups), "%s/groups", root);
	(void)snprintf(meminfo, sizeof(meminfo), "%s/meminfo", root);
	return memroom_of(groups, root, meminfo, swap);
}

static void
machine(unsigned available_mib, unsigned swap_mib)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "MemTotal:       %8u kB\nMemFree:               1 kB\n"
		       "MemAvailable:   %8u kB\nSwapCached:            0 kB\n",
		       2048 * available_mib, 1024 * available_mib);
	file_write("meminfo", text);
	swap = swap_mib * MIB;
}

static void
version_two(void **state)
{
	(void)state;
	assert_int_equal(tempdir_new(root, 0), 0);
	swap = 0;
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
	swap = 0;
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

/* No more is swapped than there is, and than the group and those above it may. */
static void
swap_of_version_two(void **state)
{
	(void)state;
	assert_int_equal(tempdir_new(root, 0), 0);
	swap = 0;
	file_write("groups", "0::/a/b\n");
	dir_make("a");
	dir_make("a/b");
	file_write("a/b/memory.max", "104857600\n");
	file_write("a/b/memory.current", "52428800\n");
	machine(1000, 0);
	assert_int_equal(room(), 34 * MIB);
	machine(1000, 200);
	assert_int_equal(room(), 234 * MIB);
	file_write("a/b/memory.swap.max", "max\n");
	file_write("a/b/memory.swap.current", "0\n");
	assert_int_equal(room(), 234 * MIB);
	file_write("a/b/memory.swap.max", "0\n");
	assert_int_equal(room(), 34 * MIB);
	file_write("a/b/memory.swap.max", "41943040\n");
	file_write("a/b/memory.swap.current", "10485760\n");
	assert_int_equal(room(), 64 * MIB);
	machine(1000, 20);
	assert_int_equal(room(), 54 * MIB);
	file_write("a/memory.swap.max", "0\n");
	file_write("a/memory.swap.current", "0\n");
	assert_int_equal(room(), 34 * MIB);
	tempdir_free(root);
}

/* There it is counted with memory, and only where that is on. */
static void
swap_of_version_one(void **state)
{
	(void)state;
	assert_int_equal(tempdir_new(root, 0), 0);
	swap = 0;
	file_write("groups", "4:memory:/a/b\n");
	dir_make("memory");
	dir_make("memory/a");
	dir_make("memory/a/b");
	file_write("memory/a/b/memory.limit_in_bytes", "104857600\n");
	file_write("memory/a/b/memory.usage_in_bytes", "52428800\n");
	machine(1000, 200);
	assert_int_equal(room(), 234 * MIB);
	file_write("memory/a/b/memory.memsw.limit_in_bytes", "9223372036854771712\n");
	file_write("memory/a/b/memory.memsw.usage_in_bytes", "62914560\n");
	assert_int_equal(room(), 234 * MIB);
	file_write("memory/a/b/memory.memsw.limit_in_bytes", "104857600\n");
	assert_int_equal(room(), 24 * MIB);
	file_write("memory/a/b/memory.memsw.limit_in_bytes", "209715200\n");
	assert_int_equal(room(), 124 * MIB);
	/* What is cached is counted there, too. */
	file_write("memory/a/b/memory.stat", "cache 9\ntotal_inactive_file 10485760\n");
	assert_int_equal(room(), 134 * MIB);
	/* One above that bounds both in one bounds neither by itself. */
	file_write("memory/a/memory.limit_in_bytes", "1048576000\n");
	file_write("memory/a/memory.usage_in_bytes", "0\n");
	file_write("memory/a/memory.memsw.limit_in_bytes", "1048576000\n");
	file_write("memory/a/memory.memsw.usage_in_bytes", "0\n");
	assert_int_equal(room(), 134 * MIB);
	tempdir_free(root);
}

static void
machine_alone(void **state)
{
	(void)state;
	assert_int_equal(tempdir_new(root, 0), 0);
	swap = 0;
	machine(100, 0);
	assert_int_equal(room(), 84 * MIB);
	machine(100, 50);
	assert_int_equal(room(), 134 * MIB);
	machine(0, 10);
	assert_int_equal(room(), 0);
	file_write("meminfo", "MemTotal: 1 kB\n");
	assert_true(room() == UINT64_MAX);
	/* Less than what the group leaves. */
	file_write("groups", "0::/a\n");
	dir_make("a");
	file_write("a/memory.max", "104857600\n");
	file_write("a/memory.current", "0\n");
	file_write("a/memory.swap.max", "0\n");
	file_write("a/memory.swap.current", "0\n");
	machine(60, 50);
	assert_int_equal(room(), 44 * MIB);
	tempdir_free(root);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_two),         cmocka_unit_test(version_one),
		cmocka_unit_test(swap_of_version_two), cmocka_unit_test(swap_of_version_one),
		cmocka_unit_test(machine_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
