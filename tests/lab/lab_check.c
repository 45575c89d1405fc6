/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lab_check - whether an image is a beginning of what was drained.
 *
 * usage: lab_check JOURNAL IMAGE acked|any
 *
 * With "acked" it must hold all that was acknowledged, with "any" only be a
 * beginning. Prints a line of the counts and what is not right; exits 1 then.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab.h"

#define TELL_MAX 5U

static const uint8_t *image;
static const struct lab_journal *journal;
static uint64_t counts[LAB_LANES];
static unsigned wrong;

static const void *
map_file(const char *path, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	const void *mem;

	if (fd < 0 || fstat(fd, &st) || (size_t)st.st_size < size) {
		(void)fprintf(stderr, "lab_check: %s: not there or too short\n", path);
		exit(2);
	}
	mem = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		exit(2);
	(void)close(fd);
	return mem;
}

static void
tell(unsigned lane, uint64_t n, const char *what, uint64_t value)
{
	if (wrong++ < TELL_MAX)
		(void)printf("lane %u, update %" PRIu64 ": %s %" PRIu64 "\n", lane, n, what, value);
}

static uint64_t
word_at(uint64_t off, uint32_t i)
{
	uint64_t word;

	memcpy(&word, image + off + (uint64_t)i * 8, sizeof(word));
	return word;
}

static void
check_record(unsigned lane, uint64_t n)
{
	uint64_t off = lab_record_off(lane, n);

	if (word_at(off, 0) != n) {
		tell(lane, n, "its record is that of", word_at(off, 0));
		return;
	}
	for (unsigned i = 0; i < LAB_LANES; i++)
		if (word_at(off, LAB_DEPENDS + i) > counts[i] && i != lane)
			tell(lane, n,
			     "is there without what was drained before it on another "
			     "lane, up to",
			     word_at(off, LAB_DEPENDS + i));
	for (uint32_t i = LAB_FILL; i < LAB_WORDS; i++)
		if (word_at(off, i) != lab_word(lane, n, i)) {
			tell(lane, n, "a word of its record is not right:", i);
			return;
		}
}

static void
check_large(unsigned lane, uint64_t n)
{
	for (uint32_t i = 0; i < LAB_LARGE / 8; i++)
		if (word_at(lab_large_off(lane, n), i) != lab_word(lane, n, i)) {
			tell(lane, n, "a word of its large record is not right:", i);
			return;
		}
}

/* Record count+1 may be there already, in the place of the oldest. */
static void
check_lane(unsigned lane)
{
	uint64_t last = counts[lane];
	uint64_t first = last >= LAB_RECORDS - 1 ? last - (LAB_RECORDS - 2) : 1;
	uint64_t large = last - last % LAB_LARGE_EACH;

	if (last > journal->lane[lane].begun)
		tell(lane, last, "was never begun, but", journal->lane[lane].begun);
	for (uint64_t n = first; n <= last; n++)
		check_record(lane, n);
	for (unsigned i = 0; i + 2 < LAB_LARGES && large > 0; i++) {
		check_large(lane, large);
		large = large > LAB_LARGE_EACH ? large - LAB_LARGE_EACH : 0;
	}
}

static uint64_t
worst_ms(void)
{
	uint64_t worst = 0;

	for (unsigned i = 0; i < LAB_LANES; i++)
		if (journal->lane[i].worst_us > worst)
			worst = journal->lane[i].worst_us;
	return worst / 1000;
}

static uint64_t
errors(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < LAB_LANES; i++)
		sum += journal->lane[i].errors;
	return sum;
}

int
main(int argc, char **argv)
{
	bool all;

	if (argc != 4)
		return 2;
	all = strcmp(argv[3], "acked") == 0;
	journal = map_file(argv[1], sizeof(*journal));
	image = map_file(argv[2], lab_pool_size());
	for (unsigned i = 0; i < LAB_LANES; i++)
		counts[i] = word_at(i * LAB_LANE_SIZE, 0);
	for (unsigned i = 0; i < LAB_LANES; i++) {
		check_lane(i);
		if (all && counts[i] < journal->lane[i].acked)
			tell(i, journal->lane[i].acked, "was acknowledged, and there is only",
			     counts[i]);
	}
	(void)printf("counts");
	for (unsigned i = 0; i < LAB_LANES; i++)
		(void)printf(" %" PRIu64 "/%" PRIu64, counts[i], journal->lane[i].acked);
	(void)printf(", %u wrong; worst call %" PRIu64 " ms, %" PRIu64 " errors\n", wrong,
		     worst_ms(), errors());
	return wrong ? 1 : 0;
}
