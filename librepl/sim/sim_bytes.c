/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks as bytes in messages that lie on media: every word of a block is the write that it got. */
#include "le.h"
#include "sim_impl.h"

#define WORDS (SIM_BLOCK_BYTES / 4)

void
bytes_add(struct wire_commit *c, unsigned block, uint32_t version)
{
	struct wire_entry copy = {
		.op = WIRE_OP_COPY, .off = maps_block_off(block), .len = SIM_BLOCK_BYTES};
	uint8_t bytes[SIM_BLOCK_BYTES];

	for (unsigned w = 0; w < WORDS; w++)
		put_le32(bytes + (size_t)4 * w, version);
	wire_commit_add(c, &copy, bytes);
}

static unsigned
block_at(uint64_t off)
{
	unsigned b = 0;

	while (b < SIM_BLOCKS && maps_block_off(b) != off)
		b++;
	return b;
}

/* The write that a block's bytes are of, 0 if it was never written; false: they are of none. */
static bool
bytes_version(const struct sim *s, unsigned block, const uint8_t *bytes, uint32_t *version)
{
	uint32_t is = get_le32(bytes);

	*version = 0;
	for (unsigned w = 1; w < WORDS; w++)
		if (get_le32(bytes + (size_t)4 * w) != is)
			return false;
	if (is > s->ops || (is && s->op[is].block != block))
		return false;
	*version = is;
	return true;
}

uint32_t
bytes_apply(const struct sim *s, const struct wire_commit_view *v, struct sim_redo *redo)
{
	const uint8_t *payload = v->payload;
	uint32_t blocks = 0;

	for (uint32_t i = 0; i < v->entry_count; i++) {
		struct wire_entry en = wire_commit_entry(v, i);
		unsigned b = block_at(en.off);

		if (en.op != WIRE_OP_COPY)
			continue;
		if (b < SIM_BLOCKS && en.len == SIM_BLOCK_BYTES) {
			uint32_t bit = 1U << b;

			if (bytes_version(s, b, payload, &redo->content[b]))
				redo->torn &= ~bit;
			else
				redo->torn |= bit;
			blocks |= bit;
		}
		payload += en.len;
	}
	redo->blocks |= blocks;
	return blocks;
}

bool
bytes_bring(struct sim *s, unsigned n, const struct sim_redo *redo, bool flush)
{
	if (redo->torn)
		sim_fail(s, "I2: node %u: a replay brings bytes of no write into block %u", n,
			 (unsigned)__builtin_ctz(redo->torn));
	for (unsigned b = 0; b < SIM_BLOCKS; b++)
		if (redo->blocks >> b & 1)
			(void)media_store(s, n, b, redo->content[b], 0);
	s->stats.replayed += redo->blocks != 0;
	if (script_dies(s, n))
		return false;
	if (flush)
		media_flush(s, n, redo->blocks);
	return !script_dies(s, n);
}
