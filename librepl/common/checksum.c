/* SPDX-License-Identifier: BSD-3-Clause */
#include "checksum.h"

#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* for the size of a state */
#include <xxhash.h>
#ifdef REPL_XXH_DISPATCH
#include <xxh_x86dispatch.h> /* the same functions, by what the CPU has */
#endif
#ifdef REPL_SUM_AVX2
#include "checksum_avx2.h"
#endif

/*
 * The widest multiplications that a CPU has are the fastest for much at once. Now and then for one
 * message they cost it a microsecond and more, in what is done after them.
 */
#define SUM_WIDE_MIN 32768U
#define SUM_LONG_MIN 241U /* what is shorter XXH3 takes without vectors */

uint64_t
sum64(const void *data, size_t len)
{
#ifdef REPL_SUM_AVX2
	if (len >= SUM_LONG_MIN && len < SUM_WIDE_MIN && __builtin_cpu_supports("avx2"))
		return sum64_avx2(data, len);
#endif
	return XXH3_64bits(data, len);
}

uint64_t
sum64_seeded(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}

uint64_t
sum64_split(const void *a, size_t a_len, const void *b, size_t b_len, uint64_t seed)
{
	XXH3_state_t state;

	XXH3_INITSTATE(&state);
	(void)XXH3_64bits_reset_withSeed(&state, seed);
	(void)XXH3_64bits_update(&state, a, a_len);
	(void)XXH3_64bits_update(&state, b, b_len);
	return XXH3_64bits_digest(&state);
}

static void
hash_put(XXH128_hash_t hash, uint8_t out[HASH128_SIZE])
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, hash);
	memcpy(out, canonical.digest, HASH128_SIZE);
}

void
hash128(const void *data, size_t len, uint8_t out[HASH128_SIZE])
{
	hash_put(XXH3_128bits(data, len), out);
}

/*
 * Each lane gets bytes of its own: a seed gives all of them one 64-bit number. XXH3's generator of
 * secrets gives others from release to release, and both sides need the same.
 */
void
hash_key_set(struct hash_key *k, const uint8_t key[HASH_KEY_SIZE])
{
	k->given = true;
	memcpy(k->key, key, HASH_KEY_SIZE);
	for (unsigned i = 0; i < sizeof(k->secret) / HASH128_SIZE; i++)
		hash_put(XXH3_128bits_withSeed(key, HASH_KEY_SIZE, i),
			 k->secret + (size_t)i * HASH128_SIZE);
}

void
hash128_keyed(const struct hash_key *k, const void *data, size_t len, uint8_t out[HASH128_SIZE])
{
	if (k->given)
		hash_put(XXH3_128bits_withSecret(data, len, k->secret, sizeof(k->secret)), out);
	else
		hash128(data, len, out);
}
