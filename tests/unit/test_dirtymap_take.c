/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking runs out of a dirty map loses no mark that another thread makes
 * meanwhile: of a block written before it was marked the taker sees the bytes,
 * or it is still marked.
 */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "dirtymap.h"

#define SHIFT  13U
#define BLOCKS 200U
#define BLOCK  (1ULL << SHIFT)
#define POOL   (BLOCKS * BLOCK - 4096)

static struct dirtymap *
map_new(uint64_t size)
{
	struct dirtymap *m = NULL;

	assert_int_equal(dirtymap_new(size, SHIFT, &m, NULL), 0);
	return m;
}

static void
takes_whole_blocks_in_order(void **state)
{
	struct dirtymap *m = map_new(POOL), *to = map_new(POOL);
	struct range run;

	(void)state;
	(void)dirtymap_set(m, 3 * BLOCK, 70 * BLOCK);
	(void)dirtymap_set(m, POOL - 1, 1);
	assert_true(dirtymap_take(m, to, 0, POOL, 2 * BLOCK + 5, &run));
	assert_int_equal(run.off, 3 * BLOCK);
	assert_int_equal(run.len, 2 * BLOCK);
	assert_true(dirtymap_take(m, to, 5 * BLOCK, POOL, POOL, &run));
	assert_int_equal(run.off, 5 * BLOCK);
	assert_int_equal(run.len, 68 * BLOCK);
	/* A block that ends behind what is asked for stays. */
	assert_false(dirtymap_take(m, to, 0, POOL - 1, POOL, &run));
	assert_int_equal(dirtymap_bytes(m), BLOCK - 4096);
	assert_true(dirtymap_take(m, to, 0, POOL, POOL, &run));
	assert_int_equal(run.off + run.len, POOL);
	assert_int_equal(dirtymap_bytes(m), 0);
	assert_int_equal(dirtymap_bytes(to), 71 * BLOCK - 4096);
	dirtymap_free(m);
	dirtymap_free(to);
}

/* Wherever it begins and ends in a word. */
static void
takes_a_run_and_no_more(void **state)
{
	(void)state;
	for (uint64_t first = 0; first < BLOCKS; first++) {
		for (uint64_t count = 1; first + count < BLOCKS; count++) {
			struct dirtymap *m = map_new(POOL), *to = map_new(POOL);
			struct range run;

			(void)dirtymap_set(m, first * BLOCK, count * BLOCK);
			(void)dirtymap_set(m, (first + count + 1) * BLOCK, POOL);
			assert_true(dirtymap_take(m, to, 0, UINT64_MAX, UINT64_MAX, &run));
			assert_int_equal(run.off, first * BLOCK);
			assert_int_equal(run.len, count * BLOCK);
			assert_int_equal(dirtymap_bytes(to), count * BLOCK);
			dirtymap_free(m);
			dirtymap_free(to);
		}
	}
}

/* The map has grown: the last block of the smaller one is not whole any more. */
static void
leaves_what_has_grown(void **state)
{
	struct dirtymap *m = map_new(POOL), *to = map_new(POOL);
	struct range run;

	(void)state;
	(void)dirtymap_set(m, POOL - 1, 1);
	assert_int_equal(dirtymap_grow(m, POOL + 40 * BLOCK, NULL), 0);
	(void)dirtymap_set(m, POOL + 20 * BLOCK, 1);
	assert_false(dirtymap_take(m, to, 0, POOL, POOL, &run));
	assert_int_equal(dirtymap_bytes(m), 2 * BLOCK);
	dirtymap_free(m);
	dirtymap_free(to);
}

static struct dirtymap *map;
static _Atomic uint64_t written[BLOCKS];
static _Atomic bool stop;

static void *
writer(void *arg)
{
	uint64_t seed = 1;

	(void)arg;
	for (uint64_t i = 1; i < 3000000; i++) {
		unsigned b;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		b = (unsigned)(seed >> 33) % BLOCKS;
		atomic_store_explicit(&written[b], i, memory_order_relaxed);
		(void)dirtymap_set(map, b * BLOCK, 1);
	}
	atomic_store(&stop, true);
	return NULL;
}

static void
loses_no_mark(void **state)
{
	struct dirtymap *to = map_new(BLOCKS * BLOCK);
	uint64_t copy[BLOCKS] = {0}, from = 0;
	struct range run;
	pthread_t thread;
	bool last = false;

	(void)state;
	map = map_new(BLOCKS * BLOCK);
	assert_int_equal(pthread_create(&thread, NULL, writer, NULL), 0);
	for (;;) {
		if (!dirtymap_take(map, to, from, BLOCKS * BLOCK, 4 * BLOCK, &run)) {
			if (last && from == 0)
				break;
			last = atomic_load(&stop);
			from = 0;
			continue;
		}
		for (uint64_t b = run.off / BLOCK; b < (run.off + run.len) / BLOCK; b++)
			copy[b] = atomic_load_explicit(&written[b], memory_order_relaxed);
		from = run.off + run.len;
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (unsigned b = 0; b < BLOCKS; b++)
		assert_int_equal(copy[b], atomic_load(&written[b]));
	assert_int_equal(dirtymap_bytes(map), 0);
	dirtymap_free(map);
	dirtymap_free(to);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_whole_blocks_in_order),
		cmocka_unit_test(takes_a_run_and_no_more),
		cmocka_unit_test(leaves_what_has_grown),
		cmocka_unit_test(loses_no_mark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
