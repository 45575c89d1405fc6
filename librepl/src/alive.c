/* SPDX-License-Identifier: BSD-3-Clause */
#include "alive.h"

#include "clock.h"
#include "keeper.h"
#include "repl_impl.h"
#include "thread.h"

/* To all that are not lost and have no keeper, one after the other: none is waited for. How soon
 * again. */
static unsigned
ping_all(struct repl *r)
{
	static const _Atomic int at_once = 1;
	unsigned ms = r->cfg->heartbeat_interval_ms;

	for (unsigned i = 0; i < r->replica_count; i++) {
		struct remote *remote = keeper_runs(r, i) ? NULL : r->replicas[i].remote;

		if (!remote || atomic_load(&r->replicas[i].lost))
			continue;
		if (remote_heartbeat_ms(remote) < ms)
			ms = remote_heartbeat_ms(remote);
		/* One that fails is noticed by the next request. */
		(void)remote_ping(remote, json_object_new_object(), r->cfg->heartbeat_timeout_ms,
				  &at_once, NULL);
	}
	return ms;
}

static void *
alive_main(void *arg)
{
	struct alive *a = arg;
	struct repl *r = a->r;

	pthread_mutex_lock(&r->wake_lock);
	while (!a->over) {
		uint64_t at;
		struct timespec ts;

		pthread_mutex_unlock(&r->wake_lock);
		at = clock_deadline(ping_all(r));
		ts = (struct timespec){.tv_sec = (time_t)(at / NS_PER_S),
				       .tv_nsec = (long)(at % NS_PER_S)};
		pthread_mutex_lock(&r->wake_lock);
		while (!a->over && clock_now_ns() < at)
			(void)pthread_cond_timedwait(&r->wake, &r->wake_lock, &ts);
	}
	pthread_mutex_unlock(&r->wake_lock);
	return NULL;
}

void
alive_begin(struct alive *a, struct repl *r)
{
	*a = (struct alive){.r = r};
	a->started = thread_start(&a->thread, alive_main, a) == 0;
}

void
alive_end(struct alive *a)
{
	if (!a->started)
		return;
	pthread_mutex_lock(&a->r->wake_lock);
	a->over = true;
	pthread_mutex_unlock(&a->r->wake_lock);
	repl_wake(a->r);
	(void)pthread_join(a->thread, NULL);
	a->started = false;
}
