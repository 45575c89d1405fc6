/* SPDX-License-Identifier: BSD-3-Clause */
/* What a replica has missed stays marked until it has it; only a map of its generation is trusted.
 */
#include "unit.h"

#include "dirty.h"

#define MIB (1ULL << 20)

static const struct gen_id gen_a = {{1}}, gen_b = {{2}}, nil = {{0}};

static struct dirty *
dirty_new(struct local *l, struct repl_config *c, unsigned replicas, bool crashed)
{
	struct dirty *d = NULL;

	local_init(l);
	c->target_count = replicas;
	assert_int_equal(dirty_open(l, c, 64 * MIB, crashed, &d, NULL), 0);
	dirty_start(d);
	return d;
}

static void
only_its_own_base_is_trusted(void **state)
{
	struct repl_config c = {0};
	struct local l;
	struct dirty *d = dirty_new(&l, &c, 2, false);

	(void)state;
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_NONE);
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	assert_true(dirty_tracked(d, 0) && !dirty_tracked(d, 1));
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_TRUSTED);
	assert_int_equal(dirty_found(d, 0, &gen_b), DIRTY_UNTRUSTED);
	assert_int_equal(dirty_found(d, 0, &nil), DIRTY_UNTRUSTED);
	dirty_mark(d, 0, 5, 1);
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_TRUSTED);
	assert_int_equal(dirty_track(d, 0, &gen_b), 0);
	assert_int_equal(dirty_found(d, 0, &gen_b), DIRTY_UNTRUSTED);
	dirty_rebase(d, 0, &gen_b);
	assert_int_equal(dirty_found(d, 0, &gen_b), DIRTY_TRUSTED);
	assert_int_equal(dirty_bytes(d, 0), dirty_grain(d));
	dirty_untrack(d, 0);
	assert_int_equal(dirty_found(d, 0, &gen_b), DIRTY_NONE);
	dirty_close(d);
	local_fini(&l);
}

static void
a_map_begun_after_a_crash_is_not_trusted(void **state)
{
	struct repl_config c = {0};
	struct local l;
	struct dirty *d = dirty_new(&l, &c, 1, true);

	(void)state;
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_UNTRUSTED);
	dirty_rebase(d, 0, &gen_a);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_TRUSTED);
	dirty_untrack(d, 0);
	assert_int_equal(dirty_track(d, 0, &gen_b), 0);
	assert_int_equal(dirty_found(d, 0, &gen_b), DIRTY_TRUSTED);
	dirty_close(d);
	local_fini(&l);
}

static void
a_batch_comes_back_or_goes(void **state)
{
	struct repl_config c = {0};
	struct local l;
	struct dirty *d = dirty_new(&l, &c, 1, false);
	struct dirtymap *batch;

	(void)state;
	dirty_mark(d, 0, 0, 1);
	assert_int_equal(dirty_bytes(d, 0), 0);
	assert_null(dirty_batch_begin(d, 0));
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	dirty_mark(d, 0, 0, 1);
	batch = dirty_batch_begin(d, 0);
	assert_non_null(batch);
	dirty_mark(d, 0, MIB, 1);
	assert_int_equal(dirtymap_bytes(batch), dirty_grain(d));
	assert_int_equal(dirty_bytes(d, 0), 2 * dirty_grain(d));
	dirty_batch_end(d, 0, false);
	assert_int_equal(dirty_bytes(d, 0), 2 * dirty_grain(d));
	batch = dirty_batch_begin(d, 0);
	assert_int_equal(dirtymap_bytes(batch), 2 * dirty_grain(d));
	dirty_mark(d, 0, 2 * MIB, 1);
	dirty_batch_end(d, 0, true);
	assert_int_equal(dirty_bytes(d, 0), dirty_grain(d));
	dirty_mark_all(d, 0);
	assert_int_equal(dirty_bytes(d, 0), 64 * MIB);
	assert_int_equal(dirty_grow(d, 128 * MIB, NULL), 0);
	assert_int_equal(dirty_bytes(d, 0), 64 * MIB);
	dirty_mark(d, 0, 127 * MIB, MIB);
	assert_int_equal(dirty_bytes(d, 0), 65 * MIB);
	dirty_close(d);
	local_fini(&l);
}

static void
memory_is_bounded(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= REPL_TARGETS_MAX; n++) {
		for (uint64_t size = 64 * MIB; size <= MIB << 20; size = size * 2 + 4096 * n) {
			uint64_t bound = size / 32768;

			/* What has to be rounded up, at most: a page for all of them. */
			assert_true(dirty_memory(size, n) <= bound + 4096);
			if (size >= 1024 * MIB)
				assert_true(dirty_memory(size, n) <= bound + 16 * n);
		}
		assert_true(dirty_memory(MIB << 20, n) <= (MIB << 20) / 32768);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_its_own_base_is_trusted),
		cmocka_unit_test(a_map_begun_after_a_crash_is_not_trusted),
		cmocka_unit_test(a_batch_comes_back_or_goes),
		cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
