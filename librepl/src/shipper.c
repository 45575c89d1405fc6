/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads of ship.h: each sends what is queued for its replica, in order, as many
 * messages on their way as the lane takes, and tells those that wait what has arrived.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "ship_impl.h"

#define IDLE_MS 60000 /* whatever happens wakes us */
#define BUSY_MS 100   /* a loss and a reader are looked for as often */

void
shippers_wake(struct ship *s)
{
	const uint64_t one = 1;

	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		struct shipper *p = &s->shipper[i];

		if (!p->sleeping)
			continue;
		p->sleeping = false;
		(void)!write(p->wake_fd, &one, sizeof(one));
	}
}

/* With the lock. */
static bool
shipper_has_work(const struct shipper *p)
{
	const struct shipview *v = &p->ship->q.view[p->replica];

	return p->remote && v->open && v->unacked && !p->wanted && !p->lent;
}

/* Wait for work; then the thread is inside. False: it is time to end. */
static bool
shipper_enter(struct shipper *p)
{
	struct ship *s = p->ship;
	struct pollfd pfd = {.fd = p->wake_fd, .events = POLLIN};
	uint64_t n;
	bool stop;

	pthread_mutex_lock(&s->lock);
	while (!s->stop && !shipper_has_work(p)) {
		p->sleeping = true;
		pthread_mutex_unlock(&s->lock);
		(void)poll(&pfd, 1, IDLE_MS);
		(void)!read(p->wake_fd, &n, sizeof(n));
		pthread_mutex_lock(&s->lock);
		p->sleeping = false;
	}
	stop = s->stop;
	p->inside = !stop;
	pthread_mutex_unlock(&s->lock);
	return !stop;
}

static void
shipper_leave(struct shipper *p)
{
	pthread_mutex_lock(&p->ship->lock);
	p->inside = false;
	pthread_cond_broadcast(&p->ship->moved);
	pthread_mutex_unlock(&p->ship->lock);
}

/* The next one to send, with a reference: the queue may be closed meanwhile. */
static struct shipment *
shipper_next(struct shipper *p)
{
	struct ship *s = p->ship;
	struct shipview *v = &s->q.view[p->replica];
	struct shipment *m;

	pthread_mutex_lock(&s->lock);
	m = v->open && !p->wanted ? v->unsent : NULL;
	if (m)
		m->refs++;
	pthread_mutex_unlock(&s->lock);
	return m;
}

/* Send what there is room for; true if it has come to the end of the queue. */
static bool
shipper_send(struct shipper *p, struct lane *l)
{
	struct ship *s = p->ship;
	struct shipment *m;
	bool whole = true;

	while (whole && (m = shipper_next(p))) {
		whole = lane_ship(l, m, p->replica, &p->at);
		pthread_mutex_lock(&s->lock);
		if (whole && s->q.view[p->replica].open)
			shipqueue_sent(&s->q, p->replica);
		shipqueue_unref(&s->q, m);
		pthread_mutex_unlock(&s->lock);
	}
	lane_ship_send(l);
	return whole;
}

/* What was acknowledged; true while there is something to do. */
static bool
shipper_retire(struct shipper *p, const struct lane *l)
{
	struct ship *s = p->ship;
	struct shipview *v = &s->q.view[p->replica];
	bool any = false, more;
	uint64_t behind;

	pthread_mutex_lock(&s->lock);
	while (v->unacked && v->unacked != v->unsent &&
	       v->unacked->seq[p->replica] <= l->seq_acked) {
		shipqueue_acked(&s->q, p->replica);
		any = true;
	}
	if (any)
		pthread_cond_broadcast(&s->moved);
	more = v->open && v->unacked && !s->stop && !(p->wanted && lane_ship_quiet(l));
	behind = atomic_load(&s->r->replicas[p->replica].behind);
	any &= behind && shipqueue_has(&s->q, p->replica, behind);
	pthread_mutex_unlock(&s->lock);
	/* Its keeper labels it, and drains wait for that. */
	if (any)
		repl_wake(s->r);
	return more;
}

/* Until an answer comes or, with the queue's end reached, more is queued. */
static void
shipper_sleep(struct shipper *p, struct lane *l, bool at_end)
{
	struct ship *s = p->ship;
	uint64_t n;
	bool more;

	pthread_mutex_lock(&s->lock);
	more = at_end && s->q.view[p->replica].unsent && !p->wanted;
	p->sleeping = at_end && !more;
	pthread_mutex_unlock(&s->lock);
	if (more)
		return;
	fab_lanes_wait(&l->fab, 1, p->wake_fd, clock_deadline(BUSY_MS));
	(void)!read(p->wake_fd, &n, sizeof(n));
	pthread_mutex_lock(&s->lock);
	p->sleeping = false;
	pthread_mutex_unlock(&s->lock);
}

/* Until there is nothing more to do, or the replica is lost. */
static void
shipper_run(struct shipper *p)
{
	struct repl *r = p->ship->r;
	struct lane *l = remote_lane(p->remote, 0);
	uint64_t end_ns = clock_deadline(r->cfg->op_timeout_ms);

	for (;;) {
		bool at_end = shipper_send(p, l);

		if (lane_step(l))
			end_ns = clock_deadline(r->cfg->op_timeout_ms);
		if (!l->status && clock_now_ns() >= end_ns)
			lane_fail(l, REPL_E_TIMEOUT, "the target did not answer in time");
		if (l->status) {
			repl_lose(r, p->replica, l->status, l->why,
				  clock_deadline(r->cfg->op_timeout_ms));
			return;
		}
		if (!shipper_retire(p, l))
			return;
		shipper_sleep(p, l, at_end);
	}
}

static void *
shipper_main(void *arg)
{
	struct shipper *p = arg;

	while (shipper_enter(p)) {
		shipper_run(p);
		shipper_leave(p);
	}
	return NULL;
}

int
shipper_start(struct ship *s, unsigned replica, struct err *e)
{
	struct shipper *p = &s->shipper[replica];
	sigset_t all, old;
	int ret;

	p->ship = s;
	p->replica = replica;
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0)
		return err_errno(e, REPL_E_LIMIT, errno, "eventfd");
	/* The application's signals are the application's. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&p->thread, NULL, shipper_main, p);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret) {
		(void)close(p->wake_fd);
		return err_errno(e, REPL_E_LIMIT, ret, "starting a shipper's thread");
	}
	p->started = true;
	return 0;
}

void
shippers_stop(struct ship *s)
{
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	shippers_wake(s);
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		if (!s->shipper[i].started)
			continue;
		(void)pthread_join(s->shipper[i].thread, NULL);
		(void)close(s->shipper[i].wake_fd);
		s->shipper[i].started = false;
	}
}
