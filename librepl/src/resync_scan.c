/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is to be copied, found without the map's help. First all is marked, so
 * that whoever interrupts leaves a map that tells at least what is missing; all
 * that is a batch, which goes as far as the part of it that counts has been marked
 * anew. What the application marks meanwhile is marked beside it.
 */
#include "resync_impl.h"

#include <fcntl.h>

#include "clock.h"
#include "extents.h"
#include "holes.h"

/* A piece is a segment. */
#define SCAN_BLOCK (HOLES_SEGMENT / HASHWALK_BLOCKS)

struct scan {
	struct resync_run *r;
	uint64_t upto; /* it has come to */
	struct holes holes;
};

static void
scan_mark(struct scan *c, uint64_t off, uint64_t len)
{
	dirty_mark(c->r->s->dirty, c->r->s->replica, off, len);
}

static uint64_t
local_size(const struct resync_run *r)
{
	const struct resync_host *h = &r->s->host;

	return h->size ? h->size(h->arg) : remote_info(r->s->remote)->meta.pool_size;
}

int
resync_mark_all(struct resync_run *r, struct err *e)
{
	const struct resync *s = r->s;
	uint64_t off = r->from, size = local_size(r);
	int rc = 0;

	for (; !rc && off < size && size - off > RESYNC_LOOK; off += RESYNC_LOOK) {
		dirty_mark(s->dirty, s->replica, off, RESYNC_LOOK);
		rc = resync_breathe(r, e);
	}
	dirty_mark(s->dirty, s->replica, off, UINT64_MAX - off);
	return rc;
}

/* What is equal is done; what is not is still to be done. */
static void
scan_progress(struct scan *c, uint64_t upto)
{
	struct resync_progress *p = c->r->s->progress;
	uint64_t left = resync_left(c->r) + c->r->size - upto;

	atomic_store(&p->done, left < c->r->size ? c->r->size - left : 0);
}

static int
scan_tell(void *arg, struct err *e)
{
	struct scan *c = arg;

	return resync_breathe(c->r, e);
}

static bool
scan_next(void *arg, uint64_t off, uint64_t max, struct range *piece)
{
	struct scan *c = arg;

	piece->off = holes_next(&c->holes, off > c->r->from ? off : c->r->from);
	piece->len = c->r->size - piece->off;
	if (piece->len > max)
		piece->len = max;
	return piece->len > 0;
}

static int
scan_differ(void *arg, uint64_t off, uint64_t len, struct err *e)
{
	(void)e;
	scan_mark(arg, off, len);
	return 0;
}

static int
scan_passed(void *arg, const struct range *piece, struct err *e)
{
	struct scan *c = arg;
	int rc;

	c->upto = piece->off + piece->len;
	scan_progress(c, c->upto);
	rc = resync_breathe(c->r, e);
	/* Hashes cost the application's memory, not its link: no bytes are counted. */
	return rc ? rc : resync_yield(c->r, 0, e);
}

static int
scan_hashes(struct scan *c, int fd, struct err *e)
{
	struct resync_run *r = c->r;
	struct hashwalk w = {.remote = r->s->remote,
			     .file = r->s->file,
			     .shrinks = true,
			     .size = r->size,
			     .block = SCAN_BLOCK,
			     .arg = c,
			     .next = scan_next,
			     .differ = scan_differ,
			     .passed = scan_passed};
	int rc;

	hashwalk_local(&w, r->s->mem, fd);
	if (r->source.fd >= 0)
		hashwalk_file(&w, r->source.fd);
	c->holes.tell = scan_tell;
	c->holes.arg = c;
	rc = holes_find(&c->holes, r->s->remote, fd, r->size, e);
	r->heard_ns = clock_now_ns();
	if (!rc) {
		r->walk = &w;
		rc = hashwalk_run(&w, e);
		r->walk = NULL;
		r->heard_ns = clock_now_ns();
	}
	holes_fini(&c->holes);
	return rc;
}

/*
 * A replica that was never written reads as zeros: so do holes. The end of a run is looked for
 * once: on tmpfs that takes the kernel time in proportion to what lies before it.
 */
static int
scan_data(struct scan *c, int fd, struct err *e)
{
	struct range data = extents_next(fd, 0, c->r->size);
	uint64_t at = data.off, end = data.off + data.len, len;
	int rc = 0;

	while (!rc && data.len) {
		len = end - at < RESYNC_LOOK ? end - at : RESYNC_LOOK;
		scan_mark(c, at, len);
		at += len;
		scan_progress(c, at);
		rc = resync_breathe(c->r, e);
		if (at < end)
			continue;
		data = extents_next(fd, end, c->r->size);
		at = data.off;
		end = data.off + data.len;
	}
	return rc;
}

/*
 * However it ends: what is compared need not be compared again. Where the replica is no prefix that
 * is of no generation: one that is may come to be in its place.
 */
static void
scan_settle(const struct scan *c, bool whole)
{
	static const struct gen_id none = {0};
	const struct resync *s = c->r->s;
	const struct gen_id *of = &remote_info(s->remote)->meta.generation.current;
	uint64_t upto = whole ? c->r->size : c->upto;

	/* Whole segments, so of whole blocks. */
	dirty_batch_compared(s->dirty, s->replica, c->r->blank ? &none : of,
			     upto - upto % HOLES_SEGMENT, whole);
}

static int
scan_take(struct scan *c, struct err *e)
{
	const struct resync *s = c->r->s;
	struct range run = {.off = c->r->from};
	struct err why;
	int rc = 0;

	err_clear(&why);
	while (!rc && dirty_take(s->dirty, s->replica, run.off + run.len, UINT64_MAX, RESYNC_LOOK,
				 &run, &why))
		rc = resync_breathe(c->r, e);
	return why.code ? err_copy(e, &why) : rc;
}

int
resync_scan(struct resync_run *r, enum resync_what what, struct err *e)
{
	struct scan c = {.r = r, .upto = r->from};
	struct resync *s = r->s;
	int fd = -1, rc;

	atomic_store(&s->progress->total, r->size);
	rc = scan_take(&c, e);
	/* Only now, so that a hole that is written from here on is marked again. */
	if (!rc) {
		fd = holes_open(s->file, s->mem);
		rc = what == RESYNC_FULL ? scan_data(&c, fd, e) : scan_hashes(&c, fd, e);
	}
	if (!rc)
		scan_progress(&c, r->size);
	/* The pool may have grown since the round began: what is behind is not looked at. */
	dirty_mark(s->dirty, s->replica, r->size, UINT64_MAX - r->size);
	if (what == RESYNC_HASHES)
		scan_settle(&c, rc == 0);
	else
		dirty_batch_end(s->dirty, s->replica, rc == 0);
	holes_close(fd);
	return rc;
}
