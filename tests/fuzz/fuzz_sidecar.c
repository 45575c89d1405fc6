/* SPDX-License-Identifier: BSD-3-Clause */
/* A sidecar slot that is accepted has valid members, and survives another round unchanged. */
#include <string.h>

#include "checksum.h"
#include "fuzz.h"
#include "le.h"
#include "sidecar.h"

#define AT_CHECKSUM 16

static void
decode(const uint8_t *slot)
{
	uint8_t again[SIDECAR_SLOT_SIZE];
	uint8_t third[SIDECAR_SLOT_SIZE];
	struct sidecar back = {0};
	struct sidecar s = {0};

	if (sidecar_decode(slot, &s, NULL))
		return;
	FUZZ_CHECK(memchr(s.writer, '\0', sizeof(s.writer)) != NULL);
	FUZZ_CHECK(s.ring_len == 0 ? s.ring_off == 0 : s.ring_off >= SIDECAR_SIZE);
	FUZZ_CHECK(s.state >= SIDECAR_UP_TO_DATE && s.state <= SIDECAR_UNKNOWN);
	sidecar_encode(&s, again);
	FUZZ_CHECK(sidecar_decode(again, &back, NULL) == 0);
	sidecar_encode(&back, third);
	FUZZ_CHECK(memcmp(again, third, sizeof(again)) == 0);
}

/* As it came, and with a checksum that fits: damage of the other kind. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t slot[SIDECAR_SLOT_SIZE] = {0};

	memcpy(slot, data, size < sizeof(slot) ? size : sizeof(slot));
	decode(slot);
	put_le64(slot + AT_CHECKSUM, 0);
	put_le64(slot + AT_CHECKSUM, sum64(slot, sizeof(slot)));
	decode(slot);
	return 0;
}

size_t
fuzz_seed(unsigned i, uint8_t *buf)
{
	struct sidecar s = {
		.sequence = i + 1,
		.pool_uuid.b = {1, 2, 3},
		.pool_size = 4096ULL << i,
		.state = (enum sidecar_state)(i + 1),
		.writer_open = i % 2,
		.created_s = 1700000000,
		.updated_s = 1700000001,
		.writer = "ann@host pid 12",
		.epoch = i,
	};

	if (i >= 4)
		return 0;
	s.ring_off = i % 2 ? SIDECAR_SIZE : 0;
	s.ring_len = i % 2 ? 65536 : 0;
	sidecar_encode(&s, buf);
	return SIDECAR_SLOT_SIZE;
}
