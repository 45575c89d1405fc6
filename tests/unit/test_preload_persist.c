/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread drains the lane that it has flushed by, whatever number it has; and each loss of a
 * replica is told, once. What can't be read of the file is not taken for replicated.
 */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fork_amid.h"
#include "../../librepl/preload/lost.c"
#include "../../librepl/preload/pools_persist.c"

#define LANES 4U

/* ---- what pools_persist.c calls ---- */

struct pool pools[POOLS_MAX];
unsigned pool_count = 1;
struct api api;

/* What can't be read begins at unread; of that, what there are no data of. */
static uint64_t unread = UINT64_MAX, file_end = UINT64_MAX, hole, hole_end;
static size_t flushed_bytes;
static unsigned flushed_by, drained, strayed, said, anew;
static unsigned posts, settled;
static bool hole_looked_at;
static bool may_say = true, named = true;
static bool kin, faster; /* another process of it opens the pool first */
static bool taken;       /* another thread has the pool opened anew */
static int replication;
static uint64_t time_ns;
static char last[200];

bool
report(const char *format, ...)
{
	va_list ap;

	if (!may_say)
		return false;
	if (taken)
		pool_anew(&pools[0]);
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
	hole_looked_at |= off < hole_end && off + len > hole;
	return off + len <= unread ? len : off < unread ? (size_t)(unread - off) : 0;
}

uint64_t
view_ended(const struct pool *p)
{
	return p->end;
}

bool
view_ends(const struct pool *p, uint64_t *end)
{
	(void)p;
	*end = file_end;
	return named;
}

/* Any descriptor: nothing but what follows asks it. */
int
view_holes(const struct pool *p, uint64_t *end)
{
	(void)p;
	*end = file_end;
	return named && hole_end ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
}

bool
view_is_stored(const struct pool *p, uint64_t off, size_t len)
{
	(void)p;
	return off + len <= hole || off >= hole_end;
}

/* One hole. */
size_t
view_data(int fd, size_t off, size_t to)
{
	(void)fd;
	if (off >= hole && off < hole_end)
		off = hole_end;
	return off < to ? off : to;
}

size_t
view_data_end(int fd, size_t off, size_t to)
{
	(void)fd;
	return off < hole && hole < to ? hole : to;
}

void
pool_anew(struct pool *p)
{
	if (!atomic_exchange(&p->unread, false))
		return;
	anew++;
	if (faster)
		p->state = POOL_CLOSED;
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

static unsigned failed;

void
pool_failed(const struct pool *p, int rc, const char *what)
{
	(void)p;
	(void)rc;
	(void)what;
	failed++;
}

bool
pool_elsewhere(const struct pool *p)
{
	(void)p;
	return false;
}

void
pool_post(struct pool *p, uint64_t off, size_t len, enum look look)
{
	(void)p;
	(void)off;
	(void)len;
	(void)look;
	posts++;
}

void
pool_settle(struct pool *p)
{
	(void)p;
	settled++;
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
	return kin;
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
	flushed_bytes += len;
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
	p->r = (struct repl *)&api;
	p->size = p->end = 1 << 20;
	p->lanes = LANES;
	api.repl_flush = flush_noted;
	api.repl_drain = drain_noted;
	api.repl_replicas = one_replica;
	api.repl_stat = stat_told;
	replication = REPL_REPL_ESTABLISHED;
	drained = said = anew = posts = settled = 0;
	flushed_bytes = 0;
	unread = file_end = UINT64_MAX;
	hole = hole_end = 0;
	hole_looked_at = false;
}

/* ---- tests ---- */

static void *
write_some(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		piece_flush(&pools[0], i * 64, 64, LOOK_NOT);
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

/* A file of 64 KiB, of which nothing can be read from 32 KiB on. */
static void
looked(enum look look, size_t len)
{
	begin();
	unread = 32 << 10;
	file_end = 64 << 10;
	hole = 32 << 10;
	hole_end = 48 << 10;
	piece_flush(&pools[0], 0, len, look);
}

static void
holes_without_space_are_none_of_what_was_stored(void **state)
{
	(void)state;
	looked(LOOK_SYNC, 48 << 10);
	assert_int_equal(flushed_bytes, 32 << 10);
	assert_int_equal(anew + said, 0);
}

/* It would take memory. */
static void
holes_are_not_looked_at(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		begin();
		hole = 4 << 10;
		hole_end = 60 << 10;
		file_end = i ? 62 << 10 : UINT64_MAX;
		piece_flush(&pools[0], 0, 64 << 10, LOOK_SYNC);
		assert_int_equal(flushed_bytes, 8 << 10);
		assert_false(hole_looked_at);
		assert_int_equal(anew, 0);
		/* That the file is shorter. */
		assert_int_equal(said, i);
		piece_flush(&pools[0], 0, 64 << 10, LOOK_CHANGED);
		assert_true(hole_looked_at);
		assert_int_equal(flushed_bytes, 72 << 10);
	}
}

static void
holes_that_were_made_are_compared(void **state)
{
	(void)state;
	looked(LOOK_CHANGED, 48 << 10);
	assert_int_equal(anew, 1);
	assert_int_equal(said, 1);
	assert_non_null(strstr(last, "byte 32768 of it can't be read"));
}

static void
data_that_can_not_be_read_are_compared(void **state)
{
	(void)state;
	looked(LOOK_SYNC, 64 << 10);
	assert_int_equal(flushed_bytes, 32 << 10);
	assert_int_equal(anew, 1);
	assert_non_null(strstr(last, "byte 49152 of it can't be read"));
}

/* What is behind the hole was stored. */
static void
what_has_lost_its_name_is_compared(void **state)
{
	(void)state;
	named = false;
	looked(LOOK_SYNC, 64 << 10);
	named = true;
	assert_int_equal(anew, 1);
	assert_non_null(strstr(last, "of it can't be read"));
}

/* Whichever thread has let the pool go for that. */
static void
what_another_process_compares_is_waited_for(void **state)
{
	(void)state;
	kin = faster = true;
	for (unsigned i = 0; i < 2; i++) {
		taken = i == 1;
		looked(LOOK_CHANGED, 48 << 10);
		assert_int_equal(anew, 1);
		assert_int_equal(posts, 1);
		thread_drain();
		assert_int_equal(settled, 1);
	}
	kin = faster = taken = false;
}

static void
what_lies_behind_the_file_is_kept(void **state)
{
	(void)state;
	begin();
	unread = file_end = 32 << 10;
	piece_flush(&pools[0], 0, 64 << 10, LOOK_CHANGED);
	assert_int_equal(flushed_bytes, 32 << 10);
	assert_int_equal(anew, 0);
	assert_non_null(strstr(last, "it was made shorter"));
}

static unsigned commits;

static int
commit_noted(struct repl *r, unsigned lane)
{
	(void)r;
	(void)lane;
	commits++;
	return 0;
}

/* By another program, between flush and drain: the library would look at what is no more. */
static void
what_was_cut_off_is_not_looked_at(void **state)
{
	struct pool *p = &pools[0];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		begin();
		api.repl_commit = commit_noted;
		commits = 0;
		piece_flush(p, 0, 64, LOOK_NOT);
		piece_flush(p, 64 << 10, 64, LOOK_NOT);
		piece_flush(p, 4 << 10, 64, LOOK_NOT);
		file_end = unread = (i ? 32U : 80U) << 10;
		if (i == 2)
			pool_commit(p, 0);
		thread_drain();
		/* Whatever else the lane has, and whoever drains it. */
		assert_int_equal(drained + commits, i ? 0 : 1);
		assert_int_equal(anew, i ? 1 : 0);
		assert_int_equal(said, i ? 1 : 0);
		pool_commit_last(p);
		assert_int_equal(commits, i ? 0 : 1);
	}
	/* What was drained before is no matter. */
	begin();
	piece_flush(p, 64 << 10, 64, LOOK_NOT);
	thread_drain();
	file_end = unread = 32 << 10;
	piece_flush(p, 0, 64, LOOK_NOT);
	thread_drain();
	assert_int_equal(drained, 2);
	assert_int_equal(anew, 0);
}

static int
flush_left(struct repl *r, unsigned lane, size_t off, size_t len)
{
	(void)flush_noted(r, lane, off, len);
	fork_amid(&pools[0]);
	return REPL_E_LOST;
}

static int
drain_left(struct repl *r, unsigned lane)
{
	assert_non_null(r);
	(void)lane;
	fork_amid(&pools[0]);
	return REPL_E_TIMEOUT;
}

static int
commit_left(struct repl *r, unsigned lane)
{
	return drain_left(r, lane) ? REPL_E_LOST : 0;
}

/* It is not ended for a loss, nor does it wait, and it can open the pool. */
static void
what_a_handlers_child_is_told_is_its_parents(void **state)
{
	struct pool *p = &pools[0];

	(void)state;
	failed = 0;
	begin();
	api.repl_flush = flush_left;
	piece_flush(p, 0, 64, LOOK_NOT);
	is_free(p);
	begin();
	api.repl_drain = drain_left;
	piece_flush(p, 0, 64, LOOK_NOT);
	thread_drain();
	is_free(p);
	begin();
	api.repl_commit = commit_left;
	pool_commit(p, 0);
	is_free(p);
	assert_int_equal(failed + said, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_keeps_its_lane),
		cmocka_unit_test(each_loss_is_told),
		cmocka_unit_test(what_can_not_be_told_is_told_later),
		cmocka_unit_test(what_is_missing_at_the_end_is_told),
		cmocka_unit_test(holes_without_space_are_none_of_what_was_stored),
		cmocka_unit_test(holes_are_not_looked_at),
		cmocka_unit_test(holes_that_were_made_are_compared),
		cmocka_unit_test(data_that_can_not_be_read_are_compared),
		cmocka_unit_test(what_has_lost_its_name_is_compared),
		cmocka_unit_test(what_another_process_compares_is_waited_for),
		cmocka_unit_test(what_lies_behind_the_file_is_kept),
		cmocka_unit_test(what_was_cut_off_is_not_looked_at),
		cmocka_unit_test(what_a_handlers_child_is_told_is_its_parents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
