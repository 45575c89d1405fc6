/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A COMMIT, BARE, DEPOSIT, STAGE or PUT that is accepted has only ranges inside the pool, and
 * encodes to the same bytes.
 */
#include <string.h>

#include "checksum.h"
#include "fuzz.h"
#include "le.h"
#include "wire.h"

#define POOL_SIZE (1U << 20)

static size_t
build(uint8_t *out, size_t size, const struct wire_commit_view *v, enum wire_type type)
{
	bool deposit = type == WIRE_DEPOSIT;
	const uint8_t *payload = v->payload;
	struct wire_commit c;

	wire_commit_begin(&c, out, size, v->entry_count);
	for (uint32_t i = 0; i < v->entry_count; i++) {
		struct wire_entry en = wire_commit_entry(v, i);
		bool carries = en.op == WIRE_OP_COPY || en.op == WIRE_OP_ATOMIC8;

		FUZZ_CHECK((type != WIRE_STAGE && type != WIRE_PUT) ||
			   (en.op == WIRE_OP_COPY && en.len > 0));
		FUZZ_CHECK((en.op == WIRE_OP_STAMP) == (deposit && i == 0));
		if (en.op == WIRE_OP_POSITION)
			FUZZ_CHECK(en.off > 0 && en.off <= INT64_MAX && !deposit);
		if (en.op == WIRE_OP_REGISTER || en.op == WIRE_OP_POSITION) {
			FUZZ_CHECK(en.len == 0);
			wire_commit_add(&c, &en, NULL);
			continue;
		}
		if (en.op == WIRE_OP_APPEND) {
			FUZZ_CHECK(en.off <= POOL_SIZE - 8 && en.off % 8 == 0 && !deposit);
			FUZZ_CHECK(v->entry_count == 1 && get_le64(payload) <= POOL_SIZE);
			FUZZ_CHECK(wire_commit_fits(&c, WIRE_LIMIT_SIZE + (size_t)en.len));
			wire_commit_add_append(&c, &en, get_le64(payload),
					       payload + WIRE_LIMIT_SIZE);
			payload += WIRE_LIMIT_SIZE + en.len;
			continue;
		}
		FUZZ_CHECK(en.op == WIRE_OP_STAMP ||
			   (en.off <= POOL_SIZE && en.len <= POOL_SIZE - en.off));
		FUZZ_CHECK(wire_commit_fits(&c, carries ? en.len : 0));
		wire_commit_add(&c, &en, carries ? payload : NULL);
		payload += carries ? en.len : 0;
	}
	FUZZ_CHECK(payload == v->payload + v->payload_len);
	if (type == WIRE_BARE)
		return wire_bare_end(&c, v->seq, v->epoch);
	if (type == WIRE_STAGE)
		return wire_stage_end(&c, v->seq, v->epoch);
	if (type == WIRE_PUT)
		return wire_put_end(&c, v->seq, v->epoch);
	return deposit ? wire_deposit_end(&c, v->seq, v->epoch)
		       : wire_commit_end(&c, v->seq, v->epoch);
}

static void
decode(const uint8_t *msg, size_t len)
{
	struct wire_commit_view v;
	enum wire_type type = WIRE_COMMIT;
	uint8_t *again;
	uint64_t seq;

	FUZZ_CHECK(wire_deposit_len(msg, len) <= len);
	FUZZ_CHECK(wire_stage_len(msg, len, len) <= len);
	if (!wire_stage_decode(msg, len, POOL_SIZE, &v, NULL)) {
		type = WIRE_STAGE;
		FUZZ_CHECK(v.entry_count > 0 && wire_stage_len(msg, len, len) == len);
	} else if (!wire_put_decode(msg, len, POOL_SIZE, &v, NULL)) {
		type = WIRE_PUT;
		FUZZ_CHECK(v.entry_count > 0 && wire_put_is(msg, len));
	} else if (!wire_bare_decode(msg, len, POOL_SIZE, &v, NULL)) {
		type = WIRE_BARE;
		FUZZ_CHECK(wire_bare_is(msg, len));
	} else if (wire_commit_decode(msg, len, POOL_SIZE, &v, NULL)) {
		type = WIRE_DEPOSIT;
		if (wire_deposit_decode(msg, len, POOL_SIZE, &v, NULL))
			return;
		FUZZ_CHECK(v.stamp != 0 && wire_deposit_len(msg, len) == len);
	}
	FUZZ_CHECK(wire_commit_seq(msg, len, &seq) && seq == v.seq);
	again = malloc(len);
	FUZZ_CHECK(again != NULL);
	FUZZ_CHECK(build(again, len, &v, type) == len);
	FUZZ_CHECK(memcmp(again, msg, len) == 0);
	free(again);
}

/* What the checksum covers: of a BARE or a PUT not what its header says is the payload. */
static size_t
covered(const uint8_t *msg, size_t size)
{
	uint32_t payload = get_le32(msg + 16);

	if ((!wire_bare_is(msg, size) && !wire_put_is(msg, size)) ||
	    payload > size - WIRE_HEADER_SIZE)
		return size - WIRE_HEADER_SIZE;
	return size - WIRE_HEADER_SIZE - payload;
}

/* As it came, and as by a peer that knows how to compute the checksum. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *sealed;

	decode(data, size);
	if (size < WIRE_HEADER_SIZE)
		return 0;
	sealed = malloc(size);
	FUZZ_CHECK(sealed != NULL);
	memcpy(sealed, data, size);
	put_le64(sealed + 24,
		 sum64_seeded(sealed, 24, sum64(sealed + WIRE_HEADER_SIZE, covered(sealed, size))));
	decode(sealed, size);
	free(sealed);
	return 0;
}

size_t
fuzz_seed(unsigned i, uint8_t *buf)
{
	static const uint8_t data[256] = {1, 2, 3};
	static const struct wire_entry entries[] = {
		{.off = 4096, .len = 512, .op = WIRE_OP_FLUSH},
		{.off = 100, .len = 64, .op = WIRE_OP_COPY},
		{.op = WIRE_OP_BARRIER},
		{.off = 8, .len = 8, .op = WIRE_OP_ATOMIC8},
		{.off = 8192, .len = 4096, .op = WIRE_OP_TRIM},
		{.off = POOL_SIZE - 200, .len = 200, .op = WIRE_OP_COPY},
	};
	static const struct wire_entry stamp = {.off = 77, .op = WIRE_OP_STAMP};
	struct wire_commit c;

	if (i > 14)
		return 0;
	wire_commit_begin(&c, buf, FUZZ_INPUT_MAX, 8);
	if (i == 8) {
		wire_commit_add(&c, &stamp, NULL);
		for (unsigned k = 1; k < 6; k++)
			wire_commit_add(&c, &entries[k], data);
		return wire_deposit_end(&c, i + 1, 3);
	}
	if (i == 12 || i == 14) {
		wire_commit_add(&c, &entries[1], data);
		wire_commit_add(&c, &entries[5], data);
		return i == 12 ? wire_stage_end(&c, i + 1, 3) : wire_put_end(&c, i + 1, 3);
	}
	if (i == 13) {
		wire_commit_add(&c, &entries[1], data);
		wire_commit_add(&c, &entries[2], NULL);
		wire_commit_add(&c, &entries[5], data);
		return wire_bare_end(&c, i + 1, 3);
	}
	if (i == 9)
		wire_commit_add_append(
			&c, &(struct wire_entry){.off = 64, .len = 100, .op = WIRE_OP_APPEND},
			POOL_SIZE, data);
	if (i == 10)
		wire_commit_add(&c, &(struct wire_entry){.off = 3, .op = WIRE_OP_REGISTER}, NULL);
	if (i == 11)
		wire_commit_add(&c, &(struct wire_entry){.off = 8, .op = WIRE_OP_POSITION}, NULL);
	for (unsigned k = 0; k < (i == 7 ? 6 : i < 6 ? 1 : 0); k++)
		wire_commit_add(&c, &entries[i == 7 ? k : i], data);
	return wire_commit_end(&c, i + 1, 3);
}
