/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sidecar has that not every version knows makes it of a version that does, and of an
 * earlier one again without it.
 */
#include "sidecar_slot.h"

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

/* Of which run of its machine a file is that was not closed. */
static void
the_boot_of_a_file_has_a_version(void **state)
{
	struct sidecar s = {.sequence = 1, .pool_size = 4096, .state = SIDECAR_UP_TO_DATE}, got;
	uint8_t slot[SIDECAR_SLOT_SIZE], want[SIDECAR_SLOT_SIZE];

	(void)state;
	for (unsigned major = 1; major <= 3; major++) {
		s.primary = major == 2;
		s.log_off = major == 3 ? 2 * SIDECAR_SIZE : 0;
		s.log_len = major == 3 ? 4096 : 0;
		memset(s.boot.b, 0, sizeof(s.boot.b));
		sidecar_encode(&s, want);
		want[10] = major == 1 ? 9 : 7;
		memcpy(want + 696,
		       "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10", 16);
		seal(want);
		memcpy(s.boot.b, want + 696, 16);
		sidecar_encode(&s, slot);
		assert_memory_equal(slot, want, sizeof(want));
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_memory_equal(got.boot.b, s.boot.b, 16);
		slot[10]--;
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), REPL_E_CORRUPT);
		memset(slot + 696, 0, 16);
		seal(slot);
		assert_int_equal(sidecar_decode(slot, &got, NULL), 0);
		assert_true(gen_id_is_nil(&got.boot));
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_have_a_version),
		cmocka_unit_test(a_first_opening_has_a_version),
		cmocka_unit_test(a_position_record_has_a_version),
		cmocka_unit_test(who_is_waited_for_has_a_version),
		cmocka_unit_test(what_it_lies_in_has_a_version),
		cmocka_unit_test(how_a_set_has_its_bytes_has_a_version),
		cmocka_unit_test(the_order_of_a_set_has_a_version),
		cmocka_unit_test(the_boot_of_a_file_has_a_version),
		cmocka_unit_test(sizes),
		cmocka_unit_test(versions),
		cmocka_unit_test(round_log_is_version_3),
		cmocka_unit_test(what_old_programs_would_break_is_version_2),
		cmocka_unit_test(part_of_a_generation_is_version_2),
		cmocka_unit_test(sparse_is_a_flag_of_version_1_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
