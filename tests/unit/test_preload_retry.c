/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for a pool to be tried again has it opened for him, also where it is closed meanwhile
 * and mapped still, as at exit.
 */
#include "unit.h"

#include "fork_amid.h"
#include "../../librepl/preload/pool_open.c"

/* ---- what pool_open.c calls ---- */

struct pool pools[POOLS_MAX];
struct api api;
char *pools_set, *pools_config;

static bool mapped;
static int closes_to; /* the pool's state when the one who tries comes to it */
static unsigned opens;
static bool loads; /* the one who tries, for ever */

enum retry_asked
retry_ask(unsigned pool, uint64_t patience_ns, bool *here)
{
	assert_true(patience_ns > 0);
	if (loads)
		return RETRY_LOADS;
	pools[pool].state = closes_to;
	*here = pool_retry(pool, retry_load(pool));
	return RETRY_TRIED;
}

/* Another process does it: no more is needed here than that it is asked for. */
bool
kin_open(unsigned pool, dev_t dev, ino_t ino)
{
	(void)pool;
	(void)dev;
	(void)ino;
	opens++;
	return false;
}

uint64_t
view_ended(const struct pool *p)
{
	return p->end;
}

bool
view_ends(const struct pool *p, uint64_t *end)
{
	*end = p->end;
	return true;
}

bool
maps_has(unsigned pool)
{
	(void)pool;
	return mapped;
}

bool
pools_may_open(struct pool *p)
{
	(void)p;
	return true;
}

bool
pool_is_over(const struct pool *p)
{
	(void)p;
	return false;
}

struct calm
calm_begin(void)
{
	return (struct calm){.saved_errno = 0};
}

void
calm_end(struct calm c)
{
	(void)c;
}

bool
api_loaded(void)
{
	return !loads;
}

uint64_t
now_ns(void)
{
	return 1;
}

/* ---- and what is not called here ---- */

#define NOT_CALLED(declaration)                                                                    \
	declaration                                                                                \
	{                                                                                          \
		abort();                                                                           \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"

NOT_CALLED(bool report(const char *format, ...))
NOT_CALLED(void report_room(void))
NOT_CALLED(const char *api_load(bool alone))
NOT_CALLED(void api_opened(void))
NOT_CALLED(bool loading_now(void))
NOT_CALLED(bool is_sharing(void))
NOT_CALLED(void take_lines(const char *name, const char *text, void (*take)(char *, char *, void *),
			   void *arg))
NOT_CALLED(void register_end_begins(void))
NOT_CALLED(void retry_begin(unsigned pool, const char *(*load)(unsigned),
			    bool (*try)(unsigned, const char *)))
NOT_CALLED(const char *mark_file(const struct pool *p))
NOT_CALLED(bool mark_is_near(struct pool *p))
NOT_CALLED(bool mark_set(struct pool *p))
NOT_CALLED(bool missedmark_take(const char *file))
NOT_CALLED(void missedmark_answered(const char *file))
NOT_CALLED(void missed_flushed(const struct pool *p))
NOT_CALLED(bool missed_renewed(const struct pool *p))
NOT_CALLED(void missed_opened(const struct pool *p))
NOT_CALLED(int view_map(struct pool *p, int fd))
NOT_CALLED(void view_unmap(struct pool *p))
NOT_CALLED(size_t view_has(const struct pool *p, uint64_t off, size_t len))
NOT_CALLED(int view_open(struct pool *p))
NOT_CALLED(int view_again(int fd))
NOT_CALLED(size_t view_data(int fd, size_t off, size_t to))
NOT_CALLED(size_t view_data_end(int fd, size_t off, size_t to))
NOT_CALLED(bool filelock_seen(int fd))
NOT_CALLED(void filelock_close(int fd))
NOT_CALLED(void lost_begin(struct pool *p))
NOT_CALLED(void lost_end(struct pool *p))
NOT_CALLED(void pool_commit_last(struct pool *p))
NOT_CALLED(void pool_serve(unsigned number))
NOT_CALLED(void pool_serve_last(struct pool *p))
NOT_CALLED(bool pool_elsewhere(const struct pool *p))
NOT_CALLED(void kin_failed(unsigned pool))
NOT_CALLED(bool kin_inherits(unsigned pool))
NOT_CALLED(void kin_opened(unsigned pool, dev_t dev, ino_t ino, void (*serve)(unsigned)))
NOT_CALLED(void kin_closed(unsigned pool))

/* ---- the tests ---- */

static int
begin(void **state)
{
	(void)state;
	memset(&pools[0], 0, sizeof(pools[0]));
	(void)pthread_rwlock_init(&pools[0].lock, NULL);
	pools[0].state = POOL_OFF;
	opens = 0;
	loads = false;
	mapped = true;
	return 0;
}

static int
end(void **state)
{
	(void)state;
	return pthread_rwlock_destroy(&pools[0].lock);
}

static void
one_that_is_off_is_tried(void **state)
{
	(void)state;
	closes_to = POOL_OFF;
	assert_false(pool_ready(&pools[0]));
	assert_int_equal(opens, 1);
}

static void
one_that_is_closed_meanwhile_is_opened(void **state)
{
	(void)state;
	closes_to = POOL_CLOSED;
	assert_false(pool_ready(&pools[0]));
	assert_int_equal(opens, 1);
}

static void
one_that_is_unmapped_meanwhile_stays_closed(void **state)
{
	(void)state;
	closes_to = POOL_CLOSED;
	mapped = false;
	assert_true(pool_ready(&pools[0]));
	assert_int_equal(opens, 0);
}

/* It would wait for who waits for it, and so would who loads: neither is done. */
static void
one_that_is_loaded_for_is_not_waited_for(void **state)
{
	(void)state;
	loads = true;
	assert_true(pool_ready(&pools[0]));
	assert_int_equal(opens, 0);
	assert_int_equal(pools[0].state, POOL_OFF);
}

static void
a_copy_that_is_cut_off_is_gone_on_with_soon_at_first(void **state)
{
	struct pool *p = &pools[0];
	uint64_t all = 300 * NS_A_SECOND;
	bool cut;

	(void)state;
	for (uint64_t most = CONNECT_NS; most < all; most *= 2) {
		assert_int_equal(retry_pause(p, all, &cut), most * RETRY_SHARE);
		assert_true(cut);
	}
	assert_int_equal(retry_pause(p, all, &cut), all * RETRY_SHARE);
	assert_false(cut);
}

static void
a_target_that_is_not_reached_has_a_share_of_the_time(void **state)
{
	struct pool *p = &pools[0];
	bool cut;

	(void)state;
	for (uint64_t took = CONNECT_NS / 2; took <= REACHED * CONNECT_NS; took += CONNECT_NS / 2) {
		assert_int_equal(retry_pause(p, took, &cut), took * RETRY_SHARE);
		assert_false(cut);
	}
	assert_int_equal(retry_pause(p, 1, &cut), RETRY_NS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_that_is_off_is_tried, begin, end),
		cmocka_unit_test_setup_teardown(one_that_is_closed_meanwhile_is_opened, begin, end),
		cmocka_unit_test_setup_teardown(one_that_is_unmapped_meanwhile_stays_closed, begin,
						end),
		cmocka_unit_test_setup_teardown(one_that_is_loaded_for_is_not_waited_for, begin,
						end),
		cmocka_unit_test_setup_teardown(
			a_copy_that_is_cut_off_is_gone_on_with_soon_at_first, begin, end),
		cmocka_unit_test_setup_teardown(
			a_target_that_is_not_reached_has_a_share_of_the_time, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
