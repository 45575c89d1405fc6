/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread drains the lane that it has flushed by, whatever number it has; and each loss of a
 * replica is told, once.
 */
#include "unit.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../../librepl/preload/lost.c"
#include "../../librepl/preload/pools_persist.c"

#define LANES 4U

/* ---- what pools_persist.c calls ---- */

struct pool pools[POOLS_MAX];
unsigned pool_count = 1;
struct api api;

static unsigned flushed_by, drained, strayed, said;
static bool may_say = true;
static int replication;
static uint64_t time_ns;
static char last[200];

bool
report(const char *format, ...)
{
	va_list ap;

	if (!may_say)
		return false;
	va_start(ap, format);
	(void)vsnprintf(last, sizeof(last), format, ap);
	va_end(ap);
	said++;
	return true;
}

uint64_t
now_ns(void)
{
	return time_ns;
}

size_t
view_has(const struct pool *p, uint64_t off, size_t len)
{
	(void)p;
	(void)off;
	return len;
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

void
pool_ready_mapped(struct pool *p)
{
	(void)p;
}

bool
pool_grow(struct pool *p, uint64_t end)
{
	(void)p;
	(void)end;
	return false;
}

void
pool_behind(struct pool *p, uint64_t from, uint64_t to)
{
	(void)p;
	(void)from;
	(void)to;
}

void
pool_failed(const struct pool *p, int rc, const char *what)
{
	(void)p;
	(void)rc;
	(void)what;
}

bool
pool_elsewhere(const struct pool *p)
{
	(void)p;
	return false;
}

void
pool_post(struct pool *p, uint64_t off, size_t len)
{
	(void)p;
	(void)off;
	(void)len;
}

void
pool_settle(struct pool *p)
{
	(void)p;
}

void
pool_missed(struct pool *p)
{
	(void)p;
}

void
missed_flushed(const struct pool *p)
{
	(void)p;
}

bool
kin_is(void)
{
	return false;
}

bool
kin_has_other(unsigned pool, dev_t dev, ino_t ino)
{
	(void)pool;
	(void)dev;
	(void)ino;
	return false;
}

/* ---- the library ---- */

static int
flush_noted(struct repl *r, unsigned lane, size_t off, size_t len)
{
	(void)r;
	(void)off;
	(void)len;
	flushed_by = lane;
	return 0;
}

static int
drain_noted(struct repl *r, unsigned lane)
{
	(void)r;
	strayed += lane != flushed_by;
	drained++;
	return 0;
}

static unsigned
one_replica(const struct repl *r)
{
	(void)r;
	return 1;
}

static int
stat_told(struct repl *r, unsigned replica, struct repl_stat *st)
{
	(void)r;
	(void)replica;
	st->replication = replication;
	return 0;
}

static void
begin(void)
{
	struct pool *p = &pools[0];

	memset(p, 0, sizeof(*p));
	(void)pthread_rwlock_init(&p->lock, NULL);
	for (unsigned i = 0; i < LANES; i++)
		(void)pthread_mutex_init(&p->lane_locks[i], NULL);
	p->path = last; /* any */
	p->targets[0] = "host/pool";
	p->state = POOL_OPEN;
	p->size = 1 << 20;
	p->lanes = LANES;
	api.repl_flush = flush_noted;
	api.repl_drain = drain_noted;
	api.repl_replicas = one_replica;
	api.repl_stat = stat_told;
	replication = REPL_REPL_ESTABLISHED;
	drained = said = 0;
}

/* ---- tests ---- */

static void *
write_some(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		piece_flush(&pools[0], i * 64, 64, false);
		thread_drain();
	}
	return NULL;
}

static void
a_thread_keeps_its_lane(void **state)
{
	(void)state;
	begin();
	/* One more and 32 bits are full. */
	atomic_store(&threads, UINT32_MAX - 2);
	for (unsigned i = 0; i < 6; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, write_some, NULL), 0);
		(void)pthread_join(thread, NULL);
	}
	assert_int_equal(strayed, 0);
	assert_int_equal(drained, 18);
}

static void
look_again(int now)
{
	replication = now;
	time_ns += LOOK_NS;
	lost_look(&pools[0], false);
	time_ns += LOOK_NS;
	lost_look(&pools[0], false);
}

static void
each_loss_is_told(void **state)
{
	(void)state;
	begin();
	look_again(REPL_REPL_ESTABLISHED);
	assert_int_equal(said, 0);
	for (unsigned i = 1; i <= 3; i++) {
		look_again(REPL_REPL_DEGRADED);
		assert_int_equal(said, 2 * i - 1);
		assert_non_null(strstr(last, "REPLICA host/pool LOST"));
		look_again(REPL_REPL_RESYNCING);
		look_again(REPL_REPL_DEGRADED);
		assert_int_equal(said, 2 * i - 1);
		look_again(REPL_REPL_ESTABLISHED);
		assert_int_equal(said, 2 * i);
		assert_non_null(strstr(last, "replica host/pool is back"));
	}
}

static void
what_can_not_be_told_is_told_later(void **state)
{
	(void)state;
	begin();
	may_say = false;
	look_again(REPL_REPL_DEGRADED);
	may_say = true;
	look_again(REPL_REPL_DEGRADED);
	assert_int_equal(said, 1);
}

/* A program may end while a replica that was lost is brought up to date. */
static void
what_is_missing_at_the_end_is_told(void **state)
{
	(void)state;
	begin();
	look_again(REPL_REPL_RESYNCING);
	assert_int_equal(said, 0);
	lost_end(&pools[0]);
	assert_int_equal(said, 1);
	assert_non_null(strstr(last, "REPLICA host/pool NOT UP TO DATE YET"));
	lost_end(&pools[0]);
	assert_int_equal(said, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_keeps_its_lane),
		cmocka_unit_test(each_loss_is_told),
		cmocka_unit_test(what_can_not_be_told_is_told_later),
		cmocka_unit_test(what_is_missing_at_the_end_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
