/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mapping that comes amid work on a pool, as by a signal handler or by a malloc(3) that librepl
 * calls, waits for no lock and is followed, or it is told that it is not.
 */
#include "unit.h"

#include <stdarg.h>

#include "fork_amid.h"
#include "../../librepl/preload/maps.c"
#undef PAGE
#include "../../librepl/preload/pools_map.c"

#define HANG_S 60U

/* ---- what pools_map.c calls ---- */

struct pool pools[POOLS_MAX];
unsigned pool_count = 1;

static uint8_t memory[4 * PAGE] __attribute__((aligned(4096)));
static struct stat file = {.st_dev = 1, .st_ino = 2};
static bool busy, theirs;
static unsigned said;

bool
report(const char *format, ...)
{
	(void)format;
	said++;
	return true;
}

bool
pools_busy(void)
{
	return busy;
}

uint64_t
now_ns(void)
{
	return 1;
}

bool
thread_is_theirs(void)
{
	return theirs;
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

int
pool_of_file(int fd, struct stat *st)
{
	(void)fd;
	*st = file;
	return 0;
}

bool
is_sharing(void)
{
	return false;
}

void
register_end(void)
{
}

void
view_ends_at(struct pool *p, uint64_t end)
{
	p->end = end;
}

int
view_map(struct pool *p, int fd)
{
	(void)fd;
	p->view = memory;
	return 0;
}

void
view_unmap(struct pool *p)
{
	p->view = NULL;
}

void
pool_close_locked(struct pool *p)
{
	(void)p;
}

void
pool_leave(struct pool *p)
{
	(void)p;
}

void
pool_renewed(struct pool *p)
{
	(void)p;
}

void
mark_name(struct pool *p, int fd)
{
	(void)p;
	(void)fd;
}

bool
missed_forget(const struct pool *p)
{
	(void)p;
	return false;
}

void
missed_none(void)
{
}

/* ---- what holds ---- */

static int
begin(void **state)
{
	(void)state;
	pools[0].path = "pool";
	busy = theirs = false;
	said = 0;
	assert_int_equal(pthread_rwlock_init(&pools[0].lock, NULL), 0);
	pools_mapped(memory, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0, 0);
	assert_true(maps_has(0));
	/* Whoever is at work on it. */
	(void)pthread_rwlock_rdlock(&pools[0].lock);
	(void)alarm(HANG_S);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	(void)pthread_rwlock_unlock(&pools[0].lock);
	(void)pthread_rwlock_destroy(&pools[0].lock);
	(void)maps_forget(0);
	file.st_ino = 2;
	return 0;
}

static void
maps_second_page(void)
{
	pools_mapped(memory + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0, PAGE);
}

static bool
has_second_page(void)
{
	uintptr_t at = (uintptr_t)memory + 2 * PAGE;
	struct maps_piece piece;

	return maps_find(at, at + PAGE, &piece) && piece.off == PAGE;
}

static void
handler_maps_it(void **state)
{
	(void)state;
	busy = true;
	maps_second_page();
	assert_true(has_second_page());
	assert_int_equal(said, 0);
}

static void
thread_of_the_replicas_maps_it(void **state)
{
	(void)state;
	theirs = true;
	maps_second_page();
	assert_true(has_second_page());
	assert_int_equal(said, 0);
}

static void
another_file_is_told(void **state)
{
	(void)state;
	busy = true;
	file.st_ino = 3;
	maps_second_page();
	assert_false(has_second_page());
	assert_int_equal(said, 1);
}

static void
one_that_is_not_followed_is_told(void **state)
{
	(void)state;
	busy = true;
	pools[0].view = NULL;
	maps_second_page();
	assert_false(has_second_page());
	assert_int_equal(said, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(handler_maps_it, begin, end),
		cmocka_unit_test_setup_teardown(thread_of_the_replicas_maps_it, begin, end),
		cmocka_unit_test_setup_teardown(another_file_is_told, begin, end),
		cmocka_unit_test_setup_teardown(one_that_is_not_followed_is_told, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
