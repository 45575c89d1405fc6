/* SPDX-License-Identifier: BSD-3-Clause */
#include "dirtypage.h"

#include <assert.h>
#include <string.h>

#include "le.h"

#define MAGIC   "REPLDIRT"
#define VERSION 1

/* Offsets in the header: docs/POOL-FORMAT.md. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 8,
	AT_FLAGS = 10,
	AT_COUNT = 12,
	AT_SHIFT = 16,
	AT_EXTENT_SHIFT = 20,
	AT_CHECKSUM = 24,
	AT_POOL_SIZE = 32,
	AT_INODE = 40,
	AT_BORN = 48,
	AT_ZERO_56 = 56,
	AT_SLOTS = 64,
};

/* In a slot. */
enum {
	SLOT_FLAGS = 0,
	SLOT_ZERO_4 = 4,
	SLOT_EPOCH = 8,
	SLOT_NAME = 16,
	SLOT_BASE = 32,
	SLOT_SIZE = 48,
};

/* In a page of bits or of the activity log. */
enum {
	PAGE_CHECKSUM = 0,
	PAGE_NUMBER = 8, /* epoch; zero in the activity log */
	PAGE_BITS = 16,
	PAGE_ACTIVITY_END = PAGE_BITS + DIRTYPAGE_EXTENTS / 8,
};

#define FLAG_ACTIVITY  1U
#define FLAG_BROKEN    2U
#define SLOT_TRACKED   1U
#define SLOT_UNTRUSTED 2U
#define SHIFT_LIMIT    52U /* an extent's, for any pool below 2^63 */

uint32_t
dirtypage_extent_shift(uint64_t pool_size)
{
	uint32_t shift = DIRTYPAGE_EXTENT_SHIFT;

	while (((pool_size - 1) >> shift) >= DIRTYPAGE_EXTENTS)
		shift++;
	return shift;
}

uint64_t
dirtypage_index(const struct dirtypage_header *h, unsigned replica, uint64_t page)
{
	return DIRTYPAGE_MAPS + replica * dirtymap_pages_of(h->pool_size, h->shift) + page;
}

uint64_t
dirtypage_region_len(const struct dirtypage_header *h)
{
	return dirtypage_index(h, h->count, 0) * DIRTYPAGE_SIZE;
}

/* A page with its checksum field zero. */
static uint64_t
page_sum(const uint8_t *page, unsigned at, const struct gen_id *pool, uint64_t index)
{
	static const uint8_t zero[8];
	uint8_t place[GEN_ID_SIZE + 8];
	uint64_t seed;

	memcpy(place, pool->b, GEN_ID_SIZE);
	put_le64(place + GEN_ID_SIZE, index);
	seed = sum64(place, sizeof(place));
	if (at)
		seed = sum64_seeded(page, at, seed);
	seed = sum64_seeded(zero, sizeof(zero), seed);
	return sum64_seeded(page + at + 8, DIRTYPAGE_SIZE - at - 8, seed);
}

/* ---- header ---- */

static void
slot_encode(const struct dirtypage_slot *s, uint8_t *out)
{
	put_le32(out + SLOT_FLAGS,
		 (s->tracked ? SLOT_TRACKED : 0) | (s->untrusted ? SLOT_UNTRUSTED : 0));
	put_le64(out + SLOT_EPOCH, s->epoch);
	memcpy(out + SLOT_NAME, s->name, HASH128_SIZE);
	memcpy(out + SLOT_BASE, s->base.b, GEN_ID_SIZE);
}

void
dirtypage_header_encode(const struct dirtypage_header *h, const struct gen_id *pool,
			uint8_t out[DIRTYPAGE_SIZE])
{
	assert(h->count >= 1 && h->count <= DIRTYPAGE_REPLICAS_MAX);
	memset(out, 0, DIRTYPAGE_SIZE);
	memcpy(out + AT_MAGIC, MAGIC, 8);
	put_le16(out + AT_VERSION, VERSION);
	put_le16(out + AT_FLAGS,
		 (uint16_t)((h->activity ? FLAG_ACTIVITY : 0) | (h->broken ? FLAG_BROKEN : 0)));
	put_le32(out + AT_COUNT, h->count);
	put_le32(out + AT_SHIFT, h->shift);
	put_le32(out + AT_EXTENT_SHIFT, h->extent_shift);
	put_le64(out + AT_POOL_SIZE, h->pool_size);
	put_le64(out + AT_INODE, h->file.inode);
	put_le64(out + AT_BORN, h->file.born);
	for (unsigned i = 0; i < h->count; i++)
		slot_encode(&h->slot[i], out + AT_SLOTS + i * SLOT_SIZE);
	put_le64(out + AT_CHECKSUM, page_sum(out, AT_CHECKSUM, pool, 0));
}

static int
slot_decode(const uint8_t *in, struct dirtypage_slot *s, struct err *e)
{
	uint32_t flags = get_le32(in + SLOT_FLAGS);

	if ((flags & ~(SLOT_TRACKED | SLOT_UNTRUSTED)) || !all_zero(in + SLOT_ZERO_4, 4))
		return err_set(e, REPL_E_CORRUPT, "dirty map: reserved bytes are not zero");
	s->tracked = flags & SLOT_TRACKED;
	s->untrusted = flags & SLOT_UNTRUSTED;
	s->epoch = get_le64(in + SLOT_EPOCH);
	if (s->epoch > INT64_MAX)
		return err_set(e, REPL_E_CORRUPT, "dirty map: an epoch is out of bounds");
	memcpy(s->name, in + SLOT_NAME, HASH128_SIZE);
	memcpy(s->base.b, in + SLOT_BASE, GEN_ID_SIZE);
	return 0;
}

/* Each field bounds what the next one is computed from. */
static int
header_check(const struct dirtypage_header *h, uint64_t len, struct err *e)
{
	bool ok = h->count >= 1 && h->count <= DIRTYPAGE_REPLICAS_MAX && h->pool_size &&
		  h->pool_size <= INT64_MAX && h->shift >= DIRTYMAP_SHIFT_MIN &&
		  h->shift <= DIRTYMAP_SHIFT_MAX && h->extent_shift >= DIRTYPAGE_EXTENT_SHIFT &&
		  h->extent_shift <= SHIFT_LIMIT &&
		  ((h->pool_size - 1) >> h->extent_shift) < DIRTYPAGE_EXTENTS;

	if (!ok || dirtypage_region_len(h) != len)
		return err_set(e, REPL_E_CORRUPT,
			       "dirty map: %u replicas, blocks of 2^%u bytes, a pool of %llu bytes "
			       "and a region of %llu do not fit together",
			       h->count, h->shift, (unsigned long long)h->pool_size,
			       (unsigned long long)len);
	return 0;
}

int
dirtypage_header_decode(const uint8_t in[DIRTYPAGE_SIZE], const struct gen_id *pool, uint64_t len,
			struct dirtypage_header *h, struct err *e)
{
	struct dirtypage_header got = {.activity = false};
	unsigned flags = get_le16(in + AT_FLAGS);
	int rc;

	if (memcmp(in + AT_MAGIC, MAGIC, 8) != 0)
		return err_set(e, REPL_E_CORRUPT, "dirty map: no magic bytes '%s'", MAGIC);
	if (get_le64(in + AT_CHECKSUM) != page_sum(in, AT_CHECKSUM, pool, 0))
		return err_set(e, REPL_E_CORRUPT, "dirty map: checksum does not match");
	if (get_le16(in + AT_VERSION) != VERSION)
		return err_set(e, REPL_E_VERSION, "dirty map: version %u, this program knows %d",
			       get_le16(in + AT_VERSION), VERSION);
	if (flags & ~(FLAG_ACTIVITY | FLAG_BROKEN))
		return err_set(e, REPL_E_CORRUPT, "dirty map: flags 0x%x", flags);
	got.activity = flags & FLAG_ACTIVITY;
	got.broken = flags & FLAG_BROKEN;
	got.count = get_le32(in + AT_COUNT);
	got.shift = get_le32(in + AT_SHIFT);
	got.extent_shift = get_le32(in + AT_EXTENT_SHIFT);
	got.pool_size = get_le64(in + AT_POOL_SIZE);
	got.file.inode = get_le64(in + AT_INODE);
	got.file.born = get_le64(in + AT_BORN);
	rc = header_check(&got, len, e);
	for (unsigned i = 0; !rc && i < got.count; i++)
		rc = slot_decode(in + AT_SLOTS + i * SLOT_SIZE, &got.slot[i], e);
	if (rc)
		return rc;
	if (!all_zero(in + AT_ZERO_56, AT_SLOTS - AT_ZERO_56) ||
	    !all_zero(in + AT_SLOTS + got.count * SLOT_SIZE,
		      DIRTYPAGE_SIZE - AT_SLOTS - got.count * SLOT_SIZE))
		return err_set(e, REPL_E_CORRUPT, "dirty map: reserved bytes are not zero");
	*h = got;
	return 0;
}

/* ---- pages of bits ---- */

static void
bits_encode(const uint64_t *words, unsigned count, uint64_t number, const struct gen_id *pool,
	    uint64_t index, uint8_t *out)
{
	memset(out, 0, DIRTYPAGE_SIZE);
	put_le64(out + PAGE_NUMBER, number);
	for (unsigned i = 0; i < count; i++)
		put_le64(out + PAGE_BITS + i * 8, words[i]);
	put_le64(out + PAGE_CHECKSUM, page_sum(out, PAGE_CHECKSUM, pool, index));
}

static bool
bits_decode(const uint8_t *in, const struct gen_id *pool, uint64_t index, uint64_t *number,
	    uint64_t *words, unsigned count)
{
	if (get_le64(in + PAGE_CHECKSUM) != page_sum(in, PAGE_CHECKSUM, pool, index))
		return false;
	*number = get_le64(in + PAGE_NUMBER);
	for (unsigned i = 0; i < count; i++)
		words[i] = get_le64(in + PAGE_BITS + i * 8);
	return *number <= INT64_MAX;
}

void
dirtypage_map_encode(const uint64_t words[DIRTYMAP_PAGE_WORDS], const struct gen_id *pool,
		     uint64_t index, uint64_t epoch, uint8_t out[DIRTYPAGE_SIZE])
{
	bits_encode(words, DIRTYMAP_PAGE_WORDS, epoch, pool, index, out);
}

bool
dirtypage_map_decode(const uint8_t in[DIRTYPAGE_SIZE], const struct gen_id *pool, uint64_t index,
		     uint64_t *epoch, uint64_t words[DIRTYMAP_PAGE_WORDS])
{
	return bits_decode(in, pool, index, epoch, words, DIRTYMAP_PAGE_WORDS);
}

void
dirtypage_activity_encode(const uint64_t words[DIRTYPAGE_EXTENT_WORDS], const struct gen_id *pool,
			  uint8_t out[DIRTYPAGE_SIZE])
{
	bits_encode(words, DIRTYPAGE_EXTENT_WORDS, 0, pool, DIRTYPAGE_ACTIVITY, out);
}

bool
dirtypage_activity_decode(const uint8_t in[DIRTYPAGE_SIZE], const struct gen_id *pool,
			  uint64_t words[DIRTYPAGE_EXTENT_WORDS])
{
	uint64_t number;

	return bits_decode(in, pool, DIRTYPAGE_ACTIVITY, &number, words, DIRTYPAGE_EXTENT_WORDS) &&
	       number == 0 && all_zero(in + PAGE_ACTIVITY_END, DIRTYPAGE_SIZE - PAGE_ACTIVITY_END);
}
