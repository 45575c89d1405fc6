/* SPDX-License-Identifier: BSD-3-Clause */
/* The sums that media and messages hold are XXH3's of every length, however they are computed. */
#include "unit.h"

#include <xxhash.h>

#include "checksum.h"

#define LEN_MAX   9000U
#define LARGE_MAX 70000U

static uint8_t bytes[LARGE_MAX];

static void
test_every_length(void **state)
{
	uint32_t x = 1;

	(void)state;
	for (unsigned i = 0; i < LARGE_MAX; i++) {
		x = x * 1664525U + 1013904223U;
		bytes[i] = (uint8_t)(x >> 24);
	}
	for (size_t len = 0; len <= LEN_MAX; len++) {
		uint64_t seed = len * 0x9e3779b97f4a7c15U;
		XXH128_canonical_t canonical;
		uint8_t hash[HASH128_SIZE];

		assert_int_equal(sum64(bytes, len), XXH3_64bits(bytes, len));
		assert_int_equal(sum64_seeded(bytes, len, seed),
				 XXH3_64bits_withSeed(bytes, len, seed));
		assert_int_equal(sum64_split(bytes, len / 3, bytes + len / 3, len - len / 3, seed),
				 XXH3_64bits_withSeed(bytes, len, seed));
		hash128(bytes, len, hash);
		XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, len));
		assert_memory_equal(hash, canonical.digest, HASH128_SIZE);
	}
}

/* Around the powers of two, where other instructions may be taken from some length on. */
static void
test_long(void **state)
{
	(void)state;
	for (size_t power = 16384; power < LARGE_MAX; power *= 2) {
		for (size_t len = power - 3; len <= power + 3; len++)
			assert_int_equal(sum64(bytes, len), XXH3_64bits(bytes, len));
	}
}

/* Of another implementation's: XXH3-64, seed 0, of nothing. */
static void
test_known(void **state)
{
	(void)state;
	assert_int_equal(sum64(bytes, 0), 0x2d06800538d394c2U);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_length),
					   cmocka_unit_test(test_long),
					   cmocka_unit_test(test_known)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
