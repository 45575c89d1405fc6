/* SPDX-License-Identifier: BSD-3-Clause */
/* What a replica has missed stays marked until it has it; only a map of its generation is trusted.
 */
#include "unit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dirty_impl.h"
#include "tempdir.h"

#define MIB (1ULL << 20)

static const struct gen_id gen_a = {{1}}, gen_b = {{2}}, nil = {{0}};

static struct dirty *
dirty_new(struct local *l, struct repl_config *c, unsigned replicas, bool crashed)
{
	struct dirty *d = NULL;

	local_init(l);
	c->target_count = replicas;
	assert_int_equal(dirty_open(l, c, 64 * MIB, crashed, &d, NULL), 0);
	assert_int_equal(dirty_start(d, NULL), 0);
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

/* What it says that it has is known of it from then on, and what it lacks is not. */
static void
what_a_replica_tells_is_its_base(void **state)
{
	struct repl_config c = {0};
	struct local l;
	struct dirty *d = dirty_new(&l, &c, 2, false);
	struct gen_id base;

	(void)state;
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	assert_int_equal(dirty_track_found(d, 0, &gen_a), 0);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_TRUSTED);
	/* One that was made anew. */
	assert_int_equal(dirty_track_found(d, 0, &nil), 0);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_TRUSTED);
	assert_int_equal(dirty_track_found(d, 0, &gen_b), 0);
	assert_int_equal(dirty_found(d, 0, &gen_b), DIRTY_UNTRUSTED);
	assert_true(dirty_base(d, 0, &base) && gen_id_equal(&base, &gen_b));
	assert_int_equal(dirty_track_found(d, 1, &gen_b), 0);
	assert_int_equal(dirty_found(d, 1, &gen_b), DIRTY_UNTRUSTED);
	dirty_close(d);
	local_fini(&l);
}

/* Of one generation each must lack no more than its map says, whichever copy is put in its place.
 */
static void
those_lost_in_one_generation_lack_the_same(void **state)
{
	struct repl_config c = {0};
	struct local l;
	struct dirty *d = dirty_new(&l, &c, 2, false);

	(void)state;
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	dirty_mark(d, 0, 0, 1);
	assert_int_equal(dirty_track(d, 1, &gen_a), 0);
	assert_int_equal(dirty_bytes(d, 1), dirty_grain(d));
	dirty_untrack(d, 1);
	assert_non_null(dirty_batch_begin(d, 0));
	assert_int_equal(dirty_track(d, 1, &gen_a), 0);
	assert_int_equal(dirty_bytes(d, 1), dirty_grain(d));
	dirty_untrack(d, 1);
	assert_int_equal(dirty_track(d, 1, &gen_b), 0);
	assert_int_equal(dirty_bytes(d, 1), 0);
	dirty_batch_end(d, 0, false);
	/* Nor less than that of one that is lost later, and lags more. */
	dirty_mark(d, 1, dirty_grain(d), 1);
	dirty_share(d, 1);
	assert_int_equal(dirty_bytes(d, 0), dirty_grain(d));
	dirty_untrack(d, 1);
	assert_int_equal(dirty_track(d, 1, &gen_a), 0);
	dirty_mark(d, 1, dirty_grain(d), 1);
	dirty_share(d, 1);
	assert_int_equal(dirty_bytes(d, 0), 2 * dirty_grain(d));
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
	/* It has failed elsewhere, and is tried again by less. */
	dirty_grow_undo(d, 64 * MIB);
	assert_int_equal(dirty_bytes(d, 0), 64 * MIB);
	dirty_mark(d, 0, 127 * MIB, MIB);
	assert_int_equal(dirty_bytes(d, 0), 64 * MIB);
	assert_int_equal(dirty_grow(d, 96 * MIB, NULL), 0);
	assert_int_equal(dirty_bytes(d, 0), 64 * MIB);
	dirty_doubt(d, 0);
	assert_int_equal(dirty_found(d, 0, &gen_a), DIRTY_UNTRUSTED);
	dirty_close(d);
	local_fini(&l);
}

/* Who may mark meanwhile; NULL: nobody is asked. */
static struct dirty *merging;
static unsigned merges;

void __real_dirtymap_merge(struct dirtymap *dst, const struct dirtymap *src, uint64_t off,
			   uint64_t len);
void __wrap_dirtymap_merge(struct dirtymap *dst, const struct dirtymap *src, uint64_t off,
			   uint64_t len);

void
__wrap_dirtymap_merge(struct dirtymap *dst, const struct dirtymap *src, uint64_t off, uint64_t len)
{
	if (merging) {
		merges++;
		assert_true(len <= 1024 * MIB);
		assert_int_equal(pthread_rwlock_tryrdlock(&merging->maps_lock), 0);
		(void)pthread_rwlock_unlock(&merging->maps_lock);
	}
	__real_dirtymap_merge(dst, src, off, len);
}

/* Of a large pool that takes long: others mark meanwhile, and of its parts each is a short one. */
static void
who_marks_does_not_wait_for_a_batch(void **state)
{
	const uint64_t size = 5000 * MIB, upto = 1500 * MIB;
	struct repl_config c = {0};
	struct local l;
	struct dirty *d = dirty_new(&l, &c, 1, false);

	(void)state;
	assert_int_equal(dirty_grow(d, size, NULL), 0);
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	for (unsigned compared = 0; compared < 2; compared++) {
		dirty_mark_all(d, 0);
		assert_non_null(dirty_batch_begin(d, 0));
		dirty_mark(d, 0, 700 * MIB, 1);
		dirty_mark(d, 0, 2000 * MIB, 1);
		merges = 0;
		merging = d;
		if (compared)
			dirty_batch_compared(d, 0, &gen_a, upto, false);
		else
			dirty_batch_end(d, 0, false);
		merging = NULL;
		assert_int_equal(merges, compared ? 4 : 5);
		assert_int_equal(dirty_bytes(d, 0), compared ? size - upto + dirty_grain(d) : size);
	}
	dirty_close(d);
	local_fini(&l);
}

/* Of so many maps there is memory to let them grow; then there is none. */
static unsigned grow_room = UINT_MAX;

int __real_dirtymap_grow(struct dirtymap *m, uint64_t pool_size, struct err *e);
int __wrap_dirtymap_grow(struct dirtymap *m, uint64_t pool_size, struct err *e);

int
__wrap_dirtymap_grow(struct dirtymap *m, uint64_t pool_size, struct err *e)
{
	if (grow_room == 0)
		return err_set(e, REPL_E_NOMEM, "no memory");
	grow_room--;
	return __real_dirtymap_grow(m, pool_size, e);
}

/* A replica is lost before the growth that found no memory is taken back: its map is of one size
 * with the others'. */
static void
a_growth_without_memory_is_none(void **state)
{
	struct repl_config c = {0};
	struct local l;
	struct dirty *d = dirty_new(&l, &c, 3, false);

	(void)state;
	assert_int_equal(dirty_track(d, 0, &gen_a), 0);
	assert_int_equal(dirty_track(d, 1, &gen_a), 0);
	dirty_mark(d, 0, 0, 1);
	grow_room = 1;
	assert_int_equal(dirty_grow(d, 128 * MIB, NULL), REPL_E_NOMEM);
	grow_room = UINT_MAX;
	assert_int_equal(dirty_track(d, 2, &gen_a), 0);
	assert_int_equal(dirty_bytes(d, 2), dirty_grain(d));
	dirty_mark_all(d, 0);
	assert_int_equal(dirty_bytes(d, 0), 64 * MIB);
	dirty_grow_undo(d, 64 * MIB);
	assert_int_equal(dirty_grow(d, 128 * MIB, NULL), 0);
	assert_int_equal(dirty_bytes(d, 0), 64 * MIB);
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

/* Regions never lie on one another, whatever a sidecar has. */
static void
a_region_has_its_own_place(void **state)
{
	struct sidecar m = {.ring_off = 0};

	(void)state;
	assert_int_equal(region_place(&m, 4096), SIDECAR_SIZE);
	m.ring_off = SIDECAR_SIZE;
	m.ring_len = 65536;
	assert_int_equal(region_place(&m, 4096), SIDECAR_SIZE + 65536);
	m.ring_off += 8192;
	assert_int_equal(region_place(&m, 8192), SIDECAR_SIZE);
	assert_int_equal(region_place(&m, 12288), SIDECAR_SIZE + 8192 + 65536);
	m.dirty_off = SIDECAR_SIZE + 8192 + 65536;
	m.dirty_len = 4096;
	m.journal_off = m.dirty_off + 8192;
	m.journal_len = 4096;
	assert_int_equal(region_place(&m, 12288), m.journal_off + 4096);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_its_own_base_is_trusted),
		cmocka_unit_test(what_a_replica_tells_is_its_base),
		cmocka_unit_test(those_lost_in_one_generation_lack_the_same),
		cmocka_unit_test(a_map_begun_after_a_crash_is_not_trusted),
		cmocka_unit_test(a_batch_comes_back_or_goes),
		cmocka_unit_test(who_marks_does_not_wait_for_a_batch),
		cmocka_unit_test(a_growth_without_memory_is_none),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(a_region_has_its_own_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
