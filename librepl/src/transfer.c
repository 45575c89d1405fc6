/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "hashwalk.h"
#include "holes.h"
#include "lane.h"
#include "push.h"
#include "spin.h"

#define PULL_WINDOW  8U /* reads in flight */
#define PULL_CHUNK   (1U << 20)
#define DIFFER_GRAIN 64U

_Static_assert(TRANSFER_BLOCK *HASHWALK_BLOCKS == HOLES_SEGMENT, "a piece is a segment");

struct walk {
	const struct transfer *t;
	struct hashwalk hash;
	struct holes holes;
	int file; /* opened for its holes, or -1 */
	struct transfer_progress *sum;
	int (*move)(struct walk *w, void *mover, uint64_t off, uint64_t len, struct err *e);
	int (*settle)(void *mover, struct err *e);
	void *mover;
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

	if (w->hash.mem && w->t->file)
		w->file = open(w->t->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	w->hash.holes_fd = w->hash.mem ? w->file : w->hash.fd;
	rc = holes_find(&w->holes, w->t->remote, w->hash.holes_fd, w->hash.size, e);
	if (!rc)
		rc = hashwalk_run(&w->hash, e);
	if (!rc)
		w->sum->done = w->hash.size;
	holes_fini(&w->holes);
	if (w->file >= 0)
		(void)close(w->file);
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
			 .fd = -1,
			 .size = size,
			 .block = TRANSFER_BLOCK,
			 .next = walk_next,
			 .differ = walk_differ,
			 .passed = walk_passed},
		.holes = {.tell = walk_tell},
		.file = -1,
		.sum = sum,
	};
	w->hash.arg = w->holes.arg = w;
}

/* ---- push ---- */

static int
push_move(struct walk *w, void *mover, uint64_t off, uint64_t len, struct err *e)
{
	(void)w;
	return push_range(mover, off, len, e);
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
	struct push p;
	struct walk w;
	int rc;

	walk_init(&w, t, size, sum);
	push_begin(&p, t->remote, t->lane, mem);
	w.hash.mem = mem;
	w.move = push_move;
	w.settle = push_passed;
	w.mover = &p;
	rc = walk_all(&w, e);
	return rc ? rc : push_settle(&p, e);
}

/* ---- pull ---- */

struct pull {
	const struct transfer *t;
	struct fab_lane *fab;
	int fd;
	uint8_t *buf; /* PULL_WINDOW chunks */
	struct {
		uint64_t off, len;
	} flight[PULL_WINDOW];
	unsigned head, count; /* oldest in flight; how many */
};

static int
pull_write(const struct pull *p, const uint8_t *data, uint64_t off, uint64_t len, struct err *e)
{
	uint64_t done = 0;
	ssize_t n;

	while (done < len) {
		n = pwrite(p->fd, data + done, len - done, (off_t)(off + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_errno(e, err_from_errno(errno), errno,
					 "writing %llu bytes to the local file",
					 (unsigned long long)len);
		done += (uint64_t)n;
	}
	return 0;
}

/* Wait for the oldest read and write it out: reads of a lane complete in their order. */
static int
pull_finish_one(struct pull *p, struct err *e)
{
	uint64_t deadline_ns = step_deadline(p->t);
	struct spin spin = {0};
	struct fab_event ev;
	unsigned slot = p->head;

	for (;;) {
		fab_lane_poll(p->fab, &ev);
		if (ev.type == FAB_READ)
			break;
		/* One after the other would keep the deadline away. */
		if (ev.type == FAB_RECV)
			return err_set(e, REPL_E_PROTOCOL, "data lane: a message not asked for");
		if (ev.type != FAB_NONE)
			return err_set(e, REPL_E_LOST, "data lane: %s", ev.text);
		if (spin_again(&spin))
			continue;
		if (clock_now_ns() >= deadline_ns)
			return err_set(e, REPL_E_TIMEOUT, "the target did not send data");
		fab_lanes_wait(&p->fab, 1, -1, deadline_ns);
	}
	p->head = (p->head + 1) % PULL_WINDOW;
	p->count--;
	return pull_write(p, p->buf + (size_t)slot * PULL_CHUNK, p->flight[slot].off,
			  p->flight[slot].len, e);
}

/* Where the pool is out of RMA's reach: one after the other. */
static int
pull_window(struct pull *p, uint64_t off, uint64_t len, struct err *e)
{
	int rc = 0;

	for (uint64_t n; !rc && len > 0; off += n, len -= n) {
		n = min_u64(len, PULL_CHUNK);
		rc = remote_read(p->t->remote, p->t->lane, p->buf, off, n, step_deadline(p->t), e);
		if (!rc)
			rc = pull_write(p, p->buf, off, n, e);
	}
	return rc;
}

/* Reads in flight come first: their ends are not for the lane to see. */
static int
pull_region(struct pull *p, uint64_t off, struct err *e)
{
	struct lane *lane = remote_lane(p->t->remote, p->t->lane);
	int rc = 0;

	if (regions_is_ready(lane->regions, regions_find(lane->regions, off)))
		return 0;
	while (!rc && p->count)
		rc = pull_finish_one(p, e);
	if (rc)
		return rc;
	lane_register(lane, off);
	lanes_run(&lane, 1, lane_done, step_deadline(p->t));
	return lane->status ? err_set(e, lane->status, "data lane: %s", lane->why) : 0;
}

static int
pull_move(struct walk *w, void *mover, uint64_t off, uint64_t len, struct err *e)
{
	struct pull *p = mover;
	uint64_t end = off + len;
	int rc = 0;

	(void)w;
	if (remote_lane(p->t->remote, p->t->lane)->window)
		return pull_window(p, off, len, e);
	while (!rc && off < end) {
		uint64_t n = lane_rma_len(remote_lane(p->t->remote, p->t->lane), off, end - off);
		unsigned slot;

		if (p->count == PULL_WINDOW) {
			rc = pull_finish_one(p, e);
			continue;
		}
		rc = n ? pull_region(p, off, e)
		       : err_set(e, REPL_E_INVAL, "the replica is smaller than the local file");
		if (rc)
			break;
		slot = (p->head + p->count) % PULL_WINDOW;
		p->flight[slot].off = off;
		p->flight[slot].len = n;
		rc = fab_lane_read(p->fab, p->buf + (size_t)slot * PULL_CHUNK, n, off, e);
		if (!rc)
			p->count++;
		off += n;
	}
	return rc;
}

int
transfer_pull(const struct transfer *t, int fd, uint64_t size, struct transfer_progress *sum,
	      struct err *e)
{
	struct pull p = {.t = t, .fab = remote_lane(t->remote, t->lane)->fab, .fd = fd};
	struct walk w;
	int rc;

	walk_init(&w, t, size, sum);
	w.hash.fd = fd;
	w.move = pull_move;
	w.mover = &p;
	p.buf = malloc((size_t)PULL_WINDOW * PULL_CHUNK);
	if (!p.buf)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	rc = walk_all(&w, e);
	while (!rc && p.count)
		rc = pull_finish_one(&p, e);
	/* After a failure as well: what is in flight writes to buf, and serves the next try. */
	while (rc && p.count && pull_finish_one(&p, NULL) == 0)
		;
	free(p.buf);
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

	(void)w;
	for (; off < end; off += TRANSFER_BLOCK) {
		uint64_t n = min_u64(TRANSFER_BLOCK, end - off);
		int rc = remote_read(d->t->remote, d->t->lane, d->block, off, n,
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
