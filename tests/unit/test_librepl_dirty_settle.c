/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nothing says that a replica lacks nothing of the pool's file before that is on media: an extent
 * goes from the activity log behind its sync, as do the maps that a close in order leaves. Where a
 * sync fails it stays, and they are not believed.
 */
#include "unit.h"

#include <stdio.h>

#include "dirty_impl.h"
#include "tempdir.h"

#define MIB    (1ULL << 20)
#define POOL   (64 * MIB)
#define EXTENT (4 * MIB)

static const struct gen_id gen_now = {{0x77}};
static char dir[TEMPDIR_MAX], pool_file[128];
static struct repl_config config;
static struct local l;
static struct dirty *d;

/* How often it was synced, and what happens meanwhile. */
static struct {
	unsigned count;
	int rc;
	void (*meanwhile)(void);
} settled;

int __wrap_local_settle_beside(const struct local *at, uint64_t size, struct err *e);

int
__wrap_local_settle_beside(const struct local *at, uint64_t size, struct err *e)
{
	(void)e;
	assert_ptr_equal(at, &l);
	assert_int_equal(size, POOL);
	settled.count++;
	if (settled.meanwhile)
		settled.meanwhile();
	return settled.rc;
}

static void
begin(bool crashed)
{
	local_init(&l);
	assert_int_equal(local_open(&l, pool_file, POOL, NULL), 0);
	if (!l.present) {
		l.meta.pool_uuid.b[0] = 9;
		l.meta.pool_size = POOL;
		l.meta.generation.current = gen_now;
	}
	l.meta.state = SIDECAR_UP_TO_DATE;
	l.meta.writer_open = true;
	assert_int_equal(local_store(&l, NULL), 0);
	assert_int_equal(dirty_open(&l, &config, POOL, crashed, &d, NULL), 0);
}

static void
start(void)
{
	assert_int_equal(dirty_start(d, NULL), 0);
	/* Its rounds are the test's to make. */
	dirty_thread_stop(d);
}

static int
setup(void **state)
{
	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(pool_file, sizeof(pool_file), "%s/pool", dir);
	memset(&config, 0, sizeof(config));
	memset(&settled, 0, sizeof(settled));
	config.target_count = 1;
	(void)snprintf(config.targets[0].host, sizeof(config.targets[0].host), "a");
	config.after_crash = CONFIG_CRASH_DIRTY_MAP;
	begin(false);
	start();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	dirty_close(d);
	local_fini(&l);
	tempdir_free(dir);
	return 0;
}

static void
rounds(unsigned n)
{
	while (n--)
		dirty_round(d);
}

/* What the next one would find after a crash. */
static uint64_t
dirty_after_crash(void)
{
	struct dirty *next = NULL;
	struct local other = l;
	uint64_t bytes;

	assert_int_equal(dirty_open(&other, &config, POOL, true, &next, NULL), 0);
	assert_int_equal(dirty_found(next, 0, &gen_now), DIRTY_TRUSTED);
	bytes = dirty_bytes(next, 0);
	dirty_close(next);
	return bytes;
}

static void
all_is_logged_and_free(void)
{
	assert_int_equal(dirty_after_crash(), 3 * EXTENT);
	/* A loss waits for that one. */
	assert_int_equal(pthread_mutex_trylock(&d->io_lock), 0);
	pthread_mutex_unlock(&d->io_lock);
}

static void
an_idle_extent_is_synced_before_it_goes(void **state)
{
	(void)state;
	(void)dirty_active(d, EXTENT, 1);
	(void)dirty_active(d, 2 * EXTENT, 1);
	(void)dirty_active(d, POOL - 1, 1);
	settled.meanwhile = all_is_logged_and_free;
	rounds(DIRTY_IDLE_ROUNDS + 1);
	assert_int_equal(settled.count, 1);
	assert_int_equal(dirty_after_crash(), 0);
	settled.meanwhile = NULL;
}

static void
it_is_used(void)
{
	(void)dirty_active(d, EXTENT, 1);
}

static void
what_is_used_meanwhile_stays(void **state)
{
	(void)state;
	(void)dirty_active(d, EXTENT, 1);
	settled.meanwhile = it_is_used;
	rounds(DIRTY_IDLE_ROUNDS + 1);
	assert_int_equal(settled.count, 1);
	assert_int_equal(dirty_after_crash(), EXTENT);
	settled.meanwhile = NULL;
}

/* It could not, in the end. */
static void
it_is_used_and_the_pool_grows(void)
{
	(void)dirty_active(d, EXTENT, 1);
	assert_int_equal(dirty_grow(d, POOL + MIB, NULL), 0);
	dirty_grow_undo(d, POOL);
}

/* A new region is in the place of the one that it was put on in: it is on there, too. */
static void
what_is_used_meanwhile_stays_in_a_pool_that_grows(void **state)
{
	(void)state;
	(void)dirty_active(d, EXTENT, 1);
	settled.meanwhile = it_is_used_and_the_pool_grows;
	rounds(DIRTY_IDLE_ROUNDS + 1);
	assert_int_equal(settled.count, 1);
	settled.meanwhile = NULL;
	assert_int_equal(dirty_after_crash(), EXTENT);
	assert_true(dirty_logged(d, EXTENT, 1));
	/* And goes when it is idle, as others do. */
	rounds(DIRTY_IDLE_ROUNDS + 1);
	assert_int_equal(dirty_after_crash(), 0);
}

static void
nothing_goes_once_the_file_has_lost_something(void **state)
{
	(void)state;
	(void)dirty_active(d, EXTENT, 1);
	settled.rc = REPL_E_IO;
	rounds(DIRTY_IDLE_ROUNDS + 1);
	/* The kernel tells of it once. */
	settled.rc = 0;
	(void)dirty_active(d, 3 * EXTENT, 1);
	rounds(2 * DIRTY_IDLE_ROUNDS + 2);
	assert_int_equal(dirty_after_crash(), 2 * EXTENT);
	assert_true(dirty_media_ok(d, NULL));
}

/* In order, and opened again; what a replica is worth then that was there. */
static enum dirty_trust
closed_with(int rc)
{
	assert_int_equal(dirty_track(d, 0, &gen_now), 0);
	settled.rc = rc;
	dirty_settle(d);
	settled.rc = 0;
	dirty_close(d);
	assert_true(settled.count > 0);
	l.meta.writer_open = false;
	assert_int_equal(local_store(&l, NULL), 0);
	local_fini(&l);
	begin(false);
	return dirty_found(d, 0, &gen_now);
}

static void
a_close_in_order_syncs_the_file(void **state)
{
	(void)state;
	assert_int_equal(closed_with(0), DIRTY_TRUSTED);
}

static void
a_close_that_can_not_is_not_believed(void **state)
{
	(void)state;
	assert_int_equal(closed_with(REPL_E_IO), DIRTY_UNTRUSTED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_idle_extent_is_synced_before_it_goes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_used_meanwhile_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_used_meanwhile_stays_in_a_pool_that_grows,
						setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_goes_once_the_file_has_lost_something,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_close_in_order_syncs_the_file, setup, teardown),
		cmocka_unit_test_setup_teardown(a_close_that_can_not_is_not_believed, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
