/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever a target tells of what was staged before, in however many pieces of any size: with what
 * is staged again for it each byte that it brings is as the pool has it, and a page that it was
 * told of rightly, as a whole and last, is not staged again. Where more would be staged again in
 * vain than need not be staged it is not gone on with. However slowly the pool is read meanwhile,
 * the target hears of it, and who gives it up waits for no more than a range.
 */
#include "unit.h"

#include <stdatomic.h>
#include <stdlib.h>

/* How many words of a map are looked at. */
static uint64_t looked;
#undef atomic_load
#define atomic_load(p) (looked++, atomic_load_explicit(p, memory_order_seq_cst))

#include "clock.h"

/* A clock of its own. */
static uint64_t now_ns;
#define clock_now_ns() now_ns

#include "../../librepl/common/dirtymap.c"
#include "../../librepl/src/hashkey.c"
#include "../../librepl/src/resync_kept.c"

#define PAGE   4096ULL
#define PAGES  40U
#define ROUNDS (SANITIZED ? 300U : 3000U)

#define TOLD    768U /* ranges in an answer */
#define AHEAD   32U
#define LOOK_NS 8000000ULL
#define BEAT_NS 1000000000ULL

/* What a journal brings, of a byte or a page. */
enum brings { NONE, RIGHT, WRONG };

static struct model {
	uint64_t seed;
	uint64_t size;
	uint8_t pool[PAGES * PAGE];
	uint8_t byte[PAGES * PAGE]; /* enum brings */
	bool told[PAGES];           /* of some of it */
	bool right[PAGES];          /* the last one was of all of it, and right */
	bool again[PAGES];          /* staged again */
	uint64_t has;               /* the pool's file ends here */
	uint64_t pieces, next;
	struct range (*piece)(uint64_t n, bool *right);
	uint64_t ahead, asked, taken;
	uint64_t bytes; /* of what was told */
	uint64_t trip_ns, free_ns, ready_ns[AHEAD];
	uint64_t heard_ns, silence_ns; /* of the target: since when, and the longest */
	uint64_t read_ns, reads;       /* of a range here */
	uint64_t cancel_at;            /* so many; 0: it goes on */
	uint64_t wanted;               /* pages, the first ones; 0: all */
	struct dirtymap *want;
	struct hash_key key; /* of the last request: each has the same */
} w;

static uint64_t
rnd(uint64_t below)
{
	w.seed = w.seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (w.seed >> 33) % below;
}

/* ---- the rest of a resync, and the target ---- */

struct dirtymap *
dirty_batch_begin(struct dirty *d, unsigned replica)
{
	(void)d;
	(void)replica;
	return w.want;
}

static void
heard(void)
{
	if (now_ns - w.heard_ns > w.silence_ns)
		w.silence_ns = now_ns - w.heard_ns;
	w.heard_ns = now_ns;
}

int
resync_breathe(struct resync_run *r, struct err *e)
{
	int rc;

	if (w.cancel_at && w.reads >= w.cancel_at)
		return err_set(e, REPL_E_FAILED, "interrupted");
	if (now_ns - r->heard_ns < BEAT_NS)
		return 0;
	rc = resync_kept_settle(r, e);
	assert_int_equal(w.asked, w.taken);
	r->heard_ns = now_ns;
	heard();
	return rc;
}

bool
remote_is_broken(struct remote *r)
{
	(void)r;
	return false;
}

int
localread(int fd, void *to, size_t len, uint64_t off, size_t *got, struct err *e)
{
	(void)fd;
	(void)to;
	(void)len;
	(void)off;
	(void)got;
	return err_set(e, REPL_E_IO, "not by a call");
}

int
localmem_read(const struct localmem *m, void *to, size_t len, uint64_t off, size_t *got,
	      struct err *e)
{
	(void)e;
	w.reads++;
	now_ns += w.read_ns;
	memcpy(to, m->mem + off, len);
	*got = len;
	return 0;
}

int
localmem_has(const struct localmem *m, uint64_t off, uint64_t len, uint64_t *has, struct err *e)
{
	(void)m;
	(void)e;
	*has = w.has <= off ? 0 : w.has - off < len ? w.has - off : len;
	return 0;
}

uint64_t
remote_journal_max(const struct remote *r)
{
	(void)r;
	return UINT64_MAX;
}

uint64_t
resync_left(const struct resync_run *r)
{
	(void)r;
	return dirtymap_bytes(w.want);
}

int
resync_reserve(struct resync_run *r, const struct resync_room *room, uint64_t *ahead, struct err *e)
{
	(void)e;
	r->reserved = room->need + room->more;
	if (ahead)
		*ahead = w.ahead;
	return 0;
}

int
resync_sample(struct resync_run *r, uint64_t *least, struct err *e)
{
	(void)r;
	(void)e;
	*least = 0;
	return 0;
}

static void
tell(const struct range *at, bool right)
{
	uint64_t end = at->off + at->len;

	memset(w.byte + at->off, right ? RIGHT : WRONG, at->len);
	for (uint64_t p = at->off / PAGE; p * PAGE < end; p++) {
		w.told[p] = true;
		w.right[p] =
			right && at->off <= p * PAGE && (end >= (p + 1) * PAGE || end == w.size);
	}
}

bool
remote_hash_key(const struct remote *r)
{
	(void)r;
	return w.size % 2;
}

int
remote_random(const struct remote *r, void *to, size_t len, struct err *e)
{
	static uint8_t drawn;

	(void)r;
	(void)e;
	memset(to, ++drawn, len);
	return 0;
}

/* An answer comes a way behind its request, and a look behind the one before. */
int
remote_journal_kept_ask(struct remote *r, const struct hash_key *key, int64_t *id, struct err *e)
{
	uint64_t begin_ns = now_ns + w.trip_ns;

	(void)e;
	assert_int_equal(key->given, remote_hash_key(r));
	assert_true(w.asked == 0 || memcmp(&w.key, key, sizeof(w.key)) == 0);
	w.key = *key;
	assert_true(w.asked - w.taken < w.ahead);
	heard();
	if (w.free_ns < begin_ns)
		w.free_ns = begin_ns;
	w.free_ns += LOOK_NS;
	w.ready_ns[w.asked % AHEAD] = w.free_ns;
	*id = (int64_t)++w.asked;
	return 0;
}

int
remote_journal_kept(struct remote *r, int64_t id, uint64_t size, struct stage_kept *kept,
		    unsigned *count, uint64_t *bytes, bool *more, struct err *e)
{
	(void)r;
	(void)e;
	assert_int_equal(size, w.size);
	if (now_ns < w.ready_ns[w.taken % AHEAD])
		now_ns = w.ready_ns[w.taken % AHEAD];
	assert_int_equal(id, ++w.taken);
	for (*count = 0; *count < TOLD && w.next < w.pieces; ++*count) {
		struct stage_kept *k = &kept[*count];
		bool right = true;
		struct range at = w.piece(w.next++, &right);

		assert_true(at.len > 0 && at.off + at.len <= size);
		tell(&at, right);
		k->off = at.off;
		k->len = at.len;
		hash128_keyed(&w.key, w.pool + at.off, at.len, k->hash);
		k->hash[3] ^= !right;
		w.bytes += at.len;
	}
	*bytes = w.bytes;
	*more = w.next < w.pieces;
	return 0;
}

int
resync_put(struct resync_run *r, uint64_t off, uint64_t len, struct err *e)
{
	(void)r;
	(void)e;
	assert_true(len > 0 && len <= RESYNC_CHUNK && off + len <= w.size);
	memset(w.byte + off, RIGHT, len);
	for (uint64_t p = off / PAGE; p * PAGE < off + len; p++) {
		assert_false(w.again[p]);
		w.again[p] = true;
	}
	return 0;
}

/* ---- a run ---- */

static struct resync_progress progress;
static struct resync the_resync = {.mem = w.pool, .progress = &progress};

/* pieces, of a pool of so many bytes. */
static int
go_on(struct resync_run *r, uint64_t size, uint64_t pieces,
      struct range (*piece)(uint64_t n, bool *right), struct err *e)
{
	int rc;

	memset(w.byte, NONE, sizeof(w.byte));
	memset(w.told, 0, sizeof(w.told));
	memset(w.right, 0, sizeof(w.right));
	memset(w.again, 0, sizeof(w.again));
	w.size = size;
	w.next = 0;
	w.pieces = pieces;
	w.piece = piece;
	assert_int_equal(dirtymap_new(size, DIRTYMAP_SHIFT_MIN, &w.want, NULL), 0);
	(void)dirtymap_set(w.want, 0, w.wanted ? w.wanted * PAGE : size);
	*r = (struct resync_run){.s = &the_resync,
				 .size = size,
				 .source.fd = -1,
				 .resumes = true,
				 .heard_ns = now_ns};
	err_clear(e);
	w.asked = w.taken = w.bytes = w.reads = w.silence_ns = 0;
	w.heard_ns = now_ns;
	rc = resync_kept_begin(r, e);
	/* One that is not taken is in the way of the next request. */
	assert_int_equal(w.asked, w.taken);
	return rc ? rc : resync_kept_stage(r, e);
}

static void
go_end(struct resync_run *r)
{
	resync_kept_free(r);
	dirtymap_free(w.want);
}

static uint64_t
page_len(unsigned p)
{
	return w.size - p * PAGE < PAGE ? w.size - p * PAGE : PAGE;
}

/* All of what was told of is there, and all else is lacking. */
static void
judge_page(const struct resync_run *r, unsigned p)
{
	uint64_t off = p * PAGE, len = page_len(p);
	struct range lacks = {0};
	bool is_lacking = resync_kept_lacks(r, off, len, &lacks);

	assert_int_equal(is_lacking, !w.told[p]);
	if (is_lacking)
		assert_true(lacks.off == off && lacks.len == len);
	for (uint64_t at = off; at < off + len; at++)
		assert_int_equal(w.byte[at], is_lacking ? NONE : RIGHT);
	assert_false(w.again[p] && (w.right[p] || !w.told[p]));
}

/* Pages, and what begins and ends anywhere, of a pool of any size. */
static struct range
any_piece(uint64_t n, bool *right)
{
	bool whole = rnd(4) > 0;
	uint64_t grain = whole ? PAGE : 1, off = rnd(w.size) / grain * grain;
	uint64_t len = whole ? PAGE * (1 + rnd(4)) : 1 + rnd(3 * PAGE);

	(void)n;
	*right = rnd(3) > 0;
	if (rnd(8) == 0 || len > w.size - off)
		len = w.size - off;
	return (struct range){.off = off, .len = len};
}

static void
what_is_told_last_counts(void **state)
{
	uint64_t kept = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		uint64_t size, bytes = 0;
		struct resync_run r;
		struct err e;

		w.seed = seed;
		size = PAGE + rnd((PAGES - 1) * PAGE + 1);
		size -= seed % 4 ? 0 : size % PAGE;
		assert_int_equal(go_on(&r, size, 1 + seed % 50, any_piece, &e), 0);
		for (unsigned p = 0; p * PAGE < size; p++) {
			judge_page(&r, p);
			bytes += w.told[p] && !w.again[p] ? page_len(p) : 0;
		}
		assert_int_equal(progress.kept, bytes);
		kept += bytes;
		go_end(&r);
	}
	assert_true(kept > ROUNDS * PAGE);
}

/* ---- by the hand ---- */

/* A message may end within a page, and the next one go on there. */
static struct range
part_of_a_page(uint64_t n, bool *right)
{
	static const uint64_t ends[] = {0, 1000, 5000, 12000, 3 * PAGE};

	*right = true;
	return (struct range){.off = ends[n], .len = ends[n + 1] - ends[n]};
}

static void
parts_that_follow_one_another_are_whole(void **state)
{
	struct resync_run r;
	struct err e;

	(void)state;
	assert_int_equal(go_on(&r, PAGES * PAGE, 4, part_of_a_page, &e), 0);
	for (unsigned p = 0; p < PAGES; p++) {
		w.right[p] = p < 3;
		judge_page(&r, p);
	}
	assert_int_equal(progress.kept, 3 * PAGE);
	go_end(&r);
}

/* No two of them are one. */
static struct range
every_other_page(uint64_t n, bool *right)
{
	*right = true;
	return (struct range){.off = n % (PAGES / 2) * 2 * PAGE, .len = PAGE};
}

static void
any_number_of_pieces_is_gone_on_with(void **state)
{
	struct resync_run r;
	struct err e;

	(void)state;
	assert_int_equal(go_on(&r, PAGES * PAGE, (1U << 20) + 1, every_other_page, &e), 0);
	for (unsigned p = 0; p < PAGES; p++)
		judge_page(&r, p);
	assert_int_equal(progress.kept, PAGES / 2 * PAGE);
	go_end(&r);
}

/* Of 2 GiB by a way of 100 ms: it takes less than to stage them, at a gigabit a second. */
static void
a_long_way_is_filled(void **state)
{
	const uint64_t pieces = (2ULL << 30) / PAGE;
	struct resync_run r;
	struct err e;

	(void)state;
	w.trip_ns = 100000000;
	now_ns = w.free_ns = 0;
	w.ahead = AHEAD;
	assert_int_equal(go_on(&r, PAGES * PAGE, pieces, every_other_page, &e), 0);
	assert_true(now_ns < (2ULL << 30) * 8);
	assert_int_equal(w.next, pieces);
	go_end(&r);
	/* One at a time, of a target that takes no more. */
	w.ahead = 1;
	assert_int_equal(go_on(&r, PAGES * PAGE, 10000, every_other_page, &e), 0);
	assert_int_equal(w.next, 10000);
	go_end(&r);
	w.trip_ns = 0;
}

/* On a disk that takes 20 ms for each range: the target, whoever asks for how much, hears of it. */
static void
slow_reading_is_no_silence(void **state)
{
	(void)state;
	w.read_ns = 20000000;
	for (w.ahead = 1; w.ahead <= AHEAD; w.ahead += AHEAD - 1) {
		struct resync_run r;
		struct err e;

		assert_int_equal(go_on(&r, PAGES * PAGE, 50 * TOLD, every_other_page, &e), 0);
		assert_int_equal(w.reads, 50 * TOLD);
		heard();
		assert_true(w.silence_ns <= BEAT_NS + w.read_ns + AHEAD * LOOK_NS);
		go_end(&r);
	}
	w.read_ns = 0;
	w.ahead = 1;
}

static void
who_gives_up_waits_for_one_range(void **state)
{
	struct resync_run r;
	struct err e;

	(void)state;
	w.ahead = AHEAD;
	w.cancel_at = 2;
	assert_int_equal(go_on(&r, PAGES * PAGE, TOLD, every_other_page, &e), REPL_E_FAILED);
	assert_int_equal(w.reads, 2);
	go_end(&r);
	w.cancel_at = 0;
	w.ahead = 1;
}

static struct range
wrong_page(uint64_t n, bool *right)
{
	*right = false;
	return (struct range){.off = n * PAGE, .len = PAGE};
}

static void
what_the_pool_has_lost_is_not_gone_on_with(void **state)
{
	struct resync_run r;
	struct err e;

	(void)state;
	w.has = 3 * PAGE;
	assert_int_equal(go_on(&r, PAGES * PAGE, 3, wrong_page, &e), 0);
	go_end(&r);
	assert_int_equal(go_on(&r, PAGES * PAGE, 4, wrong_page, &e), REPL_E_LIMIT);
	go_end(&r);
	w.has = UINT64_MAX;
}

/* Pages that are not wanted are wrong, and of those that are so many are right. */
static uint64_t right_pages;

static struct range
wrong_behind_right(uint64_t n, bool *right)
{
	*right = n < right_pages;
	return (struct range){.off = (*right ? n : w.wanted + n - right_pages) * PAGE, .len = PAGE};
}

static int
right_and_wrong(uint64_t wanted, uint64_t right, uint64_t wrong)
{
	struct resync_run r;
	struct err e;
	int rc;

	w.wanted = wanted;
	right_pages = right;
	rc = go_on(&r, PAGES * PAGE, right + wrong, wrong_behind_right, &e);
	go_end(&r);
	w.wanted = 0;
	return rc;
}

static void
what_costs_more_than_it_saves_is_not_gone_on_with(void **state)
{
	(void)state;
	assert_int_equal(right_and_wrong(8, 4, 4), 0);
	assert_int_equal(right_and_wrong(8, 4, 5), REPL_E_REFUSED);
	assert_int_equal(right_and_wrong(8, 0, 1), REPL_E_REFUSED);
	assert_int_equal(right_and_wrong(PAGES, PAGES, 0), 0);
}

static struct range
wrong_pages(uint64_t n, bool *right)
{
	*right = false;
	return (struct range){.off = n % PAGES * PAGE, .len = PAGE};
}

/* Nor is all of it looked through for that. */
static void
what_is_of_no_use_is_soon_left(void **state)
{
	struct resync_run r;
	struct err e;

	(void)state;
	w.wanted = 1;
	assert_int_equal(go_on(&r, PAGES * PAGE, 1U << 20, wrong_pages, &e), REPL_E_REFUSED);
	assert_true(w.next <= AHEAD * TOLD);
	go_end(&r);
	w.wanted = 0;
}

/* Whoever asks of a few bytes does not wait for all of a large pool to be looked through. */
static void
no_more_is_looked_at_than_is_asked_for(void **state)
{
	const uint64_t size = 1ULL << 40, asked = 200;
	struct resync_run r;
	struct range lacks;
	struct err e;

	(void)state;
	assert_int_equal(go_on(&r, size, 1, every_other_page, &e), 0);
	looked = 0;
	for (uint64_t i = 1; i <= asked; i++) {
		uint64_t off = size / asked * i / PAGE * PAGE - RESYNC_TAKE;

		assert_true(resync_kept_lacks(&r, off, RESYNC_TAKE, &lacks));
		assert_true(lacks.off == off && lacks.len == RESYNC_TAKE);
	}
	assert_true(looked <= 10 * asked);
	go_end(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_told_last_counts),
		cmocka_unit_test(parts_that_follow_one_another_are_whole),
		cmocka_unit_test(any_number_of_pieces_is_gone_on_with),
		cmocka_unit_test(a_long_way_is_filled),
		cmocka_unit_test(slow_reading_is_no_silence),
		cmocka_unit_test(who_gives_up_waits_for_one_range),
		cmocka_unit_test(what_the_pool_has_lost_is_not_gone_on_with),
		cmocka_unit_test(what_costs_more_than_it_saves_is_not_gone_on_with),
		cmocka_unit_test(what_is_of_no_use_is_soon_left),
		cmocka_unit_test(no_more_is_looked_at_than_is_asked_for),
	};

	w.has = UINT64_MAX;
	w.ahead = 1;
	w.seed = 1;
	for (size_t i = 0; i < sizeof(w.pool); i++)
		w.pool[i] = (uint8_t)rnd(256);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
