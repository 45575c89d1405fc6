/* SPDX-License-Identifier: BSD-3-Clause */
/* A dirty map's header that is accepted bounds its region, and pages survive another round. */
#include <string.h>

#include "checksum.h"
#include "dirtypage.h"
#include "fuzz.h"
#include "le.h"

static const struct gen_id pool = {{1, 2, 3}};

/* As POOL-FORMAT.md says, so that damage of the other kind gets behind the checksum. */
static void
seal(uint8_t *page, unsigned at, uint64_t index)
{
	static const uint8_t zero[8];
	uint8_t place[24];
	uint64_t sum;

	memcpy(place, pool.b, 16);
	put_le64(place + 16, index);
	sum = sum64(place, sizeof(place));
	if (at)
		sum = sum64_seeded(page, at, sum);
	sum = sum64_seeded(zero, sizeof(zero), sum);
	put_le64(page + at, sum64_seeded(page + at + 8, DIRTYPAGE_SIZE - at - 8, sum));
}

static void
header(const uint8_t *page, uint64_t len)
{
	struct dirtypage_header h = {.count = 0}, back = {.count = 0};
	uint8_t again[DIRTYPAGE_SIZE];

	if (dirtypage_header_decode(page, &pool, len, &h, NULL))
		return;
	FUZZ_CHECK(h.count >= 1 && h.count <= DIRTYPAGE_REPLICAS_MAX);
	FUZZ_CHECK(h.shift >= DIRTYMAP_SHIFT_MIN && h.shift <= DIRTYMAP_SHIFT_MAX);
	FUZZ_CHECK(dirtypage_region_len(&h) == len);
	FUZZ_CHECK(((h.pool_size - 1) >> h.extent_shift) < DIRTYPAGE_EXTENTS);
	dirtypage_header_encode(&h, &pool, again);
	FUZZ_CHECK(memcmp(again, page, sizeof(again)) == 0);
	FUZZ_CHECK(dirtypage_header_decode(again, &pool, len, &back, NULL) == 0);
}

static void
bits(const uint8_t *page)
{
	uint64_t words[DIRTYMAP_PAGE_WORDS], number;
	uint8_t again[DIRTYPAGE_SIZE];

	if (dirtypage_map_decode(page, &pool, 7, &number, words)) {
		dirtypage_map_encode(words, &pool, 7, number, again);
		FUZZ_CHECK(memcmp(again, page, sizeof(again)) == 0);
	}
	if (dirtypage_activity_decode(page, &pool, words)) {
		dirtypage_activity_encode(words, &pool, again);
		FUZZ_CHECK(memcmp(again, page, sizeof(again)) == 0);
	}
}

/* As it came, and with checksums that fit. The region's length is of the input's first bytes. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t page[DIRTYPAGE_SIZE] = {0};
	uint64_t len = size > 8 ? get_le64(data) : 4096 * 9;

	if (size > 8)
		memcpy(page, data + 8, size - 8 < sizeof(page) ? size - 8 : sizeof(page));
	header(page, len);
	bits(page);
	seal(page, 24, 0);
	header(page, len);
	seal(page, 0, 7);
	bits(page);
	seal(page, 0, DIRTYPAGE_ACTIVITY);
	bits(page);
	return 0;
}

size_t
fuzz_seed(unsigned i, uint8_t *buf)
{
	uint64_t words[DIRTYMAP_PAGE_WORDS] = {i};
	struct dirtypage_header h = {
		.activity = i % 2,
		.count = i + 1,
		.shift = 13 + i,
		.extent_shift = 22 + i,
		.pool_size = 4096ULL << (10 + i),
		.slot = {{.tracked = true, .base = {{1}}, .epoch = i}},
	};

	if (i >= 6)
		return 0;
	if (i < 4) {
		put_le64(buf, dirtypage_region_len(&h));
		dirtypage_header_encode(&h, &pool, buf + 8);
	} else if (i == 4) {
		dirtypage_map_encode(words, &pool, 7, i, buf + 8);
	} else {
		dirtypage_activity_encode(words, &pool, buf + 8);
	}
	return 8 + DIRTYPAGE_SIZE;
}
