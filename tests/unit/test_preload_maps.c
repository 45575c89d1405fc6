/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of the table of mappings: what is gone is not found, and a signal handler may read and change it
 * at any moment. Amid a change, too, which is its own thread's, nothing waits.
 */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "../../librepl/preload/maps.c"

#define TICKS  4000U
#define EACH   20000L
#define PAGE   4096U
#define HANG_S 60U

static atomic_uint ticks;

static void
change(uintptr_t at)
{
	void *addr = (void *)at;
	uint32_t left, cut_off;

	if (maps_add(addr, 4 * PAGE, 0, 1) == 0)
		(void)maps_remove(addr, 4 * PAGE, &left, &cut_off);
}

static void
on_tick(int signo)
{
	struct maps_piece piece;

	(void)signo;
	(void)maps_find(1, UINTPTR_MAX, &piece);
	change(64 * PAGE);
	maps_fork_begin();
	maps_fork_end();
	atomic_fetch_add(&ticks, 1);
}

/* Memory of the program's own may lie where a pool was. */
static void
what_was_unmapped_is_in_no_range(void **state)
{
	struct maps_piece piece;
	uint32_t left, cut_off;

	(void)state;
	assert_int_equal(maps_add((void *)(16 * PAGE), 4 * PAGE, 0, 1), 0);
	assert_true(maps_find(8 * PAGE, 64 * PAGE, &piece));
	assert_int_equal(piece.len, 4 * PAGE);
	assert_int_equal(maps_remove((void *)(16 * PAGE), 4 * PAGE, &left, &cut_off), 1U << 1);
	assert_false(maps_find(8 * PAGE, 64 * PAGE, &piece));
}

static void
what_the_system_did_not_unmap_stays(void **state)
{
	void *addr = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t at = (uintptr_t)addr;
	struct maps_piece piece;
	uint32_t left, cut_off;
	int rc;

	(void)state;
	assert_true(addr != MAP_FAILED);
	assert_int_equal(maps_add(addr, 4 * PAGE, 0, 1), 0);
	assert_int_equal(maps_unmap(addr, 1UL << 47, &rc, &left, &cut_off), 0);
	assert_int_equal(rc, -1);
	assert_int_equal(errno, EINVAL);
	assert_true(maps_find(at, at + 4 * PAGE, &piece));
	assert_int_equal(piece.len, 4 * PAGE);
	assert_int_equal(maps_unmap(addr, 3 * PAGE, &rc, &left, &cut_off), 1U << 1);
	assert_int_equal(rc, 0);
	assert_int_equal(left, 1U << 1);
	assert_false(maps_find(at, at + 3 * PAGE, &piece));
	assert_int_equal(maps_unmap((void *)(at + 3 * PAGE), PAGE, &rc, &left, &cut_off), 1U << 1);
	assert_int_equal(rc, 0);
	assert_int_equal(left, 0);
}

static void
handler_amid_a_change_goes_on(void **state)
{
	struct sigaction act = {.sa_handler = on_tick};
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec each = {.it_interval.tv_nsec = EACH, .it_value.tv_nsec = EACH};
	struct maps_piece piece;
	timer_t timer;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &ev, &timer), 0);
	/* Ends what hangs. */
	(void)alarm(HANG_S);
	assert_int_equal(timer_settime(timer, 0, &each, NULL), 0);
	while (atomic_load(&ticks) < TICKS)
		change(16 * PAGE);
	assert_int_equal(timer_delete(timer), 0);
	(void)alarm(0);
	assert_false(maps_find(1, UINTPTR_MAX, &piece));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_unmapped_is_in_no_range),
		cmocka_unit_test(what_the_system_did_not_unmap_stays),
		cmocka_unit_test(handler_amid_a_change_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
