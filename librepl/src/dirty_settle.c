/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool's file on media. What a replica lacks is told relative to the pool: of what the log
 * holds no more, or nobody writes any more, only maps tell, and a file that a power cut makes older
 * than the replica would be taken for equal to it.
 */
#include "dirty_impl.h"

/*
 * The kernel tells of what a device has not taken once, and leaves the pages clean: a sync that
 * succeeds after that says nothing.
 */
static bool
settle_range(struct dirty *d, uint64_t from, uint64_t to)
{
	if (d->local->mem && from < to && !atomic_load(&d->pool_lost) &&
	    local_settle(d->local->mem, from, to, NULL))
		atomic_store(&d->pool_lost, true);
	return !atomic_load(&d->pool_lost);
}

static bool
is_in(const uint64_t extents[DIRTYPAGE_EXTENT_WORDS], uint64_t x)
{
	return x < DIRTYPAGE_EXTENTS && extents[x / 64] >> (x % 64) & 1;
}

bool
settle_extents(struct dirty *d, const uint64_t extents[DIRTYPAGE_EXTENT_WORDS], uint32_t shift,
	       uint64_t pool_size)
{
	bool ok = true;
	uint64_t end;

	for (uint64_t x = 0; x < DIRTYPAGE_EXTENTS && ok; x = end + 1) {
		for (end = x; is_in(extents, end); end++)
			;
		ok = settle_range(d, x << shift,
				  end << shift < pool_size ? end << shift : pool_size);
	}
	return ok;
}

bool
settle_all(struct dirty *d)
{
	return settle_range(d, 0, d->pool_size);
}
