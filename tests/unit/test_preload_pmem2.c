/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that libpmem2 gives out are asked for in a signal handler at any moment: nothing
 * waits for its own thread, and each mapping has ours for its own. What it flushes by pages may
 * reach behind the file.
 */
#include "unit.h"

#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "../../librepl/preload/pmem2.c"

#define TICKS  4000U
#define EACH   20000L
#define HANG_S 60U

static atomic_uint ticks;
static bool concerns;
static size_t flushed, synced; /* bytes */

/* ---- what is beside it ---- */

bool
follow_any(void)
{
	return true;
}

bool
follow_concerns(const void *addr, size_t len)
{
	(void)addr;
	(void)len;
	return concerns;
}

void
follow_enter(void)
{
}

void
follow_leave(void)
{
}

void
follow_flush(const void *addr, size_t len)
{
	(void)addr;
	flushed += len;
}

void
follow_sync(const void *addr, size_t len, bool pages)
{
	(void)addr;
	assert_false(pages);
	synced += len;
}

void
follow_drain(void)
{
}

void
follow_copy(const void *addr, size_t len, unsigned flags)
{
	(void)addr;
	(void)len;
	(void)flags;
}

/* Of libpmem2: a set for each map, of pointers that nobody calls but where there is one. */
static struct pmem2_map {
	void (*flush)(const void *, size_t);
	enum pmem2_granularity is;
} * called;

static void
flush_nothing(const void *addr, size_t len)
{
	(void)addr;
	(void)len;
}

static void *
get_fn(struct pmem2_map *map)
{
	return called ? (void *)(uintptr_t)called->flush : map;
}

static enum pmem2_granularity
get_granularity(struct pmem2_map *map)
{
	(void)map;
	return called ? called->is : PMEM2_GRANULARITY_CACHE_LINE;
}

static int
deep_flush(struct pmem2_map *map, void *addr, size_t len)
{
	(void)map;
	(void)addr;
	(void)len;
	return 0;
}

void
real_early(void **where, const char *name)
{
	if (strcmp(name, "pmem2_deep_flush") == 0)
		*where = (void *)(uintptr_t)deep_flush;
	else if (strcmp(name, "pmem2_map_get_store_granularity") == 0)
		*where = (void *)(uintptr_t)get_granularity;
	else
		*where = (void *)(uintptr_t)get_fn;
}

void *
real_once(void **where, const char *library, const char *name)
{
	(void)library;
	(void)name;
	return *where;
}

static struct pmem2_map *
map_of(uintptr_t kind)
{
	return (struct pmem2_map *)(64 * (kind + 1));
}

static void
on_tick(int signo)
{
	(void)signo;
	(void)pmem2_get_flush_fn(map_of(0));
	atomic_fetch_add(&ticks, 1);
}

static void
handler_does_not_wait_for_its_own_thread(void **state)
{
	struct sigaction act = {.sa_handler = on_tick};
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec each = {.it_interval.tv_nsec = EACH, .it_value.tv_nsec = EACH};
	timer_t timer;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &ev, &timer), 0);
	/* Ends what hangs. */
	(void)alarm(HANG_S);
	assert_int_equal(timer_settime(timer, 0, &each, NULL), 0);
	for (uintptr_t i = 0; atomic_load(&ticks) < TICKS; i++)
		assert_true(pmem2_get_persist_fn(map_of(i % 3)) == ours[i % 3].persist);
	assert_int_equal(timer_delete(timer), 0);
	(void)alarm(0);
}

static void
each_set_has_one_of_ours(void **state)
{
	(void)state;
	for (uintptr_t i = 0; i < KINDS_MAX; i++) {
		assert_true(pmem2_get_drain_fn(map_of(i)) == ours[i].drain);
		assert_true(pmem2_get_memset_fn(map_of(i)) == ours[i].memset);
	}
	/* More than there are: libpmem2's own. */
	assert_ptr_equal((void *)(uintptr_t)pmem2_get_drain_fn(map_of(KINDS_MAX)),
			 map_of(KINDS_MAX));
}

/* By the granularity, also of two mappings whose functions are the same. */
static void
pages_are_synced(void **state)
{
	struct pmem2_map lines = {flush_nothing, PMEM2_GRANULARITY_CACHE_LINE};
	struct pmem2_map pages = {flush_nothing, PMEM2_GRANULARITY_PAGE};
	char byte;

	(void)state;
	atomic_store(&kinds, 0);
	concerns = true;
	for (unsigned i = 0; i < 2; i++) {
		called = i ? &pages : &lines;
		flushed = synced = 0;
		pmem2_get_persist_fn(called)(&byte, 1);
		pmem2_get_flush_fn(called)(&byte, 10);
		assert_int_equal(pmem2_deep_flush(called, &byte, 100), 0);
		assert_int_equal(flushed, i ? 0 : 111);
		assert_int_equal(synced, i ? 111 : 0);
	}
	concerns = false;
	called = NULL;
	atomic_store(&kinds, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_synced),
		cmocka_unit_test(each_set_has_one_of_ours),
		cmocka_unit_test(handler_does_not_wait_for_its_own_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
