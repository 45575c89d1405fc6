/* SPDX-License-Identifier: BSD-3-Clause */
#include "extentlog.h"

#include <string.h>

void
extentlog_init(struct extentlog *l, uint64_t pool_size, unsigned idle_rounds)
{
	atomic_store(&l->shift, dirtypage_extent_shift(pool_size));
	l->idle_rounds = idle_rounds;
}

static bool
extent_use(struct extentlog *l, uint64_t extent)
{
	uint64_t w = extent / 64, bit = 1ULL << (extent % 64);

	/* Mostly it is set: no write to what other threads read. */
	if (!(atomic_load(&l->used[w]) & bit))
		(void)atomic_fetch_or(&l->used[w], bit);
	return atomic_load(&l->on[w]) & bit;
}

bool
extentlog_use(struct extentlog *l, uint64_t off, uint64_t len)
{
	uint32_t shift = atomic_load(&l->shift);
	bool on = true;

	for (uint64_t x = off >> shift; x <= (off + len - 1) >> shift && x < DIRTYPAGE_EXTENTS; x++)
		on &= extent_use(l, x);
	/* If they have another size meanwhile, what was looked at were others. */
	return on && atomic_load(&l->shift) == shift;
}

void
extentlog_want(struct extentlog *l, uint64_t off, uint64_t len)
{
	uint32_t shift = atomic_load(&l->shift);

	for (uint64_t x = off >> shift; x <= (off + len - 1) >> shift && x < DIRTYPAGE_EXTENTS; x++)
		l->want[x / 64] |= 1ULL << (x % 64);
}

void
extentlog_on(struct extentlog *l, const uint64_t words[DIRTYPAGE_EXTENT_WORDS])
{
	for (unsigned i = 0; i < DIRTYPAGE_EXTENT_WORDS; i++)
		(void)atomic_fetch_or(&l->on[i], words[i]);
}

void
extentlog_off(struct extentlog *l)
{
	for (unsigned i = 0; i < DIRTYPAGE_EXTENT_WORDS; i++)
		atomic_store(&l->on[i], 0);
}

/* ---- taking off ---- */

/* One round older; true if it is to be taken off. */
static bool
extent_age(struct extentlog *l, unsigned x)
{
	uint64_t bit = 1ULL << (x % 64);
	unsigned w = x / 64;

	if (atomic_load(&l->used[w]) & bit) {
		(void)atomic_fetch_and(&l->used[w], ~bit);
		l->age[x] = 0;
		return false;
	}
	if (l->age[x] < UINT16_MAX)
		l->age[x]++;
	if (l->age[x] < l->idle_rounds)
		return false;
	(void)atomic_fetch_and(&l->on[w], ~bit);
	if (!(atomic_load(&l->used[w]) & bit))
		return true;
	/* Somebody may have found it on, which it still is on media. */
	(void)atomic_fetch_or(&l->on[w], bit);
	return false;
}

bool
extentlog_retire_begin(struct extentlog *l, uint64_t idle[DIRTYPAGE_EXTENT_WORDS])
{
	bool any = false;

	memset(idle, 0, DIRTYPAGE_EXTENT_WORDS * sizeof(*idle));
	for (unsigned w = 0; w < DIRTYPAGE_EXTENT_WORDS; w++) {
		uint64_t on = atomic_load(&l->on[w]);

		for (; on; on &= on - 1) {
			unsigned x = w * 64 + (unsigned)__builtin_ctzll(on);

			if (extent_age(l, x)) {
				idle[w] |= 1ULL << (x % 64);
				any = true;
			}
		}
	}
	return any;
}

bool
extentlog_retire_end(struct extentlog *l, const uint64_t idle[DIRTYPAGE_EXTENT_WORDS])
{
	bool any = false;

	for (unsigned w = 0; w < DIRTYPAGE_EXTENT_WORDS; w++) {
		uint64_t off = idle[w] & ~atomic_load(&l->on[w]);

		l->want[w] &= ~off;
		any |= off != 0;
	}
	return any;
}

/* ---- growth ---- */

void
extentlog_grow(struct extentlog *l, uint64_t pool_size)
{
	uint32_t old = atomic_load(&l->shift), new = dirtypage_extent_shift(pool_size);
	uint64_t want[DIRTYPAGE_EXTENT_WORDS] = {0};

	if (new <= old)
		return;
	for (uint64_t x = 0; x < DIRTYPAGE_EXTENTS; x++) {
		uint64_t to = x >> (new - old);

		if (l->want[x / 64] >> (x % 64) & 1)
			want[to / 64] |= 1ULL << (to % 64);
	}
	memcpy(l->want, want, sizeof(want));
	memset(l->age, 0, sizeof(l->age));
	atomic_store(&l->shift, new);
}
