/* SPDX-License-Identifier: BSD-3-Clause */
#include "pull.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "spin.h"
#include "stall.h"
#include "thread.h"

#define SLOTS  16U
#define FLIGHT (SLOTS / 2) /* reads at once: the others' slots are the writer's */
#define CHUNK  (1U << 20)

#define END_MS 1000U /* for what is under way when somebody has given up */

#define FETCHES   4U        /* lanes that fetch at once: a window each */
#define FAR_NS    10000000U /* a wait for one takes longer where the way is long ... */
#define FAR_WAITS 8U        /* ... and so do those behind it */

/*
 * What is written at once, and where it ends: a huge page that a write fills need not be
 * cleared before, which is half of what making it costs.
 */
#define WRITE       (2U << 20)
#define WRITE_SLOTS 4U /* at most; fewer than FLIGHT, so that nobody waits for the writer to */

/* A chunk goes through three hands: asked for, here, written. */
struct pull {
	struct remote *remote;
	struct lane *lane;
	unsigned lane_index;
	size_t window;     /* of each */
	unsigned fetchers; /* lanes that read by windows, from lane_index on; 0: none does */
	unsigned waits;    /* in a row, that show a long way */
	int fd;
	uint64_t deadline_ns;
	struct breath breath;
	uint8_t *buf; /* SLOTS chunks */
	struct range slot[SLOTS];

	pthread_t writer;
	pthread_mutex_t lock;          /* guards all below */
	pthread_cond_t moved;          /* any of it has changed */
	uint64_t asked, here, written; /* chunks; the first two only the calling thread changes */
	bool stop;
	struct err err; /* of the writer */
};

static uint64_t
step_deadline(const struct pull *p)
{
	uint64_t own = clock_deadline(remote_op_timeout_ms(p->remote));

	return p->deadline_ns && p->deadline_ns < own ? p->deadline_ns : own;
}

static uint8_t *
slot_buf(const struct pull *p, uint64_t chunk)
{
	return p->buf + (size_t)(chunk % SLOTS) * CHUNK;
}

/* ---- the writer ---- */

/* Chunks that follow each other in the file, from the oldest on that is not written. */
struct run {
	struct range r;
	struct iovec iov[WRITE_SLOTS];
	unsigned count;
};

static void
run_add(struct run *run, uint8_t *data, const struct range *r)
{
	if (run->count == 0)
		run->r = (struct range){.off = r->off};
	run->iov[run->count++] = (struct iovec){.iov_base = data, .iov_len = r->len};
	run->r.len += r->len;
}

static bool
run_goes_on(const struct run *run, const struct range *next)
{
	uint64_t end = run->r.off + run->r.len;

	return run->count == 0 ||
	       (run->count < WRITE_SLOTS && end % WRITE != 0 && next->off == end);
}

/* What is left of it after so many bytes. */
static void
run_shorten(struct run *run, size_t bytes)
{
	unsigned gone = 0;

	run->r.off += bytes;
	run->r.len -= bytes;
	for (; gone < run->count && bytes >= run->iov[gone].iov_len; gone++)
		bytes -= run->iov[gone].iov_len;
	run->count -= gone;
	memmove(run->iov, run->iov + gone, run->count * sizeof(run->iov[0]));
	if (run->count == 0)
		return;
	run->iov[0].iov_base = (uint8_t *)run->iov[0].iov_base + bytes;
	run->iov[0].iov_len -= bytes;
}

static int
file_write(int fd, struct run *run, struct err *e)
{
	unsigned long long wanted = run->r.len;
	ssize_t n;

	while (run->count > 0) {
		n = pwritev(fd, run->iov, (int)run->count, (off_t)run->r.off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			(void)err_errno(e, err_from_errno(errno), errno,
					"writing %llu bytes to the local file", wanted);
			return err_because(e, REPL_REASON_LOCAL);
		}
		run_shorten(run, (size_t)n);
	}
	return 0;
}

/* The chunk is not here yet, and worth waiting for: the first one, or asked for and the next. */
static bool
writer_waits(const struct pull *p, const struct run *run, uint64_t chunk)
{
	if (chunk < p->here || p->stop)
		return false;
	return run->count == 0 || (chunk < p->asked && run_goes_on(run, &p->slot[chunk % SLOTS]));
}

/* The next run; false: there is none and none will come. */
static bool
writer_next(struct pull *p, struct run *run)
{
	run->count = 0;
	for (uint64_t chunk = p->written;; chunk++) {
		const struct range *r = &p->slot[chunk % SLOTS];

		while (writer_waits(p, run, chunk))
			(void)pthread_cond_wait(&p->moved, &p->lock);
		if (chunk == p->here || !run_goes_on(run, r))
			return run->count > 0;
		run_add(run, slot_buf(p, chunk), r);
	}
}

static void *
writer_main(void *arg)
{
	struct pull *p = arg;
	struct run run;

	pthread_mutex_lock(&p->lock);
	while (writer_next(p, &run)) {
		unsigned count = run.count;
		struct err e;
		int rc = p->err.code;

		pthread_mutex_unlock(&p->lock);
		err_clear(&e);
		/* Behind a failure nothing is written, and everybody gets on. */
		if (!rc)
			rc = file_write(p->fd, &run, &e);
		pthread_mutex_lock(&p->lock);
		if (rc && !p->err.code)
			p->err = e;
		p->written += count;
		(void)pthread_cond_signal(&p->moved);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static bool
writer_behind(const struct pull *p, uint64_t left)
{
	return p->here - p->written > left && !p->err.code;
}

/* For a moment at most; true if there are at most so many chunks that are here and not written. */
static bool
writer_look(struct pull *p, uint64_t left)
{
	uint64_t until_ns = clock_now_ns() + BREATH_NS;
	const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
				       .tv_nsec = (long)(until_ns % NS_PER_S)};
	bool behind;
	int ret = 0;

	pthread_mutex_lock(&p->lock);
	while (writer_behind(p, left) && ret == 0)
		ret = pthread_cond_timedwait(&p->moved, &p->lock, &until);
	behind = writer_behind(p, left);
	pthread_mutex_unlock(&p->lock);
	return !behind;
}

static int
writer_status(struct pull *p, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	if (p->err.code)
		rc = err_copy(e, &p->err);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* Wait until at most so many chunks are here and not written, however long the file takes. */
static int
writer_await(struct pull *p, uint64_t left, struct err *e)
{
	int rc = 0;

	while (!rc && !writer_look(p, left))
		rc = breath_take(&p->breath, e);
	return rc ? rc : writer_status(p, e);
}

static void
writer_give(struct pull *p)
{
	pthread_mutex_lock(&p->lock);
	p->here++;
	(void)pthread_cond_signal(&p->moved);
	pthread_mutex_unlock(&p->lock);
}

static int
writer_start(struct pull *p, struct err *e)
{
	int ret;

	ret = thread_start(&p->writer, writer_main, p);
	return ret ? err_thread(e, ret, "a thread that writes the file") : 0;
}

static void
writer_stop(struct pull *p)
{
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	(void)pthread_cond_signal(&p->moved);
	pthread_mutex_unlock(&p->lock);
	(void)pthread_join(p->writer, NULL);
}

/* ---- the network ---- */

/* The oldest read, if it is here within a moment: reads of a lane complete in their order. */
static int
read_look(struct pull *p, bool *here, struct err *e)
{
	uint64_t until_ns = clock_now_ns() + BREATH_NS;
	struct fab_lane *fab = p->lane->fab;
	struct spin spin = {0};
	struct fab_event ev;

	*here = false;
	do {
		fab_lane_poll(fab, &ev);
		*here = ev.type == FAB_READ;
		/* One after the other would keep the deadline away. */
		if (ev.type == FAB_RECV)
			return err_set(e, REPL_E_PROTOCOL, "data lane: a message not asked for");
		if (!*here && ev.type != FAB_NONE)
			return err_set(e, REPL_E_LOST, "data lane: %s", ev.text);
		if (!*here && !spin_again(&spin))
			fab_lanes_wait(&fab, 1, -1, until_ns);
	} while (!*here && clock_now_ns() < until_ns);
	return 0;
}

/* ---- by windows ---- */

/* A chunk goes by the lane whose turn it is, so that they come in their order. */
static struct lane *
fetcher(const struct pull *p, uint64_t chunk)
{
	return remote_lane(p->remote, p->lane_index + (unsigned)(chunk % p->fetchers));
}

struct fetch_wait {
	const struct pull *p;
	const struct breath *breath;
};

static int
fetch_breathe(void *arg, struct err *e)
{
	const struct fetch_wait *w = arg;

	if (w->p->deadline_ns && clock_now_ns() >= w->p->deadline_ns)
		return err_set(e, REPL_E_TIMEOUT, "the target did not send data");
	return breath_take(w->breath, e);
}

/* The oldest one, while all of them go on. */
static int
fetch_await(struct pull *p, const struct breath *breath, struct err *e)
{
	uint64_t stall_ns = remote_op_timeout_ms(p->remote) * NS_PER_MS;
	const struct lane *oldest = fetcher(p, p->here);
	struct fetch_wait w = {.p = p, .breath = breath};
	struct breath own = {.take = fetch_breathe, .arg = &w};
	uint64_t since_ns = clock_now_ns();
	bool waits = !lane_done(oldest);
	int rc = 0;

	while (!rc && !lane_done(oldest)) {
		struct lane *lanes[FETCHES];
		unsigned n = 0;

		for (uint64_t chunk = p->here; chunk < p->asked; chunk++)
			if (!lane_done(fetcher(p, chunk)))
				lanes[n++] = fetcher(p, chunk);
		rc = lanes_run_while_moving(lanes, n, lane_done, stall_ns, &own, e);
	}
	if (waits)
		p->waits = clock_now_ns() - since_ns < FAR_NS ? 0 : p->waits + 1;
	if (!rc && oldest->status)
		rc = err_set(e, oldest->status, "data lane: %s", oldest->why);
	if (!rc)
		writer_give(p);
	return rc;
}

/* ---- by RMA from the pool ---- */

static int
rma_await(struct pull *p, const struct breath *breath, struct err *e)
{
	uint64_t now_ns = clock_now_ns();
	struct stall stall = stall_begin(remote_op_timeout_ms(p->remote) * NS_PER_MS, now_ns);
	bool here = false;
	int rc = 0;

	while (!rc && !here) {
		rc = read_look(p, &here, e);
		now_ns = clock_now_ns();
		if (!rc && !here &&
		    (stall_over(&stall, p->lane->fab, now_ns) ||
		     (p->deadline_ns && now_ns >= p->deadline_ns)))
			rc = err_set(e, REPL_E_TIMEOUT, "the target did not send data");
		if (!rc && !here)
			rc = breath_take(breath, e);
	}
	if (!rc)
		writer_give(p);
	return rc;
}

static int
read_await(struct pull *p, const struct breath *breath, struct err *e)
{
	return p->fetchers ? fetch_await(p, breath, e) : rma_await(p, breath, e);
}

/* Only this thread changes it. */
static uint64_t
reads_left(const struct pull *p)
{
	return p->asked - p->here;
}

/* Reads in flight come first: their ends are not for the lane to see. */
static int
region_ready(struct pull *p, uint64_t off, struct err *e)
{
	struct lane *lane = p->lane;
	int rc = 0;

	if (regions_is_ready(lane->regions, regions_find(lane->regions, off)))
		return 0;
	while (!rc && reads_left(p))
		rc = read_await(p, &p->breath, e);
	if (rc)
		return rc;
	lane_register(lane, off);
	rc = lane_run_while_moving(lane, lane_done, remote_op_timeout_ms(p->remote) * NS_PER_MS,
				   &p->breath, e);
	if (!rc && lane->status)
		rc = err_set(e, lane->status, "data lane: %s", lane->why);
	return rc;
}

static int
chunk_ask(struct pull *p, const struct range *r, struct err *e)
{
	uint8_t *buf = slot_buf(p, p->asked);
	bool at_once = p->lane->window && !p->fetchers;
	int rc;

	if (p->fetchers) {
		struct lane *lane = fetcher(p, p->asked);

		rc = lane_fetch(lane, buf, r->off, r->len);
		if (rc)
			(void)err_set(e, rc, "data lane: %s", lane->why);
	} else if (at_once) {
		/* Where the pool is out of RMA's reach: one after the other. */
		rc = remote_read(p->remote, p->lane_index, buf, r->off, r->len, step_deadline(p),
				 e);
	} else {
		rc = region_ready(p, r->off, e);
		if (!rc)
			rc = fab_lane_read(p->lane->fab, buf, r->len, r->off, e);
	}
	if (rc)
		return rc;
	p->slot[p->asked % SLOTS] = *r;
	pthread_mutex_lock(&p->lock);
	p->asked++;
	pthread_mutex_unlock(&p->lock);
	if (at_once)
		writer_give(p);
	return 0;
}

/* A free slot, without taking those that are to keep the writer busy. */
static int
chunk_room(struct pull *p, struct err *e)
{
	int rc = 0;

	while (!rc && reads_left(p) >= (p->fetchers ? p->fetchers : FLIGHT))
		rc = read_await(p, &p->breath, e);
	return rc ? rc : writer_await(p, SLOTS - 1 - reads_left(p), e);
}

/* Over a long way more must be under way than a lane has windows for, where there is RMA. */
static bool
fetch_is_over(const struct pull *p)
{
	return p->fetchers && !p->lane->window && p->waits >= FAR_WAITS;
}

static int
fetch_end(struct pull *p, struct err *e)
{
	int rc = 0;

	while (!rc && reads_left(p))
		rc = read_await(p, &p->breath, e);
	if (!rc)
		p->fetchers = 0;
	return rc;
}

int
pull_range(struct pull *p, uint64_t off, uint64_t len, struct err *e)
{
	int rc = 0;

	while (!rc && len > 0) {
		uint64_t room = CHUNK - off % CHUNK, most = len < room ? len : room;
		struct range r = {.off = off, .len = most};

		if (fetch_is_over(p))
			rc = fetch_end(p, e);
		if (rc)
			break;
		if (p->fetchers)
			r.len = most < p->window ? most : p->window;
		else if (!p->lane->window)
			r.len = lane_rma_len(p->lane, off, most);
		if (r.len == 0)
			return err_set(e, REPL_E_INVAL,
				       "the replica is smaller than the local file");
		rc = chunk_room(p, e);
		if (!rc)
			rc = chunk_ask(p, &r, e);
		off += r.len;
		len -= r.len;
	}
	return rc;
}

int
pull_settle(struct pull *p, struct err *e)
{
	int rc = 0;

	while (!rc && reads_left(p))
		rc = read_await(p, &p->breath, e);
	return rc ? rc : writer_await(p, 0, e);
}

/* ---- its life ---- */

static void
moved_init(pthread_cond_t *moved)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(moved, &attr);
	(void)pthread_condattr_destroy(&attr);
}

int
pull_begin(struct remote *remote, unsigned lane, int fd, uint64_t deadline_ns, struct breath breath,
	   struct pull **out, struct err *e)
{
	struct pull *p = calloc(1, sizeof(*p));
	int rc;

	*out = NULL;
	if (p)
		p->buf = malloc((size_t)SLOTS * CHUNK);
	if (!p || !p->buf) {
		free(p);
		return err_set(e, REPL_E_NOMEM, "out of memory");
	}
	p->remote = remote;
	p->lane = remote_lane(remote, lane);
	p->lane_index = lane;
	p->window = remote_terms(remote)->window;
	if (p->window > 0)
		p->fetchers = remote_terms(remote)->lanes - lane;
	if (p->fetchers > FETCHES)
		p->fetchers = FETCHES;
	/* One alone would wait for each. */
	if (p->fetchers == 1)
		p->fetchers = 0;
	p->fd = fd;
	p->deadline_ns = deadline_ns;
	p->breath = breath;
	(void)pthread_mutex_init(&p->lock, NULL);
	moved_init(&p->moved);
	rc = writer_start(p, e);
	if (rc) {
		(void)pthread_cond_destroy(&p->moved);
		(void)pthread_mutex_destroy(&p->lock);
		free(p->buf);
		free(p);
		return rc;
	}
	*out = p;
	return 0;
}

static int
end_breathe(void *arg, struct err *e)
{
	const uint64_t *end_ns = arg;

	if (clock_now_ns() < *end_ns)
		return 0;
	return err_set(e, REPL_E_TIMEOUT, "the target did not send data");
}

void
pull_end(struct pull *p)
{
	uint64_t end_ns = clock_deadline(END_MS);
	const struct breath soon = {.take = end_breathe, .arg = &end_ns};

	if (!p)
		return;
	while (reads_left(p) && end_breathe(&end_ns, NULL) == 0 && read_await(p, &soon, NULL) == 0)
		;
	/* What is in flight writes to buf, whoever does not want to go on. */
	if (reads_left(p))
		remote_free_lanes(p->remote);
	writer_stop(p);
	(void)pthread_cond_destroy(&p->moved);
	(void)pthread_mutex_destroy(&p->lock);
	free(p->buf);
	free(p);
}
