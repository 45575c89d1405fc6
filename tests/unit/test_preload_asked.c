/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who asks for another try waits for it, but not for ever for the libraries that it takes: they may
 * be waiting for who asks, in a constructor. Nor does it wait for that of another pool.
 */
#include "unit.h"

#include <pthread.h>
#include <unistd.h>

#include "../../librepl/preload/retry.c"

#define PATIENCE_NS 5000000000ULL
#define HANG_S      20
#define SLOW        1U /* to try that pool takes long */

struct pool pools[POOLS_MAX];
unsigned pool_count = 2;

static _Atomic uint64_t time_ns = 1;
static atomic_bool held; /* the constructor has not ended, for which load() waits */
static atomic_uint loads, tries;
static atomic_bool compares; /* who tries the slow one does */

void
descriptors_begin(void)
{
}

bool
pools_any(void)
{
	return true;
}

uint64_t
now_ns(void)
{
	return atomic_load(&time_ns);
}

static void
moment(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static const char *
load(unsigned pool)
{
	(void)pool;
	(void)atomic_fetch_add(&loads, 1);
	while (atomic_load(&held))
		moment();
	return "a library";
}

static bool
try_it(unsigned pool, const char *missing)
{
	assert_string_equal(missing, "a library");
	(void)atomic_fetch_add(&tries, 1);
	if (pool == SLOW)
		atomic_store(&compares, true);
	while (pool == SLOW && atomic_load(&compares))
		moment();
	return true;
}

static void *
time_passes(void *arg)
{
	(void)arg;
	/* Up to 10 s, for the load. */
	for (int i = 0; i < 10000 && atomic_load(&loads) == 0; i++)
		moment();
	(void)atomic_fetch_add(&time_ns, PATIENCE_NS);
	return NULL;
}

static void
libraries_that_wait_for_who_asks_are_not_waited_for(void **unused)
{
	pthread_t clock;
	bool here = false;

	(void)unused;
	atomic_store(&held, true);
	retry_begin(0, load, try_it);
	assert_int_equal(pthread_create(&clock, NULL, time_passes, NULL), 0);
	assert_int_equal(retry_ask(0, PATIENCE_NS, &here), RETRY_LOADS);
	assert_int_equal(pthread_join(clock, NULL), 0);
	assert_false(here);
	assert_int_equal(atomic_load(&tries), 0);
	/* The constructor ends: what was asked for is done, and asked for again is waited for. */
	atomic_store(&held, false);
	for (int i = 0; i < 10000 && atomic_load(&tries) == 0; i++)
		moment();
	assert_int_equal(atomic_load(&tries), 1);
	assert_int_equal(retry_ask(0, PATIENCE_NS, &here), RETRY_TRIED);
	assert_true(here);
	assert_int_equal(atomic_load(&tries), 2);
}

static void *
ask_slow(void *arg)
{
	bool here;

	(void)arg;
	assert_int_equal(retry_ask(SLOW, PATIENCE_NS, &here), RETRY_TRIED);
	return NULL;
}

static void
one_pool_is_not_waited_for_by_another(void **unused)
{
	pthread_t slow;
	bool here = false;

	(void)unused;
	retry_begin(0, load, try_it);
	retry_begin(SLOW, load, try_it);
	assert_int_equal(pthread_create(&slow, NULL, ask_slow, NULL), 0);
	/* Ends what hangs. */
	(void)alarm(HANG_S);
	while (!atomic_load(&compares))
		moment();
	assert_int_equal(retry_ask(0, PATIENCE_NS, &here), RETRY_TRIED);
	assert_true(atomic_load(&compares));
	atomic_store(&compares, false);
	assert_int_equal(pthread_join(slow, NULL), 0);
	(void)alarm(0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libraries_that_wait_for_who_asks_are_not_waited_for),
		cmocka_unit_test(one_pool_is_not_waited_for_by_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
