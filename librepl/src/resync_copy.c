/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying what is marked: taking, comparing, moving, and the looks at the world in between. */
#include "resync_impl.h"

#include <time.h>

#include "clock.h"
#include "dirtymap.h"
#include "holes.h"
#include "localmem.h"

#define SLICE_NS 20000000ULL  /* of a wait, between two looks */
#define TICK_NS  250000000ULL /* of the rate */

#define FAST_FROM (16ULL << 20) /* bytes; fewer may all be on their way */
#define FAST_NS   10000000ULL   /* for RESYNC_TAKE */

void
pace_add(struct pace *p, uint64_t bytes, uint64_t ns)
{
	/* The last megabytes count: half of what was before is forgotten. */
	if (p->bytes > (64U << 20)) {
		p->bytes /= 2;
		p->ns /= 2;
	}
	p->bytes += bytes;
	p->ns += ns;
}

uint64_t
pace_ns(const struct pace *p, uint64_t bytes)
{
	/* Nothing measured: 256 MiB a second. */
	if (p->bytes < RESYNC_FINE || p->ns == 0)
		return bytes * 4;
	return (uint64_t)((double)bytes * (double)p->ns / (double)p->bytes);
}

uint64_t
resync_left(const struct resync_run *r)
{
	return dirty_marked(r->s->dirty, r->s->replica);
}

static void
progress_tick(struct resync_run *r, uint64_t now_ns)
{
	struct resync_progress *p = r->s->progress;
	uint64_t done = atomic_load(&p->done), left = resync_left(r), rate, fresh;
	double new_rate;

	/* What the application marks anew is to be dealt with, too. */
	if (atomic_load(&p->total) < done + left)
		atomic_store(&p->total, done + left);
	if (now_ns - r->ticked_ns < TICK_NS)
		return;
	rate = atomic_load(&p->rate);
	/* Amid a comparison what is marked anew is not done any more. */
	fresh = done > r->ticked_done ? done - r->ticked_done : 0;
	new_rate = (double)fresh * 1e9 / (double)(now_ns - r->ticked_ns);
	rate = rate ? (rate * 3 + (uint64_t)new_rate) / 4 : (uint64_t)new_rate;
	atomic_store(&p->rate, rate);
	left = atomic_load(&p->total) - done;
	atomic_store(&p->eta_ms, rate ? (uint64_t)((double)left * 1e3 / (double)rate) : 0);
	r->ticked_ns = now_ns;
	r->ticked_done = done;
}

static int
keep_alive(struct resync_run *r, uint64_t now_ns, struct err *e)
{
	uint64_t beat_ns = (uint64_t)remote_heartbeat_ms(r->s->remote) * NS_PER_MS;
	int rc;

	if (r->walk)
		return hashwalk_keep_alive(r->walk, false, e);
	if (now_ns - r->heard_ns < beat_ns)
		return 0;
	rc = resync_kept_settle(r, e);
	r->heard_ns = clock_now_ns();
	return rc ? rc : remote_beat(r->s->remote, e);
}

int
resync_breathe(struct resync_run *r, struct err *e)
{
	const struct resync_host *h = &r->s->host;
	uint64_t now_ns = clock_now_ns();

	if (h->cancelled && h->cancelled(h->arg))
		return err_set(e, REPL_E_FAILED, "the resync was interrupted");
	progress_tick(r, now_ns);
	return keep_alive(r, now_ns, e);
}

static int
breathe(void *arg, struct err *e)
{
	return resync_breathe(arg, e);
}

struct breath
resync_breath(struct resync_run *r)
{
	return (struct breath){.take = breathe, .arg = r};
}

/* Under a hold the application waits: every byte goes at once. */
int
resync_yield(struct resync_run *r, uint64_t bytes, struct err *e)
{
	const struct resync_host *h = &r->s->host;
	int rc = 0;

	while (!rc && !r->held) {
		uint64_t now_ns = clock_now_ns(), wait_ns;

		if (throttle_due(&r->throttle, now_ns))
			throttle_interval(&r->throttle,
					  h->foreground_ns ? h->foreground_ns(h->arg) : 0, now_ns);
		wait_ns = throttle_wait_ns(&r->throttle, now_ns);
		if (wait_ns == 0)
			break;
		wait_ns = wait_ns < SLICE_NS ? wait_ns : SLICE_NS;
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)wait_ns}, NULL);
		r->waited_ns += clock_now_ns() - now_ns;
		rc = resync_breathe(r, e);
	}
	throttle_moved(&r->throttle, bytes, clock_now_ns());
	return rc;
}

/* No more than this, where there is no room for all that may follow. */
static uint64_t
more_cautious(uint64_t need, uint64_t more)
{
	uint64_t most = need / 8 > RESYNC_SPARE ? need / 8 : RESYNC_SPARE;

	return more < most ? more : most;
}

/* What is not needed is asked for once, within journal-max; on a full disk for less and less. */
int
resync_reserve(struct resync_run *r, const struct resync_room *room, uint64_t *ahead, struct err *e)
{
	struct remote *remote = r->s->remote;
	uint64_t most = remote_journal_takes(remote), least = room->need + room->expected;
	uint64_t more = room->more;
	int rc;

	/* It would name journal-max, and had no space for less: of a sparse pool that counts. */
	if (least > most && r->full)
		return err_set(e, REPL_E_NOSPC,
			       "the target's disk has no room for a journal of %llu bytes",
			       (unsigned long long)least);
	if (least + more > most)
		more = more_cautious(least, more);
	if (least + more > most)
		more = most > least ? most - least : 0;
	for (;;) {
		rc = ahead ? remote_journal_resume(remote, least + more, ahead, e)
			   : remote_journal_begin(remote, least + more, e);
		r->full = r->full || rc == REPL_E_NOSPC;
		if (more == 0 || !resync_is_refusal(rc))
			break;
		err_clear(e);
		more = more_cautious(least, more / 4 < RESYNC_CHUNK ? 0 : more / 4);
	}
	if (rc)
		return rc;
	r->reserved = least + more;
	/* Soon looked at again: it may come to be more than was expected. */
	if (more < room->more)
		r->reserved = room->need + more_cautious(room->need, room->expected + more);
	return 0;
}

/* What this pass has yet to take, and what was marked since for another one. */
static uint64_t
pass_left(const struct resync_run *r)
{
	uint64_t kept = r->want ? resync_kept_left(r) : 0;

	return resync_left(r) + (kept > r->taken ? kept - r->taken : 0);
}

/*
 * Of what is yet to be compared as much will differ as of what was, and no less than samples have
 * told: room that will not do is not filled before that is known, at the cost of all others who
 * need space there. What differs often lies together, as a log that the pool begins with: until
 * half of all was compared that foretells no more than it would then.
 */
static uint64_t
pass_expects(const struct resync_run *r, uint64_t left)
{
	uint64_t half = (r->passed + left) / 2, seen = r->passed > half ? r->passed : half;
	uint64_t by_seen = seen ? (uint64_t)((double)r->found / (double)seen * (double)left) : 0;
	uint64_t found = r->staged - r->began_staged;
	uint64_t foretold = r->foretold > found ? r->foretold - found : 0;

	return by_seen > foretold ? by_seen : foretold;
}

/* Room in the journal for so many more bytes. */
static int
put_reserve(struct resync_run *r, uint64_t len, struct err *e)
{
	struct resync_room room = {.need = r->staged + len};
	uint64_t left;
	int rc = 0;

	if (room.need <= r->reserved)
		return 0;
	if (r->walk)
		rc = hashwalk_keep_alive(r->walk, true, e);
	if (rc)
		return rc;
	left = pass_left(r);
	if (r->refine)
		room.expected = pass_expects(r, left);
	else
		room.need += left;
	/* Asked for seldom: for what is known to follow, too, and an eighth more. */
	room.more = room.need / 8 + (r->refine ? left - room.expected : 0);
	return resync_reserve(r, &room, NULL, e);
}

/*
 * With nobody to make room for, and over a link that has proved fast: each is answered by
 * itself. Over a slow one the target would hear too seldom from us.
 */
static uint64_t
chunk_max(const struct resync_run *r)
{
	uint64_t moved = r->staged - r->began_staged;

	if (!r->direct || r->s->host.hold || moved < FAST_FROM ||
	    (clock_now_ns() - r->began_ns) / FAST_NS > moved / RESYNC_TAKE)
		return RESYNC_CHUNK;
	return RESYNC_TAKE;
}

int
resync_put(struct resync_run *r, uint64_t off, uint64_t len, struct err *e)
{
	int rc = resync_breathe(r, e);

	if (!rc)
		rc = resync_yield(r, len, e);
	if (!rc && !r->direct)
		rc = put_reserve(r, len, e);
	if (!rc && r->fill)
		rc = holes_touch(r->s->mem, off, len, e);
	if (!rc)
		rc = r->direct ? push_range(&r->push, off, len, e)
			       : stage_range(r->stage, off, len, e);
	if (rc)
		return rc;
	r->staged += len;
	atomic_fetch_add(&r->s->progress->moved, len);
	return 0;
}

/*
 * One that takes bytes away from the pool by making its file shorter has made nothing of them
 * durable: the replica keeps what it has there. Marked anew they come when they are there again.
 */
static int
move(struct resync_run *r, uint64_t off, uint64_t len, struct err *e)
{
	const struct localmem m = {.mem = r->s->mem, .file = r->s->file};
	uint64_t end = off + len, n, has;
	int rc = 0;

	for (; !rc && off < end; off += n) {
		uint64_t most = chunk_max(r);

		n = end - off < most ? end - off : most;
		rc = localmem_has(&m, off, n, &has, e);
		if (rc || has == 0)
			break;
		end = has < n ? off + has : end;
		n = has;
		rc = resync_put(r, off, n, e);
	}
	return rc;
}

/* ---- a pass ---- */

struct pass {
	struct resync_run *r;
	struct err err; /* of what the walk asks for */
};

/* Of what was taken already; what the journal has need neither be compared nor sent. */
static bool
want_next(const struct resync_run *r, uint64_t off, uint64_t max, struct range *piece)
{
	struct range run;

	for (; off < r->size && dirtymap_next(r->want, off, max, &run); off = run.off + run.len) {
		if (run.off >= r->size)
			return false;
		if (run.len > r->size - run.off)
			run.len = r->size - run.off;
		if (resync_kept_lacks(r, run.off, run.len, piece))
			return true;
	}
	return false;
}

static bool
pass_next(void *arg, uint64_t off, uint64_t max, struct range *piece)
{
	struct pass *p = arg;
	struct resync_run *r = p->r;

	if (p->err.code)
		return false;
	if (r->want) {
		bool any = want_next(r, off, max, piece);

		r->taken += any ? piece->len : 0;
		return any;
	}
	return dirty_take(r->s->dirty, r->s->replica, off, r->size, max, piece, &p->err);
}

static int
pass_differ(void *arg, uint64_t off, uint64_t len, struct err *e)
{
	struct pass *p = arg;

	return move(p->r, off, len, e);
}

static int
pass_passed(void *arg, const struct range *piece, struct err *e)
{
	struct pass *p = arg;
	struct resync_run *r = p->r;

	r->passed += piece->len;
	r->found = r->staged - r->began_staged;
	atomic_fetch_add(&r->s->progress->done, piece->len);
	return resync_breathe(r, e);
}

int
resync_compare(struct resync_run *r, struct hashwalk *w, struct err *e)
{
	int fd = holes_open(r->s->file, r->s->mem), rc;

	w->remote = r->s->remote;
	w->file = r->s->file;
	w->shrinks = true;
	w->size = r->size;
	w->block = RESYNC_FINE;
	hashwalk_local(w, r->s->mem, fd);
	if (r->source.fd >= 0)
		hashwalk_file(w, r->source.fd);
	/* One that was seen before the piece was taken may have been written since. */
	w->holes_fd = -1;
	r->walk = w;
	rc = hashwalk_run(w, e);
	r->walk = NULL;
	r->heard_ns = clock_now_ns();
	holes_close(fd);
	/* Behind a refusal more would be asked. */
	return w->cut.code && resync_is_refusal(rc) ? err_copy(e, &w->cut) : rc;
}

static int
pass_refined(struct pass *p, struct err *e)
{
	struct hashwalk w = {
		.arg = p, .next = pass_next, .differ = pass_differ, .passed = pass_passed};

	return resync_compare(p->r, &w, e);
}

static int
pass_plain(struct pass *p, struct err *e)
{
	struct range piece = {0};
	uint64_t off = 0;
	int rc = 0;

	while (!rc && pass_next(p, off, RESYNC_TAKE, &piece)) {
		rc = move(p->r, piece.off, piece.len, e);
		if (!rc)
			rc = pass_passed(p, &piece, e);
		off = piece.off + piece.len;
	}
	return rc;
}

int
resync_pass(struct resync_run *r, struct err *e)
{
	struct pass p = {.r = r};
	int rc;

	r->began_ns = clock_now_ns();
	r->began_staged = r->staged;
	r->taken = r->passed = r->found = 0;
	r->waited_ns = 0;
	rc = r->refine ? pass_refined(&p, e) : pass_plain(&p, e);
	if (!rc && p.err.code)
		rc = err_copy(e, &p.err);
	if (!rc)
		rc = r->direct ? push_settle(&r->push, e) : stage_settle(r->stage, e);
	if (!rc)
		pace_add(&r->copying, r->staged - r->began_staged,
			 clock_now_ns() - r->began_ns - r->waited_ns);
	return rc;
}
