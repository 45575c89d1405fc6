/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * words - copying from and to memory that others store to, or that outlives this process.
 *
 * Memory takes 8 aligned bytes that are stored at once as a whole; memcpy() promises nothing of
 * the kind, and by "rep movsb" takes apart what is stored meanwhile. Here all words of the side
 * that matters are loaded, or stored, at once; where a range ends amid one, its bytes.
 */
#ifndef COMMON_WORDS_H
#define COMMON_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WORDS_SIZE 8U

/* How many of len bytes are in front of the first word. */
static inline size_t
words_before(const void *mem, size_t len)
{
	size_t n = (size_t)(-(uintptr_t)mem % WORDS_SIZE);

	return n < len ? n : len;
}

/* From such memory. */
static inline void
words_load(void *dst, const void *mem, size_t len)
{
	size_t n = words_before(mem, len);
	const uint8_t *from = mem;
	uint8_t *to = dst;
	uint64_t word;

	memcpy(to, from, n);
	for (; len - n >= WORDS_SIZE; n += WORDS_SIZE) {
		word = __atomic_load_n((const uint64_t *)(const void *)(from + n),
				       __ATOMIC_RELAXED);
		memcpy(to + n, &word, WORDS_SIZE);
	}
	memcpy(to + n, from + n, len - n);
}

/* To such memory. */
static inline void
words_store(void *mem, const void *src, size_t len)
{
	size_t n = words_before(mem, len);
	const uint8_t *from = src;
	uint8_t *to = mem;
	uint64_t word;

	memcpy(to, from, n);
	for (; len - n >= WORDS_SIZE; n += WORDS_SIZE) {
		memcpy(&word, from + n, WORDS_SIZE);
		__atomic_store_n((uint64_t *)(void *)(to + n), word, __ATOMIC_RELAXED);
	}
	memcpy(to + n, from + n, len - n);
}

#endif
