/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sums that media and messages hold are XXH3's of every length, however they are computed. What
 * is compared by a key nobody can make equal who does not know it.
 */
#include "unit.h"

#include <xxhash.h>

#include "checksum.h"
#include "hex.h"

#define LEN_MAX   9000U
#define LARGE_MAX 70000U

static uint8_t bytes[LARGE_MAX];
static const uint8_t key[HASH_KEY_SIZE] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void
test_every_length(void **state)
{
	static const struct hash_key none;
	struct hash_key k;
	uint32_t x = 1;

	(void)state;
	hash_key_set(&k, key);
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
		hash128_keyed(&none, bytes, len, hash);
		assert_memory_equal(hash, canonical.digest, HASH128_SIZE);
		hash128_keyed(&k, bytes, len, hash);
		XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSecret(bytes, len, k.secret,
									     sizeof(k.secret)));
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

/*
 * Of somebody who chooses what is in a block: in each of two stripes a word whose low half is that
 * of XXH3's own secret there. Nothing of them counts but their sum.
 */
static void
chosen_block(uint8_t block[65536], uint8_t add)
{
	static const uint8_t low[2][4] = {{0xb8, 0xfe, 0x6c, 0x39}, {0x7c, 0x01, 0x81, 0x2c}};

	memset(block, 'x', 65536);
	memcpy(block, low[0], 4);
	memcpy(block + 64, low[1], 4);
	block[4] = (uint8_t)(8 + add);
	block[64 + 4] = (uint8_t)(8 - add);
}

static void
test_chosen_blocks_differ_by_a_key(void **state)
{
	static uint8_t block[2][65536];
	uint8_t hash[2][HASH128_SIZE], other[HASH_KEY_SIZE] = {0};
	struct hash_key k;

	(void)state;
	chosen_block(block[0], 0);
	chosen_block(block[1], 1);
	assert_memory_not_equal(block[0], block[1], sizeof(block[0]));
	for (size_t len = 4096; len <= sizeof(block[0]); len *= 16) {
		hash128(block[0], len, hash[0]);
		hash128(block[1], len, hash[1]);
		assert_memory_equal(hash[0], hash[1], HASH128_SIZE);
		for (uint8_t i = 0; i < 100; i++) {
			other[i % HASH_KEY_SIZE] ^= (uint8_t)(i + 1);
			hash_key_set(&k, other);
			hash128_keyed(&k, block[0], len, hash[0]);
			hash128_keyed(&k, block[1], len, hash[1]);
			assert_memory_not_equal(hash[0], hash[1], HASH128_SIZE);
		}
	}
}

/* Both sides come to the same, whichever version of whatever they run. */
static void
test_known_by_a_key(void **state)
{
	static const char want[] = "3ec7eaa96f11217a6d94a8ef565a0fbb";
	static uint8_t block[65536];
	struct hash_key k;
	uint8_t hash[HASH128_SIZE];
	char text[2 * HASH128_SIZE + 1];

	(void)state;
	for (unsigned i = 0; i < sizeof(block); i++)
		block[i] = (uint8_t)(i * 7 + i / 256);
	hash_key_set(&k, key);
	hash128_keyed(&k, block, sizeof(block), hash);
	hex_encode(hash, sizeof(hash), text);
	assert_string_equal(text, want);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_length), cmocka_unit_test(test_long),
		cmocka_unit_test(test_known), cmocka_unit_test(test_known_by_a_key),
		cmocka_unit_test(test_chosen_blocks_differ_by_a_key)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
