/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A range counts as device DAX only if each byte of it lies in a shared mapping of a device that
 * sysfs has among those, by the very node that was mapped. /dev/zero plays the device.
 */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daxmap.h"

#define BASE 0x7f0000000000ULL
#define MIB  (1ULL << 20)

static char dir[] = "/tmp/daxmap.XXXXXX";
static char maps[64];
static struct daxmap_from from = {.maps = maps, .sysfs = dir};
static struct stat zero, null;

static int
setup(void **state)
{
	char command[512];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(stat("/dev/zero", &zero), 0);
	assert_int_equal(stat("/dev/null", &null), 0);
	(void)snprintf(maps, sizeof(maps), "%s/maps", dir);
	(void)snprintf(command, sizeof(command),
		       "cd %s && mkdir -p bus/dax bus/mem dev/char/%u:%u dev/char/%u:%u && "
		       "ln -s ../../../bus/dax dev/char/%u:%u/subsystem && "
		       "ln -s ../../../bus/mem dev/char/%u:%u/subsystem",
		       dir, major(zero.st_rdev), minor(zero.st_rdev), major(null.st_rdev),
		       minor(null.st_rdev), major(zero.st_rdev), minor(zero.st_rdev),
		       major(null.st_rdev), minor(null.st_rdev));
	return system(command);
}

static int
teardown(void **state)
{
	char command[64];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* A line of the maps, from MiB to MiB behind BASE. */
static void
line(const char *mode, unsigned begin, unsigned end, const char *perms, const struct stat *st,
     const char *path)
{
	FILE *f = fopen(maps, mode);

	assert_non_null(f);
	(void)fprintf(f, "%" PRIx64 "-%" PRIx64 " %s 00000000 %02x:%02x %llu      %s\n",
		      (uint64_t)(BASE + begin * MIB), (uint64_t)(BASE + end * MIB), perms,
		      st ? major(st->st_dev) : 0, st ? minor(st->st_dev) : 0,
		      st ? (unsigned long long)st->st_ino : 0, path);
	assert_int_equal(fclose(f), 0);
}

/* 0, or the text must be found in what is said. */
static void
check(uint64_t off, uint64_t len, const char *text)
{
	struct err e;

	err_clear(&e);
	if (!text) {
		assert_int_equal(daxmap_check(&from, (void *)(uintptr_t)(BASE + off), len, &e), 0);
		return;
	}
	assert_int_equal(daxmap_check(&from, (void *)(uintptr_t)(BASE + off), len, &e),
			 REPL_E_REFUSED);
	if (!strstr(e.text, text))
		fail_msg("'%s' is not in: %s", text, e.text);
}

static void
all_of_the_range_is_looked_at(void **state)
{
	(void)state;
	line("w", 0, 1, "rw-p", NULL, "");
	line("a", 1, 3, "rw-s", &zero, "/dev/zero");
	line("a", 3, 4, "rw-s", &zero, "/dev/zero");
	line("a", 5, 6, "rw-s", &zero, "/dev/zero");
	check(1 * MIB, 3 * MIB, NULL);
	check(2 * MIB + 5, MIB + 7, NULL);
	check(1 * MIB, 3 * MIB + 1, "not all of the pool is mapped");
	check(4 * MIB, 1, "not all of the pool is mapped");
	check(5 * MIB, 2 * MIB, "not all of the pool is mapped");
	check(0, 2 * MIB, "memory without a file");
	check(1 * MIB, UINT64_MAX - BASE, "not all of the pool is mapped");
}

static void
nothing_else_counts(void **state)
{
	(void)state;
	line("w", 0, 1, "rw-s", &null, "/dev/null");
	line("a", 1, 2, "rw-p", &zero, "/dev/zero");
	line("a", 2, 3, "rw-s", &null, "/dev/zero");
	line("a", 3, 4, "rw-s", &zero, "/dev/zero (deleted)");
	line("a", 4, 5, "rw-s", &zero, "/dev/absent");
	line("a", 5, 6, "rw-s", NULL, "/SYSV00000000 (deleted)");
	line("a", 6, 7, "rw-s", &zero, "/dev/zero");
	check(0, MIB, "/dev/null, which is no device DAX");
	check(1 * MIB, MIB, "the pool's mapping is of /dev/zero");
	check(2 * MIB, MIB, "another file now");
	check(3 * MIB, MIB, "(deleted)");
	check(4 * MIB, MIB, "/dev/absent");
	check(5 * MIB, MIB, "/SYSV");
	check(5 * MIB, 2 * MIB, "/SYSV");
	check(6 * MIB, MIB, NULL);
}

/* What the kernel writes, and not only what this test does. */
static void
own_memory_is_no_device(void **state)
{
	uint8_t *mem = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *f = tmpfile();
	uint8_t *file;
	struct err e;

	(void)state;
	assert_ptr_not_equal(mem, MAP_FAILED);
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), MIB), 0);
	file = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	err_clear(&e);
	assert_int_equal(daxmap_check(&DAXMAP_SELF, mem, MIB, &e), REPL_E_REFUSED);
	assert_int_equal(daxmap_check(&DAXMAP_SELF, file, MIB, &e), REPL_E_REFUSED);
	from.maps = "/nowhere/maps";
	assert_int_equal(daxmap_check(&from, mem, MIB, &e), REPL_E_REFUSED);
	from.maps = maps;
	(void)munmap(mem, MIB);
	(void)munmap(file, MIB);
	(void)fclose(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_the_range_is_looked_at),
		cmocka_unit_test(nothing_else_counts),
		cmocka_unit_test(own_memory_is_no_device),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
