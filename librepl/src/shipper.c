/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One queued replica: sending from the list in its order, as many messages on their way
 * as the lane takes, and telling what has arrived. A thread each does so, in
 * moments, for what no call waits for.
 */
#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "ship_impl.h"
#include "thread.h"

#define PATIENT_MAX (2U << 20)      /* bytes of a queue */
#define PATIENT_NS  (5 * NS_PER_MS) /* age of what is on its way */

static void
shipper_set(struct shipper *p, uint64_t ns)
{
	const struct itimerspec at = {.it_value.tv_nsec = (long)ns};

	p->armed = true;
	(void)timerfd_settime(p->timer_fd, 0, &at, NULL);
}

void
shipper_arm(struct shipper *p)
{
	if (!p->armed)
		shipper_set(p, p->ship->tick_ns);
}

void
shipper_hurry(struct shipper *p)
{
	shipper_set(p, 1);
}

bool
shipper_may_send(const struct shipper *p)
{
	const struct shipment *m = p->ship->q.view[p->replica].unsent;

	return m && (!p->wanted || m->number <= p->owed);
}

bool
shipper_yields(const struct shipper *p)
{
	return p->wanted && !shipper_may_send(p) && lane_ship_quiet(remote_lane(p->remote, 0));
}

/* With the lock, and nobody inside. */
static bool
shipper_has_work(const struct shipper *p)
{
	const struct shipview *v = &p->ship->q.view[p->replica];

	if (!p->remote || !v->open || !v->unacked || p->lent || p->broken)
		return false;
	return !shipper_yields(p);
}

bool
shipper_claim(struct shipper *p)
{
	if (p->inside || !shipper_has_work(p))
		return false;
	p->inside = true;
	if (!p->begun)
		p->stall = stall_begin(p->ship->r->cfg->op_timeout_ms * NS_PER_MS, clock_now_ns());
	p->begun = true;
	return true;
}

void
shipper_release(struct shipper *p)
{
	p->inside = false;
	if (p->broken)
		shipper_hurry(p);
	else if (shipper_has_work(p))
		shipper_arm(p);
	(void)pthread_cond_broadcast(&p->ship->moved);
}

void
shipper_drop_writes(struct shipper *p)
{
	if (p->writes)
		shipqueue_unref(&p->ship->q, p->writes);
	p->writes = NULL;
}

/*
 * Where much is queued, or answers take long, it is the distance that does it: then what is on its
 * way must be more than one shipment.
 */
static bool
shipper_patient(const struct shipper *p)
{
	const struct shipqueue *q = &p->ship->q;

	return q->view[p->replica].weight <= PATIENT_MAX &&
	       shipqueue_lag_ns(q, p->replica, clock_now_ns()) <= PATIENT_NS;
}

/* The next one to send, with a reference: the queue may be closed meanwhile. */
static struct shipment *
shipper_next(struct shipper *p, const struct lane *l)
{
	struct ship *s = p->ship;
	struct shipview *v = &s->q.view[p->replica];
	struct shipment *m;

	if (!ship_lock(s))
		return NULL;
	m = v->open && shipper_may_send(p) ? v->unsent : NULL;
	if (m && lane_ship_pays_to_wait(l, m, &p->at) && shipper_patient(p)) {
		p->at_end = false;
		m = NULL;
	}
	if (m)
		m->refs++;
	ship_unlock(s);
	return m;
}

/* Send what there is room for. */
static void
shipper_send(struct shipper *p, struct lane *l)
{
	struct ship *s = p->ship;
	struct shipment *m;

	p->at_end = true;
	while (p->at_end && (m = shipper_next(p, l))) {
		p->at_end = lane_ship(l, m, p->replica, &p->at);
		if (!ship_lock(s))
			return;
		if (p->at.writes && p->writes != m) {
			shipper_drop_writes(p);
			p->writes = m;
			m->refs++;
		}
		if (p->at_end && s->q.view[p->replica].open)
			shipqueue_sent(&s->q, p->replica);
		shipqueue_unref(&s->q, m);
		ship_unlock(s);
	}
	lane_ship_send(l);
}

/* What was acknowledged; true while there is something to wait for. */
static bool
shipper_retire(struct shipper *p, const struct lane *l)
{
	struct ship *s = p->ship;
	struct shipview *v = &s->q.view[p->replica];
	bool any = false, more;
	uint64_t behind;

	if (!ship_lock(s))
		return false;
	while (v->unacked && v->unacked != v->unsent &&
	       v->unacked->seq[p->replica] <= l->seq_acked) {
		shipqueue_acked(&s->q, p->replica);
		any = true;
	}
	/* Not by the answer, which is the target's word: what it has not taken is read still. */
	if (l->rma_outstanding == 0)
		shipper_drop_writes(p);
	if (any)
		ship_changed(s);
	p->broken = l->status && v->open;
	p->begun = v->unacked != NULL;
	more = v->open && v->unacked && !s->stop && !p->broken && !shipper_yields(p);
	behind = atomic_load(&s->r->replicas[p->replica].behind);
	any &= behind && shipqueue_has(&s->q, p->replica, behind);
	ship_unlock(s);
	/* Its keeper labels it, and drains wait for that. */
	if (any)
		repl_wake(s->r);
	return more;
}

bool
shipper_turn(struct shipper *p, bool spared, bool *more)
{
	struct lane *l = remote_lane(p->remote, 0);
	bool moved = false;

	/* That a write is done is seen by looking, and the next one waits for it. */
	if (l->rma_outstanding)
		moved = lane_step(l);
	p->at_end = false;
	if (!spared)
		shipper_send(p, l);
	moved |= lane_step(l);
	/* What is sent at once may be more than a thin link carries in that time. */
	if (moved)
		stall_moved(&p->stall, clock_now_ns());
	else if (!l->status && stall_over(&p->stall, l->fab, clock_now_ns()))
		lane_fail(l, REPL_E_TIMEOUT, "the target did not answer in time");
	*more = shipper_retire(p, l);
	return moved;
}

/* ---- the threads ---- */

/* With the lock, which is given up meanwhile. */
static void
shipper_move_on(struct shipper *p)
{
	struct ship *s = p->ship;
	bool more;

	while (shipper_claim(p)) {
		bool moved;

		pthread_mutex_unlock(&s->lock);
		moved = shipper_turn(p, false, &more);
		pthread_mutex_lock(&s->lock);
		shipper_release(p);
		if (!moved)
			break;
	}
}

/* The same, for a lane that is lost. Nobody else enters it. */
static void
shipper_lose(struct shipper *p)
{
	struct ship *s = p->ship;
	struct repl *r = s->r;
	struct lane *l = remote_lane(p->remote, 0);

	p->inside = true;
	pthread_mutex_unlock(&s->lock);
	repl_lose(r, p->replica, l->status, l->why, repl_loss_deadline(r));
	pthread_mutex_lock(&s->lock);
	shipper_release(p);
}

static void *
shipper_main(void *arg)
{
	struct shipper *p = arg;
	struct ship *s = p->ship;
	uint64_t n;

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		p->armed = true;
		shipper_move_on(p);
		if (p->broken && !p->inside)
			shipper_lose(p);
		p->armed = false;
		if (!s->stop && (p->inside || shipper_has_work(p)))
			shipper_arm(p);
		pthread_mutex_unlock(&s->lock);
		(void)!read(p->timer_fd, &n, sizeof(n));
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int
shipper_start(struct ship *s, unsigned replica, struct err *e)
{
	struct shipper *p = &s->shipper[replica];
	int ret;

	p->ship = s;
	p->replica = replica;
	if (turns_init(&p->readers, &s->r->abandoned))
		return err_set(e, REPL_E_NOMEM, "out of memory");
	p->readers_made = true;
	p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (p->timer_fd < 0)
		return err_errno(e, REPL_E_LIMIT, errno, "timerfd_create");
	ret = thread_start(&p->thread, shipper_main, p);
	if (ret) {
		(void)close(p->timer_fd);
		return err_thread(e, ret, "a shipper's thread");
	}
	p->started = true;
	return 0;
}

void
shippers_stop(struct ship *s)
{
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		if (s->shipper[i].started)
			shipper_hurry(&s->shipper[i]);
	}
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < REPL_TARGETS_MAX; i++) {
		if (!s->shipper[i].started)
			continue;
		(void)pthread_join(s->shipper[i].thread, NULL);
		(void)close(s->shipper[i].timer_fd);
		s->shipper[i].started = false;
	}
}
