/* SPDX-License-Identifier: BSD-3-Clause */
/* A record is known by its sequence and checksum: a torn or older one never passes. */
#include "unit.h"

#include <string.h>

#include "remotelog_record.h"

#define SIZE 64

static void
bytes_are_these(void **state)
{
	static const uint8_t golden[24] = {0x02, 0x01, 0, 0, 0, 0, 0, 0};
	uint8_t r[24];

	(void)state;
	remotelog_record_make(r, sizeof(r), 0x102);
	assert_memory_equal(r, golden, 8);
	for (unsigned i = 16; i < sizeof(r); i++)
		assert_int_equal(r[i], 2);
}

static void
the_whole_record_passes(void **state)
{
	uint8_t r[SIZE];

	(void)state;
	for (uint64_t s = 1; s < 1000; s++) {
		remotelog_record_make(r, SIZE, s);
		assert_true(remotelog_record_check(r, SIZE, s));
		assert_false(remotelog_record_check(r, SIZE, s + 1));
	}
	remotelog_record_make(r, REMOTELOG_RECORD_MIN, 7);
	assert_true(remotelog_record_check(r, REMOTELOG_RECORD_MIN, 7));
}

static void
any_changed_byte_is_found(void **state)
{
	uint8_t r[SIZE];

	(void)state;
	remotelog_record_make(r, SIZE, 5);
	for (unsigned i = 0; i < SIZE; i++) {
		r[i] ^= 0x10;
		assert_false(remotelog_record_check(r, SIZE, 5));
		r[i] ^= 0x10;
	}
}

static void
a_torn_one_over_its_predecessor_is_found(void **state)
{
	uint8_t old[SIZE], new[SIZE], torn[SIZE], zero[SIZE] = {0};

	(void)state;
	remotelog_record_make(old, SIZE, 9);
	remotelog_record_make(new, SIZE, 10);
	for (unsigned n = 8; n < SIZE; n += 8) {
		memcpy(torn, old, SIZE);
		memcpy(torn, new, n);
		assert_false(remotelog_record_check(torn, SIZE, 10));
	}
	assert_false(remotelog_record_check(zero, SIZE, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_these),
		cmocka_unit_test(the_whole_record_passes),
		cmocka_unit_test(any_changed_byte_is_found),
		cmocka_unit_test(a_torn_one_over_its_predecessor_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
