/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who asks whether a library is being loaded is answered by a look of its own: of the linker's lock
 * another thread's says how it was before.
 */
#include "unit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

static void *held_dlopen(const char *name, int flags);

#define dlopen held_dlopen
#include "../../librepl/preload/loading.c"
#undef dlopen

struct pool pools[POOLS_MAX];
unsigned pool_count = 1;

static atomic_uint looks, let_go; /* so many of them have the lock, and end */
static _Atomic uint64_t time_ns = 1;
static atomic_uint ends_at; /* another one's look does, when that time has been told */

void
descriptors_begin(void)
{
}

uint64_t
now_ns(void)
{
	uint64_t now = atomic_fetch_add(&time_ns, 1);

	if (atomic_load(&ends_at) && atomic_fetch_sub(&ends_at, 1) == 1)
		atomic_store(&since_ns, 0);
	return now;
}

static void
moment(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void *
held_dlopen(const char *name, int flags)
{
	unsigned nth = atomic_fetch_add(&looks, 1);

	(void)name;
	(void)flags;
	while (atomic_load(&let_go) <= nth)
		moment();
	return NULL;
}

static void *
ask(void *arg)
{
	return loading_now() ? arg : NULL;
}

/* Up to that many, for 10 s. */
static void
looks_wait(unsigned count)
{
	for (int i = 0; i < 10000 && atomic_load(&looks) < count; i++)
		moment();
	assert_int_equal(atomic_load(&looks), count);
}

static void
the_look_of_another_thread_does_not_count(void **state)
{
	pthread_t first, second;
	int yes;
	void *is;

	(void)state;
	assert_int_equal(pthread_create(&first, NULL, ask, &yes), 0);
	looks_wait(1);
	assert_int_equal(pthread_create(&second, NULL, ask, &yes), 0);
	for (int i = 0; i < 20; i++)
		moment();
	/* The second one has the linker from here on. */
	atomic_store(&let_go, 1);
	(void)pthread_join(first, &is);
	assert_null(is);
	looks_wait(2);
	(void)atomic_fetch_add(&time_ns, LOOK_NS);
	(void)pthread_join(second, &is);
	assert_non_null(is);
	assert_false(pools[0].try_now);
	atomic_store(&let_go, 2);
	for (int i = 0; i < 10000 && !pools[0].try_now; i++)
		moment();
	assert_true(pools[0].try_now);
	assert_int_equal(atomic_load(&since_ns), 0);
}

static void
one_that_is_long_is_not_waited_for(void **state)
{
	int yes;

	(void)state;
	atomic_store(&since_ns, now_ns());
	(void)atomic_fetch_add(&time_ns, LOOK_NS);
	assert_ptr_equal(ask(&yes), &yes);
	loading_forked();
}

/* Looked at when it is long, and again when it is not there any more. */
static void
one_that_was_long_does_not_count(void **state)
{
	int yes;

	(void)state;
	atomic_store(&looks, 0);
	atomic_store(&let_go, 1);
	atomic_store(&since_ns, now_ns());
	(void)atomic_fetch_add(&time_ns, LOOK_NS);
	atomic_store(&ends_at, 2);
	assert_null(ask(&yes));
	assert_int_equal(atomic_load(&looks), 1);
	loading_forked();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_look_of_another_thread_does_not_count),
		cmocka_unit_test(one_that_is_long_is_not_waited_for),
		cmocka_unit_test(one_that_was_long_does_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
