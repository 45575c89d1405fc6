/* SPDX-License-Identifier: BSD-3-Clause */
/* A sidecar reads back as written, whatever single copy is damaged, and hostile slots are refused.
 */
#include "unit.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checksum.h"
#include "le.h"
#include "sidecar.h"

/*
 * The start of the slot of sample(), laid out by hand from docs/POOL-FORMAT.md
 * and sealed with xxhsum -H3; the rest of the slot is zeros.
 */
static const uint8_t golden[480] = {
	0x52, 0x45, 0x50, 0x4c, 0x53, 0x49, 0x44, 0x45, 0x01, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00,
	0x00, 0xcf, 0x6c, 0xff, 0x18, 0x6a, 0x3b, 0x03, 0x99, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03,
	0x02, 0x01, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac,
	0xad, 0xae, 0xaf, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
	0x01, 0x00, 0x00, 0x00, 0x44, 0x33, 0x22, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf1, 0x53,
	0x65, 0x00, 0x00, 0x00, 0x00, 0x01, 0xf1, 0x53, 0x65, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x6f, 0x70, 0x73, 0x40, 0x68, 0x6f, 0x73, 0x74, 0x20,
	0x70, 0x69, 0x64, 0x20, 0x34, 0x32, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc0,
	0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf,
	0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01,
	0x01, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
	0x02, 0x02, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03,
	0x03, 0x03, 0x03, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04,
	0x04, 0x04, 0x04, 0x04, 0x05, 0x05, 0x05, 0x05, 0x05, 0x05, 0x05, 0x05, 0x05, 0x05, 0x05,
	0x05, 0x05, 0x05, 0x05, 0x05, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06,
	0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07,
	0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x08, 0x08, 0x08, 0x08, 0x08, 0x08, 0x08, 0x08,
	0x08, 0x08, 0x08, 0x08, 0x08, 0x08, 0x08, 0x08, 0x09, 0x09, 0x09, 0x09, 0x09, 0x09, 0x09,
	0x09, 0x09, 0x09, 0x09, 0x09, 0x09, 0x09, 0x09, 0x09, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a,
	0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b,
	0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0c, 0x0c, 0x0c, 0x0c,
	0x0c, 0x0c, 0x0c, 0x0c, 0x0c, 0x0c, 0x0c, 0x0c, 0x0c, 0x0c, 0x0c, 0x0c, 0x0d, 0x0d, 0x0d,
	0x0d, 0x0d, 0x0d, 0x0d, 0x0d, 0x0d, 0x0d, 0x0d, 0x0d, 0x0d, 0x0d, 0x0d, 0x0d, 0x0e, 0x0e,
	0x0e, 0x0e, 0x0e, 0x0e, 0x0e, 0x0e, 0x0e, 0x0e, 0x0e, 0x0e, 0x0e, 0x0e, 0x0e, 0x0e, 0x0f,
	0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f,
};

static struct sidecar
sample(void)
{
	struct sidecar s = {
		.sequence = 0x0102030405060708,
		.pool_size = 0x40000000,
		.state = SIDECAR_INCONSISTENT,
		.writer_open = true,
		.created_s = 1700000000,
		.updated_s = 1700000001,
		.writer = "ops@host pid 42",
		.epoch = 0x11223344,
	};

	for (unsigned i = 0; i < GEN_ID_SIZE; i++) {
		s.pool_uuid.b[i] = (uint8_t)(0xa0 + i);
		s.generation.current.b[i] = (uint8_t)(0xc0 + i);
	}
	for (unsigned i = 0; i < GEN_HISTORY; i++)
		memset(s.generation.history[i].b, (int)i + 1, GEN_ID_SIZE);
	return s;
}

static void
assert_same(const struct sidecar *a, const struct sidecar *b)
{
	assert_true(a->sequence == b->sequence);
	assert_memory_equal(&a->pool_uuid, &b->pool_uuid, sizeof(a->pool_uuid));
	assert_true(a->pool_size == b->pool_size);
	assert_memory_equal(&a->generation, &b->generation, sizeof(a->generation));
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->writer_open, b->writer_open);
	assert_true(a->created_s == b->created_s);
	assert_true(a->updated_s == b->updated_s);
	assert_string_equal(a->writer, b->writer);
	assert_int_equal(a->epoch, b->epoch);
}

/* Make a changed slot whole again, as somebody who means harm would. */
static void
seal(uint8_t *slot)
{
	put_le64(slot + 16, 0);
	put_le64(slot + 16, sum64(slot, SIDECAR_SLOT_SIZE));
}

static int
new_file(void)
{
	int fd = memfd_create("sidecar", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void
put_slot(int fd, unsigned copy, const uint8_t *slot)
{
	assert_int_equal(pwrite(fd, slot, SIDECAR_SLOT_SIZE, (off_t)copy * SIDECAR_SLOT_SIZE),
			 SIDECAR_SLOT_SIZE);
}

static void
slot_has_the_documented_bytes(void **state)
{
	struct sidecar s = sample(), got;
	uint8_t slot[SIDECAR_SLOT_SIZE], want[SIDECAR_SLOT_SIZE] = {0};

	(void)state;
	memcpy(want, golden, sizeof(golden));
	sidecar_encode(&s, slot);
	assert_memory_equal(slot, want, sizeof(want));
	assert_int_equal(sidecar_decode(want, &got, NULL), 0);
	assert_same(&got, &s);
}

static void
every_damaged_byte_leaves_the_state(void **state)
{
	struct sidecar s = sample(), got;
	uint8_t image[SIDECAR_SIZE];
	struct err e;
	bool repair;
	int fd = new_file();

	(void)state;
	assert_int_equal(sidecar_write(fd, &s, &e), 0);
	assert_int_equal(pread(fd, image, sizeof(image), 0), SIDECAR_SIZE);
	assert_int_equal(sidecar_read(fd, &got, &repair, &e), 0);
	assert_false(repair);
	for (unsigned i = 0; i < SIDECAR_SIZE; i++) {
		uint8_t bad = (uint8_t)(image[i] ^ 1U << i % 8);

		assert_int_equal(pwrite(fd, &bad, 1, i), 1);
		assert_int_equal(sidecar_read(fd, &got, &repair, &e), 0);
		assert_true(repair);
		assert_same(&got, &s);
		assert_int_equal(pwrite(fd, &image[i], 1, i), 1);
	}
	(void)close(fd);
}

static void
writing_mends_the_damaged_copy(void **state)
{
	uint8_t zero[SIDECAR_SLOT_SIZE] = {0};
	struct err e;

	(void)state;
	for (unsigned copy = 0; copy < 2; copy++) {
		struct sidecar s = sample(), got;
		bool repair;
		int fd = new_file();

		assert_int_equal(sidecar_write(fd, &s, &e), 0);
		put_slot(fd, copy, zero);
		assert_int_equal(sidecar_read(fd, &got, &repair, &e), 0);
		assert_true(repair);
		assert_int_equal(sidecar_write(fd, &got, &e), 0);
		assert_true(got.sequence == s.sequence + 1);
		assert_int_equal(sidecar_read(fd, &s, &repair, &e), 0);
		assert_false(repair);
		put_slot(fd, !copy, zero);
		assert_int_equal(sidecar_read(fd, &s, &repair, &e), 0);
		assert_same(&s, &got);
		(void)close(fd);
	}
}

static void
both_copies_damaged_is_corrupt_and_says_of_both_why(void **state)
{
	struct sidecar s = sample();
	struct err e;
	bool repair;
	int fd = new_file();

	(void)state;
	assert_int_equal(sidecar_write(fd, &s, &e), 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	assert_int_equal(pwrite(fd, "x", 1, SIDECAR_SLOT_SIZE + 700), 1);
	assert_int_equal(sidecar_read(fd, &s, &repair, &e), REPL_E_CORRUPT);
	assert_non_null(strstr(e.text, "first: no magic bytes"));
	assert_non_null(strstr(e.text, "second: checksum"));
	(void)close(fd);
}

/* Every length: a file that ends within a copy has lost that copy. */
static void
short_files(void **state)
{
	struct err e;

	(void)state;
	for (unsigned len = 0; len <= SIDECAR_SIZE; len += 512) {
		struct sidecar s = sample(), got;
		bool repair = false;
		int fd = new_file();
		int rc;

		assert_int_equal(sidecar_write(fd, &s, &e), 0);
		assert_int_equal(ftruncate(fd, len), 0);
		rc = sidecar_read(fd, &got, &repair, &e);
		assert_int_equal(rc, len < SIDECAR_SLOT_SIZE ? REPL_E_CORRUPT : 0);
		if (!rc)
			assert_int_equal(repair, len < SIDECAR_SIZE);
		(void)close(fd);
	}
}

static void
newest_copy_wins(void **state)
{
	struct err e;

	(void)state;
	for (unsigned newer = 0; newer < 2; newer++) {
		struct sidecar s = sample(), got;
		uint8_t slot[SIDECAR_SLOT_SIZE];
		bool repair;
		int fd = new_file();

		for (unsigned copy = 0; copy < 2; copy++) {
			s.sequence = 10 + (copy == newer);
			sidecar_encode(&s, slot);
			put_slot(fd, copy, slot);
		}
		assert_int_equal(sidecar_read(fd, &got, &repair, &e), 0);
		assert_true(repair);
		assert_true(got.sequence == 11);
		(void)close(fd);
	}
}

static void
sequence_goes_on_from_the_file(void **state)
{
	struct sidecar s = sample(), stale;
	struct err e;
	int fd = new_file();

	(void)state;
	stale = s;
	assert_int_equal(sidecar_write(fd, &s, &e), 0);
	assert_int_equal(sidecar_write(fd, &s, &e), 0);
	assert_int_equal(sidecar_write(fd, &stale, &e), 0);
	assert_true(stale.sequence == s.sequence + 1);
	(void)close(fd);
}

struct change {
	unsigned at;
	unsigned len;
	uint64_t value;
	int code;
	const char *text;
};

/* Whole slots with one value that no honest program writes. */
static const struct change changes[] = {
	{8, 2, 0, REPL_E_CORRUPT, "version 0"},
	{8, 2, 5, REPL_E_VERSION, "version 5"},
	{8, 2, 0xffff, REPL_E_VERSION, "version 65535"},
	{12, 4, 8192, REPL_E_CORRUPT, "8192"},
	{24, 8, 0, REPL_E_CORRUPT, "sequence"},
	{24, 8, 1ULL << 63, REPL_E_CORRUPT, "sequence"},
	{48, 8, 0, REPL_E_CORRUPT, "pool size 0"},
	{48, 8, 4097, REPL_E_CORRUPT, "pool of 4097 bytes, no multiple of 4096"},
	{48, 8, 1ULL << 63, REPL_E_CORRUPT, "pool size"},
	{56, 4, 0, REPL_E_CORRUPT, "state 0"},
	{56, 4, 5, REPL_E_CORRUPT, "state 5"},
	{56, 4, 0x80000001, REPL_E_CORRUPT, "state"},
	{60, 4, 3, REPL_E_CORRUPT, "reserved"},
	{68, 4, 1, REPL_E_CORRUPT, "reserved"},
	{72, 8, 1ULL << 63, REPL_E_CORRUPT, "time"},
	{80, 8, UINT64_MAX, REPL_E_CORRUPT, "time"},
	{88, 8, 1, REPL_E_CORRUPT, "reserved"},
	{96, 1, '\n', REPL_E_CORRUPT, "byte 0x0a"},
	{97, 1, 0x1b, REPL_E_CORRUPT, "byte 0x1b"},
	{98, 1, 0xff, REPL_E_CORRUPT, "byte 0xff"},
	{96, 1, 0, REPL_E_CORRUPT, "end in zeros"},
	{223, 1, 'x', REPL_E_CORRUPT, "end in zeros"},
	{480, 8, 8192, REPL_E_CORRUPT, "dirty map"},
	{488, 8, 4096, REPL_E_CORRUPT, "dirty map"},
	{496, 8, 8192, REPL_E_CORRUPT, "ring"},
	{504, 8, 4096, REPL_E_CORRUPT, "ring"},
	{512, 8, 8192, REPL_E_CORRUPT, "journal"},
	{520, 8, 4096, REPL_E_CORRUPT, "journal"},
	{528, 8, 8192, REPL_E_CORRUPT, "round log"},
	{536, 8, 4096, REPL_E_CORRUPT, "round log"},
	{544, 1, 1, REPL_E_CORRUPT, "reserved"},
	{4095, 1, 1, REPL_E_CORRUPT, "reserved"},
};

static void
apply(uint8_t *slot, const struct change *c)
{
	for (unsigned i = 0; i < c->len; i++)
		slot[c->at + i] = (uint8_t)(c->value >> (8 * i));
	seal(slot);
}

static void
hostile_values_are_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		uint8_t slot[SIDECAR_SLOT_SIZE] = {0};
		struct sidecar got = {.sequence = 77};
		struct err e;

		memcpy(slot, golden, sizeof(golden));
		apply(slot, &changes[i]);
		assert_int_equal(sidecar_decode(slot, &got, &e), changes[i].code);
		assert_non_null(strstr(e.text, changes[i].text));
		assert_true(got.sequence == 77);
	}
}

struct region {
	uint64_t off, len;
	int code;
};

/* Slots of version 1.1 whose receive ring lies here. */
static const struct region regions[] = {
	{8192, 4096, 0},
	{4096ULL << 20, 4096ULL << 20, 0},
	{0, 0, 0},
	{8192, 0, REPL_E_CORRUPT},
	{0, 4096, REPL_E_CORRUPT},
	{4096, 4096, REPL_E_CORRUPT},
	{8193, 4096, REPL_E_CORRUPT},
	{8192, 4097, REPL_E_CORRUPT},
	{INT64_MAX - 4095, 4096, REPL_E_CORRUPT},
	{UINT64_MAX - 4095, 8192, REPL_E_CORRUPT},
	{8192, UINT64_MAX - 4095, REPL_E_CORRUPT},
};

static void
ring_outside_of_the_file_is_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
		uint8_t slot[SIDECAR_SLOT_SIZE] = {0};
		struct sidecar got;

		memcpy(slot, golden, sizeof(golden));
		put_le16(slot + 10, 1);
		put_le64(slot + 496, regions[i].off);
		put_le64(slot + 504, regions[i].len);
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), regions[i].code);
		if (regions[i].code)
			continue;
		assert_true(got.ring_off == regions[i].off);
		assert_true(got.ring_len == regions[i].len);
	}
}

/* The pool's other records change without it; without it the slot is what 1.0 makes. */
static void
ring_is_kept_until_it_is_dropped(void **state)
{
	struct sidecar s = sample(), got;
	uint8_t slot[SIDECAR_SLOT_SIZE], plain[SIDECAR_SLOT_SIZE];
	struct err e;
	bool repair;
	int fd = new_file();

	(void)state;
	s.ring_off = SIDECAR_SIZE;
	s.ring_len = 65536;
	assert_int_equal(sidecar_write(fd, &s, &e), 0);
	assert_int_equal(sidecar_read(fd, &got, &repair, &e), 0);
	got.state = SIDECAR_OUTDATED;
	assert_int_equal(sidecar_write(fd, &got, &e), 0);
	assert_int_equal(sidecar_read(fd, &got, &repair, &e), 0);
	assert_true(got.ring_off == SIDECAR_SIZE && got.ring_len == 65536);
	sidecar_encode(&got, slot);
	assert_int_equal(get_le16(slot + 10), 1);
	got.ring_off = got.ring_len = 0;
	sidecar_encode(&got, slot);
	assert_int_equal(get_le16(slot + 10), 0);
	memset(plain, 0, sizeof(plain));
	assert_memory_equal(slot + 480, plain, 32);
	(void)close(fd);
}

static void
writer_text_without_end_is_refused(void **state)
{
	uint8_t slot[SIDECAR_SLOT_SIZE] = {0};
	struct sidecar got;
	struct err e;

	(void)state;
	memcpy(slot, golden, sizeof(golden));
	memset(slot + 96, 'w', 128);
	seal(slot);
	assert_int_equal(sidecar_decode(slot, &got, &e), REPL_E_CORRUPT);
	slot[96 + 127] = 0;
	seal(slot);
	assert_int_equal(sidecar_decode(slot, &got, &e), 0);
	assert_int_equal(strlen(got.writer), 127);
}

static void
sparse_is_a_flag_of_version_1_1(void **state)
{
	struct sidecar s = {.sequence = 1, .pool_size = 4096, .state = SIDECAR_UP_TO_DATE}, got;
	uint8_t slot[SIDECAR_SLOT_SIZE];

	(void)state;
	s.sparse = true;
	sidecar_encode(&s, slot);
	assert_int_equal(slot[10], 1);
	assert_int_equal(slot[60], 2);
	assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
	assert_true(got.sparse && !got.writer_open);
	s.sparse = false;
	sidecar_encode(&s, slot);
	assert_int_equal(slot[10], 0);
	assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
	assert_false(got.sparse);
}

/* What a set's initiator wants kept is there in versions 1.3, 2.1, 3.1. */
static void
attributes_have_a_version(void **state)
{
	struct sidecar s = {.sequence = 1, .pool_size = 4096, .state = SIDECAR_UP_TO_DATE}, got;
	uint8_t slot[SIDECAR_SLOT_SIZE];

	(void)state;
	for (int primary = 0; primary < 2; primary++) {
		s.primary = primary;
		memset(s.attr, 0, sizeof(s.attr));
		sidecar_encode(&s, slot);
		assert_int_equal(slot[10], 0);
		memset(s.attr, 'a', sizeof(s.attr));
		sidecar_encode(&s, slot);
		assert_int_equal(slot[8], 1 + primary);
		assert_int_equal(slot[10], primary ? 1 : 3);
		assert_int_equal(slot[544] + slot[647], 2 * 'a');
		assert_int_equal(slot[543] | slot[648], 0);
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_memory_equal(got.attr, s.attr, sizeof(s.attr));
		slot[10] = primary ? 0 : 2;
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), REPL_E_CORRUPT);
		slot[10] = primary ? 1 : 3;
		slot[648] = 1;
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), REPL_E_CORRUPT);
	}
}

/* A first opening that has not ended is there in versions 1.4, 2.2, 3.2, beside whatever else. */
static void
a_first_opening_has_a_version(void **state)
{
	struct sidecar s = {.sequence = 1, .pool_size = 4096, .state = SIDECAR_UP_TO_DATE}, got;
	uint8_t slot[SIDECAR_SLOT_SIZE];

	(void)state;
	for (int primary = 0; primary < 2; primary++) {
		s.primary = primary;
		s.opening = true;
		s.attr[5] = 7;
		sidecar_encode(&s, slot);
		assert_int_equal(slot[10], primary ? 2 : 4);
		assert_int_equal(slot[60] & 16, 16);
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_true(got.opening);
		assert_int_equal(got.attr[5], 7);
		slot[10] = primary ? 1 : 3;
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), REPL_E_CORRUPT);
		s.opening = false;
		sidecar_encode(&s, slot);
		assert_int_equal(slot[10], primary ? 1 : 3);
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_false(got.opening);
	}
}

/* A position record is there in versions 1.5, 2.3, 3.3, beside whatever else. */
static void
a_position_record_has_a_version(void **state)
{
	struct sidecar s = {.sequence = 1, .pool_size = 4096, .state = SIDECAR_UP_TO_DATE}, got;
	uint8_t slot[SIDECAR_SLOT_SIZE];

	(void)state;
	s.opening = true;
	s.attr[5] = 7;
	for (unsigned major = 1; major <= 3; major++) {
		s.primary = major == 2;
		s.log_off = major == 3 ? 2 * SIDECAR_SIZE : 0;
		s.log_len = major == 3 ? 4096 : 0;
		s.position_off = s.position_len = SIDECAR_SIZE;
		sidecar_encode(&s, slot);
		assert_int_equal(get_le16(slot + 8), major);
		assert_int_equal(slot[10], major == 1 ? 5 : 3);
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_true(got.opening && got.attr[5] == 7 && got.log_len == s.log_len);
		assert_true(got.position_off == SIDECAR_SIZE && got.position_len == SIDECAR_SIZE);
		slot[10]--;
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), REPL_E_CORRUPT);
		s.position_off = s.position_len = 0;
		sidecar_encode(&s, slot);
		assert_int_equal(slot[10], major == 1 ? 4 : 2);
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
	}
}

static void
who_is_waited_for_has_a_version(void **state)
{
	struct sidecar s = {.sequence = 1, .pool_size = 4096, .state = SIDECAR_UP_TO_DATE}, got;
	uint8_t slot[SIDECAR_SLOT_SIZE];

	(void)state;
	for (unsigned major = 1; major <= 3; major++) {
		s.primary = major == 2;
		s.log_off = major == 3 ? 2 * SIDECAR_SIZE : 0;
		s.log_len = major == 3 ? 4096 : 0;
		s.waited = true;
		sidecar_encode(&s, slot);
		assert_int_equal(slot[10], major == 1 ? 5 : 3);
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_true(got.waited);
		slot[10]--;
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), REPL_E_CORRUPT);
		s.waited = false;
		sidecar_encode(&s, slot);
		assert_int_equal(slot[10], 0);
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_false(got.waited);
	}
}

/* A program that does not know it loses it when it writes, which says that nobody knows. */
static void
what_it_lies_in_has_a_version(void **state)
{
	struct sidecar s = {.sequence = 1, .pool_size = 4096, .state = SIDECAR_UP_TO_DATE}, got;
	uint8_t slot[SIDECAR_SLOT_SIZE], want[SIDECAR_SLOT_SIZE];

	(void)state;
	for (unsigned major = 1; major <= 3; major++) {
		s.primary = major == 2;
		s.log_off = major == 3 ? 2 * SIDECAR_SIZE : 0;
		s.log_len = major == 3 ? 4096 : 0;
		s.settled = false;
		memset(&s.backing, 0, sizeof(s.backing));
		sidecar_encode(&s, want);
		want[10] = major == 1 ? 6 : 4;
		memset(want + 664, 0xb7, 16);
		seal(want);
		memset(&s.backing, 0xb7, sizeof(s.backing));
		sidecar_encode(&s, slot);
		assert_memory_equal(slot, want, sizeof(want));
		want[60] |= 64;
		seal(want);
		s.settled = true;
		sidecar_encode(&s, slot);
		assert_memory_equal(slot, want, sizeof(want));
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_true(got.settled);
		assert_memory_equal(&got.backing, &s.backing, sizeof(s.backing));
		slot[10]--;
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), REPL_E_CORRUPT);
		memset(slot + 664, 0, 16);
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), REPL_E_CORRUPT);
		slot[60] &= (uint8_t)~64;
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_true(!got.settled && gen_id_is_nil(&got.backing));
	}
}

static void
how_a_set_has_its_bytes_has_a_version(void **state)
{
	struct sidecar s = {.sequence = 1, .pool_size = 4096, .state = SIDECAR_UP_TO_DATE}, got;
	uint8_t slot[SIDECAR_SLOT_SIZE], want[SIDECAR_SLOT_SIZE];

	(void)state;
	for (unsigned major = 1; major <= 3; major++) {
		s.primary = major == 2;
		s.log_off = major == 3 ? 2 * SIDECAR_SIZE : 0;
		s.log_len = major == 3 ? 4096 : 0;
		s.layout = 0;
		sidecar_encode(&s, want);
		want[10] = major == 1 ? 7 : 5;
		memcpy(want + 680, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
		seal(want);
		s.layout = 0x0807060504030201;
		sidecar_encode(&s, slot);
		assert_memory_equal(slot, want, sizeof(want));
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_true(got.layout == s.layout);
		slot[10]--;
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), REPL_E_CORRUPT);
		memset(slot + 680, 0, 8);
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_true(got.layout == 0);
	}
}

static void
the_order_of_a_set_has_a_version(void **state)
{
	struct sidecar s = {.sequence = 1, .pool_size = 4096, .state = SIDECAR_UP_TO_DATE}, got;
	uint8_t slot[SIDECAR_SLOT_SIZE], want[SIDECAR_SLOT_SIZE];

	(void)state;
	for (unsigned major = 1; major <= 3; major++) {
		s.primary = major == 2;
		s.log_off = major == 3 ? 2 * SIDECAR_SIZE : 0;
		s.log_len = major == 3 ? 4096 : 0;
		s.order = 0;
		sidecar_encode(&s, want);
		want[10] = major == 1 ? 8 : 6;
		memcpy(want + 688, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
		seal(want);
		s.order = 0x0807060504030201;
		sidecar_encode(&s, slot);
		assert_memory_equal(slot, want, sizeof(want));
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_true(got.order == s.order);
		slot[10]--;
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), REPL_E_CORRUPT);
		memset(slot + 688, 0, 8);
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_true(got.order == 0);
	}
}

/* Earlier versions refuse a size that is not of whole pages: so it makes another one, whatever else
 * there is. */
static void
sizes(void **state)
{
	struct sidecar s = {.sequence = 1, .pool_size = 1, .state = SIDECAR_UP_TO_DATE}, got;
	uint8_t slot[SIDECAR_SLOT_SIZE];
	struct err e;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		s.primary = i & 1;
		s.log_off = i & 2 ? 2 * SIDECAR_SIZE : 0;
		s.log_len = i & 2 ? 4096 : 0;
		s.layout = i;
		s.pool_size = 1 + i * 4099;
		sidecar_encode(&s, slot);
		assert_int_equal(get_le16(slot + 8), 4);
		assert_int_equal(get_le16(slot + 10), i ? 5 : 0);
		assert_int_equal(sidecar_decode(slot, &got, &e), 0);
		assert_int_equal(got.pool_size, s.pool_size);
		assert_int_equal(got.primary, s.primary);
		assert_int_equal(got.log_len, s.log_len);
		put_le16(slot + 8, 3);
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, &e), REPL_E_CORRUPT);
		assert_non_null(strstr(e.text, "no multiple of 4096"));
	}
	s.pool_size = 8192;
	s.log_off = s.log_len = 0;
	sidecar_encode(&s, slot);
	assert_int_equal(get_le16(slot + 8), 2);
}

/* A newer minor version may use the reserved bytes; a newer major one is left alone by all. */
static void
versions(void **state)
{
	static const struct change minor = {10, 2, 9, 0, ""}, used = {700, 2, 1, 0, ""};
	static const struct change major = {8, 2, 5, 0, ""};
	uint8_t slot[SIDECAR_SLOT_SIZE] = {0};
	struct sidecar s;
	struct err e;
	bool repair;

	(void)state;
	memcpy(slot, golden, sizeof(golden));
	apply(slot, &minor);
	apply(slot, &used);
	assert_int_equal(sidecar_decode(slot, &s, &e), 0);
	apply(slot, &major);
	for (unsigned copy = 0; copy < 2; copy++) {
		int fd = new_file();

		s = sample();
		assert_int_equal(sidecar_write(fd, &s, &e), 0);
		put_slot(fd, copy, slot);
		assert_int_equal(sidecar_read(fd, &s, &repair, &e), REPL_E_VERSION);
		assert_int_equal(sidecar_write(fd, &s, &e), REPL_E_VERSION);
		(void)close(fd);
	}
}

/* Who does not know the round log would serve the pool without what is in it. */
static void
round_log_is_version_3(void **state)
{
	struct sidecar s = sample(), got;
	uint8_t slot[SIDECAR_SLOT_SIZE], want[SIDECAR_SLOT_SIZE] = {0};

	(void)state;
	s.log_off = 0x2000;
	s.log_len = 0x101000;
	sidecar_encode(&s, slot);
	memcpy(want, golden, sizeof(golden));
	want[8] = 3;
	want[529] = 0x20;
	want[537] = 0x10;
	want[538] = 0x10;
	seal(want);
	assert_memory_equal(slot, want, sizeof(want));
	assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
	assert_same(&got, &s);
	assert_true(got.log_off == s.log_off && got.log_len == s.log_len);
	s.journal_off = 0x102000;
	s.journal_len = 4096;
	sidecar_encode(&s, slot);
	assert_int_equal(sidecar_decode(slot, &got, NULL), REPL_E_CORRUPT);
	s.log_off = s.log_len = 0;
	sidecar_encode(&s, slot);
	assert_int_equal(get_le16(slot + 8), 2);
}

/* What a program of version 1 must not touch is of version 2, and of 1 again without it. */
static void
what_old_programs_would_break_is_version_2(void **state)
{
	struct sidecar s = sample(), got;
	uint8_t slot[SIDECAR_SLOT_SIZE];

	(void)state;
	s.dirty_off = SIDECAR_SIZE;
	s.dirty_len = 8192;
	s.position = 77;
	sidecar_encode(&s, slot);
	assert_int_equal(get_le16(slot + 8), 1);
	assert_int_equal(get_le16(slot + 10), 2);
	assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
	assert_true(got.dirty_off == s.dirty_off && got.dirty_len == 8192 && got.position == 77);
	s.journal_off = SIDECAR_SIZE + 8192;
	s.journal_len = 4096;
	s.journal_committed = true;
	s.primary = true;
	sidecar_encode(&s, slot);
	assert_int_equal(get_le16(slot + 8), 2);
	assert_int_equal(get_le16(slot + 10), 0);
	assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
	assert_true(got.journal_off == s.journal_off && got.journal_len == 4096);
	assert_true(got.journal_committed && got.primary && got.dirty_len == 8192);
	s.primary = s.journal_committed = false;
	s.journal_len = s.journal_off = 0;
	sidecar_encode(&s, slot);
	assert_int_equal(get_le16(slot + 8), 1);
}

/* Programs of version 1 would push it over replicas that have more of its generation. */
static void
part_of_a_generation_is_version_2(void **state)
{
	struct sidecar s = sample(), got;
	uint8_t slot[SIDECAR_SLOT_SIZE], want[SIDECAR_SLOT_SIZE] = {0};

	(void)state;
	s.state = SIDECAR_UNKNOWN;
	s.position = 0x1122334455667788;
	sidecar_encode(&s, slot);
	memcpy(want, golden, sizeof(golden));
	want[8] = 2;
	want[56] = 4;
	put_le64(want + 88, s.position);
	seal(want);
	assert_memory_equal(slot, want, sizeof(want));
	assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
	assert_same(&got, &s);
	assert_true(got.position == s.position);
	/* Those that were written as 1.2 are read as they were. */
	put_le16(want + 8, 1);
	put_le16(want + 10, 2);
	seal(want);
	assert_int_equal(sidecar_decode(want, &got, NULL), 0);
	assert_true(got.position == s.position);
	/* Closed in order it has all, whatever its last position. */
	s.state = SIDECAR_UP_TO_DATE;
	sidecar_encode(&s, slot);
	assert_int_equal(get_le16(slot + 8), 1);
	assert_int_equal(get_le16(slot + 10), 2);
}

static void
regions_that_overlap_are_refused(void **state)
{
	struct sidecar s = sample(), got;
	uint8_t slot[SIDECAR_SLOT_SIZE];
	struct err e;

	(void)state;
	s.dirty_off = SIDECAR_SIZE;
	s.dirty_len = 8192;
	s.journal_off = SIDECAR_SIZE + 4096;
	s.journal_len = 8192;
	sidecar_encode(&s, slot);
	assert_int_equal(sidecar_decode(slot, &got, &e), REPL_E_CORRUPT);
	assert_non_null(strstr(e.text, "overlap"));
	s.dirty_len = 4096;
	s.position_off = SIDECAR_SIZE + 8192;
	s.position_len = 4096;
	sidecar_encode(&s, slot);
	assert_int_equal(sidecar_decode(slot, &got, &e), REPL_E_CORRUPT);
	assert_non_null(strstr(e.text, "overlap"));
	s.position_off = s.position_len = 0;
	s.journal_off = s.journal_len = 0;
	s.journal_committed = true;
	sidecar_encode(&s, slot);
	put_le16(slot + 8, 2);
	put_le16(slot + 10, 0);
	seal(slot);
	assert_int_equal(sidecar_decode(slot, &got, &e), REPL_E_CORRUPT);
	assert_non_null(strstr(e.text, "committed"));
}

static void
what_could_not_be_read_is_not_written(void **state)
{
	struct sidecar s = sample();
	struct err e;
	bool repair;
	int fd = new_file();

	(void)state;
	s.pool_size = 0;
	assert_int_equal(sidecar_write(fd, &s, &e), REPL_E_CORRUPT);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	s = sample();
	strcpy(s.writer, "caf\xc3\xa9\n\x1b[31m");
	assert_int_equal(sidecar_write(fd, &s, &e), 0);
	assert_int_equal(sidecar_read(fd, &s, &repair, &e), 0);
	assert_string_equal(s.writer, "caf????[31m");
	(void)close(fd);
}

static void
states_have_names(void **state)
{
	(void)state;
	assert_string_equal(sidecar_state_name(SIDECAR_UP_TO_DATE), "up-to-date");
	assert_string_equal(sidecar_state_name(SIDECAR_INCONSISTENT), "inconsistent");
	assert_string_equal(sidecar_state_name(SIDECAR_OUTDATED), "outdated");
	assert_string_equal(sidecar_state_name(SIDECAR_UNKNOWN), "unknown");
}

static void
what_may_hold_updates_has_a_name(void **state)
{
	(void)state;
	assert_null(sidecar_holds(&(struct sidecar){.dirty_len = 4096, .position_len = 4096}));
	assert_string_equal(sidecar_holds(&(struct sidecar){.ring_len = 4096}), "receive ring");
	assert_null(sidecar_holds(&(struct sidecar){.journal_len = 1}));
	assert_string_equal(
		sidecar_holds(&(struct sidecar){.journal_len = 1, .journal_committed = true}),
		"resync journal");
	assert_string_equal(sidecar_holds(&(struct sidecar){.log_len = 4096}), "round log");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slot_has_the_documented_bytes),
		cmocka_unit_test(every_damaged_byte_leaves_the_state),
		cmocka_unit_test(writing_mends_the_damaged_copy),
		cmocka_unit_test(both_copies_damaged_is_corrupt_and_says_of_both_why),
		cmocka_unit_test(short_files),
		cmocka_unit_test(newest_copy_wins),
		cmocka_unit_test(sequence_goes_on_from_the_file),
		cmocka_unit_test(hostile_values_are_refused),
		cmocka_unit_test(ring_outside_of_the_file_is_refused),
		cmocka_unit_test(ring_is_kept_until_it_is_dropped),
		cmocka_unit_test(writer_text_without_end_is_refused),
		cmocka_unit_test(attributes_have_a_version),
		cmocka_unit_test(a_first_opening_has_a_version),
		cmocka_unit_test(a_position_record_has_a_version),
		cmocka_unit_test(who_is_waited_for_has_a_version),
		cmocka_unit_test(what_it_lies_in_has_a_version),
		cmocka_unit_test(how_a_set_has_its_bytes_has_a_version),
		cmocka_unit_test(the_order_of_a_set_has_a_version),
		cmocka_unit_test(sizes),
		cmocka_unit_test(versions),
		cmocka_unit_test(round_log_is_version_3),
		cmocka_unit_test(what_old_programs_would_break_is_version_2),
		cmocka_unit_test(part_of_a_generation_is_version_2),
		cmocka_unit_test(regions_that_overlap_are_refused),
		cmocka_unit_test(what_could_not_be_read_is_not_written),
		cmocka_unit_test(states_have_names),
		cmocka_unit_test(what_may_hold_updates_has_a_name),
		cmocka_unit_test(sparse_is_a_flag_of_version_1_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
