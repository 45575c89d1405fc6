/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of the table of mappings: what is gone is not found, and a signal handler may read and change it
 * at any moment. Amid a change, too, which is its own thread's, nothing waits.
 */
#include "unit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "../../librepl/preload/maps.c"

#define TICKS  4000U
#define EACH   20000L
#define PAGE   4096U
#define HANG_S 60U

#define SYS_MSEAL 462 /* of Linux 6.10 */

static atomic_uint ticks;

static void
change(uintptr_t at)
{
	void *addr = (void *)at;

	if (maps_put(addr, 4 * PAGE, 0, 1).full == 0)
		(void)maps_remove(addr, 4 * PAGE);
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

	(void)state;
	assert_int_equal(maps_put((void *)(16 * PAGE), 4 * PAGE, 0, 1).full, 0);
	assert_true(maps_find(8 * PAGE, 64 * PAGE, &piece));
	assert_int_equal(piece.len, 4 * PAGE);
	assert_int_equal(maps_remove((void *)(16 * PAGE), 4 * PAGE).gone, 1U << 1);
	assert_false(maps_find(8 * PAGE, 64 * PAGE, &piece));
}

static void
what_the_system_did_not_unmap_stays(void **state)
{
	void *addr = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t at = (uintptr_t)addr;
	struct maps_piece piece;
	struct maps_change c;
	int rc;

	(void)state;
	assert_true(addr != MAP_FAILED);
	assert_int_equal(maps_put(addr, 4 * PAGE, 0, 1).full, 0);
	assert_int_equal(maps_unmap(addr, 1UL << 47, &rc).gone, 0);
	assert_int_equal(rc, -1);
	assert_int_equal(errno, EINVAL);
	assert_true(maps_find(at, at + 4 * PAGE, &piece));
	assert_int_equal(piece.len, 4 * PAGE);
	c = maps_unmap(addr, 3 * PAGE, &rc);
	assert_int_equal(c.gone, 1U << 1);
	assert_int_equal(rc, 0);
	assert_int_equal(c.left, 1U << 1);
	assert_false(maps_find(at, at + 3 * PAGE, &piece));
	c = maps_unmap((void *)(at + 3 * PAGE), PAGE, &rc);
	assert_int_equal(c.gone, 1U << 1);
	assert_int_equal(rc, 0);
	assert_int_equal(c.left, 0);
}

static uint8_t *
anonymous(size_t pages)
{
	void *at = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static void
found_at(const void *at, uint64_t off, size_t len)
{
	struct maps_piece piece;

	assert_true(maps_find((uintptr_t)at, (uintptr_t)at + 64 * PAGE, &piece));
	assert_int_equal(piece.off, off);
	assert_int_equal(piece.len, len);
}

static void
what_moves_is_followed(void **state)
{
	uint8_t *room = anonymous(64), *at = anonymous(8);
	struct maps_change c;
	struct maps_piece piece;
	void *got;

	(void)state;
	assert_int_equal(maps_put(at, 8 * PAGE, PAGE, 1).full, 0);
	/* Its middle, elsewhere; then back to less. */
	c = maps_remap(at + 2 * PAGE, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room,
		       &got);
	assert_ptr_equal(got, room);
	assert_int_equal(c.gone & ~c.left, 0);
	found_at(at, PAGE, 2 * PAGE);
	found_at(room, 3 * PAGE, 4 * PAGE);
	c = maps_remap(room, 4 * PAGE, PAGE, 0, NULL, &got);
	assert_int_equal(c.gone & ~c.left, 0);
	assert_int_equal(maps_find((uintptr_t)room + PAGE, (uintptr_t)room + 4 * PAGE, &piece),
			 false);
	/* What fails changes nothing. */
	(void)maps_remap(room, PAGE, 1UL << 47, 0, NULL, &got);
	assert_ptr_equal(got, MAP_FAILED);
	found_at(room, 3 * PAGE, PAGE);
	/* A second mapping, and one that is covered by memory that is no pool's. */
	(void)maps_remap(room, 0, PAGE, MREMAP_MAYMOVE, NULL, &got);
	found_at(got, 3 * PAGE, PAGE);
	found_at(room, 3 * PAGE, PAGE);
	c = maps_remap(anonymous(1), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room, &got);
	assert_int_equal(c.gone, 1U << 1);
	assert_false(maps_find((uintptr_t)room, (uintptr_t)room + PAGE, &piece));
	(void)maps_forget(1);
	assert_int_equal(munmap(at, 2 * PAGE), 0);
}

/* Two that lie side by side, as their parts of the file do not; then memory that is no pool's. */
static uint8_t *
side_by_side(void)
{
	uint8_t *at = anonymous(6);

	for (size_t i = 0; i < 6; i += 2)
		assert_ptr_equal(mmap(at + i * PAGE, 2 * PAGE, PROT_READ,
				      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				 at + i * PAGE);
	assert_int_equal(maps_put(at, 2 * PAGE, 0, 1).full, 0);
	assert_int_equal(maps_put(at + 2 * PAGE, 2 * PAGE, 32UL * PAGE, 2).full, 0);
	return at;
}

static void
what_moves_at_once_is_followed(void **state)
{
	uint8_t *room = anonymous(6), *at = side_by_side();
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	struct maps_change c;
	struct maps_piece piece;
	void *got;

	(void)state;
	c = maps_remap(at, 6UL * PAGE, 6UL * PAGE, flags, room, &got);
	/* Before Linux 6.17. */
	if (got == MAP_FAILED) {
		assert_int_equal(errno, EFAULT);
		found_at(at, 0, 2UL * PAGE);
		(void)maps_forget(1);
		(void)maps_forget(2);
		skip();
	}
	assert_int_equal(c.gone & ~c.left, 0);
	assert_false(maps_find((uintptr_t)at, (uintptr_t)at + 6UL * PAGE, &piece));
	found_at(room, 0, 2UL * PAGE);
	found_at(room + 2UL * PAGE, 32UL * PAGE, 2UL * PAGE);
	/* They stay where they were, too. */
	at = anonymous(6);
	(void)maps_remap(room, 6UL * PAGE, 6UL * PAGE, flags | MREMAP_DONTUNMAP, at, &got);
	assert_ptr_equal(got, at);
	found_at(room + 2UL * PAGE, 32UL * PAGE, 2UL * PAGE);
	found_at(at, 0, 2UL * PAGE);
	found_at(at + 2UL * PAGE, 32UL * PAGE, 2UL * PAGE);
	(void)maps_forget(1);
	(void)maps_forget(2);
}

/* Up to one that may not be moved, where there is mseal(2). */
static void
what_moves_in_part_is_followed(void **state)
{
	uint8_t *room = anonymous(6), *at = side_by_side();
	bool sealed = syscall(SYS_MSEAL, at + 4UL * PAGE, 2UL * PAGE, 0) == 0, moves;
	struct maps_change c;
	struct maps_piece piece;
	unsigned char in;
	void *got;

	(void)state;
	c = maps_remap(at, 6UL * PAGE, 6UL * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room, &got);
	moves = mincore(at, PAGE, &in) != 0;
	assert_true(got == MAP_FAILED || !sealed);
	assert_int_equal(c.gone & ~c.left, 0);
	found_at(moves ? room : at, 0, 2UL * PAGE);
	found_at((moves ? room : at) + 2UL * PAGE, 32UL * PAGE, 2UL * PAGE);
	if (moves)
		assert_false(maps_find((uintptr_t)at, (uintptr_t)at + 6UL * PAGE, &piece));
	(void)maps_forget(1);
	(void)maps_forget(2);
}

static void
what_adjoins_is_one(void **state)
{
	(void)state;
	/* In front of it, behind it, and between two. */
	assert_int_equal(maps_put((void *)(16UL * PAGE), PAGE, 8UL * PAGE, 1).full, 0);
	assert_int_equal(maps_put((void *)(15UL * PAGE), PAGE, 7UL * PAGE, 1).full, 0);
	assert_int_equal(maps_put((void *)(18UL * PAGE), PAGE, 10UL * PAGE, 1).full, 0);
	assert_int_equal(maps_put((void *)(17UL * PAGE), PAGE, 9UL * PAGE, 1).full, 0);
	found_at((void *)(15UL * PAGE), 7UL * PAGE, 4UL * PAGE);
	/* Neither what is elsewhere in the file, nor another pool's. */
	assert_int_equal(maps_put((void *)(19UL * PAGE), PAGE, 12UL * PAGE, 1).full, 0);
	assert_int_equal(maps_put((void *)(14UL * PAGE), PAGE, 6UL * PAGE, 2).full, 0);
	found_at((void *)(14UL * PAGE), 6UL * PAGE, PAGE);
	found_at((void *)(15UL * PAGE), 7UL * PAGE, 4UL * PAGE);
	found_at((void *)(19UL * PAGE), 12UL * PAGE, PAGE);
	(void)maps_forget(1);
	(void)maps_forget(2);
}

static uint8_t *place;
static atomic_bool stop;
static atomic_uint lost, landed;

/* Maps a pool where another one just was. */
static void *
settler(void *arg)
{
	struct maps_piece piece;

	while (!atomic_load(&stop)) {
		void *at = mmap(place, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		struct maps_change c;
		int rc;

		if (at != place) {
			(void)munmap(at, PAGE);
			continue;
		}
		(void)maps_put(at, PAGE, 0, 2);
		(void)sched_yield();
		if (!maps_find((uintptr_t)at, (uintptr_t)at + PAGE, &piece) || piece.pool != 2)
			atomic_fetch_add(&lost, 1);
		atomic_fetch_add(&landed, 1);
		c = maps_unmap(at, PAGE, &rc);
		(void)c;
	}
	return arg;
}

static void
who_maps_where_a_pool_was_is_found(void **state)
{
	pthread_t thread;
	void *got;

	(void)state;
	place = anonymous(1);
	assert_int_equal(munmap(place, PAGE), 0);
	assert_int_equal(pthread_create(&thread, NULL, settler, NULL), 0);
	for (unsigned i = 0; i < 200000 && atomic_load(&landed) < 20000; i++) {
		uint8_t *room = anonymous(1);
		void *at = mmap(place, PAGE, PROT_READ,
				MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		int rc;

		if (at == place) {
			assert_int_equal(maps_put(at, PAGE, 0, 1).full, 0);
			(void)maps_remap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room, &got);
		}
		(void)maps_unmap(room, PAGE, &rc);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(atomic_load(&landed) > 0);
	assert_int_equal(atomic_load(&lost), 0);
}

/* Looks for a mapping that is there all the time. */
static void *
looker(void *arg)
{
	struct maps_piece piece;

	while (!atomic_load(&stop)) {
		if (!maps_find(18UL * PAGE, 19UL * PAGE, &piece) || piece.off != 2UL * PAGE)
			atomic_fetch_add(&lost, 1);
		atomic_fetch_add(&landed, 1);
	}
	return arg;
}

static void
what_is_put_over_itself_is_always_found(void **state)
{
	pthread_t thread;
	struct maps_change c;

	(void)state;
	atomic_store(&stop, false);
	atomic_store(&landed, 0);
	c = maps_put((void *)(16UL * PAGE), 8UL * PAGE, 0, 1);
	assert_int_equal(c.left, 1U << 1);
	assert_int_equal(pthread_create(&thread, NULL, looker, NULL), 0);
	while (atomic_load(&landed) < 200000) {
		c = maps_put((void *)(18UL * PAGE), 2UL * PAGE, 2UL * PAGE, 1);
		assert_int_equal(c.gone & ~c.left, 0);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(atomic_load(&lost), 0);
	/* Over all of the mapping, another pool's. */
	c = maps_put((void *)(8UL * PAGE), 32UL * PAGE, 0, 2);
	assert_int_equal(c.gone, 1U << 1);
	assert_int_equal(c.left, 1U << 2);
	(void)maps_forget(2);
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
		cmocka_unit_test(what_moves_is_followed),
		cmocka_unit_test(what_moves_at_once_is_followed),
		cmocka_unit_test(what_moves_in_part_is_followed),
		cmocka_unit_test(what_adjoins_is_one),
		cmocka_unit_test(who_maps_where_a_pool_was_is_found),
		cmocka_unit_test(what_is_put_over_itself_is_always_found),
		cmocka_unit_test(handler_amid_a_change_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
