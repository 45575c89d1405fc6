/* SPDX-License-Identifier: BSD-3-Clause */
/* What entries other than ranges say, and what answers them: appends, registrations, positions,
 * stages, places and keys have exactly the documented bytes, and nothing else is accepted. */
#include "unit.h"

#include "wire_lies.h"

/* Made by another program from the text of docs/PROTOCOL.md. */
/* clang-format off */
static const uint8_t golden_append[] = {
	0x52, 0x50, 0x4c, 0x31, 0x01, 0x01, 0x01, 0x00,
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0x0d, 0x00, 0x00, 0x00, 0x07, 0x00, 0xfe, 0xca,
	0x54, 0x72, 0x24, 0xd3, 0x66, 0x89, 0xad, 0xf6,
	0x08, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x05, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x68, 0x65, 0x6c, 0x6c, 0x6f,
};

static const uint8_t golden_register[] = {
	0x52, 0x50, 0x4c, 0x31, 0x01, 0x01, 0x01, 0x00,
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0xfe, 0xca,
	0xc5, 0xf2, 0x0a, 0x7e, 0x7f, 0xbd, 0x17, 0x40,
	0x01, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00,
};

static const uint8_t golden_position[] = {
	0x52, 0x50, 0x4c, 0x31, 0x01, 0x01, 0x01, 0x00,
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0xfe, 0xca,
	0x24, 0x7d, 0x47, 0x1d, 0x10, 0x57, 0x24, 0x6e,
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
	0x00, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00,
};

static const uint8_t golden_stage[] = {
	0x52, 0x50, 0x4c, 0x31, 0x01, 0x04, 0x02, 0x00,
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0x08, 0x00, 0x00, 0x00, 0x07, 0x00, 0xfe, 0xca,
	0x66, 0x35, 0x87, 0xa0, 0xc7, 0x25, 0xd2, 0x24,
	0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x05, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
	0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x03, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
	'h', 'e', 'l', 'l', 'o', 'y', 'o', 'u',
};

static const uint8_t golden_key[] = {
	0x52, 0x50, 0x4c, 0x31, 0x01, 0x02, 0x00, 0x00,
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0x20, 0x00, 0x00, 0x00, 0x07, 0x00, 0xfe, 0xca,
	0xac, 0x27, 0x56, 0x83, 0x54, 0x80, 0xcb, 0x79,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
	0x00, 0x60, 0x45, 0x23, 0x01, 0x7f, 0x00, 0x00,
	0x1b, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

static const uint8_t golden_place[] = {
	0x52, 0x50, 0x4c, 0x31, 0x01, 0x02, 0x00, 0x00,
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0x18, 0x00, 0x00, 0x00, 0x07, 0x00, 0xfe, 0xca,
	0x18, 0xb5, 0xdf, 0x7e, 0x64, 0xca, 0x9c, 0x23,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
	0x11, 0x00, 0x2f, 0x00, 0x00, 0x00, 0x00, 0x00,
};
/* clang-format on */

static size_t
build_append(uint8_t *buf, size_t size, const struct wire_entry *en, uint64_t limit)
{
	struct wire_commit c;

	wire_commit_begin(&c, buf, size, 1);
	wire_commit_add_append(&c, en, limit, "hello");
	return wire_commit_end(&c, SEQ, EPOCH);
}

static void
append_has_golden_bytes(void **state)
{
	struct wire_entry en = {.off = 0x2008, .len = 5, .op = WIRE_OP_APPEND};
	uint8_t buf[sizeof(golden_append)];
	struct wire_commit_view v;

	(void)state;
	assert_int_equal(build_append(buf, sizeof(buf), &en, 0x300000), sizeof(golden_append));
	assert_memory_equal(buf, golden_append, sizeof(golden_append));
	assert_int_equal(wire_commit_decode(buf, sizeof(buf), POOL_SIZE, &v, NULL), 0);
	assert_int_equal(v.entry_count, 1);
	assert_int_equal(wire_commit_entry(&v, 0).op, WIRE_OP_APPEND);
	assert_int_equal(v.payload_len, WIRE_LIMIT_SIZE + 5);
	assert_false(v.only_reads);
}

static void
register_has_golden_bytes(void **state)
{
	struct wire_entry en = {.off = 0x401, .op = WIRE_OP_REGISTER};
	uint8_t buf[sizeof(golden_register)];
	struct wire_commit_view v;
	struct wire_commit c;

	(void)state;
	wire_commit_begin(&c, buf, sizeof(buf), 1);
	wire_commit_add(&c, &en, NULL);
	assert_int_equal(wire_commit_end(&c, SEQ, EPOCH), sizeof(golden_register));
	assert_memory_equal(buf, golden_register, sizeof(golden_register));
	assert_int_equal(wire_commit_decode(buf, sizeof(buf), 4096, &v, NULL), 0);
	assert_true(v.only_reads);
}

static size_t
build_position(uint8_t *buf, size_t size, uint64_t position, uint32_t len)
{
	struct wire_entry en = {.off = position, .len = len, .op = WIRE_OP_POSITION};
	struct wire_commit c;

	wire_commit_begin(&c, buf, size, 1);
	wire_commit_add(&c, &en, NULL);
	return wire_commit_end(&c, SEQ, EPOCH);
}

static void
position_has_golden_bytes(void **state)
{
	uint8_t buf[sizeof(golden_position)];
	struct wire_commit_view v;

	(void)state;
	assert_int_equal(build_position(buf, sizeof(buf), 0x0102030405060708ULL, 0),
			 sizeof(golden_position));
	assert_memory_equal(buf, golden_position, sizeof(golden_position));
	/* It is no range: the pool's size has no say. */
	assert_int_equal(wire_commit_decode(buf, sizeof(buf), 4096, &v, NULL), 0);
	assert_true(wire_commit_entry(&v, 0).off == 0x0102030405060708ULL);
	assert_false(v.only_reads);
}

static size_t
build_stage(uint8_t *buf, size_t size, uint32_t room)
{
	struct wire_entry first = {.off = 4096, .len = 5, .op = WIRE_OP_COPY};
	struct wire_entry second = {.off = 7, .len = 3, .op = WIRE_OP_COPY};
	struct wire_commit c;

	wire_commit_begin(&c, buf, size, room);
	wire_commit_add(&c, &first, "hello");
	wire_commit_add(&c, &second, "you");
	return wire_stage_end(&c, SEQ, EPOCH);
}

static void
stage_has_golden_bytes(void **state)
{
	uint8_t buf[200];
	struct wire_commit_view v;
	uint64_t seq;

	(void)state;
	for (uint32_t room = 2; room < 5; room++) {
		assert_int_equal(build_stage(buf, sizeof(buf), room), sizeof(golden_stage));
		assert_memory_equal(buf, golden_stage, sizeof(golden_stage));
	}
	assert_int_equal(wire_stage_decode(buf, sizeof(golden_stage), 8192, &v, NULL), 0);
	assert_int_equal(v.entry_count, 2);
	assert_true(v.seq == SEQ && v.epoch == EPOCH && v.payload_len == 8);
	assert_true(wire_commit_seq(buf, sizeof(golden_stage), &seq) && seq == SEQ);
	assert_true(wire_stage_is(buf, WIRE_HEADER_SIZE) && !wire_stage_is(buf, 31));
	assert_int_equal(wire_stage_len(buf, WIRE_HEADER_SIZE, 4096), sizeof(golden_stage));
	assert_int_equal(wire_stage_len(buf, WIRE_HEADER_SIZE, sizeof(golden_stage) - 1), 0);
	/* Neither is taken for the other. */
	assert_int_equal(wire_commit_decode(buf, sizeof(golden_stage), 8192, &v, NULL),
			 REPL_E_PROTOCOL);
	assert_int_equal(
		wire_stage_decode(golden_commit, sizeof(golden_commit), POOL_SIZE, &v, NULL),
		REPL_E_PROTOCOL);
	/* The chain tells messages and their order. */
	assert_true(wire_stage_chain(0, golden_stage) != wire_stage_chain(1, golden_stage));
	assert_true(wire_stage_chain(0, golden_stage) != wire_stage_chain(0, golden_commit));
}

static void
stage_of_anything_but_copies_is_refused(void **state)
{
	static const struct wire_entry others[] = {
		{.off = 64, .len = 8, .op = WIRE_OP_FLUSH},
		{.op = WIRE_OP_BARRIER},
		{.off = 1, .op = WIRE_OP_STAMP},
		{.off = 4096, .len = 4096, .op = WIRE_OP_TRIM},
		{.op = WIRE_OP_REGISTER},
		{.off = 1, .op = WIRE_OP_POSITION},
		{.off = 8, .len = 8, .op = WIRE_OP_ATOMIC8},
	};
	uint8_t buf[200];
	struct wire_commit_view v;
	struct wire_commit c;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		wire_commit_begin(&c, buf, sizeof(buf), 1);
		wire_commit_add(&c, &others[i], atomic_data);
		len = wire_stage_end(&c, SEQ, EPOCH);
		assert_int_equal(wire_stage_decode(buf, len, 8192, &v, NULL), REPL_E_PROTOCOL);
	}
	wire_commit_begin(&c, buf, sizeof(buf), 1);
	len = wire_stage_end(&c, SEQ, EPOCH);
	assert_int_equal(wire_stage_decode(buf, len, 8192, &v, NULL), REPL_E_PROTOCOL);
	len = build_stage(buf, sizeof(buf), 2);
	assert_int_equal(wire_stage_decode(buf, len, 4096, &v, NULL), REPL_E_PROTOCOL);
}

static void
position_that_no_record_can_hold_is_refused(void **state)
{
	static const struct wire_entry stamp = {.off = 1, .op = WIRE_OP_STAMP};
	static const struct wire_entry position = {.off = 1, .op = WIRE_OP_POSITION};
	uint8_t buf[WIRE_HEADER_SIZE + 2 * WIRE_ENTRY_SIZE];
	struct wire_commit_view v;
	struct wire_commit c;
	size_t len;

	(void)state;
	len = build_position(buf, sizeof(buf), 0, 0);
	assert_int_equal(wire_commit_decode(buf, len, 4096, &v, NULL), REPL_E_PROTOCOL);
	len = build_position(buf, sizeof(buf), 1ULL << 63, 0);
	assert_int_equal(wire_commit_decode(buf, len, 4096, &v, NULL), REPL_E_PROTOCOL);
	len = build_position(buf, sizeof(buf), 1, 8);
	assert_int_equal(wire_commit_decode(buf, len, 4096, &v, NULL), REPL_E_PROTOCOL);
	len = build_position(buf, sizeof(buf), INT64_MAX, 0);
	assert_int_equal(wire_commit_decode(buf, len, 4096, &v, NULL), 0);
	wire_commit_begin(&c, buf, sizeof(buf), 2);
	wire_commit_add(&c, &stamp, NULL);
	wire_commit_add(&c, &position, NULL);
	len = wire_deposit_end(&c, SEQ, EPOCH);
	assert_int_equal(wire_deposit_decode(buf, len, 4096, &v, NULL), REPL_E_PROTOCOL);
}

static void
ack_with_a_place_has_golden_bytes(void **state)
{
	struct wire_ack a = {.seq = SEQ,
			     .epoch = EPOCH,
			     .service_ns = 0x0102030405060708ULL,
			     .has_place = true,
			     .place = 0x2f0011};
	uint8_t buf[WIRE_ACK_PLACE];
	struct wire_ack back;
	struct err e;

	(void)state;
	assert_int_equal(wire_ack_encode(buf, &a), sizeof(golden_place));
	assert_memory_equal(buf, golden_place, sizeof(golden_place));
	assert_int_equal(wire_ack_decode(buf, sizeof(buf), &back, NULL), 0);
	assert_true(back.has_place && back.place == a.place);
	/* One that failed has none. */
	put_le32(buf + 32, (uint32_t)REPL_E_NOSPC);
	reseal(buf, sizeof(buf));
	assert_int_equal(wire_ack_decode(buf, sizeof(buf), &back, &e), REPL_E_PROTOCOL);
	/* Nor has the one in the place of a COMMIT that has no APPEND. */
	assert_int_equal(wire_ack_decode(golden_ack, sizeof(golden_ack), &back, NULL), 0);
	assert_false(back.has_place);
}

static void
ack_with_a_key_has_golden_bytes(void **state)
{
	struct wire_ack a = {.seq = SEQ,
			     .epoch = EPOCH,
			     .service_ns = 0x0102030405060708ULL,
			     .has_key = true,
			     .addr = 0x00007f0123456000ULL,
			     .key = 0x0000000000000a1bULL};
	uint8_t buf[WIRE_ACK_MAX];
	struct wire_ack back;
	struct err e;

	(void)state;
	assert_int_equal(wire_ack_encode(buf, &a), sizeof(golden_key));
	assert_memory_equal(buf, golden_key, sizeof(golden_key));
	assert_int_equal(wire_ack_decode(buf, sizeof(buf), &back, NULL), 0);
	assert_true(back.has_key && !back.has_place && back.addr == a.addr && back.key == a.key);
	/* One that failed has none. */
	put_le32(buf + 32, (uint32_t)REPL_E_LIMIT);
	reseal(buf, sizeof(buf));
	assert_int_equal(wire_ack_decode(buf, sizeof(buf), &back, &e), REPL_E_PROTOCOL);
}

static void
fetch_is_alone_and_of_bounded_length(void **state)
{
	static const struct {
		uint64_t off;
		uint32_t len;
		bool fine;
	} rows[] = {
		{0, 1, true},           {POOL_SIZE - 8, 8, true},
		{0, 0, false},          {POOL_SIZE - 8, 9, false},
		{UINT64_MAX, 2, false}, {0, WIRE_FETCH_MAX + 1, false},
	};
	static const struct wire_entry flush = {.len = 8, .op = WIRE_OP_FLUSH};
	static const struct wire_entry stamp = {.off = 1, .op = WIRE_OP_STAMP};
	struct wire_entry fetch = {.op = WIRE_OP_FETCH};
	uint8_t buf[WIRE_HEADER_SIZE + 2 * WIRE_ENTRY_SIZE];
	struct wire_commit_view v;
	struct wire_commit c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fetch.off = rows[i].off;
		fetch.len = rows[i].len;
		wire_commit_begin(&c, buf, sizeof(buf), 1);
		wire_commit_add(&c, &fetch, NULL);
		assert_int_equal(
			wire_commit_decode(buf, wire_commit_end(&c, SEQ, EPOCH), POOL_SIZE, &v, &e),
			rows[i].fine ? 0 : REPL_E_PROTOCOL);
		assert_true(!rows[i].fine || v.only_reads);
	}
	fetch = (struct wire_entry){.len = 8, .op = WIRE_OP_FETCH};
	wire_commit_begin(&c, buf, sizeof(buf), 2);
	wire_commit_add(&c, &flush, NULL);
	wire_commit_add(&c, &fetch, NULL);
	assert_int_equal(
		wire_commit_decode(buf, wire_commit_end(&c, SEQ, EPOCH), POOL_SIZE, &v, &e),
		REPL_E_PROTOCOL);
	assert_non_null(strstr(e.text, "alone"));
	wire_commit_begin(&c, buf, sizeof(buf), 2);
	wire_commit_add(&c, &stamp, NULL);
	wire_commit_add(&c, &fetch, NULL);
	assert_int_equal(
		wire_deposit_decode(buf, wire_deposit_end(&c, SEQ, EPOCH), POOL_SIZE, &v, &e),
		REPL_E_PROTOCOL);
}

static const struct lie append_lies[] = {
	{"append of nothing", ENTRY(0) + 8, 4, 0, "length 0"},
	{"append of 4 GiB", ENTRY(0) + 8, 4, UINT32_MAX, "payload"},
	{"append takes less", ENTRY(0) + 8, 4, 4, "payload"},
	{"tail word unaligned", ENTRY(0), 8, 0x2004, "atomic"},
	{"tail word at the end", ENTRY(0), 8, POOL_SIZE, "leaves the pool"},
	{"tail word wraps", ENTRY(0), 8, UINT64_MAX - 7, "leaves the pool"},
	{"limit beyond the pool", ENTRY(1), 8, POOL_SIZE + 1, "limit"},
	{"limit at its highest", ENTRY(1), 8, UINT64_MAX, "limit"},
	{"registration with a length", ENTRY(0) + 12, 1, 8, "registration"},
};

static void
sealed_lies_in_an_append_are_refused(void **state)
{
	struct wire_entry two[] = {{.off = 0, .len = 1, .op = WIRE_OP_FLUSH},
				   {.off = 8, .len = 5, .op = WIRE_OP_APPEND}};
	uint8_t msg[sizeof(golden_append) + WIRE_ENTRY_SIZE];
	struct wire_commit c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(append_lies) / sizeof(append_lies[0]); i++) {
		memcpy(msg, golden_append, sizeof(golden_append));
		lie_apply(msg, sizeof(golden_append), &append_lies[i]);
		if (decode_exact(msg, sizeof(golden_append), POOL_SIZE, &e) != REPL_E_PROTOCOL ||
		    !strstr(e.text, append_lies[i].text))
			fail_msg("%s: '%s'", append_lies[i].what, e.text);
	}
	wire_commit_begin(&c, msg, sizeof(msg), 2);
	wire_commit_add(&c, &two[0], NULL);
	wire_commit_add_append(&c, &two[1], 64, "hello");
	assert_int_equal(decode_exact(msg, wire_commit_end(&c, 1, 1), POOL_SIZE, &e),
			 REPL_E_PROTOCOL);
	assert_non_null(strstr(e.text, "alone"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(append_has_golden_bytes),
		cmocka_unit_test(register_has_golden_bytes),
		cmocka_unit_test(position_has_golden_bytes),
		cmocka_unit_test(stage_has_golden_bytes),
		cmocka_unit_test(stage_of_anything_but_copies_is_refused),
		cmocka_unit_test(position_that_no_record_can_hold_is_refused),
		cmocka_unit_test(ack_with_a_place_has_golden_bytes),
		cmocka_unit_test(ack_with_a_key_has_golden_bytes),
		cmocka_unit_test(fetch_is_alone_and_of_bounded_length),
		cmocka_unit_test(sealed_lies_in_an_append_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
