/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_stat.h"

#include <stdlib.h>
#include <string.h>

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
