/* SPDX-License-Identifier: BSD-3-Clause */
/* A COMMIT that is accepted has only ranges inside the pool, and encodes to the same bytes. */
#include <string.h>

#include "checksum.h"
#include "fuzz.h"
#include "le.h"
#include "wire.h"

#define POOL_SIZE (1U << 20)

static size_t
build(uint8_t *out, size_t size, const struct wire_commit_view *v)
{
	const uint8_t *payload = v->payload;
	struct wire_commit c;

	wire_commit_begin(&c, out, size, v->entry_count);
	for (uint32_t i = 0; i < v->entry_count; i++) {
		struct wire_entry en = wire_commit_entry(v, i);
		bool carries = en.op == WIRE_OP_COPY || en.op == WIRE_OP_ATOMIC8;

		FUZZ_CHECK(en.off <= POOL_SIZE && en.len <= POOL_SIZE - en.off);
		FUZZ_CHECK(wire_commit_fits(&c, carries ? en.len : 0));
		wire_commit_add(&c, &en, carries ? payload : NULL);
		payload += carries ? en.len : 0;
	}
	FUZZ_CHECK(payload == v->payload + v->payload_len);
	return wire_commit_end(&c, v->seq, v->epoch);
}

static void
decode(const uint8_t *msg, size_t len)
{
	struct wire_commit_view v;
	uint8_t *again;
	uint64_t seq;

	if (wire_commit_decode(msg, len, POOL_SIZE, &v, NULL))
		return;
	FUZZ_CHECK(wire_commit_seq(msg, len, &seq) && seq == v.seq);
	again = malloc(len);
	FUZZ_CHECK(again != NULL);
	FUZZ_CHECK(build(again, len, &v) == len);
	FUZZ_CHECK(memcmp(again, msg, len) == 0);
	free(again);
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
		 sum64_seeded(sealed, 24,
			      sum64(sealed + WIRE_HEADER_SIZE, size - WIRE_HEADER_SIZE)));
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
		{.off = POOL_SIZE - 200, .len = 200, .op = WIRE_OP_COPY},
	};
	struct wire_commit c;

	if (i > 6)
		return 0;
	wire_commit_begin(&c, buf, FUZZ_INPUT_MAX, 8);
	for (unsigned k = 0; k < (i == 6 ? 5 : i < 5 ? 1 : 0); k++)
		wire_commit_add(&c, &entries[i == 6 ? k : i], data);
	return wire_commit_end(&c, i + 1, 3);
}
