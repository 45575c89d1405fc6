/* SPDX-License-Identifier: BSD-3-Clause */
#include "pull.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "spin.h"

#define SLOTS  16U
#define FLIGHT (SLOTS / 2) /* reads at once: the others' slots are the writer's */
#define CHUNK  (1U << 20)

/* A chunk goes through three hands: asked for, here, written. */
struct pull {
	struct remote *remote;
	struct lane *lane;
	unsigned lane_index;
	int fd;
	uint64_t deadline_ns;
	uint8_t *buf; /* SLOTS chunks */
	struct range slot[SLOTS];
	uint64_t asked; /* chunks; the calling thread's */

	pthread_t writer;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t moved; /* any of it has changed */
	uint64_t here, written;
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

static int
file_write(int fd, const uint8_t *data, const struct range *r, struct err *e)
{
	uint64_t done = 0;
	ssize_t n;

	while (done < r->len) {
		n = pwrite(fd, data + done, r->len - done, (off_t)(r->off + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_errno(e, err_from_errno(errno), errno,
					 "writing %llu bytes to the local file",
					 (unsigned long long)r->len);
		done += (uint64_t)n;
	}
	return 0;
}

static void *
writer_main(void *arg)
{
	struct pull *p = arg;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct range r;
		struct err e;
		int rc;

		while (p->written == p->here && !p->stop)
			(void)pthread_cond_wait(&p->moved, &p->lock);
		if (p->written == p->here)
			break;
		r = p->slot[p->written % SLOTS];
		rc = p->err.code;
		pthread_mutex_unlock(&p->lock);
		err_clear(&e);
		/* Behind a failure nothing is written, and everybody gets on. */
		if (!rc)
			rc = file_write(p->fd, slot_buf(p, p->written), &r, &e);
		pthread_mutex_lock(&p->lock);
		if (rc && !p->err.code)
			p->err = e;
		p->written++;
		(void)pthread_cond_signal(&p->moved);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Wait until at most so many chunks are here and not written. */
static int
writer_await(struct pull *p, uint64_t left, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	while (p->here - p->written > left && !p->err.code)
		(void)pthread_cond_wait(&p->moved, &p->lock);
	if (p->err.code)
		rc = err_set(e, p->err.code, "%s", p->err.text);
	pthread_mutex_unlock(&p->lock);
	return rc;
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
	sigset_t all, old;
	int ret;

	/* The program's signals are the program's. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&p->writer, NULL, writer_main, p);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret ? err_errno(e, REPL_E_LIMIT, ret, "starting a thread that writes the file") : 0;
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

/* Wait for the oldest read: reads of a lane complete in their order. */
static int
read_await(struct pull *p, struct err *e)
{
	uint64_t deadline_ns = step_deadline(p);
	struct fab_lane *fab = p->lane->fab;
	struct spin spin = {0};
	struct fab_event ev;

	for (;;) {
		fab_lane_poll(fab, &ev);
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
		fab_lanes_wait(&fab, 1, -1, deadline_ns);
	}
	writer_give(p);
	return 0;
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
		rc = read_await(p, e);
	if (rc)
		return rc;
	lane_register(lane, off);
	lanes_run(&lane, 1, lane_done, step_deadline(p));
	return lane->status ? err_set(e, lane->status, "data lane: %s", lane->why) : 0;
}

static int
chunk_ask(struct pull *p, const struct range *r, struct err *e)
{
	uint8_t *buf = slot_buf(p, p->asked);
	int rc;

	/* Where the pool is out of RMA's reach: one after the other. */
	if (p->lane->window) {
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
	p->asked++;
	if (p->lane->window)
		writer_give(p);
	return 0;
}

/* A free slot, without taking those that are to keep the writer busy. */
static int
chunk_room(struct pull *p, struct err *e)
{
	int rc = 0;

	while (!rc && reads_left(p) >= FLIGHT)
		rc = read_await(p, e);
	return rc ? rc : writer_await(p, SLOTS - 1 - reads_left(p), e);
}

int
pull_range(struct pull *p, uint64_t off, uint64_t len, struct err *e)
{
	int rc = 0;

	while (!rc && len > 0) {
		uint64_t most = len < CHUNK ? len : CHUNK;
		struct range r = {.off = off, .len = most};

		if (!p->lane->window)
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
		rc = read_await(p, e);
	return rc ? rc : writer_await(p, 0, e);
}

/* ---- its life ---- */

int
pull_begin(struct remote *remote, unsigned lane, int fd, uint64_t deadline_ns, struct pull **out,
	   struct err *e)
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
	p->fd = fd;
	p->deadline_ns = deadline_ns;
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->moved, NULL);
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

void
pull_end(struct pull *p)
{
	if (!p)
		return;
	/* What is in flight writes to buf. */
	while (reads_left(p) && read_await(p, NULL) == 0)
		;
	writer_stop(p);
	(void)pthread_cond_destroy(&p->moved);
	(void)pthread_mutex_destroy(&p->lock);
	free(p->buf);
	free(p);
}
