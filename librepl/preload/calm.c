/* SPDX-License-Identifier: BSD-3-Clause */
#include "pools.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "pools_impl.h"

/* So many that of one pool there are two when all are used. */
#define LATE_MAX (POOLS_MAX + 1)

/* In a signal handler that has interrupted such work: the locks are this thread's own. */
static __thread volatile unsigned busy __attribute__((tls_model("initial-exec")));

/* What the handler has flushed, for when that work ends. */
struct late {
	struct pool *pool;
	uint64_t off;
	size_t len;
	enum look look;
};

static __thread struct late late[LATE_MAX] __attribute__((tls_model("initial-exec")));
static __thread volatile unsigned late_count __attribute__((tls_model("initial-exec")));

static void
signals_block(sigset_t *before)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, before);
}

static void
late_lost(const struct pool *p)
{
	report("%s: flushed by a signal handler amid another flush: NOT REPLICATED", p->path);
}

static uint64_t
late_end(const struct late *l)
{
	return l->off + l->len;
}

/* Between what the program has flushed may be what can't be read. */
static enum look
look_between(const struct late *a, const struct late *b)
{
	return a->look == LOOK_CHANGED || b->look == LOOK_CHANGED ? LOOK_CHANGED : LOOK_SYNC;
}

static struct late
late_both(const struct late *a, const struct late *b, enum look look)
{
	uint64_t off = a->off < b->off ? a->off : b->off;
	uint64_t end = late_end(a) > late_end(b) ? late_end(a) : late_end(b);

	return (struct late){.pool = a->pool, .off = off, .len = (size_t)(end - off), .look = look};
}

/* How much one of both has that neither has. */
static uint64_t
late_between(const struct late *a, const struct late *b)
{
	uint64_t len = late_both(a, b, LOOK_SYNC).len;

	return len > a->len + b->len ? len - a->len - b->len : 0;
}

/* All are used. There is room for one more when the two of one pool that are nearest are one. */
static void
late_join(void)
{
	uint64_t least = UINT64_MAX;
	struct late *a = late, *b = late;

	for (struct late *l = late; l < late + LATE_MAX; l++) {
		for (struct late *m = late; m < l; m++) {
			if (l->pool != m->pool || late_between(l, m) >= least)
				continue;
			least = late_between(l, m);
			a = m;
			b = l;
		}
	}
	*a = late_both(a, b, look_between(a, b));
	*b = late[--late_count];
}

/* Another handler may interrupt this one. */
void
late_add(struct pool *p, uint64_t off, size_t len, enum look look)
{
	struct late add = {.pool = p, .off = off, .len = len, .look = look}, *l = late;
	sigset_t before;

	signals_block(&before);
	while (l < late + late_count &&
	       (l->pool != p || l->look != look || late_end(&add) < l->off || off > late_end(l)))
		l++;
	if (l == late + LATE_MAX) {
		late_join();
		l = late + late_count;
	}
	if (l < late + late_count)
		*l = late_both(l, &add, look);
	else
		late[late_count++] = add;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Drained, too: the handler has counted on that. */
static void
late_flush(void)
{
	struct late now[LATE_MAX];
	unsigned count;
	sigset_t before;

	if (late_count == 0)
		return;
	signals_block(&before);
	count = late_count;
	memcpy(now, late, sizeof(now));
	late_count = 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	for (unsigned i = 0; i < count; i++) {
		/* Not mapped any more; one that was not open yet is opened. */
		if (now[i].pool->state == POOL_CLOSED && !now[i].pool->view)
			late_lost(now[i].pool);
		else
			piece_flush(now[i].pool, now[i].off, now[i].len, now[i].look);
	}
	thread_drain();
}

void
late_lost_all(void)
{
	for (unsigned i = 0; i < late_count; i++)
		late_lost(late[i].pool);
}

void
late_forget(void)
{
	late_count = 0;
}

static void
busy_end(void)
{
	/* Such a one has left what there is to its parent's thread, which waits for it. */
	bool leave = late_count > 0 && is_sharing();

	while (busy == 1 && !leave) {
		late_flush();
		busy = 0;
		/* From here on they are flushed at once. */
		if (late_count == 0)
			return;
		busy = 1;
	}
	busy--;
}

struct calm
calm_begin(void)
{
	struct calm c = {.saved_errno = errno};

	busy++;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c.cancel);
	return c;
}

void
calm_end(struct calm c)
{
	busy_end();
	(void)pthread_setcancelstate(c.cancel, NULL);
	errno = c.saved_errno;
}

bool
pools_busy(void)
{
	return busy > 0;
}

void
calm_hold(void)
{
	busy++;
}

void
calm_let_go(void)
{
	busy--;
}
