/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a restore, or a sync, finds at its end is what it looked at in the beginning: a file or
 * a record that came meanwhile is left alone, and data that could not be synced are not taken up.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "poolfile.h"
#include "restoring.h"
#include "tempdir.h"

int __real_fsync(int fd);
int __wrap_fsync(int fd);

static bool device_fails;

int
__wrap_fsync(int fd)
{
	struct stat st;

	if (!device_fails || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return __real_fsync(fd);
	device_fails = false; /* a descriptor is told of it once */
	errno = EIO;
	return -1;
}

struct place {
	char dir[TEMPDIR_MAX];
	char file[TEMPDIR_MAX + 16], record[TEMPDIR_MAX + 16];
	char temp[TEMPDIR_MAX + 16], other[TEMPDIR_MAX + 16];
};

static void
put(const char *path, const char *text)
{
	char page[4096] = {0};
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	(void)snprintf(page, sizeof(page), "%s", text);
	assert_int_equal(fwrite(page, 1, sizeof(page), f), sizeof(page));
	assert_int_equal(fclose(f), 0);
}

static void
assert_is(const char *path, const char *text)
{
	char page[4096] = {0};
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	assert_int_equal(fread(page, 1, sizeof(page), f), sizeof(page));
	assert_int_equal(fclose(f), 0);
	assert_string_equal(page, text);
}

static void
place_make(struct place *p)
{
	assert_int_equal(tempdir_new(p->dir, 0), 0);
	(void)snprintf(p->file, sizeof(p->file), "%s/pool", p->dir);
	(void)snprintf(p->record, sizeof(p->record), "%s/pool.repl", p->dir);
	(void)snprintf(p->temp, sizeof(p->temp), "%s/pool.restoring", p->dir);
	(void)snprintf(p->other, sizeof(p->other), "%s/other", p->dir);
}

/* As far as all data are there. */
static void
restore(struct restoring *r, const struct place *p)
{
	assert_int_equal(restoring_init(r, p->file, NULL), 0);
	assert_int_equal(restoring_look(r, NULL), 0);
	assert_int_equal(restoring_lock_replaced(r, NULL), 0);
	assert_int_equal(restoring_open(r, 4096, NULL), 0);
	put(p->temp, "restored");
}

static int
finish(struct restoring *r)
{
	struct err e;
	int rc;

	err_clear(&e);
	rc = restoring_settle(r, &e);
	if (!rc)
		rc = restoring_place(r, &e);
	if (!rc)
		rc = restoring_forget(r, &e);
	restoring_fini(r);
	return rc;
}

static void
what_was_not_synced_is_not_taken_up(void **state)
{
	struct restoring r;
	struct place p;

	(void)state;
	place_make(&p);
	restore(&r, &p);
	device_fails = true;
	assert_int_equal(finish(&r), REPL_E_IO);
	assert_int_not_equal(access(p.file, F_OK), 0);
	assert_int_not_equal(access(p.temp, F_OK), 0);
	tempdir_free(p.dir);
}

static void
record_of_a_file_that_came_stays(void **state)
{
	struct restoring r;
	struct place p;

	(void)state;
	place_make(&p);
	restore(&r, &p);
	put(p.file, "came");
	put(p.record, "its record");
	assert_int_equal(finish(&r), REPL_E_EXISTS);
	assert_is(p.file, "came");
	assert_is(p.record, "its record");
	assert_is(p.temp, "restored");
	tempdir_free(p.dir);
}

static void
file_that_came_in_place_of_the_other_stays(void **state)
{
	struct restoring r;
	struct place p;

	(void)state;
	place_make(&p);
	put(p.file, "before");
	restore(&r, &p);
	put(p.other, "came");
	assert_int_equal(rename(p.other, p.file), 0);
	assert_int_equal(finish(&r), REPL_E_EXISTS);
	assert_is(p.file, "came");
	assert_is(p.temp, "restored");
	tempdir_free(p.dir);
}

/* What was there all the time goes: an old record is not of the new data. */
static void
file_and_record_are_replaced(void **state)
{
	struct restoring r;
	struct place p;

	(void)state;
	place_make(&p);
	put(p.file, "before");
	put(p.record, "its record");
	restore(&r, &p);
	assert_int_equal(finish(&r), 0);
	assert_is(p.file, "restored");
	assert_int_not_equal(access(p.record, F_OK), 0);
	tempdir_free(p.dir);
}

/* Else the record of what was read would be written beside another file. */
static void
file_replaced_while_it_is_read_is_seen(void **state)
{
	struct poolfile f;
	struct place p;
	struct err e;

	(void)state;
	place_make(&p);
	put(p.file, "before");
	put(p.other, "came");
	poolfile_init(&f);
	err_clear(&e);
	assert_int_equal(poolfile_open(&f, p.file, &e), 0);
	assert_int_equal(poolfile_unchanged(&f, &e), 0);
	assert_int_equal(rename(p.other, p.file), 0);
	assert_int_equal(poolfile_unchanged(&f, &e), REPL_E_FAILED);
	assert_int_equal(unlink(p.file), 0);
	assert_int_equal(poolfile_unchanged(&f, &e), REPL_E_FAILED);
	poolfile_fini(&f);
	tempdir_free(p.dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_not_synced_is_not_taken_up),
		cmocka_unit_test(record_of_a_file_that_came_stays),
		cmocka_unit_test(file_that_came_in_place_of_the_other_stays),
		cmocka_unit_test(file_and_record_are_replaced),
		cmocka_unit_test(file_replaced_while_it_is_read_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
