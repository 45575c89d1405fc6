/* SPDX-License-Identifier: BSD-3-Clause */
/* A sidecar reads back as written, whatever single copy is damaged, and hostile slots are refused.
 */
#include "sidecar_slot.h"

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
		cmocka_unit_test(regions_that_overlap_are_refused),
		cmocka_unit_test(what_could_not_be_read_is_not_written),
		cmocka_unit_test(states_have_names),
		cmocka_unit_test(what_may_hold_updates_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
