/* SPDX-License-Identifier: BSD-3-Clause */
/* A dirty map holds every byte that was marked, and of the others only those of the same blocks. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "dirtymap.h"

#define SHIFT  12U
#define BLOCK  4096ULL
#define BLOCKS 700ULL
#define SIZE   (BLOCKS * BLOCK)

static uint64_t
rng_next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static struct dirtymap *
map_new(uint64_t size, unsigned shift)
{
	struct dirtymap *m = NULL;

	assert_int_equal(dirtymap_new(size, shift, &m, NULL), 0);
	return m;
}

/* All runs of the map are the runs of the model, whatever they are cut to. */
static void
assert_same(const struct dirtymap *m, const uint8_t *model, uint64_t max_len)
{
	uint8_t have[BLOCKS] = {0};
	uint64_t dirty = 0, at = 0;
	struct range run;

	while (dirtymap_next(m, at, max_len, &run)) {
		assert_true(run.len > 0 && run.len <= max_len && run.off >= at);
		assert_true(run.off + run.len <= SIZE);
		for (uint64_t b = run.off / BLOCK; b <= (run.off + run.len - 1) / BLOCK; b++)
			have[b] = 1;
		at = run.off + run.len;
	}
	assert_memory_equal(have, model, BLOCKS);
	for (uint64_t b = 0; b < BLOCKS; b++)
		dirty += model[b] ? BLOCK : 0;
	assert_int_equal(dirtymap_bytes(m), dirty);
}

static void
holds_what_was_set(void **state)
{
	uint64_t seed = 88172645463325252ULL;

	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		struct dirtymap *m = map_new(SIZE, SHIFT);
		uint8_t model[BLOCKS] = {0};

		for (unsigned i = 0; i < 20; i++) {
			uint64_t off = rng_next(&seed) % SIZE;
			uint64_t len = 1 + rng_next(&seed) % (i % 5 ? 3 * BLOCK : 200 * BLOCK);
			uint64_t end = off + len < SIZE ? off + len : SIZE;

			(void)dirtymap_set(m, off, len);
			for (uint64_t b = off / BLOCK; b <= (end - 1) / BLOCK; b++)
				model[b] = 1;
			assert_false(dirtymap_set(m, off, len));
		}
		assert_same(m, model, 1 + rng_next(&seed) % (64 * BLOCK));
		assert_same(m, model, UINT64_MAX);
		dirtymap_clear(m);
		memset(model, 0, sizeof(model));
		assert_same(m, model, UINT64_MAX);
		dirtymap_free(m);
	}
}

static void
what_is_unset_is_clean(void **state)
{
	uint64_t seed = 521288629;

	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		struct dirtymap *m = map_new(SIZE, SHIFT);
		uint8_t model[BLOCKS] = {0};

		for (unsigned i = 0; i < 40; i++) {
			uint64_t off = rng_next(&seed) % SIZE;
			uint64_t len = 1 + rng_next(&seed) % (i % 5 ? 3 * BLOCK : 200 * BLOCK);
			uint64_t end = off + len < SIZE ? off + len : SIZE;
			bool set = rng_next(&seed) % 3;

			if (set)
				(void)dirtymap_set(m, off, len);
			else
				dirtymap_unset(m, off, len);
			for (uint64_t b = off / BLOCK; b <= (end - 1) / BLOCK; b++)
				model[b] = set;
		}
		dirtymap_unset(m, 5 * BLOCK, 0);
		dirtymap_unset(m, SIZE, UINT64_MAX);
		assert_same(m, model, UINT64_MAX);
		dirtymap_unset(m, 0, UINT64_MAX);
		memset(model, 0, sizeof(model));
		assert_same(m, model, UINT64_MAX);
		dirtymap_free(m);
	}
}

/* All runs of [from, end) are those of the model, a byte at either end as well. */
static void
assert_same_below(const struct dirtymap *m, const uint8_t *model, uint64_t from, uint64_t end)
{
	struct range run;

	for (uint64_t at = from; at < end; at = run.off + run.len) {
		uint64_t b = at / BLOCK, to;

		while (b * BLOCK < end && !model[b])
			b++;
		to = b;
		while (to * BLOCK < end && model[to])
			to++;
		assert_int_equal(dirtymap_next_below(m, at, end, &run), to > b);
		if (to == b)
			break;
		assert_int_equal(run.off, b * BLOCK > at ? b * BLOCK : at);
		assert_int_equal(run.off + run.len, to * BLOCK < end ? to * BLOCK : end);
	}
}

static void
nothing_is_found_behind_an_end(void **state)
{
	uint64_t seed = 362436069;
	struct dirtymap *m = map_new(SIZE, SHIFT);
	uint8_t model[BLOCKS] = {0};
	struct range run;

	(void)state;
	for (unsigned i = 0; i < 150; i++) {
		uint64_t b = rng_next(&seed) % BLOCKS, n = 1 + rng_next(&seed) % 3;

		(void)dirtymap_set(m, b * BLOCK, n * BLOCK);
		memset(model + b, 1, b + n < BLOCKS ? n : BLOCKS - b);
	}
	for (unsigned i = 0; i < 5000; i++) {
		uint64_t from = rng_next(&seed) % SIZE, len = rng_next(&seed) % (99 * BLOCK);
		uint64_t grain = i % 2 ? BLOCK : 1;

		from -= from % grain;
		len -= len % grain;
		assert_same_below(m, model, from, from + len < SIZE ? from + len : SIZE);
	}
	assert_false(dirtymap_next_below(m, SIZE, UINT64_MAX, &run));
	assert_false(dirtymap_next_below(m, 9, 9, &run));
	dirtymap_free(m);
}

static void
runs_begin_and_end_where_they_must(void **state)
{
	struct dirtymap *m = map_new(SIZE, SHIFT);
	struct range run;

	(void)state;
	assert_false(dirtymap_next(m, 0, UINT64_MAX, &run));
	assert_true(dirtymap_set(m, 3 * BLOCK - 1, 2));
	assert_true(dirtymap_next(m, 0, UINT64_MAX, &run));
	assert_int_equal(run.off, 2 * BLOCK);
	assert_int_equal(run.len, 2 * BLOCK);
	assert_true(dirtymap_next(m, 3 * BLOCK + 5, UINT64_MAX, &run));
	assert_int_equal(run.off, 3 * BLOCK + 5);
	assert_int_equal(run.len, BLOCK - 5);
	assert_false(dirtymap_next(m, 4 * BLOCK, UINT64_MAX, &run));
	assert_false(dirtymap_set(m, 5 * BLOCK, 0));
	assert_false(dirtymap_set(m, SIZE, 1));
	assert_true(dirtymap_set(m, SIZE - 1, UINT64_MAX));
	assert_int_equal(dirtymap_bytes(m), 3 * BLOCK);
	dirtymap_free(m);
}

/* The last block of a pool whose size is no multiple of a block. */
static void
last_block_is_cut(void **state)
{
	struct dirtymap *m = map_new(5 * 4096, 13);
	struct range run;

	(void)state;
	dirtymap_set_all(m);
	assert_int_equal(dirtymap_bytes(m), 5 * 4096);
	assert_true(dirtymap_next(m, 0, UINT64_MAX, &run));
	assert_int_equal(run.off, 0);
	assert_int_equal(run.len, 5 * 4096);
	dirtymap_clear(m);
	assert_true(dirtymap_set(m, 4 * 4096, 1));
	assert_int_equal(dirtymap_bytes(m), 4096);
	assert_int_equal(dirtymap_grow(m, 8 * 4096, NULL), 0);
	assert_int_equal(dirtymap_bytes(m), 8192);
	dirtymap_free(m);
}

static void
merge_and_grow_keep_all(void **state)
{
	struct dirtymap *a = map_new(SIZE, SHIFT), *b = map_new(SIZE, SHIFT);
	uint8_t model[BLOCKS] = {0};
	struct range run;

	(void)state;
	(void)dirtymap_set(a, 0, BLOCK);
	(void)dirtymap_set(b, 0, 2 * BLOCK);
	(void)dirtymap_set(b, 699 * BLOCK, 1);
	dirtymap_merge(a, b, 0, UINT64_MAX);
	model[0] = model[1] = model[699] = 1;
	assert_same(a, model, UINT64_MAX);
	assert_int_equal(dirtymap_grow(a, 100 * SIZE, NULL), 0);
	assert_int_equal(dirtymap_bytes(a), 3 * BLOCK);
	assert_false(dirtymap_next(a, SIZE, UINT64_MAX, &run));
	assert_true(dirtymap_set(a, 100 * SIZE - 1, 1));
	assert_true(dirtymap_next(a, SIZE, UINT64_MAX, &run));
	assert_int_equal(run.off, 100 * SIZE - BLOCK);
	dirtymap_free(a);
	dirtymap_free(b);
}

static void
a_part_is_merged(void **state)
{
	struct dirtymap *b = map_new(SIZE, SHIFT);
	uint64_t seed = 88172645463325252ULL;

	(void)state;
	for (uint64_t n = 0; n < BLOCKS; n++)
		if (n % 3)
			(void)dirtymap_set(b, n * BLOCK, 1);
	for (unsigned round = 0; round < 200; round++) {
		struct dirtymap *a = map_new(SIZE, SHIFT);
		uint64_t from = rng_next(&seed) % (BLOCKS + 9), to = rng_next(&seed) % (BLOCKS + 9);
		uint8_t model[BLOCKS] = {0};

		for (uint64_t n = 0; n < BLOCKS; n++) {
			bool had = n % 5 == 0;

			if (had)
				(void)dirtymap_set(a, n * BLOCK, 1);
			model[n] = had || (n % 3 && n >= from && n < to);
		}
		dirtymap_merge(a, b, from * BLOCK, to > from ? (to - from) * BLOCK : 0);
		assert_same(a, model, UINT64_MAX);
		dirtymap_free(a);
	}
	dirtymap_free(b);
}

/* What finding the first run takes, of the processor; the least of several times. */
static uint64_t
find_ns(const struct dirtymap *m, struct range *run)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < 9; i++) {
		struct timespec begin, end;
		uint64_t ns;

		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
		assert_true(dirtymap_next(m, 0, UINT64_MAX, run));
		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
		ns = (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000ULL + (uint64_t)end.tv_nsec -
		     (uint64_t)begin.tv_nsec;
		least = ns < least ? ns : least;
	}
	return least;
}

/* 64 GiB, all dirty but for the last block, or nothing dirty but that: not bit by bit either. */
static void
a_run_takes_as_long_as_a_gap(void **state)
{
	const uint64_t size = 1ULL << 36;
	struct dirtymap *m = map_new(size, SHIFT);
	uint64_t gap_ns, run_ns;
	struct range run;

	(void)state;
	(void)dirtymap_set(m, size - 1, 1);
	gap_ns = find_ns(m, &run);
	assert_int_equal(run.off, size - BLOCK);
	dirtymap_unset(m, size - 1, 1);
	(void)dirtymap_set(m, 0, size - BLOCK);
	run_ns = find_ns(m, &run);
	assert_int_equal(run.len, size - BLOCK);
	assert_true(run_ns < 10 * gap_ns);
	dirtymap_free(m);
}

/* What was set behind the size from before is gone, and does not come back by growing anew. */
static void
a_growth_is_undone(void **state)
{
	static const uint64_t sizes[] = {SIZE, SIZE - 4096, SIZE - 3 * BLOCK, 64 * BLOCK,
					 65 * BLOCK};
	struct range run;

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct dirtymap *m = map_new(sizes[i], SHIFT);
		uint64_t last = (sizes[i] - 1) / BLOCK * BLOCK;

		assert_int_equal(dirtymap_grow(m, 50 * SIZE, NULL), 0);
		dirtymap_set_all(m);
		dirtymap_grow_undo(m, sizes[i]);
		assert_int_equal(dirtymap_bytes(m), sizes[i]);
		assert_true(dirtymap_next(m, last, UINT64_MAX, &run));
		assert_int_equal(run.off + run.len, sizes[i]);
		dirtymap_grow_undo(m, 60 * SIZE);
		assert_int_equal(dirtymap_grow(m, 50 * SIZE, NULL), 0);
		assert_false(dirtymap_next(m, last + BLOCK, UINT64_MAX, &run));
		dirtymap_clear(m);
		assert_int_equal(dirtymap_bytes(m), 0);
		dirtymap_free(m);
	}
}

/* Pages carry the bits to another map, and never one behind the pool's end. */
static void
pages_round_trip(void **state)
{
	uint64_t size = 3 * DIRTYMAP_PAGE_WORDS * 64 * BLOCK - 17 * BLOCK;
	struct dirtymap *a = map_new(size, SHIFT), *b = map_new(size, SHIFT);
	uint64_t seed = 99, words[DIRTYMAP_PAGE_WORDS];
	struct range x, y;
	uint64_t at = 0;

	(void)state;
	for (unsigned i = 0; i < 300; i++)
		(void)dirtymap_set(a, rng_next(&seed) % size, 1 + rng_next(&seed) % (9 * BLOCK));
	assert_int_equal(dirtymap_pages(a), 3);
	assert_int_equal(dirtymap_page_at(a, size - 1), 2);
	for (unsigned p = 0; p < 3; p++) {
		memset(words, 0, sizeof(words));
		dirtymap_page_get(a, p, words);
		dirtymap_page_set(b, p, words);
	}
	assert_int_equal(dirtymap_bytes(a), dirtymap_bytes(b));
	while (dirtymap_next(a, at, UINT64_MAX, &x)) {
		assert_true(dirtymap_next(b, at, UINT64_MAX, &y));
		assert_int_equal(x.off, y.off);
		assert_int_equal(x.len, y.len);
		at = x.off + x.len;
	}
	dirtymap_clear(b);
	memset(words, 0xff, sizeof(words));
	dirtymap_page_set(b, 2, words);
	assert_int_equal(dirtymap_bytes(b), size - 2 * DIRTYMAP_PAGE_WORDS * 64 * BLOCK);
	dirtymap_page_set_all(b, 0);
	dirtymap_page_set_all(b, 1);
	assert_int_equal(dirtymap_bytes(b), size);
	dirtymap_page_set_all(b, 3);
	dirtymap_free(a);
	dirtymap_free(b);
}

#define THREADS 4

struct setter {
	struct dirtymap *m;
	uint64_t seed;
};

static void *
setter_main(void *arg)
{
	struct setter *s = arg;

	for (unsigned i = 0; i < 20000; i++)
		(void)dirtymap_set(s->m, rng_next(&s->seed) % SIZE, 1);
	return NULL;
}

static void
threads_lose_nothing(void **state)
{
	struct dirtymap *m = map_new(SIZE, SHIFT);
	struct setter s[THREADS];
	uint8_t model[BLOCKS] = {0};
	pthread_t t[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		uint64_t seed = 1000 + i;

		s[i] = (struct setter){.m = m, .seed = seed};
		assert_int_equal(pthread_create(&t[i], NULL, setter_main, &s[i]), 0);
		for (unsigned k = 0; k < 20000; k++)
			model[rng_next(&seed) % SIZE / BLOCK] = 1;
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_same(m, model, UINT64_MAX);
	dirtymap_free(m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_what_was_set),
		cmocka_unit_test(what_is_unset_is_clean),
		cmocka_unit_test(nothing_is_found_behind_an_end),
		cmocka_unit_test(runs_begin_and_end_where_they_must),
		cmocka_unit_test(last_block_is_cut),
		cmocka_unit_test(merge_and_grow_keep_all),
		cmocka_unit_test(a_part_is_merged),
		cmocka_unit_test(a_run_takes_as_long_as_a_gap),
		cmocka_unit_test(a_growth_is_undone),
		cmocka_unit_test(pages_round_trip),
		cmocka_unit_test(threads_lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
