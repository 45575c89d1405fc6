/* SPDX-License-Identifier: BSD-3-Clause */
#include "logturn.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "clock.h"
#include "ownwait.h"
#include "spin.h"

#define TURN_YIELDS 2U   /* for those who are to be back */
#define TURN_ALONE  256U /* after the core was away for as long as somebody computes */

enum waiter_state { WAITER_POLLS, WAITER_SLEEPS, WAITER_WOKEN };

/* On the stack of who waits, until it is woken. */
struct logturn_waiter {
	struct logturn_waiter *next;
	uint64_t end;
	enum logturn_role role;
	_Atomic int state;
	sem_t woken; /* posted to who sleeps */
};

void
logturn_init(struct logturn *t, const _Atomic bool *abandoned)
{
	*t = (struct logturn){.last = &t->first, .abandoned = abandoned};
}

/* ---- waiting ---- */

/* False in a child: nobody tells. */
static bool
waiter_sleep(struct logturn_waiter *w, const _Atomic bool *abandoned)
{
	/* Whether cores are scarce is known from earlier calls. */
	static _Thread_local struct spin spin;
	int polls = WAITER_POLLS;

	spin_reset(&spin);
	while (atomic_load_explicit(&w->state, memory_order_acquire) == WAITER_POLLS) {
		if (spin_again(&spin))
			continue;
		if (!atomic_compare_exchange_strong(&w->state, &polls, WAITER_SLEEPS))
			break;
		return ownwait_sem(&w->woken, abandoned);
	}
	return true;
}

/* Under the lock; returns without it. */
static enum logturn_role
turn_wait(struct logturn *t, pthread_mutex_t *lock, uint64_t end)
{
	struct logturn_waiter w = {.end = end};

	(void)sem_init(&w.woken, 0, 0);
	*t->last = &w;
	t->last = &w.next;
	t->waiting++;
	(void)pthread_mutex_unlock(lock);
	if (!waiter_sleep(&w, t->abandoned))
		w.role = LOGTURN_FAILED;
	(void)sem_destroy(&w.woken);
	return w.role;
}

/* Under the lock, which is let go meanwhile; false in a child, without it. */
static bool
turn_gather(struct logturn *t, pthread_mutex_t *lock)
{
	if (t->alone > 0) {
		t->alone--;
		return true;
	}
	for (unsigned i = 0; i < TURN_YIELDS && t->waiting + 1 < t->served; i++) {
		uint64_t begin_ns = clock_now_ns();

		(void)pthread_mutex_unlock(lock);
		(void)sched_yield();
		if (!ownwait_lock(lock, t->abandoned))
			return false;
		if (clock_now_ns() - begin_ns >= SPIN_COMPUTED_NS) {
			t->alone = TURN_ALONE;
			break;
		}
	}
	return true;
}

enum logturn_role
logturn_await(struct logturn *t, pthread_mutex_t *lock, uint64_t end)
{
	if (t->leading) {
		enum logturn_role role = turn_wait(t, lock, end);

		if (role != LOGTURN_LEAD)
			return role;
		if (!ownwait_lock(lock, t->abandoned))
			return LOGTURN_FAILED;
	}
	t->leading = true;
	return turn_gather(t, lock) ? LOGTURN_LEAD : LOGTURN_FAILED;
}

/* ---- waking ---- */

/* Who is woken may be gone at once, and its stack with it. */
static void
turn_wake(struct logturn_waiter *w, unsigned count)
{
	while (count-- > 0) {
		struct logturn_waiter *next = w->next;

		if (atomic_exchange(&w->state, WAITER_WOKEN) == WAITER_SLEEPS)
			(void)sem_post(&w->woken);
		w = next;
	}
}

static void
turn_take_first(struct logturn *t, enum logturn_role role)
{
	t->first->role = role;
	t->first = t->first->next;
	t->waiting--;
}

void
logturn_end(struct logturn *t, pthread_mutex_t *lock, uint64_t durable, bool failed)
{
	struct logturn_waiter *first = t->first;
	unsigned count = 0;

	/* They stand in the order of their records. */
	for (; t->first && (t->first->end <= durable || failed); count++)
		turn_take_first(t, t->first->end <= durable ? LOGTURN_DURABLE : LOGTURN_FAILED);
	t->served = count + 1;
	t->leading = t->first != NULL;
	if (t->leading) {
		turn_take_first(t, LOGTURN_LEAD);
		count++;
	}
	if (!t->first)
		t->last = &t->first;
	(void)pthread_mutex_unlock(lock);
	turn_wake(first, count);
}
