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
#include "localmem.h"
#include "localread.h"

#define KEPT_PAGE  (1U << DIRTYMAP_SHIFT_MIN)
#define KEPT_AHEAD 16U /* requests under way: a long way is to be filled */

/* Ranges that it tells of one after the other, where each begins at the end of the one before. */
struct kept_run {
	uint64_t off, len;
	bool equal;
};

/* By pages, of each what was told of it last. What it does not bring is in neither map. */
struct resync_kept {
	struct dirtymap *equal; /* all of the page; in the end, of all that it brings */
	struct dirtymap *stale; /* another one, or it was told of in parts: to be staged again */
	uint64_t saves, again;  /* bytes of equal, and of stale, that are wanted */
	struct kept_run run;    /* that is told last, not in the maps; of no bytes: there is none */
	uint8_t *buf;           /* a range of the file */
	int64_t id[KEPT_AHEAD]; /* of requests: a ring */
	uint64_t asked, taken;
	struct stage_kept answer[STAGE_KEPT_MAX];
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
	hash128(k->buf, got, hash);
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

static int
kept_ask(struct resync_run *r, uint64_t ahead, struct err *e)
{
	struct resync_kept *k = r->kept;
	int rc = 0;

	while (!rc && k->asked - k->taken < ahead && k->asked - k->taken < KEPT_AHEAD) {
		rc = remote_journal_kept_ask(r->s->remote, &k->id[k->asked % KEPT_AHEAD], e);
		k->asked += rc == 0;
	}
	return rc;
}

static int
kept_answer(struct resync_run *r, unsigned *count, uint64_t *bytes, bool *more, struct err *e)
{
	struct resync_kept *k = r->kept;

	return remote_journal_kept(r->s->remote, k->id[k->taken++ % KEPT_AHEAD], r->size, k->answer,
				   count, bytes, more, e);
}

static int
kept_take(struct resync_run *r, uint64_t *bytes, bool *more, struct err *e)
{
	struct resync_kept *k = r->kept;
	uint64_t before = *bytes;
	unsigned count;
	int rc = kept_answer(r, &count, bytes, more, e);

	if (!rc && (*bytes < before || (*more && (count == 0 || *bytes == before))))
		rc = err_set(e, REPL_E_PROTOCOL, "journal.kept: does not come to its end");
	if (!rc && *bytes > remote_journal_max(r->s->remote))
		rc = err_set(e, REPL_E_LIMIT, "a journal of more than journal-max");
	for (unsigned i = 0; !rc && i < count; i++)
		rc = kept_compare(r, &k->answer[i], e);
	if (!rc)
		rc = kept_check_use(k, dirtymap_bytes(r->want), e);
	r->heard_ns = clock_now_ns();
	return rc ? rc : resync_breathe(r, e);
}

/* To its end; what was asked for behind it would be in the way of the next request. */
static int
kept_look(struct resync_run *r, uint64_t ahead, uint64_t *bytes, struct err *e)
{
	struct resync_kept *k = r->kept;
	bool more = true, ignored;
	uint64_t behind;
	unsigned count;
	int rc = 0;

	while (!rc && more) {
		rc = kept_ask(r, ahead, e);
		if (!rc)
			rc = kept_take(r, bytes, &more, e);
	}
	while (k->taken < k->asked)
		(void)kept_answer(r, &count, &behind, &ignored, NULL);
	return rc;
}

/* What is equal is taken to be marked here: where it is not more room is asked for later. */
static int
kept_reserve(struct resync_run *r, uint64_t bytes, struct err *e)
{
	uint64_t equal = dirtymap_bytes(r->kept->equal), left = r->reserved - RESYNC_CHUNK;

	r->reserved = bytes + RESYNC_CHUNK + (left > equal ? left - equal : 0);
	r->staged = bytes;
	atomic_store(&r->s->progress->kept, equal);
	return remote_journal_begin(r->s->remote, r->reserved, e);
}

int
resync_kept_begin(struct resync_run *r, struct err *e)
{
	uint64_t bytes = 0, ahead;
	int rc;

	r->resumed = false;
	if (!r->resumes)
		return remote_journal_begin(r->s->remote, r->reserved, e);
	/* Of a later round it is this run's own. */
	r->resumes = false;
	rc = remote_journal_resume(r->s->remote, r->reserved, &ahead, e);
	r->resumed = !rc && ahead > 0;
	if (!r->resumed)
		return rc;
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
	dirtymap_merge(k->equal, k->stale);
	dirtymap_free(k->stale);
	k->stale = NULL;
	return 0;
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
