/* SPDX-License-Identifier: BSD-3-Clause */
#include "pulse.h"

#include <time.h>

#include "clock.h"
#include "thread.h"

#define PULSE_MS 1000U /* at least */

static unsigned
pulse_ms(const struct remote *remote)
{
	return remote_heartbeat_ms(remote) < PULSE_MS ? remote_heartbeat_ms(remote) : PULSE_MS;
}

/* What it finds out about the remote its user will find out, too. */
static void *
pulse_main(void *arg)
{
	struct pulse *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!atomic_load(&p->stop)) {
		uint64_t at_ns = clock_deadline(pulse_ms(p->remote));
		const struct timespec at = {.tv_sec = (time_t)(at_ns / NS_PER_S),
					    .tv_nsec = (long)(at_ns % NS_PER_S)};

		if (pthread_cond_timedwait(&p->stopped, &p->lock, &at) == 0)
			continue;
		pthread_mutex_unlock(&p->lock);
		(void)remote_ping(p->remote, json_object_new_object(),
				  remote_op_timeout_ms(p->remote), &p->stop, NULL);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void
pulse_init(struct pulse *p)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&p->stopped, &attr);
	(void)pthread_condattr_destroy(&attr);
	(void)pthread_mutex_init(&p->lock, NULL);
	atomic_store(&p->stop, 0);
}

static void
pulse_fini(struct pulse *p)
{
	(void)pthread_mutex_destroy(&p->lock);
	(void)pthread_cond_destroy(&p->stopped);
	p->remote = NULL;
}

int
pulse_start(struct pulse *p, struct remote *remote, struct err *e)
{
	int ret;

	pulse_init(p);
	p->remote = remote;
	ret = thread_start(&p->thread, pulse_main, p);
	if (!ret)
		return 0;
	pulse_fini(p);
	return err_thread(e, ret, "a thread");
}

void
pulse_stop(struct pulse *p)
{
	if (!p->remote)
		return;
	pthread_mutex_lock(&p->lock);
	atomic_store(&p->stop, 1);
	(void)pthread_cond_signal(&p->stopped);
	pthread_mutex_unlock(&p->lock);
	(void)pthread_join(p->thread, NULL);
	pulse_fini(p);
}
