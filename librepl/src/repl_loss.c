/* SPDX-License-Identifier: BSD-3-Clause */
/* Losing a replica, and the heartbeat that notices it when nothing is written. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "repl_impl.h"

static void
replica_set_lost(struct repl *r, struct replica *p, int status, const char *why)
{
	pthread_mutex_lock(&r->reason_lock);
	(void)snprintf(p->reason, sizeof(p->reason), "%.*s", (int)sizeof(p->reason) - 1, why);
	pthread_mutex_unlock(&r->reason_lock);
	atomic_fetch_add(&p->error_count, 1);
	atomic_store(&p->lost, status);
}

/* The share of the time left that one of count steps may take. */
static uint64_t
deadline_share(uint64_t deadline_ns, unsigned count)
{
	uint64_t now = clock_now_ns();

	return now >= deadline_ns ? deadline_ns : now + (deadline_ns - now) / count;
}

static unsigned
replicas_live(const struct repl *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->replica_count; i++)
		n += r->replicas[i].remote && !atomic_load(&r->replicas[i].lost);
	return n;
}

/* Tell all that are not lost; true if one was lost over it. */
static bool
advance_replicas(struct repl *r, uint64_t deadline_ns)
{
	unsigned left = replicas_live(r);
	bool any = false;

	for (unsigned i = 0; i < r->replica_count; i++) {
		struct replica *p = &r->replicas[i];
		struct err why;

		if (!p->remote || atomic_load(&p->lost))
			continue;
		err_clear(&why);
		/* One that hangs must not use up the time of those that are well. */
		if (remote_pool_mark_by(p->remote, SIDECAR_UP_TO_DATE, &r->generation,
					deadline_share(deadline_ns, left + 1), &why)) {
			replica_set_lost(r, p, why.code, why.text);
			any = true;
		}
		left--;
	}
	return any;
}

/* With r->lock held. */
static int
advance_locked(struct repl *r, uint64_t deadline_ns, struct err *e)
{
	struct gen_id id;
	int rc;

	/* One that was lost over it may have the new generation: the others need another. */
	do {
		rc = local_new_id(&id, e);
		if (rc)
			return rc;
		gen_advance(&r->generation, &id);
		/* Ours first: if we die in between, the replicas are behind, not ahead. */
		r->local.meta.generation = r->generation;
		rc = local_store(&r->local, e);
		/* After a loss it matters more that the replicas can be told apart. */
		if (rc && !r->ready)
			return rc;
	} while (advance_replicas(r, deadline_ns) && replicas_live(r));
	return rc;
}

int
repl_advance(struct repl *r, uint64_t deadline_ns, struct err *e)
{
	int rc;

	pthread_mutex_lock(&r->lock);
	rc = advance_locked(r, deadline_ns, e);
	if (!rc && replicas_live(r) == 0)
		rc = err_set(e, REPL_E_LOST, "no replica could be told its generation: %s",
			     r->replicas[0].reason);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

void
repl_lose(struct repl *r, unsigned replica, int status, const char *why, uint64_t deadline_ns)
{
	struct replica *p = &r->replicas[replica];

	pthread_mutex_lock(&r->lock);
	if (!atomic_load(&p->lost)) {
		replica_set_lost(r, p, status, why);
		/* Without a generation of its own the rest could not be told from it. */
		if (r->ready && !r->stop)
			(void)advance_locked(r, deadline_ns, NULL);
	}
	pthread_mutex_unlock(&r->lock);
}

void
repl_await_recorded(struct repl *r)
{
	pthread_mutex_lock(&r->lock);
	pthread_mutex_unlock(&r->lock);
}

/* ---- heartbeat ---- */

static unsigned
heartbeat_interval_ms(const struct repl *r)
{
	unsigned ms = 3600000;

	for (unsigned i = 0; i < r->replica_count; i++) {
		if (r->replicas[i].remote && remote_heartbeat_ms(r->replicas[i].remote) < ms)
			ms = remote_heartbeat_ms(r->replicas[i].remote);
	}
	return ms;
}

/* Sleep until the next beat; false when it is time to stop. */
static bool
heartbeat_sleep(struct repl *r, unsigned ms)
{
	uint64_t at = clock_deadline(ms);
	struct timespec ts = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)};
	bool stop;

	pthread_mutex_lock(&r->lock);
	while (!r->stop && pthread_cond_timedwait(&r->wake, &r->lock, &ts) != ETIMEDOUT)
		;
	stop = r->stop;
	pthread_mutex_unlock(&r->lock);
	return !stop;
}

static void *
heartbeat_main(void *arg)
{
	struct repl *r = arg;
	unsigned ms = heartbeat_interval_ms(r);

	while (heartbeat_sleep(r, ms)) {
		for (unsigned i = 0; i < r->replica_count; i++) {
			struct replica *p = &r->replicas[i];
			struct err e;

			if (!p->remote || atomic_load(&p->lost))
				continue;
			err_clear(&e);
			if (remote_call(p->remote, "ping", NULL, NULL, &e))
				repl_lose(r, i, e.code, e.text,
					  clock_deadline(r->cfg->op_timeout_ms));
		}
	}
	return NULL;
}

int
repl_heartbeat_start(struct repl *r, struct err *e)
{
	sigset_t all, old;
	int ret;

	/* The application's signals are the application's. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&r->thread, NULL, heartbeat_main, r);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return err_errno(e, REPL_E_LIMIT, ret, "starting the heartbeat thread");
	r->thread_started = true;
	return 0;
}

void
repl_heartbeat_stop(struct repl *r)
{
	if (!r->thread_started)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	(void)pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	(void)pthread_join(r->thread, NULL);
	r->thread_started = false;
}
