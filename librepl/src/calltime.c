/* SPDX-License-Identifier: BSD-3-Clause */
#include "calltime.h"

#include <stdbool.h>

#include "clock.h"

#define LOOK_MS 10U /* whether the disk has come to an end */

void
diskclock_begin(struct diskclock *c)
{
	pthread_mutex_lock(&c->lock);
	if (c->waiting++ == 0)
		c->since_ns = clock_now_ns();
	pthread_mutex_unlock(&c->lock);
}

void
diskclock_end(struct diskclock *c)
{
	pthread_mutex_lock(&c->lock);
	if (--c->waiting == 0)
		c->ns += clock_now_ns() - c->since_ns;
	pthread_mutex_unlock(&c->lock);
}

static uint64_t
diskclock_ns(struct diskclock *c, bool *waiting)
{
	uint64_t ns;

	pthread_mutex_lock(&c->lock);
	*waiting = c->waiting > 0;
	ns = c->ns + (*waiting ? clock_now_ns() - c->since_ns : 0);
	pthread_mutex_unlock(&c->lock);
	return ns;
}

struct calltime
calltime_begin(struct diskclock *c, uint64_t begin_ns)
{
	bool waiting;

	return (struct calltime){.begin_ns = begin_ns, .disk_ns = diskclock_ns(c, &waiting)};
}

uint64_t
calltime_end(struct diskclock *c, const struct calltime *t, unsigned timeout_ms)
{
	bool waiting;
	uint64_t disk_ns = diskclock_ns(c, &waiting) - t->disk_ns;
	uint64_t end_ns = t->begin_ns + (uint64_t)timeout_ms * NS_PER_MS + disk_ns;
	uint64_t look_ns = clock_deadline(LOOK_MS);

	return waiting && end_ns < look_ns ? look_ns : end_ns;
}
