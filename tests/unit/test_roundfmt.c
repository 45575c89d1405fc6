/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of a round log exactly the frames that count are replayed, in their order, however they lie in
 * its halves and whatever is torn; a frame that is missing in between is told.
 */
#include "unit.h"

#include <stdlib.h>

#include "checksum.h"
#include "journalfmt.h"
#include "le.h"
#include "roundfmt.h"

#define POOL  65536U
#define EPOCH 7U
#define KEY   0x1122334455667788ULL
#define HALF  ROUND_HALF_MIN

static uint8_t *region;
static struct round_replay *replay;

static const struct round_header header = {
	.epoch = EPOCH,
	.pool_uuid = {{0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac,
		       0xad, 0xae, 0xaf}},
	.key = KEY,
	.half = HALF,
};

static int
setup(void **state)
{
	(void)state;
	region = calloc(1, round_size(HALF));
	replay = malloc(sizeof(*replay));
	assert_non_null(region);
	assert_non_null(replay);
	round_header_encode(&header, region);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	free(region);
	free(replay);
	return 0;
}

/* A message with one COPY of 8 such letters. */
static size_t
message(uint8_t *buf, char letter)
{
	struct wire_entry copy = {.off = 64, .len = 8, .op = WIRE_OP_COPY};
	struct wire_commit c;
	char payload[8];

	memset(payload, letter, sizeof(payload));
	wire_commit_begin(&c, buf, 256, 1);
	wire_commit_add(&c, &copy, payload);
	return wire_commit_end(&c, 1, EPOCH);
}

static uint8_t *
block(unsigned n)
{
	return region + REGION_PAGE + (size_t)n * ROUND_BLOCK;
}

/* A frame in that block of a message for each letter. */
static void
frame(unsigned at, uint64_t seq, uint64_t from, const char *letters)
{
	struct round_frame f = {.seq = seq, .from = from};
	uint8_t *to = block(at) + ROUND_HEAD_SIZE;

	for (; *letters; letters++) {
		size_t len = message(to, *letters);

		f.chain = wire_stage_chain(f.chain, to);
		f.bytes += (uint32_t)len;
		f.count++;
		to += len;
	}
	round_head_encode(&f, KEY, block(at));
}

static void
assert_replay(const char *letters, bool damaged)
{
	struct wire_commit_view v;
	struct round_header h;
	char got[64] = "";

	assert_int_equal(round_header_decode(region, round_size(HALF), &h, NULL), 0);
	round_replay_begin(replay, region, &h, POOL);
	for (unsigned i = 0; round_replay_next(replay, &v); i++) {
		assert_true(i < sizeof(got) - 1);
		got[i] = (char)*v.payload;
	}
	assert_string_equal(got, letters);
	assert_int_equal(replay->damaged, damaged);
}

#define OTHER (HALF / ROUND_BLOCK) /* the first block of the second half */

/* Laid out by hand from docs/POOL-FORMAT.md. */
static void
header_has_the_documented_bytes(void **state)
{
	static const uint8_t begin[56] = {
		'R',  'E',  'P',  'L',  'R',  'L',  'O',  'G',  1,    0,    0,    0,    7,    0,
		0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0xa0, 0xa1, 0xa2, 0xa3,
		0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, 0x88, 0x77,
		0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0,    0,    8,    0,    0,    0,    0,    0};
	uint8_t want[REGION_PAGE] = {0};
	uint64_t rest;

	(void)state;
	memcpy(want, begin, sizeof(begin));
	rest = sum64(want + 24, REGION_PAGE - 24);
	put_le64(want + 16, sum64_seeded(want, 16, rest));
	assert_memory_equal(region, want, sizeof(want));
}

static void
frame_has_the_documented_bytes(void **state)
{
	static const uint8_t want[40] = {'R',  'L',  'F', '1', 0x38, 0,    0,    0,    9,    0,
					 0,    0,    0,   0,   0,    0,    4,    0,    0,    0,
					 0,    0,    0,   0,   0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
					 0x22, 0x11, 1,   0,   0,    0,    0,    0,    0,    0};
	struct round_frame f = {
		.seq = 9, .from = 4, .chain = 0x1122334455667788, .bytes = 56, .count = 1};
	uint8_t head[ROUND_HEAD_SIZE];

	(void)state;
	round_head_encode(&f, 5, head);
	assert_memory_equal(head, want, sizeof(want));
	assert_true(get_le64(head + 40) == sum64_seeded(head, 40, 5));
}

static void
halves_follow_the_pools_size(void **state)
{
	(void)state;
	assert_int_equal(round_half_for(4096), ROUND_HALF_MIN);
	assert_int_equal(round_half_for(8ULL << 20), 1U << 20);
	assert_int_equal(round_half_for((8ULL << 20) + 8 * 4095), 1U << 20);
	assert_int_equal(round_half_for(1ULL << 40), ROUND_HALF_MAX);
}

static void
nothing_is_replayed_of_an_empty_log(void **state)
{
	(void)state;
	assert_replay("", false);
}

static void
frames_are_replayed_in_order(void **state)
{
	(void)state;
	frame(0, 1, 1, "ab");
	frame(1, 2, 1, "c");
	frame(4, 3, 1, "");
	frame(5, 4, 1, "d");
	assert_replay("abcd", false);
}

static void
what_is_retired_is_not_replayed(void **state)
{
	(void)state;
	frame(0, 1, 1, "ab");
	frame(1, 2, 1, "c");
	frame(2, 3, 3, "");
	assert_replay("", false);
	frame(3, 4, 3, "d");
	assert_replay("d", false);
}

static void
halves_are_put_in_order(void **state)
{
	(void)state;
	frame(OTHER, 1, 1, "x");
	frame(OTHER + 1, 2, 1, "y");
	frame(0, 3, 1, "a");
	frame(1, 4, 2, "b");
	assert_replay("yab", false);
	/* The half before is written over. */
	frame(2, 5, 3, "c");
	frame(OTHER, 6, 3, "d");
	assert_replay("abcd", false);
}

static void
torn_frame_is_none(void **state)
{
	(void)state;
	for (size_t cut = 0; cut < ROUND_HEAD_SIZE + 2 * 56; cut++) {
		memset(region + REGION_PAGE, 0, (size_t)2 * HALF);
		frame(0, 1, 1, "a");
		frame(1, 2, 1, "bc");
		memset(block(1) + cut, 0, ROUND_HEAD_SIZE + 2 * 56 - cut);
		/* What is cut off may be zero. */
		if (round_frame_whole(block(1), ROUND_BLOCK, &header, POOL, &replay->frame))
			continue;
		assert_replay("a", false);
	}
}

static void
flipped_byte_leaves_the_prefix_and_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROUND_HEAD_SIZE + 56; i++) {
		frame(0, 1, 1, "a");
		frame(1, 2, 1, "b");
		frame(2, 3, 1, "c");
		block(1)[i] ^= 0x10;
		assert_replay("a", true);
		block(1)[i] ^= 0x10;
		assert_replay("abc", false);
	}
}

static void
frame_of_another_log_is_none(void **state)
{
	struct round_frame f = {.seq = 2, .from = 1};

	(void)state;
	frame(0, 1, 1, "a");
	round_head_encode(&f, KEY + 1, block(1));
	assert_replay("a", false);
}

/* Whole by its checksum, and against the rules. */
static void
hostile_frames_are_none(void **state)
{
	struct round_frame bad[] = {
		{.seq = 2, .from = 0},
		{.seq = 2, .from = 3},
		{.seq = 1ULL << 63, .from = 1},
		{.seq = 2, .from = 1, .count = 1},
		{.seq = 2, .from = 1, .bytes = 56},
		{.seq = 2, .from = 1, .bytes = ROUND_FRAME_MAX},
		{.seq = 2, .from = 1, .bytes = UINT32_MAX, .count = UINT32_MAX},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		frame(0, 1, 1, "a");
		round_head_encode(&bad[i], KEY, block(1));
		assert_replay("a", false);
	}
}

static void
frame_does_not_leave_its_half(void **state)
{
	struct round_frame f = {.seq = 2, .from = 1, .bytes = ROUND_BLOCK};

	(void)state;
	frame(0, 1, 1, "a");
	round_head_encode(&f, KEY, block(OTHER - 1));
	assert_replay("a", false);
}

static void
message_that_is_not_for_the_log_makes_it_none(void **state)
{
	static const struct wire_entry entries[] = {
		{.off = 0, .len = 8, .op = WIRE_OP_FLUSH},
		{.off = POOL - 4, .len = 8, .op = WIRE_OP_COPY},
	};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct round_frame f = {.seq = 2, .from = 1, .count = 1};
		uint8_t *to = block(1) + ROUND_HEAD_SIZE;
		struct wire_commit c;

		frame(0, 1, 1, "a");
		wire_commit_begin(&c, to, 256, 1);
		wire_commit_add(&c, &entries[i], "12345678");
		f.bytes = (uint32_t)wire_commit_end(&c, 1, EPOCH);
		f.chain = wire_stage_chain(0, to);
		round_head_encode(&f, KEY, block(1));
		assert_replay("a", false);
	}
}

static void
sequences_without_a_frame_are_told(void **state)
{
	(void)state;
	frame(0, INT64_MAX, 1, "a");
	assert_replay("", true);
	frame(0, 10, 8, "a");
	frame(1, 8, 8, "b");
	assert_replay("b", true);
}

static void
header_that_does_not_fit_is_refused(void **state)
{
	struct round_header h = header, got;
	uint8_t page[REGION_PAGE];

	(void)state;
	assert_int_equal(round_header_decode(region, round_size(HALF) + 4096, &got, NULL),
			 REPL_E_CORRUPT);
	for (unsigned i = 0; i < 3; i++) {
		h.half = i == 0 ? HALF - 4096 : i == 1 ? HALF + 512 : ROUND_HALF_MAX + 4096;
		round_header_encode(&h, page);
		assert_int_equal(round_header_decode(page, round_size(h.half), &got, NULL),
				 REPL_E_CORRUPT);
	}
	region[9] ^= 1;
	region_page_seal(region);
	assert_int_equal(round_header_decode(region, round_size(HALF), &got, NULL), REPL_E_VERSION);
}

/* Of this log and of the journal, whose pages of one kind have two versions. */
static void
newer_version_says_so(void **state)
{
	const struct journal_header head = {.epoch = EPOCH};
	struct journal_commit commit = {.epoch = EPOCH, .state = SIDECAR_UNKNOWN};
	struct round_header log;
	struct journal_header got;
	uint8_t page[REGION_PAGE];
	struct err e;

	(void)state;
	put_le16(region + 8, 2);
	region_page_seal(region);
	assert_int_equal(round_header_decode(region, round_size(HALF), &log, &e), REPL_E_VERSION);
	assert_string_equal(e.text, "round log: version 2, this program knows up to 1: a newer "
				    "version made it");
	journal_header_encode(&head, page);
	put_le16(page + 8, 2);
	region_page_seal(page);
	assert_int_equal(journal_header_decode(page, &got, &e), REPL_E_VERSION);
	assert_non_null(strstr(e.text, "journal: version 2, this program knows up to 1: a newer"));
	for (unsigned i = 0; i < 2; i++) {
		commit.position = i * 9ULL;
		journal_commit_encode(&commit, page);
		put_le16(page + 8, 3);
		region_page_seal(page);
		assert_int_equal(journal_commit_decode(page, &commit, &e), REPL_E_VERSION);
		assert_non_null(strstr(e.text, "version 3, this program knows up to 2: a newer"));
		put_le16(page + 8, 0);
		region_page_seal(page);
		assert_int_equal(journal_commit_decode(page, &commit, &e), REPL_E_CORRUPT);
		assert_non_null(strstr(e.text, "version 0"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(header_has_the_documented_bytes),
		T(frame_has_the_documented_bytes),
		T(halves_follow_the_pools_size),
		T(nothing_is_replayed_of_an_empty_log),
		T(frames_are_replayed_in_order),
		T(what_is_retired_is_not_replayed),
		T(halves_are_put_in_order),
		T(torn_frame_is_none),
		T(flipped_byte_leaves_the_prefix_and_is_told),
		T(frame_of_another_log_is_none),
		T(hostile_frames_are_none),
		T(frame_does_not_leave_its_half),
		T(message_that_is_not_for_the_log_makes_it_none),
		T(sequences_without_a_frame_are_told),
		T(header_that_does_not_fit_is_refused),
		T(newer_version_says_so),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
