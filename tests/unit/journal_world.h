/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool "p" with a journal: what was there, what is staged over it, and which of both is seen.
 */
#ifndef UNIT_JOURNAL_WORLD_H
#define UNIT_JOURNAL_WORLD_H

#include "pool_world.h"
#include "wire.h"

#define PAGE     4096U
#define PAGES    16U
#define SIZE     (PAGES * PAGE)
#define MESSAGES 6U

static const struct generation chain = {.current = {{7, 7, 7}}, .history = {{{1, 2, 3}}}};

static inline struct pool *
writer(void)
{
	struct pool *p = NULL;

	assert_int_equal(pool_open(store, "p", POOL_WRITE, "writer", &p, &err), 0);
	return p;
}

/* By who goes on with a journal that was left, and leaves one. */
static inline struct pool *
writer_resuming(void)
{
	const struct pool_claim claim = {.writer = "resumer", .resumes = true};
	struct pool *p = NULL;

	assert_int_equal(pool_open_by(store, "p", &claim, &p, &err), 0);
	return p;
}

/* Page n holds n and the letter: 'o' before, 'n' as staged. */
static inline void
page_fill(uint8_t *page, unsigned n, char letter)
{
	memset(page, letter, PAGE);
	page[0] = (uint8_t)n;
}

static inline void
pool_image(uint8_t image[SIZE], char letter)
{
	for (unsigned n = 0; n < PAGES; n++)
		page_fill(image + (size_t)n * PAGE, n, letter);
}

/* Two pages a message; all of the pool from 2 to 13, so that the rest stays old. */
static inline size_t
message_of(uint8_t *msg, unsigned i, uint32_t epoch, char letter)
{
	struct wire_commit c;
	uint8_t page[PAGE];

	wire_commit_begin(&c, msg, 3 * PAGE, 2);
	for (unsigned k = 0; k < 2; k++) {
		unsigned n = 2 + 2 * i + k;
		struct wire_entry en = {.off = n * PAGE, .len = PAGE, .op = WIRE_OP_COPY};

		page_fill(page, n, letter);
		wire_commit_add(&c, &en, page);
	}
	return wire_stage_end(&c, i + 1, epoch);
}

static inline size_t
message(uint8_t *msg, unsigned i, uint32_t epoch)
{
	return message_of(msg, i, epoch, 'n');
}

/* The messages from one up to another. */
static inline void
stage_some(struct pool *p, unsigned from, unsigned to, char letter)
{
	uint8_t msg[3 * PAGE];

	assert_int_equal(pool_journal_begin(p, (uint64_t)MESSAGES * 4 * PAGE, &err), 0);
	for (unsigned i = from; i < to; i++) {
		size_t len = message_of(msg, i, pool_get_info(p)->meta.epoch, letter);

		assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), 0);
	}
}

static inline void
stage_all(struct pool *p)
{
	uint8_t msg[3 * PAGE];

	for (unsigned i = 0; i < MESSAGES; i++) {
		size_t len = message(msg, i, pool_get_info(p)->meta.epoch);

		/* Grows on the way. */
		assert_int_equal(pool_journal_begin(p, (i / 2 + 1) * 2 * len, &err), 0);
		assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), 0);
	}
}

static inline void
expected(uint8_t image[SIZE], bool all)
{
	pool_image(image, 'o');
	for (unsigned n = 2; all && n < 2 + 2 * MESSAGES; n++)
		page_fill(image + (size_t)n * PAGE, n, 'n');
}

/* Open as the next writer: 1 it is as staged, 0 as before; anything else fails. */
static inline int
seen(void)
{
	uint8_t want[SIZE], have[SIZE];
	const struct sidecar *m;
	struct pool *p = writer();
	bool all;

	m = &pool_get_info(p)->meta;
	assert_int_equal(m->journal_len, 0);
	assert_false(m->journal_committed);
	all = m->state == SIDECAR_OUTDATED;
	if (all)
		assert_memory_equal(&m->generation, &chain, sizeof(chain));
	else
		assert_int_equal(m->state, SIDECAR_UNKNOWN);
	assert_int_equal(file_get("p", have, SIZE), SIZE);
	expected(want, all);
	assert_memory_equal(have, want, SIZE);
	assert_int_equal(pool_close(p, false, &err), 0);
	return all;
}

static inline void
pool_old(void)
{
	uint8_t image[SIZE];

	pool_image(image, 'o');
	file_put("p", image, SIZE);
}

static inline void
apply_all(struct pool *p, uint64_t max)
{
	struct journal_progress done = {.total = 1};
	struct pmem_map *map = NULL;

	assert_int_equal(pool_map(p, true, &map, &err), 0);
	while (done.done < done.total)
		assert_int_equal(pool_journal_apply(p, map, max, &done, &err), 0);
	pmem_map_free(map);
}

/* By which an initiator has it hashed what was left. */
static const struct hash_key kept_key = {.given = true, .secret = "any bytes do"};

/*
 * What an initiator does that goes on with what was left, if there is anything: each page that the
 * journal does not bring as it is wanted, or the pool lacks, is staged. Then it is committed and
 * applied. Pages that it need not stage are counted.
 */
static inline unsigned
go_on(struct pool *p, const uint8_t want[SIZE])
{
	struct journal_kept kept[4 * JOURNAL_KEPT_MIN];
	uint8_t has[SIZE], hash[HASH128_SIZE], msg[2 * PAGE];
	bool told[PAGES] = {0}, right[PAGES] = {0}, resumed, more = true;
	unsigned count, spared = 0;
	uint64_t bytes = 0, behind;
	struct pmem_map *map = NULL;

	assert_int_equal(pool_map(p, true, &map, &err), 0);
	assert_int_equal(pool_journal_resume(p, PAGE, &resumed, &err), 0);
	while (resumed && more) {
		assert_int_equal(pool_journal_kept(p, map, &kept_key, kept, JOURNAL_KEPT_MIN,
						   &count, &bytes, &more, &err),
				 0);
		for (unsigned i = 0; i < count; i++)
			for (uint64_t at = kept[i].off; at < kept[i].off + kept[i].len;
			     at += PAGE) {
				hash128_keyed(&kept_key, want + kept[i].off, kept[i].len, hash);
				told[at / PAGE] = true;
				right[at / PAGE] = memcmp(hash, kept[i].hash, sizeof(hash)) == 0;
			}
	}
	/* Who asks ahead has asked for what is behind the last one, too. */
	if (resumed) {
		assert_int_equal(pool_journal_kept(p, map, &kept_key, kept, JOURNAL_KEPT_MIN,
						   &count, &behind, &more, &err),
				 0);
		assert_true(count == 0 && behind == bytes && !more);
	}
	assert_int_equal(file_get("p", has, SIZE), SIZE);
	assert_int_equal(pool_journal_begin(p, bytes + 2 * SIZE, &err), 0);
	for (unsigned n = 0; n < PAGES; n++) {
		struct wire_entry en = {.off = n * PAGE, .len = PAGE, .op = WIRE_OP_COPY};
		struct wire_commit c;
		size_t len;

		spared += right[n];
		if (right[n] || (!told[n] && memcmp(has + en.off, want + en.off, PAGE) == 0))
			continue;
		wire_commit_begin(&c, msg, sizeof(msg), 1);
		wire_commit_add(&c, &en, want + en.off);
		len = wire_stage_end(&c, 1, pool_get_info(p)->meta.epoch);
		assert_int_equal(pooljournal_append(pool_journal(p), msg, len, &err), 0);
	}
	pmem_map_free(map);
	assert_int_equal(pool_journal_commit(p, SIDECAR_OUTDATED, &chain, 0, &err), 0);
	return spared;
}

#endif
