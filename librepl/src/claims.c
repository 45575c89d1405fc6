/* SPDX-License-Identifier: BSD-3-Clause */
#include "claims.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "ownwait.h"

#define CHILD_LOOK_MS 100U /* whether this is a child */

static int
ended_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int ret = pthread_condattr_init(&attr);

	if (ret)
		return ret;
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	ret = pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
	return ret;
}

int
claims_init(struct claims *c, unsigned lanes, const _Atomic bool *abandoned)
{
	int ret;

	memset(c, 0, sizeof(*c));
	c->abandoned = abandoned;
	c->claim = calloc(lanes, sizeof(*c->claim));
	if (!c->claim)
		return ENOMEM;
	ret = ended_init(&c->ended);
	if (!ret) {
		ret = pthread_mutex_init(&c->lock, NULL);
		if (ret)
			(void)pthread_cond_destroy(&c->ended);
	}
	if (ret)
		free(c->claim);
	return ret;
}

void
claims_fini(struct claims *c)
{
	(void)pthread_mutex_destroy(&c->lock);
	(void)pthread_cond_destroy(&c->ended);
	free(c->claim);
}

/* False in a child that has come back: other threads of its parent may have been amid it. */
static bool
claims_lock(struct claims *c)
{
	return ownwait_lock(&c->lock, c->abandoned) && !*c->abandoned;
}

static void
claims_unlock(struct claims *c)
{
	if (!*c->abandoned)
		pthread_mutex_unlock(&c->lock);
}

void
claims_abandon(struct claims *c)
{
	ownwait_lock_anew(&c->lock);
}

/* ---- what meets what ---- */

static bool
drain_meets(const struct claim *c, const struct range *r)
{
	bool meets = rangeset_meets(c->set, r);

	for (unsigned i = 0; i < CLAIMS_MORE_MAX && !meets; i++)
		meets = r->len > 0 && c->more[i].off < r->off + r->len &&
			r->off < c->more[i].off + c->more[i].len;
	return meets;
}

static bool
early_meets(const struct claim *c, const struct range *r)
{
	return rangeset_meets(&c->early, r);
}

/* Whether any range of a drain is one that meets() other's. */
static bool
any_meets(const struct claim *c, const struct claim *other,
	  bool (*meets)(const struct claim *, const struct range *))
{
	for (unsigned i = 0; i < c->set->count; i++)
		if (meets(other, &c->set->r[i]))
			return true;
	for (unsigned i = 0; i < CLAIMS_MORE_MAX; i++)
		if (meets(other, &c->more[i]))
			return true;
	return false;
}

static bool
is_apart(const struct claim *a, const struct claim *b)
{
	return a->hi <= b->lo || b->hi <= a->lo;
}

static void
claim_span(struct claim *c, uint64_t off, uint64_t len)
{
	if (len == 0)
		return;
	if (off < c->lo)
		c->lo = off;
	if (off + len > c->hi)
		c->hi = off + len;
}

static void
claim_spans(struct claim *c, const struct rangeset *s)
{
	if (s->count == 0)
		return;
	claim_span(c, s->r[0].off, s->r[0].len);
	claim_span(c, s->r[s->count - 1].off, s->r[s->count - 1].len);
}

/* ---- with the lock ---- */

static void
claim_changed(struct claims *c, unsigned lane)
{
	struct claim *me = &c->claim[lane];

	me->lo = UINT64_MAX;
	me->hi = 0;
	claim_spans(me, &me->early);
	if (me->set)
		claim_spans(me, me->set);
	for (unsigned i = 0; me->set && i < CLAIMS_MORE_MAX; i++)
		claim_span(me, me->more[i].off, me->more[i].len);
	if (me->hi > 0)
		c->any |= UINT64_C(1) << lane;
	else
		c->any &= ~(UINT64_C(1) << lane);
}

static void
drain_begin(struct claims *c, unsigned lane, const struct rangeset *set, const struct range *more,
	    unsigned count)
{
	struct claim *me = &c->claim[lane];

	memset(me->more, 0, sizeof(me->more));
	for (unsigned i = 0; i < count && i < CLAIMS_MORE_MAX; i++)
		me->more[i] = more[i];
	me->set = set;
	me->turn = c->turns++;
	me->waits = true;
	claim_changed(c, lane);
}

static void
drain_end(struct claims *c, unsigned lane)
{
	c->claim[lane].set = NULL;
	claim_changed(c, lane);
	if (c->waiting > 0)
		(void)pthread_cond_broadcast(&c->ended);
}

/* A lane that this one's drain has to wait for, or REPL_LANES_MAX; *written: for what it wrote. */
static unsigned
drain_waits_for(const struct claims *c, unsigned lane, bool *written)
{
	const struct claim *me = &c->claim[lane];
	uint64_t others = c->any & ~(UINT64_C(1) << lane);

	for (; others; others &= others - 1) {
		unsigned i = (unsigned)__builtin_ctzll(others);
		const struct claim *o = &c->claim[i];

		if (is_apart(me, o))
			continue;
		*written = !o->set && any_meets(me, o, early_meets);
		if (*written || any_meets(me, o, early_meets))
			return i;
		if (o->set && (!o->waits || o->turn < me->turn) && any_meets(me, o, drain_meets))
			return i;
	}
	return REPL_LANES_MAX;
}

static bool
wait_ended(struct claims *c, uint64_t deadline_ns)
{
	uint64_t look_ns = clock_deadline(CHILD_LOOK_MS);
	uint64_t until_ns = look_ns < deadline_ns ? look_ns : deadline_ns;
	struct timespec ts = {.tv_sec = (time_t)(until_ns / NS_PER_S),
			      .tv_nsec = (long)(until_ns % NS_PER_S)};
	int ret;

	c->waiting++;
	ret = pthread_cond_timedwait(&c->ended, &c->lock, &ts);
	c->waiting--;
	return ret == 0 || until_ns < deadline_ns;
}

static enum claims_got
take_locked(struct claims *c, unsigned lane, uint64_t deadline_ns, unsigned *other)
{
	struct claim *me = &c->claim[lane];
	bool written = false, in_time = deadline_ns != 0;

	while (!*c->abandoned && (*other = drain_waits_for(c, lane, &written)) != REPL_LANES_MAX) {
		if (!in_time)
			return CLAIMS_LATE;
		if (me->early.count > 0)
			return CLAIMS_END_OWN;
		if (written)
			return CLAIMS_END_OTHER;
		in_time = wait_ended(c, deadline_ns);
	}
	me->waits = false;
	return CLAIMS_TAKEN;
}

/* ---- the calls ---- */

enum claims_got
claims_take(struct claims *c, unsigned lane, const struct rangeset *set, const struct range *more,
	    unsigned count, uint64_t deadline_ns, unsigned *other)
{
	enum claims_got got;

	if (!claims_lock(c))
		return CLAIMS_TAKEN;
	drain_begin(c, lane, set, more, count);
	got = take_locked(c, lane, deadline_ns, other);
	if (got != CLAIMS_TAKEN)
		drain_end(c, lane);
	claims_unlock(c);
	return got;
}

bool
claims_early(struct claims *c, unsigned lane, uint64_t off, uint64_t len)
{
	const struct range r = {.off = off, .len = len};
	uint64_t others;
	bool is_free = true;

	if (!claims_lock(c))
		return false;
	others = c->any & ~(UINT64_C(1) << lane);
	for (; others && is_free; others &= others - 1) {
		const struct claim *o = &c->claim[__builtin_ctzll(others)];

		is_free = !early_meets(o, &r) && !(o->set && drain_meets(o, &r));
	}
	is_free = is_free && rangeset_add(&c->claim[lane].early, off, len) >= 0;
	if (is_free)
		claim_changed(c, lane);
	claims_unlock(c);
	return is_free;
}

void
claims_yield(struct claims *c, unsigned lane)
{
	if (!claims_lock(c))
		return;
	drain_end(c, lane);
	claims_unlock(c);
}

void
claims_drop(struct claims *c, unsigned lane)
{
	if (!claims_lock(c))
		return;
	rangeset_clear(&c->claim[lane].early);
	drain_end(c, lane);
	claims_unlock(c);
}

bool
claims_has_early(struct claims *c, unsigned lane)
{
	bool has;

	if (!claims_lock(c))
		return false;
	has = c->claim[lane].early.count > 0;
	claims_unlock(c);
	return has;
}
