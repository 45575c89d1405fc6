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
#include "target.h"
#include "text.h"

#define LOOK_NS  500000000ULL
#define END_NS   1000000000ULL
#define PAUSE_NS 2000000L
#define WORD_MAX (TARGET_TEXT_MAX + 64) /* a name, quoted */

void
lost_begin(struct pool *p)
{
	atomic_store(&p->look_ns, 0);
	atomic_store(&p->told_lost, 0);
}

/* As a command takes it. */
static const char *
word_of(const char *name, char word[WORD_MAX])
{
	return text_quote(name, word, WORD_MAX) ? word : "TARGET/POOL";
}

/* Till there is room for its line it is not told; last: it will not be back. */
static void
look_at(struct pool *p, unsigned replica, const struct repl_stat *st, bool last)
{
	const char *name = p->targets[replica];
	char word[WORD_MAX];
	uint32_t bit = 1U << replica;
	bool told = atomic_load(&p->told_lost) & bit;
	bool is = st->replication == REPL_REPL_ESTABLISHED;

	if (told && is && (atomic_fetch_and(&p->told_lost, ~bit) & bit) &&
	    !report("%s: replica %s is back", p->path, name))
		(void)atomic_fetch_or(&p->told_lost, bit);
	if (!told && !is && (last || st->replication == REPL_REPL_DEGRADED) &&
	    !(atomic_fetch_or(&p->told_lost, bit) & bit) &&
	    !report("%s: REPLICA %s %s: %s; next: replctl why %s", p->path, name,
		    st->replication == REPL_REPL_DEGRADED ? "LOST" : "NOT UP TO DATE YET",
		    st->reason, word_of(name, word)))
		(void)atomic_fetch_and(&p->told_lost, ~bit);
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
	char word[WORD_MAX];

	while (any_lags(p) && now_ns() - begin < END_NS)
		(void)nanosleep(&pause, NULL);
	look_at_all(p, true);
	for (unsigned i = 0; i < api.repl_replicas(p->r); i++) {
		lag = lag_of(p, i);
		if (lag > 0)
			report("%s: REPLICA %s LAGS at the end by %llu bytes, which it may miss; "
			       "next: replctl why %s",
			       p->path, p->targets[i], (unsigned long long)lag,
			       word_of(p->targets[i], word));
	}
}
