/* SPDX-License-Identifier: BSD-3-Clause */
/* Of two that open a pool which has no record yet, one gets it and the other is told. */
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "local.h"
#include "tempdir.h"

static void
begin(struct local *l, const char *file)
{
	local_init(l);
	assert_int_equal(local_open(l, file, 4096, NULL), 0);
	assert_false(l->present);
	assert_int_equal(local_new_id(&l->meta.pool_uuid, NULL), 0);
	l->meta.pool_size = 4096;
	l->meta.state = SIDECAR_UP_TO_DATE;
}

static void
second_record_replaces_none(void **state)
{
	char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 8];
	struct local first, second;
	struct err e;

	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(file, sizeof(file), "%s/pool", dir);
	begin(&first, file);
	begin(&second, file);
	assert_int_equal(local_store(&first, NULL), 0);
	err_clear(&e);
	assert_int_equal(local_store(&second, &e), REPL_E_BUSY);
	local_fini(&second);
	assert_int_equal(local_store(&first, NULL), 0);
	local_fini(&first);
	local_init(&second);
	assert_int_equal(local_open(&second, file, 4096, NULL), 0);
	assert_true(second.present);
	local_fini(&second);
	tempdir_free(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(second_record_replaces_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
