/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lab - what the load and the checker of the fault lab agree on: where each
 * update lies in the pool, what its bytes are, and the journal that outlives
 * the load.
 *
 * Each lane has a part of the pool: a count, a ring of records, a ring of large
 * ones. Update n of a lane writes record n and drains, then writes the count n
 * and drains. A record tells which counts of the other lanes had been
 * acknowledged when it was begun: who has the record must have those, too. So
 * an image tells by itself whether it is a beginning of what was drained.
 */
#ifndef TESTS_LAB_H
#define TESTS_LAB_H

#include <stdint.h>
#include <stdlib.h>

#define LAB_LANES      4U
#define LAB_LANE_SIZE  (4UL << 20)
#define LAB_RECORDS    4096U /* of 512 bytes, from LAB_RECORD_OFF of the lane's part on */
#define LAB_RECORD     512U
#define LAB_RECORD_OFF 4608U
#define LAB_LARGES     24U /* of 64 KiB; every LAB_LARGE_EACH-th update writes one as well */
#define LAB_LARGE      65536U
#define LAB_LARGE_OFF  (LAB_RECORD_OFF + LAB_RECORDS * LAB_RECORD)
#define LAB_LARGE_EACH 16U
#define LAB_WORDS      (LAB_RECORD / 8)

/* Word 0 of a record is its number, words 1 to LAB_LANES the counts it depends on. */
#define LAB_DEPENDS 1U
#define LAB_FILL    (LAB_DEPENDS + LAB_LANES)

/* Shared by mapping with a file: what it holds is what the load had come to when it died. */
struct lab_journal {
	struct {
		_Atomic uint64_t begun, acked;
		_Atomic uint64_t errors;   /* calls that failed */
		_Atomic uint64_t worst_us; /* the longest call */
	} lane[LAB_LANES];
	_Atomic uint64_t closed; /* 1 + (0 or the positive status of repl_close()) */
};

/*
 * It ends with the last lane's last large record, amid a page; earlier versions take whole ones.
 * With LAB_REST there is more behind that, in which nobody writes: an extent of the activity log at
 * least.
 */
static inline size_t
lab_pool_size(void)
{
	size_t end = (LAB_LANES - 1) * LAB_LANE_SIZE + LAB_LARGE_OFF + LAB_LARGES * LAB_LARGE;

	if (getenv("LAB_REST"))
		end += 2 * LAB_LANE_SIZE;
	return getenv("LAB_WHOLE_PAGES") ? LAB_LANES * LAB_LANE_SIZE : end;
}

static inline uint64_t
lab_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* Word i of update n of a lane, of a record or of a large one. */
static inline uint64_t
lab_word(unsigned lane, uint64_t n, uint32_t i)
{
	return lab_mix(n << 20 ^ (uint64_t)lane << 60 ^ i);
}

static inline uint64_t
lab_record_off(unsigned lane, uint64_t n)
{
	return lane * LAB_LANE_SIZE + LAB_RECORD_OFF + n % LAB_RECORDS * LAB_RECORD;
}

static inline uint64_t
lab_large_off(unsigned lane, uint64_t n)
{
	return lane * LAB_LANE_SIZE + LAB_LARGE_OFF + n / LAB_LARGE_EACH % LAB_LARGES * LAB_LARGE;
}

#endif
