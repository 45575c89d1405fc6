/* SPDX-License-Identifier: BSD-3-Clause */
/* A range set holds exactly the bytes added to it, in as few ranges as there are runs. */
#include "unit.h"

#include "rangeset.h"

#define MODEL_SIZE 1024

/* xorshift64: the same ranges in every run. */
static uint64_t
rng_next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static unsigned
model_runs(const uint8_t *model)
{
	unsigned runs = 0;

	for (unsigned i = 0; i < MODEL_SIZE; i++)
		runs += model[i] && (i == 0 || !model[i - 1]);
	return runs;
}

static void
assert_same(const struct rangeset *s, const uint8_t *model)
{
	uint8_t have[MODEL_SIZE] = {0};
	uint64_t bytes = 0;

	for (unsigned i = 0; i < s->count; i++) {
		assert_true(s->r[i].len > 0);
		assert_true(s->r[i].off + s->r[i].len <= MODEL_SIZE);
		if (i > 0)
			assert_true(s->r[i].off > s->r[i - 1].off + s->r[i - 1].len);
		memset(have + s->r[i].off, 1, s->r[i].len);
		bytes += s->r[i].len;
	}
	assert_memory_equal(have, model, MODEL_SIZE);
	assert_true(s->bytes == bytes);
	assert_int_equal(s->count, model_runs(model));
}

static void
add_to_both(struct rangeset *s, uint8_t *model, uint64_t off, uint64_t len)
{
	struct rangeset before = *s;
	uint8_t next[MODEL_SIZE];
	unsigned runs;
	int ret;

	memcpy(next, model, MODEL_SIZE);
	memset(next + off, 1, len);
	runs = model_runs(next);
	ret = rangeset_add(s, off, len);
	if (ret < 0) {
		assert_int_equal(before.count, RANGESET_MAX);
		assert_int_equal(runs, RANGESET_MAX + 1);
		assert_memory_equal(s, &before, sizeof(before));
		return;
	}
	/* What was merged is what is missing from the old ranges and the new one. */
	assert_int_equal(ret, before.count + 1 - runs);
	memcpy(model, next, MODEL_SIZE);
}

static void
equals_a_bitmap_under_random_adds(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15ULL;
	struct rangeset s;
	uint8_t model[MODEL_SIZE];
	bool was_full = false;

	(void)state;
	for (unsigned round = 0; round < 100; round++) {
		uint64_t len_max = round % 10 == 0 ? 100 : 1 + round % 5;

		memset(&s, 0, sizeof(s));
		rangeset_clear(&s);
		memset(model, 0, sizeof(model));
		for (unsigned i = 0; i < 300; i++) {
			uint64_t len = 1 + rng_next(&seed) % len_max;
			uint64_t off = rng_next(&seed) % (MODEL_SIZE - len + 1);

			add_to_both(&s, model, off, len);
			assert_same(&s, model);
			was_full = was_full || s.count == RANGESET_MAX;
		}
	}
	assert_true(was_full);
}

static void
meets_what_has_a_byte_in_common(void **state)
{
	struct rangeset s;

	(void)state;
	rangeset_clear(&s);
	assert_false(rangeset_meets(&s, &(struct range){.off = 0, .len = 100}));
	(void)rangeset_add(&s, 10, 10);
	(void)rangeset_add(&s, 30, 10);
	assert_false(rangeset_meets(&s, &(struct range){.off = 0, .len = 10}));
	assert_false(rangeset_meets(&s, &(struct range){.off = 20, .len = 10}));
	assert_false(rangeset_meets(&s, &(struct range){.off = 40, .len = 10}));
	assert_false(rangeset_meets(&s, &(struct range){.off = 35, .len = 0}));
	assert_true(rangeset_meets(&s, &(struct range){.off = 0, .len = 11}));
	assert_true(rangeset_meets(&s, &(struct range){.off = 19, .len = 1}));
	assert_true(rangeset_meets(&s, &(struct range){.off = 20, .len = 11}));
	assert_true(rangeset_meets(&s, &(struct range){.off = 0, .len = 100}));
}

static void
full_set_still_merges(void **state)
{
	struct rangeset s;

	(void)state;
	rangeset_clear(&s);
	for (unsigned i = 0; i < RANGESET_MAX; i++)
		assert_int_equal(rangeset_add(&s, i * 10ULL, 1), 0);
	assert_int_equal(rangeset_add(&s, RANGESET_MAX * 10ULL, 1), -1);
	assert_int_equal(rangeset_add(&s, 5, 1), -1);
	assert_int_equal(s.count, RANGESET_MAX);
	assert_int_equal(rangeset_add(&s, 0, 1), 1);
	assert_int_equal(rangeset_add(&s, 1, 9), 2);
	assert_int_equal(s.count, RANGESET_MAX - 1);
	assert_int_equal(rangeset_add(&s, 0, RANGESET_MAX * 10ULL), RANGESET_MAX - 1);
	assert_int_equal(s.count, 1);
	assert_true(s.bytes == RANGESET_MAX * 10ULL);
}

static void
holds_the_highest_offset(void **state)
{
	struct rangeset s;

	(void)state;
	rangeset_clear(&s);
	assert_int_equal(rangeset_add(&s, UINT64_MAX - 8, 8), 0);
	assert_int_equal(rangeset_add(&s, 0, 1), 0);
	assert_int_equal(rangeset_add(&s, UINT64_MAX - 16, 8), 1);
	assert_int_equal(s.count, 2);
	assert_true(s.r[1].off == UINT64_MAX - 16 && s.r[1].len == 16);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_a_bitmap_under_random_adds),
		cmocka_unit_test(full_set_still_merges),
		cmocka_unit_test(meets_what_has_a_byte_in_common),
		cmocka_unit_test(holds_the_highest_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
