/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trim that a target may have yet to do when it is lost is in its dirty map, on whatever lane it
 * was, and is so once: whoever copies it to one that comes back is through with it.
 *
 * The handle and its maps are those of the library; lanes do nothing.
 */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>

#include "clock.h"
#include "dirty.h"
#include "hold.h"
#include "pending.h"
#include "remote_impl.h"
#include "repl_lanes.h"

#define MIB      (1UL << 20)
#define POOL     (64 * MIB)
#define TRIM_OFF (16 * MIB)
#define TRIM_LEN (8 * MIB)
#define REPLICAS 2U
#define LANES    3U

/* Of what a loss, or what it is lost amid, is to be found in the map. */
#define TRIM_LANE   1U
#define SETTLE_LANE 0U
#define OTHER_LANE  2U

static struct repl *r;
static struct local local;
static struct remote remotes[REPLICAS];
static struct lane lanes[REPLICAS][LANES];
static void (*amid)(void); /* the next drain, once */

struct lane *__wrap_remote_lane(struct remote *remote, unsigned lane);
void __wrap_lane_begin(struct lane *l, enum lane_kind kind, uint64_t off, uint64_t len);
void __wrap_lanes_run(struct lane **l, unsigned count, bool (*until)(const struct lane *),
		      uint64_t deadline_ns);
int __wrap_lane_note(struct lane *l, uint64_t off, uint64_t len);
bool __wrap_lane_writes_early(const struct lane *l, uint64_t off, uint64_t len, uint64_t second);
char *__wrap_repl_profile_text(struct remote *remote);

struct lane *
__wrap_remote_lane(struct remote *remote, unsigned lane)
{
	return &lanes[remote - remotes][lane];
}

void
__wrap_lane_begin(struct lane *l, enum lane_kind kind, uint64_t off, uint64_t len)
{
	(void)l;
	(void)kind;
	(void)off;
	(void)len;
}

void
__wrap_lanes_run(struct lane **l, unsigned count, bool (*until)(const struct lane *),
		 uint64_t deadline_ns)
{
	void (*run)(void) = amid;

	(void)l;
	(void)count;
	(void)until;
	(void)deadline_ns;
	amid = NULL;
	if (run)
		run();
}

int
__wrap_lane_note(struct lane *l, uint64_t off, uint64_t len)
{
	(void)l;
	(void)off;
	(void)len;
	return 0;
}

bool
__wrap_lane_writes_early(const struct lane *l, uint64_t off, uint64_t len, uint64_t second)
{
	(void)l;
	(void)off;
	(void)len;
	(void)second;
	return false;
}

char *
__wrap_repl_profile_text(struct remote *remote)
{
	(void)remote;
	return NULL;
}

/* ---- a handle ---- */

static int
setup(void **state)
{
	struct err e;

	(void)state;
	err_clear(&e);
	r = calloc(1, sizeof(*r));
	assert_non_null(r);
	assert_int_equal(repl_config_new(&r->cfg), 0);
	for (unsigned i = 0; i < REPLICAS; i++) {
		assert_int_equal(config_add_target(r->cfg, i ? "u@h/q" : "u@h/p", &e), 0);
		r->replicas[i].remote = &remotes[i];
		r->replicas[i].has.b[0] = (uint8_t)(i + 1);
	}
	r->size = POOL;
	r->replica_count = REPLICAS;
	r->lane_count = LANES;
	r->slots = calloc(LANES, sizeof(*r->slots));
	assert_non_null(r->slots);
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_mutex_init(&r->grow_lock, NULL);
	(void)pthread_mutex_init(&r->reason_lock, NULL);
	(void)pthread_mutex_init(&r->wake_lock, NULL);
	(void)pthread_cond_init(&r->wake, NULL);
	assert_int_equal(pending_trims_init(&r->trims), 0);
	local_init(&local);
	assert_int_equal(dirty_open(&local, r->cfg, POOL, false, &r->dirty, &e), 0);
	memset(lanes, 0, sizeof(lanes));
	amid = NULL;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	dirty_close(r->dirty);
	local_fini(&local);
	pending_trims_fini(&r->trims);
	(void)pthread_cond_destroy(&r->wake);
	(void)pthread_mutex_destroy(&r->wake_lock);
	(void)pthread_mutex_destroy(&r->reason_lock);
	(void)pthread_mutex_destroy(&r->grow_lock);
	(void)pthread_mutex_destroy(&r->lock);
	repl_config_free(r->cfg);
	free(r->slots);
	free(r);
	return 0;
}

static void
trim(void)
{
	assert_int_equal(repl_trim(r, TRIM_LANE, TRIM_OFF, TRIM_LEN), 0);
}

static void
trim_behind(void)
{
	assert_int_equal(repl_trim(r, OTHER_LANE, TRIM_OFF + 2 * TRIM_LEN, TRIM_LEN), 0);
}

static void
settle(void)
{
	assert_int_equal(repl_trim(r, SETTLE_LANE, 0, 0), 0);
}

/* As a keeper does that finds its target silent. */
static void
lose(unsigned replica)
{
	repl_lose(r, replica, REPL_E_LOST, "gone", clock_deadline(1000));
}

static void
lose_first(void)
{
	lose(0);
}

/* As the drain itself does that finds it. */
static void
fail_first(void)
{
	for (unsigned i = 0; i < LANES; i++) {
		lanes[0][i].status = REPL_E_LOST;
		(void)strcpy(lanes[0][i].why, "gone");
	}
}

/* All that is marked was copied. */
static void
copied(unsigned replica)
{
	assert_non_null(dirty_batch_begin(r->dirty, replica));
	dirty_batch_end(r->dirty, replica, true);
	assert_int_equal(dirty_bytes(r->dirty, replica), 0);
}

static void
back(unsigned replica)
{
	memset(lanes[replica], 0, sizeof(lanes[replica]));
	dirty_untrack(r->dirty, replica);
	repl_install(r, replica, &remotes[replica]);
}

static void
drain_all(void)
{
	for (unsigned i = 0; i < LANES; i++)
		assert_int_equal(repl_drain(r, i), 0);
}

static void
hold_once(unsigned replica)
{
	_Atomic int flag = 0;
	const struct hold_wait wait = {.deadline_ns = clock_deadline(1000), .flag = &flag};
	struct err e;

	err_clear(&e);
	assert_int_equal(hold_take(r, replica, &wait, &e), 0);
	hold_release(r);
}

/* ---- once ---- */

static void
what_was_copied_is_not_marked_again(void **state)
{
	(void)state;
	trim();
	lose(0);
	drain_all();
	assert_int_equal(dirty_marked(r->dirty, 0), TRIM_LEN);
	assert_non_null(dirty_batch_begin(r->dirty, 0));
	assert_int_equal(repl_persist(r, TRIM_LANE, 0, 8), 0);
	assert_int_equal(dirty_marked(r->dirty, 0), dirty_grain(r->dirty));
	hold_once(0);
	assert_int_equal(dirty_marked(r->dirty, 0), dirty_grain(r->dirty));
	dirty_batch_end(r->dirty, 0, true);
	/* Nor for the other one that is lost, by whom it was not. */
	lose(1);
	drain_all();
	assert_int_equal(dirty_marked(r->dirty, 0), dirty_grain(r->dirty));
	assert_int_equal(dirty_marked(r->dirty, 1), TRIM_LEN);
}

/* By whichever lane. */
static void
what_is_zero_is_not_marked(void **state)
{
	(void)state;
	trim();
	trim_behind();
	settle();
	lose(0);
	drain_all();
	hold_once(0);
	assert_int_equal(dirty_marked(r->dirty, 0), 0);
}

/* Both have it all then, or have it marked. */
static void
what_was_before_all_were_away_is_not_marked(void **state)
{
	(void)state;
	trim();
	lose(0);
	lose(1);
	trim_behind();
	drain_all();
	copied(0);
	back(0);
	lose(0);
	drain_all();
	assert_int_equal(dirty_marked(r->dirty, 0), 0);
	assert_int_equal(dirty_marked(r->dirty, 1), 2 * TRIM_LEN);
}

/* ---- at all ---- */

static void
a_trim_is_marked_without_another_call(void **state)
{
	(void)state;
	trim();
	lose(0);
	assert_int_equal(dirty_marked(r->dirty, 0), TRIM_LEN);
}

static void
a_trim_amid_which_it_is_lost_is_marked(void **state)
{
	(void)state;
	amid = lose_first;
	trim();
	assert_int_equal(dirty_marked(r->dirty, 0), TRIM_LEN);
	lose(1);
	drain_all();
	assert_int_equal(dirty_marked(r->dirty, 1), TRIM_LEN);
}

static void
a_trim_over_which_it_is_lost_is_marked(void **state)
{
	(void)state;
	amid = fail_first;
	trim();
	assert_int_equal(r->replicas[0].lost, REPL_E_LOST);
	assert_int_equal(dirty_marked(r->dirty, 0), TRIM_LEN);
}

/* It need not have ended anything. */
static void
who_is_lost_amid_a_settling_has_all_marked(void **state)
{
	void (*const how[])(void) = {lose_first, fail_first};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		trim();
		amid = how[i];
		settle();
		drain_all();
		assert_int_equal(r->replicas[0].lost, REPL_E_LOST);
		assert_int_equal(dirty_marked(r->dirty, 0), TRIM_LEN);
		copied(0);
		back(0);
	}
	/* The other one has. */
	lose(1);
	drain_all();
	assert_int_equal(dirty_marked(r->dirty, 1), 0);
}

/* One that is noted while others are ended, and one that begins then and is the last to end. */
static void
a_settling_ends_what_was_before_it(void **state)
{
	(void)state;
	trim();
	amid = trim_behind;
	settle();
	lose(0);
	drain_all();
	assert_int_equal(dirty_marked(r->dirty, 0), TRIM_LEN);
	settle();
	lose(1);
	drain_all();
	assert_int_equal(dirty_marked(r->dirty, 1), 0);
}

/* The one that was the first to begin. */
static void
a_settling_ends_not_what_is_anothers(void **state)
{
	uint64_t number;

	(void)state;
	number = pending_trims_begin(r);
	trim();
	(void)pending_trims_begin(r);
	pending_trims_end(r, number, 0);
	lose(0);
	assert_int_equal(dirty_marked(r->dirty, 0), TRIM_LEN);
}

static void
settle_and_trim(void)
{
	assert_int_equal(repl_trim(r, OTHER_LANE, 0, 0), 0);
	trim_behind();
}

/* Of two at a time the first one to end has not ended what the other one is to. */
static void
settlings_may_overlap(void **state)
{
	(void)state;
	trim();
	amid = settle_and_trim;
	settle();
	lose(0);
	drain_all();
	assert_int_equal(dirty_marked(r->dirty, 0), TRIM_LEN);
}

static void
who_is_back_has_what_comes_then_marked(void **state)
{
	(void)state;
	trim();
	lose(0);
	copied(0);
	back(0);
	trim_behind();
	lose(0);
	drain_all();
	assert_in_range(dirty_marked(r->dirty, 0), TRIM_LEN, 2 * TRIM_LEN);
}

/* Another thread of the parent's was amid them. */
static void
fork_amid(void)
{
	pthread_mutex_lock(&r->trims.lock);
	r->abandoned = true;
	dirty_abandon(r->dirty);
}

static void
a_child_that_comes_back_waits_for_nobody(void **state)
{
	static const struct range none = {0};
	struct err e;

	(void)state;
	err_clear(&e);
	trim();
	for (unsigned i = 0; i < 2; i++) {
		const struct range also = i ? none : (struct range){.off = 0, .len = TRIM_LEN};

		amid = fork_amid;
		(void)lanes_drain(r, SETTLE_LANE, LANE_TRIM, also.off, also.len, &e);
		assert_null(amid);
		assert_int_equal(r->trims.noted.count, i ? 0 : 1);
		pthread_mutex_unlock(&r->trims.lock);
		r->abandoned = false;
	}
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(what_was_copied_is_not_marked_again),
		T(what_is_zero_is_not_marked),
		T(what_was_before_all_were_away_is_not_marked),
		T(a_trim_is_marked_without_another_call),
		T(a_trim_amid_which_it_is_lost_is_marked),
		T(a_trim_over_which_it_is_lost_is_marked),
		T(who_is_lost_amid_a_settling_has_all_marked),
		T(a_settling_ends_what_was_before_it),
		T(a_settling_ends_not_what_is_anothers),
		T(settlings_may_overlap),
		T(who_is_back_has_what_comes_then_marked),
		T(a_child_that_comes_back_waits_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
