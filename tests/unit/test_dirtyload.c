/* SPDX-License-Identifier: BSD-3-Clause */
/* What a dirty map is worth when the pool's file may be another one than it was written for. */
#include "unit.h"

#include "dirtyload.h"

static const struct gen_id pool = {{0x10, 0x11, 0x12}};

static struct dirtypage_header header = {
	.activity = true,
	.count = 1,
	.shift = 13,
	.extent_shift = 22,
	.pool_size = 1ULL << 20,
	.slot = {{.tracked = true, .name = {7}}},
};

static bool
page_read(void *arg, uint64_t index, uint8_t page[DIRTYPAGE_SIZE])
{
	static const uint64_t none[DIRTYPAGE_EXTENT_WORDS];

	(void)arg;
	if (index == 0)
		dirtypage_header_encode(&header, &pool, page);
	else
		dirtypage_activity_encode(none, &pool, page);
	return index <= DIRTYPAGE_ACTIVITY;
}

static bool
is_believed(struct dirtypage_file was, struct dirtypage_file is, bool crashed)
{
	static const uint8_t name[HASH128_SIZE] = {7};
	const struct dirtyload_from from = {.read = page_read,
					    .pool = pool,
					    .len = dirtypage_region_len(&header),
					    .pool_size = 1ULL << 20,
					    .file = is,
					    .crashed = crashed,
					    .keep = true};
	struct dirtyload l;

	header.file = was;
	dirtyload_begin(&l, &from);
	assert_int_equal(l.covered, crashed && !l.suspect);
	assert_int_equal(dirtyload_slot(&l, name), l.suspect ? -1 : 0);
	return !l.suspect;
}

static void
of_another_file_it_is_not_believed(void **state)
{
	const struct dirtypage_file unknown = {0}, one = {5, 6}, young = {5, 7}, other = {4, 6};

	(void)state;
	for (int crashed = 0; crashed < 2; crashed++) {
		assert_true(is_believed(one, one, crashed));
		assert_false(is_believed(one, young, crashed));
		assert_false(is_believed(one, other, crashed));
		/* Of an earlier version, or where the file system does not tell. */
		assert_true(is_believed(unknown, one, crashed));
		assert_true(is_believed(one, unknown, crashed));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_another_file_it_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
