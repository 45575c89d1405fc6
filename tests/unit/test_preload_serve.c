/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has a pool open serves whatever is posted: each byte up to the pool's end is flushed and
 * drained before it is told; of what lies behind that it is told that the replicas can't have it,
 * and of nothing else.
 */
#include "unit.h"

#include <string.h>

#include "fork_amid.h"
#include "../../librepl/preload/kin.c"
#include "../../librepl/preload/pools_kin.c"
#include "../../librepl/preload/proc.c"

#define GIB  (1ULL << 30)
#define FAR  (3 * GIB / 2) /* two of them in one word are all to the end */
#define PAGE 4096U
#define POOL 2U

/* ---- what pools_kin.c calls ---- */

struct pool pools[POOLS_MAX];

static uint64_t flushed_to, flushed, behind_from, behind_to;
static unsigned drains, grows, told;
static bool named, refuses;
static uint64_t named_end; /* of the file, whether it has its name or not */
static unsigned late;      /* in which look somebody makes it longer right behind that */
static unsigned anew, marks;
static bool drained; /* all that was flushed */
static bool unread;  /* what comes next can't be read */
static bool left;    /* a handler forks amid the drain, or the commit */
static enum look looked;

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
	looked = look;
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
	if (left) {
		fork_amid(p);
		return REPL_E_INVAL;
	}
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
	if (refuses)
		p->refused_size = named_end;
	else if (named_end > p->size)
		p->size = named_end;
	if (grows == late) {
		named_end += 100;
		assert_true(kin_post(POOL, named_end - 100, 100, KIN_ANY));
		(void)kin_ask(POOL);
	}
	return true;
}

bool
view_ends(const struct pool *p, uint64_t *end)
{
	(void)p;
	*end = named_end;
	return named;
}

uint64_t
view_ended(const struct pool *p)
{
	(void)p;
	return named_end;
}

static bool written;

bool
pool_rest_is_written(const struct pool *p)
{
	(void)p;
	return written;
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
	if (left)
		fork_amid(p);
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
	pools[POOL].r = (struct repl *)pools;
	pools[POOL].size = 130 * GIB;
	flushed_to = flushed = behind_from = behind_to = 0;
	drains = grows = told = anew = marks = late = 0;
	named_end = pools[POOL].size;
	named = true;
	refuses = written = false;
	unread = false;
	drained = left = false;
	return 0;
}

/* Pages that are far from one another, more than there are words. */
static void
post_far(uint64_t off)
{
	for (uint64_t i = 0; i <= KIN_RANGES; i++)
		assert_true(kin_post(POOL, off + i * FAR, PAGE, KIN_ANY));
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
	assert_true(kin_post(POOL, 2 * PAGE, 3 * PAGE, 0));
	is_served();
	assert_int_equal(flushed, 3 * PAGE);
	assert_int_equal(flushed_to, 5 * PAGE);
	assert_int_equal(grows, 0);
}

/* Also behind the pool's size, before that has grown. */
static void
holes_count_where_they_were_posted(void **state)
{
	for (unsigned how = 0; how <= KIN_HOLES; how += KIN_HOLES) {
		enum look wanted = how ? LOOK_CHANGED : LOOK_SYNC;

		(void)begin(state);
		assert_true(kin_post(POOL, 0, PAGE, how));
		is_served();
		assert_int_equal(looked, wanted);
		assert_true(kin_post(POOL, pools[POOL].size, PAGE, how));
		named_end += PAGE;
		looked = LOOK_NOT;
		is_served();
		assert_int_equal(looked, wanted);
		assert_int_equal(flushed, 2 * PAGE);
	}
}

/* The file may be longer by then: that is looked at, and the replicas are, too. */
static void
a_range_to_the_end_goes_on_to_a_new_end(void **state)
{
	(void)state;
	named_end = 140 * GIB;
	post_far(0);
	is_served();
	assert_int_equal(flushed_to, named_end);
	assert_int_equal(told, 0);
}

/* Right behind a look at its size it is longer: it is looked at once more, whatever is posted. */
static void
what_comes_after_the_look_is_there(void **state)
{
	(void)state;
	late = 2;
	assert_true(kin_post(POOL, pools[POOL].size - PAGE, 2 * PAGE, 0));
	(void)kin_ask(POOL);
	pool_serve(POOL);
	pool_serve(POOL);
	assert_int_equal(flushed_to, named_end);
	assert_int_equal(told, 0);

	(void)begin(state);
	late = 1;
	post_far(0);
	(void)kin_ask(POOL);
	pool_serve(POOL);
	pool_serve(POOL);
	assert_int_equal(flushed_to, named_end);
	assert_int_equal(told, 0);
}

static void
post_behind(void)
{
	assert_true(kin_post(POOL, pools[POOL].size - PAGE, 2 * PAGE, 0));
	is_served();
	assert_int_equal(flushed, PAGE);
	assert_true(grows > 0);
}

/* A size that no replica takes; what has no name, and may have grown. */
static void
what_lies_behind_is_told(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		(void)begin(state);
		named = i == 0;
		refuses = named;
		written = !named;
		if (named)
			named_end += PAGE;
		post_behind();
		assert_int_equal(told, 1);
		assert_int_equal(behind_from, pools[POOL].size);
		assert_int_equal(behind_to, pools[POOL].size + PAGE);
	}
}

/* A mapping may be longer than its file. */
static void
where_no_file_is_nothing_is_told(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		(void)begin(state);
		named = i == 0;
		post_behind();
		assert_int_equal(told, 0);
	}
}

/* Nobody has it before the replicas are made equal to the file, be that by who opens it next. */
static void
what_can_not_be_read_is_not_served(void **state)
{
	(void)state;
	unread = true;
	assert_true(kin_post(POOL, 0, PAGE, KIN_ANY));
	is_served();
	assert_int_equal(anew, 1);
	unread = true;
	assert_true(kin_post(POOL, 0, PAGE, KIN_ANY));
	pool_serve_last(&pools[POOL]);
	assert_int_equal(marks, 1);
	assert_false(pools[POOL].unread);
}

/* Of a pool that ends amid a page, by who closes it: as far as its file goes nothing is left over.
 */
static void
the_rest_of_the_last_page_is_nobodys(void **state)
{
	uint64_t size = pools[POOL].size - 1000, asked;

	(void)state;
	pools[POOL].size = named_end = size;
	for (unsigned i = 0; i < 2; i++) {
		named = i;
		written = !named;
		assert_true(kin_post(POOL, size - 10, 1010, 0));
		asked = kin_ask(POOL);
		pool_serve_last(&pools[POOL]);
		assert_int_equal(flushed_to, size);
		assert_int_equal(told, 0);
		assert_int_equal(atomic_load(&kin->pools[POOL].served) == asked, named);
	}
}

/* Nor is anybody told by it that its parent has drained what was posted. */
static void
a_handlers_child_serves_nothing(void **state)
{
	(void)state;
	left = true;
	assert_true(kin_post(POOL, 0, PAGE, KIN_ANY));
	(void)kin_ask(POOL);
	pool_serve(POOL);
	assert_int_equal(drains, 1);
	assert_int_equal(atomic_load(&kin->pools[POOL].served), 0);
	is_free(&pools[POOL]);
}

/* Nor takes such a one what is posted, where it comes back to the pool's end. */
static void
a_handlers_child_takes_nothing(void **state)
{
	struct kin_range ranges[KIN_RANGES];
	struct pool *p = &pools[POOL];

	(void)state;
	left = true;
	assert_true(kin_post(POOL, 0, PAGE, KIN_ANY));
	kin_all(POOL);
	pool_lock_write(p);
	pool_serve_last(p);
	assert_int_equal(drains, 0);
	assert_int_equal(kin_take(POOL, ranges), 1);
	assert_false(pool_unlock_write(p));
	is_free(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_range_ends_where_it_does, begin),
		cmocka_unit_test_setup(holes_count_where_they_were_posted, begin),
		cmocka_unit_test_setup(a_range_to_the_end_goes_on_to_a_new_end, begin),
		cmocka_unit_test_setup(what_comes_after_the_look_is_there, begin),
		cmocka_unit_test_setup(what_lies_behind_is_told, begin),
		cmocka_unit_test_setup(where_no_file_is_nothing_is_told, begin),
		cmocka_unit_test_setup(what_can_not_be_read_is_not_served, begin),
		cmocka_unit_test_setup(the_rest_of_the_last_page_is_nobodys, begin),
		cmocka_unit_test_setup(a_handlers_child_serves_nothing, begin),
		cmocka_unit_test_setup(a_handlers_child_takes_nothing, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
