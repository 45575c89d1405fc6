/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an earlier session has staged and not committed is gone on with. Nothing is known of it but
 * what the target tells: it may be of another file, or of this one before it was written to. So
 * each range is compared with the pool here, in the end by the last message that brings it: what is
 * not equal is staged again, whatever the replica has there, and what is equal need not be. Where
 * this costs more than it saves the journal is of no use.
 *
 * Where a program goes on meanwhile, what it makes durable is marked: all that was marked is taken
 * before anything is compared, and this is what need not be staged. What is marked from then on
 * goes by later passes, which know of nothing that was kept.
 */
#include "resync_impl.h"

#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "clock.h"
#include "dirtymap.h"
#include "hashkey.h"
#include "localmem.h"
#include "localread.h"

#define KEPT_PAGE  (1U << DIRTYMAP_SHIFT_MIN)
#define KEPT_AHEAD 16U /* requests under way: a long way is to be filled */

/* Ranges that it tells of one after the other, where each begins at the end of the one before. */
struct kept_run {
	uint64_t off, len;
	bool equal;
};

struct kept_answer {
	int64_t id;
	struct err err;
	uint64_t bytes;
	bool more;
	unsigned count;
	struct stage_kept range[STAGE_KEPT_MAX];
};

/* By pages, of each what was told of it last. What it does not bring is in neither map. */
struct resync_kept {
	struct dirtymap *equal; /* all of the page; in the end, of all that it brings */
	struct dirtymap *stale; /* another one, or it was told of in parts: to be staged again */
	uint64_t saves, again;  /* bytes of equal, and of stale, that are wanted */
	struct kept_run run;    /* that is told last, not in the maps; of no bytes: there is none */
	uint8_t *buf;           /* a range of the file */
	struct hash_key key;
	uint64_t asked, answered, taken;
	bool ended;                            /* by one that is answered */
	struct kept_answer answer[KEPT_AHEAD]; /* of requests that are not taken: a ring */
};

void
resync_kept_free(struct resync_run *r)
{
	struct resync_kept *k = r->kept;

	r->kept = NULL;
	r->want = NULL;
	if (!k)
		return;
	dirtymap_free(k->equal);
	dirtymap_free(k->stale);
	free(k->buf);
	free(k);
}

static int
kept_new(struct resync_run *r, struct err *e)
{
	struct resync_kept *k = r->kept = calloc(1, sizeof(*k));
	int rc;

	if (k)
		k->buf = malloc(WIRE_MSG_SIZE_MAX);
	if (k && k->buf)
		r->want = dirty_batch_begin(r->s->dirty, r->s->replica);
	if (!r->want)
		return err_set(e, REPL_E_NOMEM, "no memory to go on with a journal");
	rc = hashkey_draw(&k->key, r->s->remote, e);
	if (!rc)
		rc = dirtymap_new(r->size, DIRTYMAP_SHIFT_MIN, &k->equal, e);
	return rc ? rc : dirtymap_new(r->size, DIRTYMAP_SHIFT_MIN, &k->stale, e);
}

/* ---- what it brings ---- */

/* Bytes of [off, end) that are in both. */
static uint64_t
bytes_of_both(const struct dirtymap *a, const struct dirtymap *b, uint64_t off, uint64_t end)
{
	struct range in_a, both;
	uint64_t sum = 0;

	for (; dirtymap_next_below(a, off, end, &in_a); off = in_a.off + in_a.len)
		for (uint64_t at = in_a.off; dirtymap_next_below(b, at, in_a.off + in_a.len, &both);
		     at = both.off + both.len)
			sum += both.len;
	return sum;
}

/* Each page of which there is some in [off, end). */
static void
pages_note(struct resync_run *r, uint64_t off, uint64_t end, bool equal)
{
	struct resync_kept *k = r->kept;
	uint64_t first = off / KEPT_PAGE * KEPT_PAGE;
	uint64_t last = (end + KEPT_PAGE - 1) / KEPT_PAGE * KEPT_PAGE;

	k->saves -= bytes_of_both(k->equal, r->want, first, last);
	k->again -= bytes_of_both(k->stale, r->want, first, last);
	(void)dirtymap_set(equal ? k->equal : k->stale, off, end - off);
	dirtymap_unset(equal ? k->stale : k->equal, off, end - off);
	k->saves += bytes_of_both(k->equal, r->want, first, last);
	k->again += bytes_of_both(k->stale, r->want, first, last);
}

/* The pool's last page may be a short one. */
static void
run_end(struct resync_run *r)
{
	struct kept_run *run = &r->kept->run;
	uint64_t end = run->off + run->len;
	uint64_t first = (run->off + KEPT_PAGE - 1) / KEPT_PAGE * KEPT_PAGE;
	uint64_t last = end == r->size ? end : end / KEPT_PAGE * KEPT_PAGE;

	if (!run->equal || first >= last)
		first = last = end;
	pages_note(r, run->off, first, false);
	pages_note(r, first, last, true);
	pages_note(r, last, end, false);
	run->len = 0;
}

static void
run_add(struct resync_run *r, uint64_t off, uint64_t len, bool equal)
{
	struct kept_run *run = &r->kept->run;

	if (run->len && run->equal == equal && run->off + run->len == off) {
		run->len += len;
		return;
	}
	run_end(r);
	*run = (struct kept_run){.off = off, .len = len, .equal = equal};
}

static int
kept_compare(struct resync_run *r, const struct stage_kept *has, struct err *e)
{
	const struct localmem m = {.mem = r->s->mem, .file = r->s->file};
	struct resync_kept *k = r->kept;
	uint8_t hash[HASH128_SIZE];
	size_t got = 0, len = (size_t)has->len;
	int rc = r->source.fd < 0 ? localmem_read(&m, k->buf, len, has->off, &got, e)
				  : localread(r->source.fd, k->buf, len, has->off, &got, e);

	if (rc)
		return rc;
	hash128_keyed(&k->key, k->buf, got, hash);
	run_add(r, has->off, has->len,
		got == has->len && memcmp(hash, has->hash, sizeof(hash)) == 0);
	return 0;
}

/* It saves no more than that. */
static int
kept_check_use(const struct resync_kept *k, uint64_t saves, struct err *e)
{
	uint64_t costs = dirtymap_bytes(k->stale) - k->again;

	if (costs <= saves)
		return 0;
	return err_set(e, REPL_E_REFUSED,
		       "a journal with %llu bytes to be staged again that are not wanted, for %llu",
		       (unsigned long long)costs, (unsigned long long)saves);
}

static struct kept_answer *
answer_at(struct resync_kept *k, uint64_t n)
{
	return &k->answer[n % KEPT_AHEAD];
}

static int
kept_ask(struct resync_run *r, uint64_t ahead, struct err *e)
{
	struct resync_kept *k = r->kept;
	int rc = 0;

	while (!rc && !k->ended && k->asked - k->answered < ahead &&
	       k->asked - k->taken < KEPT_AHEAD) {
		rc = remote_journal_kept_ask(r->s->remote, &k->key, &answer_at(k, k->asked)->id, e);
		k->asked += rc == 0;
		r->heard_ns = clock_now_ns();
	}
	return rc;
}

/* An error is one only where its turn comes: what is answered behind the end means nothing. */
static void
kept_answer(struct resync_run *r)
{
	struct resync_kept *k = r->kept;
	struct kept_answer *a = answer_at(k, k->answered++);

	err_clear(&a->err);
	k->ended |= remote_journal_kept(r->s->remote, a->id, r->size, a->range, &a->count,
					&a->bytes, &a->more, &a->err) ||
		    !a->more;
}

int
resync_kept_settle(struct resync_run *r, struct err *e)
{
	struct resync_kept *k = r->kept;
	int rc = 0;

	while (k && k->answered < k->asked) {
		bool before = remote_is_broken(r->s->remote);

		kept_answer(r);
		if (!before && remote_is_broken(r->s->remote))
			rc = err_copy(e, &answer_at(k, k->answered - 1)->err);
	}
	return rc;
}

static int
kept_compare_all(struct resync_run *r, const struct kept_answer *a, struct err *e)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < a->count; i++) {
		rc = resync_breathe(r, e);
		if (!rc)
			rc = kept_compare(r, &a->range[i], e);
	}
	return rc;
}

static int
kept_take(struct resync_run *r, uint64_t *bytes, bool *more, struct err *e)
{
	struct resync_kept *k = r->kept;
	const struct kept_answer *a = answer_at(k, k->taken);
	uint64_t before = *bytes;
	int rc;

	if (k->answered == k->taken)
		kept_answer(r);
	rc = a->err.code ? err_copy(e, &a->err) : 0;
	*bytes = a->bytes;
	*more = a->more;
	if (!rc && (*bytes < before || (*more && (a->count == 0 || *bytes == before))))
		rc = err_set(e, REPL_E_PROTOCOL, "journal.kept: does not come to its end");
	if (!rc && *bytes > remote_journal_max(r->s->remote))
		rc = err_set(e, REPL_E_LIMIT, "a journal of more than journal-max");
	if (!rc)
		rc = kept_compare_all(r, a, e);
	k->taken++;
	if (!rc)
		rc = kept_check_use(k, dirtymap_bytes(r->want), e);
	return rc ? rc : resync_breathe(r, e);
}

/*
 * To its end; what was asked for behind it would be in the way of the next request, of which there
 * is one behind a refusal, too.
 */
static int
kept_look(struct resync_run *r, uint64_t ahead, uint64_t *bytes, struct err *e)
{
	bool more = true;
	struct err why;
	int rc = 0, lost;

	err_clear(&why);
	while (!rc && more) {
		rc = kept_ask(r, ahead, e);
		if (!rc)
			rc = kept_take(r, bytes, &more, e);
	}
	lost = resync_kept_settle(r, &why);
	return lost && (!rc || resync_is_refusal(rc)) ? err_copy(e, &why) : rc;
}

/* Of what is marked and is yet to be compared there may be nothing to stage. */
static int
left_reserve(struct resync_run *r, uint64_t left, uint64_t *ahead, struct err *e)
{
	uint64_t expected = r->foretold < left ? r->foretold : left;
	struct resync_room room = {.need = r->staged + left, .more = RESYNC_CHUNK};

	if (r->refine) {
		room.need = r->staged;
		room.expected = expected;
		room.more += left - expected;
	}
	return resync_reserve(r, &room, ahead, e);
}

/* Of more than it has room for. */
static int
foretold_reserve(struct resync_run *r, struct err *e)
{
	int rc = r->refine && resync_left(r) > r->reserved ? resync_sample(r, &r->foretold, e) : 0;

	if (rc || r->foretold <= r->reserved)
		return rc;
	return left_reserve(r, resync_left(r), NULL, e);
}

/* What is equal is taken to be marked here: where it is not more room is asked for later. */
static int
kept_reserve(struct resync_run *r, uint64_t bytes, struct err *e)
{
	uint64_t equal = dirtymap_bytes(r->kept->equal), want = dirtymap_bytes(r->want);

	r->staged = bytes;
	atomic_store(&r->s->progress->kept, equal);
	return left_reserve(r, want > equal ? want - equal : 0, NULL, e);
}

int
resync_kept_begin(struct resync_run *r, struct err *e)
{
	uint64_t bytes = 0, ahead = 0;
	bool resumes = r->resumes;
	int rc;

	/* Of a later round it is this run's own. */
	r->resumes = false;
	r->foretold = 0;
	rc = left_reserve(r, resync_left(r), resumes ? &ahead : NULL, e);
	r->resumed = !rc && ahead > 0;
	if (!r->resumed)
		return rc ? rc : foretold_reserve(r, e);
	rc = kept_new(r, e);
	if (!rc)
		rc = kept_look(r, ahead, &bytes, e);
	if (rc)
		return rc;
	run_end(r);
	rc = kept_check_use(r->kept, r->kept->saves, e);
	return rc ? rc : kept_reserve(r, bytes, e);
}

/* ---- what it brings wrongly ---- */

static int
stale_stage(struct resync_run *r, const struct range *stale, struct err *e)
{
	const struct localmem m = {.mem = r->s->mem, .file = r->s->file};
	uint64_t has = stale->len;
	int rc = r->source.fd < 0 ? localmem_has(&m, stale->off, stale->len, &has, e) : 0;

	/* Of what is not here any more the replica keeps what it has. */
	if (!rc && has < stale->len)
		return err_set(e, REPL_E_LIMIT, "a journal of bytes that the pool has lost");
	return rc ? rc : resync_put(r, stale->off, stale->len, e);
}

int
resync_kept_stage(struct resync_run *r, struct err *e)
{
	struct resync_kept *k = r->kept;
	struct range run = {0};
	int rc = 0;

	while (!rc && dirtymap_next(k->stale, run.off + run.len, RESYNC_CHUNK, &run))
		rc = stale_stage(r, &run, e);
	if (rc)
		return rc;
	atomic_fetch_add(&r->s->progress->done, k->saves + k->again);
	dirtymap_merge(k->equal, k->stale, 0, UINT64_MAX);
	dirtymap_free(k->stale);
	k->stale = NULL;
	return 0;
}

uint64_t
resync_kept_left(const struct resync_run *r)
{
	uint64_t want = dirtymap_bytes(r->want), told = r->kept->saves + r->kept->again;

	return want > told ? want - told : 0;
}

bool
resync_kept_lacks(const struct resync_run *r, uint64_t off, uint64_t len, struct range *lacks)
{
	uint64_t end = off + len;
	struct range has;

	while (off < end) {
		bool any = dirtymap_next_below(r->kept->equal, off, end, &has);

		if (!any || has.off > off) {
			*lacks = (struct range){.off = off, .len = (any ? has.off : end) - off};
			return true;
		}
		off = has.off + has.len;
	}
	return false;
}
