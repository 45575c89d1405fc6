/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "extents.h"
#include "hashwalk.h"
#include "holes.h"
#include "lane.h"
#include "pull.h"
#include "push.h"

#define DIFFER_GRAIN 64U

_Static_assert(TRANSFER_BLOCK *HASHWALK_BLOCKS == HOLES_SEGMENT, "a piece is a segment");

struct walk {
	const struct transfer *t;
	struct hashwalk hash;
	struct holes holes;
	int file;  /* what is mapped, or -1: it is read from there, and its holes are known */
	bool fill; /* to read a hole in memory would take space */
	struct transfer_progress *sum;
	int (*move)(struct walk *w, void *mover, uint64_t off, uint64_t len, struct err *e);
	int (*settle)(void *mover, struct err *e);
	void *mover;
	uint64_t heard_ns; /* but for the walk: when the target was last asked something */
};

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
step_deadline(const struct transfer *t)
{
	uint64_t own = clock_deadline(remote_op_timeout_ms(t->remote));

	return t->deadline_ns ? min_u64(own, t->deadline_ns) : own;
}

/* ---- walking ---- */

static int
walk_tell(void *arg, struct err *e)
{
	const struct walk *w = arg;
	const struct transfer *t = w->t;

	if (t->deadline_ns && clock_now_ns() >= t->deadline_ns)
		return err_set(e, REPL_E_TIMEOUT, "copying the pool took longer than allowed");
	if (t->progress && t->progress(t->arg, w->sum))
		return err_set(e, REPL_E_FAILED, "interrupted");
	return 0;
}

/* Callbacks of the walk breathe too: it has the control channel then. */
static int
walk_breathe(void *arg, struct err *e)
{
	struct walk *w = arg;
	uint64_t beat_ns = (uint64_t)remote_heartbeat_ms(w->t->remote) * NS_PER_MS;
	int rc = walk_tell(w, e);

	if (rc)
		return rc;
	if (w->hash.queue)
		return hashwalk_keep_alive(&w->hash, false, e);
	if (clock_now_ns() - w->heard_ns < beat_ns)
		return 0;
	w->heard_ns = clock_now_ns();
	return remote_beat(w->t->remote, e);
}

static struct breath
walk_breath(struct walk *w)
{
	return (struct breath){.take = walk_breathe, .arg = w};
}

static bool
walk_next(void *arg, uint64_t off, uint64_t max, struct range *piece)
{
	const struct walk *w = arg;

	piece->off = holes_next(&w->holes, off);
	piece->len = min_u64(max, w->hash.size - piece->off);
	return piece->len > 0;
}

static int
walk_differ(void *arg, uint64_t off, uint64_t len, struct err *e)
{
	struct walk *w = arg;
	int rc = w->move(w, w->mover, off, len, e);

	w->sum->moved += len;
	return rc;
}

static int
walk_passed(void *arg, const struct range *piece, struct err *e)
{
	struct walk *w = arg;
	int rc = w->settle ? w->settle(w->mover, e) : 0;

	w->sum->done = piece->off + piece->len;
	return rc ? rc : walk_tell(w, e);
}

/* Walk the whole range; move() for every run that differs. */
static int
walk_all(struct walk *w, struct err *e)
{
	int rc;

	if (w->hash.mem) {
		w->file = holes_open(w->t->file, w->hash.mem);
		w->fill = extents_fill(w->file);
		hashwalk_local(&w->hash, w->hash.mem, w->file);
		if (w->t->untouched && w->file >= 0)
			hashwalk_file(&w->hash, w->file);
	}
	w->hash.holes_fd = w->hash.fd;
	rc = holes_find(&w->holes, w->t->remote, w->hash.holes_fd, w->hash.size, e);
	if (!rc)
		rc = hashwalk_run(&w->hash, e);
	if (!rc)
		w->sum->done = w->hash.size;
	w->heard_ns = clock_now_ns();
	holes_fini(&w->holes);
	holes_close(w->file);
	return rc;
}

static void
walk_init(struct walk *w, const struct transfer *t, uint64_t size, struct transfer_progress *sum)
{
	memset(sum, 0, sizeof(*sum));
	sum->total = size;
	*w = (struct walk){
		.t = t,
		.hash = {.remote = t->remote,
			 .file = t->file,
			 .fd = -1,
			 .size = size,
			 .block = TRANSFER_BLOCK,
			 .next = walk_next,
			 .differ = walk_differ,
			 .passed = walk_passed},
		.holes = {.tell = walk_breathe},
		.file = -1,
		.sum = sum,
		.heard_ns = clock_now_ns(),
	};
	w->hash.arg = w->holes.arg = w;
}

/* ---- push ---- */

/* Memory may have no space for its holes. */
static int
walk_touch(const struct walk *w, const uint8_t *mem, uint64_t off, uint64_t len, struct err *e)
{
	return w->fill ? holes_touch(mem, off, len, e) : 0;
}

static int
push_move(struct walk *w, void *mover, uint64_t off, uint64_t len, struct err *e)
{
	const struct push *p = mover;
	int rc = walk_touch(w, p->lane->mem, off, len, e);

	return rc ? rc : push_range(mover, off, len, e);
}

/* A segment is on its way: go on with the next while the target flushes it. */
static int
push_passed(void *mover, struct err *e)
{
	return push_post(mover, e);
}

int
transfer_push(const struct transfer *t, const void *mem, uint64_t size,
	      struct transfer_progress *sum, struct err *e)
{
	const struct fill_source from = {.mem = mem, .file = t->file, .fd = -1};
	struct push p;
	struct walk w;
	int rc;

	walk_init(&w, t, size, sum);
	push_begin(&p, t->remote, t->lane, &from, walk_breath(&w));
	w.hash.mem = mem;
	w.move = push_move;
	w.settle = push_passed;
	w.mover = &p;
	rc = walk_all(&w, e);
	return rc ? rc : push_settle(&p, e);
}

/* ---- pull ---- */

static int
pull_move(struct walk *w, void *mover, uint64_t off, uint64_t len, struct err *e)
{
	(void)w;
	return pull_range(mover, off, len, e);
}

int
transfer_pull(const struct transfer *t, int fd, uint64_t size, struct transfer_progress *sum,
	      struct err *e)
{
	struct pull *p;
	struct walk w;
	int rc;

	walk_init(&w, t, size, sum);
	rc = pull_begin(t->remote, t->lane, fd, t->deadline_ns, walk_breath(&w), &p, e);
	if (rc)
		return rc;
	w.hash.fd = fd;
	w.move = pull_move;
	w.mover = p;
	rc = walk_all(&w, e);
	if (!rc)
		rc = pull_settle(p, e);
	pull_end(p);
	return rc;
}

/* ---- compare ---- */

struct differ {
	const struct transfer *t;
	const uint8_t *mem;
	void (*tell)(void *arg, uint64_t off, uint64_t len);
	uint64_t off, len; /* range being collected; len 0 = none */
	uint64_t found;    /* differing bytes, by the grain */
	uint8_t *block;
};

static void
differ_add(struct differ *d, uint64_t off, uint64_t len)
{
	d->found += len;
	if (d->len && d->off + d->len == off) {
		d->len += len;
		return;
	}
	if (d->len && d->tell)
		d->tell(d->t->arg, d->off, d->len);
	d->off = off;
	d->len = len;
}

static int
differ_move(struct walk *w, void *mover, uint64_t off, uint64_t len, struct err *e)
{
	struct differ *d = mover;
	uint64_t end = off + len;
	int rc = walk_touch(w, d->mem, off, len, e);

	if (rc)
		return rc;
	for (; off < end; off += TRANSFER_BLOCK) {
		uint64_t n = min_u64(TRANSFER_BLOCK, end - off);

		rc = walk_breathe(w, e);
		if (!rc)
			rc = remote_read(d->t->remote, d->t->lane, d->block, off, n,
					 step_deadline(d->t), e);
		if (rc)
			return rc;
		for (uint64_t at = 0; at < n; at += DIFFER_GRAIN) {
			uint64_t grain = min_u64(DIFFER_GRAIN, n - at);

			if (memcmp(d->block + at, d->mem + off + at, grain) != 0)
				differ_add(d, off + at, grain);
		}
	}
	return 0;
}

int
transfer_compare(const struct transfer *t, const void *mem, uint64_t size,
		 void (*differ)(void *arg, uint64_t off, uint64_t len),
		 struct transfer_progress *sum, struct err *e)
{
	struct differ d = {.t = t, .mem = mem, .tell = differ};
	struct walk w;
	int rc;

	walk_init(&w, t, size, sum);
	w.hash.mem = mem;
	w.hash.exact = true;
	w.move = differ_move;
	w.mover = &d;
	d.block = malloc(TRANSFER_BLOCK);
	if (!d.block)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	rc = walk_all(&w, e);
	if (d.len && d.tell)
		d.tell(t->arg, d.off, d.len);
	/* Beside a writer a block may differ by its hash and be equal when it is read. */
	if (!rc && d.found)
		rc = err_set(e, REPL_E_DIFFER, "local data and replica differ in %llu bytes",
			     (unsigned long long)d.found);
	free(d.block);
	return rc;
}
