/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * power_check - whether what is left after a power cut keeps every promise.
 *
 * usage: power_check JOURNAL IMAGE [IMAGE ...]
 *
 * Of several images each keeps the order of updates, and more than half have each that was
 * acknowledged.
 *
 * A loss is told with its slot, the first byte that is not right, and the update
 * which that byte is of. Of a slot whose update n was acknowledged and whose n+1 was begun, each
 * byte is that of n or of n+1; if none was begun after n, all are of n. Eight atomic bytes are of
 * one of the two. Of a pair no byte of b is there without all of a.
 */
#include <endian.h>
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

struct append {
	uint32_t off, len; /* off 0: not acknowledged */
	bool seen;         /* in the image that is looked at */
	unsigned held;     /* images that have it */
};

static struct append appends[POWER_LANES][POWER_APPENDS_MAX]; /* by seq */
static struct slot slots[POWER_LANES][POWER_KINDS][SLOTS_MAX];
#define IMAGES_MAX 3

static const uint8_t *images[IMAGES_MAX], *image;
static unsigned image_count;
static unsigned losses, acked_count, begun_count;

/* The newest update that the byte may be of, with the rest of its word; or -1. */
static long
update_of(uint64_t slot_off, uint32_t size, uint32_t at, uint32_t newest)
{
	uint32_t first = at / 8 * 8;
	uint32_t end = first + 8 < size ? first + 8 : size;

	for (long seq = (long)newest; seq >= 0; seq--) {
		uint32_t i = first;

		while (i < end && image[slot_off + i] == power_byte(slot_off, (uint32_t)seq, i))
			i++;
		if (i == end)
			return seq;
	}
	return -1;
}

static void
report(unsigned lane, unsigned kind, uint32_t slot, uint32_t byte, const char *what)
{
	const struct slot *s = &slots[lane][kind][slot];
	uint64_t off = power_slot_off(lane, kind, slot);
	long seq;

	if (losses++ >= LOSSES_MAX)
		return;
	seq = update_of(off, power_areas[kind].slot_size, byte, s->begun);
	(void)printf("lane %u, %s %u at %llu (acknowledged %u, begun %u): %s: ", lane,
		     power_kind_names[kind], slot, (unsigned long long)off, s->acked, s->begun,
		     what);
	if (seq >= 0)
		(void)printf("byte %u is of update %ld\n", byte, seq);
	else
		(void)printf("byte %u is of no update\n", byte);
}

static bool
journal_append(const struct power_entry *e)
{
	struct append *a = &appends[e->lane][e->seq];

	if (e->acked)
		a->off = e->slot;
	else
		a->len = e->slot;
	return e->acked ? a->len > 0 : a->off == 0 && a->len <= POWER_APPEND_LEN;
}

static bool
journal_entry(const struct power_entry *e)
{
	struct slot *s;

	acked_count += e->acked;
	begun_count += !e->acked;
	if (e->kind == POWER_APPEND && e->lane < POWER_LANES && e->seq < POWER_APPENDS_MAX)
		return journal_append(e);
	if (e->lane >= POWER_LANES || e->kind >= POWER_KINDS ||
	    e->slot >= power_areas[e->kind].slots)
		return false;
	s = &slots[e->lane][e->kind][e->slot];
	if (e->acked)
		s->acked = e->seq;
	else
		s->begun = e->seq;
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

/* The first byte that is of neither update; the slot's size if there is none. */
static uint32_t
slot_differs(unsigned lane, unsigned kind, uint32_t slot, uint32_t seq, uint32_t or_seq)
{
	uint64_t off = power_slot_off(lane, kind, slot);
	uint32_t i;

	for (i = 0; i < power_areas[kind].slot_size; i++)
		if (image[off + i] != power_byte(off, seq, i) &&
		    image[off + i] != power_byte(off, or_seq, i))
			break;
	return i;
}

/* All bytes are those of update seq. */
static bool
slot_is(unsigned lane, unsigned kind, uint32_t slot, uint32_t seq)
{
	return slot_differs(lane, kind, slot, seq, seq) == power_areas[kind].slot_size;
}

static void
slot_check(unsigned lane, unsigned kind, uint32_t slot)
{
	const struct slot *s = &slots[lane][kind][slot];
	uint32_t size = power_areas[kind].slot_size, at, lost_at = size;
	unsigned held = 0;

	for (unsigned i = 0; i < image_count; i++) {
		image = images[i];
		at = slot_differs(lane, kind, slot, s->acked, s->begun);
		held += at == size;
		lost_at = at < size ? at : lost_at;
		/* One that was cut off earlier has an earlier update. */
		if (kind == POWER_ATOMIC &&
		    update_of(power_slot_off(lane, kind, slot), size, 0, s->begun) < 0)
			report(lane, kind, slot, 0, "eight atomic bytes are torn");
	}
	if (held <= image_count / 2)
		report(lane, kind, slot, lost_at, "an acknowledged update is lost");
}

static void
pair_check(unsigned lane, unsigned kind_a, uint32_t slot)
{
	if (!slot_is(lane, kind_a + 1, slot, 0) && !slot_is(lane, kind_a, slot, 1))
		report(lane, kind_a, slot, slot_differs(lane, kind_a, slot, 1, 1),
		       "b is there without a");
}

static void
pairs_check(unsigned lane, unsigned kind_a, uint32_t slot)
{
	for (unsigned i = 0; i < image_count; i++) {
		image = images[i];
		pair_check(lane, kind_a, slot);
	}
}

/* ---- what was appended ---- */

static bool
append_is(unsigned lane, uint32_t seq, uint64_t off)
{
	uint32_t len = appends[lane][seq].len;

	if (off + len > POWER_POOL_SIZE)
		return false;
	for (uint32_t i = 0; i < len; i++)
		if (image[off + i] != power_append_byte(lane, seq, i))
			return false;
	return true;
}

/* The record that lies at off, so many bytes; 0 if there is none that may be there. */
static uint32_t
append_at(uint64_t off)
{
	for (unsigned lane = 0; lane < POWER_LANES; lane++)
		for (uint32_t seq = 1; seq < POWER_APPENDS_MAX && appends[lane][seq].len; seq++) {
			struct append *a = &appends[lane][seq];

			if (a->seen || (a->off && a->off != off) || !append_is(lane, seq, off))
				continue;
			a->seen = true;
			return a->len;
		}
	return 0;
}

static void
appends_check(void)
{
	uint64_t tail, off = POWER_APPENDS_OFF;
	uint32_t len;

	for (unsigned lane = 0; lane < POWER_LANES; lane++)
		for (uint32_t seq = 1; seq < POWER_APPENDS_MAX; seq++)
			appends[lane][seq].seen = false;
	memcpy(&tail, image + POWER_TAIL_OFF, sizeof(tail));
	tail = le64toh(tail);
	for (; off < tail && (len = append_at(off)) > 0; off += len)
		;
	if (off != tail && losses++ < LOSSES_MAX)
		(void)printf("appends: no record at %llu, the tail is %llu\n",
			     (unsigned long long)off, (unsigned long long)tail);
	for (unsigned lane = 0; lane < POWER_LANES; lane++)
		for (uint32_t seq = 1; seq < POWER_APPENDS_MAX; seq++)
			appends[lane][seq].held += appends[lane][seq].seen;
}

static void
appends_count(void)
{
	for (unsigned lane = 0; lane < POWER_LANES; lane++)
		for (uint32_t seq = 1; seq < POWER_APPENDS_MAX; seq++)
			if (appends[lane][seq].off && appends[lane][seq].held <= image_count / 2 &&
			    losses++ < LOSSES_MAX)
				(void)printf("appends: lane %u's %u., at %u, is lost\n", lane, seq,
					     appends[lane][seq].off);
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
	if (argc < 3 || argc > 2 + IMAGES_MAX || journal_read(argv[1]))
		return 2;
	for (int i = 2; i < argc; i++) {
		images[image_count] = image_map(argv[i]);
		if (!images[image_count++]) {
			(void)printf("%s: no image of %lu bytes\n", argv[i], POWER_POOL_SIZE);
			return 2;
		}
	}
	for (unsigned lane = 0; lane < POWER_LANES; lane++)
		for (unsigned kind = 0; kind < POWER_KINDS; kind++)
			for (uint32_t slot = 0; slot < power_areas[kind].slots; slot++) {
				slot_check(lane, kind, slot);
				if (kind == POWER_PAIR_A || kind == POWER_LARGE_PAIR_A)
					pairs_check(lane, kind, slot);
			}
	for (unsigned i = 0; i < image_count; i++) {
		image = images[i];
		appends_check();
	}
	appends_count();
	(void)printf("%u begun, %u acknowledged, %u losses\n", begun_count, acked_count, losses);
	return losses ? 1 : 0;
}
