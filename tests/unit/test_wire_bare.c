/* SPDX-License-Identifier: BSD-3-Clause */
/* A BARE and a PUT have the documented bytes; their checksum covers all of it but the payload. */
#include "unit.h"

#include "checksum.h"
#include "le.h"
#include "wire.h"

#define POOL_SIZE (1U << 20)
#define LEN       (WIRE_HEADER_SIZE + WIRE_ENTRY_SIZE + 5)

/* clang-format off */
static const uint8_t golden[LEN - 8] = { /* without the checksum, of which see sealed() */
	0x52, 0x50, 0x4c, 0x31, 0x01, 0x05, 0x01, 0x00,
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0x05, 0x00, 0x00, 0x00, 0x07, 0x00, 0xfe, 0xca,
	0x89, 0x67, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x05, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
	0x68, 0x65, 0x6c, 0x6c, 0x6f,
};
/* clang-format on */

/* By the words of docs/PROTOCOL.md. */
static uint64_t
sealed(const uint8_t *msg)
{
	return sum64_seeded(msg, 24, sum64(msg + 32, 16));
}

static const struct {
	enum wire_type type;
	size_t (*end)(struct wire_commit *c, uint64_t seq, uint32_t epoch);
	int (*decode)(const uint8_t *msg, size_t len, uint64_t pool_size,
		      struct wire_commit_view *v, struct err *e);
	bool (*is)(const uint8_t *msg, size_t len);
} types[] = {
	{WIRE_BARE, wire_bare_end, wire_bare_decode, wire_bare_is},
	{WIRE_PUT, wire_put_end, wire_put_decode, wire_put_is},
};

#define TYPES (sizeof(types) / sizeof(types[0]))

static size_t
build(size_t t, uint8_t *buf)
{
	struct wire_entry entry = {.off = 0x56789, .len = 5, .op = WIRE_OP_COPY};
	struct wire_commit c;

	wire_commit_begin(&c, buf, 256, 1);
	wire_commit_add(&c, &entry, "hello");
	return types[t].end(&c, 0x1122334455667788ULL, 0xcafe0007U);
}

static void
golden_bytes(void **state)
{
	uint8_t buf[256];

	(void)state;
	for (size_t t = 0; t < TYPES; t++) {
		assert_int_equal(build(t, buf), LEN);
		assert_int_equal(buf[5], types[t].type);
		buf[5] = WIRE_BARE;
		assert_memory_equal(buf, golden, 24);
		buf[5] = (uint8_t)types[t].type;
		assert_int_equal(get_le64(buf + 24), sealed(buf));
		assert_memory_equal(buf + 32, golden + 24, LEN - 32);
		assert_true(types[t].is(buf, LEN));
		assert_false(types[t].is(buf, WIRE_HEADER_SIZE - 1));
		assert_int_equal(wire_commit_len(buf, LEN), 0);
	}
}

/* Of the payload nothing is checked but its length, of the rest every bit. */
static void
every_bit(void **state)
{
	struct wire_commit_view v;
	uint8_t buf[256];
	uint64_t seq;
	struct err e;

	(void)state;
	for (size_t t = 0; t < TYPES; t++) {
		(void)build(t, buf);
		assert_int_equal(types[t].decode(buf, LEN, POOL_SIZE, &v, &e), 0);
		assert_int_equal(v.entry_count, 1);
		assert_int_equal(v.payload_len, 5);
		assert_memory_equal(v.payload, "hello", 5);
		assert_true(wire_commit_seq(buf, LEN, &seq) && seq == v.seq);
		for (size_t bit = 0; bit < LEN * 8; bit++) {
			bool payload = bit / 8 >= WIRE_HEADER_SIZE + WIRE_ENTRY_SIZE;

			buf[bit / 8] ^= (uint8_t)(1U << bit % 8);
			assert_int_equal(types[t].decode(buf, LEN, POOL_SIZE, &v, &e) == 0,
					 payload);
			buf[bit / 8] ^= (uint8_t)(1U << bit % 8);
		}
		for (size_t len = 0; len < LEN + 9; len++)
			assert_int_equal(types[t].decode(buf, len, POOL_SIZE, &v, &e) == 0,
					 len == LEN);
	}
}

/* A PUT has bytes for the pool, at least one range of them, and nothing else. */
static void
put_is_of_copies(void **state)
{
	static const enum wire_op ops[] = {WIRE_OP_FLUSH, WIRE_OP_ATOMIC8, WIRE_OP_BARRIER,
					   WIRE_OP_TRIM,  WIRE_OP_APPEND,  WIRE_OP_REGISTER,
					   WIRE_OP_FETCH, WIRE_OP_POSITION};
	struct wire_commit_view v;
	struct wire_commit c;
	uint8_t buf[256];
	struct err e;
	size_t len;

	(void)state;
	wire_commit_begin(&c, buf, sizeof(buf), 1);
	len = wire_put_end(&c, 1, 1);
	assert_int_equal(wire_put_decode(buf, len, POOL_SIZE, &v, &e), REPL_E_PROTOCOL);
	assert_non_null(strstr(e.text, "PUT"));
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct wire_entry first = {.off = 8, .len = 8, .op = WIRE_OP_COPY};
		struct wire_entry other = {.len = 8, .op = (uint8_t)ops[i]};

		wire_commit_begin(&c, buf, sizeof(buf), 2);
		wire_commit_add(&c, &first, "12345678");
		if (ops[i] == WIRE_OP_APPEND)
			wire_commit_add_append(&c, &other, 64, "12345678");
		else
			wire_commit_add(&c, &other, "12345678");
		len = wire_put_end(&c, 1, 1);
		assert_int_equal(wire_put_decode(buf, len, POOL_SIZE, &v, &e), REPL_E_PROTOCOL);
		assert_non_null(strstr(e.text, "in a PUT"));
	}
}

/* What lies where the payload goes is not copied. */
static void
payload_in_place(void **state)
{
	struct wire_entry entry = {.off = 0x56789, .len = 5, .op = WIRE_OP_COPY};
	uint8_t copied[256], placed[256];
	struct wire_commit c;

	(void)state;
	(void)build(1, copied);
	wire_commit_begin(&c, placed, sizeof(placed), 1);
	memcpy(wire_commit_next(&c), "hello", 5);
	wire_commit_add(&c, &entry, wire_commit_next(&c));
	assert_int_equal(wire_put_end(&c, 0x1122334455667788ULL, 0xcafe0007U), LEN);
	assert_memory_equal(placed, copied, LEN);
}

/* Neither is taken for the other, nor for what lies on media. */
static void
is_no_other(void **state)
{
	struct wire_entry entry = {.off = 8, .len = 5, .op = WIRE_OP_COPY};
	struct wire_commit_view v;
	struct wire_commit c;
	uint8_t buf[256];
	struct err e;
	size_t len;

	(void)state;
	for (size_t t = 0; t < TYPES; t++) {
		(void)build(t, buf);
		assert_int_equal(wire_commit_decode(buf, LEN, POOL_SIZE, &v, &e), REPL_E_PROTOCOL);
		assert_int_equal(wire_deposit_decode(buf, LEN, POOL_SIZE, &v, &e), REPL_E_PROTOCOL);
		assert_int_equal(wire_stage_decode(buf, LEN, POOL_SIZE, &v, &e), REPL_E_PROTOCOL);
		assert_int_equal(types[1 - t].decode(buf, LEN, POOL_SIZE, &v, &e), REPL_E_PROTOCOL);
		assert_false(types[1 - t].is(buf, LEN));
	}
	wire_commit_begin(&c, buf, sizeof(buf), 1);
	wire_commit_add(&c, &entry, "hello");
	len = wire_commit_end(&c, 1, 1);
	for (size_t t = 0; t < TYPES; t++) {
		assert_false(types[t].is(buf, len));
		assert_int_equal(types[t].decode(buf, len, POOL_SIZE, &v, &e), REPL_E_PROTOCOL);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_bytes),     cmocka_unit_test(every_bit),
		cmocka_unit_test(put_is_of_copies), cmocka_unit_test(payload_in_place),
		cmocka_unit_test(is_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
