/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has a pool open serves whatever is posted: each byte up to the pool's end is flushed and
 * drained before it is told; of what lies behind that it is told that the replicas can't have it,
 * and of nothing else.
 */
#include "unit.h"

#include <string.h>

#include "../../librepl/preload/kin.c"
#include "../../librepl/preload/pools_kin.c"
#include "../../librepl/preload/proc.c"

#define GIB  (1ULL << 30)
#define FAR  (3 * GIB / 2) /* two of them in one word are all to the end */
#define PAGE 4096U
#define POOL 2U

/* ---- what pools_kin.c calls ---- */

struct pool pools[POOLS_MAX];

static uint64_t flushed_to, flushed, behind_from, behind_to, grows_to;
static unsigned drains, grows, told;
static unsigned anew, marks;
static bool drained; /* all that was flushed */
static bool unread;  /* what comes next can't be read */

unsigned
lane_of_thread(const struct pool *p)
{
	(void)p;
	return 0;
}

int
lane_flush_there(struct pool *p, unsigned lane, uint64_t off, size_t len, enum look look)
{
	(void)lane;
	assert_int_equal(look, LOOK_CHANGED);
	assert_true(off + len <= p->size);
	if (unread) {
		p->unread = true;
		return 0;
	}
	flushed += len;
	if (off + len > flushed_to)
		flushed_to = off + len;
	drained = false;
	return 0;
}

int
lane_drain(struct pool *p, unsigned lane)
{
	(void)p;
	(void)lane;
	drains++;
	drained = true;
	return 0;
}

void
pool_behind(struct pool *p, uint64_t from, uint64_t to)
{
	(void)p;
	told++;
	behind_from = from;
	behind_to = to;
}

bool
pool_grow(struct pool *p, uint64_t end)
{
	(void)end;
	grows++;
	if (grows_to > p->size)
		p->size = grows_to;
	return true;
}

void
pool_anew(struct pool *p)
{
	assert_int_equal(atomic_load(&kin->pools[POOL].served), 0);
	p->unread = unread = false;
	drained = true;
	anew++;
}

bool
mark_set(struct pool *p)
{
	(void)p;
	marks++;
	return true;
}

void
pool_commit(struct pool *p, uint64_t to)
{
	(void)p;
	(void)to;
}

int
pool_commit_locked(struct pool *p)
{
	(void)p;
	return 0;
}

void
lost_look(struct pool *p, bool now)
{
	(void)p;
	(void)now;
}

void
pool_failed(const struct pool *p, int rc, const char *what)
{
	(void)p;
	(void)rc;
	(void)what;
	fail();
}

struct calm
calm_begin(void)
{
	return (struct calm){0};
}

void
calm_end(struct calm c)
{
	(void)c;
}

bool
is_sharing(void)
{
	return false;
}

bool
pool_due(struct pool *p)
{
	(void)p;
	return false;
}

bool
pool_ready(struct pool *p)
{
	(void)p;
	return true;
}

uint64_t
now_ns(void)
{
	return 0;
}

bool
report(const char *format, ...)
{
	(void)format;
	return true;
}

/* ---- the tests ---- */

static int
begin(void **state)
{
	(void)state;
	kin_begin();
	kin_forked();
	memset(&pools[POOL], 0, sizeof(pools[POOL]));
	pools[POOL].state = POOL_OPEN;
	pools[POOL].size = 130 * GIB;
	flushed_to = flushed = behind_from = behind_to = grows_to = 0;
	drains = grows = told = anew = marks = 0;
	unread = false;
	drained = false;
	return 0;
}

/* Pages that are far from one another, more than there are words. */
static void
post_far(uint64_t off)
{
	for (uint64_t i = 0; i <= KIN_RANGES; i++)
		assert_true(kin_post(POOL, off + i * FAR, PAGE, true));
}

static void
is_served(void)
{
	uint64_t asked = kin_ask(POOL);

	pool_serve(POOL);
	assert_true(drained);
	assert_int_equal(atomic_load(&kin->pools[POOL].served), asked);
	assert_int_equal(kin_end(POOL), 0);
}

static void
a_range_ends_where_it_does(void **state)
{
	post_far(0);
	is_served();
	assert_int_equal(flushed, pools[POOL].size + (KIN_RANGES - 1) * PAGE);
	assert_int_equal(flushed_to, pools[POOL].size);
	assert_int_equal(told, 0);
	assert_int_equal(drains, 1);

	(void)begin(state);
	post_far(PAGE);
	is_served();
	assert_int_equal(flushed, pools[POOL].size - PAGE + (KIN_RANGES - 1) * PAGE);
	assert_int_equal(flushed_to, pools[POOL].size);
	assert_int_equal(told, 0);

	(void)begin(state);
	assert_true(kin_post(POOL, 2 * PAGE, 3 * PAGE, false));
	is_served();
	assert_int_equal(flushed, 3 * PAGE);
	assert_int_equal(flushed_to, 5 * PAGE);
	assert_int_equal(grows, 0);
}

/* The file may be longer by then: that is looked at, and the replicas are, too. */
static void
a_range_to_the_end_goes_on_to_a_new_end(void **state)
{
	(void)state;
	grows_to = 140 * GIB;
	post_far(0);
	is_served();
	assert_int_equal(flushed_to, grows_to);
	assert_int_equal(told, 0);
}

static void
what_lies_behind_is_told(void **state)
{
	(void)state;
	assert_true(kin_post(POOL, pools[POOL].size - PAGE, 2 * PAGE, false));
	is_served();
	assert_int_equal(flushed, PAGE);
	assert_true(grows > 0);
	assert_int_equal(told, 1);
	assert_int_equal(behind_from, pools[POOL].size);
	assert_int_equal(behind_to, pools[POOL].size + PAGE);
}

/* Nobody has it before the replicas are made equal to the file, be that by who opens it next. */
static void
what_can_not_be_read_is_not_served(void **state)
{
	(void)state;
	unread = true;
	assert_true(kin_post(POOL, 0, PAGE, true));
	is_served();
	assert_int_equal(anew, 1);
	unread = true;
	assert_true(kin_post(POOL, 0, PAGE, true));
	pool_serve_last(&pools[POOL]);
	assert_int_equal(marks, 1);
	assert_false(pools[POOL].unread);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_range_ends_where_it_does, begin),
		cmocka_unit_test_setup(a_range_to_the_end_goes_on_to_a_new_end, begin),
		cmocka_unit_test_setup(what_lies_behind_is_told, begin),
		cmocka_unit_test_setup(what_can_not_be_read_is_not_served, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
