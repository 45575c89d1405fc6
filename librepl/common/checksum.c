/* SPDX-License-Identifier: BSD-3-Clause */
#include "checksum.h"

#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* for the size of a state */
#include <xxhash.h>
#ifdef REPL_XXH_DISPATCH
#include <xxh_x86dispatch.h> /* the same functions, by what the CPU has */
#endif

uint64_t
sum64(const void *data, size_t len)
{
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

void
hash128(const void *data, size_t len, uint8_t out[HASH128_SIZE])
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, len));
	memcpy(out, canonical.digest, HASH128_SIZE);
}
