/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_stat.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define WARM_NS   (2 * NS_PER_S)
#define WARM_MIN  2U
#define COUNT_MIN 8U
#define FEW_MIN   3U /* where each takes long */
#define FEW_NS    (100 * NS_PER_MS)
#define MARGIN_S  20U

static int
compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int
compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void
bench_sort(uint32_t *values, uint32_t count)
{
	if (count > 0)
		qsort(values, count, sizeof(*values), compare_u32);
}

uint32_t
bench_quantile(const uint32_t *sorted, uint32_t count, unsigned permille)
{
	uint64_t rank = ((uint64_t)count * permille + 999) / 1000;

	if (count == 0)
		return 0;
	if (rank == 0)
		rank = 1;
	return sorted[rank < count ? rank - 1 : count - 1];
}

double
bench_median(const double *values, unsigned count)
{
	double sorted[BENCH_ROUNDS_MAX];

	if (count == 0 || count > BENCH_ROUNDS_MAX)
		return 0;
	memcpy(sorted, values, count * sizeof(*values));
	qsort(sorted, count, sizeof(*sorted), compare_double);
	if (count % 2)
		return sorted[count / 2];
	return (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

uint32_t
bench_warm_count(uint32_t most, uint64_t op_ns)
{
	uint64_t count = op_ns ? WARM_NS / op_ns : most;

	if (count < WARM_MIN)
		return WARM_MIN;
	return count < most ? (uint32_t)count : most;
}

uint32_t
bench_slice_count(uint64_t slice_ns, uint64_t op_ns)
{
	uint64_t count = op_ns ? slice_ns / op_ns : BENCH_SAMPLES_MAX;
	uint32_t least = op_ns < FEW_NS ? COUNT_MIN : FEW_MIN;

	if (count < least)
		return least;
	return count < BENCH_SAMPLES_MAX ? (uint32_t)count : BENCH_SAMPLES_MAX;
}

/* A busy machine takes longer than was asked for. */
unsigned
bench_seconds_for(uint64_t work_ns)
{
	uint64_t seconds = MARGIN_S + 2 * (work_ns / NS_PER_S);

	return seconds < UINT16_MAX ? (unsigned)seconds : UINT16_MAX;
}
