/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who wants to grow waits for resyncs and for others who grow: it is told for which of them in
 * vain, and goes on as soon as one that was before it has given up. Copies that leave no replica
 * whole are made one after the other.
 */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "keeper_impl.h"
#include "repl_impl.h"

#define OP_TIMEOUT_MS 1000U

static struct repl_config cfg;
static struct keeper keeper;
static struct repl *r;

static int
setup(void **state)
{
	pthread_condattr_t attr;

	(void)state;
	r = calloc(1, sizeof(*r));
	if (!r || pthread_condattr_init(&attr) || pthread_condattr_setclock(&attr, CLOCK_MONOTONIC))
		return -1;
	cfg.op_timeout_ms = OP_TIMEOUT_MS;
	r->cfg = &cfg;
	r->replica_count = 1;
	r->replicas[0].keeper = &keeper;
	return pthread_mutex_init(&r->wake_lock, NULL) || pthread_cond_init(&r->wake, &attr);
}

static int
teardown(void **state)
{
	(void)state;
	(void)pthread_cond_destroy(&r->wake);
	(void)pthread_mutex_destroy(&r->wake_lock);
	free(r);
	return 0;
}

static void
nap_ms(unsigned ms)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = (long)(ms * NS_PER_MS)}, NULL);
}

struct grower {
	pthread_t thread;
	int rc;
	struct err e;
};

static void *
grower_main(void *arg)
{
	struct grower *g = arg;

	err_clear(&g->e);
	g->rc = repl_resync_suspend(r, &g->e);
	return NULL;
}

static bool
is_growing(void)
{
	bool growing;

	pthread_mutex_lock(&r->wake_lock);
	growing = r->growing;
	pthread_mutex_unlock(&r->wake_lock);
	return growing;
}

/* Whether somebody is about to grow by then. */
static bool
grows_within(unsigned ms)
{
	uint64_t end_ns = clock_deadline(ms);

	while (!is_growing() && clock_now_ns() < end_ns)
		nap_ms(1);
	return is_growing();
}

static void
a_resync_that_lasts_is_told_from_another_growth(void **state)
{
	struct grower g;

	(void)state;
	assert_true(repl_resync_begin(r));
	(void)grower_main(&g);
	assert_int_equal(g.rc, REPL_E_TIMEOUT);
	assert_non_null(strstr(g.e.text, "resync"));
	repl_resync_end(r);
	assert_int_equal(repl_resync_suspend(r, &g.e), 0);
	(void)grower_main(&g);
	assert_int_equal(g.rc, REPL_E_TIMEOUT);
	assert_non_null(strstr(g.e.text, "another thread's repl_grow()"));
	assert_null(strstr(g.e.text, "resync"));
	repl_resync_resume(r);
}

static void
one_that_gives_up_makes_way(void **state)
{
	struct grower first, second;
	bool made_way;

	(void)state;
	assert_true(repl_resync_begin(r));
	assert_int_equal(pthread_create(&first.thread, NULL, grower_main, &first), 0);
	assert_true(grows_within(OP_TIMEOUT_MS));
	nap_ms(OP_TIMEOUT_MS / 2);
	assert_int_equal(pthread_create(&second.thread, NULL, grower_main, &second), 0);
	(void)pthread_join(first.thread, NULL);
	assert_int_equal(first.rc, REPL_E_TIMEOUT);
	/* Half of the second's time is left. */
	made_way = grows_within(OP_TIMEOUT_MS / 4);
	repl_resync_end(r);
	(void)pthread_join(second.thread, NULL);
	assert_true(made_way);
	assert_int_equal(second.rc, 0);
	repl_resync_resume(r);
}

/* Whoever has begun in between, and ends, is not the one that others wait for. */
static void
one_that_is_not_whole_is_waited_for(void **state)
{
	(void)state;
	r->replica_count = 3;
	for (unsigned i = 0; i < r->replica_count; i++)
		atomic_store(&r->replicas[i].lost, REPL_E_LOST);
	assert_true(repl_direct_begin(r, 0, true));
	assert_false(repl_direct_begin(r, 1, true));
	repl_direct_note(r, 1);
	repl_direct_end(r, 0);
	assert_false(repl_direct_begin(r, 2, true));
	assert_false(repl_direct_begin(r, 2, false));
	repl_direct_end(r, 1);
	assert_true(repl_direct_begin(r, 2, false));
	repl_direct_end(r, 2);
}

/* It lacks what those have that were lost, of whom none may be given up for a copy. */
static void
one_that_lags_is_waited_for(void **state)
{
	(void)state;
	r->replica_count = 4;
	for (unsigned i = 0; i < r->replica_count; i++)
		atomic_store(&r->replicas[i].lost, REPL_E_LOST);
	atomic_store(&r->replicas[2].lost, 0);
	atomic_store(&r->replicas[2].behind, 5);
	assert_false(repl_direct_begin(r, 0, true));
	assert_false(repl_direct_begin(r, 1, true));
	/* Beside another one that has all it holds up nobody, */
	atomic_store(&r->replicas[3].lost, 0);
	assert_true(repl_direct_begin(r, 0, true));
	assert_true(repl_direct_begin(r, 1, true));
	repl_direct_end(r, 0);
	repl_direct_end(r, 1);
	/* ... nor when it has caught up, */
	atomic_store(&r->replicas[3].lost, REPL_E_LOST);
	assert_false(repl_direct_begin(r, 0, true));
	atomic_store(&r->replicas[2].behind, 0);
	assert_true(repl_direct_begin(r, 0, true));
	repl_direct_end(r, 0);
	/* ... or is lost itself. */
	atomic_store(&r->replicas[2].lost, REPL_E_LOST);
	assert_true(repl_direct_begin(r, 0, true));
	assert_false(repl_direct_begin(r, 1, true));
	repl_direct_end(r, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_resync_that_lasts_is_told_from_another_growth,
						setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_gives_up_makes_way, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_is_not_whole_is_waited_for, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_that_lags_is_waited_for, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
