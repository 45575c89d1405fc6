/* SPDX-License-Identifier: BSD-3-Clause */
#include "roundlog.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "filesystem.h"
#include "log.h"
#include "space.h"

#define IDLE_NS    NS_PER_S
#define LOOK_BACK  8U                /* ranges: what is stored again and again is noted once */
#define RESERVED   (3 * ROUND_BLOCK) /* of each half: see frame_empty() */
#define HALF_COUNT 2U

/*
 * The thread syncs in the pool piece by piece, of so many pages, since a frame's write waits for
 * what the device is busy with; larger ones where the log fills faster, or somebody waits for the
 * end of it.
 */
#define PIECE_PAGES       16U
#define PIECE_PAGES_LARGE 128U

struct half {
	struct range *ranges; /* stored, that its frames bring, and not synced in the pool */
	size_t count;
	uint64_t last; /* sequence of its last frame; 0: none */
};

struct roundlog {
	pthread_mutex_t lock; /* guards all of it but what is said to be the thread's */
	pthread_cond_t changed;
	struct pmem_map *map; /* of the sidecar up to the log's end */
	struct pmem_map *pool;
	int fd; /* the map's own, so that the kernel tells it each error */
	uint64_t off;
	struct round_header header;
	unsigned now;          /* the half that takes frames */
	uint64_t at;           /* where the next one begins in it */
	uint64_t seq;          /* of the last one */
	uint64_t from;         /* frames below bring nothing that the pool's media lack */
	uint64_t from_durable; /* the same, as the last frame says */
	uint64_t storing;      /* the last frame with messages, while they are not stored; or 0 */
	uint64_t position;     /* the highest that a frame has told; 0: none has */
	struct half half[HALF_COUNT];
	bool retiring;        /* the other half is the thread's */
	size_t begun;         /* ... and of its ranges so many are synced, or in this moment */
	bool hurry;           /* ... and is waited for */
	uint64_t turn, turns; /* of syncs in the pool without the lock: whose it is, asked for */
	unsigned waiting;     /* for a turn, the next piece, or the end of all */
	bool stop;
	int failed;
	uint8_t *frame;        /* that is written next: ROUND_FRAME_MAX bytes */
	struct range *retired; /* the thread's */
	pthread_t thread;
	bool thread_started;
};

/* ---- frames; with the lock ---- */

static int
log_fail(struct roundlog *l, int rc, const struct err *e)
{
	if (rc && !l->failed) {
		if (e)
			log_error("round log: %s", e->text);
		l->failed = rc;
	}
	return rc;
}

static uint64_t
frame_off(const struct roundlog *l, uint64_t at)
{
	return l->off + REGION_PAGE + l->now * l->header.half + at;
}

/*
 * Behind the head come the frame's messages already. Whole blocks are written, so that
 * none has to be read first.
 */
static int
frame_end(struct roundlog *l, struct round_frame *f, struct err *e)
{
	size_t len = ROUND_HEAD_SIZE + (size_t)f->bytes;
	size_t blocks = (len + ROUND_BLOCK - 1) / ROUND_BLOCK * ROUND_BLOCK;
	int rc;

	f->seq = l->seq + 1;
	f->from = l->from;
	round_head_encode(f, l->header.key, l->frame);
	memset(l->frame + len, 0, blocks - len);
	rc = pmem_map_write(l->map, frame_off(l, l->at), l->frame, blocks, e);
	if (rc)
		return log_fail(l, rc, e);
	l->seq = f->seq;
	l->from_durable = f->from;
	l->half[l->now].last = f->seq;
	l->at += blocks;
	return 0;
}

/*
 * One that brings nothing. It tells the position, since by a higher from the frames that did so
 * before count no more.
 *
 * One for each higher from: behind a half's last other frame there are three at most. When
 * the other half is retired, when that frame is not stored yet and is to go on counting, and later.
 */
static int
frame_empty(struct roundlog *l, struct err *e)
{
	struct wire_entry tell = {.off = l->position, .op = WIRE_OP_POSITION};
	uint8_t *msg = l->frame + ROUND_HEAD_SIZE;
	struct round_frame f = {0};
	struct wire_commit c;

	if (l->position > 0) {
		wire_commit_begin(&c, msg, ROUND_BLOCK - ROUND_HEAD_SIZE, 1);
		wire_commit_add(&c, &tell, NULL);
		f.bytes = (uint32_t)wire_commit_end(&c, 0, l->header.epoch);
		f.chain = wire_stage_chain(0, msg);
		f.count = 1;
	}
	return frame_end(l, &f, e);
}

static void
retiring_wait(struct roundlog *l)
{
	while (l->retiring && !l->failed) {
		l->hurry = true;
		(void)pthread_cond_wait(&l->changed, &l->lock);
	}
}

static int
failed_check(const struct roundlog *l, struct err *e)
{
	if (!l->failed)
		return 0;
	return err_set(e, l->failed, "what the round log brings could not be synced");
}

static void
turn_wait(struct roundlog *l)
{
	l->waiting++;
	(void)pthread_cond_wait(&l->changed, &l->lock);
	l->waiting--;
}

/*
 * Sync in the pool, without the lock. One at a time, in the order in which they come: the kernel
 * tells an error once, and by what that sync has lost no frame may stop counting.
 */
static int
pool_sync(struct roundlog *l, struct range *r, size_t count, struct err *e)
{
	uint64_t turn = l->turns++;
	int rc;

	while (l->turn != turn && !l->failed)
		turn_wait(l);
	rc = failed_check(l, e);
	if (rc)
		return rc;
	pthread_mutex_unlock(&l->lock);
	rc = pmem_map_persist(l->pool, r, count, e);
	pthread_mutex_lock(&l->lock);
	l->turn++;
	rc = log_fail(l, rc, e);
	/* The thread waits for frames all the time: nobody wakes it for each sync. */
	if (l->waiting > 0 || rc)
		(void)pthread_cond_broadcast(&l->changed);
	/* Another one may have failed meanwhile, and been told what this one has lost. */
	return rc ? rc : failed_check(l, e);
}

/* Frames go to the other half, of which none counts any more, and the thread gets this one. */
static int
half_switch(struct roundlog *l, struct err *e)
{
	int rc;

	retiring_wait(l);
	rc = failed_check(l, e);
	if (rc)
		return rc;
	l->now = !l->now;
	l->at = 0;
	l->half[l->now].last = 0;
	l->retiring = true;
	l->begun = 0;
	(void)pthread_cond_broadcast(&l->changed);
	return 0;
}

/*
 * Up to its middle a half takes frames at once, from there on as fast as the other one is synced:
 * it is full when that has come to its last piece, so that no frame waits for many.
 */
static bool
half_runs_ahead(const struct roundlog *l)
{
	const struct half *h = &l->half[l->now];
	uint64_t count = l->half[!l->now].count, may = count + l->begun;

	return 2 * l->at * count > (l->header.half - RESERVED) * may ||
	       2 * h->count * count > ROUNDLOG_RANGES_MAX * may;
}

static int
frame_room(struct roundlog *l, size_t len, size_t ranges, struct err *e)
{
	int rc;

	while (l->retiring && !l->failed && half_runs_ahead(l))
		turn_wait(l);
	rc = failed_check(l, e);
	if (rc)
		return rc;
	if (len <= l->header.half - RESERVED && l->at <= l->header.half - RESERVED - len &&
	    ranges <= ROUNDLOG_RANGES_MAX - l->half[l->now].count)
		return 0;
	return half_switch(l, e);
}

static bool
range_holds(const struct range *r, const struct range *in)
{
	return in->off >= r->off && in->off + in->len <= r->off + r->len;
}

static void
range_note(struct half *h, const struct range *r)
{
	size_t from = h->count > LOOK_BACK ? h->count - LOOK_BACK : 0;

	for (size_t i = from; i < h->count; i++)
		if (range_holds(&h->ranges[i], r))
			return;
	h->ranges[h->count++] = *r;
}

static void
message_note(struct half *h, const struct wire_commit_view *v)
{
	for (uint32_t i = 0; i < v->entry_count; i++) {
		struct wire_entry en = wire_commit_entry(v, i);
		struct range r = {.off = en.off, .len = en.len};

		if (en.op == WIRE_OP_COPY || en.op == WIRE_OP_ATOMIC8)
			range_note(h, &r);
	}
}

static void
position_raise(struct roundlog *l, uint64_t position)
{
	if (position > l->position)
		l->position = position;
}

static int
write_locked(struct roundlog *l, const struct wire_commit_view *const *messages, unsigned count,
	     struct err *e)
{
	struct round_frame f = {.count = count};
	size_t len = ROUND_HEAD_SIZE, ranges = 0;
	int rc;

	for (unsigned i = 0; i < count; i++) {
		len += wire_commit_size(messages[i]->entry_count, messages[i]->payload_len);
		ranges += messages[i]->entry_count;
	}
	rc = frame_room(l, len, ranges, e);
	if (rc)
		return rc;
	len = ROUND_HEAD_SIZE;
	for (unsigned i = 0; i < count; i++) {
		size_t size;
		const uint8_t *msg = wire_commit_message(messages[i], &size);

		memcpy(l->frame + len, msg, size);
		f.chain = wire_stage_chain(f.chain, msg);
		len += size;
	}
	f.bytes = (uint32_t)(len - ROUND_HEAD_SIZE);
	rc = frame_end(l, &f, e);
	if (rc)
		return rc;
	l->storing = f.seq;
	for (unsigned i = 0; i < count; i++)
		position_raise(l, round_position(messages[i]));
	return 0;
}

int
roundlog_write(struct roundlog *l, const struct wire_commit_view *const *messages, unsigned count,
	       struct err *e)
{
	int rc;

	pthread_mutex_lock(&l->lock);
	rc = write_locked(l, messages, count, e);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

int
roundlog_position(struct roundlog *l, uint64_t position, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	if (position > l->position) {
		rc = frame_room(l, ROUND_BLOCK, 0, e);
		position_raise(l, position);
		if (!rc)
			rc = frame_empty(l, e);
	}
	pthread_mutex_unlock(&l->lock);
	return rc;
}

void
roundlog_stored(struct roundlog *l, const struct wire_commit_view *const *messages, unsigned count)
{
	pthread_mutex_lock(&l->lock);
	if (l->half[l->now].count == 0)
		(void)pthread_cond_broadcast(&l->changed); /* the thread waits for the first one */
	for (unsigned i = 0; i < count; i++)
		message_note(&l->half[l->now], messages[i]);
	l->storing = 0;
	pthread_mutex_unlock(&l->lock);
}

/* ---- what frames bring becomes durable in the pool; with the lock ---- */

/* A frame that is not stored yet goes on to count. */
static int
half_sync(struct roundlog *l, struct err *e)
{
	struct half *h;
	int rc;

	while ((l->retiring || l->turn != l->turns) && !l->failed) {
		l->hurry |= l->retiring;
		turn_wait(l);
	}
	rc = failed_check(l, e);
	if (rc)
		return rc;
	h = &l->half[l->now];
	rc = pmem_map_persist(l->pool, h->ranges, h->count, e);
	if (rc)
		return log_fail(l, rc, e);
	h->count = 0;
	l->from = l->storing ? l->storing : l->seq + 1;
	return 0;
}

static int
settle_locked(struct roundlog *l, struct err *e)
{
	int rc;

	if (l->half[l->now].count == 0 && !l->retiring && l->from_durable == l->from)
		return 0;
	rc = half_sync(l, e);
	return rc || l->from_durable == l->from ? rc : frame_empty(l, e);
}

int
roundlog_settle(struct roundlog *l, struct err *e)
{
	int rc;

	pthread_mutex_lock(&l->lock);
	rc = settle_locked(l, e);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

/* The first bytes between at and end that frames bring; len 0: none. */
static struct range
range_brought(const struct roundlog *l, uint64_t at, uint64_t end)
{
	struct range first = {.off = end};

	for (unsigned i = 0; i < HALF_COUNT; i++)
		for (size_t k = 0; k < l->half[i].count; k++) {
			const struct range *r = &l->half[i].ranges[k];
			uint64_t from = r->off > at ? r->off : at;
			uint64_t to = r->off + r->len < end ? r->off + r->len : end;

			if (from < to &&
			    (from < first.off || (from == first.off && to - from > first.len)))
				first = (struct range){.off = from, .len = to - from};
		}
	return first;
}

int
roundlog_persist(struct roundlog *l, struct range *r, size_t count, struct err *e)
{
	bool meets = false;
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < count && !meets; i++)
		meets = range_brought(l, r[i].off, r[i].off + r[i].len).len > 0;
	if (meets)
		rc = settle_locked(l, e);
	if (!rc)
		rc = pool_sync(l, r, count, e);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

/* What goes into the log anew, by one message. */
struct again {
	struct range ranges[WIRE_ENTRIES_MAX];
	uint32_t count;
	uint64_t bytes;
};

#define AGAIN_BYTES (ROUND_FRAME_MAX - ROUND_HEAD_SIZE - wire_commit_size(WIRE_ENTRIES_MAX, 0))

/* False if there is no room for a word. */
static bool
again_add(struct again *a, const struct range *r)
{
	struct range *last = a->count > 0 ? &a->ranges[a->count - 1] : NULL;
	uint64_t room = AGAIN_BYTES - a->bytes;
	uint64_t len = r->len, cut;

	if (len > room) {
		cut = (r->off + room) % sizeof(uint64_t);
		len = cut < room ? room - cut : 0;
	}
	if (last && last->off + last->len == r->off)
		last->len += len;
	else if (len > 0 && a->count < WIRE_ENTRIES_MAX)
		a->ranges[a->count++] = (struct range){.off = r->off, .len = len};
	else
		len = 0;
	a->bytes += len;
	return len > 0;
}

/* To whole words, within these: a replay stores none that is half of one time, half of another. */
static void
range_round(struct range *r, uint64_t from, uint64_t end)
{
	const uint64_t word = sizeof(uint64_t);
	uint64_t to = r->off + r->len;

	r->off -= r->off % word;
	r->off = r->off > from ? r->off : from;
	to += (word - to % word) % word;
	r->len = (to < end ? to : end) - r->off;
}

/*
 * From *at of range *i on, which are moved on: what of the ranges frames bring, as far as it fits.
 * One that is wholly among it is as durable as all that frames bring: its len becomes 0.
 */
static void
again_gather(struct again *a, const struct roundlog *l, struct range *r, size_t count, size_t *i,
	     uint64_t *at)
{
	a->count = 0;
	a->bytes = 0;
	for (; *i < count; ++*i, *at = 0) {
		uint64_t end = r[*i].off + r[*i].len;
		struct range next;

		*at = *at > r[*i].off ? *at : r[*i].off;
		while ((next = range_brought(l, *at, end)).len > 0) {
			uint64_t bytes = a->bytes;

			range_round(&next, *at, end);
			if (!again_add(a, &next))
				return;
			*at = next.off + (a->bytes - bytes);
			if (a->bytes - bytes == r[*i].len)
				r[*i].len = 0;
		}
	}
}

/*
 * A frame that brings these as they are in the pool by now. That they are stored before it is
 * durable is no matter: so is all that comes by another way, and what is to come behind it waits.
 */
static int
again_write(struct roundlog *l, const struct again *a, struct err *e)
{
	uint8_t *msg = l->frame + ROUND_HEAD_SIZE;
	size_t size = wire_commit_size(a->count, a->bytes);
	const uint8_t *mem = pmem_map_addr(l->pool);
	struct round_frame f = {.count = 1};
	struct wire_commit c;
	int rc = frame_room(l, ROUND_HEAD_SIZE + size, a->count, e);

	if (rc)
		return rc;
	wire_commit_begin(&c, msg, size, a->count);
	for (uint32_t i = 0; i < a->count; i++) {
		struct wire_entry copy = {.off = a->ranges[i].off,
					  .len = (uint32_t)a->ranges[i].len,
					  .op = WIRE_OP_COPY};

		wire_commit_add(&c, &copy, mem + copy.off);
	}
	f.bytes = (uint32_t)wire_commit_end(&c, 0, l->header.epoch);
	f.chain = wire_stage_chain(0, msg);
	rc = frame_end(l, &f, e);
	if (rc)
		return rc;
	if (l->half[l->now].count == 0)
		(void)pthread_cond_broadcast(&l->changed);
	for (uint32_t i = 0; i < a->count; i++)
		range_note(&l->half[l->now], &a->ranges[i]);
	return 0;
}

/*
 * A replay ends with the frame that is written here, and has to bring no word that earlier ones
 * don't, if a part of it. To retire these first would have all lanes wait for as many pages as have
 * gathered, each of which may be in another place; of the log it takes as much as is brought again.
 */
int
roundlog_flush(struct roundlog *l, struct range *r, size_t count, struct err *e)
{
	size_t left = 0;
	struct again a;
	uint64_t at = 0;
	size_t i = 0;
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	do {
		again_gather(&a, l, r, count, &i, &at);
		if (a.count > 0)
			rc = again_write(l, &a, e);
	} while (!rc && a.count > 0);
	for (i = 0; i < count; i++)
		if (r[i].len > 0)
			r[left++] = r[i];
	if (!rc && left > 0)
		rc = pool_sync(l, r, left, e);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

void
roundlog_fail(struct roundlog *l)
{
	pthread_mutex_lock(&l->lock);
	(void)log_fail(l, REPL_E_IO, NULL);
	(void)pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

/* ---- the thread ---- */

static int
range_compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

/* Whether the half that takes frames fills faster than the other one is synced. */
static bool
retire_lags(const struct roundlog *l, size_t done, size_t count)
{
	const struct half *h = &l->half[l->now];

	return l->hurry || done * l->header.half < l->at * count ||
	       done * (size_t)ROUNDLOG_RANGES_MAX < h->count * count;
}

/* How many of the ranges, which are in order, lie in so many pages; one at least. */
static size_t
piece_count(const struct range *r, size_t count, unsigned pages)
{
	uint64_t next = 0, taken = 0; /* the page behind those that are taken, and their number */
	size_t i = 0;

	for (; i < count; i++) {
		uint64_t first = r[i].off / ROUND_BLOCK;
		uint64_t end = (r[i].off + r[i].len + ROUND_BLOCK - 1) / ROUND_BLOCK;

		if (first < next)
			first = next;
		if (end <= next)
			continue;
		taken += end - first;
		next = end;
		if (i > 0 && taken > pages)
			break;
	}
	return i;
}

/*
 * Frames are written between the pieces. What none counts of is forgotten when a frame on media
 * says so, and not before: until then a replay brings it back, over what came another way. That
 * frame also keeps damage of the last one from looking like a torn one.
 */
static void
half_retire(struct roundlog *l)
{
	struct half *h = &l->half[!l->now];
	size_t count = h->count, done = 0;
	struct err e;
	int rc = 0;

	memcpy(l->retired, h->ranges, count * sizeof(*h->ranges));
	qsort(l->retired, count, sizeof(*l->retired), range_compare);
	err_clear(&e);
	while (!rc && done < count && !l->stop) {
		unsigned pages = retire_lags(l, done, count) ? PIECE_PAGES_LARGE : PIECE_PAGES;
		size_t n = piece_count(l->retired + done, count - done, pages);

		l->begun = done + n;
		rc = pool_sync(l, l->retired + done, n, &e);
		done += n;
	}
	if (!rc && done == count) {
		if (l->from <= h->last)
			l->from = h->last + 1;
		if (l->from_durable == l->from || !frame_empty(l, &e))
			h->count = 0;
	}
	l->retiring = l->hurry = false;
	(void)pthread_cond_broadcast(&l->changed);
}

/* True if frames have come and then none for a while. */
static bool
idle_wait(struct roundlog *l)
{
	uint64_t until = clock_now_ns() + IDLE_NS;
	struct timespec ts = {.tv_sec = (time_t)(until / NS_PER_S),
			      .tv_nsec = (long)(until % NS_PER_S)};
	uint64_t seq = l->seq;

	if (l->half[l->now].count == 0) {
		(void)pthread_cond_wait(&l->changed, &l->lock);
		return false;
	}
	return pthread_cond_timedwait(&l->changed, &l->lock, &ts) == ETIMEDOUT && seq == l->seq &&
	       !l->storing && !l->retiring;
}

static void *
retire_main(void *arg)
{
	struct roundlog *l = arg;
	struct err e;

	err_clear(&e);
	pthread_mutex_lock(&l->lock);
	while (!l->stop) {
		if (l->retiring && !l->failed)
			half_retire(l);
		else if (idle_wait(l) && !l->stop && !l->failed)
			(void)half_switch(l, &e);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static int
thread_start(struct roundlog *l, struct err *e)
{
	sigset_t all, old;
	int ret;

	(void)sigfillset(&all);
	/* A fault in a mapping must reach the handler, so it stays unblocked. */
	(void)sigdelset(&all, SIGBUS);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&l->thread, NULL, retire_main, l);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return err_thread(e, ret, "the round log's thread");
	l->thread_started = true;
	return 0;
}

/* ---- making and ending ---- */

static void
log_free(struct roundlog *l)
{
	if (!l)
		return;
	if (l->thread_started) {
		pthread_mutex_lock(&l->lock);
		l->stop = true;
		(void)pthread_cond_broadcast(&l->changed);
		pthread_mutex_unlock(&l->lock);
		(void)pthread_join(l->thread, NULL);
	}
	pmem_map_free(l->map);
	if (l->fd >= 0)
		(void)close(l->fd);
	free(l->half[0].ranges);
	free(l->half[1].ranges);
	free(l->retired);
	free(l->frame);
	(void)pthread_cond_destroy(&l->changed);
	(void)pthread_mutex_destroy(&l->lock);
	free(l);
}

static int
log_new(struct roundlog **out, struct err *e)
{
	struct roundlog *l = calloc(1, sizeof(*l));
	pthread_condattr_t attr;

	*out = NULL;
	if (!l)
		return err_set(e, REPL_E_NOMEM, "no memory for a round log");
	l->fd = -1;
	(void)pthread_mutex_init(&l->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&l->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	l->half[0].ranges = calloc(ROUNDLOG_RANGES_MAX, sizeof(struct range));
	l->half[1].ranges = calloc(ROUNDLOG_RANGES_MAX, sizeof(struct range));
	l->retired = calloc(ROUNDLOG_RANGES_MAX, sizeof(struct range));
	l->frame = aligned_alloc(ROUND_BLOCK, ROUND_FRAME_MAX);
	if (!l->half[0].ranges || !l->half[1].ranges || !l->retired || !l->frame) {
		log_free(l);
		return err_set(e, REPL_E_NOMEM, "no memory for a round log");
	}
	*out = l;
	return 0;
}

/*
 * An open file description of its own: each is told an error of the device once. Past the page
 * cache, where the file system lets us: frames are whole blocks, and nobody reads them.
 */
static int
file_again(int fd, struct err *e)
{
	int again = filesystem_again(fd, O_RDWR | O_DIRECT);

	if (again < 0 && errno == EINVAL)
		again = filesystem_again(fd, O_RDWR);
	if (again < 0)
		return err_errno(e, err_from_errno(errno), errno, "open the sidecar again");
	return again;
}

/* Space alone is not enough: what was never written costs a sync more to write. */
static int
log_allocate(struct roundlog *l, int fd, uint64_t len, struct err *e)
{
	int rc;

	/* What an earlier region may have left. */
	rc = space_cut(fd, l->off, l->off + len, e);
	if (!rc)
		rc = space_fill(fd, l->off, l->off + len, e);
	if (rc)
		return rc;
	if (fdatasync(fd))
		return err_errno(e, REPL_E_IO, errno, "sync");
	/* Pages in the cache would have to be thrown out by the frames, one by one. */
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

static int
log_format(struct roundlog *l, const struct sidecar *meta, struct err *e)
{
	int rc;

	l->header.epoch = meta->epoch;
	l->header.pool_uuid = meta->pool_uuid;
	if (getrandom(&l->header.key, sizeof(l->header.key), 0) != (ssize_t)sizeof(l->header.key))
		return err_errno(e, REPL_E_FAILED, errno, "getrandom");
	round_header_encode(&l->header, l->frame);
	rc = pmem_map_write(l->map, l->off, l->frame, REGION_PAGE, e);
	/* A device of larger blocks. */
	if (rc && fcntl(l->fd, F_SETFL, 0) == 0)
		rc = pmem_map_write(l->map, l->off, l->frame, REGION_PAGE, e);
	return rc;
}

static int
log_name(struct roundlog *l, int fd, struct sidecar *meta, uint64_t len, struct err *e)
{
	struct sidecar next = *meta;
	int rc;

	next.log_off = l->off;
	next.log_len = len;
	rc = sidecar_write(fd, &next, e);
	if (!rc)
		*meta = next;
	return rc;
}

int
roundlog_make(int sidecar_fd, const char *path, struct sidecar *meta, struct pmem_map *pool,
	      struct roundlog **out, struct err *e)
{
	struct roundlog *l = NULL;
	uint64_t len;
	int rc = log_new(&l, e);

	*out = NULL;
	if (rc)
		return rc;
	l->pool = pool;
	l->off = SIDECAR_SIZE;
	l->seq = 0;
	l->from = l->from_durable = 1;
	l->header.half = round_half_for(pmem_map_size(pool));
	len = round_size(l->header.half);
	rc = log_allocate(l, sidecar_fd, len, e);
	if (rc)
		goto out;
	l->fd = file_again(sidecar_fd, e);
	rc = l->fd < 0 ? l->fd : pmem_map_new(l->fd, path, l->off + len, true, &l->map, e);
	if (!rc)
		rc = log_format(l, meta, e);
	if (!rc)
		rc = thread_start(l, e);
	if (rc)
		goto out;
	rc = log_name(l, sidecar_fd, meta, len, e);
	if (rc) {
		/* One copy may name it: it has to stay. */
		log_free(l);
		return rc;
	}
	*out = l;
	return 0;
out:
	log_free(l);
	(void)space_cut(sidecar_fd, SIDECAR_SIZE, SIDECAR_SIZE + len, NULL);
	return rc;
}

int
roundlog_end(struct roundlog *l, bool sync, struct err *e)
{
	int rc = 0;

	if (!l)
		return 0;
	pthread_mutex_lock(&l->lock);
	if (sync)
		rc = half_sync(l, e);
	pthread_mutex_unlock(&l->lock);
	log_free(l);
	return rc;
}
