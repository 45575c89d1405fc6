/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file gets shorter when what was flushed of it is on the replicas, and while no thread reads the
 * pool for them, which would be the program's end.
 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "fork_amid.h"
#include "../../librepl/preload/lines.c"
#include "../../librepl/preload/pools.c"

#define SHORTER 4096U

/* ---- what pools.c calls ---- */

static bool busy, elsewhere;
static unsigned commits, settles, calls;
static const struct stat file = {.st_dev = 7, .st_ino = 11, .st_size = 65536};
static const struct stat other = {.st_dev = 7, .st_ino = 12, .st_size = 65536};

void
pool_commit_hold(struct pool *p, uint64_t to, unsigned forks)
{
	assert_int_equal(to, SHORTER);
	assert_int_equal(forks, pools_forks());
	(void)pthread_rwlock_wrlock(&p->lock);
	commits++;
}

bool
pools_busy(void)
{
	return busy;
}

bool
is_sharing(void)
{
	return false;
}

struct calm
calm_begin(void)
{
	return (struct calm){.saved_errno = errno};
}

void
calm_end(struct calm c)
{
	errno = c.saved_errno;
}

bool
pool_elsewhere(const struct pool *p)
{
	(void)p;
	return elsewhere;
}

void
pool_settle_all(struct pool *p)
{
	(void)p;
	settles++;
}

bool
kin_has(unsigned pool, dev_t dev, ino_t ino)
{
	(void)pool;
	(void)dev;
	(void)ino;
	return false;
}

bool
kin_opens(unsigned pool, dev_t dev, ino_t ino)
{
	return kin_has(pool, dev, ino);
}

/* Nobody calls these. */
#define UNUSED __attribute__((unused))
#define NEVER(type, name, ...)                                                                     \
	type name(__VA_ARGS__)                                                                     \
	{                                                                                          \
		abort();                                                                           \
	}

NEVER(void, api_begin, void)
NEVER(void, ending_begin, void)
NEVER(void, fork_begin, void)
NEVER(void, kin_begin, void)
NEVER(void, missed_begin, void)
NEVER(bool, thread_flushed, void)
NEVER(void, thread_drain, void)
NEVER(void, thread_settle, void)
NEVER(bool, pools_look_due, void)
NEVER(bool, maps_find, UNUSED uintptr_t at, UNUSED uintptr_t end, UNUSED struct maps_piece *piece)
NEVER(bool, kin_serves, UNUSED unsigned pool)
NEVER(void, kin_longer, UNUSED unsigned pool)
NEVER(void, kin_resized, UNUSED unsigned pool, UNUSED uint64_t size)
NEVER(void, pools_missed, UNUSED const void *addr)
NEVER(void, pool_missed, UNUSED struct pool *p)
NEVER(void, pool_given_all, UNUSED struct pool *p)
NEVER(void, pool_give, UNUSED struct pool *p, UNUSED uint64_t off, UNUSED size_t len)
NEVER(void, mark_name, UNUSED struct pool *p, UNUSED int fd)
NEVER(void, view_ends_at, UNUSED struct pool *p, UNUSED uint64_t end)
NEVER(void, late_add, UNUSED struct pool *p, UNUSED uint64_t off, UNUSED size_t len,
      UNUSED enum look look)
NEVER(void, piece_flush, UNUSED struct pool *p, UNUSED uint64_t off, UNUSED size_t len,
      UNUSED enum look look)
NEVER(void, thread_post, UNUSED struct pool *p, UNUSED uint64_t off, UNUSED size_t len,
      UNUSED enum look look)

void
fork_look(void)
{
}

void
pool_policy_begin(void)
{
}

void
pools_mapped_before(void)
{
}

/* ---- the tests ---- */

static int
begin(void **state)
{
	(void)state;
	pool_count = 2;
	for (unsigned i = 0; i < pool_count; i++) {
		pool_locks_init(&pools[i]);
		pools[i].dev = file.st_dev;
		pools[i].ino = i == 1 ? file.st_ino : 1;
	}
	busy = elsewhere = false;
	commits = settles = calls = 0;
	return 0;
}

static bool
is_held(struct pool *p)
{
	if (pthread_rwlock_tryrdlock(&p->lock))
		return true;
	(void)pthread_rwlock_unlock(&p->lock);
	return false;
}

/* What the call finds, and the error that it ends with, or 0. */
struct found {
	bool held;
	unsigned commits, settles;
	int error;
};

static int
cut(const void *arg)
{
	const struct found *wanted = arg;

	calls++;
	assert_false(is_held(&pools[0]));
	assert_int_equal(is_held(&pools[1]), wanted->held);
	assert_int_equal(commits, wanted->commits);
	assert_int_equal(settles, wanted->settles);
	errno = wanted->error;
	return wanted->error ? -1 : 3;
}

static void
ends(const struct stat *st, const struct found *wanted)
{
	errno = 0;
	assert_int_equal(pools_shrink(st, SHORTER, cut, wanted), wanted->error ? -1 : 3);
	assert_int_equal(errno, wanted->error);
	assert_int_equal(calls, 1);
	assert_false(is_held(&pools[1]));
}

static void
nobody_reads_what_goes(void **state)
{
	ends(&file, &(struct found){.held = true, .commits = 1});
	(void)begin(state);
	ends(&file, &(struct found){.held = true, .commits = 1, .error = EPERM});
}

static void
nobody_waits_for_another_file(void **state)
{
	(void)state;
	ends(&other, &(struct found){.error = EACCES});
}

/* Whose process is asked instead. */
static void
a_pool_of_the_kin_is_settled(void **state)
{
	(void)state;
	elsewhere = true;
	ends(&file, &(struct found){.settles = 1});
}

static void
a_handler_waits_for_nobody(void **state)
{
	(void)state;
	busy = true;
	ends(&file, &(struct found){0});
}

static int
cut_left(const void *arg)
{
	(void)arg;
	fork_amid(&pools[1]);
	return 0;
}

static void
a_handlers_child_can_open_it(void **state)
{
	(void)state;
	assert_int_equal(pools_shrink(&file, SHORTER, cut_left, NULL), 0);
	is_free(&pools[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nobody_reads_what_goes, begin),
		cmocka_unit_test_setup(nobody_waits_for_another_file, begin),
		cmocka_unit_test_setup(a_pool_of_the_kin_is_settled, begin),
		cmocka_unit_test_setup(a_handler_waits_for_nobody, begin),
		cmocka_unit_test_setup(a_handlers_child_can_open_it, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
