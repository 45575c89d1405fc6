/* SPDX-License-Identifier: BSD-3-Clause */
#include "pools.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "pools_impl.h"

#define LATE_MAX 16

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

/* Another handler may interrupt this one. */
void
late_add(struct pool *p, uint64_t off, size_t len, enum look look)
{
	uint64_t end = off + len;
	struct late *l = late;
	sigset_t before;

	signals_block(&before);
	while (l < late + late_count &&
	       (l->pool != p || l->look != look || end < l->off || off > l->off + l->len))
		l++;
	if (l < late + late_count) {
		off = off < l->off ? off : l->off;
		end = end > l->off + l->len ? end : l->off + l->len;
	} else if (l < late + LATE_MAX) {
		late_count++;
	} else {
		late_lost(p);
		l = NULL;
	}
	if (l)
		*l = (struct late){.pool = p, .off = off, .len = (size_t)(end - off), .look = look};
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
