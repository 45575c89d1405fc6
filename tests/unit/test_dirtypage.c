/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of a dirty map have golden bytes, and one flipped bit anywhere in one is seen. */
#include "unit.h"

#include "checksum.h"
#include "dirtypage.h"
#include "le.h"

static const struct gen_id pool = {{0x10, 0x11, 0x12}}, other = {{0x10, 0x11, 0x13}};

static const struct dirtypage_header header = {
	.activity = true,
	.count = 2,
	.shift = 14,
	.extent_shift = 22,
	.pool_size = 1ULL << 30,
	.file = {.inode = 0x1112, .born = 0x13141516},
	.slot = {{.tracked = true, .name = {7, 8}, .base = {{1, 2, 3}}, .epoch = 5},
		 {.untrusted = true, .name = {9}}},
};

#define PAGES 3U /* 65536 blocks */

static const uint8_t golden_header[] = {
	'R', 'E', 'P', 'L', 'D', 'I', 'R', 'T', 1, 0, 1, 0, 2, 0, 0, 0, 14, 0, 0, 0, 22, 0, 0, 0,
};

static void
header_has_golden_bytes(void **state)
{
	uint64_t len = (2 + 2 * PAGES) * 4096;
	uint8_t page[DIRTYPAGE_SIZE], want[DIRTYPAGE_SIZE] = {0};
	struct dirtypage_header got;

	(void)state;
	assert_int_equal(dirtypage_region_len(&header), len);
	assert_int_equal(dirtypage_index(&header, 1, 2), 2 + PAGES + 2);
	dirtypage_header_encode(&header, &pool, page);
	memcpy(want, golden_header, sizeof(golden_header));
	memcpy(want + 24, page + 24, 8);
	put_le64(want + 32, 1ULL << 30);
	put_le64(want + 40, 0x1112);
	put_le64(want + 48, 0x13141516);
	want[64] = 1;
	want[64 + 8] = 5;
	memcpy(want + 64 + 16, "\7\10", 2);
	memcpy(want + 64 + 32, "\1\2\3", 3);
	want[112] = 2;
	want[112 + 16] = 9;
	assert_memory_equal(page, want, sizeof(want));
	assert_int_equal(get_le64(page + 24), 0x897f5bdb59569d8c);
	assert_int_equal(dirtypage_header_decode(page, &pool, len, &got, NULL), 0);
	assert_memory_equal(&got, &header, sizeof(got));
	assert_int_equal(dirtypage_header_decode(page, &other, len, &got, NULL), REPL_E_CORRUPT);
	assert_int_equal(dirtypage_header_decode(page, &pool, len + 4096, &got, NULL),
			 REPL_E_CORRUPT);
}

static void
pages_have_golden_bytes(void **state)
{
	uint64_t words[DIRTYMAP_PAGE_WORDS] = {1, 1ULL << 63}, back[DIRTYMAP_PAGE_WORDS];
	uint64_t log[DIRTYPAGE_EXTENT_WORDS] = {[63] = 1ULL << 63}, number;
	uint8_t page[DIRTYPAGE_SIZE], want[DIRTYPAGE_SIZE] = {0};

	(void)state;
	words[DIRTYMAP_PAGE_WORDS - 1] = 2;
	dirtypage_map_encode(words, &pool, 4, 9, page);
	memcpy(want, page, 8);
	want[8] = 9;
	want[16] = 1;
	want[31] = 0x80;
	want[4088] = 2;
	assert_memory_equal(page, want, sizeof(want));
	assert_int_equal(get_le64(page), 0x892bee4f4e5c4b9e);
	assert_true(dirtypage_map_decode(page, &pool, 4, &number, back));
	assert_int_equal(number, 9);
	assert_memory_equal(back, words, sizeof(words));
	/* At another place, or of another pool, it is damage. */
	assert_false(dirtypage_map_decode(page, &pool, 5, &number, back));
	assert_false(dirtypage_map_decode(page, &other, 4, &number, back));

	dirtypage_activity_encode(log, &pool, page);
	memset(want, 0, sizeof(want));
	memcpy(want, page, 8);
	want[16 + 511] = 0x80;
	assert_memory_equal(page, want, sizeof(want));
	assert_int_equal(get_le64(page), 0x1b1243aec76a1289);
	assert_true(dirtypage_activity_decode(page, &pool, back));
	assert_memory_equal(back, log, sizeof(log));
	assert_false(dirtypage_activity_decode(page, &other, back));
}

static void
every_flipped_bit_is_seen(void **state)
{
	uint64_t words[DIRTYMAP_PAGE_WORDS] = {0xff}, number;
	uint8_t map[DIRTYPAGE_SIZE], log[DIRTYPAGE_SIZE], head[DIRTYPAGE_SIZE];
	uint64_t len = dirtypage_region_len(&header);
	struct dirtypage_header h;

	(void)state;
	dirtypage_map_encode(words, &pool, 3, 1, map);
	dirtypage_activity_encode(words, &pool, log);
	dirtypage_header_encode(&header, &pool, head);
	for (unsigned bit = 0; bit < DIRTYPAGE_SIZE * 8; bit++) {
		uint8_t flip = (uint8_t)(1U << (bit % 8));

		map[bit / 8] ^= flip;
		log[bit / 8] ^= flip;
		head[bit / 8] ^= flip;
		assert_false(dirtypage_map_decode(map, &pool, 3, &number, words));
		assert_false(dirtypage_activity_decode(log, &pool, words));
		assert_int_equal(dirtypage_header_decode(head, &pool, len, &h, NULL),
				 REPL_E_CORRUPT);
		map[bit / 8] ^= flip;
		log[bit / 8] ^= flip;
		head[bit / 8] ^= flip;
	}
	assert_true(dirtypage_map_decode(map, &pool, 3, &number, words));
	/* What was never written is damage too. */
	memset(map, 0, sizeof(map));
	assert_false(dirtypage_map_decode(map, &pool, 3, &number, words));
}

static void
extents_cover_the_pool(void **state)
{
	(void)state;
	assert_int_equal(dirtypage_extent_shift(4096), 22);
	assert_int_equal(dirtypage_extent_shift(1ULL << 34), 22);
	assert_int_equal(dirtypage_extent_shift((1ULL << 34) + 4096), 23);
	assert_int_equal(dirtypage_extent_shift(1ULL << 40), 28);
	for (unsigned i = 12; i < 63; i++) {
		uint64_t size = (1ULL << i) + (i < 62 ? 4096 : 0);

		assert_true(((size - 1) >> dirtypage_extent_shift(size)) < DIRTYPAGE_EXTENTS);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_has_golden_bytes),
		cmocka_unit_test(pages_have_golden_bytes),
		cmocka_unit_test(every_flipped_bit_is_seen),
		cmocka_unit_test(extents_cover_the_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
