/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the pool's device is slower than the log, frames are slowed down by it bit by bit: none
 * stands still until a half is synced, and nothing that comes to the same places by another way.
 * Here a sync takes as long as there are frames that need not wait for it.
 */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "clock.h"
#include "pool_world.h"

#define PAGES  2048U
#define SIZE   ((uint64_t)PAGES * ROUND_BLOCK)
#define RANGES 16U   /* of a frame, each in another page */
#define FRAMES 1300U /* five halves */
#define TRIMS  32U   /* from where there are two and a half */
#define TRIM   (PAGES / TRIMS)
#define POLL   200U          /* us */
#define ASLEEP (100U * 1000) /* us: who has not seen a sync after that is not woken by it */

int __wrap_pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e);

static pthread_t writer;
static _Atomic bool slow;   /* a sync ends only while the writer waits */
static _Atomic bool waits;  /* the writer does */
static _Atomic bool begins; /* ... since the last sync */
static _Atomic unsigned syncs;
static _Atomic size_t ranges; /* most that the writer has synced itself, at once */

int
pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	struct timespec never = {.tv_sec = (time_t)(clock_now_ns() / NS_PER_S) + 3600};
	bool is_writer = pthread_equal(pthread_self(), writer);
	int rc;

	if (is_writer)
		begins = waits = true;
	rc = pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &never);
	if (is_writer)
		waits = false;
	return rc;
}

int
__wrap_pmem_map_persist(struct pmem_map *m, struct range *r, size_t count, struct err *e)
{
	(void)m;
	(void)r;
	(void)e;
	if (pthread_equal(pthread_self(), writer)) {
		ranges = count > ranges ? count : ranges;
		return 0;
	}
	for (unsigned us = 0; slow && !(waits && (begins || us >= ASLEEP)); us += POLL) {
		(void)usleep(POLL);
		if (!waits)
			us = 0;
	}
	begins = false;
	syncs++;
	return 0;
}

static int
setup(void **state)
{
	(void)state;
	return world_new(0, SIZE);
}

/* Of the i-th frame. */
static void
message(unsigned i, uint32_t epoch, struct wire_commit_view *v)
{
	static uint8_t buf[ROUND_BLOCK];
	struct wire_commit c;
	size_t size;

	wire_commit_begin(&c, buf, sizeof(buf), RANGES);
	for (unsigned k = 0; k < RANGES; k++) {
		uint64_t page = (uint64_t)(i * RANGES + k) * 1021 % PAGES;
		struct wire_entry copy = {.off = page * ROUND_BLOCK, .len = 8, .op = WIRE_OP_COPY};

		wire_commit_add(&c, &copy, "12345678");
	}
	size = wire_commit_end(&c, i + 1, epoch);
	assert_int_equal(wire_commit_decode(buf, size, SIZE, v, &err), 0);
}

static struct pool *pool;
static struct pmem_map *map;
static struct roundlog *rlog;

static void
log_begin(void)
{
	writer = pthread_self();
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "writer", &pool, &err), 0);
	assert_int_equal(pool_map(pool, true, &map, &err), 0);
	assert_int_equal(pool_log_make(pool, map, &rlog, &err), 0);
	ranges = 0;
	slow = true;
}

static void
log_end(void)
{
	slow = false;
	assert_int_equal(pool_log_end(pool, rlog, false, &err), 0);
	pmem_map_free(map);
	assert_int_equal(pool_close(pool, true, &err), 0);
}

/* How many syncs the i-th frame has waited for. */
static unsigned
frame(unsigned i)
{
	const struct wire_commit_view *messages[1];
	struct wire_commit_view v;
	unsigned before = syncs, waited;

	message(i, pool_get_info(pool)->meta.epoch, &v);
	messages[0] = &v;
	assert_int_equal(roundlog_write(rlog, messages, 1, &err), 0);
	waited = syncs - before;
	roundlog_stored(rlog, messages, 1);
	return waited;
}

static void
no_frame_waits_for_more_than_two_pieces(void **state)
{
	unsigned most = 0, all;

	(void)state;
	log_begin();
	all = syncs;
	for (unsigned i = 0; i < FRAMES; i++) {
		unsigned waited = frame(i);

		most = waited > most ? waited : most;
	}
	/* Enough to see it. */
	assert_true(syncs - all > 20);
	assert_in_range(most, 1, 2);
	log_end();
}

/*
 * As of a trim, or of a large message: frames bring bytes of all of its pages. It waits for its
 * turn and for room in the log, and syncs what is its own.
 */
static void
no_other_way_waits_for_a_half(void **state)
{
	unsigned most = 0, most_frame = 0, n = 0;

	(void)state;
	log_begin();
	for (; n < FRAMES / 2; n++)
		(void)frame(n);
	for (unsigned i = 0; i < TRIMS; i++) {
		struct range r = {.off = (uint64_t)i * TRIM * ROUND_BLOCK,
				  .len = TRIM * ROUND_BLOCK};
		unsigned before = syncs, waited;

		memset((uint8_t *)pmem_map_addr(map) + r.off, 0, r.len);
		assert_int_equal(roundlog_flush(rlog, &r, 1, &err), 0);
		waited = syncs - before;
		most = waited > most ? waited : most;
		waited = frame(n++);
		most_frame = waited > most_frame ? waited : most_frame;
	}
	assert_int_equal(ranges, 1);
	assert_in_range(most, 1, 4);
	assert_in_range(most_frame, 0, 2);
	log_end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_frame_waits_for_more_than_two_pieces, setup,
						world_free),
		cmocka_unit_test_setup_teardown(no_other_way_waits_for_a_half, setup, world_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
