/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive ring replays the messages behind each lane's mark up to its first gap, in the order
 * of their stamps, and whatever else is in it counts as nothing.
 */
#include "unit.h"

#include <stdlib.h>

#include "checksum.h"
#include "le.h"
#include "ring.h"

#define POOL_SIZE 4096U
#define EPOCH     0x11223344U
#define LANES     3U
#define SLOTS     3U
#define SLOT_SIZE 4096U

static const struct ring_geometry geometry = {
	.epoch = EPOCH, .lanes = LANES, .slots = SLOTS, .slot_size = SLOT_SIZE};

/* Made by another program from the text of docs/POOL-FORMAT.md; zeros follow. */
static const uint8_t golden_header[] = {
	0x52, 0x45, 0x50, 0x4c, 0x52, 0x49, 0x4e, 0x47, 0x01, 0x00, 0x00, 0x00, 0x44, 0x33,
	0x22, 0x11, 0x03, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00, 0x00, 0x80, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x5b, 0x30, 0x52, 0x35, 0xa2, 0xe4, 0xee, 0x03,
};

/* ---- header ---- */

static void
header_has_golden_bytes(void **state)
{
	struct ring_geometry g = {.epoch = EPOCH, .lanes = 3, .slots = 9, .slot_size = 32768}, got;
	uint8_t want[RING_HEADER_SIZE] = {0}, header[RING_HEADER_SIZE];

	(void)state;
	memcpy(want, golden_header, sizeof(golden_header));
	ring_header_encode(&g, header);
	assert_memory_equal(header, want, sizeof(want));
	assert_int_equal(ring_header_decode(want, ring_size(&g), &got, NULL), 0);
	assert_memory_equal(&got, &g, sizeof(g));
	assert_true(ring_size(&g) == 8192 + 27 * 32768);
	assert_true(ring_mark_off(2) == 4096 + 128);
	assert_true(ring_slot_off(&g, 2, 8) == 8192 + 26 * 32768);
}

static void
every_damaged_byte_of_a_header_is_noticed(void **state)
{
	uint8_t header[RING_HEADER_SIZE];
	struct ring_geometry got;

	(void)state;
	ring_header_encode(&geometry, header);
	for (unsigned i = 0; i < sizeof(header); i++) {
		header[i] ^= 0x40;
		assert_int_equal(ring_header_decode(header, UINT64_MAX, &got, NULL),
				 REPL_E_CORRUPT);
		header[i] ^= 0x40;
	}
}

struct lie {
	unsigned at, len;
	uint64_t value;
	int code;
};

static const struct lie lies[] = {
	{8, 2, 0, REPL_E_CORRUPT},           {8, 2, 2, REPL_E_VERSION},
	{10, 2, 1, REPL_E_CORRUPT},          {16, 4, 0, REPL_E_CORRUPT},
	{16, 4, 4, REPL_E_CORRUPT},          {16, 4, 65, REPL_E_CORRUPT},
	{16, 4, UINT32_MAX, REPL_E_CORRUPT}, {20, 4, 1, REPL_E_CORRUPT},
	{20, 4, 66, REPL_E_CORRUPT},         {20, 4, UINT32_MAX, REPL_E_CORRUPT},
	{24, 4, 0, REPL_E_CORRUPT},          {24, 4, 4097, REPL_E_CORRUPT},
	{24, 4, 8192, REPL_E_CORRUPT},       {24, 4, 1U << 31, REPL_E_CORRUPT},
	{28, 4, 1, REPL_E_CORRUPT},          {40, 1, 1, REPL_E_CORRUPT},
	{4095, 1, 1, REPL_E_CORRUPT},
};

static void
sealed_lies_in_a_header_are_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		uint8_t header[RING_HEADER_SIZE], value[8];
		struct ring_geometry got;

		ring_header_encode(&geometry, header);
		put_le64(value, lies[i].value);
		memcpy(header + lies[i].at, value, lies[i].len);
		put_le64(header + 32, sum64_seeded(header, 32, sum64(header + 40, 4096 - 40)));
		if (ring_header_decode(header, ring_size(&geometry), &got, NULL) != lies[i].code)
			fail_msg("lie %u at %u is accepted", i, lies[i].at);
	}
}

/* ---- replay ---- */

struct bench {
	uint8_t *region;
	char log[64]; /* a letter for each message replayed, by its payload */
};

static struct bench
bench_new(void)
{
	struct bench b = {.region = calloc(1, ring_size(&geometry))};

	assert_non_null(b.region);
	ring_header_encode(&geometry, b.region);
	return b;
}

static uint8_t *
slot_at(struct bench *b, uint32_t lane, uint64_t seq)
{
	return b->region + ring_slot_off(&geometry, lane, ring_slot_of(&geometry, seq));
}

/* A message of one letter, in the slot where it comes to lie. */
static void
put_epoch(struct bench *b, uint32_t lane, uint64_t seq, uint64_t stamp, char letter, uint32_t epoch)
{
	struct wire_entry first = {.off = stamp, .op = WIRE_OP_STAMP};
	struct wire_entry copy = {.off = 0, .len = 1, .op = WIRE_OP_COPY};
	struct wire_commit c;

	wire_commit_begin(&c, slot_at(b, lane, seq), SLOT_SIZE, 2);
	wire_commit_add(&c, &first, NULL);
	wire_commit_add(&c, &copy, &letter);
	(void)wire_deposit_end(&c, seq, epoch);
}

static void
put(struct bench *b, uint32_t lane, uint64_t seq, uint64_t stamp, char letter)
{
	put_epoch(b, lane, seq, stamp, letter, EPOCH);
}

static void
mark(struct bench *b, uint32_t lane, uint64_t seq)
{
	ring_mark_encode(seq, b->region + ring_mark_off(lane));
}

static const char *
replayed(struct bench *b)
{
	struct ring_replay r;
	struct ring_message m;
	size_t n = 0;

	ring_replay_begin(&r, b->region, &geometry, POOL_SIZE);
	while (ring_replay_next(&r, &m)) {
		assert_true(n + 1 < sizeof(b->log));
		b->log[n++] = (char)m.view.payload[0];
	}
	b->log[n] = '\0';
	return b->log;
}

static void
lanes_are_merged_by_stamp(void **state)
{
	struct bench b = bench_new();

	(void)state;
	assert_string_equal(replayed(&b), "");
	put(&b, 0, 1, 10, 'a');
	put(&b, 1, 1, 11, 'b');
	put(&b, 2, 1, 12, 'c');
	put(&b, 1, 2, 13, 'd');
	put(&b, 0, 2, 14, 'e');
	put(&b, 0, 3, 15, 'f');
	assert_string_equal(replayed(&b), "abcdef");
	/* Twice is once. */
	assert_string_equal(replayed(&b), "abcdef");
	free(b.region);
}

static void
what_is_marked_is_not_replayed(void **state)
{
	struct bench b = bench_new();

	(void)state;
	put(&b, 0, 1, 1, 'a');
	put(&b, 0, 2, 2, 'b');
	put(&b, 1, 1, 3, 'c');
	mark(&b, 0, 1);
	assert_string_equal(replayed(&b), "bc");
	mark(&b, 0, 2);
	assert_string_equal(replayed(&b), "c");
	mark(&b, 1, 1);
	assert_string_equal(replayed(&b), "");
	free(b.region);
}

/* The ring has gone round: old messages lie behind new ones. */
static void
slots_are_used_again(void **state)
{
	struct bench b = bench_new();

	(void)state;
	for (uint64_t seq = 1; seq <= 8; seq++)
		put(&b, 0, seq, 100 + seq, (char)('a' + seq));
	mark(&b, 0, 6);
	assert_string_equal(replayed(&b), "hi");
	mark(&b, 0, 5);
	assert_string_equal(replayed(&b), "ghi");
	/* 5 has been overwritten by 8: what is left does not follow the mark. */
	mark(&b, 0, 4);
	assert_string_equal(replayed(&b), "");
	free(b.region);
}

static void
a_lane_ends_at_its_first_gap(void **state)
{
	struct bench b = bench_new();

	(void)state;
	put(&b, 0, 1, 1, 'a');
	put(&b, 0, 3, 3, 'x');
	put(&b, 1, 1, 2, 'b');
	put(&b, 1, 2, 4, 'c');
	assert_string_equal(replayed(&b), "abc");
	/* Destroyed, as by a target that has refused it. */
	memset(slot_at(&b, 1, 1), 0, 8);
	assert_string_equal(replayed(&b), "a");
	free(b.region);
}

static void
a_torn_message_counts_as_none(void **state)
{
	struct bench b = bench_new();
	size_t len = WIRE_HEADER_SIZE + 2 * WIRE_ENTRY_SIZE + 1;
	uint8_t whole[128];

	(void)state;
	put(&b, 0, 1, 1, 'a');
	put(&b, 0, 2, 2, 'b');
	memcpy(whole, slot_at(&b, 0, 2), sizeof(whole));
	/* The end has not come, over zeros and over what was there before. */
	for (size_t have = 0; have < len; have++) {
		memset(slot_at(&b, 0, 2), 0, sizeof(whole));
		memcpy(slot_at(&b, 0, 2), whole, have);
		assert_string_equal(replayed(&b), "a");
		memset(slot_at(&b, 0, 2) + have, 0xee, sizeof(whole) - have);
		assert_string_equal(replayed(&b), "a");
	}
	/* Any byte of it is wrong. */
	for (size_t i = 0; i < len; i++) {
		memcpy(slot_at(&b, 0, 2), whole, sizeof(whole));
		slot_at(&b, 0, 2)[i] ^= 1;
		assert_string_equal(replayed(&b), "a");
	}
	memcpy(slot_at(&b, 0, 2), whole, sizeof(whole));
	assert_string_equal(replayed(&b), "ab");
	free(b.region);
}

static void
a_duplicate_is_replayed_once(void **state)
{
	struct bench b = bench_new();

	(void)state;
	put(&b, 0, 1, 1, 'a');
	put(&b, 0, 2, 2, 'b');
	memcpy(slot_at(&b, 0, 3), slot_at(&b, 0, 2), 128);
	assert_string_equal(replayed(&b), "ab");
	/* Or on another lane, where its number is the first. */
	memcpy(slot_at(&b, 1, 1), slot_at(&b, 0, 2), 128);
	assert_string_equal(replayed(&b), "ab");
	free(b.region);
}

static void
another_epoch_counts_as_nothing(void **state)
{
	struct bench b = bench_new();

	(void)state;
	put_epoch(&b, 0, 1, 1, 'a', EPOCH - 1);
	put(&b, 0, 2, 2, 'b');
	put_epoch(&b, 1, 1, 3, 'c', EPOCH + 1);
	put(&b, 2, 1, 4, 'd');
	assert_string_equal(replayed(&b), "d");
	free(b.region);
}

static void
stamps_of_a_lane_rise(void **state)
{
	struct bench b = bench_new();

	(void)state;
	put(&b, 0, 1, 5, 'a');
	put(&b, 0, 2, 5, 'b');
	put(&b, 1, 1, 9, 'c');
	put(&b, 1, 2, 3, 'd');
	assert_string_equal(replayed(&b), "ac");
	free(b.region);
}

static void
a_forged_length_leads_nowhere(void **state)
{
	struct bench b = bench_new();
	uint8_t *last = slot_at(&b, LANES - 1, SLOTS);

	(void)state;
	mark(&b, LANES - 1, SLOTS - 1);
	put(&b, LANES - 1, SLOTS, 1, 'a');
	assert_string_equal(replayed(&b), "a");
	put_le32(last + 16, SLOT_SIZE);
	assert_string_equal(replayed(&b), "");
	put_le32(last + 16, UINT32_MAX);
	assert_string_equal(replayed(&b), "");
	put_le16(last + 6, UINT16_MAX);
	assert_string_equal(replayed(&b), "");
	free(b.region);
}

static void
hostile_marks_lead_nowhere(void **state)
{
	static const uint64_t marks[] = {UINT64_MAX, UINT64_MAX - 1, 1ULL << 63, 12345678901};
	struct bench b = bench_new();

	(void)state;
	put(&b, 0, 1, 1, 'a');
	for (unsigned i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		mark(&b, 0, marks[i]);
		assert_string_equal(replayed(&b), "");
	}
	free(b.region);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_has_golden_bytes),
		cmocka_unit_test(every_damaged_byte_of_a_header_is_noticed),
		cmocka_unit_test(sealed_lies_in_a_header_are_refused),
		cmocka_unit_test(lanes_are_merged_by_stamp),
		cmocka_unit_test(what_is_marked_is_not_replayed),
		cmocka_unit_test(slots_are_used_again),
		cmocka_unit_test(a_lane_ends_at_its_first_gap),
		cmocka_unit_test(a_torn_message_counts_as_none),
		cmocka_unit_test(a_duplicate_is_replayed_once),
		cmocka_unit_test(another_epoch_counts_as_nothing),
		cmocka_unit_test(stamps_of_a_lane_rise),
		cmocka_unit_test(a_forged_length_leads_nowhere),
		cmocka_unit_test(hostile_marks_lead_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
