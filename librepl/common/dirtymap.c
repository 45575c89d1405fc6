/* SPDX-License-Identifier: BSD-3-Clause */
#include "dirtymap.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#define WORD_BITS 64U

struct dirtymap {
	uint64_t pool_size;
	uint64_t blocks;
	uint64_t words;
	unsigned shift;
	_Atomic uint64_t set; /* bits that are set */
	_Atomic uint64_t *word;
};

static uint64_t
blocks_of(uint64_t pool_size, unsigned shift)
{
	return (pool_size >> shift) + ((pool_size & ((1ULL << shift) - 1)) ? 1 : 0);
}

static uint64_t
words_of(uint64_t blocks)
{
	return blocks / WORD_BITS + (blocks % WORD_BITS ? 1 : 0);
}

int
dirtymap_new(uint64_t pool_size, unsigned shift, struct dirtymap **out, struct err *e)
{
	struct dirtymap *m = calloc(1, sizeof(*m));

	assert(pool_size && shift >= DIRTYMAP_SHIFT_MIN && shift <= DIRTYMAP_SHIFT_MAX);
	if (m) {
		m->pool_size = pool_size;
		m->shift = shift;
		m->blocks = blocks_of(pool_size, shift);
		m->words = words_of(m->blocks);
		m->word = calloc(m->words, sizeof(*m->word));
	}
	if (!m || !m->word) {
		dirtymap_free(m);
		return err_set(e, REPL_E_NOMEM, "no memory for a dirty map of %llu bytes",
			       (unsigned long long)(words_of(blocks_of(pool_size, shift)) * 8));
	}
	*out = m;
	return 0;
}

void
dirtymap_free(struct dirtymap *m)
{
	if (!m)
		return;
	free(m->word);
	free(m);
}

/* The bits of word w that stand for blocks. */
static uint64_t
word_mask(const struct dirtymap *m, uint64_t w)
{
	uint64_t left = m->blocks - w * WORD_BITS;

	return left >= WORD_BITS ? ~0ULL : (1ULL << left) - 1;
}

static bool
word_or(struct dirtymap *m, uint64_t w, uint64_t bits)
{
	uint64_t had;

	/* A hot block is set already, mostly: no write to what other threads read. */
	if ((atomic_load(&m->word[w]) & bits) == bits)
		return false;
	had = atomic_fetch_or(&m->word[w], bits);
	atomic_fetch_add(&m->set, (uint64_t)__builtin_popcountll(bits & ~had));
	return (bits & ~had) != 0;
}

/* Whatever else is set in it meanwhile stays. */
static void
word_clear(struct dirtymap *m, uint64_t w, uint64_t bits)
{
	uint64_t had = atomic_fetch_and(&m->word[w], ~bits);

	atomic_fetch_sub(&m->set, (uint64_t)__builtin_popcountll(had & bits));
}

/* The bits of word w that stand for blocks first to last, both included; it has some of them. */
static uint64_t
word_bits(uint64_t w, uint64_t first, uint64_t last)
{
	uint64_t bits = ~0ULL;

	if (w == first / WORD_BITS)
		bits &= ~0ULL << (first % WORD_BITS);
	if (w == last / WORD_BITS)
		bits &= ~0ULL >> (WORD_BITS - 1 - last % WORD_BITS);
	return bits;
}

/* The blocks that a range touches; false: none. */
static bool
blocks_touched(const struct dirtymap *m, uint64_t off, uint64_t len, uint64_t *first,
	       uint64_t *last)
{
	if (len == 0 || off >= m->pool_size)
		return false;
	if (len > m->pool_size - off)
		len = m->pool_size - off;
	*first = off >> m->shift;
	*last = (off + len - 1) >> m->shift;
	return true;
}

bool
dirtymap_set(struct dirtymap *m, uint64_t off, uint64_t len)
{
	uint64_t first, last;
	bool any = false;

	if (!blocks_touched(m, off, len, &first, &last))
		return false;
	for (uint64_t w = first / WORD_BITS; w <= last / WORD_BITS; w++)
		any |= word_or(m, w, word_bits(w, first, last));
	return any;
}

void
dirtymap_unset(struct dirtymap *m, uint64_t off, uint64_t len)
{
	uint64_t first, last;

	if (!blocks_touched(m, off, len, &first, &last))
		return;
	for (uint64_t w = first / WORD_BITS; w <= last / WORD_BITS; w++)
		word_clear(m, w, word_bits(w, first, last));
}

void
dirtymap_set_all(struct dirtymap *m)
{
	(void)dirtymap_set(m, 0, m->pool_size);
}

void
dirtymap_clear(struct dirtymap *m)
{
	for (uint64_t w = 0; w < m->words; w++)
		atomic_store_explicit(&m->word[w], 0, memory_order_relaxed);
	atomic_store(&m->set, 0);
}

/* The first block of [from, end) whose bit is set, or is not; end if none. */
static uint64_t
block_find(const struct dirtymap *m, uint64_t from, uint64_t end, bool set)
{
	for (uint64_t w = from / WORD_BITS; from < end && w <= (end - 1) / WORD_BITS; w++) {
		uint64_t word = atomic_load(&m->word[w]);
		uint64_t bits = (set ? word : ~word) & word_bits(w, from, end - 1);

		if (bits)
			return w * WORD_BITS + (unsigned)__builtin_ctzll(bits);
	}
	return end;
}

/* dirtymap_next() of what lies below end. */
static bool
run_find(const struct dirtymap *m, uint64_t from, uint64_t end, uint64_t max_len, struct range *run)
{
	uint64_t at, next, below;

	if (end > m->pool_size)
		end = m->pool_size;
	if (from >= end || max_len == 0 || atomic_load(&m->set) == 0)
		return false;
	below = ((end - 1) >> m->shift) + 1;
	at = block_find(m, from >> m->shift, below, true);
	if (at == below)
		return false;
	run->off = at << m->shift;
	if (run->off < from)
		run->off = from;
	/* Not farther than is asked for: a run may be the whole pool. */
	if (end - run->off > max_len) {
		end = run->off + max_len;
		below = ((end - 1) >> m->shift) + 1;
	}
	next = block_find(m, at, below, false);
	run->len = (next == below ? end : next << m->shift) - run->off;
	return true;
}

bool
dirtymap_next(const struct dirtymap *m, uint64_t from, uint64_t max_len, struct range *run)
{
	return run_find(m, from, m->pool_size, max_len, run);
}

bool
dirtymap_next_below(const struct dirtymap *m, uint64_t from, uint64_t end, struct range *run)
{
	return run_find(m, from, end, UINT64_MAX, run);
}

/* Blocks [first, end), all of them set in m. */
static void
blocks_move(struct dirtymap *m, struct dirtymap *to, uint64_t first, uint64_t end)
{
	for (uint64_t w = first / WORD_BITS; w <= (end - 1) / WORD_BITS; w++) {
		uint64_t bits = word_bits(w, first, end - 1);

		(void)word_or(to, w, bits);
		word_clear(m, w, bits);
	}
}

bool
dirtymap_take(struct dirtymap *m, struct dirtymap *to, uint64_t from, uint64_t end,
	      uint64_t max_len, struct range *run)
{
	uint64_t below = end >= m->pool_size ? m->blocks : end >> m->shift;
	uint64_t first, next;

	assert(m->shift == to->shift && max_len >> m->shift);
	if (below > to->blocks)
		below = to->blocks;
	first = block_find(m, from >> m->shift, below, true);
	if (first >= below)
		return false;
	if (below - first > max_len >> m->shift)
		below = first + (max_len >> m->shift);
	next = block_find(m, first, below, false);
	blocks_move(m, to, first, next);
	run->off = first << m->shift;
	run->len = (next == m->blocks ? m->pool_size : next << m->shift) - run->off;
	return true;
}

uint64_t
dirtymap_bytes(const struct dirtymap *m)
{
	uint64_t bytes = atomic_load(&m->set) << m->shift;
	uint64_t last = m->blocks - 1;

	if (atomic_load(&m->word[last / WORD_BITS]) >> (last % WORD_BITS) & 1)
		bytes -= (m->blocks << m->shift) - m->pool_size;
	return bytes < m->pool_size ? bytes : m->pool_size;
}

void
dirtymap_merge(struct dirtymap *dst, const struct dirtymap *src, uint64_t off, uint64_t len)
{
	uint64_t first, last, added = 0;

	assert(dst->shift == src->shift && dst->blocks >= src->blocks);
	if (!blocks_touched(src, off, len, &first, &last))
		return;
	for (uint64_t w = first / WORD_BITS; w <= last / WORD_BITS; w++) {
		uint64_t bits = atomic_load(&src->word[w]) & word_bits(w, first, last);

		bits &= ~atomic_load(&dst->word[w]);
		if (bits)
			bits &= ~atomic_fetch_or(&dst->word[w], bits);
		added += (unsigned)__builtin_popcountll(bits);
	}
	/* At once: of whole maps counting would take as long as the rest. */
	atomic_fetch_add(&dst->set, added);
}

int
dirtymap_grow(struct dirtymap *m, uint64_t pool_size, struct err *e)
{
	uint64_t blocks = blocks_of(pool_size, m->shift), words = words_of(blocks);
	_Atomic uint64_t *word;

	assert(pool_size >= m->pool_size);
	if (words > m->words) {
		word = realloc(m->word, words * sizeof(*word));
		if (!word)
			return err_set(e, REPL_E_NOMEM, "no memory for a dirty map of %llu bytes",
				       (unsigned long long)(words * 8));
		for (uint64_t w = m->words; w < words; w++)
			atomic_init(&word[w], 0);
		m->word = word;
	}
	m->words = words;
	m->blocks = blocks;
	m->pool_size = pool_size;
	return 0;
}

void
dirtymap_grow_undo(struct dirtymap *m, uint64_t pool_size)
{
	uint64_t words = m->words;

	if (pool_size >= m->pool_size)
		return;
	m->pool_size = pool_size;
	m->blocks = blocks_of(pool_size, m->shift);
	m->words = words_of(m->blocks);
	for (uint64_t w = m->words - 1; w < words; w++) {
		uint64_t keep = w < m->words ? word_mask(m, w) : 0;

		word_clear(m, w, ~keep);
	}
}

unsigned
dirtymap_shift(const struct dirtymap *m)
{
	return m->shift;
}

uint64_t
dirtymap_memory(const struct dirtymap *m)
{
	return m->words * sizeof(*m->word);
}

/* ---- pages ---- */

uint64_t
dirtymap_pages_of(uint64_t pool_size, unsigned shift)
{
	uint64_t words = words_of(blocks_of(pool_size, shift));

	return (words + DIRTYMAP_PAGE_WORDS - 1) / DIRTYMAP_PAGE_WORDS;
}

unsigned
dirtymap_pages(const struct dirtymap *m)
{
	return (unsigned)dirtymap_pages_of(m->pool_size, m->shift);
}

unsigned
dirtymap_page_at(const struct dirtymap *m, uint64_t off)
{
	return (unsigned)((off >> m->shift) / ((uint64_t)DIRTYMAP_PAGE_WORDS * WORD_BITS));
}

/* The words of a page: from its first one, so many. */
static uint64_t
page_words(const struct dirtymap *m, unsigned page, uint64_t *first)
{
	*first = (uint64_t)page * DIRTYMAP_PAGE_WORDS;
	if (*first >= m->words)
		return 0;
	return m->words - *first < DIRTYMAP_PAGE_WORDS ? m->words - *first : DIRTYMAP_PAGE_WORDS;
}

void
dirtymap_page_get(const struct dirtymap *m, unsigned page, uint64_t words[DIRTYMAP_PAGE_WORDS])
{
	uint64_t first, count = page_words(m, page, &first);

	for (uint64_t w = 0; w < count; w++)
		words[w] |= atomic_load(&m->word[first + w]);
}

void
dirtymap_page_set(struct dirtymap *m, unsigned page, const uint64_t words[DIRTYMAP_PAGE_WORDS])
{
	uint64_t first, count = page_words(m, page, &first);

	for (uint64_t w = 0; w < count; w++) {
		uint64_t bits = words[w] & word_mask(m, first + w);

		if (bits)
			(void)word_or(m, first + w, bits);
	}
}

void
dirtymap_page_set_all(struct dirtymap *m, unsigned page)
{
	uint64_t first, count = page_words(m, page, &first);

	for (uint64_t w = 0; w < count; w++)
		(void)word_or(m, first + w, word_mask(m, first + w));
}
