/* SPDX-License-Identifier: BSD-3-Clause */
/* Data messages have exactly the documented bytes, and nothing else is ever accepted. */
#include "unit.h"

#include "wire_lies.h"

/* Made by another program from the text of docs/PROTOCOL.md. */
/* clang-format off */
static const uint8_t golden_deposit[] = {
	0x52, 0x50, 0x4c, 0x31, 0x01, 0x03, 0x04, 0x00,
	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	0x0d, 0x00, 0x00, 0x00, 0x07, 0x00, 0xfe, 0xca,
	0x80, 0xa2, 0x8e, 0x24, 0x6f, 0x5f, 0xe1, 0x22,
	0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
	0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00,
	0x89, 0x67, 0x45, 0x23, 0x01, 0x00, 0x00, 0x00,
	0x05, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00,
	0x08, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x08, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00,
	0x68, 0x65, 0x6c, 0x6c, 0x6f, 0xa0, 0xa1, 0xa2,
	0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
};

static const uint8_t golden_hello[] = {
	0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x03,
	0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b,
	0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13,
	0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b,
	0x1c, 0x1d, 0x1e, 0x1f,
};

static const uint8_t golden_empty[] = {
	0x52, 0x50, 0x4c, 0x31, 0x01, 0x01, 0x00, 0x00,
	0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00,
	0xce, 0x0a, 0x3b, 0x2c, 0xca, 0xbf, 0x02, 0xc5,
};

/* clang-format on */

static const struct wire_entry golden_entries[] = {
	{.off = 0x1000, .len = 0x200, .op = WIRE_OP_FLUSH},
	{.off = 0x123456789, .len = 5, .op = WIRE_OP_COPY},
	{.off = 0, .len = 0, .op = WIRE_OP_BARRIER},
	{.off = 0x2008, .len = 8, .op = WIRE_OP_ATOMIC8},
};

static size_t
build_golden(uint8_t *buf, size_t size, uint32_t room)
{
	struct wire_commit c;

	memset(buf, 0xee, size);
	wire_commit_begin(&c, buf, size, room);
	for (size_t i = 0; i < 4; i++)
		wire_commit_add(&c, &golden_entries[i],
				golden_entries[i].op == WIRE_OP_COPY ? (const void *)"hello"
								     : atomic_data);
	return wire_commit_end(&c, SEQ, EPOCH);
}

static void
commit_has_golden_bytes(void **state)
{
	uint8_t buf[1024];

	(void)state;
	/* With and without entries reserved in vain. */
	for (uint32_t room = 4; room <= 9; room++) {
		assert_int_equal(build_golden(buf, sizeof(buf), room), sizeof(golden_commit));
		assert_memory_equal(buf, golden_commit, sizeof(golden_commit));
	}
}

static void
empty_commit_has_golden_bytes(void **state)
{
	uint8_t buf[WIRE_HEADER_SIZE];
	struct wire_commit_view v;
	struct wire_commit c;
	struct err e;

	(void)state;
	wire_commit_begin(&c, buf, sizeof(buf), 0);
	assert_false(wire_commit_fits(&c, 0));
	assert_int_equal(wire_commit_end(&c, 7, 9), sizeof(golden_empty));
	assert_memory_equal(buf, golden_empty, sizeof(golden_empty));
	assert_int_equal(wire_commit_decode(buf, sizeof(buf), 0, &v, &e), 0);
	assert_int_equal(v.entry_count, 0);
}

static void
commit_is_decoded(void **state)
{
	struct wire_commit_view v;
	struct err e;

	(void)state;
	assert_int_equal(
		wire_commit_decode(golden_commit, sizeof(golden_commit), POOL_SIZE, &v, &e), 0);
	assert_true(v.seq == SEQ);
	assert_int_equal(v.epoch, EPOCH);
	assert_int_equal(v.entry_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		struct wire_entry have = wire_commit_entry(&v, i);

		assert_true(have.off == golden_entries[i].off);
		assert_int_equal(have.len, golden_entries[i].len);
		assert_int_equal(have.op, golden_entries[i].op);
	}
	assert_int_equal(v.payload_len, 13);
	assert_memory_equal(v.payload, "hello", 5);
	assert_memory_equal(v.payload + 5, atomic_data, 8);
}

static void
ack_has_golden_bytes(void **state)
{
	struct wire_ack a = {.seq = SEQ,
			     .epoch = EPOCH,
			     .status = REPL_E_IO,
			     .service_ns = 0x0102030405060708ULL};
	struct wire_ack back = {0};
	uint8_t buf[WIRE_ACK_SIZE];
	struct err e;

	(void)state;
	wire_ack_encode(buf, &a);
	assert_int_equal(sizeof(golden_ack), WIRE_ACK_SIZE);
	assert_memory_equal(buf, golden_ack, sizeof(golden_ack));
	assert_int_equal(wire_ack_decode(golden_ack, sizeof(golden_ack), &back, &e), 0);
	assert_true(back.seq == a.seq && back.service_ns == a.service_ns);
	assert_int_equal(back.epoch, a.epoch);
	assert_int_equal(back.status, a.status);
}

static void
hello_has_golden_bytes(void **state)
{
	uint8_t token[WIRE_TOKEN_SIZE];
	uint8_t back[WIRE_TOKEN_SIZE];
	uint8_t buf[WIRE_HELLO_SIZE];

	(void)state;
	for (unsigned i = 0; i < sizeof(token); i++)
		token[i] = (uint8_t)i;
	wire_hello_encode(buf, token);
	assert_int_equal(sizeof(golden_hello), WIRE_HELLO_SIZE);
	assert_memory_equal(buf, golden_hello, sizeof(golden_hello));
	assert_int_equal(wire_hello_decode(golden_hello, sizeof(golden_hello), back), 0);
	assert_memory_equal(back, token, sizeof(token));
}

static void
hello_of_other_form_is_refused(void **state)
{
	uint8_t token[WIRE_TOKEN_SIZE];
	uint8_t buf[WIRE_HELLO_SIZE + 1] = {0};

	(void)state;
	memcpy(buf, golden_hello, sizeof(golden_hello));
	for (size_t len = 0; len <= sizeof(buf); len++)
		if (len != WIRE_HELLO_SIZE)
			assert_int_equal(wire_hello_decode(buf, len, token), REPL_E_PROTOCOL);
	buf[0] = 2;
	assert_int_equal(wire_hello_decode(buf, WIRE_HELLO_SIZE, token), REPL_E_VERSION);
	buf[0] = 1;
	for (size_t i = 1; i < 4; i++) {
		buf[i] = 1;
		assert_int_equal(wire_hello_decode(buf, WIRE_HELLO_SIZE, token), REPL_E_PROTOCOL);
		buf[i] = 0;
	}
}

static void
damaged_commit_is_never_accepted(void **state)
{
	uint8_t msg[sizeof(golden_commit) + 1] = {0};
	struct err e;

	(void)state;
	memcpy(msg, golden_commit, sizeof(golden_commit));
	for (size_t len = 0; len <= sizeof(msg); len++)
		if (len != sizeof(golden_commit))
			assert_int_not_equal(decode_exact(msg, len, POOL_SIZE, &e), 0);
	for (size_t i = 0; i < sizeof(golden_commit); i++) {
		for (unsigned flip = 1; flip < 256; flip++) {
			msg[i] = (uint8_t)(golden_commit[i] ^ flip);
			assert_int_not_equal(
				decode_exact(msg, sizeof(golden_commit), POOL_SIZE, &e), 0);
		}
		msg[i] = golden_commit[i];
	}
	assert_int_equal(decode_exact(msg, sizeof(golden_commit), POOL_SIZE, &e), 0);
}

static void
damaged_ack_is_never_accepted(void **state)
{
	struct err e;

	(void)state;
	for (size_t len = 0; len <= WIRE_ACK_SIZE; len++) {
		uint8_t *msg = malloc(len ? len : 1);
		struct wire_ack a;

		assert_non_null(msg);
		memcpy(msg, golden_ack, len);
		if (len < WIRE_ACK_SIZE)
			assert_int_not_equal(wire_ack_decode(msg, len, &a, &e), 0);
		for (size_t i = 0; i < len; i++) {
			for (unsigned flip = 1; flip < 256; flip++) {
				msg[i] = (uint8_t)(golden_ack[i] ^ flip);
				assert_int_not_equal(wire_ack_decode(msg, len, &a, &e), 0);
			}
			msg[i] = golden_ack[i];
		}
		free(msg);
	}
}

static const struct lie commit_lies[] = {
	{"magic", 0, 4, 0x314c5053, "magic"},
	{"version", 4, 1, 2, "version 2"},
	{"type ACK", 5, 1, 2, "type 2"},
	{"one entry less", 6, 2, 3, "announces"},
	{"one entry more", 6, 2, 5, "announces"},
	{"many entries", 6, 2, 257, "257 entries"},
	{"most entries", 6, 2, 65535, "65535 entries"},
	{"payload less", 16, 4, 12, "announces"},
	{"payload more", 16, 4, 14, "announces"},
	{"payload huge", 16, 4, UINT32_MAX, "announces"},
	{"range at the end", ENTRY(0), 8, POOL_SIZE - 0x1ff, "leaves the pool"},
	{"range behind the end", ENTRY(0), 8, POOL_SIZE + 1, "leaves the pool"},
	{"range wraps", ENTRY(0), 8, UINT64_MAX - 0x1ff, "leaves the pool"},
	{"range wraps to 1", ENTRY(0), 8, UINT64_MAX, "leaves the pool"},
	{"flush of nothing", ENTRY(0) + 8, 4, 0, "length 0"},
	{"copy of nothing", ENTRY(1) + 8, 4, 0, "length 0"},
	{"copy takes less", ENTRY(1) + 8, 4, 4, "payload"},
	{"copy takes more", ENTRY(1) + 8, 4, 6, "payload"},
	{"copy takes 4 GiB", ENTRY(1) + 8, 4, UINT32_MAX, "payload"},
	{"copy becomes flush", ENTRY(1) + 12, 1, 1, "payload"},
	{"flush becomes copy", ENTRY(0) + 12, 1, 2, "payload"},
	{"operation 0", ENTRY(0) + 12, 1, 0, "operation 0"},
	{"operation 11", ENTRY(0) + 12, 1, 11, "operation 11"},
	{"operation 255", ENTRY(0) + 12, 1, 255, "operation 255"},
	{"reserved 1", ENTRY(2) + 13, 1, 1, "reserved"},
	{"reserved 2", ENTRY(2) + 14, 1, 0x80, "reserved"},
	{"reserved 3", ENTRY(3) + 15, 1, 1, "reserved"},
	{"barrier at an offset", ENTRY(2), 8, 8, "barrier"},
	{"barrier of a length", ENTRY(2) + 8, 4, 1, "barrier"},
	{"atomic of 7", ENTRY(3) + 8, 4, 7, "atomic"},
	{"atomic of 16", ENTRY(3) + 8, 4, 16, "atomic"},
	{"atomic unaligned", ENTRY(3), 8, 0x2004, "atomic"},
};

static const struct lie ack_lies[] = {
	{"version", 4, 1, 0, "version 0"},
	{"type COMMIT", 5, 1, 1, "type 1"},
	{"an entry, no payload", 6, 2, 1, "announces"},
	{"payload 0", 16, 4, 0, "announces"},
	{"status 1", 32, 4, 1, "status 1"},
	{"status at its highest", 32, 4, 0x7fffffff, "status 2147483647"},
	{"reserved", 36, 4, 1, "reserved"},
};

static void
sealed_lies_in_a_commit_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(commit_lies) / sizeof(commit_lies[0]); i++) {
		uint8_t msg[sizeof(golden_commit)];
		int want = commit_lies[i].at == 4 ? REPL_E_VERSION : REPL_E_PROTOCOL;
		struct err e;

		memcpy(msg, golden_commit, sizeof(msg));
		lie_apply(msg, sizeof(msg), &commit_lies[i]);
		if (decode_exact(msg, sizeof(msg), POOL_SIZE, &e) != want ||
		    !strstr(e.text, commit_lies[i].text))
			fail_msg("%s: '%s'", commit_lies[i].what, e.text);
	}
}

static void
sealed_lies_in_an_ack_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ack_lies) / sizeof(ack_lies[0]); i++) {
		uint8_t msg[WIRE_ACK_SIZE];
		struct wire_ack a;
		struct err e;

		memcpy(msg, golden_ack, sizeof(msg));
		lie_apply(msg, sizeof(msg), &ack_lies[i]);
		if (wire_ack_decode(msg, sizeof(msg), &a, &e) == 0 ||
		    !strstr(e.text, ack_lies[i].text))
			fail_msg("%s: '%s'", ack_lies[i].what, e.text);
	}
}

/* An ACK whose 16 bytes are called an entry has the length of one. */
static void
ack_made_of_an_entry_is_refused(void **state)
{
	uint8_t msg[WIRE_ACK_SIZE];
	struct wire_ack a;
	struct err e;

	(void)state;
	memcpy(msg, golden_ack, sizeof(msg));
	put_le16(msg + 6, 1);
	put_le32(msg + 16, 0);
	reseal(msg, sizeof(msg));
	assert_int_equal(wire_ack_decode(msg, sizeof(msg), &a, &e), REPL_E_PROTOCOL);
	assert_non_null(strstr(e.text, "entries"));
}

static void
ranges_up_to_the_last_byte_are_accepted(void **state)
{
	uint8_t msg[sizeof(golden_commit)];
	struct err e;

	(void)state;
	memcpy(msg, golden_commit, sizeof(msg));
	put_le64(msg + ENTRY(0), POOL_SIZE - 0x200);
	put_le64(msg + ENTRY(3), POOL_SIZE - 8);
	reseal(msg, sizeof(msg));
	assert_int_equal(decode_exact(msg, sizeof(msg), POOL_SIZE, &e), 0);
	assert_int_equal(decode_exact(msg, sizeof(msg), POOL_SIZE - 1, &e), REPL_E_PROTOCOL);
}

static void
refused_commit_leaves_the_view_and_gives_its_sequence(void **state)
{
	struct wire_commit_view v = {.seq = 1};
	uint8_t msg[sizeof(golden_commit)];
	uint64_t seq = 0;
	struct err e;

	(void)state;
	memcpy(msg, golden_commit, sizeof(msg));
	msg[40] ^= 1;
	assert_int_equal(wire_commit_decode(msg, sizeof(msg), POOL_SIZE, &v, &e), REPL_E_PROTOCOL);
	assert_int_equal(v.seq, 1);
	assert_true(wire_commit_seq(msg, sizeof(msg), &seq));
	assert_true(seq == SEQ);
	assert_false(wire_commit_seq(msg, WIRE_HEADER_SIZE - 1, &seq));
	assert_false(wire_commit_seq(golden_ack, sizeof(golden_ack), &seq));
}

#define STAMP 0x0908070605040302ULL

static void
deposit_has_golden_bytes(void **state)
{
	struct wire_entry stamp = {.off = STAMP, .op = WIRE_OP_STAMP};
	struct wire_commit_view v;
	struct wire_commit c;
	uint8_t buf[1024];
	uint64_t seq = 0;
	struct err e;

	(void)state;
	wire_commit_begin(&c, buf, sizeof(buf), 9);
	wire_commit_add(&c, &stamp, NULL);
	for (size_t i = 1; i < 4; i++)
		wire_commit_add(&c, &golden_entries[i],
				golden_entries[i].op == WIRE_OP_COPY ? (const void *)"hello"
								     : atomic_data);
	assert_int_equal(wire_deposit_end(&c, SEQ, EPOCH), sizeof(golden_deposit));
	assert_memory_equal(buf, golden_deposit, sizeof(golden_deposit));
	assert_int_equal(
		wire_deposit_decode(golden_deposit, sizeof(golden_deposit), POOL_SIZE, &v, &e), 0);
	assert_true(v.stamp == STAMP && v.seq == SEQ && v.epoch == EPOCH && v.entry_count == 4);
	assert_true(wire_commit_seq(golden_deposit, sizeof(golden_deposit), &seq) && seq == SEQ);
	/* Neither is taken for the other. */
	assert_int_equal(decode_exact(golden_deposit, sizeof(golden_deposit), POOL_SIZE, &e),
			 REPL_E_PROTOCOL);
	assert_int_equal(
		wire_deposit_decode(golden_commit, sizeof(golden_commit), POOL_SIZE, &v, &e),
		REPL_E_PROTOCOL);
}

static const struct lie deposit_lies[] = {
	{"type COMMIT", 5, 1, 1, "type 1"},
	{"no stamp", ENTRY(0) + 12, 1, WIRE_OP_BARRIER, "barrier"},
	{"a flush for a stamp", ENTRY(0) + 12, 1, WIRE_OP_FLUSH, "length 0"},
	{"stamp 0", ENTRY(0), 8, 0, "stamp 0"},
	{"stamp with a length", ENTRY(0) + 8, 4, 8, "stamp"},
	{"a second stamp", ENTRY(2) + 12, 1, WIRE_OP_STAMP, "first entry"},
	{"range outside", ENTRY(1), 8, POOL_SIZE, "leaves the pool"},
};

static void
sealed_lies_in_a_deposit_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(deposit_lies) / sizeof(deposit_lies[0]); i++) {
		uint8_t msg[sizeof(golden_deposit)];
		struct wire_commit_view v = {.seq = 1};
		struct err e;

		memcpy(msg, golden_deposit, sizeof(msg));
		lie_apply(msg, sizeof(msg), &deposit_lies[i]);
		if (wire_deposit_decode(msg, sizeof(msg), POOL_SIZE, &v, &e) != REPL_E_PROTOCOL ||
		    !strstr(e.text, deposit_lies[i].text) || v.seq != 1)
			fail_msg("%s: '%s'", deposit_lies[i].what, e.text);
	}
}

static void
stamp_in_a_commit_is_refused(void **state)
{
	uint8_t msg[sizeof(golden_deposit)];
	struct err e;

	(void)state;
	memcpy(msg, golden_deposit, sizeof(msg));
	msg[5] = WIRE_COMMIT;
	reseal(msg, sizeof(msg));
	assert_int_equal(decode_exact(msg, sizeof(msg), POOL_SIZE, &e), REPL_E_PROTOCOL);
	assert_non_null(strstr(e.text, "stamp"));
}

/* What a header says of a slot's message never leads out of the slot. */
static void
deposit_longer_than_its_slot_has_no_length(void **state)
{
	uint8_t slot[4096] = {0};

	(void)state;
	memcpy(slot, golden_deposit, sizeof(golden_deposit));
	assert_int_equal(wire_deposit_len(slot, sizeof(slot)), sizeof(golden_deposit));
	assert_int_equal(wire_deposit_len(slot, sizeof(golden_deposit)), sizeof(golden_deposit));
	assert_int_equal(wire_deposit_len(slot, sizeof(golden_deposit) - 1), 0);
	assert_int_equal(wire_deposit_len(slot, WIRE_HEADER_SIZE - 1), 0);
	put_le32(slot + 16, UINT32_MAX);
	assert_int_equal(wire_deposit_len(slot, sizeof(slot)), 0);
	put_le32(slot + 16, 13);
	put_le16(slot + 6, UINT16_MAX);
	assert_int_equal(wire_deposit_len(slot, sizeof(slot)), 0);
	put_le16(slot + 6, 4);
	slot[5] = WIRE_COMMIT;
	assert_int_equal(wire_deposit_len(slot, sizeof(slot)), 0);
	memset(slot, 0, sizeof(slot));
	assert_int_equal(wire_deposit_len(slot, sizeof(slot)), 0);
}

static void
fits_counts_entries_and_bytes(void **state)
{
	uint8_t buf[WIRE_HEADER_SIZE + 2 * WIRE_ENTRY_SIZE + 10];
	struct wire_entry five = {.off = 0, .len = 5, .op = WIRE_OP_COPY};
	struct wire_commit c;

	(void)state;
	wire_commit_begin(&c, buf, sizeof(buf), 2);
	assert_true(wire_commit_fits(&c, 10));
	assert_false(wire_commit_fits(&c, 11));
	assert_false(wire_commit_fits(&c, SIZE_MAX));
	wire_commit_add(&c, &five, "first");
	assert_true(wire_commit_fits(&c, 5));
	assert_false(wire_commit_fits(&c, 6));
	wire_commit_add(&c, &five, "other");
	assert_false(wire_commit_fits(&c, 0));
	assert_int_equal(wire_commit_end(&c, 1, 1), sizeof(buf));
	assert_memory_equal(buf + WIRE_HEADER_SIZE + 2 * WIRE_ENTRY_SIZE, "firstother", 10);
}

static void
largest_commit_goes_through(void **state)
{
	uint8_t *buf = malloc(WIRE_MSG_SIZE_MAX);
	struct wire_entry flush = {.off = 64, .len = 64, .op = WIRE_OP_FLUSH};
	struct wire_entry copy = {.off = 0, .op = WIRE_OP_COPY};
	uint8_t *data = calloc(1, WIRE_MSG_SIZE_MAX);
	struct wire_commit_view v;
	struct wire_commit c;
	struct err e;

	(void)state;
	assert_non_null(buf);
	assert_non_null(data);
	wire_commit_begin(&c, buf, WIRE_MSG_SIZE_MAX, WIRE_ENTRIES_MAX);
	for (unsigned i = 0; i + 1 < WIRE_ENTRIES_MAX; i++)
		wire_commit_add(&c, &flush, NULL);
	copy.len = (uint32_t)(WIRE_MSG_SIZE_MAX - wire_commit_size(WIRE_ENTRIES_MAX, 0));
	assert_true(wire_commit_fits(&c, copy.len));
	wire_commit_add(&c, &copy, data);
	assert_int_equal(wire_commit_end(&c, 1, 1), WIRE_MSG_SIZE_MAX);
	assert_int_equal(wire_commit_decode(buf, WIRE_MSG_SIZE_MAX, WIRE_MSG_SIZE_MAX, &v, &e), 0);
	assert_int_equal(v.entry_count, WIRE_ENTRIES_MAX);
	free(data);
	free(buf);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commit_has_golden_bytes),
		cmocka_unit_test(empty_commit_has_golden_bytes),
		cmocka_unit_test(commit_is_decoded),
		cmocka_unit_test(ack_has_golden_bytes),
		cmocka_unit_test(hello_has_golden_bytes),
		cmocka_unit_test(hello_of_other_form_is_refused),
		cmocka_unit_test(damaged_commit_is_never_accepted),
		cmocka_unit_test(damaged_ack_is_never_accepted),
		cmocka_unit_test(sealed_lies_in_a_commit_are_refused),
		cmocka_unit_test(sealed_lies_in_an_ack_are_refused),
		cmocka_unit_test(ack_made_of_an_entry_is_refused),
		cmocka_unit_test(ranges_up_to_the_last_byte_are_accepted),
		cmocka_unit_test(refused_commit_leaves_the_view_and_gives_its_sequence),
		cmocka_unit_test(deposit_has_golden_bytes),
		cmocka_unit_test(sealed_lies_in_a_deposit_are_refused),
		cmocka_unit_test(stamp_in_a_commit_is_refused),
		cmocka_unit_test(deposit_longer_than_its_slot_has_no_length),
		cmocka_unit_test(fits_counts_entries_and_bytes),
		cmocka_unit_test(largest_commit_goes_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
