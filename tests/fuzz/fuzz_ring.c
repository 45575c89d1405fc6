/* SPDX-License-Identifier: BSD-3-Clause */
/* Of a receive ring of any bytes only whole messages are replayed, a bounded number, in order. */
#include <string.h>

#include "checksum.h"
#include "fuzz.h"
#include "le.h"
#include "ring.h"

#define POOL_SIZE (1U << 20)
#define LANES     2U
#define SLOTS     2U
#define SLOT_SIZE 4096U
#define REGION    (2U * 4096U + LANES * SLOTS * SLOT_SIZE)

static uint8_t region[REGION];

static void
replay(const struct ring_geometry *g)
{
	uint64_t stamp[RING_LANES_MAX] = {0}, seq[RING_LANES_MAX];
	struct ring_replay r;
	struct ring_message m;
	unsigned count = 0;

	for (uint32_t i = 0; i < g->lanes; i++)
		seq[i] = ring_mark(region, i);
	ring_replay_begin(&r, region, g, POOL_SIZE);
	while (ring_replay_next(&r, &m)) {
		FUZZ_CHECK(++count <= g->lanes * g->slots);
		FUZZ_CHECK(m.lane < g->lanes && m.view.epoch == g->epoch);
		FUZZ_CHECK(m.view.seq == seq[m.lane] + 1 && m.view.stamp > stamp[m.lane]);
		FUZZ_CHECK(m.view.payload + m.view.payload_len <= region + REGION);
		seq[m.lane] = m.view.seq;
		stamp[m.lane] = m.view.stamp;
	}
}

/* Make a message whole, as by a peer that knows how to compute the checksum. */
static void
seal(uint8_t *slot)
{
	size_t len = wire_deposit_len(slot, SLOT_SIZE);

	if (len)
		put_le64(slot + 24, sum64_seeded(slot, 24, sum64(slot + 32, len - 32)));
}

/*
 * The input is a header, of which a wrong sum is made right, two marks, and the
 * beginnings of four slots.
 */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring_geometry fixed = {
		.epoch = 3, .lanes = LANES, .slots = SLOTS, .slot_size = SLOT_SIZE};
	struct ring_geometry g;
	size_t at = 0;

	memset(region, 0, sizeof(region));
	memcpy(region, data, size < 40 ? size : 40);
	put_le64(region + 32, sum64_seeded(region, 32, sum64(region + 40, RING_HEADER_SIZE - 40)));
	if (ring_header_decode(region, REGION, &g, NULL) == 0) {
		FUZZ_CHECK(ring_size(&g) <= REGION);
		replay(&g);
	}
	at = 40;
	for (uint32_t i = 0; i < LANES && at < size; i++)
		region[ring_mark_off(i)] = data[at++];
	for (uint32_t i = 0; i < LANES * SLOTS && at < size; i++) {
		uint8_t *slot = region + ring_slot_off(&fixed, i / SLOTS, i % SLOTS);
		size_t n = size - at < 128 ? size - at : 128;

		memcpy(slot, data + at, n);
		at += n;
		if (i % 2)
			seal(slot);
	}
	replay(&fixed);
	return 0;
}

static void
seed_message(uint8_t *slot, uint64_t seq, uint64_t stamp)
{
	struct wire_entry first = {.off = stamp, .op = WIRE_OP_STAMP};
	struct wire_entry copy = {.off = 64, .len = 8, .op = WIRE_OP_COPY};
	struct wire_commit c;

	wire_commit_begin(&c, slot, 128, 2);
	wire_commit_add(&c, &first, NULL);
	wire_commit_add(&c, &copy, "12345678");
	(void)wire_deposit_end(&c, seq, 3);
}

size_t
fuzz_seed(unsigned i, uint8_t *buf)
{
	struct ring_geometry g = {
		.epoch = 3, .lanes = LANES, .slots = SLOTS, .slot_size = SLOT_SIZE};
	uint8_t header[RING_HEADER_SIZE];

	if (i > 1)
		return 0;
	ring_header_encode(&g, header);
	memset(buf, 0, 42 + 4 * 128);
	memcpy(buf, header, 40);
	buf[40] = (uint8_t)i;
	seed_message(buf + 42, i + 1, 5);
	seed_message(buf + 42 + 128, i + 2, 7);
	seed_message(buf + 42 + 256, 1, 6);
	seed_message(buf + 42 + 384, 2, 8);
	return 42 + 4 * 128;
}
