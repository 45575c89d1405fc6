/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What may be with some replicas only stays in the activity log, for as long as that takes: stores
 * that are not drained, what is sent ahead, a drain that is slow, and what is queued.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "dirty_impl.h"
#include "pending.h"
#include "tempdir.h"

#define MIB    (1ULL << 20)
#define POOL   (64 * MIB)
#define EXTENT (4 * MIB)
#define FIRST  EXTENT       /* what is noted before a drain */
#define SECOND (5 * EXTENT) /* what the drain's own call writes */
#define LONG   40U          /* rounds */

static const struct gen_id gen_now = {{0x77}};
static const struct range second = {.off = SECOND, .len = 8};
static char dir[TEMPDIR_MAX], pool_file[TEMPDIR_MAX + 8];
static struct repl_config config;
static struct local l;
static struct lane_slot slot;
static struct repl r;

static void
begin(void)
{
	memset(&r, 0, sizeof(r));
	memset(&slot, 0, sizeof(slot));
	r.cfg = &config;
	r.slots = &slot;
	local_init(&l);
	assert_int_equal(local_open(&l, pool_file, POOL, NULL), 0);
	l.meta.pool_uuid.b[0] = 9;
	l.meta.pool_size = POOL;
	l.meta.generation.current = gen_now;
	l.meta.state = SIDECAR_UP_TO_DATE;
	l.meta.writer_open = true;
	assert_int_equal(dirty_open(&l, &config, POOL, false, &r.dirty, NULL), 0);
	dirty_begin(r.dirty);
	assert_int_equal(local_store(&l, NULL), 0);
	assert_int_equal(dirty_start(r.dirty, NULL), 0);
	assert_true(dirty_media_ok(r.dirty, NULL));
	/* Its rounds are the test's to make. */
	dirty_thread_stop(r.dirty);
}

static void
end(void)
{
	dirty_close(r.dirty);
	r.dirty = NULL;
	local_fini(&l);
}

static int
setup(void **state)
{
	(void)state;
	assert_int_equal(tempdir_new(dir, 0), 0);
	(void)snprintf(pool_file, sizeof(pool_file), "%s/pool", dir);
	memset(&config, 0, sizeof(config));
	config.target_count = 1;
	(void)snprintf(config.targets[0].host, sizeof(config.targets[0].host), "a");
	config.after_crash = CONFIG_CRASH_DIRTY_MAP;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	tempdir_free(dir);
	return 0;
}

static void
rounds(unsigned n)
{
	while (n--)
		dirty_round(r.dirty);
}

/* Whether the next one would take the replica, which is well, for one that may lack this. */
static bool
dirty_after_crash(uint64_t off)
{
	struct dirty *next = NULL;
	struct local other = l;
	struct range run;
	bool has;

	assert_int_equal(dirty_open(&other, &config, POOL, true, &next, NULL), 0);
	assert_int_equal(dirty_found(next, 0, &gen_now), DIRTY_TRUSTED);
	has = dirtymap_next(next->track[0].current, off, 1, &run) && run.off == off;
	dirty_close(next);
	return has;
}

/* ---- stores, and what is sent ahead ---- */

static void
what_is_not_drained_stays_active(void **state)
{
	unsigned old, turn;

	(void)state;
	for (unsigned before = 0; before < 12; before++) {
		begin();
		old = dirty_store_begin(r.dirty);
		rounds(1);
		turn = dirty_store_begin(r.dirty);
		dirty_active(r.dirty, FIRST, 1);
		rounds(before);
		/* Others come and go. */
		dirty_store_end(r.dirty, old);
		for (unsigned i = 0; i < 100; i++) {
			old = dirty_store_begin(r.dirty);
			rounds(1);
			dirty_store_end(r.dirty, old);
		}
		assert_true(dirty_after_crash(FIRST));
		dirty_store_end(r.dirty, turn);
		rounds(LONG);
		assert_false(dirty_after_crash(FIRST));
		end();
	}
}

/* What replicas are sent before its drain is in the log by then, and until that. */
static void
what_is_sent_ahead_stays_active(void **state)
{
	(void)state;
	for (unsigned drained = 0; drained < 2; drained++) {
		begin();
		assert_false(pending_early(&r, 0, FIRST, 1));
		pending_settle(&r, 0, NULL, 0);
		dirty_active(r.dirty, FIRST, 1);
		assert_true(pending_early(&r, 0, FIRST, 1));
		assert_true(pending_early(&r, 0, FIRST, 1));
		if (drained)
			pending_settle(&r, 0, NULL, 0);
		rounds(LONG);
		assert_int_equal(dirty_after_crash(FIRST), !drained);
		end();
	}
}

/* ---- drains ---- */

static void
drain_begin(bool noted)
{
	uint64_t begin_ns = 0;
	struct err e;

	err_clear(&e);
	assert_true(!noted || pending_note(&slot, FIRST, 1));
	assert_int_equal(pending_active(&r, 0, &second, 1, &begin_ns, &e), 0);
}

/* A drain may take longer than an extent is idle. */
static void
what_is_being_drained_stays_active(void **state)
{
	(void)state;
	begin();
	drain_begin(true);
	rounds(LONG);
	assert_true(dirty_after_crash(FIRST) && dirty_after_crash(SECOND));
	pending_settle(&r, 0, &second, 1);
	rounds(LONG);
	assert_false(dirty_after_crash(FIRST) || dirty_after_crash(SECOND));
	end();
}

/* An append may send what its lane has flushed before; who only appends never drains. */
static void
what_an_append_sends_stays_active(void **state)
{
	(void)state;
	for (unsigned noted = 0; noted < 2; noted++) {
		begin();
		drain_begin(noted);
		rounds(LONG);
		assert_true(dirty_after_crash(SECOND));
		pending_append_end(&r, 0, &second, 1);
		rounds(LONG);
		assert_int_equal(dirty_after_crash(FIRST), noted);
		assert_int_equal(dirty_after_crash(SECOND), noted);
		pending_settle(&r, 0, NULL, 0);
		rounds(LONG);
		assert_false(dirty_after_crash(FIRST) || dirty_after_crash(SECOND));
		end();
	}
}

/* ---- queues ---- */

static uint64_t lag_ms;

static uint64_t
lag_now(void *arg)
{
	assert_ptr_equal(arg, &lag_ms);
	return lag_ms;
}

/* An extent is idle, and what was written there last a queued replica has not got. */
static void
what_is_on_its_way_is_in_the_log(void **state)
{
	static const struct {
		uint64_t lag_ms;
		bool found;
	} cases[] = {{9000, true}, {8999, false}, {0, false}, {3600000, true}};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		begin();
		dirty_watch_lag(r.dirty, lag_now, &lag_ms);
		lag_ms = cases[i].lag_ms;
		dirty_active(r.dirty, FIRST, 1);
		rounds(LONG);
		assert_int_equal(dirty_after_crash(FIRST), cases[i].found);
		end();
	}
}

/* What a drain has queued at its end is as old as that, not as its beginning. */
static void
what_a_slow_drain_has_queued_stays_active(void **state)
{
	(void)state;
	for (unsigned append = 0; append < 2; append++) {
		for (unsigned before = 0; before < 12; before++) {
			begin();
			dirty_watch_lag(r.dirty, lag_now, &lag_ms);
			lag_ms = 0;
			drain_begin(!append);
			rounds(before);
			if (append)
				pending_append_end(&r, 0, &second, 1);
			else
				pending_settle(&r, 0, &second, 1);
			for (lag_ms = 1; lag_ms < 12000; lag_ms += 1000)
				rounds(1);
			assert_int_equal(dirty_after_crash(FIRST), !append);
			assert_true(dirty_after_crash(SECOND));
			end();
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_not_drained_stays_active, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_sent_ahead_stays_active, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_being_drained_stays_active, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_an_append_sends_stays_active, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_on_its_way_is_in_the_log, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_slow_drain_has_queued_stays_active, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
