/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of a pool that Debian's pmempool 1.12.1 has made is taken apart, and mended, as PMDK
 * does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "le.h"
#include "pmdk.h"

/* pmempool create obj --layout=foo -s 16M: what is not zero in its first 4096 bytes. */
static const uint8_t golden[144] = {
	0x50, 0x4d, 0x45, 0x4d, 0x4f, 0x42, 0x4a, 0x00, 0x06, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
	0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x83, 0x82, 0x82, 0x08, 0x98, 0xed,
	0x74, 0x48, 0x8a, 0x47, 0xf9, 0x4c, 0xc7, 0xf3, 0xb1, 0x0c, 0x6c, 0x12, 0x93, 0x2c, 0x42,
	0x66, 0x41, 0x41, 0x98, 0x0e, 0x7b, 0xf6, 0xff, 0xbd, 0xff, 0x75, 0x6c, 0x12, 0x93, 0x2c,
	0x42, 0x66, 0x41, 0x41, 0x98, 0x0e, 0x7b, 0xf6, 0xff, 0xbd, 0xff, 0x75, 0x6c, 0x12, 0x93,
	0x2c, 0x42, 0x66, 0x41, 0x41, 0x98, 0x0e, 0x7b, 0xf6, 0xff, 0xbd, 0xff, 0x75, 0x6c, 0x12,
	0x93, 0x2c, 0x42, 0x66, 0x41, 0x41, 0x98, 0x0e, 0x7b, 0xf6, 0xff, 0xbd, 0xff, 0x75, 0x6c,
	0x12, 0x93, 0x2c, 0x42, 0x66, 0x41, 0x41, 0x98, 0x0e, 0x7b, 0xf6, 0xff, 0xbd, 0xff, 0x75,
	0x6f, 0x17, 0x02, 0x6b, 0x00, 0x00, 0x00, 0x00, 0x10, 0x73, 0x77, 0x37, 0xf7, 0x07, 0x00,
	0x00, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x3e, 0x00,
};
#define GOLDEN_SUM 0xbd73ad77de7628e9ULL
#define AT_SDS     4024
#define AT_SUM     4088

static void
golden_head(uint8_t head[PMDK_HEAD_SIZE])
{
	memset(head, 0, PMDK_HEAD_SIZE);
	memcpy(head, golden, sizeof(golden));
	put_le64(head + AT_SUM, GOLDEN_SUM);
	memcpy(head + PMDK_HEADER_SIZE, "foo", 3);
}

static void
test_golden(void **state)
{
	uint8_t head[PMDK_HEAD_SIZE];
	char text[PMDK_UUID_TEXT], features[64];
	struct pmdk_header h;

	(void)state;
	golden_head(head);
	assert_true(pmdk_parse(head, sizeof(head), &h));
	assert_string_equal(h.type, "obj");
	assert_int_equal(h.major, 6);
	assert_int_equal(h.compat, 1);
	assert_int_equal(h.incompat, 6);
	assert_true(h.checksum_ok);
	assert_int_equal(h.shutdown, PMDK_SHUTDOWN_CLEAN);
	assert_string_equal(h.layout, "foo");
	pmdk_uuid_format(h.uuid[PMDK_UUID_SET], text);
	assert_string_equal(text, "08828283-ed98-4874-8a47-f94cc7f3b10c");
	pmdk_uuid_format(h.uuid[PMDK_UUID_NEXT_REPLICA], text);
	assert_string_equal(text, "2c93126c-6642-4141-980e-7bf6ffbdff75");
	pmdk_incompat_format(h.incompat | 1U << 31, features, sizeof(features));
	assert_string_equal(features, "CKSUM_2K, SDS, 0x80000000");
}

static void
test_every_flipped_byte_is_seen(void **state)
{
	uint8_t head[PMDK_HEAD_SIZE];
	struct pmdk_header h;

	(void)state;
	for (size_t i = 8; i < PMDK_HEADER_SIZE; i++) {
		bool spanned = i < 2048 || i >= AT_SUM;

		golden_head(head);
		head[i] ^= 0x10;
		assert_true(pmdk_parse(head, sizeof(head), &h));
		/* Byte 16 holds the features: 0x10 there is none that moves the span. */
		assert_int_equal(h.checksum_ok, !spanned);
		if (i >= AT_SDS && i < AT_SUM)
			assert_int_equal(h.shutdown, PMDK_SHUTDOWN_DAMAGED);
	}
}

static void
test_other_bytes_are_no_pool(void **state)
{
	uint8_t head[PMDK_HEAD_SIZE];
	struct pmdk_header h;

	(void)state;
	golden_head(head);
	assert_false(pmdk_parse(head, PMDK_HEADER_SIZE - 1, &h));
	assert_true(pmdk_parse(head, PMDK_HEADER_SIZE, &h));
	assert_string_equal(h.layout, "");
	head[7] = 'X';
	assert_false(pmdk_parse(head, sizeof(head), &h));
	/* A layout without an end is cut, what can't be printed is not. */
	golden_head(head);
	memset(head + PMDK_HEADER_SIZE, 0x1b, PMDK_LAYOUT_MAX);
	assert_true(pmdk_parse(head, sizeof(head), &h));
	assert_int_equal(strlen(h.layout), PMDK_LAYOUT_MAX - 1);
	assert_int_equal(h.layout[0], '?');
}

/* Device count 1, dirty: the sum of words 1, 0, 0, 0, 1 and eleven of zero, by hand. */
static void
bind_state(uint8_t *head)
{
	put_le64(head + AT_SDS, 1);
	head[AT_SDS + 16] = 1;
	put_le32(head + AT_SDS + 56, 2);
	put_le32(head + AT_SDS + 60, 16 + 12);
}

static void
test_reset(void **state)
{
	uint8_t head[PMDK_HEAD_SIZE], before[PMDK_HEAD_SIZE];
	struct pmdk_header h;

	(void)state;
	golden_head(head);
	memcpy(before, head, sizeof(head));
	bind_state(head);
	assert_true(pmdk_parse(head, sizeof(head), &h));
	assert_int_equal(h.shutdown, PMDK_SHUTDOWN_BOUND);
	assert_true(h.checksum_ok);
	pmdk_shutdown_reset(head);
	assert_memory_equal(head, before, sizeof(head));

	/* Without CKSUM_2K the header's checksum spans the state. */
	golden_head(head);
	head[16] = PMDK_SDS;
	bind_state(head);
	pmdk_shutdown_reset(head);
	assert_true(pmdk_parse(head, sizeof(head), &h));
	assert_true(h.checksum_ok);
	assert_int_equal(h.shutdown, PMDK_SHUTDOWN_CLEAN);
	head[AT_SDS + 17] ^= 1;
	assert_true(pmdk_parse(head, sizeof(head), &h));
	assert_false(h.checksum_ok);
}

/* The attributes that pmempool hands to rpmem_create() for the pool of the golden header. */
static const uint8_t golden_attr[PMDK_ATTR_SIZE] = {
	0x50, 0x4d, 0x45, 0x4d, 0x4f, 0x42, 0x4a, 0x00, 0x06, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
	0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x83, 0x82, 0x82, 0x08, 0x98, 0xed,
	0x74, 0x48, 0x8a, 0x47, 0xf9, 0x4c, 0xc7, 0xf3, 0xb1, 0x0c, 0x6c, 0x12, 0x93, 0x2c, 0x42,
	0x66, 0x41, 0x41, 0x98, 0x0e, 0x7b, 0xf6, 0xff, 0xbd, 0xff, 0x75, 0x6c, 0x12, 0x93, 0x2c,
	0x42, 0x66, 0x41, 0x41, 0x98, 0x0e, 0x7b, 0xf6, 0xff, 0xbd, 0xff, 0x75, 0x6c, 0x12, 0x93,
	0x2c, 0x42, 0x66, 0x41, 0x41, 0x98, 0x0e, 0x7b, 0xf6, 0xff, 0xbd, 0xff, 0x75, 0x10, 0x73,
	0x77, 0x37, 0xf7, 0x07, 0x00, 0x00, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x3e, 0x00,
};

static void
test_header_of_attributes(void **state)
{
	uint8_t header[PMDK_HEADER_SIZE], head[PMDK_HEAD_SIZE], attr[PMDK_ATTR_SIZE];
	struct pmdk_part part = {.created_s = 0x6b02176f};

	(void)state;
	golden_head(head);
	memcpy(part.uuid, pmdk_attr_uuid(golden_attr), PMDK_UUID_SIZE);
	memcpy(part.prev, part.uuid, PMDK_UUID_SIZE);
	memcpy(part.next, part.uuid, PMDK_UUID_SIZE);
	pmdk_header_make(golden_attr, &part, header);
	assert_memory_equal(header, head, PMDK_HEADER_SIZE);
	assert_true(pmdk_header_attr(head, attr));
	assert_memory_equal(attr, golden_attr, PMDK_ATTR_SIZE);
	assert_int_equal(pmdk_attr_incompat(attr), PMDK_CKSUM_2K | PMDK_SDS);
	head[25] ^= 1;
	assert_false(pmdk_header_attr(head, attr));
	memset(attr, 0, sizeof(attr));
	assert_true(pmdk_attr_none(attr) && !pmdk_attr_none(golden_attr));
	/* The checksum of zeros is zero. */
	memset(head, 0, sizeof(head));
	assert_false(pmdk_header_attr(head, attr));
}

/* Each attribute has a place of its own, which the golden ones with their equal UUIDs don't show.
 */
static void
test_attributes_come_back(void **state)
{
	uint8_t header[PMDK_HEADER_SIZE], attr[PMDK_ATTR_SIZE], back[PMDK_ATTR_SIZE];
	struct pmdk_part part = {.created_s = 1};
	struct pmdk_header h;

	(void)state;
	memcpy(attr, golden_attr, sizeof(attr));
	for (size_t i = 24; i < sizeof(attr); i++)
		attr[i] = (uint8_t)i;
	memcpy(part.uuid, pmdk_attr_uuid(attr), PMDK_UUID_SIZE);
	memset(part.prev, 0xaa, PMDK_UUID_SIZE);
	memset(part.next, 0xbb, PMDK_UUID_SIZE);
	pmdk_header_make(attr, &part, header);
	assert_true(pmdk_header_attr(header, back));
	assert_memory_equal(back, attr, sizeof(attr));
	assert_true(pmdk_parse(header, sizeof(header), &h));
	assert_int_equal(h.uuid[PMDK_UUID_PREV_PART][0], 0xaa);
	assert_int_equal(h.uuid[PMDK_UUID_NEXT_PART][0], 0xbb);
	assert_int_equal(h.uuid[PMDK_UUID_NEXT_REPLICA][0], 56);
	assert_int_equal(h.uuid[PMDK_UUID_PREV_REPLICA][0], 72);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_every_flipped_byte_is_seen),
		cmocka_unit_test(test_other_bytes_are_no_pool),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_header_of_attributes),
		cmocka_unit_test(test_attributes_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
