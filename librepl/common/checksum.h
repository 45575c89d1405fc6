/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checksum - the two hashes of the project, both of the XXH3 family.
 *
 * sum64 guards data messages and metadata against damage; hash128 names the
 * content of a block when pools are compared. Neither is a defence against
 * somebody who means harm: SSH and the data tokens are. But what is in a pool
 * others may choose, who write its records and are no peer: without a key that
 * they don't know they can make two blocks of one hash, and a copy keeps the old one.
 */
#ifndef COMMON_CHECKSUM_H
#define COMMON_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH128_SIZE  16
#define HASH_KEY_SIZE 16

uint64_t sum64(const void *data, size_t len);

/* The same with a seed: chains two pieces that don't lie together. */
uint64_t sum64_seeded(const void *data, size_t len, uint64_t seed);

/* sum64_seeded() of two pieces as if they lay together. */
uint64_t sum64_split(const void *a, size_t a_len, const void *b, size_t b_len, uint64_t seed);

/* The hash in canonical (big-endian) byte order. */
void hash128(const void *data, size_t len, uint8_t out[HASH128_SIZE]);

/* And what it makes of XXH3's own secret. All zero: none is given, and hashes are hash128()'s. */
struct hash_key {
	bool given;
	uint8_t key[HASH_KEY_SIZE];
	uint8_t secret[12 * HASH128_SIZE];
};

/* Once a key, not once a hash. */
void hash_key_set(struct hash_key *k, const uint8_t key[HASH_KEY_SIZE]);

void hash128_keyed(const struct hash_key *k, const void *data, size_t len,
		   uint8_t out[HASH128_SIZE]);

#endif
