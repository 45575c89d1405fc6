/* SPDX-License-Identifier: BSD-3-Clause */
#include "roundfmt.h"

#include <inttypes.h>
#include <string.h>

#include "checksum.h"
#include "le.h"

#define MAGIC       "REPLRLOG"
#define VERSION     1
#define FRAME_MAGIC 0x31464c52U /* "RLF1" */
#define POOL_SHARE  8           /* of the pool's size for a half */
#define NOT_THERE   UINT32_MAX

/* Of the header's page, behind what all such pages have. */
enum { AT_UUID = 24, AT_KEY = 40, AT_HALF = 48, AT_END = 56 };

/* Of a frame. */
enum {
	AT_FRAME_MAGIC = 0,
	AT_BYTES = 4,
	AT_SEQ = 8,
	AT_FROM = 16,
	AT_CHAIN = 24,
	AT_COUNT = 32,
	AT_ZERO = 36,
	AT_SUM = 40,
};

static const struct region_page header_page = {"round log", MAGIC, VERSION, 0, AT_END};

uint64_t
round_half_for(uint64_t pool_size)
{
	uint64_t half = pool_size / POOL_SHARE / ROUND_BLOCK * ROUND_BLOCK;

	if (half < ROUND_HALF_MIN)
		return ROUND_HALF_MIN;
	return half > ROUND_HALF_MAX ? ROUND_HALF_MAX : half;
}

uint64_t
round_size(uint64_t half)
{
	return REGION_PAGE + 2 * half;
}

void
round_header_encode(const struct round_header *h, uint8_t page[REGION_PAGE])
{
	region_page_begin(page, MAGIC, VERSION, h->epoch);
	memcpy(page + AT_UUID, h->pool_uuid.b, GEN_ID_SIZE);
	put_le64(page + AT_KEY, h->key);
	put_le64(page + AT_HALF, h->half);
	region_page_seal(page);
}

int
round_header_decode(const uint8_t page[REGION_PAGE], uint64_t region_size, struct round_header *h,
		    struct err *e)
{
	uint64_t half = get_le64(page + AT_HALF);
	int rc = region_page_open(page, &header_page, e);

	if (rc)
		return rc;
	if (half < ROUND_HALF_MIN || half > ROUND_HALF_MAX || half % ROUND_BLOCK ||
	    round_size(half) != region_size)
		return err_set(e, REPL_E_CORRUPT,
			       "round log: halves of %" PRIu64 " bytes in a region of %" PRIu64,
			       half, region_size);
	h->epoch = region_page_epoch(page);
	memcpy(h->pool_uuid.b, page + AT_UUID, GEN_ID_SIZE);
	h->key = get_le64(page + AT_KEY);
	h->half = half;
	return 0;
}

/* ---- frames ---- */

void
round_head_encode(const struct round_frame *f, uint64_t key, uint8_t head[ROUND_HEAD_SIZE])
{
	put_le32(head + AT_FRAME_MAGIC, FRAME_MAGIC);
	put_le32(head + AT_BYTES, f->bytes);
	put_le64(head + AT_SEQ, f->seq);
	put_le64(head + AT_FROM, f->from);
	put_le64(head + AT_CHAIN, f->chain);
	put_le32(head + AT_COUNT, f->count);
	put_le32(head + AT_ZERO, 0);
	put_le64(head + AT_SUM, sum64_seeded(head, AT_SUM, key));
}

static bool
head_decode(const uint8_t *head, size_t size, uint64_t key, struct round_frame *f)
{
	if (size < ROUND_HEAD_SIZE || get_le32(head + AT_FRAME_MAGIC) != FRAME_MAGIC ||
	    get_le64(head + AT_SUM) != sum64_seeded(head, AT_SUM, key))
		return false;
	f->bytes = get_le32(head + AT_BYTES);
	f->seq = get_le64(head + AT_SEQ);
	f->from = get_le64(head + AT_FROM);
	f->chain = get_le64(head + AT_CHAIN);
	f->count = get_le32(head + AT_COUNT);
	return get_le32(head + AT_ZERO) == 0 && f->from > 0 && f->from <= f->seq &&
	       f->seq <= INT64_MAX && f->bytes <= ROUND_FRAME_MAX - ROUND_HEAD_SIZE &&
	       f->bytes <= size - ROUND_HEAD_SIZE;
}

bool
round_takes(const struct wire_commit_view *v)
{
	for (uint32_t i = 0; i < v->entry_count; i++) {
		switch (wire_commit_entry(v, i).op) {
		case WIRE_OP_COPY:
		case WIRE_OP_ATOMIC8:
		case WIRE_OP_BARRIER:
		case WIRE_OP_TRIM:
		case WIRE_OP_POSITION:
		case WIRE_OP_REGISTER:
			break;
		default:
			return false;
		}
	}
	return true;
}

uint64_t
round_position(const struct wire_commit_view *v)
{
	uint64_t position = 0;

	for (uint32_t i = 0; i < v->entry_count; i++) {
		struct wire_entry en = wire_commit_entry(v, i);

		if (en.op == WIRE_OP_POSITION && en.off > position)
			position = en.off;
	}
	return position;
}

/* The message at mem, if it is whole and one that a frame may have; its length or 0. */
static size_t
message_take(const uint8_t *mem, size_t size, const struct round_header *h, uint64_t pool_size,
	     struct wire_commit_view *v)
{
	size_t len = wire_commit_len(mem, size);

	if (len == 0 || wire_commit_decode(mem, len, pool_size, v, NULL) || v->epoch != h->epoch ||
	    !round_takes(v))
		return 0;
	return len;
}

bool
round_frame_whole(const uint8_t *mem, size_t size, const struct round_header *h, uint64_t pool_size,
		  struct round_frame *f)
{
	struct wire_commit_view v;
	uint64_t chain = 0;
	size_t at = ROUND_HEAD_SIZE, end;

	if (!head_decode(mem, size, h->key, f))
		return false;
	end = at + f->bytes;
	for (uint32_t i = 0; i < f->count; i++) {
		size_t len = message_take(mem + at, end - at, h, pool_size, &v);

		if (len == 0)
			return false;
		chain = wire_stage_chain(chain, mem + at);
		at += len;
	}
	return at == end && chain == f->chain;
}

/* ---- replay ---- */

static const uint8_t *
block_at(const struct round_replay *r, uint32_t block)
{
	return r->region + REGION_PAGE + (size_t)block * ROUND_BLOCK;
}

/* A frame ends in the half that it begins in. */
static size_t
block_room(const struct round_replay *r, uint32_t block)
{
	return (size_t)(r->header.half - (uint64_t)block * ROUND_BLOCK % r->header.half);
}

static void
replay_find(struct round_replay *r, bool keep)
{
	uint32_t count = (uint32_t)(2 * r->header.half / ROUND_BLOCK);

	for (uint32_t i = 0; i < count; i++) {
		struct round_frame f;

		if (!round_frame_whole(block_at(r, i), block_room(r, i), &r->header, r->pool_size,
				       &f))
			continue;
		if (!keep && f.seq > r->last) {
			r->last = f.seq;
			r->from = f.from;
		}
		if (keep && f.seq >= r->from && f.seq - r->from < ROUND_BLOCKS_MAX)
			r->blocks[f.seq - r->from] = i;
	}
}

void
round_replay_begin(struct round_replay *r, const uint8_t *region, const struct round_header *h,
		   uint64_t pool_size)
{
	memset(r, 0, sizeof(*r));
	memset(r->blocks, 0xff, sizeof(r->blocks));
	r->region = region;
	r->header = *h;
	r->pool_size = pool_size;
	replay_find(r, false);
	r->next = r->from;
	if (r->last > 0)
		replay_find(r, true);
	else
		r->next = 1;
}

/* Its messages come next; false at the end. */
static bool
replay_frame(struct round_replay *r)
{
	uint32_t block;

	if (r->next > r->last || r->damaged)
		return false;
	block = r->next - r->from < ROUND_BLOCKS_MAX ? r->blocks[r->next - r->from] : NOT_THERE;
	if (block == NOT_THERE || !round_frame_whole(block_at(r, block), block_room(r, block),
						     &r->header, r->pool_size, &r->frame)) {
		r->damaged = true;
		return false;
	}
	r->next++;
	r->at = block_at(r, block) + ROUND_HEAD_SIZE;
	r->left = r->frame.count;
	return true;
}

bool
round_replay_next(struct round_replay *r, struct wire_commit_view *v)
{
	size_t len;

	while (r->left == 0)
		if (!replay_frame(r))
			return false;
	len = message_take(r->at, ROUND_FRAME_MAX, &r->header, r->pool_size, v);
	r->at += len;
	r->left--;
	return len > 0;
}
