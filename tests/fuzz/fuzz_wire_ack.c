/* SPDX-License-Identifier: BSD-3-Clause */
/* An ACK or connect data that are accepted encode to the same bytes. */
#include <string.h>

#include "checksum.h"
#include "fuzz.h"
#include "le.h"
#include "wire.h"

static void
decode(const uint8_t *msg, size_t len)
{
	uint8_t again[WIRE_ACK_MAX];
	struct wire_ack a;

	if (wire_ack_decode(msg, len, &a, NULL))
		return;
	FUZZ_CHECK(a.status <= 0 && (!a.has_place || a.status == 0));
	FUZZ_CHECK(wire_ack_encode(again, &a) == len);
	FUZZ_CHECK(memcmp(again, msg, len) == 0);
}

static void
decode_hello(const uint8_t *data, size_t len)
{
	uint8_t token[WIRE_TOKEN_SIZE];
	uint8_t again[WIRE_HELLO_SIZE];

	if (wire_hello_decode(data, len, token))
		return;
	FUZZ_CHECK(len == WIRE_HELLO_SIZE);
	wire_hello_encode(again, token);
	FUZZ_CHECK(memcmp(again, data, len) == 0);
}

/* As it came, and as by a peer that knows how to compute the checksum. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t sealed[WIRE_ACK_MAX];

	decode(data, size);
	decode_hello(data, size);
	if (size != WIRE_ACK_SIZE && size != WIRE_ACK_PLACE && size != WIRE_ACK_MAX)
		return 0;
	memcpy(sealed, data, size);
	put_le64(sealed + 24,
		 sum64_seeded(sealed, 24,
			      sum64(sealed + WIRE_HEADER_SIZE, size - WIRE_HEADER_SIZE)));
	decode(sealed, size);
	return 0;
}

size_t
fuzz_seed(unsigned i, uint8_t *buf)
{
	static const struct wire_ack acks[] = {
		{.seq = 1, .epoch = 1, .status = 0, .service_ns = 5000},
		{.seq = UINT64_MAX, .epoch = UINT32_MAX, .status = REPL_E_PROTOCOL},
		{.seq = 2, .epoch = 1, .service_ns = 9, .has_place = true, .place = 4096},
		{.seq = 3, .epoch = 1, .has_key = true, .addr = 1ULL << 46, .key = 0x1234},
	};
	static const uint8_t token[WIRE_TOKEN_SIZE] = {0xaa, 0xbb};

	if (i < 3)
		return wire_ack_encode(buf, &acks[i]);
	if (i > 3)
		return 0;
	wire_hello_encode(buf, token);
	return WIRE_HELLO_SIZE;
}
