/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Degraded operation is silent by itself: whoever runs the program is told of each loss of a
 * replica, with the replica's name.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "api.h"
#include "pools_impl.h"

#define LOOK_NS   500000000ULL
#define LINES_MAX 20U /* of a pool: one that comes and goes leaves some for the others */
#define END_NS    1000000000ULL
#define PAUSE_NS  2000000L

void
lost_begin(struct pool *p)
{
	atomic_store(&p->look_ns, 0);
	atomic_store(&p->told_lost, 0);
}

static void
tell_lost(struct pool *p, unsigned replica, const struct repl_stat *st)
{
	const char *name = p->targets[replica];
	unsigned lines = atomic_fetch_add(&p->lost_lines, 1) + 1;

	if (lines > LINES_MAX)
		return;
	report("%s: REPLICA %s LOST: %s; next: replctl why %s%s", p->path, name, st->reason, name,
	       lines == LINES_MAX ? "; what is lost from now on is not told" : "");
}

/* Once, until it is back with all that it has missed; last: it will not be. */
static void
look_at(struct pool *p, unsigned replica, const struct repl_stat *st, bool last)
{
	uint32_t bit = 1U << replica;

	if (st->replication == REPL_REPL_ESTABLISHED)
		(void)atomic_fetch_and(&p->told_lost, ~bit);
	else if ((last || st->replication == REPL_REPL_DEGRADED) &&
		 !(atomic_fetch_or(&p->told_lost, bit) & bit))
		tell_lost(p, replica, st);
}

static void
look_at_all(struct pool *p, bool last)
{
	struct repl_stat st = {.struct_size = sizeof(st)};

	for (unsigned i = 0; i < api.repl_replicas(p->r); i++) {
		if (!api.repl_stat(p->r, i, &st))
			look_at(p, i, &st, last);
	}
}

void
lost_look(struct pool *p, bool now)
{
	uint64_t now_is = now_ns(), due = atomic_load(&p->look_ns);

	if (now ||
	    (now_is >= due && atomic_compare_exchange_strong(&p->look_ns, &due, now_is + LOOK_NS)))
		look_at_all(p, false);
}

/* What is on its way to replicas that nobody waits for. */
static uint64_t
lag_of(struct pool *p, unsigned replica)
{
	struct repl_stat st = {.struct_size = sizeof(st)};

	return api.repl_stat(p->r, replica, &st) ? 0 : st.lag_bytes;
}

static bool
any_lags(struct pool *p)
{
	bool any = false;

	for (unsigned i = 0; i < api.repl_replicas(p->r); i++)
		any |= lag_of(p, i) > 0;
	return any;
}

void
lost_end(struct pool *p)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t begin = now_ns(), lag;

	while (any_lags(p) && now_ns() - begin < END_NS)
		(void)nanosleep(&pause, NULL);
	look_at_all(p, true);
	for (unsigned i = 0; i < api.repl_replicas(p->r); i++) {
		lag = lag_of(p, i);
		if (lag > 0)
			report("%s: REPLICA %s LAGS at the end by %llu bytes, which it may miss; "
			       "next: replctl why %s",
			       p->path, p->targets[i], (unsigned long long)lag, p->targets[i]);
	}
}
