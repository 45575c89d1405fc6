/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checksum.h"
#include "clock.h"
#include "control.h"
#include "extents.h"
#include "lane.h"
#include "spin.h"

#define SEGMENT        (16U << 20) /* compared, then moved, as one step */
#define SEGMENT_BLOCKS (SEGMENT / TRANSFER_BLOCK)
#define SKIP_MAX       32U /* segments moved without comparing while all differ */
#define PULL_WINDOW    8U  /* reads in flight */
#define PULL_CHUNK     (1U << 20)
#define DIFFER_GRAIN   64U

/* The local side: memory, or a file that is read as it is needed. */
struct source {
	const uint8_t *mem;
	int fd;
	uint8_t *buf; /* SEGMENT bytes, for fd */
};

/*
 * Which segments are to be looked at: the others are holes on both sides.
 * NULL: all of them.
 */
struct seek {
	uint8_t *map;      /* a bit a segment */
	struct extents at; /* of the local file */
	int fd;            /* opened for that, or -1 */
};

struct walk {
	const struct transfer *t;
	struct source src;
	struct seek seek;
	uint64_t size;
	struct transfer_progress *sum;
	bool compare_only;
	uint64_t at;       /* start of the segment in hand */
	uint64_t heard_ns; /* when the target was last asked something */
	bool posted;       /* a hash request for posted_at is on its way */
	uint64_t posted_at;
	int64_t posted_id;
	unsigned skip, skip_left; /* segments to move unseen: stretch and rest */
	uint8_t local[SEGMENT_BLOCKS][HASH128_SIZE];
	uint8_t remote[SEGMENT_BLOCKS][HASH128_SIZE];
	bool differs[SEGMENT_BLOCKS];
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

static int
transfer_tell(const struct transfer *t, const struct transfer_progress *p, struct err *e)
{
	if (t->deadline_ns && clock_now_ns() >= t->deadline_ns)
		return err_set(e, REPL_E_TIMEOUT, "copying the pool took longer than allowed");
	if (t->progress && t->progress(t->arg, p))
		return err_set(e, REPL_E_FAILED, "interrupted");
	return 0;
}

/* ---- hashes ---- */

static int
hash_post(struct walk *w, uint64_t off, struct err *e)
{
	struct json_object *params = json_object_new_object();
	uint64_t len = min_u64(SEGMENT, w->size - off);
	uint64_t count = (len + TRANSFER_BLOCK - 1) / TRANSFER_BLOCK;
	int rc;

	json_object_object_add(params, "off", json_object_new_int64((int64_t)off));
	json_object_object_add(params, "block", json_object_new_int64(TRANSFER_BLOCK));
	json_object_object_add(params, "count", json_object_new_int64((int64_t)count));
	rc = remote_post(w->t->remote, "pool.hash", params, &w->posted_id, e);
	w->posted = rc == 0;
	w->posted_at = off;
	w->heard_ns = clock_now_ns();
	return rc;
}

static int
hash_take(struct walk *w, unsigned blocks, struct err *e)
{
	struct json_object *result = NULL;
	const char *text;
	int rc = remote_take(w->t->remote, w->posted_id, &result, e);

	w->posted = false;
	if (!rc)
		rc = control_get_text(result, "hashes", CONTROL_LINE_MAX, &text, e);
	if (!rc && (strlen(text) != (size_t)blocks * HASH128_SIZE * 2 ||
		    !hex_decode(text, strlen(text), w->remote[0], (size_t)blocks * HASH128_SIZE)))
		rc = err_set(e, REPL_E_PROTOCOL, "pool.hash: bad answer");
	json_object_put(result);
	return rc;
}

static int
source_read(const struct walk *w, uint64_t off, uint64_t len, struct err *e)
{
	uint64_t done = 0;
	ssize_t n;

	while (done < len) {
		n = pread(w->src.fd, w->src.buf + done, len - done, (off_t)(off + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, REPL_E_IO, errno, "reading the local file");
		if (n == 0)
			return err_set(e, REPL_E_IO, "the local file became shorter");
		done += (uint64_t)n;
	}
	return 0;
}

static int
hash_local(struct walk *w, uint64_t len, struct err *e)
{
	const uint8_t *p = w->src.mem ? w->src.mem + w->at : w->src.buf;
	int rc = w->src.mem ? 0 : source_read(w, w->at, len, e);

	for (uint64_t at = 0; !rc && at < len; at += TRANSFER_BLOCK) {
		uint64_t n = min_u64(TRANSFER_BLOCK, len - at);

		/* On tmpfs already reading a hole takes memory. */
		if (extents_hole(&w->seek.at, w->at + at, n))
			extents_hash_zeros(n, w->local[at / TRANSFER_BLOCK]);
		else
			hash128(p + at, n, w->local[at / TRANSFER_BLOCK]);
	}
	return rc;
}

/* ---- holes ---- */

static void
seek_mark(struct walk *w, struct range data)
{
	uint64_t end = data.off + data.len;

	for (uint64_t at = data.off - data.off % SEGMENT; at < end; at += SEGMENT)
		w->seek.map[at / SEGMENT / 8] |= (uint8_t)(1U << at / SEGMENT % 8);
}

static int
seek_row(struct walk *w, struct json_object *row, struct err *e)
{
	int64_t off = -1, len = -1;

	if (json_object_is_type(row, json_type_array) && json_object_array_length(row) == 2) {
		off = json_object_get_int64(json_object_array_get_idx(row, 0));
		len = json_object_get_int64(json_object_array_get_idx(row, 1));
	}
	if (off < 0 || len <= 0 || (uint64_t)off > w->size ||
	    (uint64_t)len > w->size - (uint64_t)off)
		return err_set(e, REPL_E_PROTOCOL, "pool.extents: bad answer");
	seek_mark(w, (struct range){.off = (uint64_t)off, .len = (uint64_t)len});
	return 0;
}

/* Where the replica has data, from *off on; *off is where to go on. */
static int
seek_remote(struct walk *w, uint64_t *off, struct err *e)
{
	struct json_object *params = json_object_new_object(), *result = NULL, *rows = NULL;
	uint64_t next = 0;
	int rc;

	json_object_object_add(params, "off", json_object_new_int64((int64_t)*off));
	json_object_object_add(params, "grain", json_object_new_int64(SEGMENT));
	rc = remote_call(w->t->remote, "pool.extents", params, &result, e);
	if (!rc)
		rc = control_get_array(result, "extents", CONTROL_LINE_MAX, &rows, e);
	if (!rc)
		rc = control_get_u64(result, "next", 0, INT64_MAX, &next, e);
	for (size_t i = 0; !rc && i < json_object_array_length(rows); i++)
		rc = seek_row(w, json_object_array_get_idx(rows, i), e);
	/* It could go on for ever. */
	if (!rc && next < w->size && next < *off + SEGMENT)
		rc = err_set(e, REPL_E_PROTOCOL, "pool.extents: does not come to its end");
	*off = next;
	json_object_put(result);
	return rc;
}

/* Without a file whose holes are known there is nothing to gain. */
static int
seek_begin(struct walk *w, struct err *e)
{
	struct range data = {0};
	int rc = 0;

	if (w->src.mem && w->t->file)
		w->seek.fd = open(w->t->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	extents_init(&w->seek.at, w->src.mem ? w->seek.fd : w->src.fd, w->size);
	data = extents_next(w->seek.at.fd, 0, w->size);
	if (data.len == w->size)
		return 0;
	w->seek.map = calloc(1, w->size / SEGMENT / 8 + 1);
	if (!w->seek.map)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	while (data.len) {
		seek_mark(w, data);
		data = extents_next(w->seek.at.fd, data.off + data.len, w->size);
	}
	for (uint64_t off = 0; !rc && off < w->size;) {
		rc = seek_remote(w, &off, e);
		if (!rc)
			rc = transfer_tell(w->t, w->sum, e);
	}
	return rc;
}

static void
seek_end(struct walk *w)
{
	free(w->seek.map);
	if (w->seek.fd >= 0)
		(void)close(w->seek.fd);
}

/* The first segment from at on that is to be looked at; the size if none is. */
static uint64_t
seek_segment(const struct walk *w, uint64_t at)
{
	while (w->seek.map && at < w->size) {
		uint8_t bits = w->seek.map[at / SEGMENT / 8];

		if (bits >> at / SEGMENT % 8 & 1)
			break;
		at += bits ? SEGMENT : (8 - at / SEGMENT % 8) * (uint64_t)SEGMENT;
	}
	return min_u64(at, w->size);
}

/*
 * The next segment that must be compared after the one in hand; the size if
 * none. Its request goes out early, so that both sides hash at the same time.
 */
static uint64_t
walk_next_compared(const struct walk *w)
{
	return w->skip_left ? w->size : seek_segment(w, w->at + SEGMENT);
}

/* Fill differs[] for the segment in hand. */
static int
walk_compare(struct walk *w, uint64_t len, struct err *e)
{
	unsigned blocks = (unsigned)((len + TRANSFER_BLOCK - 1) / TRANSFER_BLOCK);
	unsigned count = 0;
	int rc = 0;

	if (!w->posted)
		rc = hash_post(w, w->at, e);
	if (!rc)
		rc = hash_local(w, len, e);
	if (!rc)
		rc = hash_take(w, blocks, e);
	if (rc)
		return rc;
	for (unsigned i = 0; i < blocks; i++) {
		w->differs[i] = memcmp(w->local[i], w->remote[i], HASH128_SIZE) != 0;
		count += w->differs[i];
	}
	/* All differ: believe it for a while, for twice as long each time. */
	if (!w->compare_only && count == blocks)
		w->skip = w->skip == 0 ? 1 : w->skip < SKIP_MAX ? w->skip * 2 : SKIP_MAX;
	else
		w->skip = 0;
	w->skip_left = w->skip;
	if (walk_next_compared(w) < w->size)
		rc = hash_post(w, walk_next_compared(w), e);
	return rc;
}

/* Decide what of the segment in hand must move. */
static int
walk_segment(struct walk *w, uint64_t len, struct err *e)
{
	if (w->skip_left == 0)
		return walk_compare(w, len, e);
	w->skip_left--;
	memset(w->differs, 1, sizeof(w->differs));
	return 0;
}

/* The next run of differing blocks from *off on, below end; false if none. */
static bool
walk_run(const struct walk *w, uint64_t end, uint64_t *off, uint64_t *len)
{
	uint64_t at = *off, from;

	while (at < end && !w->differs[(at - w->at) / TRANSFER_BLOCK])
		at += TRANSFER_BLOCK;
	if (at >= end)
		return false;
	from = at;
	while (at < end && w->differs[(at - w->at) / TRANSFER_BLOCK])
		at += TRANSFER_BLOCK;
	*off = from;
	*len = min_u64(at, end) - from;
	return true;
}

/* Where long stretches go without hashes, the target must not take it for silence. */
static int
walk_keep_alive(struct walk *w, struct err *e)
{
	uint64_t beat_ns = (uint64_t)remote_heartbeat_ms(w->t->remote) * NS_PER_MS;

	if (w->posted || clock_now_ns() - w->heard_ns < beat_ns)
		return 0;
	w->heard_ns = clock_now_ns();
	return remote_call(w->t->remote, "ping", NULL, NULL, e);
}

typedef int (*move_fn)(struct walk *w, void *mover, uint64_t off, uint64_t len, struct err *e);

/* Walk the whole range; move() for every run that differs. */
static int
walk_all(struct walk *w, move_fn move, int (*settle)(void *mover, struct err *e), void *mover,
	 struct err *e)
{
	int rc = seek_begin(w, e);

	for (w->at = seek_segment(w, 0); !rc && w->at < w->size;
	     w->at = seek_segment(w, w->at + SEGMENT)) {
		uint64_t end = w->at + min_u64(SEGMENT, w->size - w->at);
		uint64_t off = w->at, len;

		rc = walk_segment(w, end - w->at, e);
		while (!rc && walk_run(w, end, &off, &len)) {
			rc = move(w, mover, off, len, e);
			w->sum->moved += len;
			off += len;
		}
		if (!rc && settle)
			rc = settle(mover, e);
		w->sum->done = end;
		if (!rc)
			rc = transfer_tell(w->t, w->sum, e);
		if (!rc)
			rc = walk_keep_alive(w, e);
	}
	if (!rc)
		w->sum->done = w->size;
	/* An answer that nobody took would be in the way of the next request. */
	if (w->posted)
		(void)remote_take(w->t->remote, w->posted_id, NULL, NULL);
	seek_end(w);
	return rc;
}

static int
walk_new(const struct transfer *t, uint64_t size, struct transfer_progress *sum, struct walk **out,
	 struct err *e)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return err_set(e, REPL_E_NOMEM, "out of memory");
	memset(sum, 0, sizeof(*sum));
	sum->total = size;
	(*out)->t = t;
	(*out)->size = size;
	(*out)->sum = sum;
	(*out)->src.fd = -1;
	(*out)->seek.fd = -1;
	return 0;
}

/* ---- push ---- */

struct push {
	const struct transfer *t;
	struct lane *lane;
};

static int
push_run(struct push *p, bool (*until)(const struct lane *), struct err *e)
{
	/* A slow link may take its time for a segment, a dead one may not. */
	lane_run_while_moving(p->lane, until,
			      (uint64_t)remote_op_timeout_ms(p->t->remote) * NS_PER_MS);
	if (p->lane->status)
		return err_set(e, p->lane->status, "data lane: %s", p->lane->why);
	return 0;
}

static int
push_drain(struct push *p, bool (*until)(const struct lane *), struct err *e)
{
	lane_begin(p->lane, LANE_SETTLE, 0, 0);
	return push_run(p, until, e);
}

static int
push_move(struct walk *w, void *mover, uint64_t off, uint64_t len, struct err *e)
{
	struct push *p = mover;
	int rc = push_run(p, lane_done, e);

	(void)w;
	while (!rc && lane_flush(p->lane, off, len) < 0)
		rc = push_drain(p, lane_done, e);
	return rc;
}

/* A segment is on its way: go on with the next while the target flushes it. */
static int
push_settle(void *mover, struct err *e)
{
	struct push *p = mover;
	int rc = push_run(p, lane_done, e);

	return rc ? rc : push_drain(p, lane_posted, e);
}

int
transfer_push(const struct transfer *t, const void *mem, uint64_t size,
	      struct transfer_progress *sum, struct err *e)
{
	struct push p = {.t = t, .lane = remote_lane(t->remote, t->lane)};
	struct walk *w = NULL;
	int rc = walk_new(t, size, sum, &w, e);

	if (rc)
		return rc;
	w->src.mem = mem;
	lane_bind(p.lane, mem);
	rc = walk_all(w, push_move, push_settle, &p, e);
	if (!rc)
		rc = push_run(&p, lane_done, e);
	free(w);
	return rc;
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
	struct walk *w = NULL;
	int rc = walk_new(t, size, sum, &w, e);

	if (rc)
		return rc;
	w->src.fd = fd;
	w->src.buf = malloc(SEGMENT);
	p.buf = malloc((size_t)PULL_WINDOW * PULL_CHUNK);
	if (!w->src.buf || !p.buf) {
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
		goto out;
	}
	rc = walk_all(w, pull_move, NULL, &p, e);
	while (!rc && p.count)
		rc = pull_finish_one(&p, e);
	/* After a failure as well: what is in flight writes to buf, and serves the next try. */
	while (rc && p.count && pull_finish_one(&p, NULL) == 0)
		;
out:
	free(w->src.buf);
	free(w);
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
	struct walk *w = NULL;
	int rc = walk_new(t, size, sum, &w, e);

	if (rc)
		return rc;
	w->src.mem = mem;
	w->compare_only = true;
	d.block = malloc(TRANSFER_BLOCK);
	if (!d.block)
		rc = err_set(e, REPL_E_NOMEM, "out of memory");
	if (!rc)
		rc = walk_all(w, differ_move, NULL, &d, e);
	if (d.len && d.tell)
		d.tell(t->arg, d.off, d.len);
	/* Beside a writer a block may differ by its hash and be equal when it is read. */
	if (!rc && d.found)
		rc = err_set(e, REPL_E_DIFFER, "local data and replica differ in %llu bytes",
			     (unsigned long long)d.found);
	free(d.block);
	free(w);
	return rc;
}
