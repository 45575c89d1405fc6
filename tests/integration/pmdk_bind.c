/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmdk_bind FILE - make a pool of PMDK's look as if its program had been killed
 * on a device that counts unsafe shutdowns: such a device is not at hand here.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SDS_AT 4024

/* Fletcher-64 of n words and two of zero. */
static uint64_t
sum(const uint32_t *w, unsigned n)
{
	uint32_t lo = 0, hi = 0;

	for (unsigned i = 0; i < n; i++) {
		lo += w[i];
		hi += lo;
	}
	return (uint64_t)(hi + 2 * lo) << 32 | lo;
}

int
main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "r+b") : NULL;
	uint32_t words[14] = {0};
	uint64_t count = 7, device = 0x1234567890abcdefULL, check;

	if (!f)
		return 2;
	memcpy(words, &count, 8);
	memcpy(words + 2, &device, 8);
	words[4] = 1; /* dirty */
	check = sum(words, 14);
	/* The header's own checksum spans the first half only (CKSUM_2K). */
	return fseek(f, SDS_AT, SEEK_SET) || fwrite(words, sizeof(words), 1, f) != 1 ||
	       fwrite(&check, sizeof(check), 1, f) != 1 || fclose(f);
}
