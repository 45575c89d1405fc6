/* SPDX-License-Identifier: BSD-3-Clause */
/* The 32 bits of an immediate have the documented meaning and name only what lies in the pool. */
#include "unit.h"

#include <stdlib.h>

#include "wire.h"

#define POOL_SIZE (1ULL << 40)

static void
immediate_has_golden_bits(void **state)
{
	static const struct {
		uint64_t unit, off, len;
		bool answer;
		uint32_t bits;
	} golden[] = {
		{64, 0, 1, false, 0x00000000},
		{64, 0, 64, true, 0x80000000},
		{64, 63, 2, true, 0x80100000},
		{64, 4096, 130, true, 0x80200040},
		{64, 64 * 0xfffff, 64, true, 0x800fffff},
		{64, 64 * 0xff800, 64 * 2048, true, 0xfffff800},
		{1 << 12, 0x12345 * 4096ULL + 7, 4096, false, 0x00112345},
		{1ULL << 43, (1ULL << 43) * 3, 5, true, 0x80000003},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		struct wire_imm imm = {golden[i].off, golden[i].len, golden[i].answer};

		assert_int_equal(wire_imm_encode(golden[i].unit, &imm), golden[i].bits);
		assert_int_equal(wire_imm_answered(golden[i].bits), golden[i].answer);
	}
}

static void
immediate_names_whole_units_within_the_pool(void **state)
{
	struct wire_imm imm = {0};

	(void)state;
	assert_int_equal(wire_imm_decode(0x80200040, 64, POOL_SIZE, &imm, NULL), 0);
	assert_int_equal(imm.off, 4096);
	assert_int_equal(imm.len, 192);
	assert_true(imm.answer);
	/* The last unit is cut at the end of the pool; one more is outside. */
	assert_int_equal(wire_imm_decode(0x00100000, 4096, 4096 + 64, &imm, NULL), 0);
	assert_int_equal(imm.len, 4096 + 64);
	assert_false(imm.answer);
	assert_int_equal(wire_imm_decode(0x00200000, 4096, 4096 + 64, &imm, NULL), REPL_E_PROTOCOL);
	assert_int_equal(wire_imm_decode(0x00100000, 4096, 4096, &imm, NULL), REPL_E_PROTOCOL);
	assert_int_equal(wire_imm_decode(2, 4096, 8192, &imm, NULL), REPL_E_PROTOCOL);
	assert_int_equal(wire_imm_decode(0xffffffff, 1ULL << 43, INT64_MAX, &imm, NULL),
			 REPL_E_PROTOCOL);
}

static void
immediate_names_no_less_than_was_written(void **state)
{
	static const uint64_t units[] = {64, 128, 4096, 1ULL << 30};

	(void)state;
	srand(7);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t unit = units[i % 4], size = unit << 20, reach;
		struct wire_imm in = {.answer = i & 1}, out;

		in.off = ((uint64_t)rand() << 31 | (uint64_t)rand()) % size;
		reach = wire_imm_reach(unit, in.off);
		if (reach > size - in.off)
			reach = size - in.off;
		in.len = i % 3 ? 1 + (uint64_t)rand() % reach : reach;
		assert_int_equal(
			wire_imm_decode(wire_imm_encode(unit, &in), unit, size, &out, NULL), 0);
		assert_true(out.off <= in.off && out.off + out.len >= in.off + in.len);
		assert_true(in.off - out.off < unit);
		assert_true(out.off + out.len - in.off - in.len < unit);
		assert_int_equal(out.answer, in.answer);
	}
	assert_int_equal(wire_imm_reach(64, 64ULL << 20), 0);
	assert_int_equal(wire_imm_reach(64, 63), 2047 * 64 + 1);
	assert_int_equal(wire_imm_reach(64, (64ULL << 20) - 1), 1);
}

static void
immediate_unit_numbers_the_whole_pool(void **state)
{
	(void)state;
	assert_int_equal(wire_imm_unit(4096), 64);
	assert_int_equal(wire_imm_unit(64U << 20), 64);
	assert_int_equal(wire_imm_unit((64U << 20) + 4096), 128);
	assert_int_equal(wire_imm_unit(1ULL << 40), 1U << 20);
	assert_int_equal(wire_imm_unit(INT64_MAX), 1ULL << 43);
	assert_true(wire_imm_unit_valid(64) && wire_imm_unit_valid(1ULL << 43));
	assert_false(wire_imm_unit_valid(0) || wire_imm_unit_valid(32) || wire_imm_unit_valid(96) ||
		     wire_imm_unit_valid(1ULL << 44));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(immediate_has_golden_bits),
		cmocka_unit_test(immediate_names_whole_units_within_the_pool),
		cmocka_unit_test(immediate_names_no_less_than_was_written),
		cmocka_unit_test(immediate_unit_numbers_the_whole_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
