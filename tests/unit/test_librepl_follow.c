/* SPDX-License-Identifier: BSD-3-Clause */
/* A replica that comes back follows the pool's size, and is not refused for one that changes
 * meanwhile. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>

#include "remote_impl.h"
#include "repl_impl.h"

#define BEFORE (1UL << 20)
#define NOW    (2UL << 20)
#define LATER  (3UL << 20)

static struct repl *handle;
static size_t grows_to; /* amid the request; 0: it doesn't */

int __wrap_remote_pool_open_as(struct remote *r, const char *name, const struct generation *chain,
			       bool equal, struct err *e);
int __wrap_remote_pool_grow(struct remote *r, uint64_t size, bool prepare, uint64_t deadline_ns,
			    struct err *e);
int __wrap_remote_refuse_headers(const struct remote *r, struct err *e);

int
__wrap_remote_pool_open_as(struct remote *r, const char *name, const struct generation *chain,
			   bool equal, struct err *e)
{
	(void)name;
	(void)equal;
	(void)e;
	r->info.meta.generation = *chain;
	return 0;
}

int
__wrap_remote_pool_grow(struct remote *r, uint64_t size, bool prepare, uint64_t deadline_ns,
			struct err *e)
{
	(void)deadline_ns;
	(void)e;
	assert_false(prepare);
	r->info.meta.pool_size = size;
	if (grows_to)
		atomic_store(&handle->size, grows_to);
	return 0;
}

int
__wrap_remote_refuse_headers(const struct remote *r, struct err *e)
{
	(void)r;
	(void)e;
	return 0;
}

/* Of a program at work, whose pool has size NOW. */
static int
setup(void **state)
{
	struct repl *r = handle = calloc(1, sizeof(*r));

	(void)state;
	assert_non_null(r);
	assert_int_equal(repl_config_new(&r->cfg), 0);
	assert_int_equal(repl_config_add_target(r->cfg, "away/pool"), 0);
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_mutex_init(&r->wake_lock, NULL);
	r->replica_count = 1;
	r->ready = true;
	r->size = NOW;
	r->generation.current.b[0] = 1;
	r->local.present = true;
	r->local.meta.generation = r->generation;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	(void)pthread_mutex_destroy(&handle->lock);
	(void)pthread_mutex_destroy(&handle->wake_lock);
	repl_config_free(handle->cfg);
	free(handle);
	return 0;
}

/* Returns what is said of one that has size bytes, which it has follow. */
static int
opens(size_t size, size_t *has)
{
	struct remote *remote = calloc(1, sizeof(*remote));
	bool made = false;
	struct err e;
	int rc;

	assert_non_null(remote);
	err_clear(&e);
	remote->target = handle->cfg->targets[0];
	remote->info.meta.pool_size = size;
	rc = repl_open_pool(handle, remote, &made, &e);
	assert_int_equal(rc, e.code);
	assert_false(made);
	*has = remote->info.meta.pool_size;
	free(remote);
	return rc;
}

/* Whoever resyncs it sees that it has grown since. */
static void
a_growth_that_ends_amid_the_following_is_no_fault(void **state)
{
	size_t has;

	(void)state;
	assert_int_equal(opens(BEFORE, &has), 0);
	assert_int_equal(has, NOW);
	grows_to = LATER;
	assert_int_equal(opens(BEFORE, &has), 0);
	assert_int_equal(has, NOW);
	grows_to = 0;
	assert_int_equal(opens(BEFORE, &has), 0);
	assert_int_equal(has, LATER);
}

/* It was lost over that, and has done it. */
static void
one_that_has_grown_waits_for_the_others(void **state)
{
	size_t has;

	(void)state;
	assert_int_equal(opens(LATER, &has), REPL_E_INVAL);
	handle->growing = true;
	assert_int_equal(opens(LATER, &has), REPL_E_BUSY);
	handle->growing = false;
	handle->size = LATER;
	assert_int_equal(opens(LATER, &has), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_growth_that_ends_amid_the_following_is_no_fault,
						setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_has_grown_waits_for_the_others, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
