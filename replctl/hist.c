/* SPDX-License-Identifier: BSD-3-Clause */
#include "hist.h"

#define SUB_COUNT (1U << HIST_SUB_BITS)

/* Below SUB_COUNT a bucket a value; then SUB_COUNT / 2 buckets for each power of two. */
static unsigned
bucket_of(uint64_t value)
{
	unsigned bits, shift;

	if (value < SUB_COUNT)
		return (unsigned)value;
	bits = 64U - (unsigned)__builtin_clzll(value);
	if (bits > HIST_MAX_BITS)
		return HIST_BUCKETS - 1;
	shift = bits - HIST_SUB_BITS - 1;
	return ((shift + 1) << HIST_SUB_BITS) + (unsigned)(value >> shift) - SUB_COUNT;
}

/* The greatest value in it. */
static uint64_t
bucket_end(unsigned i)
{
	unsigned shift;

	if (i < SUB_COUNT)
		return i;
	shift = (i >> HIST_SUB_BITS) - 1;
	return (((uint64_t)(i & (SUB_COUNT - 1)) + SUB_COUNT + 1) << shift) - 1;
}

void
hist_add(struct hist *h, uint64_t value)
{
	if (h->count == 0 || value < h->least)
		h->least = value;
	if (value > h->greatest)
		h->greatest = value;
	h->count++;
	h->sum += value;
	h->buckets[bucket_of(value)]++;
}

void
hist_merge(struct hist *h, const struct hist *b)
{
	if (b->count == 0)
		return;
	if (h->count == 0 || b->least < h->least)
		h->least = b->least;
	if (b->greatest > h->greatest)
		h->greatest = b->greatest;
	h->count += b->count;
	h->sum += b->sum;
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		h->buckets[i] += b->buckets[i];
}

double
hist_mean(const struct hist *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}

uint64_t
hist_quantile(const struct hist *h, unsigned permille)
{
	uint64_t rank = (h->count * permille + 999) / 1000, seen = 0;

	if (h->count == 0)
		return 0;
	if (rank == 0)
		return h->least;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen < rank)
			continue;
		return i < HIST_BUCKETS - 1 && bucket_end(i) < h->greatest ? bucket_end(i)
									   : h->greatest;
	}
	return h->greatest;
}
