/* SPDX-License-Identifier: BSD-3-Clause */
#include "turns.h"

#include <time.h>

#include "clock.h"
#include "ownwait.h"

#define TURN_PAUSE_NS 20000U
#define TURN_FAIR_NS  NS_PER_MS
#define TURN_LONG_NS  (100 * NS_PER_MS)

/* On the stack of who waits. */
struct turn {
	struct turn *prev, *next;
	uint64_t since_ns;
};

int
turns_init(struct turns *t, const _Atomic bool *abandoned)
{
	*t = (struct turns){.abandoned = abandoned};
	return pthread_mutex_init(&t->lock, NULL);
}

void
turns_fini(struct turns *t)
{
	(void)pthread_mutex_destroy(&t->lock);
}

static bool
turns_lock(struct turns *t)
{
	return ownwait_lock(&t->lock, t->abandoned) && !*t->abandoned;
}

static void
turns_unlock(struct turns *t)
{
	if (!*t->abandoned)
		pthread_mutex_unlock(&t->lock);
}

static void
turn_join(struct turns *t, struct turn *me)
{
	me->prev = t->last;
	me->next = NULL;
	*(t->last ? &t->last->next : &t->first) = me;
	t->last = me;
}

static void
turn_quit(struct turns *t, struct turn *me)
{
	*(me->prev ? &me->prev->next : &t->first) = me->next;
	*(me->next ? &me->next->prev : &t->last) = me->prev;
}

static bool
turn_take(struct turns *t, const struct turn *me, uint64_t now_ns)
{
	if (t->taken || (t->first && t->first != me && now_ns >= t->first->since_ns + TURN_FAIR_NS))
		return false;
	t->taken = true;
	return true;
}

/* Who has waited for long waits for a target that hangs: that is not to cost a core. */
static void
turn_pause(uint64_t waited_ns)
{
	const struct timespec pause = {.tv_nsec = waited_ns < TURN_LONG_NS ? (long)TURN_PAUSE_NS
									   : (long)NS_PER_MS};

	(void)nanosleep(&pause, NULL);
}

bool
turns_enter(struct turns *t, uint64_t deadline_ns)
{
	struct turn me = {.since_ns = clock_now_ns()};
	uint64_t now_ns = me.since_ns;
	bool got;

	if (!turns_lock(t))
		return false;
	got = turn_take(t, NULL, now_ns);
	if (!got)
		turn_join(t, &me);
	turns_unlock(t);
	if (got)
		return true;
	do {
		turn_pause(now_ns - me.since_ns);
		now_ns = clock_now_ns();
		if (!turns_lock(t))
			return false;
		got = turn_take(t, &me, now_ns);
		if (got || now_ns >= deadline_ns)
			turn_quit(t, &me);
		turns_unlock(t);
	} while (!got && now_ns < deadline_ns);
	return got;
}

void
turns_leave(struct turns *t)
{
	if (!turns_lock(t))
		return;
	t->taken = false;
	turns_unlock(t);
}
