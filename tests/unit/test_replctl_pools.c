/* SPDX-License-Identifier: BSD-3-Clause */
/* A target whose list of pools has no end is not asked for ever, nor one that fills the memory with
 * few answers listened to; as many pools as one may have are taken.
 */
#include "unit.h"

#include <stdio.h>

#include "control.h"
#include "ctl.h"
#include "pools.h"

#define PAGE      64U
#define POOLS     65536U
#define CALLS_MAX 2000U

int __wrap_remote_call(struct remote *r, const char *method, struct json_object *params,
		       struct json_object **result, struct err *e);

static unsigned told, calls, pool_count, page = PAGE, members;

/* The next names of pool_count. */
int
__wrap_remote_call(struct remote *r, const char *method, struct json_object *params,
		   struct json_object **result, struct err *e)
{
	struct json_object *pools = json_object_new_array();
	char name[32];

	(void)r;
	(void)e;
	assert_string_equal(method, "pool.list");
	assert_true(++calls < CALLS_MAX);
	for (unsigned i = 0; i < page && told < pool_count; i++) {
		struct json_object *pool = json_object_new_object();

		(void)snprintf(name, sizeof(name), "p%09u", told++);
		json_object_object_add(pool, "name", json_object_new_string(name));
		json_object_object_add(pool, "more", json_object_new_array());
		for (unsigned m = 0; m < members; m++)
			json_object_array_add(json_object_object_get(pool, "more"),
					      json_object_new_array());
		json_object_array_add(pools, pool);
	}
	*result = json_object_new_object();
	json_object_object_add(*result, "pools", pools);
	json_object_object_add(*result, "more", json_object_new_boolean(told < pool_count));
	json_object_put(params);
	return 0;
}

static void
expect_fetch(unsigned count, int rc)
{
	struct json_object *pools = NULL;
	struct ctl c = {0};

	told = calls = 0;
	pool_count = count;
	assert_int_equal(pools_fetch(&c, &pools), rc);
	if (rc) {
		assert_non_null(strstr(c.err.text, "more than 65536 pools"));
		assert_string_equal(c.next, "look at what the target's pool directory holds");
	} else {
		assert_int_equal(json_object_array_length(pools), count);
	}
	json_object_put(pools);
}

static void
list_that_ends_is_taken_whole(void **state)
{
	(void)state;
	expect_fetch(0, 0);
	expect_fetch(1, 0);
	expect_fetch(PAGE, 0);
	expect_fetch(10 * PAGE + 1, 0);
	expect_fetch(POOLS, 0);
}

static void
list_without_end_is_refused(void **state)
{
	(void)state;
	expect_fetch(POOLS + 1, REPL_E_LIMIT);
	expect_fetch(UINT32_MAX, REPL_E_LIMIT);
}

static void
few_answers_with_many_pools_are_refused(void **state)
{
	(void)state;
	page = 4096;
	expect_fetch(POOLS, 0);
	expect_fetch(POOLS + 1, REPL_E_LIMIT);
	page = PAGE;
}

static void
pools_of_many_members_are_refused(void **state)
{
	struct json_object *pools = NULL;
	struct ctl c = {0};

	(void)state;
	members = 100;
	expect_fetch(1, 0);
	members = 1000;
	told = calls = 0;
	pool_count = 1;
	assert_int_equal(pools_fetch(&c, &pools), REPL_E_PROTOCOL);
	assert_string_equal(c.err.text, "pool.list: a pool has 1003 members");
	members = 0;
}

/* Each of them is small enough. */
static void
many_pools_of_many_members_are_refused(void **state)
{
	struct json_object *pools = NULL;
	struct ctl c = {0};

	(void)state;
	members = 250;
	told = calls = 0;
	pool_count = POOLS;
	assert_int_equal(pools_fetch(&c, &pools), REPL_E_PROTOCOL);
	assert_non_null(strstr(c.err.text, "take more than 512 MiB"));
	assert_true(told < POOLS / 8);
	assert_null(pools);
	members = 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_that_ends_is_taken_whole),
		cmocka_unit_test(list_without_end_is_refused),
		cmocka_unit_test(few_answers_with_many_pools_are_refused),
		cmocka_unit_test(pools_of_many_members_are_refused),
		cmocka_unit_test(many_pools_of_many_members_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
