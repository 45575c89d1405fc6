/* SPDX-License-Identifier: BSD-3-Clause */
#include "checksum.h"

#include <string.h>
#include <xxhash.h>

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

void
hash128(const void *data, size_t len, uint8_t out[HASH128_SIZE])
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, len));
	memcpy(out, canonical.digest, HASH128_SIZE);
}
