/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * power - what the load and the checker of the power-cut tests agree on: where
 * each update lies in the pool, what its bytes are, and the journal of updates
 * that were begun and acknowledged.
 */
#ifndef TESTS_POWER_H
#define TESTS_POWER_H

#include <stdint.h>

#define POWER_LANES     4U
#define POWER_LANE_SIZE (2UL << 20)

/*
 * Behind the lanes' parts one area that all lanes append to: its tail word at
 * the beginning, records from the next page on.
 */
#define POWER_TAIL_OFF    (POWER_LANES * POWER_LANE_SIZE)
#define POWER_APPENDS_OFF (POWER_TAIL_OFF + 4096)
#define POWER_POOL_SIZE   (POWER_TAIL_OFF + (1UL << 20) + 777)
#define POWER_APPENDS_MAX 2048U /* of a lane */
#define POWER_APPEND_LEN  400U  /* bytes at most */

/*
 * Slots of a kind lie in a row. Those of a pair are used once, so that b's
 * presence tells that a must be there; the others are written again and again.
 */
enum power_kind {
	POWER_SMALL,
	POWER_ATOMIC,
	POWER_LARGE, /* beyond what a message carries: goes by RMA */
	POWER_PAIR_A,
	POWER_PAIR_B,
	POWER_LARGE_PAIR_A,
	POWER_LARGE_PAIR_B,
	POWER_KINDS,
	POWER_APPEND = POWER_KINDS, /* has no slots, see struct power_entry */
};

struct power_area {
	uint32_t off; /* in the lane's part of the pool */
	uint32_t slot_size;
	uint32_t slots;
};

static const struct power_area power_areas[POWER_KINDS] = {
	[POWER_SMALL] = {0, 256, 256},
	[POWER_ATOMIC] = {64 << 10, 8, 64},
	[POWER_LARGE] = {128 << 10, 64 << 10, 4},
	[POWER_PAIR_A] = {384 << 10, 256, 2048},
	[POWER_PAIR_B] = {896 << 10, 16, 2048},
	[POWER_LARGE_PAIR_A] = {1 << 20, 32 << 10, 24},
	[POWER_LARGE_PAIR_B] = {1900 << 10, 16, 24},
};

static const char *const power_kind_names[POWER_KINDS] = {
	[POWER_SMALL] = "small slot",
	[POWER_ATOMIC] = "atomic slot",
	[POWER_LARGE] = "large slot",
	[POWER_PAIR_A] = "pair's a",
	[POWER_PAIR_B] = "pair's b",
	[POWER_LARGE_PAIR_A] = "large pair's a",
	[POWER_LARGE_PAIR_B] = "large pair's b",
};

/*
 * One entry of the journal: the update seq of a slot was begun, or acknowledged.
 * Of an append seq counts the lane's, from 1; instead of a slot there is the
 * length where it is begun, and the place in the pool when it is acknowledged.
 */
struct power_entry {
	uint8_t lane, kind, acked, zero;
	uint32_t slot, seq;
};

static inline uint64_t
power_slot_off(unsigned lane, unsigned kind, uint32_t slot)
{
	const struct power_area *a = &power_areas[kind];

	return lane * POWER_LANE_SIZE + a->off + (uint64_t)slot * a->slot_size;
}

/* splitmix64 */
static inline uint64_t
power_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* Byte i of update seq of a slot; before the first update all are zero. */
static inline uint8_t
power_byte(uint64_t slot_off, uint32_t seq, uint32_t i)
{
	if (seq == 0)
		return 0;
	return (uint8_t)(power_mix((slot_off + i / 8 * 8) ^ (uint64_t)seq << 40) >> i % 8 * 8);
}

/* Byte i of a lane's append seq. */
static inline uint8_t
power_append_byte(unsigned lane, uint32_t seq, uint32_t i)
{
	return power_byte(POWER_APPENDS_OFF + ((uint64_t)lane << 32), seq, i);
}

#endif
