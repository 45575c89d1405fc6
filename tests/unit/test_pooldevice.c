/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of all that can stand in a pool's place only a link to a device-DAX device
 * counts as one: sysfs says which devices those are, and how large.
 */
#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "pooldevice.h"

static void
run(const char *command)
{
	assert_int_equal(system(command), 0);
}

static void
sysfs_tells_the_size_of_devdax_alone(void **state)
{
	char dir[] = "/tmp/pooldevice.XXXXXX";
	char command[1024];

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(command, sizeof(command),
		       "cd %s && mkdir -p bus/dax bus/other/dax2 dev/char/252:7 dev/char/252:8 "
		       "dev/char/252:9 dev/char/252:10 && "
		       "ln -s ../../../bus/dax dev/char/252:7/subsystem && "
		       "echo 266338304 >dev/char/252:7/size && "
		       "ln -s ../../../bus/other/dax2 dev/char/252:8/subsystem && "
		       "echo 4096 >dev/char/252:8/size && echo 4096 >dev/char/252:9/size && "
		       "ln -s ../../../bus/dax dev/char/252:10/subsystem",
		       dir);
	run(command);
	assert_int_equal(pooldevice_size(dir, makedev(252, 7)), 266338304);
	assert_int_equal(pooldevice_size(dir, makedev(252, 8)), 0);  /* another bus */
	assert_int_equal(pooldevice_size(dir, makedev(252, 9)), 0);  /* of no bus */
	assert_int_equal(pooldevice_size(dir, makedev(252, 10)), 0); /* without a size */
	assert_int_equal(pooldevice_size(dir, makedev(252, 11)), 0); /* not there */
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	run(command);
}

/* As sysfs has a namespace of an NVDIMM, and a device whose memory has no name. */
static void
a_namespace_made_anew_is_another_one(void **state)
{
	static const char uuid[] = "0c9a5e0e-ae5e-4a6f-b1c6-3d1e3f1f9f10";
	char dir[] = "/tmp/pooldevice.XXXXXX";
	char command[1024];
	struct gen_id want, first, second;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(
		command, sizeof(command),
		"cd %s && mkdir -p bus/dax dev/char devices/ndbus0/region0/dax0.1/dax0.0 "
		"devices/hmem/dax1.0 && "
		"ln -s ../../devices/ndbus0/region0/dax0.1/dax0.0 dev/char/252:7 && "
		"ln -s ../../devices/hmem/dax1.0 dev/char/252:8 && "
		"ln -s ../../../../../bus/dax devices/ndbus0/region0/dax0.1/dax0.0/subsystem && "
		"ln -s ../../../bus/dax devices/hmem/dax1.0/subsystem && "
		"echo %s >devices/ndbus0/region0/dax0.1/uuid",
		dir, uuid);
	run(command);
	assert_true(pooldevice_identity(dir, makedev(252, 7), &first));
	assert_true(gen_id_parse(uuid, &want) && gen_id_equal(&want, &first));
	assert_false(pooldevice_identity(dir, makedev(252, 8), &second)); /* nothing says */
	assert_false(pooldevice_identity(dir, makedev(252, 9), &second)); /* not there */
	(void)snprintf(command, sizeof(command), "echo 1%s >%s/devices/ndbus0/region0/dax0.1/uuid",
		       uuid + 1, dir);
	run(command);
	assert_true(pooldevice_identity(dir, makedev(252, 7), &second));
	assert_false(gen_id_equal(&first, &second));
	(void)snprintf(command, sizeof(command), "echo >%s/devices/ndbus0/region0/dax0.1/uuid",
		       dir);
	run(command);
	assert_false(pooldevice_identity(dir, makedev(252, 7), &second));
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	run(command);
}

static void
nothing_else_is_a_device(void **state)
{
	char dir[] = "/tmp/pooldevice.XXXXXX";
	char command[512];
	struct stat st;
	struct err e;
	int at, fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(command, sizeof(command),
		       "cd %s && echo >file && ln -s /dev/null null && ln -s file link && "
		       "ln -s nowhere dangling && mkdir dir && ln -s loop loop",
		       dir);
	run(command);
	at = open(dir, O_RDONLY | O_DIRECTORY);
	assert_true(at >= 0);
	assert_false(pooldevice_is(at, "file"));
	assert_false(pooldevice_is(at, "null"));
	assert_false(pooldevice_is(at, "link"));
	assert_false(pooldevice_is(at, "dangling"));
	assert_false(pooldevice_is(at, "dir"));
	assert_false(pooldevice_is(at, "loop"));
	assert_false(pooldevice_is(at, "absent"));
	/* It was one when it was looked at. */
	err_clear(&e);
	assert_int_equal(pooldevice_open(at, "null", "pool", O_RDWR, false, &fd, &st, &e),
			 REPL_E_REFUSED);
	assert_int_equal(fd, -1);
	(void)close(at);
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	run(command);
}

static void
a_character_device_without_devdax_holds_nothing(void **state)
{
	struct stat st;
	struct err e;

	(void)state;
	err_clear(&e);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(pooldevice_is_open(&st));
	assert_int_equal(pooldevice_check(&st, "pool", 4096, &e), REPL_E_NOSPC);
	assert_non_null(strstr(e.text, "4096"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sysfs_tells_the_size_of_devdax_alone),
		cmocka_unit_test(a_namespace_made_anew_is_another_one),
		cmocka_unit_test(nothing_else_is_a_device),
		cmocka_unit_test(a_character_device_without_devdax_holds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
