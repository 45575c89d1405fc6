/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * power_check - whether what is left after a power cut keeps every promise.
 *
 * usage: power_check JOURNAL IMAGE
 *
 * Of a slot whose update n was acknowledged and whose n+1 was begun, each byte
 * is that of n or of n+1; if none was begun after n, all are of n. Eight atomic
 * bytes are of one of the two. Of a pair no byte of b is there without all of a.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "power.h"

#define SLOTS_MAX  2048U
#define LOSSES_MAX 10U

struct slot {
	uint32_t begun, acked;
};

static struct slot slots[POWER_LANES][POWER_KINDS][SLOTS_MAX];
static const uint8_t *image;
static unsigned losses, acked_count, begun_count;

static void
report(unsigned lane, unsigned kind, uint32_t slot, const char *what)
{
	const struct slot *s = &slots[lane][kind][slot];

	if (losses++ < LOSSES_MAX)
		(void)printf("lane %u kind %u slot %u (acknowledged %u, begun %u): %s\n", lane,
			     kind, slot, s->acked, s->begun, what);
}

static bool
journal_entry(const struct power_entry *e)
{
	struct slot *s;

	if (e->lane >= POWER_LANES || e->kind >= POWER_KINDS ||
	    e->slot >= power_areas[e->kind].slots)
		return false;
	s = &slots[e->lane][e->kind][e->slot];
	if (e->acked)
		s->acked = e->seq;
	else
		s->begun = e->seq;
	acked_count += e->acked;
	begun_count += !e->acked;
	return s->begun - s->acked <= 1;
}

static int
journal_read(const char *path)
{
	struct power_entry e;
	FILE *f = fopen(path, "re");
	int rc = 0;

	if (!f) {
		perror(path);
		return 1;
	}
	while (!rc && fread(&e, sizeof(e), 1, f) == 1) {
		if (!journal_entry(&e)) {
			(void)printf("%s: not a journal of power_load\n", path);
			rc = 1;
		}
	}
	(void)fclose(f);
	return rc;
}

/* All bytes are those of update seq. */
static bool
slot_is(unsigned lane, unsigned kind, uint32_t slot, uint32_t seq)
{
	uint64_t off = power_slot_off(lane, kind, slot);

	for (uint32_t i = 0; i < power_areas[kind].slot_size; i++)
		if (image[off + i] != power_byte(off, seq, i))
			return false;
	return true;
}

static bool
slot_is_mixed(unsigned lane, unsigned kind, uint32_t slot)
{
	const struct slot *s = &slots[lane][kind][slot];
	uint64_t off = power_slot_off(lane, kind, slot);

	for (uint32_t i = 0; i < power_areas[kind].slot_size; i++)
		if (image[off + i] != power_byte(off, s->acked, i) &&
		    image[off + i] != power_byte(off, s->begun, i))
			return false;
	return true;
}

static void
slot_check(unsigned lane, unsigned kind, uint32_t slot)
{
	const struct slot *s = &slots[lane][kind][slot];

	if (!slot_is_mixed(lane, kind, slot))
		report(lane, kind, slot, "an acknowledged update is lost");
	else if (kind == POWER_ATOMIC && !slot_is(lane, kind, slot, s->acked) &&
		 !slot_is(lane, kind, slot, s->begun))
		report(lane, kind, slot, "eight atomic bytes are torn");
}

static void
pair_check(unsigned lane, unsigned kind_a, uint32_t slot)
{
	if (!slot_is(lane, kind_a + 1, slot, 0) && !slot_is(lane, kind_a, slot, 1))
		report(lane, kind_a + 1, slot, "b is there without a");
}

static const uint8_t *
image_map(const char *path)
{
	int fd = open(path, O_RDONLY);
	void *p = MAP_FAILED;

	if (fd >= 0 && lseek(fd, 0, SEEK_END) == (off_t)POWER_POOL_SIZE)
		p = mmap(NULL, POWER_POOL_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	return p == MAP_FAILED ? NULL : p;
}

int
main(int argc, char **argv)
{
	if (argc != 3 || journal_read(argv[1]))
		return 2;
	image = image_map(argv[2]);
	if (!image) {
		(void)printf("%s: no image of %lu bytes\n", argv[2], POWER_POOL_SIZE);
		return 2;
	}
	for (unsigned lane = 0; lane < POWER_LANES; lane++)
		for (unsigned kind = 0; kind < POWER_KINDS; kind++)
			for (uint32_t slot = 0; slot < power_areas[kind].slots; slot++) {
				slot_check(lane, kind, slot);
				if (kind == POWER_PAIR_A || kind == POWER_LARGE_PAIR_A)
					pair_check(lane, kind, slot);
			}
	(void)printf("%u begun, %u acknowledged, %u losses\n", begun_count, acked_count, losses);
	return losses ? 1 : 0;
}
