/* SPDX-License-Identifier: BSD-3-Clause */
#include "backoff.h"

#define TRIES_MAX 63 /* shifts of 64 bits */

void
backoff_init(struct backoff *b, uint64_t min_ns, uint64_t max_ns)
{
	b->min_ns = min_ns ? min_ns : 1;
	b->max_ns = max_ns > b->min_ns ? max_ns : b->min_ns;
	b->tries = 0;
}

void
backoff_reset(struct backoff *b)
{
	b->tries = 0;
}

void
backoff_exhaust(struct backoff *b)
{
	b->tries = TRIES_MAX;
}

/* Twice the least wait for the first try, so that the first has jitter too. */
static uint64_t
ceiling(const struct backoff *b)
{
	unsigned shift = b->tries + 1;

	if (shift >= TRIES_MAX || b->min_ns > b->max_ns >> shift)
		return b->max_ns;
	return b->min_ns << shift;
}

uint64_t
backoff_next(struct backoff *b, uint64_t random)
{
	uint64_t span = ceiling(b) - b->min_ns;

	if (b->tries < TRIES_MAX)
		b->tries++;
	/* The bias of the remainder is far below what anyone could measure. */
	return b->min_ns + (span == UINT64_MAX ? random : random % (span + 1));
}
