/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools with chains of small numbers, and what is said of them. */
#ifndef UNIT_POOL_CHAINS_H
#define UNIT_POOL_CHAINS_H

#include "pool_world.h"

static void
expect(int rc, int code, const char *text)
{
	if (rc != code || !strstr(err.text, text))
		fail_msg("%d, '%s': not %d with '%s'", rc, err.text, code, text);
}

/* A chain of small numbers, the newest first; 0 ends it. */
static struct generation
chain(unsigned current, unsigned before, unsigned first)
{
	struct generation g;

	memset(&g, 0, sizeof(g));
	g.current.b[0] = (uint8_t)current;
	g.history[0].b[0] = (uint8_t)before;
	g.history[1].b[0] = (uint8_t)first;
	return g;
}

/* The pool gets this chain and state, as a writer that closes in order leaves it. */
static void
put_as(enum sidecar_state mark, bool waits, const struct generation *g)
{
	const struct pool_claim claim = {.writer = "w", .force = true, .waits = waits};
	struct pool *p;

	assert_int_equal(pool_open_by(store, "p", &claim, &p, &err), 0);
	assert_int_equal(pool_mark(p, mark, g, 0, &err), 0);
	assert_int_equal(pool_close(p, true, &err), 0);
}

static void
put(enum sidecar_state mark, const struct generation *g)
{
	put_as(mark, false, g);
}

static void
write_some_with_record(const void *arg)
{
	struct poolposition *record;
	struct pool *p;

	(void)arg;
	assert_int_equal(pool_open(store, "p", POOL_WRITE, "w", &p, &err), 0);
	assert_int_equal(pool_record_make(p, &record, &err), 0);
}

#endif
